"""Mechanisms, all but one of which stay valid when the analyst adapts; `RadaBound`'s protocol.

==================  ==================================================================
`DeclaredSearch`    an interval for every answer, inside a space declared beforehand
`FixedSequence`     every answer within epsilon, by any metric, in an order fixed in advance
`GuessAndCheck`     every answer within epsilon; every query brings a guess
`Ladder`            the best mean so far; any number of queries, no guesses
==================  ==================================================================
"""

from radabound_fast._lazy import lazily

# __init__.pyi tells type checkers the same
_HOMES = {
    "ComparedAnswer": "declared_search",
    "Comparison": "declared_search",
    "CrossValidatedAnswer": "declared_search",
    "DeclaredSearch": "declared_search",
    "DeclaredSearchAnswer": "declared_search",
    "DeclaredSearchAnswers": "declared_search",
    "FixedSequence": "fixed_sequence",
    "FixedSequenceAnswer": "fixed_sequence",
    "GuessAndCheck": "guess_and_check",
    "GuessAndCheckAnswer": "guess_and_check",
    "GuessAndCheckAnswers": "guess_and_check",
    "Ladder": "ladder",
    "LadderAnswer": "ladder",
    "LadderAnswers": "ladder",
    "Mechanism": "mechanism",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = list(_HOMES)
