"""Values of the bounds at 60 digits by mpmath, from their definitions, for `test_bounds_*.py`.

    python tests/data/make_bounds_reference.py

writes `bounds_mpmath_reference.csv` next to itself.  Nothing of radabound_fast is imported,
and no formula is simplified beyond its definition: infima and inverses are found by bisection
over monotone functions, binomials are exact integers.
"""

import csv
import json
from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from math import comb, floor
from pathlib import Path

from mpmath import erfc, exp, log, mp, mpf, nstr, sqrt

mp.dps = 60
C = {"half-range": 1, "plain": 4}


def bisect(rising: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf:
    """Where a nondecreasing function crosses 0."""
    low, high = mpf(low), mpf(high)
    for _ in range(230):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def kl(p, q):
    terms = [(p, q), (1 - p, 1 - q)]
    return sum((a * log(a / b) if b > 0 else mp.inf) for a, b in terms if a > 0)


def kl_plus(mean, budget):
    p = mpf(mean)
    return bisect(lambda q: kl(p, q) - budget, p, 1)


def kl_minus(mean, budget):
    p = mpf(mean)
    return -bisect(lambda q: kl(p, -q) - budget, -p, 0)


def kl_tolerance(answer, budget, epsilon):
    v, epsilon = mpf(answer), mpf(epsilon)

    def too_wide(tau):
        low, high = max(v - tau, mpf(0)), min(v + tau, mpf(1))
        fits = (
            min(kl_plus(high, budget), 1) <= v + epsilon
            and max(kl_minus(low, budget), 0) >= v - epsilon
        )
        return -1 if fits else 1

    return bisect(too_wide, 0, 1)


def kl_free(epsilon, budget):
    epsilon = mpf(epsilon)
    step = mpf(10) ** -25

    def margin(p):
        return kl(p, p + epsilon)

    worst = bisect(lambda p: margin(p + step) - margin(p), 0, min(mpf(1) / 2, 1 - epsilon - step))
    if margin(worst) >= budget:
        return mpf(1) / 2
    return bisect(lambda p: budget - margin(p), 0, worst)


def binomial_tail(count, m, p):
    """P(Bin(m, p) <= count), from its largest term down."""
    term = total = mp.binomial(m, count) * p**count * (1 - p) ** (m - count)
    for k in range(count, 0, -1):
        term *= mpf(k) / (m - k + 1) * (1 - p) / p
        total += term
        if term < total * mpf(10) ** -58:
            break
    return total


def binomial_log_tail(count, n_samples, mean):
    return log(binomial_tail(count, n_samples, mpf(mean)))


def binomial_log_failure(n_samples, epsilon):
    m, epsilon = n_samples, mpf(epsilon)
    counts = [c for c in range(m) if mpf(c) / m + epsilon < 1]
    return log(max(binomial_tail(c, m, mpf(c) / m + epsilon) for c in counts))


def binomial_high(counts, n_samples, nats):
    c, m = counts, n_samples
    return bisect(lambda p: -nats - log(binomial_tail(c, m, p)), mpf(c) / m, 1)


def binomial_low(counts, n_samples, nats):
    """P(Bin(m, p) >= c) is P(Bin(m, 1-p) <= m-c); in ln p, for a limit may be tiny."""
    c, m = counts, n_samples

    def log_tail(log_p):
        term = total = mp.binomial(m, c) * exp(c * log_p) * (1 - exp(log_p)) ** (m - c)
        for k in range(c, m):
            term *= mpf(m - k) / (k + 1) * exp(log_p) / (1 - exp(log_p))
            total += term
            if term < total * mpf(10) ** -58:
                break
        return log(total)

    return exp(bisect(lambda log_p: log_tail(log_p) + nats, -1000, log(mpf(c) / m)))


def dyadic_code(queries):
    j = queries.bit_length() - 1
    return log(mpf(2**j * (j + 1) * (j + 2)))


def symmetrised_exponent(excess, m, ratio):
    """ln of the infimum over lambda; golden-section would do, the slope is monotone."""

    def exponent(x):
        return m * (log((1 + exp(x * x / 2)) / 2) - x * excess + x * x * ratio / 2)

    def slope(x):
        return x * exp(x * x / 2) / (1 + exp(x * x / 2)) + x * ratio - excess

    return exponent(bisect(slope, 0, 2 * excess + 1))


def symmetrised_log_tail(excess, n_samples, n_vectors, estimator):
    return symmetrised_exponent(mpf(excess), n_samples, mpf(C[estimator]) / n_vectors)


def symmetrised_excess(log_delta, n_samples, n_vectors, estimator):
    ratio = mpf(C[estimator]) / n_vectors
    # four times McDiarmid's excess is enough for any of the arguments below
    high = 4 * sqrt((4 + 4 * ratio) * -mpf(log_delta) / (2 * n_samples))
    mp.dps = 40
    value = bisect(lambda e: log_delta - symmetrised_exponent(e, n_samples, ratio), 0, high)
    mp.dps = 60
    return value


def mcdiarmid_excess(log_delta, n_samples, n_vectors, estimator):
    squares = mpf(4) / n_samples + mpf(4 * C[estimator]) / (n_samples * n_vectors)
    return sqrt(squares * -mpf(log_delta) / 2)


def bernstein_excess(log_delta, n_samples, n_vectors):
    m, n = mpf(n_samples), mpf(n_vectors)
    v = (n + 4 * sqrt(n) + 20) / (2 * m * n)
    return bisect(lambda e: e * e / (v + 4 * e / (3 * m)) + log_delta, 0, 10**6)


def rademacher_log_tail(excess, n_samples, n_vectors):
    e, n = mpf(excess), n_vectors
    return -6 * n_samples * n * e * e / (15 + 8 * n * e)


def mclt_excess(log_delta, n_samples, n_vectors):
    m, n = mpf(n_samples), mpf(n_vectors)
    z = bisect(lambda z: log_delta - log(erfc(z / sqrt(mpf(2))) / 2), 0, 10000)
    return z / sqrt(4 * n * m / (n + 4 * sqrt(n) + 20))


def complexity_limit(complexity, n_vectors, a):
    doubled = 2 * mpf(complexity)
    return doubled + a + sqrt(a * a + 2 * a * (doubled + mpf(1) / n_vectors))


def weighted_half_width(complexity, largest_weight, squares, n_vectors, delta):
    """At equal weights, of which there are 1 / squares."""
    m = round(1 / squares)
    r = complexity_limit(complexity, n_vectors, -log(mpf(delta) / 4) / m)
    return r + sqrt(-log(mpf(delta) * 3 / 8) / (2 * m))


def low_error_half_width(complexity, largest_mean, n_samples, n_vectors, delta):
    m = n_samples
    shares = [mpf(share) / 100 * mpf(delta) for share in (75, 23, 2)]
    failures = -log(shares[0] / 2)
    r = complexity_limit(complexity, n_vectors, -log(shares[1]) / m)
    u = kl_plus(largest_mean, -log(shares[2]) / m)
    s2 = u * (1 - u) if u < mpf(1) / 2 else mpf(1) / 4
    bousquet = sqrt(2 * failures * (s2 + 2 * r) / m) + failures / (3 * m)
    return r + min(sqrt(failures / (2 * m)), bousquet)


def low_error_budget(epsilon, largest_mean, n_samples, n_vectors, delta):
    rest = (largest_mean, n_samples, n_vectors, delta)
    mp.dps = 30
    value = bisect(lambda complexity: low_error_half_width(complexity, *rest) - epsilon, 0, 1)
    mp.dps = 60
    return value


def union_half_width(query, n_samples, delta, max_queries=None):
    weight = mpf(1) / (max_queries or query * (query + 1))
    return sqrt(log(2 / (weight * mpf(delta))) / (2 * n_samples))


def guess_and_check_width(query, shifts, n_samples, delta):
    b = len(shifts)
    inverse = Fraction(query * (query + 1) * (b + 1) * (b + 2) * comb(query - 1, b))
    for j in shifts:
        inverse *= 2 * abs(j) * (abs(j) + 1)
    return sqrt((log(2 / mpf(delta)) + log(mpf(inverse.numerator))) / (2 * n_samples))


def levels(eta):
    return floor(1 / Fraction(eta) + Fraction(1, 2)) + 1


def ladder_half_width(n_queries, n_samples, eta, delta):
    transcripts = comb(n_queries + levels(eta) - 1, levels(eta))
    return mpf(eta) + sqrt(log(2 * mpf(transcripts) / mpf(delta)) / (2 * n_samples))


def ladder_transcript_half_width(query, n_updates, n_samples, eta, delta):
    t, u = query, n_updates
    inverse = (
        2 if t == 1 else (t * (t + 1) * u * (u + 1) * comb(t - 2, u - 1) * comb(levels(eta), u))
    )
    return mpf(eta) + sqrt(log(2 * mpf(inverse) / mpf(delta)) / (2 * n_samples))


def thresholdout_sample_size(n_queries, budget, epsilon, delta, as_printed):
    k, b, epsilon, delta = n_queries, budget, mpf(epsilon), mpf(delta)
    noise = (
        80 * sqrt(b * log(1 / (epsilon * delta)))
        if as_printed
        else 640 * sqrt(b * log(16 * k / (epsilon * delta)))
    )
    return 96 / epsilon**2 * log(4 * k / delta) * min(noise, 16 * b)


COINS = [
    (0.0, 0.003), (1e-9, 1e-12), (1e-4, 0.01), (0.02, 0.004), (0.3, 0.001), (0.5, 0.002),
    (0.5, 1e-11), (0.97, 0.004), (0.999, 2.0), (0.25, 1.5), (1.0, 0.003),
]  # fmt: skip
COUNTS = [
    (0, 1, 3.0), (1, 2, 0.8), (0, 4000, 13.0), (1, 4000, 13.0), (80, 4000, 16.0),
    (2000, 4000, 5.0), (3999, 4000, 20.0), (2, 30, 690.0), (700, 1000, 200.0), (500, 1000, 3.0),
]  # fmt: skip
SIZES = [(1, 1), (500, 32), (4000, 1), (4000, 32), (4000, 256), (10**9, 32), (10**12, 2**20)]
EXCESSES = [1e-9, 1e-4, 0.03, 0.4, 1.0]
LOG_DELTAS = [-1e-3, -0.7, -2.4, -50.0, -1e7]
# the arguments of each, in order
ARGUMENTS = {
    kl_plus: COINS,
    kl_minus: COINS,
    kl_tolerance: [
        (0.02, 0.004, 0.03), (0.0, 0.002, 0.01), (0.5, 0.001, 0.05), (0.99, 0.002, 0.03),
        (-0.001, 0.001, 0.03), (1.004, 0.0005, 0.02), (0.4, 1e-6, 0.001),
    ],
    kl_free: [(0.02, 0.004), (0.05, 0.004), (0.001, 1e-5), (0.3, 0.25), (0.9, 1.5)],
    binomial_log_tail: [
        (0, 1, 0.5), (3, 10, 0.9), (1800, 4000, 0.5), (80, 4000, 0.045), (990, 1000, 0.9999),
        (1, 10**6, 5e-5), (10**6, 10**8, 0.0101), (5 * 10**7, 10**8, 0.5003),
    ],
    binomial_log_failure: [(5, 0.3), (30, 0.4), (100, 0.01), (400, 0.1), (1000, 0.9)],
    binomial_low: [case for case in COUNTS if case[0]],
    binomial_high: COUNTS,
    dyadic_code: [(k,) for k in (1, 2, 3, 4, 1000, 2**40 - 1, 2**40)],
    rademacher_log_tail: [(e, *size) for size in SIZES[2:] for e in EXCESSES],
    bernstein_excess: [(t, *size) for size in SIZES[2:] for t in LOG_DELTAS],
    mclt_excess: [(t, *size) for size in SIZES for t in LOG_DELTAS[1:]],
    mcdiarmid_excess: [(t, *size, one) for size in SIZES for t in LOG_DELTAS for one in C],
    symmetrised_log_tail: [(e, *size, one) for size in SIZES for e in EXCESSES for one in C],
    symmetrised_excess: [
        (t, m, n, estimator)
        for t, m, n in [
            (-2.4, 4000, 32), (-0.001, 4000, 256), (-3.0, 500, 1), (-1e7, 10**9, 1),
            (-1e-3, 10**12, 2**20), (-30.0, 10**12, 1),
        ]
        for estimator in C
    ],
    weighted_half_width: [
        (c, 1 / m, 1 / m, n, d)
        for c, m, n in [
            (0.0, 4000, 256), (0.005, 4000, 256), (0.01, 4000, 32), (0.025, 500, 256),
            (0.0005, 10**6, 256), (0.3, 1, 1), (1e-6, 10**12, 2**20),
        ]
        for d in (0.1, 1e-9)
    ],
    low_error_half_width: [
        (c, w, m, n, d)
        for c, w, m, n in [
            (0.0, 0.02, 4000, 256), (0.005, 0.02, 4000, 256), (0.01, 0.5, 4000, 256),
            (0.01, 0.05, 4000, 32), (0.025, 0.1, 500, 256), (0.0005, 0.01, 10**6, 256),
            (0.0, 0.0, 1000, 64), (0.0, 1.0, 1000, 64), (1e-6, 1e-4, 10**12, 2**20),
        ]
        for d in (0.1, 1e-9)
    ],
    low_error_budget: [
        (0.05, 0.2, 4000, 32, 0.06), (0.05, 0.02, 4000, 256, 0.06), (0.3, 0.0, 500, 1, 0.06),
        (0.05, 0.5, 4000, 256, 0.001), (0.001, 0.01, 10**7, 256, 0.06),
    ],
    union_half_width: [
        (1, 4000, 0.1, None), (134, 4000, 0.1, None), (10**9, 10**12, 1e-6, None),
        (1, 4000, 0.1, 1), (7, 4000, 0.04, 18110), (10**12, 10**6, 0.1, 10**18),
    ],
    guess_and_check_width: [
        (1, [], 4000, 0.1), (100, [], 4000, 0.1), (1000, [], 4000, 0.1),
        (1000, [1, -1, 1, 1, -1], 4000, 0.1), (1000, [2, -7, 31], 4000, 0.01),
        (40, [1] * 39, 4000, 0.1), (10**12, [1, -2, 3], 10**6, 0.05),
        (10**5, [1, 2] * 400, 10**6, 0.05),
    ],
    ladder_half_width: [
        (1, 4000, 0.05, 0.1), (10, 4000, 0.05, 0.1), (1000, 4000, 0.05, 0.1),
        (1000, 4000, 0.01, 0.1), (10**12, 10**6, 0.1, 1e-3), (5500, 4000, 0.7, 0.1),
    ],
    ladder_transcript_half_width: [
        (1, 0, 4000, 0.05, 0.1), (2, 1, 4000, 0.05, 0.1), (1000, 1, 4000, 0.05, 0.1),
        (1000, 12, 4000, 0.05, 0.1), (20, 19, 4000, 0.02, 0.1), (10**12, 4, 10**6, 0.1, 1e-3),
    ],
    thresholdout_sample_size: [
        (*case, as_printed)
        for case in [(10, 1, 0.05, 0.1), (10**4, 10**4, 0.05, 0.1), (100, 7, 0.3, 1e-6)]
        for as_printed in (False, True)
    ],
}  # fmt: skip


def main() -> None:
    path = Path(__file__).with_name("bounds_mpmath_reference.csv")
    with path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["function", "arguments", "value"])
        for function, cases in ARGUMENTS.items():
            for case in cases:
                arguments = dict(zip(signature(function).parameters, case, strict=True))
                value = nstr(+function(**arguments), 20)
                writer.writerow([function.__name__, json.dumps(arguments), value])


if __name__ == "__main__":
    main()
