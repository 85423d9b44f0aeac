# What a thread of one call does.

@cython.final
cdef class _Task:
    """One thread's work: a segment through scan_rows, without the GIL.

    It and its segment keep all that it reads: Ctrl-C ends the call while threads are at work, and
    whoever asked may drop the guard then.
    """

    cdef loss_rows rows
    cdef object memory  # of the rows
    cdef _Run run

    @staticmethod
    cdef _Task of(loss_rows *rows, object memory, _Run run):
        cdef _Task task = _Task.__new__(_Task)
        task.rows = rows[0]
        task.memory = memory
        task.run = run
        return task

    def __call__(self, _Segment segment):
        segment.scratch.work.rows = &self.rows
        segment.scratch.work.state = &segment.state
        segment.scratch.work.totals = self.run.totals
        with nogil:
            scan_rows(&segment.scratch.work, segment.first, segment.last, &segment.verdict)
        segment.at_work.release()
