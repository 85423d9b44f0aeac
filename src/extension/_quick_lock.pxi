# One thread at a time.

cdef extern from "extension/quick_lock.h":
    struct quick_lock:
        pass
    bint quick_lock_new(quick_lock *)
    void quick_lock_free(quick_lock *)
    void quick_lock_take(quick_lock *) noexcept
    void quick_lock_end(quick_lock *) noexcept


@cython.final
@cython.no_gc
cdef class _QuickLock:
    """A lock: ``with turn:``, or `take` and `end` where the two calls of that would count."""

    cdef quick_lock lock

    def __cinit__(self):
        if not quick_lock_new(&self.lock):
            raise MemoryError

    def __dealloc__(self):
        quick_lock_free(&self.lock)

    cdef inline void take(self) noexcept:
        quick_lock_take(&self.lock)

    cdef inline void end(self) noexcept:
        quick_lock_end(&self.lock)

    def __enter__(self):
        self.take()

    def __exit__(self, *_):
        self.end()
