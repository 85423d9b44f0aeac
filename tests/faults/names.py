"""One file under two names, each with a log of its own beside it: nobody answers under either."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, alive, fork, guess_for, in_child, together, wait_until

from radabound_fast import GuessAndCheck, Ladder, RadaBound

N_SAMPLES, N_ASKED = 300, 40
LOSSES = np.arange(N_SAMPLES) % 3 == 0
KINDS: list[tuple[type, dict[str, Any]]] = [
    (RadaBound, {"epsilon": 0.9, "delta": 0.1}),
    (GuessAndCheck, {"epsilon": 0.9, "delta": 0.1}),
    (Ladder, {"step": 0.01, "delta": 0.1}),
]
GOES_ON = "is one of 2 names"  # what is said while there are two


# ---- hard links ------------------------------------------------------------------------------


def ask_for_a_while(kind: type, path: Path) -> int:
    """How many answers are released, while somebody gives the file other names."""
    guard: Any = None
    n_answers = 0
    for _ in range(N_ASKED):
        try:
            guard = guard or kind.open(path, durability="process")
            guard.query(LOSSES, **guess_for(guard, LOSSES.mean()))
            n_answers += 1
        except RuntimeError as error:
            if GOES_ON not in str(error):
                raise
        time.sleep(random.uniform(0, 0.002))
    return n_answers


def link_for_a_while(kind: type, path: Path) -> int:
    """How often the second name was refused, which it always must be."""
    link, n_refused = path.with_name("link"), 0
    for _ in range(N_ASKED // 4):
        os.link(path, link)
        try:
            kind.open(link)
        except RuntimeError:
            n_refused += 1
        time.sleep(random.uniform(0, 0.004))
        link.unlink()
        time.sleep(random.uniform(0, 0.004))
    return n_refused


def second_names(count: Count, folder: Path, times: int) -> None:
    path, n_answers, n_refused = folder / "guard.db", 0, 0
    while count.times < times:
        kind, parameters = random.choice(KINDS)
        in_child(lambda k=kind, p=parameters: k.open(path, N_SAMPLES, **p).close())
        askers = [lambda k=kind: ask_for_a_while(k, path)] * 3
        *answers, refused = together([*askers, lambda k=kind: link_for_a_while(k, path)])
        errors = [outcome for outcome in (*answers, refused) if isinstance(outcome, Exception)]
        if errors:
            count.lost.append(f"{kind.__name__}: {errors}")
            return
        count.check(refused == N_ASKED // 4, "a second name was opened")
        found = in_child(lambda k=kind: k.open(path).n_answered)
        count.check(found == sum(answers), f"{sum(answers)} answers, {found} counted")
        n_answers, n_refused = n_answers + sum(answers), n_refused + refused
        path.unlink()
        count.times += 1
    count.note = f"{n_answers:,} answers released, a second name refused {n_refused:,} times"


# ---- mounts ----------------------------------------------------------------------------------


def mounts(count: Count, folder: Path, times: int) -> None:
    """In a process of its own, whose mounts nobody else sees."""
    unshare = ["unshare", "--map-root-user", "--mount"]
    inner = [sys.executable, __file__, str(folder), str(times)]
    bind_itself = ["mount", "--bind", str(folder), str(folder)]
    if not shutil.which("unshare") or subprocess.run([*unshare, *bind_itself]).returncode:
        count.times, count.note = times, "NOT TRIED: nothing can be mounted here"
        return
    done = subprocess.run([*unshare, *inner], capture_output=True, text=True)
    if done.returncode:
        count.lost.append(done.stderr)
        return
    found = json.loads(done.stdout)
    count.times, count.lost, count.note = found["times"], found["lost"], found["note"]


def try_mounts(count: Count, folder: Path, times: int) -> None:
    inside, other, alone = (folder / name for name in ("in", "the same", "alone"))
    for each in (inside, other, alone):
        each.mkdir()
    bind(inside, other)
    while count.times < times:
        kind, parameters = random.choice(KINDS)
        path = inside / f"guard {count.times}.db"  # a space is written otherwise in mountinfo
        in_child(lambda k=kind, p=path, g=parameters: k.open(p, N_SAMPLES, **g).close())
        (alone / path.name).touch()
        bind(path, alone / path.name)
        with alive(lambda k=kind, p=path: asked(k.open(p))):
            count.refused(
                lambda k=kind, n=path.name: in_child(lambda: k.open(alone / n)),
                RuntimeError,
                saying="mount the folder",
                what=path.name,
            )
            # by its folder it is the same database, whatever that is called
            found = in_child(lambda k=kind, p=path: asked(k.open(other / p.name)).n_answered)
            count.check(found == 2, f"{found} by the folder's other name, not 2")
        found = in_child(lambda k=kind, p=path: k.open(p).n_answered)
        count.check(found == 2, f"{found} counted, of 2")
        count.times += 1
    count.note = "in a mount namespace"


def bind(source: Path, target: Path) -> None:
    subprocess.run(["mount", "--bind", source, target], check=True)


def asked(guard: Any) -> Any:
    guard.query(LOSSES, **guess_for(guard, 0.3))
    return guard


# ---- moved -----------------------------------------------------------------------------------


def moved(count: Count, folder: Path, times: int) -> None:
    """Another process has it open, is asked, and closes it, while it is moved and opened there."""
    path, there = folder / "guard.db", folder / "there.db"
    while count.times < times:
        kind, parameters = random.choice(KINDS)
        in_child(lambda k=kind, p=parameters: k.open(path, N_SAMPLES, **p).close())
        told, tell = os.pipe()
        owner = fork(lambda k=kind, t=tell: own_until_it_is_gone(k, path, t))
        os.close(tell)
        os.read(told, 1)  # it has it open
        time.sleep(random.uniform(0, 0.01))
        path.rename(there)
        found: Any = None
        wait_until(lambda k=kind: is_open(k, there))
        n_answers = int(os.read(told, 20))
        os.close(told)
        os.waitpid(owner, 0)
        found = in_child(lambda k=kind: k.open(there).n_answered)
        count.check(found == n_answers, f"{kind.__name__}: {n_answers} answers, {found} counted")
        for left in folder.iterdir():
            left.unlink()
        count.times += 1


def own_until_it_is_gone(kind: type, path: Path, tell: int) -> None:
    guard: Any = kind.open(path, durability="process")
    os.write(tell, b"x")
    n_answers = 0
    with contextlib.suppress(RuntimeError):
        while True:
            guard.query(LOSSES, **guess_for(guard, 0.3))
            n_answers += 1
    time.sleep(random.uniform(0, 0.02))
    guard.close()
    os.write(tell, str(n_answers).encode())


def is_open(kind: type, path: Path) -> bool:
    try:
        in_child(lambda: kind.open(path).close())
    except RuntimeError:
        return False
    return True


FAULTS = [
    Fault(
        "a database given a second name (a hard link) while three processes ask",
        "RuntimeError under either name while there are two; every answer is counted",
        second_names,
        60,
        3,
    ),
    Fault(
        "a database mounted without its folder, and with it",
        "without: RuntimeError, mount the folder; with it: one guard, one count",
        mounts,
        60,
        3,
    ),
    Fault(
        "a database moved while another process has it open and is asked",
        "nobody opens it there before it is closed, which puts every answer into it",
        moved,
        60,
        4,
    ),
]

if __name__ == "__main__":
    inner_count = Count()
    try_mounts(inner_count, Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(asdict(inner_count)))
