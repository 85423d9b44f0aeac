"""Confidence limits: where the capital of bets is reached, and of gains by exact probabilities."""

import numpy as np

cimport numpy as cnp
from libc.math cimport ceil, exp, expm1, fabs, isnan, log, log1p, sqrt
from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport free

cnp.import_array()

cdef enum:
    MOST_BETS = 64
    MOST_STEPS = 100

cdef double ROUNDING = 2.0**-50  # more than rounding moves a term of the logarithm of a capital
cdef double NEAR = 2.0**-44  # of a limit: a step of Newton's method is no longer worth taking

# ---- cross-validation: bets that are fixed, since the truth is random ----------------------------

cdef double LARGEST_BET = 3.0
cdef double SHARE_OF_FIRST = 1.0 / 3.0
cdef double RATIO = 1.5
cdef double LEAST_NATS = 0.01  # where fewer are paid, bets are made as for these


cdef struct fold_bets:
    int n
    double nats
    double bet[MOST_BETS]
    double above[MOST_BETS]  # exp(bet) - 1
    double below[MOST_BETS]  # 1 - exp(-bet)
    double log_share[MOST_BETS]


cdef void make_bets(fold_bets *bets, double n_rows, double nats) noexcept nogil:
    """Bets for one fold of so many rows, from Hoeffding's, which has a third of the capital, on."""
    cdef double first = sqrt(8.0 * max(nats, LEAST_NATS) / n_rows), steps
    cdef int i
    steps = max(0.0, ceil(log(LARGEST_BET / first) / log(RATIO)))
    bets.n, bets.nats = min(MOST_BETS, 1 + <int>steps), nats
    for i in range(bets.n):
        bets.bet[i] = first * exp(i / max(1.0, steps) * log(LARGEST_BET / first))
        bets.above[i], bets.below[i] = expm1(bets.bet[i]), -expm1(-bets.bet[i])
        bets.log_share[i] = log((1.0 - SHARE_OF_FIRST) / (bets.n - 1)) if i else (
            log(SHARE_OF_FIRST) if bets.n > 1 else 0.0)


cdef double capital(const fold_bets *bets, double n_rows, double mean, double truth, bint is_low,
                    double *slope) noexcept nogil:
    """Logarithm of the capital against so small, or so large, a truth; rounded down."""
    cdef double logs[MOST_BETS]
    cdef double most = -1e300, total = 0.0, weighted = 0.0, share, change, worth
    cdef int i
    for i in range(bets.n):
        if is_low:
            logs[i] = bets.bet[i] * mean - log1p(truth * bets.above[i])
        else:
            logs[i] = -bets.bet[i] * mean - log1p(-truth * bets.below[i])
        logs[i] = n_rows * (logs[i] - ROUNDING * bets.bet[i] * (mean + truth)) + bets.log_share[i]
        most = max(most, logs[i])
    for i in range(bets.n):
        share = exp(logs[i] - most)
        change = (-bets.above[i] / (1.0 + truth * bets.above[i]) if is_low
                  else bets.below[i] / (1.0 - truth * bets.below[i]))
        total += share
        weighted += share * change
    slope[0] = n_rows * weighted / total
    return most + log(total)


cdef double fold_limit(const fold_bets *bets, double n_rows, double mean, bint is_low) noexcept nogil:
    """Where the capital is exp(nats).

    Its logarithm is convex in the truth, so that a step of Newton's method leaves the truth on the
    far side of the limit, wherever it starts.
    """
    cdef double end = 0.0 if is_low else 1.0, nats = bets.nats * (1.0 + ROUNDING), slope, step
    cdef double spread = sqrt(2.0 * (mean + nats / n_rows) * nats / n_rows)
    cdef double truth = max(0.0, mean - spread) if is_low else min(1.0, mean + spread)
    cdef int i
    if capital(bets, n_rows, mean, end, is_low, &slope) <= nats:
        return end
    for i in range(MOST_STEPS):
        step = (nats - capital(bets, n_rows, mean, truth, is_low, &slope)) / slope
        truth += step
        truth = max(truth, 0.0) if is_low else min(truth, 1.0)
        if i and fabs(step) <= NEAR * truth:
            break
    if is_low:
        return min(mean, truth * (1.0 - 4.0 * NEAR))
    return max(mean, min(1.0, truth * (1.0 + 4.0 * NEAR)))


