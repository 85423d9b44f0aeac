"""The gate in stages: whichever way rows come, each is judged by the gate of its own number.

A gate holds up to a total and up to a number of answers.  A slow replay asks for it anew before
every row; the scanner has chunks, blocks, segments and short cuts, and must agree.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import NEVER, running

from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import LabelRow, SignStore
from radabound_fast.rows import reference

M, L, SEED = 130, 17, 3
N_ROWS = 2700  # more than four blocks on the widest instruction set, and a tail

# nothing and one row; inside the first chunk, at its end and past it; around the first block of
# the widest instruction set, inside it, at its end; inside the tail; the last row, none at all
ENDS = [0, 1, 2, 300, 511, 512, 513, 700, 1023, 1024, 1025, 2650, N_ROWS - 1, N_ROWS]

# in the second stage a total of 55 passes as a real row but not as a declared one; 65 never does
DECLARED, REAL = (50, 120), (58, 118)
USUAL, BETWEEN, NEITHER = 30, 55, 65


def rows_of(between=(), neither=(), seed=0):
    """0-1 losses of 30 errors each, but for some rows of 55 and of 65."""
    rng = np.random.default_rng(seed)
    totals = np.full(N_ROWS, USUAL)
    totals[list(between)], totals[list(neither)] = BETWEEN, NEITHER
    order = rng.random((N_ROWS, M)).argsort(axis=1)
    # thirty rows over and over, and two that are alike: after the first times none moves an extreme
    order = order[np.where(totals == USUAL, np.arange(N_ROWS) % 30, totals)]
    return order < totals[:, None]


def priced_in(stages, slack=20):
    """Gates by stages (end, budget, declared, real), each for totals up to `slack` more."""

    def price(largest, unit_shift, n_rows):
        end, budget, *ranges = next(stage for stage in stages if n_rows < stage[0])
        one = 1 << unit_shift
        scaled = [-1 if low < 0 else low * one for low, _ in ranges]
        highs = [high if high == NEVER else high * one for _, high in ranges]
        return (
            budget if budget in (-1, NEVER) else budget * one,
            min(largest + slack * one, M * one),
            end,
            scaled[0],
            highs[0],
            scaled[1],
            highs[1],
        )

    return price


NOTHING, ALL = (-1, NEVER), (0, 0)
ALL_PASS = priced_in([(NEVER, NEVER, NOTHING, NOTHING)], slack=NEVER >> 30)


def gates(end):
    """A first stage that ends there, in which everything passes, for either reason; then ranges.

    Of "priced" nothing but the largest total matters: 55 may pass, 65 not.
    """
    then, swapped = (NEVER, -1, DECLARED, REAL), (NEVER, -1, REAL, DECLARED)
    return {
        "free": priced_in([(end, -1, ALL, ALL), then]),
        "within budget": priced_in([(end, NEVER, NOTHING, NOTHING), then]),
        "swapped": priced_in([(end, -1, ALL, ALL), swapped]),
        "priced": lambda largest, unit_shift, n_rows: (
            NEVER if largest <= 60 << unit_shift else -1,
            largest,
            NEVER if n_rows >= end else end,
            *NOTHING,
            *NOTHING,
        ),
        "three": priced_in(
            [(end, NEVER, NOTHING, NOTHING), (end + 200, -1, ALL, ALL), then], slack=NEVER >> 30
        ),
    }


def replay(losses, price, *, is_real, half_range=False):
    """Row by row, with a gate asked for before each: how many pass, complexities."""
    cells = (2 if half_range else 1) * (L * M << 24)
    signs = reference.signs(SEED, L, M)
    units = np.rint(losses * 2.0**24).astype(np.int64)
    is_mixed = ((losses > 0) & (losses < 1)).any(axis=1)
    sums = reference.signed_sums(signs, units)
    grown, *_ = running(sums, half_range)
    shift, largest = 0, 0
    for n_rows, row in enumerate(units):
        if is_mixed[n_rows]:
            shift, largest = 24, largest << (24 - shift)
        total, complexity = (int(x) >> (24 - shift) for x in (row.sum(), grown[n_rows]))
        gate = price(largest, shift, n_rows)
        if total > gate[1]:
            gate = price(total, shift, n_rows)
        largest = gate[1]
        low, high = gate[5:] if is_real else gate[3:5]
        if not (complexity <= gate[0] or total <= low or total >= high):
            return n_rows, grown[: n_rows + 1] / cells
    return len(losses), grown / cells


def at_an_odd_address(words):
    memory = np.zeros(words.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(words.tobytes(), np.uint8)
    return memory[1:].view(np.uint64).reshape(words.shape)


def ways(losses, pack):
    """The forms that rows come in: name, whether to the gate they are real, rows, labels.

    Labels of None: the rows are packed.
    """
    labels = np.random.default_rng(1).integers(0, 2, M)
    rule = LabelRow(np.dtype(np.int8), 0, 1, M, bits=pack(labels))
    if ((losses == 0) | (losses == 1)).all():
        words = pack(losses)
        yield "words", False, words, None
        yield "words anywhere", False, at_an_odd_address(words), None
        yield "integers", False, losses.astype(np.int32), ()
        yield "predictions", False, (losses != labels).astype(np.int8), (rule,)
    yield "float16", True, losses.astype(np.float16), ()
    yield "float32", True, losses.astype(np.float32), ()


def core_of(price, half_range=False):
    return GuardCore(SignStore(SEED, M, L), half_range=half_range, price=price)


def ask_many(core, rows, labels, **options):
    if labels is None:
        return core.query_many(rows, packed=True, **options)
    return core.query_many(rows, *labels, **options)


def ask_one(core, row, labels):
    return core.query(row, packed=True) if labels is None else core.query(row, *labels)


@pytest.mark.thorough
@pytest.mark.parametrize("end", ENDS)
def test_each_row_is_judged_by_the_gate_of_its_number(kernel, end, pack):
    """In blocks, in threads, and one by one, for every form that rows have."""
    # one of either before the end, where both pass; then far enough for whole blocks between
    after = [row for row in (end + 90, end + 1300) if row < N_ROWS]
    usual = rows_of([*{0, end // 2, *after[:1]}], [*{end // 3, *after[1:]}]).astype(float)
    # what no signs are needed for halts at once if it is priced; there 65 comes late, and alone
    late = rows_of([*{0, end // 2, *after[:1]}], after[1:]).astype(float)
    for name, price in gates(end).items():
        losses = late if name == "priced" else usual
        for form, is_real, rows, labels in ways(losses, pack):
            half_range = form in ("words anywhere", "float32")
            n_answered, grown = replay(losses, price, is_real=is_real, half_range=half_range)
            means = losses[:n_answered].mean(axis=1)
            # in one call there are blocks; in short ones rows that move nothing go by themselves
            for step, n_threads in [(N_ROWS, 1), (N_ROWS, 2), (700, 1)]:
                core, values, trace = core_of(price, half_range), [], []
                for start in range(0, N_ROWS, step):
                    if core.halted:
                        break
                    part = rows[start : start + step]
                    found = ask_many(core, part, labels, trace=True, n_threads=n_threads)
                    values.append(found[0])
                    trace.append(found[1])
                halted = n_answered < N_ROWS
                assert (core.n_rows, core.halted) == (n_answered, halted), (name, form)
                assert_array_equal(np.concatenate(values), means)
                assert_array_equal(np.concatenate(trace), grown[:n_answered])
                assert core.complexity == grown[min(n_answered, N_ROWS - 1)]


@pytest.mark.parametrize("end", [0, 1, 300, 512, 513])
def test_one_row_at_a_time_is_judged_so_too(kernel, end, pack):
    losses = rows_of([end // 2, end + 90], [end // 3, end + 400])[: end + 600].astype(float)
    for name, price in gates(end).items():
        for form, is_real, rows, labels in ways(losses, pack):
            n_answered, grown = replay(losses, price, is_real=is_real)
            core = core_of(price)
            answers = [ask_one(core, row, labels) for row in rows]
            assert [answer is not None for answer in answers] == [
                n < n_answered for n in range(len(rows))
            ], (name, form)
            for n, answer in enumerate(answers[:n_answered]):
                assert answer.value == losses[n].mean() and answer.number == n + 1
                assert answer.complexity == grown[n]


@pytest.mark.parametrize("first_half", [0, 1, 299, 300, 301, 1100])
def test_stages_go_on_in_units_of_real_valued_rows(kernel, first_half, pack):
    losses = rows_of([20, 420], [10, 900])[:1300].astype(float)
    losses[first_half, :4] = 0.5
    for price in gates(300).values():
        for _, is_real, rows, labels in ways(losses, pack):
            n_answered, _ = replay(losses, price, is_real=is_real)
            core, one = core_of(price), core_of(price)
            values, *_ = ask_many(core, rows, labels)
            assert_array_equal(values, rows[:n_answered].mean(axis=1, dtype=float))
            for row in rows[: n_answered + 1]:
                ask_one(one, row, labels)
            assert_array_equal(one.progress(), core.progress())


class MemoryLedger:
    """What two cores of one guard commit to; each sees what the other left."""

    def __init__(self, kept):
        self.kept, self.seen = kept, -1

    def begin(self):
        if self.seen == len(self.kept):
            return None
        self.seen = len(self.kept)
        return self.kept[-1] if self.kept else None

    read = begin

    def commit(self, progress):
        self.kept.append(progress)
        self.seen = len(self.kept)

    def rollback(self):
        self.seen = -1


@pytest.mark.parametrize("block", [1, 7, 250, 900])
@pytest.mark.parametrize("end", [1, 300, 513])
def test_two_owners_of_one_ledger_are_one_guard(kernel, end, block, pack):
    losses = rows_of([end // 2, end + 90], [end // 3, end + 400])[: end + 600].astype(float)
    for price in gates(end).values():
        for _, is_real, rows, labels in ways(losses, pack):
            n_answered, _ = replay(losses, price, is_real=is_real)
            kept, owners = [], [core_of(price), core_of(price)]
            for owner in owners:
                owner.keep_in(MemoryLedger(kept))
            values = []
            for n, start in enumerate(range(0, len(rows), block)):
                owner, part = owners[n % 2], rows[start : start + block]
                if block == 1:
                    answer = ask_one(owner, part[0], labels)
                    values += [] if answer is None else [answer.value]
                else:
                    found = ask_many(owner, part, labels, n_threads=1 + n % 2)
                    values += [] if found is None else found[0].tolist()
            assert_array_equal(values, losses[:n_answered].mean(axis=1))


class FullDisk(MemoryLedger):
    def commit(self, progress):
        raise OSError("no room")


@pytest.mark.parametrize("block", [1, 250, N_ROWS])
def test_a_change_that_was_not_kept_has_not_halted(kernel, block, pack):
    """Whatever way the rows went: the guard is where it was, and goes on."""
    words = pack(rows_of(neither=[900]))
    price = gates(700)["within budget"]
    for n_threads in (1, 2):
        core = core_of(price)
        core.query_many(words[:890], packed=True)
        before = core.progress()
        core.keep_in(FullDisk([]))
        with pytest.raises(OSError, match="no room"):
            if block == 1:
                core.query(words[900], packed=True)
            else:
                core.query_many(words[890 : 890 + block], packed=True, n_threads=n_threads)
        assert not core.halted
        assert_array_equal(core.progress(), before)
        core.keep_in(None)
        assert core.query(words[890], packed=True) is not None
        assert core.query(words[900], packed=True) is None and core.halted


@pytest.mark.parametrize("form", ["bits", "units"])
def test_a_row_that_needs_a_price_is_counted_in_the_units_there_are(kernel, form, pack):
    """Each of these totals is a record, so that the row is judged again under a new gate."""
    losses = (np.arange(M) < np.arange(1, 60)[:, None]).astype(np.float32)
    if form == "units":
        losses[0, 0] = 0.5
    one, many = (core_of(priced_in([(NEVER, NEVER, NOTHING, NOTHING)], slack=0)) for _ in "12")
    for row in losses:
        assert one.query(row).value == row.mean(dtype=float)
    many.query_many(losses)
    assert one.unit_shift == (24 if form == "units" else 0)
    assert_array_equal(one.progress(), many.progress())
    sums = reference.signed_sums(reference.signs(SEED, L, M), losses * 2.0**one.unit_shift)
    assert_array_equal(one.extremes()[0], sums.max(axis=0))


@pytest.mark.parametrize("first_half", [0, 1, 181, 182, 183, 400, 700, N_ROWS - 1])
def test_rows_before_the_first_real_valued_one_come_in_its_units_from_any_thread(
    kernel, first_half
):
    losses = rows_of([20], [first_half // 2]).astype(float)
    losses[first_half, :3] = 0.25
    _, grown = replay(losses, ALL_PASS, is_real=True)
    for n_threads in (1, 2, 3):
        core = core_of(ALL_PASS)
        values, trace, *_ = core.query_many(losses, trace=True, n_threads=n_threads)
        assert_array_equal(values, losses.mean(axis=1))
        assert_array_equal(trace, grown)
        assert core.unit_shift == 24


@pytest.mark.parametrize("first_half", [1, 2, 60, 399])
def test_the_largest_total_so_far_stays_the_largest_in_the_units_of_a_real_valued_row(
    kernel, first_half
):
    """The gate is priced for it, and not for the smaller total of that row."""
    losses = rows_of(neither=[0])[:400].astype(float)
    losses[first_half, :4] = 0.25
    for ask in (
        lambda core: [core.query(row) for row in losses],
        lambda core: core.query_many(losses),
        lambda core: core.query_many(losses, n_threads=2),
    ):
        asked = []

        def price(*given, asked=asked):
            asked.append(given)
            return priced_in([(NEVER, NEVER, NOTHING, NOTHING)], slack=0)(*given)

        core = core_of(price)
        ask(core)
        assert core.largest == NEITHER << 24 and core.n_rows == 400
        # whoever asks anew tells the largest so far: it never falls
        assert all(largest == NEITHER << shift for largest, shift, n_rows in asked if n_rows > 0)


@pytest.mark.parametrize("may_be_real", [False, True])
@pytest.mark.parametrize(
    "odd", [{}, {"between": [100]}, {"between": [129]}, {"between": [130]}, {"neither": [150]}]
)
def test_rows_are_adopted_through_stages_exactly_if_every_one_of_them_passes(
    kernel, pack, odd, may_be_real
):
    rows = rows_of(**odd)
    totals = rows.sum(axis=1)
    given = rows.astype(np.float32) if may_be_real else rows
    for name, price in gates(130).items():
        for n_rows in (1, 99, 100, 101, 400):
            here, judged = core_of(price), core_of(price)
            there = core_of(None)
            there.query_many(given[30 : 30 + n_rows])
            for core in (here, judged):
                core.query_many(given[:30])
            if here.halted:
                continue
            before = here.progress()
            progress = there.progress()
            progress[2] = totals[30 : 30 + n_rows].max()
            taken = here.adopt(progress, totals[30 : 30 + n_rows], may_be_real=may_be_real)
            judged.query_many(given[30 : 30 + n_rows])
            if taken:
                assert not judged.halted
            # a row may have passed by the complexity up to it; by its total alone it passes here
            elif name != "within budget":
                assert judged.halted
            assert (here.progress() == (judged.progress() if taken else before)).all()


def test_a_guard_that_was_taken_up_again_has_the_gate_of_its_next_row(pack):
    stages = [(300, 7, NOTHING, NOTHING), (400, 5, NOTHING, NOTHING), (NEVER, 3, NOTHING, NOTHING)]
    for n_rows, budget in [(0, 7), (299, 7), (300, 5), (399, 5), (400, 3), (900, 3)]:
        core = core_of(priced_in(stages))
        progress = core.progress()
        progress[0], progress[4] = n_rows, n_rows > 0  # started
        core.resume(progress)
        assert core.budget == budget


@pytest.mark.parametrize("n_halves", [0, 2])
def test_a_halted_guard_has_the_gate_of_the_rows_that_were_answered(kernel, n_halves):
    """Priced for the withheld row it would tell its total: whatever that is, nothing differs.

    With halves it is the first real-valued row, which changes the units before it is withheld.
    """
    stages = [(300, NEVER, NOTHING, NOTHING), (NEVER, -1, (40, 120), (41, 120))]
    shift = 24 if n_halves else 0
    for total in (BETWEEN + 1, NEITHER):
        losses = np.concatenate([rows_of()[:300], rows_of(neither=[0])[:1]]).astype(np.float32)
        losses[-1] = np.arange(M) < total
        losses[-1, :n_halves] = 0.5
        for rows in (losses,) if n_halves else (losses, losses.astype(bool)):
            for ask in (
                lambda core, rows=rows: core.query_many(rows),
                lambda core, rows=rows: [core.query(row) for row in rows],
            ):
                asked = []

                def price(*given, asked=asked):
                    asked.append(given)
                    return priced_in(stages, slack=0)(*given)

                core = core_of(price)
                ask(core)
                assert core.halted and core.n_rows == 300
                assert asked[-1] == (USUAL << shift, shift, 300)
                assert core.largest == USUAL << shift
