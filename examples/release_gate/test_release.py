"""A test of pytest that fails where a model may not be released.

LABELS and GATE name files outside of the repository; predictions.npy is the candidate's.
"""

import os

import numpy as np

from radabound_fast import Gate


def test_the_candidate_may_be_released() -> None:
    gate = Gate.open(os.environ["GATE"], np.load(os.environ["LABELS"]))
    verdict = gate.query(np.load("predictions.npy"))
    assert verdict.passed, gate.explain(verdict)
