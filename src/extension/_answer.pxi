# What a guard answers.

@cython.final
@cython.no_gc  # nothing that its tail leads to keeps answers, so that there is no cycle
@cython.freelist(64)
cdef class Answer:
    """A mean that the holdout could still afford, and what it is good for.

    Attributes
    ----------
    value : float
        Mean loss of the query: one float64 division, sum / n_samples.
    half_width : float
        The guard's epsilon: how far `value` may be from the true mean.
    n_queries : int
        Answers given so far, this one counted.
    complexity : float
        Monte-Carlo Rademacher complexity of all queries so far, in units of loss.
    delta_prime : float
        What the guard's tail bound gives at that complexity, clipped at 1; computed when asked
        for.  nan where the bound has no tail.
    """

    cdef readonly double value, half_width, complexity
    cdef readonly int64_t n_queries
    cdef object _tail  # complexity -> delta_prime

    @property
    def delta_prime(self):
        return self._tail(self.complexity)

    def __repr__(self):
        return (f"Answer(value={self.value!r}, half_width={self.half_width!r}, "
                f"n_queries={self.n_queries}, complexity={self.complexity!r})")

    def __reduce__(self):
        return _stored_answer, (self.value, self.half_width, self.complexity, self.n_queries,
                                self.delta_prime)


def _stored_answer(value, half_width, complexity, n_queries, delta_prime):
    return _make_answer(value, half_width, complexity, n_queries, lambda _: delta_prime)


cdef Answer _make_answer(double value, double half_width, double complexity, int64_t n_queries,
                         object tail):
    cdef Answer answer = Answer.__new__(Answer)
    answer.value = value
    answer.half_width = half_width
    answer.complexity = complexity
    answer.n_queries = n_queries
    answer._tail = tail
    return answer
