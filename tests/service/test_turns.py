"""Turns are fair: whatever the others ask for, a team waits for its part of the work."""

import asyncio
import threading
import time

import pytest

from radabound_fast.service import turns
from radabound_fast.service.turns import SERVICE, Job, Lane, Turns


def order_of(jobs, n):
    """The teams of the next n jobs, each of which takes the seconds that it is."""
    taken = []
    for _ in range(n):
        job = jobs.next()
        jobs.take(job)
        jobs.charge(job.team, job.work)
        taken.append(job.team)
    return taken


def test_time_is_shared_alike_whoever_has_more_or_longer_jobs():
    jobs = Turns()
    for team, n, seconds in (("many", 1000, 1.0), ("long", 100, 10.0), ("few", 50, 2.0)):
        for _ in range(n):
            jobs.add(Job(team, seconds, 1.0, None))
    taken = order_of(jobs, 160)  # while all three wait
    spent = {"many": taken.count("many"), "long": 10 * taken.count("long"),
             "few": 2 * taken.count("few")}  # fmt: skip
    assert max(spent.values()) - min(spent.values()) <= 10  # one job of the longest


def test_who_comes_late_is_next_and_has_saved_nothing_up():
    jobs = Turns()
    for _ in range(100):
        jobs.add(Job("early", 1.0, 1.0, None))
    assert order_of(jobs, 50) == ["early"] * 50
    for _ in range(20):
        jobs.add(Job("late", 1.0, 1.0, None))
    taken = order_of(jobs, 20)
    assert "late" in taken[:2] and taken.count("early") == taken.count("late") == 10
    assert len(jobs) == 50


def test_what_the_service_itself_asks_for_is_next():
    jobs = Turns()
    for n in range(50):
        jobs.add(Job(f"team {n}", 1.0, 1.0, None))
    order_of(jobs, 10)
    jobs.add(Job(SERVICE, 5.0, 0.0, None))
    jobs.add(Job("late", 1.0, 1.0, None))
    assert order_of(jobs, 41)[0] == SERVICE


def test_who_left_and_comes_again_does_not_escape_what_it_used():
    jobs = Turns()
    for team in "ab":
        jobs.add(Job(team, 1.0, 1.0, None))
    order_of(jobs, 2)
    jobs.charge("a", 100.0)  # it took longer than was known
    for team in "ab" * 5:
        jobs.add(Job(team, 1.0, 1.0, None))
    assert order_of(jobs, 5) == ["b"] * 5


class Steps:
    """What a lane does together, and in which threads."""

    def __init__(self, seconds=0.0):
        self.steps, self.threads, self.seconds = [], [], seconds

    def __call__(self, works):
        self.steps.append(works)
        self.threads.append(threading.current_thread() is threading.main_thread())
        time.sleep(self.seconds)


def test_short_work_stays_in_the_loop_and_long_work_leaves_it(monkeypatch):
    monkeypatch.setattr(turns, "SHORT_SECONDS", 0.05)

    async def main():
        lane = Lane(steps)
        for n in range(4):
            await lane.do("a", n, 1.0)
        steps.seconds = 0.06
        for n in range(4, 8):
            await lane.do("a", n, 1.0)
        await lane.end()

    steps = Steps()
    asyncio.run(main())
    # the first is not known, and the fifth was not expected
    assert steps.threads == [False, True, True, True, True, False, False, False]
    assert steps.steps == [[n] for n in range(8)]


def test_the_loop_goes_on_while_work_is_done_and_others_come_next():
    async def main():
        lane = Lane()
        long = asyncio.create_task(lane.do("long", lambda: time.sleep(0.1)))
        await asyncio.sleep(0.02)
        assert 0 < lane.busy_seconds < 5
        more = [asyncio.create_task(lane.do("long", lambda: time.sleep(0.02))) for _ in range(5)]
        await asyncio.sleep(0)
        short = asyncio.create_task(lane.do("short", lambda: "done"))
        done = []
        for name, task in (("short", short), ("long", more[-1])):
            task.add_done_callback(lambda _, name=name: done.append(name))
        assert await short == "done"
        await asyncio.gather(long, *more)
        assert done == ["short", "long"] and lane.busy_seconds == 0
        await lane.end()

    asyncio.run(main())


def test_calls_that_wait_are_one_step_up_to_so_many(monkeypatch):
    monkeypatch.setattr(turns, "_STEP_SECONDS", 10.0)

    async def main():
        lane = Lane(steps)
        await lane.do("a", "first", 1.0)
        many = [lane.do("ab"[n % 2], n, 1.0) for n in range(turns.TOGETHER + 10)]
        alone = lane.do("c", lambda: 7)
        *_, seven = await asyncio.gather(*many, alone)
        assert seven == 7

    steps = Steps()
    asyncio.run(main())
    assert [len(step) for step in steps.steps[:1]] == [1]
    assert sum(map(len, steps.steps)) == turns.TOGETHER + 11
    assert max(map(len, steps.steps)) <= turns.TOGETHER and len(steps.steps) <= 5


def test_an_error_is_that_of_its_own_work_and_who_went_away_is_left_out():
    async def main():
        lane = Lane()
        slow = asyncio.create_task(lane.do("a", lambda: time.sleep(0.1)))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(lane.do("a", lambda: done.append("gone")))
        fails = asyncio.create_task(lane.do("a", lambda: {}[0]))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(KeyError):
            await fails
        await slow
        assert await lane.do("a", lambda: "goes on") == "goes on"
        await lane.end()

    done = []
    asyncio.run(main())
    assert done == []
