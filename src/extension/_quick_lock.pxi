# One thread at a time.

cdef extern from "extension/quick_lock.h":
    struct quick_lock:
        pass
    bint quick_lock_new(quick_lock *)
    void quick_lock_free(quick_lock *)
    bint quick_lock_is_mine(quick_lock *) noexcept
    int quick_lock_take(quick_lock *, long n_forks, unsigned long forker) except? -1
    void quick_lock_end(quick_lock *) noexcept


def broken_into(what):
    """The error of a call that breaks into another one of the same thread: to wait would be for ever."""
    return RuntimeError(
        f"{what} is in the middle of a call on this very thread, which a signal handler, a "
        "destructor, a callback or a trace function has broken into: try again when that call is "
        "done; halted and n_answered may be read"
    )


@cython.final
@cython.no_gc
cdef class QuickLock:
    """A lock: ``with lock:``, or `take` and `end` where the two calls of that would count.

    To wait for another thread does not ignore Ctrl-C.  Taken again by the thread that has it, it
    is a RuntimeError: to wait would be for ever.
    """

    cdef quick_lock lock

    def __cinit__(self):
        if not quick_lock_new(&self.lock):
            raise MemoryError

    def __dealloc__(self):
        quick_lock_free(&self.lock)

    cdef inline int take(self) except -1:
        if quick_lock_take(&self.lock, _n_forks, _forker):
            raise broken_into("this guard")
        return 0

    cdef inline void end(self) noexcept:
        quick_lock_end(&self.lock)

    cdef inline bint is_mine(self) noexcept:
        return quick_lock_is_mine(&self.lock)

    def __enter__(self):
        self.take()

    def __exit__(self, *_):
        self.end()
