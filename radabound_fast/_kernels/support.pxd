"""What `guard` and `search` take from `support`."""

cimport cython


cdef extern from *:
    """
    /* The exception that is being handled; None if there is none. */
    static CYTHON_UNUSED PyObject *handled_exception(void)
    {
        PyObject *found = PyErr_GetHandledException();
        return found ? found : Py_NewRef(Py_None);
    }
    """
    object handled_exception()

cdef int forget_locals(error, outer) except -1


cdef extern from "radabound_fast/_kernels/quick_lock.h":
    struct quick_lock:
        pass
    bint quick_lock_is_mine(quick_lock *) noexcept
    int quick_lock_take(quick_lock *, long n_forks, unsigned long forker) except? -1
    void quick_lock_end(quick_lock *) noexcept

cdef long fork_count  # forks between the first import and this process
cdef unsigned long forker  # the thread that made this process, and is its first

cdef int raise_broken_into() except -1


@cython.final
@cython.no_gc
cdef class QuickLock:
    cdef quick_lock lock

    cdef inline int take(self) except -1:
        if quick_lock_take(&self.lock, fork_count, forker):
            raise_broken_into()
        return 0

    cdef inline void end(self) noexcept:
        quick_lock_end(&self.lock)

    cdef inline bint is_mine(self) noexcept:
        return quick_lock_is_mine(&self.lock)


cdef class SharedState:
    cdef readonly QuickLock lock
    cdef public bint has_halted, retired
    cdef long born
    cdef object ledger
    cdef object before  # the state at the start of a change, until that is kept or undone

    @cython.final
    cdef inline bint _forked(self) noexcept nogil:
        """Whether this is a copy made by os.fork."""
        return self.born != fork_count

    @cython.final
    cdef inline bint _closed(self) noexcept nogil:
        """Whether no query may be answered: halted, or left to be gone on with elsewhere."""
        return self.has_halted or self.retired

    # called under the lock
    cdef object _written(self)
    cdef int _read(self, progress) except -1
    cdef object _copied(self)
    cdef int _put_back(self, before) except -1
    cdef bint _begin(self) except -1
    cdef bint _join(self) except -1
    cdef int _leave(self) except -1
    cdef bint _take(self, progress) except -1
    cdef int _remember(self) except -1
    cdef int _commit(self) except -1
    cdef int _undo(self) except -1
