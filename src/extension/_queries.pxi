# The call that handles one row.

cdef class SignedQueries:
    """Base class of guards that count signed sums: a Python frame around a query takes as long as
    half of it.

    A subclass sets `_core`, and `_rows` to the holdout's labels in the forms in which predictions
    came so far, or to None where it is asked about losses.  `_match` returns predictions and their
    labels as `GuardCore` takes them, `_refuse` raises why a row is not answered.  Where `_logs` is
    set `_log` is called with each answer.
    """

    cdef public GuardCore _core
    cdef public LabelRows _rows
    cdef public bint _logs

    def query(self, y_pred):
        """Return the mean loss of one model, if it can still be vouched for.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predicted classes, in the order of the holdout's rows.  A guard made on `Losses`, or on
            a number of rows, takes the losses instead, in [0, 1] and of any bool, integer or float
            dtype.  `PackedLosses` are losses of 0 and 1 for every guard: of a guard made on labels
            they say which predictions are wrong.

        Returns
        -------
        RadaBoundAnswer

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not such an array; nothing has changed.
        RuntimeError
            In a process forked after the guard was made, once it was closed, or in the middle of
            another call on this very thread.
        """
        cdef GuardCore core = self._core
        cdef bint packed = type(y_pred) is PackedLosses
        answer = NotImplemented
        labels = None
        if core is not None:  # before what seals errors: it takes 5 ns
            if packed:
                if (<PackedLosses>y_pred).n_samples == store_of(core.signs).n_samples:
                    answer = core.at_once((<PackedLosses>y_pred).words, None, True)
            elif self._rows is None:
                answer = core.at_once(y_pred, None, False)
            else:
                labels = self._rows.find(y_pred, 1)
                if labels is not None:
                    answer = core.at_once(y_pred, labels, False)
            if answer is not NotImplemented and answer is not None and not self._logs:
                return answer
        outer = handled_exception()
        try:
            if answer is NotImplemented:
                if packed:
                    values = self._words_of(y_pred)
                elif labels is None and self._rows is not None:
                    values, labels = self._match(y_pred, 1)
                else:
                    values = y_pred
                with cython.nonecheck(True):
                    answer = core.counted(values, labels, packed)
            if answer is None:
                return self._refuse()
            if self._logs:
                self._log(answer)
            return answer
        except BaseException as error:
            forget_locals(error, outer)
            raise
