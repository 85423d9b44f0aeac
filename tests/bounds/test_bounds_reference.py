"""The bounds against known answers; `data/README.md` says where each file comes from."""

import csv
import doctest
import importlib
import json
import math
import pkgutil
from fractions import Fraction
from pathlib import Path

import pytest

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS, binomial, kl

DATA = Path(__file__).parents[1] / "data"


def rows(name):
    with (DATA / name).open(newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def label(row):
    return "-".join(str(row[key]) for key in ("formula", "m", "l", "e"))


# a log10 to 20 digits; the split is a minimum found numerically
PAPER = {
    "bim_single": (BOUNDS["bernstein"].log_tail, 1e-12),
    "bim_split": (BOUNDS["bernstein-split"].log_tail, 1e-9),
    "mclt": (BOUNDS["mclt"].log_tail, 1e-12),
}
CORRECTED = {
    "cs_centred_or_halfrange": (bounds.symmetrised_log_tail, "half-range"),
    "cs_uncentred": (bounds.symmetrised_log_tail, "plain"),
}
MCDIARMID = {
    "mcdiarmid_centred(4/m+4/lm)": "half-range",
    "mcdiarmid_uncentred_one_sided(4/m+16/lm)": "plain",
}
# McDiarmid's comes as an excess, which a probability of 1 has none of
CORRECTED_ROWS = [
    row
    for row in rows("bounds_corrected_reference.csv")
    if row["formula"] in CORRECTED or float(row["e"]) > 0.0
]


@pytest.mark.parametrize("row", rows("bounds_paper_reference.csv"), ids=label)
def test_the_papers_log_tails_have_the_reference_values(row):
    log_tail, precision = PAPER[row["formula"]]
    computed = log_tail(float(row["e"]), int(row["m"]), int(row["l"])) / math.log(10.0)
    assert computed == pytest.approx(float(row["log10_delta_prime"]), rel=precision, abs=0.0)


@pytest.mark.parametrize("row", CORRECTED_ROWS, ids=label)
def test_the_corrected_log_tails_have_the_reference_values(row):
    expected = float(row["log10_delta_prime"])
    e, m, n_vectors = float(row["e"]), int(row["m"]), int(row["l"])
    if estimator := MCDIARMID.get(row["formula"]):
        log_delta = expected * math.log(10.0)
        computed = bounds.mcdiarmid_excess(log_delta, m, n_vectors, estimator=estimator)
        assert computed == pytest.approx(e, rel=1e-12, abs=0.0)
        return
    log_tail, estimator = CORRECTED[row["formula"]]
    computed = log_tail(e, m, n_vectors, estimator=estimator) / math.log(10.0)
    assert computed == pytest.approx(expected, rel=1e-12, abs=0.0)


def guess_and_check_width(query, shifts, n_samples, delta):
    failures = sum(map(bounds.failure_code, shifts))
    code = bounds.guess_and_check_code(query, len(shifts), failures)
    return bounds.code_width(code, n_samples, delta)


def binomial_log_tail(count, n_samples, mean):
    above = n_samples * Fraction(mean) - count
    nearest = float(above)
    return binomial._log_tail(count, n_samples, nearest, float(above - Fraction(nearest)))


def binomial_low(**arguments):
    return bounds.binomial_interval(**arguments)[0]


def binomial_high(**arguments):
    return bounds.binomial_interval(**arguments)[1]


COMPOSED = {
    function.__name__: function
    for function in (guess_and_check_width, binomial_log_tail, binomial_low, binomial_high)
} | {
    "binomial_log_failure": lambda n_samples, epsilon: binomial._worst(n_samples, epsilon)[1],
    "kl_minus": lambda mean, budget: bounds.kl_interval(mean, 1, budget)[0],
    "kl_plus": lambda mean, budget: bounds.kl_interval(mean, 1, budget)[1],
    "kl_free": kl.kl_free,
    "bernstein_excess": BOUNDS["bernstein"].excess,
    "mclt_excess": BOUNDS["mclt"].excess,
}


@pytest.mark.parametrize(
    "row", rows("bounds_mpmath_reference.csv"), ids=lambda row: row["function"]
)
def test_every_function_has_the_value_of_its_definition_at_60_digits(row):
    function = COMPOSED.get(row["function"]) or getattr(bounds, row["function"])
    computed = function(**json.loads(row["arguments"]))
    # the absolute term: a limit near 1, or an excess of 1e-18, is a difference of floats near 1
    # what is rounded up by some ulps of m p is a sum of terms as large
    precision = 1e-11 if row["function"] == "binomial_log_tail" else 2e-12
    assert computed == pytest.approx(float(row["value"]), rel=precision, abs=1e-16)


@pytest.mark.parametrize("module", [found.name for found in pkgutil.iter_modules(bounds.__path__)])
def test_the_examples_in_the_docstrings_are_true(module):
    assert doctest.testmod(importlib.import_module(f"{bounds.__name__}.{module}")).failed == 0
