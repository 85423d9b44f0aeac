# One thread at a time.

cdef extern from "turn.h":
    struct turn:
        pass
    bint turn_new(turn *)
    void turn_free(turn *)
    void turn_take(turn *) noexcept
    void turn_end(turn *) noexcept


@cython.final
@cython.no_gc
cdef class _Turn:
    """A lock: ``with turn:``, or `take` and `end` where the two calls of that would count."""

    cdef turn turn

    def __cinit__(self):
        if not turn_new(&self.turn):
            raise MemoryError

    def __dealloc__(self):
        turn_free(&self.turn)

    cdef inline void take(self) noexcept:
        turn_take(&self.turn)

    cdef inline void end(self) noexcept:
        turn_end(&self.turn)

    def __enter__(self):
        self.take()

    def __exit__(self, *_):
        self.end()