def fold_limits(means, double n_rows, nats):
    """Limits of the truth of a cross-validation's models, rounded outwards: (lows, highs).

    `means`, in [0, 1], and `nats`, at least 0, are floats or float64 (n,), and so are the limits;
    `n_rows` are the rows of one fold, on average.
    """
    cdef fold_bets bets
    cdef double mean
    cdef const double *mean_of
    cdef const double *nats_of
    cdef double *low
    cdef double *high
    cdef cnp.ndarray values, prices, lows, highs
    cdef ptrdiff_t i, n
    if isinstance(means, float):
        mean = means
        make_bets(&bets, n_rows, nats)
        return fold_limit(&bets, n_rows, mean, True), fold_limit(&bets, n_rows, mean, False)
    values, prices = np.ascontiguousarray(means, np.float64), np.ascontiguousarray(nats, np.float64)
    if values.ndim != 1 or prices.ndim != 1 or len(values) != len(prices):
        raise ValueError("means and nats must be of one dimension and of equal length")
    n = len(values)
    lows, highs = np.empty(n), np.empty(n)
    mean_of = <const double *>cnp.PyArray_DATA(values)
    nats_of = <const double *>cnp.PyArray_DATA(prices)
    low, high = <double *>cnp.PyArray_DATA(lows), <double *>cnp.PyArray_DATA(highs)
    with nogil:
        for i in range(n):
            if i == 0 or nats_of[i] != bets.nats:
                make_bets(&bets, n_rows, nats_of[i])
            low[i] = fold_limit(&bets, n_rows, mean_of[i], True)
            high[i] = fold_limit(&bets, n_rows, mean_of[i], False)
    return lows, highs


# ---- betting on values: radabound_fast/_kernels/betting.h ----------------------------------------

cdef extern from "radabound_fast/_kernels/betting.h" nogil:
    ptrdiff_t share_values(const double *values, ptrdiff_t n, double *counts, double *sum)
    void put_in_order(const double *values, ptrdiff_t n, double nats, double *ordered,
                      double *stakes)
    void betting_limits_of(const double *counts, const double *ordered, const double *stakes,
                           ptrdiff_t n, double mean, double nats, double *low, double *high)
    double betting_capital_of(const double *counts, const double *ordered, const double *stakes,
                              ptrdiff_t n, double mu, double nats)
    const int BINS


def betting_limits(values, double nats):
    """Limits of the expectation of values in [0, 1], at least one, by `betting_interval`.

    Returns the place of a value outside [0, 1], -1 if there is none, and both limits.
    """
    cdef double low = 0.0, high = 1.0
    outside = bet(values, nats, -1.0, &low, &high)
    return outside, low, high


def betting_capital(values, double mu, double nats):
    """Logarithm of the capital against "the expectation is at most mu", by bets for so many nats.

    Returns the place of a value outside [0, 1], as `betting_limits`, and the capital, rounded down.
    """
    cdef double capital = 0.0
    outside = bet(values, nats, mu, &capital, NULL)
    return outside, capital


cdef ptrdiff_t bet(values, double nats, double mu, double *low, double *high) except -2:
    """Both limits, or in place of the first the capital against mu."""
    cdef cnp.ndarray array = np.ascontiguousarray(values, np.float64)
    cdef ptrdiff_t n = array.size, outside
    cdef cnp.ndarray ordered = np.empty(2 * n)
    cdef double counts[BINS + 1]
    cdef double total = 0.0
    cdef const double *first = <const double *>cnp.PyArray_DATA(array)
    cdef double *own = <double *>cnp.PyArray_DATA(ordered)
    if n == 0:
        raise ValueError("values must be at least one")
    with nogil:
        outside = share_values(first, n, counts, &total)
        if outside < 0:
            put_in_order(first, n, nats, own, own + n)
            if high == NULL:
                low[0] = betting_capital_of(counts, own, own + n, n, mu, nats)
            else:
                betting_limits_of(counts, own, own + n, n, min(1.0, total / n), nats, low, high)
    return outside


# ---- weighted means: the best of Chernoff's bounds over what the expectations may be -------------

cdef enum:
    MOST_STRATA = 128

cdef double MOST_EXPONENT = 600.0
cdef double SURE = 1.0 - 2.0**-40


cdef struct strata:
    int n
    double weight[MOST_STRATA]
    double count[MOST_STRATA]
    double log_weight[MOST_STRATA]


cdef double best_limit(const strata *s, double mean, double nats, double factor,
                       double *excess) noexcept nogil:
    """The best limit of Result 23 for one lambda; and mean less that of the tilted law.

    For each mu it is ``(lambda mean - nats - most(mu)) / mu``, where most sums the maxima over p.
    At the best mu it is ``sum of n a p``, and the left side of that, times mu, falls in mu.
    """
    cdef double over[MOST_STRATA]
    cdef double log_grown[MOST_STRATA]
    cdef double left = factor * mean - nats, price, p, most, share, curvature, above, tilted
    cdef double low = 0.0, high = 1e300
    cdef int i, step
    excess[0] = 1.0
    if left <= 0.0:
        return 0.0
    for i in range(s.n):
        over[i] = 1.0 / expm1(factor * s.weight[i])
        log_grown[i] = -log(over[i]) - s.log_weight[i]
    price = factor
    for step in range(MOST_STEPS):
        most = share = curvature = 0.0
        for i in range(s.n):
            p = 1.0 / (price * s.weight[i]) - over[i]
            if p >= 1.0:
                most += s.count[i] * (factor - price) * s.weight[i]
                share += s.count[i] * s.weight[i]
            elif p > 0.0:
                most += s.count[i] * (log_grown[i] - log(price) - 1.0
                                      + price * s.weight[i] * over[i])
                share += s.count[i] * s.weight[i] * p
                curvature += s.count[i]
        above = price * share + most - left  # which falls in the price, by its curvature / price
        if above >= 0.0:
            low = price
        else:
            high = price
        if fabs(above) <= 1e-13 * (left + 1.0) or high - low <= 1e-15 * high:
            break
        price = price * exp(above / curvature) if curvature > 0.0 else 0.0
        if not low < price < high:
            price = 2.0 * low if high >= 1e300 else (0.5 * high if low == 0.0 else sqrt(low * high))
    tilted = 0.0
    for i in range(s.n):
        p = min(1.0, max(0.0, 1.0 / (price * s.weight[i]) - over[i]))
        tilted += s.count[i] * s.weight[i] * p * (1.0 + over[i]) / (over[i] + p)
    excess[0] = mean - tilted
    return (left - most) / price


