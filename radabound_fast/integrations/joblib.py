"""joblib: workers fit and predict, the guard judges here, in the order of the candidates."""

from __future__ import annotations

import contextlib
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from radabound_fast._extras import needs
from radabound_fast.files import progress as _progress
from radabound_fast.guards.answers import HoldoutExhausted, hand_over
from radabound_fast.integrations._owner import (
    ask,
    check_guard,
    check_guesses,
    first_withheld,
    fitted_of,
    member_of,
)

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyGuard

with needs("joblib"):
    from joblib import Parallel, delayed, effective_n_jobs

Candidate = TypeVar("Candidate")


class Judged(NamedTuple, Generic[Candidate]):
    """A candidate, its answer, the model that its worker sent, and whether the answer is of it."""

    candidate: Candidate
    answer: Any
    model: Any
    is_judged: bool


def guarded_map(
    guard: AnyGuard,
    fit_predict: Callable[[Candidate], Any],
    candidates: Iterable[Candidate],
    *,
    n_jobs: int | None = None,
    backend: str | None = None,
    guesses: bool = False,
    progress: bool = False,
) -> Generator[tuple[Candidate, Any], None, None]:
    """Judge candidates in order by a guard, up to the first whose answer is withheld.

    Queries are made in the order of the candidates, so the answers and the halt do not depend
    on `n_jobs` or `backend`.  An error in a worker or Ctrl-C has as its attribute ``answers`` the
    list of (candidate, Answer) of this call so far.

    Parameters
    ----------
    guard : guard made on labels, or RemoteGuard
        Stays in this process; workers never see it.
    fit_predict : callable
        ``fit_predict(candidate)`` returns predictions for the held-out samples, shape
        (n_samples,).  It runs in a worker and must not hold the labels of the holdout.
    candidates : iterable
        What to try; read as workers become free, so it may have no end.  For a `DeclaredSearch`
        each is the key of its query; one that comes again is another training with
        ``allow_reruns=True``, and else has the answer of its first.
    n_jobs, backend : optional
        As in `joblib.Parallel`.  A backend that cannot return results one by one, such as
        multiprocessing, gets blocks of candidates.
    guesses : bool, default False
        For a `GuessAndCheck`: `fit_predict` returns (predictions, guess).
    progress : bool, default False
        Say on stderr how many were answered: a bar in a terminal (with tqdm), and elsewhere a line
        every few seconds.

    Returns
    -------
    generator of (candidate, Answer)
        It ends after the last candidate, or at the halt.  What was queued is then cancelled, as it
        is when the generator is closed.

    Raises
    ------
    HoldoutExhausted
        The guard had halted before this call, or can answer no query: nothing is fitted.  Or
        it withheld the very first answer: the message says what would work.
    TypeError, ValueError
        `guard` is no guard made on labels, or needs guesses; or predictions are not of its classes.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import FixedSequence
    >>> guard = FixedSequence(np.arange(4000) % 2, epsilon=0.1, delta=0.1)
    >>> def constant(value):
    ...     return np.full(4000, value)
    >>> [(value, answer.value) for value, answer in guarded_map(guard, constant, [0, 1])]
    [(0, 0.5), (1, 0.5)]
    """
    guard = check_guard(guard, by_scores=False)
    check_guesses(guard, guesses)
    each = judged(guard, fit_predict, candidates, n_jobs, backend, guesses, progress)

    def answers() -> Generator[tuple[Candidate, Any], None, None]:
        with contextlib.closing(each):
            for one in each:
                yield one.candidate, one.answer

    return answers()


def judged(
    guard: AnyGuard,
    fit_predict: Callable[[Candidate], Any],
    candidates: Iterable[Candidate],
    n_jobs: int | None,
    backend: str | None,
    guesses: bool,
    progress: bool,
) -> Generator[Judged[Candidate], None, None]:
    """`guarded_map`, of a guard that was checked, with the models of workers that send them."""
    sent: deque[Candidate] = deque()  # to the workers, and not yet judged
    answers: list[tuple[Candidate, Any]] = []
    task = delayed(fit_predict)

    def tasks() -> Iterator[Any]:
        for candidate in candidates:
            sent.append(candidate)
            yield task(member_of(guard, candidate))

    outputs = _outputs(tasks(), n_jobs, backend)
    shown = contextlib.ExitStack()
    try:
        total = len(candidates) if isinstance(candidates, Sized) else None
        advance = shown.enter_context(_progress.progress(total, "answers", quiet=not progress))
        for output in outputs:
            y_pred, guess, model = fitted_of(output, guesses)
            try:
                answer, is_judged = ask(guard, y_pred, key=sent[0], guess=guess)
            except HoldoutExhausted as spent:
                if guard.n_answered == 0:
                    raise first_withheld(guard, spent, guess) from None
                return
            answers.append((sent.popleft(), answer))
            advance(1)
            yield Judged(*answers[-1], model, is_judged)
    except GeneratorExit:  # closed by the caller, who has all answers
        raise
    except BaseException as error:
        hand_over(error, answers)
        raise
    finally:
        with warnings.catch_warnings():
            # joblib warns of results that nobody reads: stopping early is the purpose here
            warnings.filterwarnings("ignore", message=".*benefit from adjusting the in")
            outputs.close()
        shown.close()


def _outputs(
    tasks: Iterator[Any], n_jobs: int | None, backend: str | None
) -> Generator[Any, None, None]:
    """Results in order: one by one where the backend can, else block by block."""
    try:
        parallel = Parallel(n_jobs=n_jobs, backend=backend, return_as="generator")
    except ValueError as error:
        if "return_as" not in str(error):
            raise
        with Parallel(n_jobs=n_jobs, backend=backend) as parallel:
            while block := list(islice(tasks, 2 * effective_n_jobs(n_jobs))):
                yield from parallel(block)
    else:
        yield from parallel(tasks)
