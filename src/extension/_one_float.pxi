# NumPy's functions of one float, to the last bit as of arrays, without the making of arrays.

@cython.final
cdef class OneFloat:
    """A ufunc of one float64: ten times as fast as to call that, and the same loop.

    The C library's functions, which `math` has, differ from NumPy's in last bits.

    Parameters
    ----------
    function : ufunc
        With a loop from float64 to float64, as `numpy.exp`.
    """

    cdef cnp.PyUFuncGenericFunction _loop
    cdef void *_data
    cdef object _function  # which owns the loop

    def __cinit__(self, cnp.ufunc function not None):
        cdef int i
        self._function = function
        for i in range(function.ntypes if function.nargs == 2 else 0):
            if function.types[2 * i] == function.types[2 * i + 1] == cnp.NPY_DOUBLE:
                self._loop = function.functions[i]
                self._data = function.data[i]
                return
        raise ValueError(f"function must take a float64, got {function!r}")

    def __call__(self, double x):
        cdef double y
        cdef char *both[2]
        cdef cnp.npy_intp n = 1
        cdef cnp.npy_intp steps[2]
        both[0], both[1] = <char *>&x, <char *>&y
        steps[0] = steps[1] = sizeof(double)
        self._loop(both, &n, steps, self._data)
        return y
