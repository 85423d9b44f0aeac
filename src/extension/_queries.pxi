# The calls that handle one row.

cdef class LossQueries:
    """Base class of `RadaBound`: a frame of Python around these calls takes as long as half a row.

    A subclass sets `_core`, and says why a row is not answered (`_refuse`, which raises).  If it
    sets `_logs`, its `_noted` gets every answer before it is returned, and returns it.
    """

    cdef public GuardCore _core
    cdef public bint _logs  # every answer: `_noted` passes it on

    def query(self, losses, *, guess=None):
        """Mean of a loss vector, if it can still be vouched for.

        Parameters
        ----------
        losses : array_like, shape (n_samples,)
            Losses in [0, 1] of any bool, integer or float dtype.
        guess : object, optional
            Ignored: the mechanisms that share this protocol need one.

        Returns
        -------
        RadaBoundAnswer

        Raises
        ------
        HoldoutExhausted
            This query's mean is withheld, or an earlier one's was.
        TypeError, ValueError
            Not a vector of losses; nothing has changed.
        RuntimeError
            In a process forked after the guard was made, once it was saved or closed, or in the
            middle of another call on this very thread.
        """
        return self._one(losses, None, False)

    def query_packed(self, words, *, guess=None):
        """`query` for losses of 0 and 1 that are bits already.

        Parameters
        ----------
        words : ndarray of uint64, shape (ceil(n_samples / 64),)
            As `pack_losses` makes them: sample i is bit i % 64 of word i // 64, bits past
            n_samples are zero.
        guess : object, optional
            Ignored.
        """
        return self._one(words, None, True)

    @cython.final
    cdef object _one(self, values, labels, bint packed):
        cdef GuardCore core = self._core
        answer = NotImplemented
        if core is not None:  # before what seals errors: it takes 5 ns
            answer = core.at_once(values, labels, packed)
            if answer is not NotImplemented and answer is not None and not self._logs:
                return answer
        outer = handled_exception()
        try:
            if answer is NotImplemented:
                with cython.nonecheck(True):
                    answer = core.counted(values, labels, packed)
            if answer is None:
                return self._refuse()
            return self._noted(answer) if self._logs else answer
        except BaseException as error:
            forget_locals(error, outer)
            raise


cdef object FIRST_RUN = 1


cdef class PredictionQueries:
    """Base class of `Holdout`, for the same reason.

    A subclass sets `_rows`, the labels in the forms that predictions came in so far, and `_asked`
    if its guard is a `RadaBound`; `_query` answers, or raises, where this does not.
    """

    cdef public LabelRows _rows
    cdef public LossQueries _asked

    def query(self, y_pred, *, guess=None, key=None, rerun=1):
        """Share of wrong predictions, if the guard still answers.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predicted classes, by position.
        guess : float, optional
            For mechanisms that need one: the expected error rate, from data independent of the
            holdout.
        key : object, optional
            For a `DeclaredSearch`: which model it is, in its space.
        rerun : int, default 1
            The same: which training of that model.

        Returns
        -------
        Answer
            The guard's.

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not predictions of these classes; nothing has changed.
        """
        cdef LabelRows rows = self._rows
        cdef LossQueries asked = self._asked
        # what it asks of other guards is refused by `_query`; an int of 1 is one object
        if rows is not None and asked is not None and key is None and rerun is FIRST_RUN:
            row = rows.find(y_pred, 1)
            if row is not None and asked._core is not None:
                return asked._one(y_pred, row, False)
        outer = handled_exception()
        try:
            return self._query(y_pred, guess, key, rerun)
        except BaseException as error:
            forget_locals(error, outer)
            raise
