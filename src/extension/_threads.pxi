# What a thread of one call does.

@cython.final
cdef class _Task:
    """One thread's work: a segment through scan_rows, without the GIL.

    It keeps all that it reads: a second Ctrl-C ends the call while threads are at work.
    """

    cdef GuardCore owner
    cdef loss_rows rows
    cdef object memory  # of the rows
    cdef _Run run

    @staticmethod
    cdef _Task of(GuardCore owner, loss_rows *rows, object memory, _Run run):
        cdef _Task task = _Task.__new__(_Task)
        task.owner = owner
        task.rows = rows[0]
        task.memory = memory
        task.run = run
        return task

    def __call__(self, _Segment segment):
        cdef GuardCore owner = self.owner
        with nogil:
            scan_rows(owner.kernel, store_of(owner.signs), &self.rows, segment.first,
                      segment.last, &segment.state, &segment.scratch.chunk, segment.scratch.slices,
                      self.run.totals, NULL, &segment.verdict)
