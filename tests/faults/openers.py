"""Several who open one database: at once, with other parameters, after it is closed or gone."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, alive, contents, guess_for, guesses_for, in_child, together

from radabound_fast import GuessAndCheck, Ladder, RadaBound, pack_losses
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.store import opening, place

N_SAMPLES, N_OPENERS = 300, 6
PARAMETERS = {"epsilon": 0.9, "delta": 0.1}
LOSSES = np.arange(N_SAMPLES) % 3 == 0
LABELS = np.arange(N_SAMPLES) % 2


def ask(guard: Any) -> int:
    """The number of one more answer."""
    number: int = guard.query(LOSSES, **guess_for(guard, LOSSES.mean())).number
    return number


# ---- made by several at once -----------------------------------------------------------------


def open_and_ask(path: Path, guard: type, parameters: dict[str, Any]) -> tuple[bool, Any, int]:
    """(whether this process made it, the parameters found, the number of one answer)."""
    made = []

    def create(*arguments: Any) -> None:
        whole(*arguments)
        made.append(True)

    whole, opening._make_ledger = opening._make_ledger, create
    with guard.open(path, N_SAMPLES, **parameters) as opened:
        return bool(made), opened._parameters(), ask(opened)


def tidy(count: Count, path: Path) -> None:
    """Delete the database, beside which nothing may stand once somebody closes it alone."""
    in_child(lambda: open_again(path))
    left = os.listdir(path.parent)
    count.check(left == [path.name], f"left behind: {left}")
    path.unlink()


def open_again(path: Path) -> None:
    """Two who close it at the same instant each leave the log to the other."""
    for guard in (RadaBound, GuessAndCheck):
        with contextlib.suppress(ValueError):  # it is the other kind
            guard.open(path).close()


def same_at_once(count: Count, folder: Path, times: int) -> None:
    path = folder / "guard.db"
    while count.times < times:
        works = [lambda: open_and_ask(path, RadaBound, PARAMETERS)] * N_OPENERS
        found = together(works)
        errors = [outcome for outcome in found if isinstance(outcome, Exception)]
        if errors:
            count.lost.append(f"not opened: {errors}")
            break
        made, parameters, numbers = zip(*found, strict=True)
        count.check(sum(made) == 1, f"made by {sum(made)}")
        count.check(all(each == parameters[0] for each in parameters), "several seeds")
        count.check(sorted(numbers) == list(range(1, N_OPENERS + 1)), f"numbers {sorted(numbers)}")
        total = in_child(lambda: RadaBound.open(path).n_answered)
        count.check(total == N_OPENERS, f"{N_OPENERS} answers, {total} counted")
        tidy(count, path)
        count.times += 1


def others_at_once(count: Count, folder: Path, times: int) -> None:
    path = folder / "guard.db"
    kinds: list[tuple[type, dict[str, Any]]] = [
        (RadaBound, PARAMETERS),
        (RadaBound, PARAMETERS | {"epsilon": 0.8}),
        (GuessAndCheck, PARAMETERS),
    ]
    for guard, parameters in kinds:
        guard(N_SAMPLES, **parameters)  # which imports what it needs, once for all children
    while count.times < times:
        chosen = [kinds[opener % len(kinds)] for opener in range(N_OPENERS)]
        found = together([lambda kind=kind: open_and_ask(path, *kind) for kind in chosen])
        winners = {
            opener % len(kinds)
            for opener, outcome in enumerate(found)
            if not isinstance(outcome, Exception)
        }
        refused = [outcome for outcome in found if isinstance(outcome, Exception)]
        count.check(len(winners) == 1, f"{len(winners)} kinds opened it")
        count.check(len(refused) == N_OPENERS - N_OPENERS // len(kinds), f"refused: {refused}")
        count.check(all(isinstance(error, ValueError) for error in refused), f"refused: {refused}")
        tidy(count, path)
        count.times += 1


# ---- opened as what it is not ----------------------------------------------------------------


def strangers(path: Path, labelled: Path) -> dict[str, Callable[[], Any]]:
    """Ways to open the wrong guard; `labelled` was made for labels."""
    right = PARAMETERS | {"seed": 5, "holdout_id": "a"}

    def with_other(**parameters: Any) -> Callable[[], Any]:
        wanted = {"judged": N_SAMPLES} | right | parameters
        return lambda: RadaBound.open(path, **wanted)

    return {
        "n_samples": with_other(judged=N_SAMPLES + 1),
        "epsilon": with_other(epsilon=0.91),
        "delta": with_other(delta=0.2),
        "n_vectors": with_other(n_vectors=33),
        "bound": with_other(bound="mclt"),
        "estimator": with_other(estimator="half-range"),
        "two_sided": with_other(two_sided=True),
        "seed": with_other(seed=6),
        "holdout_id": with_other(holdout_id="b"),
        "another kind": lambda: GuessAndCheck.open(path, N_SAMPLES, **PARAMETERS),
        "another kind, parameters of the file": lambda: Ladder.open(path),
        "labels where there were none": lambda: RadaBound.open(path, LABELS),
        "one label flipped": lambda: RadaBound.open(labelled, np.r_[1 - LABELS[0], LABELS[1:]]),
        "other labels": lambda: RadaBound.open(labelled, 1 - LABELS),
        "fewer labels": lambda: RadaBound.open(labelled, LABELS[1:]),
        "another holdout_id than a hash": lambda: RadaBound.open(labelled, holdout_id="a"),
    }


def refused_openers(count: Count, folder: Path, times: int) -> None:
    path, labelled = folder / "guard.db", folder / "labelled.db"

    def owners() -> list[Any]:
        return [
            RadaBound.open(path, N_SAMPLES, seed=5, holdout_id="a", **PARAMETERS),
            RadaBound.open(labelled, LABELS, **PARAMETERS),
        ]

    def ask_and_close() -> None:
        guard, of_labels = owners()
        ask(guard)
        of_labels.query(LABELS)
        guard.close()
        of_labels.close()

    def files() -> dict[str, str]:  # without the index of the log, which shows who reads
        return {name: what for name, what in contents(folder).items() if "-shm" not in name}

    def try_all(when: str) -> None:
        before = files()
        for what, stranger in strangers(path, labelled).items():
            count.refused(stranger, ValueError, what=f"{what}, {when}")
            count.times += 1
        count.check(files() == before, f"{when}: the files have changed")

    while count.times < times:
        in_child(ask_and_close)
        try_all("while nobody has it open")
        with alive(owners):
            try_all("while its owner lives")


# ---- closed, dropped, left ------------------------------------------------------------------


def guards_at(folder: Path) -> dict[str, Callable[[], Any]]:
    """Each kind of guard, by the name of its file."""
    noisy = {"threshold": 0.5, "noise": 0.001, "budget": 10}
    return {
        "a": lambda: RadaBound.open(folder / "a", N_SAMPLES, **PARAMETERS),
        "b": lambda: RadaBound.open(folder / "b", N_SAMPLES, durability="process", **PARAMETERS),
        "c": lambda: GuessAndCheck.open(folder / "c", N_SAMPLES, **PARAMETERS),
        "d": lambda: Ladder.open(folder / "d", N_SAMPLES, step=0.1, delta=0.1),
        "e": lambda: Thresholdout.open(folder / "e", N_SAMPLES, **noisy),
    }


def close_twice(guard: Any) -> Any:
    guard.close()
    guard.close()
    return guard


def leave_with(guard: Any) -> Any:
    try:
        with guard:
            raise KeyError
    except KeyError:
        return guard


def drop(guard: Any) -> None:
    del guard


def drop_in_a_cycle(guard: Any) -> None:
    cycle = [guard]
    cycle.append(cycle)
    del guard, cycle
    gc.collect()


def closed_in_every_way(count: Count, folder: Path, times: int) -> None:
    asked = dict.fromkeys(guards_at(folder), 0)
    while count.times < times:
        for name, open_guard in guards_at(folder).items():
            for end in (close_twice, leave_with, drop, drop_in_a_cycle):
                what = f"{name}, {end.__name__}"
                asked[name] += 1
                count.check(ask_once(count, open_guard, end) == asked[name], f"{what}: lost count")
                left = sorted(os.listdir(folder))
                count.check(all("-" not in file for file in left), f"{what}: left behind {left}")
                count.times += 1
            if asked[name] >= 8:
                (folder / name).unlink()
                asked[name] = 0


def ask_once(count: Count, open_guard: Callable[[], Any], end: Callable[[Any], Any]) -> int:
    """The number of an answer to a guard that is then ended, and tried again."""
    guard = open_guard()
    number = ask(guard)
    holds = [guard]
    del guard
    ended = end(holds.pop())
    if ended is not None:
        calls = {
            "query": lambda: ask(ended),
            "query, packed": lambda: ended.query(pack_losses(LOSSES), **guess_for(ended, 0.5)),
            "query_many": lambda: ended.query_many(LOSSES[np.newaxis], **guesses_for(ended, [0.5])),
        }
        for what, call in calls.items():
            count.refused(call, RuntimeError, saying="closed", what=what)
    return number


# ---- deleted or replaced --------------------------------------------------------------------


def replace_by_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


HARM: dict[str, Callable[[Path], Any]] = {
    "deleted": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(path.with_name("elsewhere")),
    "replaced by a copy": replace_by_copy,
    "replaced by another guard": lambda path: os.replace(path.with_name("other"), path),
    "replaced by an empty file": lambda path: (path.unlink(), path.touch()),
    "its folder renamed": lambda path: path.parent.rename(path.parent.with_name("moved")),
    "its log deleted": lambda path: path.with_name(path.name + "-wal").unlink(),
    "its log replaced": lambda path: replace_by_copy(path.with_name(path.name + "-wal")),
    "the log's index deleted": lambda path: path.with_name(path.name + "-shm").unlink(),
}


# what happens to the files beside the database, which is where it was
BESIDE = [harm for what, harm in HARM.items() if "log" in what]
REPLACED = [harm for what, harm in HARM.items() if "replaced" in what]


def gone(count: Count, folder: Path, times: int) -> None:
    while count.times < times:
        for name in guards_at(folder):
            for what, harm in HARM.items():
                inside = folder / "in"
                inside.mkdir()
                found = in_child(lambda n=name, h=harm, i=inside: asked_after(n, h, i))
                count.lost += [f"{what}, {name}: {line}" for line in found]
                for left in folder.iterdir():
                    shutil.rmtree(left)
                count.times += 1


def asked_after(name: str, harm: Callable[[Path], Any], folder: Path) -> list[str]:
    """What was answered after the file came to harm, by a guard that had it open."""
    count = Count()
    with RadaBound.open(folder / "other", N_SAMPLES, **PARAMETERS) as other:
        ask(other)
    path, open_guard, begun = folder / name, guards_at(folder)[name], time.monotonic()
    guard = open_guard()
    ask(guard)
    place.CLOSING_SECONDS = 0.05  # that somebody may take to close it
    in_child(lambda: harm(path))  # to open it in this process would drop its locks
    blocks = np.stack([LOSSES, LOSSES])
    calls = {
        "query": lambda: ask(guard),
        "query_many": lambda: guard.query_many(blocks, **guesses_for(guard, [0.5, 0.5])),
        "n_answered": lambda: guard.n_answered,
    }
    if harm in BESIDE:
        calls["opening it again"] = open_guard
        if harm not in REPLACED:
            calls["opening it elsewhere"] = lambda: in_child(open_guard)
    for what, call in calls.items():
        count.refused(call, RuntimeError, saying=str(folder), what=what)
    if harm in BESIDE and harm not in REPLACED:
        guard.close()
        count.check(open_guard().n_answered == 1, "not all is there after it was closed")
    count.check(time.monotonic() - begun < 10, "it took too long")
    return count.lost


# ---- a log without its database --------------------------------------------------------------


def orphaned_log(count: Count, folder: Path, times: int) -> None:
    path, log = folder / "guard.db", folder / "guard.db-wal"
    again: dict[str, Callable[[], Any]] = {
        "the same": lambda: RadaBound.open(path, N_SAMPLES, **PARAMETERS),
        "another": lambda: GuessAndCheck.open(path, N_SAMPLES, **PARAMETERS),
    }
    while count.times < times:
        kept: list[Any] = []
        in_child(lambda k=kept: ask_and_keep(path, k), crash=True)
        path.unlink()
        before = contents(folder)
        for what, make in again.items():
            count.refused(make, ValueError, saying="guard.db-wal", what=what)
            count.check(contents(folder) == before, f"{what}: files have changed")
            count.times += 1
        log.unlink()
        in_child(lambda: RadaBound.open(path, N_SAMPLES, **PARAMETERS).close())
        path.unlink()


def ask_and_keep(path: Path, kept: list[Any]) -> None:
    """Have the database open for ever, so that the process ends without closing it."""
    kept.append(RadaBound.open(path, N_SAMPLES, **PARAMETERS))
    ask(kept[0])


FAULTS = [
    Fault(
        "a database made by six processes at once",
        "one makes it, all share one guard and one count",
        same_at_once,
        100,
        6,
    ),
    Fault(
        "the same, with three kinds of parameters",
        "one kind is made, the others get ValueError",
        others_at_once,
        100,
        6,
    ),
    Fault(
        "a database opened with another parameter, seed, holdout or kind, closed or in use",
        "ValueError, and every byte stays",
        refused_openers,
        320,
        32,
    ),
    Fault(
        "a guard closed, left by `with`, dropped, or dropped in a cycle",
        "RuntimeError from then on, no file stays beside, the count goes on when it is opened",
        closed_in_every_way,
        400,
        20,
    ),
    Fault(
        "a database, its log or the log's index deleted or replaced while a guard is open",
        "RuntimeError that names a file, for every call and, where only the log or its index was "
        "deleted, for who opens it again here or in another process; then to close it and open it "
        "again finds every answer",
        gone,
        90,
        45,
    ),
    Fault(
        "a database made where another one's log was left",
        "ValueError that names the log, and every byte stays",
        orphaned_log,
        100,
        6,
    ),
]
