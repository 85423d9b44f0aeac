# What a guard answers.

from dataclasses import make_dataclass

@cython.no_gc  # nothing that a rule leads to keeps answers, so that there is no cycle
@cython.freelist(64)
cdef class Answer:
    """What every guard answers to one query: a mean loss, and an interval for the truth.

    Attributes
    ----------
    value : float
        The answer, in units of loss.
    low, high : float
        The truth lies between them, as far as the guard's ``guarantee`` says; in [0, 1].  nan
        where no interval is known.
    half_width : float
        How far the truth may be from `value`: ``value +- half_width`` covers [low, high].
    n_queries : int
        Answers that the guard has given, this one counted.

    Notes
    -----
    ``float(answer)`` is its value.  ``answer._asdict()`` is a dict of all that it tells, in the
    order of the columns that ``pandas.DataFrame(answers)`` makes of a list of answers: to the
    functions of `dataclasses` an answer is one.
    """

    # RadaBoundAnswer's own: only a base class has a free list, for objects of its very size
    cdef double _value, _complexity
    cdef int64_t _n_queries
    cdef bint _declared  # whether the losses are 0 or 1 by their type, and not by chance
    # HaltingRule; or what it said once it was asked: low, high, half_width, delta_prime
    cdef object _rule

    cdef tuple _told(self):
        """Low, high, half_width, delta_prime."""
        if type(self._rule) is tuple:
            return self._rule
        rule = self._rule
        low, high = rule.interval(self._value, self._n_queries, self._declared)
        half_width = rule.half_width(self._value, low, high)
        self._rule = low, high, half_width, rule.delta_prime(self._complexity)
        return self._rule

    @property
    def value(self):
        return self._value

    @property
    def n_queries(self):
        return self._n_queries

    @property
    def low(self):
        return self._told()[0]

    @property
    def high(self):
        return self._told()[1]

    @property
    def half_width(self):
        return self._told()[2]

    def __float__(self):
        return self.value

    def _asdict(self):
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __repr__(self):
        told = self._asdict()
        del told["half_width"]  # which the ends tell
        shown = [f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
                 for name, value in told.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


@cython.final
@cython.no_gc
cdef class RadaBoundAnswer(Answer):
    """A mean that the holdout could still afford; what is not `value` is computed when asked for.

    Attributes
    ----------
    value : float
        Mean loss of the query: one float64 division, sum / n_samples.
    low, high : float
        Where the true mean lies, as far as ``guard.guarantee`` says: within epsilon of `value`,
        or nearer where the bound knows more; in [0, 1].
    half_width : float
        How far `value` may be from the true mean: epsilon, or less where the bound knows more.
    n_queries : int
        Answers given so far, this one counted.
    complexity : float
        Monte-Carlo Rademacher complexity of all queries so far, in units of loss.  nan in an
        answer of `query_many` without ``trace=True``.
    delta_prime : float
        What the guard's tail bound gives at that complexity, clipped at 1.  nan where the bound
        has no tail.
    """

    __dataclass_fields__ = make_dataclass("RadaBoundAnswer", [
        ("value", float), ("low", float), ("high", float), ("half_width", float),
        ("n_queries", int), ("complexity", float), ("delta_prime", float),
    ], init=False, repr=False, eq=False).__dataclass_fields__

    @property
    def complexity(self):
        return self._complexity

    @property
    def delta_prime(self):
        return self._told()[3]

    def __reduce__(self):
        return stored_answer, (self._value, self._complexity, self._n_queries, self._told())


def stored_answer(double value, double complexity, int64_t n_queries, tuple told):
    """A RadaBoundAnswer of which it is known what its rule said."""
    return _make_answer(value, complexity, n_queries, False, told)


cdef RadaBoundAnswer _make_answer(double value, double complexity, int64_t n_queries,
                                  bint declared, object rule):
    cdef RadaBoundAnswer answer = RadaBoundAnswer.__new__(RadaBoundAnswer)
    answer._value = value
    answer._complexity = complexity
    answer._n_queries = n_queries
    answer._declared = declared
    answer._rule = rule
    return answer
