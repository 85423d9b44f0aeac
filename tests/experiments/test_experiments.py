"""The experiments on synthetic data: what they simulate, count, and keep."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import needs_packages

needs_packages("joblib", "matplotlib", "pandas", "sklearn", "tqdm")

from radabound_fast import GuessAndCheck, HoldoutExhausted, Ladder, RadaBound  # noqa: E402
from radabound_fast.experiments import (  # noqa: E402
    attack,
    runner,
    sample_sizes,
    searches,
    section5,
)
from radabound_fast.experiments.thresholdout import Thresholdout  # noqa: E402

SIGNAL = section5.Model(variance=2, bias=0.5)
NOISE = section5.Model(variance=1, bias=0.0)


def unpacked(packed, n_samples):
    return np.unpackbits(packed.words.view(np.uint8), axis=-1, bitorder="little", count=n_samples)


# ---- Section V -----------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """The greedy search at a size that a plain loop can follow."""
    for name, size in (("SAMPLES", 300), ("FEATURES", 12), ("SIGNAL", 4), ("QUERIES", 25)):
        monkeypatch.setattr(section5, f"N_{name}", size)


def naive_search(model, rng):
    """Losses on the holdout and on the fresh set, and every w, each computed from scratch."""
    training, holdout, fresh = (section5.draw(model, rng) for _ in range(3))

    def losses(w, sample):
        says = np.where(w @ sample.features >= 0, 1, -1)
        return says != np.where(sample.positive, 1, -1)

    correlation = np.abs(training.features @ np.where(training.positive, 1, -1))
    best = np.zeros(len(correlation))
    asked = [(losses(best, holdout), losses(best, fresh), best)]
    lowest = asked[0][0].mean()
    for feature in np.argsort(-correlation):
        kept = best
        for weight in (-1, 1):
            w = best.copy()
            w[feature] = weight
            asked.append((losses(w, holdout), losses(w, fresh), w))
            if asked[-1][0].mean() < lowest:
                kept, lowest = w, asked[-1][0].mean()
        best = kept
    return [np.array(column) for column in zip(*asked, strict=True)]


@pytest.mark.parametrize("model", [NOISE, SIGNAL])
def test_the_greedy_search_asks_what_a_plain_loop_asks(small, model):
    found = section5.greedy_search(model, np.random.default_rng(3))
    losses, fresh, weights = naive_search(model, np.random.default_rng(3))
    assert_array_equal(unpacked(found.losses, 300), losses)
    assert_array_equal(found.errors, losses.mean(axis=1))
    assert_array_equal(found.fresh, fresh.mean(axis=1))
    lean, size = weights[:, :4].sum(axis=1), (weights**2).sum(axis=1)
    np.testing.assert_allclose(found.truths, section5.true_errors(model, lean, size), rtol=1e-14)


def test_the_best_accuracies_are_those_of_the_lowest_error_so_far(small):
    found = section5.greedy_search(SIGNAL, np.random.default_rng(5))
    holdout, fresh = found.best_accuracies()
    for query in range(25):
        best = int(np.argmin(found.errors[: query + 1]))
        assert (holdout[query], fresh[query]) == (1 - found.errors[best], 1 - found.fresh[best])


def test_of_equal_accuracies_the_first_is_the_best():
    errors = np.full(section5.N_QUERIES, 0.5)
    errors[[3, 5]] = 0.25
    fresh = np.arange(section5.N_QUERIES) / section5.N_QUERIES
    found = section5.Search(np.empty((0, 0), np.uint64), errors, errors, fresh)
    best = np.where(np.arange(section5.N_QUERIES) < 3, 0, 3)
    assert_array_equal(found.best_accuracies()[1], 1 - fresh[best])


def test_without_signal_every_classifier_errs_half_the_time():
    assert_array_equal(section5.true_errors(NOISE, np.array([0, 1]), np.array([0, 4])), [0.5, 0.5])


@pytest.mark.thorough
def test_true_errors_are_those_on_many_samples():
    # seed 0, 30 samples of 4,000: an error beyond 5 s.d. has a chance below 6e-7
    rng = np.random.default_rng(0)
    w = np.zeros(section5.N_FEATURES, dtype=np.float32)
    w[[0, 1, 2, 100, 300]] = 1, 1, -1, 1, -1
    wrong = 0
    for _ in range(30):
        sample = section5.draw(SIGNAL, rng)
        wrong += np.count_nonzero((w @ sample.features >= 0) != sample.positive)
    n = 30 * section5.N_SAMPLES
    truth = section5.true_errors(SIGNAL, np.array([1]), np.array([5]))[0]
    assert abs(wrong / n - truth) < 5 * math.sqrt(truth * (1 - truth) / n)


def test_figures_1_to_3_share_their_searches():
    tasks = section5.tasks([1, 2, 3, 4], repeats=2)
    assert [(task.experiment, task.cell) for task in tasks] == [
        ("figures-1-3", "0000"),
        ("figures-1-3", "0001"),
        ("figure-4", "0000"),
        ("figure-4", "0001"),
    ]


def test_a_replay_counts_the_answers_of_a_guard_asked_one_by_one():
    rows = section5.replay("figure-6", 1)
    search, seed = section5.one_search(6, 1)
    row = next(row for row in rows if (row["bound"], row["epsilon"]) == ("mclt", 0.0375))
    guard = RadaBound(4000, epsilon=0.0375, delta=0.2, n_vectors=32, bound="mclt", seed=seed)
    off = False
    for query in range(section5.N_QUERIES):
        try:
            answer = guard.query(search.losses[query])
        except HoldoutExhausted:
            break
        off |= abs(answer.value - search.truths[query]) > 0.0375
    assert (row["answered"], row["off"]) == (guard.n_answered, off)
    assert len(rows) == 10


def test_sizes_are_those_of_section_v():
    assert (section5.N_SAMPLES, section5.N_FEATURES, section5.N_SIGNAL) == (4000, 500, 50)
    assert (attack.N_SAMPLES, attack.N_VECTORS, section5.N_VECTORS) == (4000, 32, 32)
    assert attack.EPSILONS == (0.05, 0.06, 0.07, 0.08, 0.1, 0.2)


def test_each_panel_has_at_least_five_epsilons():
    for figure in section5.FIGURES.values():
        assert list(figure.epsilons) == ["bernstein", "mclt"]
        assert all(len(set(epsilons)) >= 5 for epsilons in figure.epsilons.values())


def test_a_run_that_never_halts_counts_as_1000_and_a_share_above_delta_is_flagged():
    answered, off = [9, 99, 1001, 1001, 500], [0, 1, 1, 1, 0]
    rows = [
        {"figure": 1, "bound": "mclt", "epsilon": 0.05, "answered": n, "off": flag}
        for n, flag in zip(answered, off, strict=True)
    ]
    (line,) = section5.summary(1, rows)
    assert line["halt_mean"] == round((10 + 100 + 1000 + 1000 + 501) / 5, 1)
    quartiles = [line[f"halt_{name}"] for name in ("lower_quartile", "median", "upper_quartile")]
    assert quartiles == [100, 501, 1000]
    assert (line["never_halted"], line["off"], line["passes_delta"]) == (2, 0.6, "yes")
    # Clopper and Pearson for 3 of 5
    assert (line["off_low"], line["off_high"]) == (0.1466, 0.9473)


def test_an_error_of_epsilon_exactly_is_not_off():
    assert not runner.any_off([0.55], [0.5], 0.05)
    assert runner.any_off([0.5, 0.55025], [0.5, 0.5], 0.05)


# ---- the vote ------------------------------------------------------------------------------


def test_the_vote_is_that_of_the_weighted_classifiers():
    classifiers = attack.Classifiers(np.random.default_rng(1))
    losses = unpacked(classifiers.losses[:20], attack.N_SAMPLES)
    weights = 0.5 - losses.mean(axis=1)
    voted = unpacked(classifiers.vote(weights), attack.N_SAMPLES)
    for_right = weights @ np.where(losses == 1, -1.0, 1.0)
    clear = np.abs(for_right) > 1e-4
    assert clear.sum() > 3900
    assert_array_equal(voted[clear], (for_right < 0)[clear])


@pytest.fixture
def short_attack(monkeypatch):
    monkeypatch.setattr(attack, "N_CLASSIFIERS", (10, 30, 100))


def test_every_bound_and_mechanism_is_attacked_with_every_k(short_attack):
    rows = attack.attack(0)
    cells = runner.grouped(rows, "mechanism", "epsilon")
    assert len(cells) == len(attack.EPSILONS) * (4 + 3 + 1 + 1)
    for runs in cells.values():
        assert [row["k"] for row in runs] == [10, 30, 100]
        assert all(row["answered"] <= row["k"] + 1 for row in runs)
        assert all((row["answered"] == row["k"] + 1) == row["vote_answered"] for row in runs)


@pytest.mark.thorough
def test_the_vote_of_100_breaks_the_bound_for_queries_fixed_in_advance(short_attack):
    # 5 of 5 runs; the vote's mean error is .08 with s.d. .008, so one within .05 has chance 2e-4
    for repeat in range(5):
        rows = attack.attack(repeat)
        (row,) = (
            row
            for row in rows
            if (row["mechanism"], row["epsilon"], row["k"]) == ("fixed-sequence", 0.05, 100)
        )
        assert row["vote_answered"] and row["off"] and row["broken"]


def test_an_attack_that_is_halted_early_is_the_same_for_every_larger_k():
    asked = []

    def attack_of(k):
        asked.append(k)
        return attack.Run([0.5] * min(k + 1, 150), 0.05)

    runs = attack._for_each_k(attack_of)
    assert [len(run.answers) for run in runs] == [min(k + 1, 150) for k in attack.N_CLASSIFIERS]
    assert asked == [3200, 100, 50, 20, 10]


class Mechanism:
    """Answers 1/2 to every query; of those one by one each second passes."""

    tolerance, epsilon, needs = 0.2, 0.05, "guess"

    def __init__(self, half_widths):
        self.half_widths, self.guesses = list(half_widths), []

    def query_many(self, losses, guesses):
        widths = [self.half_widths.pop(0) for _ in losses]
        halves = np.full(len(losses), 0.5)
        return SimpleNamespace(values=halves, half_widths=np.array(widths), halted=False)

    def query(self, losses, guess=None):
        self.guesses.append(guess)
        passed = len(self.guesses) % 2 == 1
        return SimpleNamespace(value=0.5, half_width=self.half_widths.pop(0), passed=passed)


@pytest.fixture
def voters(monkeypatch):
    """Eight classifiers, whose votes are noted by their weights."""
    monkeypatch.setattr(attack, "N_CLASSIFIERS", (8,))
    classifiers = attack.Classifiers(np.random.default_rng(3))
    classifiers.weights, vote = [], classifiers.vote
    monkeypatch.setattr(
        classifiers, "vote", lambda weights: classifiers.weights.append(weights) or vote(weights)
    )
    return classifiers


def test_a_run_is_as_wide_as_its_widest_answer(voters):
    for widths, widest in (([0.1] * 7 + [0.3, 0.2], 0.3), ([0.1] * 8 + [0.4], 0.4)):
        mechanism = partial(Mechanism, widths)
        run = attack._in_a_block(voters, mechanism, attack._by_values, 8, guesses=np.full(9, 0.5))
        assert (run.half_width, len(run.answers)) == (widest, 9)
    rows = [
        {"mechanism": "x", "epsilon": 0.1, "k": 8, "half_width": width, "off": off}
        | {"answered": 9, "vote_answered": 1, "broken": 0}
        for width, off in ((0.1, 1), (0.3, 0))
    ]
    (line,) = attack.summary(rows)
    assert (line["half_width"], line["off"], line["broken"]) == (0.3, 0.5, 0.0)


def test_a_vote_gives_no_weight_to_answers_that_say_nothing_of_their_classifier(voters):
    means = unpacked(voters.losses[:8], attack.N_SAMPLES).mean(axis=1)
    guesses = np.append(means, 0.5)
    guesses[::2] += 0.2  # which the holdout shows to be wrong
    noiseless = partial(Thresholdout, 4000, threshold=0.05, noise=1e-9, budget=99, seed=1)
    attack._in_a_block(voters, noiseless, attack._by_failures, 8, guesses=guesses)
    expected = 0.5 - means
    expected[1::2] = 0.0
    assert voters.weights.pop() == pytest.approx(expected, abs=1e-6)
    ladder = partial(Ladder, 4000, 0.01, delta=0.1)
    attack._in_a_block(voters, ladder, attack._by_updates, 8)
    updated = ladder().query_many(voters.losses).updated
    assert_array_equal(voters.weights.pop(), updated)
    assert 0 < updated.sum() < 8


def test_the_attackers_guesses_are_near_the_rim_and_a_failed_one_counts_for_its_classifier(voters):
    check = Mechanism([0.05] * 9)
    attack._with_attackers_guesses(voters, lambda: check, 8)
    assert check.guesses == [0.7 - 1.0 / math.sqrt(4000)] * 8 + [0.5 - 1.01 * 0.05]
    assert_array_equal(voters.weights.pop(), [-1.0, 1.0] * 4)


# ---- searches ------------------------------------------------------------------------------


class Walk:
    """Candidates are integers; n errs on the first 2000 - n samples."""

    def first(self):
        return 0

    def change(self, best, rng):
        return best + int(rng.integers(-3, 7))

    def question(self, candidate):
        losses = np.arange(searches.N_SAMPLES) < 2000 - candidate
        return searches.Question(losses, 0.5, 0.5)


def test_a_climb_goes_on_from_the_lowest_answer():
    found = searches.climb(Walk(), lambda q: (q.losses.mean(), 0.1), 50, np.random.default_rng(0))
    rng, best, values = np.random.default_rng(0), 0, [0.5]
    for _ in range(49):
        candidate = best + int(rng.integers(-3, 7))
        values.append((2000 - candidate) / 4000)
        best = max(best, candidate)
    assert_array_equal(found.values, values)
    assert not found.halted


class Alike:
    """Candidates are numbers, and all answers equal."""

    def __init__(self):
        self.changed = []

    def first(self):
        return 0

    def change(self, best, rng):
        self.changed.append(best)
        return best + len(self.changed)

    def question(self, candidate):
        return searches.Question(np.zeros(4, bool), 0.5, candidate / 10)


def test_of_equal_answers_the_first_is_the_best():
    alike = Alike()
    found = searches.climb(alike, lambda q: (0.25, 0.1), 4, np.random.default_rng(0))
    assert alike.changed == [0, 0, 0, 0]
    assert searches._row("any", 0.1, found, found.truths)["truth"] == 0.0
    later = searches.Outcome(np.array([0.5, 0.25, 0.25]), np.array([0.0, 0.1, 0.2]), 0.1, False)
    assert searches._row("any", 0.1, later, later.truths)["truth"] == 0.1


def test_all_guards_and_mechanisms_answer_the_same_search():
    rows = searches.against_all(Walk(), (0.05, 0.2), 100, seed=1)
    cells = runner.grouped(rows, "mechanism", "epsilon")
    assert len(cells) == len(rows) == 2 * 8
    (unguarded,) = cells["no guard", 0.05]
    assert (unguarded["answered"], unguarded["halted"], unguarded["truth"]) == (100, 0, 0.5)
    # about 130 steps down to .47: far less than .2 and more than nothing
    assert 0.4 < unguarded["told"] < 0.49
    assert cells["bernstein", 0.2][0]["told"] == unguarded["told"]


class Worse(Walk):
    """All candidates look alike, and all but the first are bad."""

    def change(self, best, rng):
        return 1

    def question(self, candidate):
        losses = np.arange(searches.N_SAMPLES) < 400
        return searches.Question(losses, 0.1, 0.9 if candidate else 0.1)


def test_a_ladder_is_judged_by_the_best_truth_so_far_and_others_by_each():
    rows = runner.grouped(searches.against_all(Worse(), (0.2,), 4, seed=1), "mechanism")
    off = {name: row["off"] for (name,), (row,) in rows.items()}
    assert off.pop("Ladder, step .01") == 0 and set(off.values()) == {1}


def test_a_climb_is_as_wide_as_its_widest_answer_and_brings_a_guess_where_one_is_needed():
    for needs, guess in (("guess", 0.5), (None, None)):
        mechanism = Mechanism([0.1, 0.3, 0.2])
        mechanism.needs = needs
        found = searches.climb(
            Walk(), partial(searches._ask, mechanism), 3, np.random.default_rng(0)
        )
        assert found.values.tolist() == [0.5] * 3
        assert found.half_width == 0.3 and mechanism.guesses == [guess] * 3


def test_a_summary_has_medians_and_extremes_in_percent():
    shared = {"data": "d", "epsilon": 0.1, "mechanism": "m", "halted": 1}
    rows = [
        shared | {"answered": n, "half_width": width, "told": told, "truth": truth, "off": off}
        for n, width, told, truth, off in (
            (9, 0.1, 0.2, 0.25, 0), (5, 0.3, 0.1, 0.3, 1), (7, 0.2, 0.3, 0.31, 1),
            (0, 0.0, math.nan, math.nan, 0),
        )
    ]  # fmt: skip
    (line,) = searches.summary(rows)
    assert (line["runs"], line["halted"], line["answered_median"]) == (4, 4, 6)
    assert (line["told"], line["truth"], line["half_width"]) == (20.0, 30.0, 0.3)
    assert (line["gap"], line["gap_least"], line["gap_largest"]) == (5.0, 1.0, 20.0)
    assert line["off"] == 0.5


# ---- Section VI ----------------------------------------------------------------------------


def test_thresholdout_needs_what_section_vi_prints():
    (row,) = (row for row in sample_sizes.table() if row["k"] == 10)
    assert row["thresholdout_printed_B_1"] == row["thresholdout_theorem_B_1"] == 3_681_156


def test_new_samples_for_each_of_k_queries_are_k_holdouts_by_hoeffding_at_delta_over_k():
    size = sample_sizes.needed(100, 0.05)["sample_splitting"]
    assert size == pytest.approx(100 * math.log(2 * 100 / 0.1) / (2 * 0.05**2))
    # and guesses of which one fails need t(t+1), 2 * 3 for its number, 100 places, and 4 for it
    nats = math.log(2 / 0.1) + math.log(100 * 101 * 2 * 3 * 99 * 4)
    assert sample_sizes.needed(100, 0.05)["guess_and_check_1_fails"] == pytest.approx(
        nats / (2 * 0.045**2)
    )


def test_guess_and_check_answers_k_queries_at_the_size_it_needs_and_not_below():
    size = math.ceil(sample_sizes.needed(1000, 0.05)["guess_and_check_all_pass"])

    def affordable(n_samples):
        check = GuessAndCheck(n_samples, epsilon=0.05, delta=0.1, low_error=False)
        return check.affordable()

    assert affordable(size - 1) < 1000 <= affordable(size)


def test_a_ladder_is_within_epsilon_at_the_size_it_needs_and_not_below():
    size = math.ceil(sample_sizes.needed(1000, 0.1)["ladder"])
    losses = {n: np.zeros(n, dtype=bool) for n in (size - 1, size)}
    widths = [
        min(
            Ladder(n, 0.001 * step, delta=0.1, max_queries=1000).query(losses[n]).half_width
            for step in range(1, 100)
        )
        for n in (size - 1, size)
    ]
    assert widths[1] <= 0.1 < widths[0]


# ---- figures ---------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_figures_of_attack_and_searches_are_drawn(short_attack, tmp_path):
    from radabound_fast.experiments import figures

    lines = attack.summary(attack.attack(0) + attack.attack(1))
    figures.attack_figure(lines).savefig(tmp_path / "attack.png")
    rows = [
        {"data": data, **row}
        for data in ("up", "down")
        for row in searches.against_all(Walk(), (0.05, 0.2), 20, seed=1)
    ]
    figures.searches_figure(rows, "Walks").savefig(tmp_path / "searches.png")
    assert len(searches.summary(rows)) == 2 * 16
