"""The state file of a new guard for guard_stream: what it may spend, and under which signs.

python new_state.py guard.state --n-samples 4000 --epsilon 0.05 --delta 0.1 --bound mclt
"""

import argparse
import math
import os
import struct
from fractions import Fraction

from radabound_fast import RadaBound
from radabound_fast.bounds import BOUNDS
from radabound_fast.bounds.union import MOST_QUERIES

FORMAT = b"radabnd1"
MASK = 2**64 - 1


N_STAGES = 16  # in guard_stream.c


def gate(n_samples, n_vectors, epsilon, delta, bound, max_queries=None):
    """(budget, half_range, ends, lows) in units of one loss; of the last two, one of each stage.

    A row of k losses is answered while the sum of the extremes is at most `budget`, or if k or
    n_samples - k is at most the low of the first stage whose end is above the number answered.
    """
    row = BOUNDS[bound]
    half_range = row.estimators[0] == "half-range"
    cells = (2 if half_range else 1) * n_vectors * n_samples
    # at the largest mean, so that it holds for every row
    budget = Fraction(row.budget(n_samples, n_vectors, epsilon, delta, largest_mean=1.0))
    stages = []
    free = row.free(n_samples, epsilon, delta, max_queries)
    asked = 0
    while free and asked < MOST_QUERIES and (stage := free.stage(asked)).low_count >= 0:
        if stages and stages[-1][1] == stage.low_count:
            stages.pop()
        if len(stages) == N_STAGES:
            break
        stages.append((stage.n_queries, stage.low_count))
        asked = stage.n_queries
    ends, lows = zip(*stages, *[(0, -1)] * (N_STAGES - len(stages)), strict=True)
    return math.floor(budget * cells), half_range, ends, lows


def mix64(z):
    """SplitMix64's output function, as in src/kernels/signed_sums.h."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def state(n_samples, epsilon, delta, bound, n_vectors=32, seed=None, max_queries=None):
    """The bytes of ``struct state``: both slots, before the first row."""
    # which checks the arguments, and draws the seed
    guard = RadaBound(
        n_samples,
        epsilon=epsilon,
        delta=delta,
        n_vectors=n_vectors,
        bound=bound,
        seed=seed,
        signs="generated",
        max_queries=max_queries,
    )
    budget, half_range, *stages = gate(n_samples, n_vectors, epsilon, delta, bound, max_queries)
    n_lanes = -(-n_vectors // 8) * 8
    body = struct.pack("<Q4q", guard.seed, n_vectors, n_samples, budget, half_range)
    body += struct.pack(f"<{2 * N_STAGES}q2q", *stages[0], *stages[1], 0, 0)
    body += bytes(2 * 8 * n_lanes)
    checksum = 0
    for (word,) in struct.iter_unpack("<Q", body):
        checksum = mix64(checksum ^ word)
    return 2 * (FORMAT + struct.pack("<Q", checksum) + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="of the file to make; it must not exist")
    parser.add_argument("--n-samples", type=int, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--bound", choices=list(BOUNDS), default="bernstein")
    parser.add_argument("--max-queries", type=int, help="for fixed-sequence")
    parser.add_argument("--seed", type=int, help="for reproduction only")
    arguments = vars(parser.parse_args())
    path = arguments.pop("path")
    content = state(**arguments)
    # whoever reads the seed knows the signs
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main()
