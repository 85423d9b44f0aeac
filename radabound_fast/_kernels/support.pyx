"""What other modules stand on: tracebacks without variables, a lock, shared state, open files."""

import functools
import os

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint64_t

# ---- what an exception keeps of the frames that it left: names and lines, nothing else -----------

cdef int forget_locals(error, outer) except -1:
    """Clears the local variables of the frames that `error` has left, and what led to it.

    They hold labels, losses and means, and a traceback keeps them alive.  `outer` is what was being
    handled when the library was entered: that is not ours.
    """
    cdef set done = {id(outer), id(None)}
    cdef list left = [error]
    while left:
        error = left.pop()
        if id(error) in done:
            continue
        done.add(id(error))
        left += [error.__cause__, error.__context__]
        trace = error.__traceback__
        while trace is not None:
            try:
                trace.tb_frame.clear()
            except RuntimeError:  # one that is at work: it has not been left
                pass
            trace = trace.tb_next
    return 0


def sealed(function):
    """The function as it is, except that no traceback tells what it worked on.

    The frames of a compiled function show no variables, so that what calls this one shows none of
    its arguments, and those of the functions that it calls are cleared.
    """
    @functools.wraps(function)
    @cython.binding(True)  # a method, where the function is one
    def call(*args, **kwargs):
        outer = handled_exception()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if type(error) is TypeError and error.__traceback__.tb_next is None:  # never entered
                error.args = (f"{error}: it is {_written_call(function)}",)
            forget_locals(error, outer)
            raise
    return call


def _written_call(function):
    """How a method is called: its name, and its parameters without types."""
    import inspect  # which loads much

    _, *parameters = inspect.signature(function).parameters.values()
    bare = inspect.Signature([one.replace(annotation=one.empty) for one in parameters])
    return f"{function.__name__}{bare}"


# ---- forks ---------------------------------------------------------------------------------------

def _count_fork():
    global fork_count, forker
    fork_count += 1
    forker = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def n_forks():
    """Number of forks that led to this process: an object made at another number is a copy."""
    return fork_count  # cheaper than os.getpid()


# ---- one thread at a time ------------------------------------------------------------------------

cdef extern from "radabound_fast/_kernels/quick_lock.h":
    bint quick_lock_new(quick_lock *)
    void quick_lock_free(quick_lock *)


def broken_into(what):
    """The error of a call that breaks into another one of the same thread: to wait would be for ever."""
    return RuntimeError(
        f"{what} is in the middle of a call on this very thread, which a signal handler, a "
        "destructor, a callback or a trace function has broken into: try again when that call is "
        "done; halted and n_answered may be read"
    )


cdef int raise_broken_into() except -1:
    raise broken_into("this guard")


cdef class QuickLock:
    """A lock: ``with lock:``, or `take` and `end` where the 100 ns of that would count.

    To wait for another thread does not ignore Ctrl-C.  Taken again by the thread that has it, it
    is a RuntimeError: to wait would be for ever.
    """

    def __cinit__(self):
        if not quick_lock_new(&self.lock):
            raise MemoryError

    def __dealloc__(self):
        quick_lock_free(&self.lock)

    def __enter__(self):
        self.take()

    def __exit__(self, *_):
        self.end()


# ---- a guard's state: each change of it is kept whole, or not at all -----------------------------

cdef class SharedState:
    """What queries change, behind one lock: each change is kept whole, or not at all.

    `GuardCore` is one, and so is the `Progress` of a guard in Python.  With a ledger (`keep_in`) a
    change begins with what others have committed since, and no answer leaves before the state it
    leads to is committed.

    A subclass in Python writes its state as an array of int64 (`_lay_out`), goes on from one
    (`_take_over`), and changes itself in functions that it gives to `change`.
    """

    def __cinit__(self, *args, **kwargs):
        self.lock = QuickLock()
        self.born = fork_count

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
        self.refresh()
        return self.has_halted

    def progress(self):
        """All that queries change, int64: what `resume` takes."""
        with self.lock:
            return self._written()

    def resume(self, progress):
        """Goes on where `progress` was taken."""
        with self.lock:
            self._read(progress)

    def refresh(self):
        """Takes over what others have committed since; not within a call, which has it already."""
        if self._forked() or self.ledger is None and self.before is None or self.lock.is_mine():
            return
        outer = handled_exception()
        self.lock.take()
        try:
            self._undo()
            if self.ledger is not None and not self.retired:
                self._take(self.ledger.read())
        except BaseException as error:
            if self.ledger is not None:
                self.ledger.rollback()  # so that it is read again
            forget_locals(error, outer)
            raise
        finally:
            self.lock.end()

    def keep_in(self, ledger):
        """From now on each change is committed to `ledger` before its answer leaves."""
        with self.lock:
            self.ledger = ledger

    def retire(self):
        """No query is answered any more."""
        with self.lock:
            self._undo()
            self.retired = True

    # ---- a change: under the lock ------------------------------------------------------------

    def change(self, decide):
        """Return `decide()`, with what it changes committed; None: no query may be answered."""
        if self._forked():
            return None
        self.lock.take()
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
        finally:
            self.lock.end()

    cdef bint _begin(self) except -1:
        """Starts a change; False: no query may be answered.  If it fails, `_undo`."""
        self._undo()  # a change whose undoing Ctrl-C broke off
        if self._closed():
            return False
        if self.ledger is not None:
            self._remember()
            self._join()
        return not self.has_halted

    cdef bint _join(self) except -1:
        """Shuts others out, and takes over what they have committed: True if there was anything.

        If that has halted, they are let in again.
        """
        cdef bint is_news = self._take(self.ledger.begin())
        if is_news and self.has_halted:
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


# ---- whether names still are those of the files that they were -----------------------------------

cdef extern from *:
    """
    #ifdef _WIN32 /* where os.stat finds inodes, and C's own stat does not */
    static int is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links)
    {
        (void)name, (void)inode, (void)device, (void)n_links;
        return 0;
    }
    #else
    #include <sys/stat.h>
    static int is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links)
    {
        struct stat found;
        return stat(name, &found) == 0 && (uint64_t)found.st_ino == inode &&
               (uint64_t)found.st_dev == device && (uint64_t)found.st_nlink == n_links;
    }
    #endif
    """
    bint is_file(const char *name, uint64_t inode, uint64_t device, uint64_t n_links) noexcept nogil


def are_files(list files not None):
    """Whether all names still are those of their files.

    `files` are tuples of a name, bytes, and what `os.stat` found: st_ino, st_dev and st_nlink,
    modulo 2**64.  False may also mean that nobody knows: `os.stat`, which takes twice as long,
    tells.
    """
    cdef const char *name
    cdef uint64_t inode, device, n_links
    cdef bint same
    for name, inode, device, n_links in files:
        with nogil:
            same = is_file(name, inode, device, n_links)
        if not same:
            return False
    return True
