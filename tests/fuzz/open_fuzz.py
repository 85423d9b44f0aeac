"""Target: `open`, on databases of guards and of searches that were damaged.

Damage is a ValueError or an OSError of one line that names the file, which stays as it was; or, if
nothing uses what was damaged, the guard is the very same.
"""

import atexit
import functools
import os
import tempfile

import numpy as np
from damage import damaged
from draw import Draw

from radabound_fast import DeclaredSearch, FixedSequence, GuessAndCheck, Ladder, RadaBound
from radabound_fast.experiments.thresholdout import Thresholdout

FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
PATH = os.path.join(FOLDER.name, "guard")

M = 70  # not a multiple of 8
LOSSES = np.random.default_rng(0).random((40, M)) < np.linspace(0.6, 0.1, 40)[:, np.newaxis]
GUESSES = np.clip(LOSSES.mean(1) + np.tile([0, 0.3], 20), 0, 1)
PAPER = {"epsilon": 0.9, "delta": 0.5, "bound": "mclt", "n_vectors": 9}

# kind, parameters, and what it is queried about
GUARDS = {
    "fresh": (RadaBound, PAPER, LOSSES[:0]),
    "used": (RadaBound, PAPER | {"bound": "bernstein"}, LOSSES),
    "halted": (RadaBound, PAPER | {"epsilon": 0.2}, LOSSES),
    "real": (RadaBound, PAPER | {"estimator": "half-range"}, LOSSES * 0.5),
    "sequence": (FixedSequence, {"epsilon": 0.6, "delta": 0.5, "max_queries": 9}, LOSSES),
    "check": (GuessAndCheck, {"epsilon": 0.6, "delta": 0.5}, LOSSES),
    "ladder": (Ladder, {"step": 0.1, "delta": 0.5}, LOSSES),
    "thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 9}, LOSSES),
    "fresh search": (DeclaredSearch, {"space": 99, "delta": 0.1}, LOSSES[:0]),
    "search": (DeclaredSearch, {"space": {"a": [1, 2], "b": range(40)}, "delta": 0.1}, LOSSES),
}


@functools.cache
def on_disk(name):
    """The bytes of a database, its kind, and what is found in it."""
    kind, parameters, losses = GUARDS[name]
    is_search = kind is DeclaredSearch
    with kind.open(PATH, M, durability="process", **parameters) as guard:
        if len(losses) and is_search:
            guard.query_many(losses, keys=[{"a": 1, "b": b} for b in range(len(losses))])
        elif len(losses):
            guard.query_many(losses, **({"guesses": GUESSES} if kind.needs == "guess" else {}))
    with open(PATH, "rb") as file:
        content = file.read()
    found = found_by(kind)
    os.unlink(PATH)
    return content, kind, found


def found_by(kind):
    """What the database at PATH holds, all of it."""
    with kind.open(PATH, durability="process") as guard:
        if kind is DeclaredSearch:
            answers = guard.answers
            return repr(guard.parameters), repr(answers.keys), answers.highs.tolist()
        return repr(guard._parameters()), guard._shared.progress().tolist()


def fuzz_one(data):
    draw = Draw(data)
    ours, other = (on_disk(draw.choice(list(GUARDS))) for _ in range(2))
    whole, kind, expected = ours
    content = damaged(draw, whole, [whole, other[0]])
    with open(PATH, "wb") as file:
        file.write(content)
    try:
        found = found_by(kind)
    except (ValueError, OSError) as error:
        message = str(error)
        assert content != whole, "a good file was refused"
        assert os.path.basename(PATH) in message and "\n" not in message, message
        assert len(message) < 1500, message
        with open(PATH, "rb") as file:
            assert file.read() == content, "what was refused has changed"
    else:
        # a splice at the start is the other database, which may be of the same kind
        assert found in [expected, other[2]], "damage went unseen"
    finally:
        os.unlink(PATH)
    assert not os.listdir(FOLDER.name), "files are left beside it"
