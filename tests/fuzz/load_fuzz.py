"""Target: `RadaBound.load`, on saved guards that were damaged, or forged with a right checksum.

Damage is a ValueError or an OSError; a forger gets one too, or a guard that works; the file stays
as it was.
"""

import atexit
import functools
import hashlib
import os
import re
import tempfile

import numpy as np
from damage import damaged
from draw import Draw

from radabound_fast import HoldoutExhausted, RadaBound

FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
DIGEST_BYTES = 32


@functools.cache
def saved_guards():
    """Bytes of guards: fresh, used, halted, with real-valued losses, of another bound."""
    losses = np.random.default_rng(0).random((40, 70)) < 0.3
    blobs = []
    for number, (rows, epsilon, bound) in enumerate(
        [
            (losses[:0], 0.9, "mclt"),
            (losses, 0.9, "bernstein"),
            (losses, 0.2, "mclt"),
            (losses * 0.5, 0.9, "mclt"),
            (losses, 0.9, "fixed-sequence"),
        ]
    ):
        guard = RadaBound(70, epsilon=epsilon, delta=0.5, bound=bound, n_vectors=9, seed=number)
        guard.query_many(rows)
        path = os.path.join(FOLDER.name, f"saved-{number}")
        guard.save(path)
        with open(path, "rb") as file:
            blobs.append(file.read())
    return blobs


def forged(content):
    """With the length and the checksum that its other bytes ask for."""
    content = bytearray(content[:-DIGEST_BYTES])
    content[16:24] = (len(content) + DIGEST_BYTES).to_bytes(8, "little")
    return bytes(content) + hashlib.sha256(content).digest()


def asks_for_much(content):
    """Whether loading would take long or much memory, as a forger may have it."""
    return re.search(rb'"n_(samples|vectors)": *[0-9.eE+-]{5,}', content) is not None


def fuzz_one(data):
    draw = Draw(data)
    blobs = saved_guards()
    whole = draw.choice(blobs)
    content = damaged(draw, whole, blobs)
    is_forged = draw.one_in(3) and len(content) > 24 + DIGEST_BYTES
    if is_forged:
        content = forged(content)
    if asks_for_much(content):
        return
    path = os.path.join(FOLDER.name, "guard")
    with open(path, "wb") as file:
        file.write(content)
    try:
        guard = RadaBound.load(path)
    except (ValueError, OSError):  # the checksum finds accidents, not forgers
        assert content not in blobs, "a good file was refused"
    else:
        assert is_forged or content in blobs, "damage went unseen"
        try:
            guard.query(np.zeros(guard.n_samples, bool))
        except HoldoutExhausted:
            assert guard.halted
        del guard
    with open(path, "rb") as file:
        assert file.read() == content
