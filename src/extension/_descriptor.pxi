# A file that is open as long as an object lives.

cdef extern from *:
    """
    #ifdef _WIN32
    #include <io.h>
    #define close_descriptor _close
    #else
    #include <unistd.h>
    #define close_descriptor close
    #endif
    """
    int close_descriptor(int number) noexcept nogil


cdef set _open_descriptors = set()  # the numbers that this process has to close


@cython.final
@cython.no_gc
cdef class Descriptor:
    """An open file's number, which is closed with this object, and in a child at once.

    To be freed runs no Python, unlike `weakref.finalize`: there Ctrl-C would be dropped, and might
    leave the file open.
    """

    cdef readonly int number
    cdef long born
    cdef bint is_mine  # False where not even __cinit__ was run: then the number is 0, standard input

    def __cinit__(self, int number):
        _open_descriptors.add(number)
        self.number, self.born, self.is_mine = number, _n_forks, True

    def __dealloc__(self):
        self.close()

    @property
    def closed(self):
        """Whether it is: by `close`, or because its parent has it."""
        return not self.is_mine or self.born != _n_forks

    cpdef close(self):
        """Close the file; again does nothing."""
        cdef int number = self.number
        if self.closed:
            return
        self.number, self.is_mine = -1, False
        _open_descriptors.discard(number)
        close_descriptor(number)


def _close_inherited():
    # a lock belongs to the open file, which parent and child share: a worker that outlives the
    # owner would keep it locked
    while _open_descriptors:
        close_descriptor(_open_descriptors.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
