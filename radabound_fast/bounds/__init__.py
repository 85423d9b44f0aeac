"""Tail bounds, half-widths, intervals and sample sizes: one theorem, one function.

Functions have no state.  Logarithms are natural and never underflow.  Every function checks its
arguments: a wrong type is a TypeError, a value out of range a ValueError, and the message names
argument, rule and value.  Results that are cited by number are proved in
docs/explanation/theory.md, which lists the papers that are cited by author and year.

``nats`` are ``ln(1/a)`` for an error of a on each side.  For one model, or function, that was fixed
in advance, on independent samples, each limit of an interval is wrong with probability at most
exp(-nats), or about that if it is asymptotic.  So both hold with probability ``1 - w delta`` at
``nats = ln(2 / (w delta))``, w being the weight of the model in a union bound.  Where an argument
is ``array_like``, nats may be too: they are broadcast, and the limits are arrays of float64; they
are floats where all arguments are numbers.

`BOUNDS` is the table of the bounds a guard may halt by.  The files::

    paper, split        Theorems 2, 3, 4 and 6 of De Stefani and Upfal (2019)
    fixed               McDiarmid and the symmetrised bound, for a class fixed in advance
    selfbounding        the self-bounding split, for such a class too: weights, and low error
    kl, binomial        limits of a mean by relative entropy; exact limits for 0s and 1s
    union, free         the union bound; the queries that it answers by itself, in stages
    paired, betting     difference of two models; means of real-valued losses
    folds               cross-validation
    asymptotic,
    bootstrap           the normal approximation and the multiplier bootstrap, which are not proved
    conditional         rates given an event, F1, AUC, weighted means, ROC curves
    histories           claims made in view of earlier verdicts: release gates, finalists
    adaptive            transcript codes, and Thresholdout's sample size
    bound, table        the type of a row, and the rows
    fixed_sequence      the rows that are proved at the halting time
"""

from .adaptive import (
    code_width,
    failure_code,
    guess_and_check_code,
    ladder_half_width,
    ladder_levels,
    ladder_transcript_half_width,
    thresholdout_sample_size,
)
from .asymptotic import (
    asymptotic_auc_interval,
    asymptotic_balanced_interval,
    asymptotic_mean_interval,
)
from .betting import betting_interval, betting_p_value
from .binomial import binomial_interval, binomial_queries
from .bound import Bound
from .conditional import (
    auc_blocks,
    auc_interval,
    balanced_interval,
    f1_interval,
    rate_interval,
    roc_band,
    weighted_interval,
)
from .fixed import mcdiarmid_excess, symmetrised_excess, symmetrised_log_tail
from .folds import cross_validation_interval, weighted_cross_validation_interval
from .free import Free, Stage, union_free
from .histories import confirmation_nats, gain_needed, history_nats
from .kl import kl_interval, kl_tolerance
from .paired import paired_interval
from .paper import rademacher_log_tail
from .selfbounding import low_error_budget, low_error_half_width, weighted_half_width
from .table import BOUNDS, PAPER_BOUNDS
from .union import dyadic_code, union_half_width, union_queries

__all__ = [
    "BOUNDS",
    "Bound",
    "PAPER_BOUNDS",
    "Free",
    "Stage",
    "asymptotic_auc_interval",
    "asymptotic_balanced_interval",
    "asymptotic_mean_interval",
    "auc_blocks",
    "auc_interval",
    "balanced_interval",
    "betting_interval",
    "betting_p_value",
    "binomial_interval",
    "binomial_queries",
    "code_width",
    "confirmation_nats",
    "cross_validation_interval",
    "dyadic_code",
    "f1_interval",
    "failure_code",
    "gain_needed",
    "guess_and_check_code",
    "history_nats",
    "kl_interval",
    "kl_tolerance",
    "ladder_half_width",
    "ladder_transcript_half_width",
    "ladder_levels",
    "low_error_budget",
    "low_error_half_width",
    "mcdiarmid_excess",
    "paired_interval",
    "rademacher_log_tail",
    "rate_interval",
    "roc_band",
    "symmetrised_excess",
    "symmetrised_log_tail",
    "thresholdout_sample_size",
    "union_free",
    "union_half_width",
    "union_queries",
    "weighted_cross_validation_interval",
    "weighted_half_width",
    "weighted_interval",
]
