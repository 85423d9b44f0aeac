# A binomial tail over its first term, which takes most of the time of an exact limit.

cdef extern from *:
    """
    #include <stddef.h>

    #define TAILS_AT_ONCE 128 /* which stay in the nearest cache */

    /* The continued fraction of Abramowitz and Stegun (1964), 26.5.9, from its end, for counts side
     * by side: a division waits for the one before it, but not for its neighbours.
     */
    static void few_tails(ptrdiff_t n, const double *__restrict c, double m,
                          const double *__restrict odds, int terms, double *__restrict t)
    {
        for (ptrdiff_t i = 0; i < n; i++)
            t[i] = c[i] + (terms - 1.0);
        for (int term = terms; term > 1; term--) {
            double j = term / 2, odd = (m + j) * j;
            if (term % 2)
                for (ptrdiff_t i = 0; i < n; i++)
                    t[i] = odd * odds[i] / t[i] + (c[i] + (term - 2.0));
            else
                for (ptrdiff_t i = 0; i < n; i++)
                    t[i] = (c[i] + (j - 1.0)) * (c[i] + (j - 1.0 - m)) * odds[i] / t[i]
                        + (c[i] + (term - 2.0));
        }
        for (ptrdiff_t i = 0; i < n; i++)
            t[i] = c[i] / t[i];
    }

    static void tails_over_first(ptrdiff_t n, const double *c, double m, const double *odds,
                                 int terms, double *t)
    {
        for (ptrdiff_t i = 0; i < n; i += TAILS_AT_ONCE) {
            ptrdiff_t left = n - i;
            few_tails(left < TAILS_AT_ONCE ? left : TAILS_AT_ONCE, c + i, m, odds + i, terms,
                      t + i);
        }
    }
    """
    void tails_over_first(ptrdiff_t n, const double *c, double m, const double *odds, int terms,
                          double *t) noexcept nogil


def tail_over_first(c, double m, odds, int terms):
    """``P(Bin(m, q) >= c) / P(Bin(m, q) = c)`` at odds q/(1-q) of at most c/(m-c); rounded up.

    Parameters
    ----------
    c, odds : float or ndarray of float64, shape (n,)
        0 < c < m.
    m : float
    terms : int
        Of the continued fraction.  All its denominators are positive, and so 2 (mod 4) of them
        give too much (Result 16 of docs/explanation/theory.md); 2 give the bound by a geometric series.

    Returns
    -------
    float or ndarray of float64, shape (n,)
    """
    cdef double count, share, tail
    cdef cnp.ndarray counts, shares, tails
    cdef ptrdiff_t n
    if isinstance(odds, float):
        count, share = c, odds
        tails_over_first(1, &count, m, &share, terms, &tail)
        return tail
    counts = np.ascontiguousarray(c, np.float64)
    shares = np.ascontiguousarray(odds, np.float64)
    if counts.ndim != 1 or c.shape != odds.shape:
        raise ValueError("c and odds must be of one dimension and of equal length")
    n = len(counts)
    tails = np.empty(n)
    tails_over_first(n, <const double *>cnp.PyArray_DATA(counts), m,
                     <const double *>cnp.PyArray_DATA(shares), terms,
                     <double *>cnp.PyArray_DATA(tails))
    return tails
