# What a guard answers.

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
    number : int
        The answer's number: how many answers the guard has given, this one included.

    Notes
    -----
    ``float(answer)`` is its value.  ``answer.to_dict()`` is a dict of all its fields, in a fixed
    order: ``pandas.DataFrame([answer.to_dict() for answer in answers])`` has one row an answer.
    """

    # RadaBoundAnswer's own: only a base class has a free list, for objects of its very size
    cdef double _value, _complexity
    cdef int64_t _number
    cdef bint _declared  # whether the losses are 0 or 1 by their type, and not by chance
    # HaltingRule; or what it said once it was asked: low, high, half_width, delta_prime
    cdef object _rule

    fields = ("value", "low", "high", "half_width", "number")

    cdef tuple _limits(self):
        """Low, high, half_width, delta_prime."""
        if type(self._rule) is tuple:
            return self._rule
        rule = self._rule
        low, high = rule.interval(self._value, self._number, self._declared)
        half_width = rule.half_width(self._value, low, high)
        self._rule = low, high, half_width, rule.delta_prime(self._complexity)
        return self._rule

    @property
    def value(self):
        return self._value

    @property
    def number(self):
        return self._number

    @property
    def low(self):
        return self._limits()[0]

    @property
    def high(self):
        return self._limits()[1]

    @property
    def half_width(self):
        return self._limits()[2]

    def __float__(self):
        return self.value

    def to_dict(self):
        """All fields by name, as a new dict."""
        return {name: getattr(self, name) for name in self.fields}

    def __repr__(self):
        values = self.to_dict()
        del values["half_width"]  # low and high show it
        shown = [f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
                 for name, value in values.items()]
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
    number : int
        How many answers the guard has given, this one included.
    complexity : float
        Monte-Carlo Rademacher complexity of all queries so far, in units of loss.  nan in an
        answer of `query_many` without ``trace=True``.
    delta_prime : float
        What the guard's tail bound gives at that complexity, clipped at 1.  nan where the bound
        has no tail.
    """

    fields = (*Answer.fields, "complexity", "delta_prime")

    @property
    def complexity(self):
        return self._complexity

    @property
    def delta_prime(self):
        return self._limits()[3]

    def __reduce__(self):
        return stored_answer, (self._value, self._complexity, self._number, self._limits())


def stored_answer(double value, double complexity, int64_t number, tuple limits):
    """A RadaBoundAnswer of which it is known what its rule said."""
    return _make_answer(value, complexity, number, False, limits)


cdef RadaBoundAnswer _make_answer(double value, double complexity, int64_t number,
                                  bint declared, object rule):
    cdef RadaBoundAnswer answer = RadaBoundAnswer.__new__(RadaBoundAnswer)
    answer._value = value
    answer._complexity = complexity
    answer._number = number
    answer._declared = declared
    answer._rule = rule
    return answer
