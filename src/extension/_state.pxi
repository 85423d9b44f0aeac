# A guard's state: shared by threads and processes, and each change of it kept whole or not at all.

from cpython.pythread cimport PyThread_get_thread_ident

cdef long _n_forks = 0  # between the first import and this process: cheaper than os.getpid()
cdef unsigned long _forker = 0  # the thread that made this process, and is its first


def _count_fork():
    global _n_forks, _forker
    _n_forks += 1
    _forker = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def n_forks():
    """How often this process's line has forked: what was made at another number is a copy."""
    return _n_forks


cdef class SharedState:
    """What queries change, behind one lock: each change is kept whole, or not at all.

    `GuardCore` is one, and so is every mechanism.  With a ledger (`_keep`) a change begins with
    what others have committed since, and no answer leaves before the state it leads to is committed.

    A subclass in Python writes its state as an array of int64 (`_lay_out`), goes on from one
    (`_take_over`), and changes itself in functions that it gives to `_change`.
    """

    cdef readonly QuickLock _lock
    cdef public bint _halted, _retired
    cdef long born
    cdef object ledger
    cdef object before  # the state at the start of a change, until that is kept or undone

    def __cinit__(self, *args, **kwargs):
        self._lock = QuickLock()
        self.born = _n_forks

    # the four below are called under the lock

    cdef object _written(self):
        return self._lay_out()

    cdef int _read(self, progress) except -1:
        self._take_over(progress)
        return 0

    cdef object _copied(self):
        return self._written()

    cdef int _put_back(self, before) except -1:
        """May be broken off by Ctrl-C, and is then done again."""
        return self._read(before)

    # ---- reading -------------------------------------------------------------------------

    @property
    def halted(self):
        """Whether a query has been withheld; it never turns False again."""
        self._refresh()
        return self._halted

    def _progress(self):
        """All that queries change, int64: what `_resume` takes."""
        with self._lock:
            return self._written()

    def _resume(self, progress):
        """Goes on where `_progress` was taken."""
        with self._lock:
            self._read(progress)

    def _refresh(self):
        """Takes over what others have committed since; not within a call, which has it already."""
        if self._forked() or self.ledger is None and self.before is None or self._lock.is_mine():
            return
        outer = handled_exception()
        with self._lock:
            try:
                self._undo()
                if self.ledger is not None and not self._retired:
                    self._take(self.ledger.read())
            except BaseException as error:
                if self.ledger is not None:
                    self.ledger.rollback()  # so that it is read again
                forget_locals(error, outer)
                raise

    def _keep(self, ledger):
        """From now on each change is committed to `ledger` before its answer leaves."""
        with self._lock:
            self.ledger = ledger

    def _retire(self):
        """No query is answered any more."""
        with self._lock:
            self._undo()
            self._retired = True

    @cython.final
    cdef inline bint _forked(self) noexcept nogil:
        """Whether this is a copy made by os.fork."""
        return self.born != _n_forks

    @cython.final
    cdef inline bint _closed(self) noexcept nogil:
        """Whether no query may be answered: halted, or closed."""
        return self._halted or self._retired

    # ---- a change: under the lock ------------------------------------------------------------

    def _change(self, decide):
        """What `decide()` returns, with what it changes kept; None: no query may be answered."""
        if self._forked():
            return None
        with self._lock:
            try:
                if not self._begin():
                    return None
                self._remember()
                outcome = decide()
                self._commit()
                return outcome
            except BaseException:  # KeyboardInterrupt too: no answer has left yet
                self._undo()
                raise

    cdef bint _begin(self) except -1:
        """Starts a change; False: no query may be answered.  If it fails, `_undo`."""
        self._undo()  # a change whose undoing Ctrl-C broke off
        if self._closed():
            return False
        if self.ledger is not None:
            self._remember()
            self._join()
        return not self._halted

    cdef bint _join(self) except -1:
        """Shuts others out, and takes over what they have committed: True if there was anything.

        If that has halted, they are let in again.
        """
        cdef bint is_news = self._take(self.ledger.begin())
        if is_news and self._halted:
            self._leave()
        return is_news

    cdef int _leave(self) except -1:
        """Ends a change in which nothing changed."""
        if self.ledger is not None:
            self.ledger.rollback()
        self.before = None
        return 0

    cdef bint _take(self, progress) except -1:
        if progress is None:
            return False
        self._read(progress)
        return True

    cdef int _remember(self) except -1:
        if self.before is None:
            self.before = self._copied()
        return 0

    cdef int _commit(self) except -1:
        if self.ledger is not None:
            self.ledger.commit(self._written())
        self.before = None
        return 0

    cdef int _undo(self) except -1:
        """Back to where the change began; whoever comes next does it if Ctrl-C breaks into it."""
        if self.before is not None:
            self._put_back(self.before)
            self._leave()
        return 0
