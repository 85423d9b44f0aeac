# What an exception keeps of the frames that it went through: names and lines, and nothing else.

import functools

cdef extern from *:
    """
    /* None if there is none. */
    static PyObject *handled_exception(void)
    {
        PyObject *found = PyErr_GetHandledException();
        return found ? found : Py_NewRef(Py_None);
    }
    """
    object handled_exception()


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
    def call(*args, **kwargs):
        outer = handled_exception()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            forget_locals(error, outer)
            raise
    return call
