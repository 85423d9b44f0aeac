"""One source of queries from a file of any format, or from several files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.files.formats import Source, npy_source, npz_source, split_key, zarr_source

# suffix, and what opens such a file; tables are `files.tables`'s, .csv files `files.csv`'s
FORMATS: dict[str, Callable[[str, bool], Source]] = {
    ".npy": npy_source,
    ".npz": npz_source,
    ".zarr": zarr_source,
}
CSV = (".csv", ".csv.gz")
TABLES = (".parquet", ".arrow", ".feather", ".ipc")
SUFFIXES = (*FORMATS, *TABLES, *CSV)


def suffix_of(name: str) -> str:
    """The suffix that says what a file is; ValueError if it is none of ours."""
    lower = split_key(name)[0].lower().rstrip("/")
    if ".zarr/" in lower:
        return ".zarr"
    for suffix in SUFFIXES:
        if lower.endswith(suffix):
            return suffix
    raise ValueError(f"{name} must end in {', '.join(SUFFIXES)} or .npz:key")


def stem_of(name: str) -> str:
    """The name of a file without folder and suffix."""
    base = os.path.basename(split_key(name)[0].rstrip("/"))
    return base[: len(base) - len(suffix_of(name))]


def side_by_side(name: str, sources: Sequence[Source], n_samples: int | None) -> list[Source]:
    """Transposed files as what they are together: more models, or more samples of the same.

    One source, if each has some of the samples of the same models; the same sources, if each has
    all samples; else a ValueError.
    """
    lengths = [source.shape[1] for source in sources]
    same = all(source.shape[0] == sources[0].shape[0] for source in sources)
    same = same and all(source.names == sources[0].names for source in sources)
    if n_samples is None and not same or set(lengths) == {n_samples}:
        return list(sources)
    if same and (n_samples is None and sources[0].names or sum(lengths) == n_samples):
        return [_longer(sources)]
    if n_samples is None and len(set(lengths)) == 1:
        return list(sources)
    wanted = "samples" if n_samples is None else counted(n_samples, "sample")
    raise ValueError(
        f"{name} must each have all {wanted}, or the same models and together all {wanted}, got "
        f"{', '.join(f'{source.shape[0]:,} x {source.shape[1]:,}' for source in sources)[:100]}"
    )


def _longer(sources: Sequence[Source]) -> Source:
    """Join sources that have the same models, each with some of the samples, in order."""

    def blocks(n: int) -> Iterator[np.ndarray]:
        for parts in zip(*(_of_length(n, source.blocks(n)) for source in sources), strict=True):
            yield np.concatenate(parts, axis=1)

    n_samples = sum(source.shape[1] for source in sources)
    dtype = np.result_type(*(source.dtype for source in sources))
    return Source((sources[0].shape[0], n_samples), dtype, blocks, sources[0].names)


def _of_length(n: int, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Blocks anew, of exactly n rows, the last of fewer."""
    rest: np.ndarray | None = None
    for block in blocks:
        whole = block if rest is None or not len(rest) else np.concatenate([rest, block])
        end = len(whole) // n * n
        for start in range(0, end, n):
            yield whole[start : start + n]
        rest = whole[end:]
    if rest is not None and len(rest):
        yield rest