cdef double weighted_lower(const strata *s, double mean, double nats, double squares,
                           double largest) noexcept nogil:
    """The largest of these over lambda, or nearly: any of them is a limit."""
    cdef double usual = sqrt(8.0 * nats / squares), best, low, high, at_low = 1.0, at_high, excess
    cdef double place
    cdef int step, side = 0
    if nats == 0.0 or mean == 0.0:
        return mean
    best = max(0.0, mean - 2.0 * nats / usual)
    # logarithms of lambda
    low, high = log(nats / mean), log(MOST_EXPONENT / largest)
    if low >= high:
        return best
    place = min(max(log(usual) + 0.25, low + 1e-3 * (high - low)), high)
    best = max(best, best_limit(s, mean, nats, exp(high), &at_high))
    if at_high >= 0.0:
        return min(best * SURE, mean)
    for step in range(MOST_STEPS):
        best = max(best, best_limit(s, mean, nats, exp(place), &excess))
        if excess >= 0.0:
            low, at_low = place, excess
            at_high *= 0.5 if side == 1 else 1.0  # Illinois
            side = 1
        else:
            high, at_high = place, excess
            at_low *= 0.5 if side == -1 else 1.0
            side = -1
        if high - low < 1e-6 or fabs(excess) < 1e-9 * mean:
            break
        place = low + (high - low) * min(max(at_low / (at_low - at_high), 0.02), 0.98)
    return min(best * SURE, mean)


def weighted_limits(double mean, weights, counts, double nats):
    """Limits of the expectation of a weighted mean in [0, 1], of at most 128 different weights.

    `weights` and `counts`, float64 (n,), are above 0; the weights of all values add up to 1.
    """
    cdef strata s
    cdef int i
    cdef double squares = 0.0, largest = 0.0, low, high
    if len(weights) != len(counts) or not 0 < len(weights) <= MOST_STRATA:
        raise ValueError(f"weights and counts must be one to {MOST_STRATA} numbers each")
    s.n = len(weights)
    for i in range(s.n):
        s.weight[i], s.count[i] = weights[i], counts[i]
        s.log_weight[i] = log(s.weight[i])
        squares += s.count[i] * s.weight[i] * s.weight[i]
        largest = max(largest, s.weight[i])
    with nogil:
        low = weighted_lower(&s, mean, nats, squares, largest)
        high = 1.0 - weighted_lower(&s, 1.0 - mean, nats, squares, largest)
    return low, max(mean, high)


# ---- gains, by exact probabilities: src/gains ----------------------------------------------------

cdef extern from "kernels/cpu.h":  # which refuses a build that cannot see nan
    pass


cdef extern from "gains/gains.h" nogil:
    struct gain_memory:
        int64_t *least
        size_t capacity
    double gain_limit(double n_plus, double n_minus, double m, double nats, gain_memory *)


def gain_limits(cases, double m):
    """Lower limits of p - q of m rows, float64 (n,): see src/gains/gains.h.

    `cases`, float64 (n, 3), are the counts of +1 and of -1, and the nats, from ln 4 to 300, of each.
    """
    cdef cnp.ndarray rows = np.ascontiguousarray(cases, np.float64)
    if rows.ndim != 2 or cnp.PyArray_DIM(rows, 1) != 3:
        raise ValueError(f"cases must have 3 columns, got shape {np.shape(cases)}")
    cdef ptrdiff_t n = cnp.PyArray_DIM(rows, 0), i
    cdef cnp.ndarray limits = np.empty(n)
    cdef const double *case = <const double *>cnp.PyArray_DATA(rows)
    cdef double *limit = <double *>cnp.PyArray_DATA(limits)
    cdef gain_memory memory
    memory.least, memory.capacity = NULL, 0
    with nogil:
        for i in range(n):
            limit[i] = gain_limit(case[3 * i], case[3 * i + 1], m, case[3 * i + 2], &memory)
            if isnan(limit[i]):
                break
        free(memory.least)
    if n > 0 and isnan(limit[i]):
        raise MemoryError
    return limits
