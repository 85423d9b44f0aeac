"""Target: `load` and `open`, on guards on disk that were damaged, or forged with a right checksum.

Damage is a ValueError or an OSError that names the file; a forger gets one too, or a guard that
works; what is refused stays as it was.
"""

import atexit
import functools
import os
import re
import tempfile

import forge
from damage import damaged
from draw import Draw

FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
PATH = os.path.join(FOLDER.name, "guard")


@functools.cache
def on_disk(way, name):
    """The bytes of a guard, and what it is when it is read."""
    kind, description, progress = forge.contents(name)
    text = forge.as_json(forge.description_for(way, description))
    forge.write(way, PATH, text, progress.tobytes())
    with open(PATH, "rb") as file:
        content = file.read()
    os.unlink(PATH)
    return content, kind, description["parameters"], progress.tolist()


def asks_for_much(text):
    """Whether loading would take long or much memory, as a forger may have it; or for a
    parameter that is nearly 0, which some bounds cannot be evaluated at.
    """
    return re.search(rb'"n_(samples|vectors)": *[0-9.eE+-]{5,}|[eE]-[0-9]{3}', text) is not None


def fuzz_one(data):
    draw = Draw(data)
    way, name = draw.choice(forge.WAYS), draw.choice(list(forge.GUARDS))
    if draw.one_in(2):
        a_forger_wrote_it(draw, way, name)
    else:
        it_was_damaged(draw, way, name)


def it_was_damaged(draw, way, name):
    ours, other = on_disk(way, name), on_disk(way, draw.choice(list(forge.GUARDS)))
    whole, kind, *_ = ours
    content = damaged(draw, whole, [whole, other[0]])
    with open(PATH, "wb") as file:
        file.write(content)
    try:
        if forge.refused(kind, way, PATH):
            assert content != whole, "a good file was refused"
        elif content != other[0]:  # if nothing uses what was damaged, it is the one or the other
            with open(PATH, "wb") as file:
                file.write(content)
            guard = kind.load(PATH) if way == "file" else kind.open(PATH)
            found = guard._parameters(), guard._shared._progress().tolist()
            assert found in [each[2:] for each in (ours, other)], "damage went unseen"
            assert way == "database" or content == whole, "damage went unseen"
            if way == "database":
                guard.close()
            del guard
    finally:
        os.unlink(PATH)


def a_forger_wrote_it(draw, way, name):
    kind, description, progress = forge.contents(name)
    other = forge.contents(draw.choice(list(forge.GUARDS)))
    text = forge.as_json(forge.description_for(way, description)).encode()
    numbers = progress.tobytes()
    if draw.one_in(2):
        text = damaged(draw, text, [forge.as_json(other[1]).encode()])
    if draw.one_in(2):
        numbers = damaged(draw, numbers, [other[2].tobytes()])
    if asks_for_much(text):
        return
    forge.write(way, PATH, text.decode("latin-1"), numbers)
    try:
        forge.refused(kind, way, PATH)
    finally:
        os.unlink(PATH)
