"""Mechanisms that stay valid when the analyst adapts: one protocol with `RadaBound`.

==================  ==================================================================
`DeclaredSearch`    an interval for every answer, inside a space declared beforehand
`GuessAndCheck`     every answer within epsilon; every query brings a guess
`Ladder`            the best mean so far; any number of queries, no guesses
`Thresholdout`      the paper's comparison; no valid half-width at practical sizes
==================  ==================================================================
"""

from radabound_fast.mechanisms._protocol import Mechanism
from radabound_fast.mechanisms.declared_search import (
    ComparedAnswer,
    Comparison,
    CrossValidatedAnswer,
    DeclaredSearch,
    DeclaredSearchAnswer,
    DeclaredSearchAnswers,
)
from radabound_fast.mechanisms.guess_and_check import (
    GuessAndCheck,
    GuessAndCheckAnswer,
    GuessAndCheckAnswers,
)
from radabound_fast.mechanisms.ladder import Ladder, LadderAnswer, LadderAnswers
from radabound_fast.mechanisms.thresholdout import (
    Thresholdout,
    ThresholdoutAnswer,
    ThresholdoutAnswers,
)

__all__ = [
    "ComparedAnswer",
    "Comparison",
    "CrossValidatedAnswer",
    "DeclaredSearch",
    "DeclaredSearchAnswer",
    "DeclaredSearchAnswers",
    "GuessAndCheck",
    "GuessAndCheckAnswer",
    "GuessAndCheckAnswers",
    "Ladder",
    "LadderAnswer",
    "LadderAnswers",
    "Mechanism",
    "Thresholdout",
    "ThresholdoutAnswer",
    "ThresholdoutAnswers",
]
