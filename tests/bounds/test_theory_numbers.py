"""docs/explanation/theory.md quotes what docs/make/theory_numbers.py computes, and nothing else."""

import importlib.util
from itertools import chain
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "make" / "theory_numbers.py"
if not SCRIPT.exists():
    pytest.skip("docs/ is not beside tests/ here", allow_module_level=True)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("theory_numbers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_exact_number_of_the_text_is_what_the_bounds_say(script):
    made, failures = script.check(script.exact_numbers())
    assert made
    assert not failures


def test_a_wrong_digit_in_the_text_is_noticed(script):
    assert script.Number("right", "0.0231", 0.02310578).holds()
    assert not script.Number("last digit", "0.0232", 0.02310578).holds()
    assert not script.Number("exponent", "4.5e-5", 4.456e-6).holds()
    assert not script.Number("count", "18,111", 18110).holds()
    assert script.results_in("at .05 it is 0.0231, or 18,110 of 4000.\n") == {"0.0231", "18,110"}
    assert not script.stands_in("10.0231 and 0.02310", script.Number("part", "0.0231", 0.0231))


# Fixed seeds: cannot fail by chance unless NumPy changes its generators; then, at four standard
# deviations and 25 numbers, one set of runs in about 600 would.
@pytest.mark.slow
def test_every_number_of_the_text_is_made_again(script):
    made, failures = script.check(chain(script.exact_numbers(), script.simulated_numbers()))
    assert not failures
    text = script.TEXT.read_text(encoding="utf-8")
    assert script.results_in(text) == script.results_in(" ".join(n.text for n in made))
