"""Rows of losses into the extremes of their studentised sums, on one thread or several."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.stddef cimport ptrdiff_t

from radabound_fast._kernels.c_sources cimport (
    LANES, SLICED_MOST_INTO, SLICED_MOST_SAMPLES, instruction_set, loss_rows, sliced_pays,
    studentise_rows, studentised,
)
from radabound_fast._kernels.rows cimport (
    SignStore, SlicedPlan, Worker, as_rows, chosen, raise_unreadable, run_workers, store_of,
)

cnp.import_array()

# between two looks at Ctrl-C, in words times strips: some hundredths of a second
cdef ptrdiff_t SLAB_CELLS = 1 << 28


cdef class StudentisedScan:
    """The signs, and their tables for blocks from the first large call on."""

    cdef readonly SignStore signs
    cdef const instruction_set *set
    cdef SlicedPlan plan

    def __cinit__(self, SignStore signs not None):
        self.signs = signs
        self.set = chosen

    @property
    def n_lanes(self):
        """The length of arrays that have a number for each vector: whole strips."""
        return self.signs.n_lanes()

    def update(self, rows, into, *, bint packed, int n_threads=1):
        """Widens extremes by rows of losses; an error leaves them as they were.

        `rows` are of shape (k, n_samples), or with `packed` uint64 (k, n_words).  `into` has one or
        two tuples of six contiguous float64 arrays: ``offsets, sign_sums, highest, lowest`` of
        n_lanes each, of which the last two are widened, and ``means, scales`` of the k rows.
        Errors are those of `GuardCore.query_many`, or for arrays of another shape.
        """
        cdef loss_rows losses
        cdef object values = as_rows(&losses, rows, None, self.set.packer, 2,
                                     store_of(self.signs).n_samples, packed)
        cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0), row = 0, length, block = 1
        cdef SlicedPlan plan = self._plan_for(&losses, n_rows)
        cdef _Part part
        cdef list parts
        if not 1 <= len(into) <= SLICED_MOST_INTO:
            raise ValueError("into must be one way or two")
        if n_rows == 0:
            return
        if plan is not None:
            block = plan.kernel.block_rows
        n_threads = max(1, min(n_threads, n_rows // block))
        length = SLAB_CELLS // (store_of(self.signs).n_words * store_of(self.signs).n_strips)
        length = max(1, min(length, (n_rows - 1) // n_threads + 1) // block) * block
        parts = [_Part.of(self, &losses, values, min(n_rows, length + block), plan, into)
                 for _ in range(n_threads)]
        while row < n_rows:
            for part in parts:
                part.first, part.last = row, min(n_rows, row + length)
                row = part.last
            run_workers(parts)
            for part in parts:
                if part.stop < part.last:
                    raise_unreadable(&losses, store_of(self.signs), part.stop,
                                     part.scratch.chunk.bad_sample)
            PyErr_CheckSignals()
        for part in parts:
            for ours, theirs in zip(into, part.into):
                np.maximum(ours[2], theirs[2], out=ours[2])
                np.minimum(ours[3], theirs[3], out=ours[3])

    cdef SlicedPlan _plan_for(self, const loss_rows *rows, ptrdiff_t n_rows):
        """The plan, made if so many rows go through faster as blocks; else None."""
        if (rows.may_be_real or store_of(self.signs).n_samples > SLICED_MOST_SAMPLES
                or not sliced_pays(self.set.kernel, self.set.sliced, store_of(self.signs), rows,
                                   n_rows)):
            return None
        if self.plan is None:
            self.plan = SlicedPlan.of(self.set, self.signs)
        return self.plan


def raise_maxima(cnp.ndarray maxima not None, cnp.ndarray sums not None,
                 cnp.ndarray others not None, cnp.ndarray means not None,
                 cnp.ndarray scales not None, cnp.ndarray sign_sums not None):
    """Raises the maxima of one model's studentised differences by those from further models.

    `maxima`, float64 (n_lanes,), is changed in place; `sums` and `sign_sums` are the model's signed
    sums and those of the signs, `others`, (k, n_lanes), the other models', each row contiguous.
    `means` and `scales`, (k,), are those of the differences, the model's loss less the other's; a
    scale of 0 leaves a model out.
    """
    cdef ptrdiff_t n = cnp.PyArray_DIM(maxima, 0), k = cnp.PyArray_DIM(means, 0)
    if (n % LANES or cnp.PyArray_NDIM(others) != 2 or cnp.PyArray_DIM(others, 0) != k
            or cnp.PyArray_DIM(others, 1) != n or cnp.PyArray_TYPE(others) != cnp.NPY_DOUBLE
            or k > 0 and cnp.PyArray_STRIDE(others, 1) != 8):
        raise ValueError(f"others must be {k} contiguous rows of {n} float64, whole strips")
    cdef double *most = doubles(maxima, n)
    cdef double *ours = doubles(sums, n)
    cdef double *signs = doubles(sign_sums, n)
    cdef double *mean = doubles(means, k)
    cdef double *scale = doubles(scales, k)
    cdef const double *theirs = <const double *>cnp.PyArray_DATA(others)
    cdef ptrdiff_t stride = cnp.PyArray_STRIDE(others, 0) // 8
    cdef const instruction_set *now = chosen
    with nogil:
        now.sliced.raise_maxima(ours, theirs, stride, k, mean, scale, signs, n, most)


@cython.final
cdef class _Part(Worker):
    """Some rows into extremes of its own."""

    cdef studentised ways[SLICED_MOST_INTO]
    cdef list into
    cdef int n_into
    cdef ptrdiff_t stop

    @staticmethod
    cdef _Part of(StudentisedScan scan, const loss_rows *rows, object memory, ptrdiff_t n_rows,
                  SlicedPlan plan, object into):
        cdef _Part self = _Part()
        cdef ptrdiff_t n_lanes = scan.n_lanes, k = cnp.PyArray_DIM(memory, 0)
        self.prepare(scan.set, scan.signs, rows, memory, n_rows, plan)
        self.into, self.n_into = [], len(into)
        for i, (offsets, sign_sums, highest, lowest, means, scales) in enumerate(into):
            way = (offsets, sign_sums, highest.copy(), lowest.copy(), means, scales)
            self.into.append(way)
            self.ways[i].offsets = doubles(offsets, n_lanes)
            self.ways[i].sign_sums = doubles(sign_sums, n_lanes)
            self.ways[i].highest = doubles(way[2], n_lanes)
            self.ways[i].lowest = doubles(way[3], n_lanes)
            self.ways[i].means = doubles(means, k)
            self.ways[i].scales = doubles(scales, k)
        return self

    cdef void judge(self) noexcept nogil:
        self.stop = studentise_rows(&self.scratch.work, self.first, self.last, self.ways,
                                    self.n_into)


cdef double *doubles(cnp.ndarray values, ptrdiff_t length) except NULL:
    """The numbers of a contiguous float64 array of this length."""
    if (cnp.PyArray_TYPE(values) != cnp.NPY_DOUBLE or cnp.PyArray_NDIM(values) != 1
            or cnp.PyArray_DIM(values, 0) != length or not cnp.PyArray_ISCARRAY_RO(values)):
        raise ValueError(f"arrays must be contiguous float64 of length {length}")
    return <double *>cnp.PyArray_DATA(values)
