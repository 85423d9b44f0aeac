/* The capital that is bet on values in [0, 1], and where it is enough.
 *
 * Against the claim that the expectation is at most mu, nine tenths are bet one value after another:
 * they grow to prod_i (1 + b_i (x_i - mu)), b_i = min(stake_i, LARGEST_STAKE / mu), with stakes that
 * are the best for the variance of the values before.  One tenth is shared by bets that are fixed:
 * bet j grows to prod_e (1 + b_j (e - mu))^count_e over the edges of bins.  The capital falls in mu;
 * the limit is the largest mu at which it is exp(nats).
 */
#ifndef RADABOUND_BETTING_H
#define RADABOUND_BETTING_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu.h"

#define BINS 256
#define FIXED 0.1 /* of the capital */
#define N_SPREADS 16
#define LARGEST_STAKE (1.0 - 0x1p-10)
#define NEGLIGIBLE 20.0 /* nats: a bet that is so far behind is left out, which makes K smaller */
#define CLOSE 4.0 /* nats from the limit: bets that are negligible here are so there too */
#define NEAR_ENOUGH 1e-9 /* of the way from the mean */
#define MOST_SECANTS 30
#define MOST_TRIALS 120
#define ROUNDING 0x1p-45 /* nats a value, more than the logarithms are off */

typedef struct {
    int n;
    double edge[BINS + 1], count[BINS + 1]; /* the bins that hold something */
} binned;

typedef struct {
    int n; /* that are fixed */
    double best[N_SPREADS];
    int adapts; /* whether the bets in order are made */
} bets;

typedef struct {
    ptrdiff_t n;
    const double *value, *stake;
    double first, sign; /* what is bet on is first + sign * value: 0 and 1, or 1 and -1 */
} in_order;

/* ln x for 2^-1000 < x < 2^1000, off by less than 2^-46 + 2^-51 |ln x|, without a branch: x is 2^e m
 * with m from sqrt(1/2) to sqrt(2), and ln m = 2 artanh t with t = (m - 1) / (m + 1), |t| < .172.
 */
static inline double quick_log(double x)
{
    const uint64_t least = 0x3fe6a09e667f3bcdu; /* of sqrt(1/2) */
    uint64_t bits, of_m, of_e;
    double m, e, t, s, series;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x3ff0000000000000u - least;
    of_e = (bits >> 52) | 0x4330000000000000u; /* 2^52 + 1023 + e */
    of_m = (bits & 0x000fffffffffffffu) + least;
    memcpy(&e, &of_e, sizeof e);
    memcpy(&m, &of_m, sizeof m);
    t = (m - 1.0) / (m + 1.0);
    s = t * t;
    series = s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11
           + s * (1.0 / 13 + s / 15))))));
    return (e - (0x1p52 + 1023.0)) * 0.69314718055994531 + 2.0 * (t + t * series);
}

static double growth(const binned *b, double stake, double mu)
{
    double logs[BINS + 1], sum = 0.0;
    for (int i = 0; i < b->n; i++)
        logs[i] = b->count[i] * quick_log(1.0 + stake * (b->edge[i] - mu));
    for (int i = 0; i < b->n; i++)
        sum += logs[i];
    return sum;
}

/* Factors are from 2^-10 to 2^60: the product of eight of them has a logarithm. */
static double growth_in_order(const in_order *x, double mu)
{
    const double *value = x->value, *stake = x->stake;
    double most = LARGEST_STAKE / mu, first = x->first - mu, sign = x->sign, sum = 0.0;
    double products[8], logs[8];
    ptrdiff_t i = 0;
    for (; i + 64 <= x->n; i += 64) {
        for (int k = 0; k < 8; k++)
            products[k] = 1.0;
        for (int j = 0; j < 64; j += 8)
            for (int k = 0; k < 8; k++) {
                double b = stake[i + j + k] < most ? stake[i + j + k] : most;
                products[k] *= 1.0 + b * (first + sign * value[i + j + k]);
            }
        for (int k = 0; k < 8; k++)
            logs[k] = quick_log(products[k]);
        for (int k = 0; k < 8; k++)
            sum += logs[k];
    }
    for (; i < x->n; i++)
        sum += quick_log(1.0 + fmin(stake[i], most) * (first + sign * value[i]));
    return sum;
}

/* ln K, and the growth of each bet, those in order last */
static double log_capital(const binned *b, const in_order *x, const bets *all, double mu,
                          double *grown)
{
    double most = -INFINITY, sum = 0.0;
    for (int j = 0; j < all->n; j++)
        grown[j] = growth(b, fmin(all->best[j], LARGEST_STAKE / mu), mu) + log(FIXED / N_SPREADS);
    grown[all->n] = all->adapts ? growth_in_order(x, mu) + log(1.0 - FIXED) : -INFINITY;
    for (int j = 0; j <= all->n; j++)
        most = fmax(most, grown[j]);
    for (int j = 0; j <= all->n; j++)
        sum += exp(grown[j] - most);
    return most + log(sum);
}

/* The bets that are not negligible, given their growth. */
static void keep_some(bets *all, const double *grown)
{
    double most = -INFINITY;
    int n = 0;
    for (int j = 0; j <= all->n; j++)
        most = fmax(most, grown[j]);
    for (int j = 0; j < all->n; j++)
        if (grown[j] >= most - NEGLIGIBLE)
            all->best[n++] = all->best[j];
    all->adapts = grown[all->n] >= most - NEGLIGIBLE;
    all->n = n;
}

/* The limit, by the secant method between points where the capital is too much and too little.
 *
 * `mu` is where it is looked for first, `slope` about that of ln K there.  What is returned is a
 * point at which the capital is enough, a billionth of the way to the mean below where it is just so.
 */
static double lower_limit(const binned *b, const in_order *x, const bets *some, double mean,
                          double nats, double mu, double slope)
{
    bets all = *some;
    double grown[N_SPREADS + 1], low = 0.0, high = mean, before = 0.0, value_before = 0.0;
    double away = NEAR_ENOUGH * (mean - mu);
    if (log_capital(b, x, &all, 0.0, grown) < nats)
        return 0.0;
    for (int trial = 0; trial < MOST_TRIALS; trial++) {
        if (!(mu > low && mu < high) || trial > MOST_SECANTS)
            mu = 0.5 * (low + high);
        if (!(mu > low && mu < high))
            break;
        double value = log_capital(b, x, &all, mu, grown) - nats, step;
        if (fabs(value) < CLOSE)
            keep_some(&all, grown);
        *(value >= 0.0 ? &low : &high) = mu;
        if (high - low <= away)
            break;
        if (trial > 0 && value != value_before)
            slope = (value - value_before) / (mu - before);
        before = mu, value_before = value;
        step = slope < 0.0 ? -value / slope : high; /* high: out of bounds */
        if (fabs(step) > 1e3 * away)
            mu += step;
        else if (value >= 0.0 && step <= away)
            break;
        else /* where it is just enough: below it, which ends the search if it is so */
            mu += step - 0.5 * away;
    }
    return low;
}

static void take_bins(binned *b, const double *counts, int reversed)
{
    b->n = 0;
    for (int i = 0; i <= BINS; i++) {
        double count = counts[reversed ? BINS - i : i];
        if (count > 0.0) {
            b->edge[b->n] = (double)i / BINS;
            b->count[b->n++] = count;
        }
    }
}

/* Shares each value between the two nearest edges.  The place of one outside [0, 1], or -1. */
static ptrdiff_t share_values(const double *values, ptrdiff_t n, double *counts, double *sum)
{
    double at_edge[BINS] = {0}, above[BINS] = {0}, total = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        double place = values[i] * BINS;
        if (!(place >= 0.0 && place <= BINS))
            return i;
        int bin = place < BINS ? (int)place : BINS - 1;
        at_edge[bin] += 1.0;
        above[bin] += place - bin;
        total += values[i];
    }
    counts[0] = 0.0;
    for (int i = 0; i < BINS; i++) {
        counts[i] += at_edge[i] - above[i];
        counts[i + 1] = above[i];
    }
    *sum = total;
    return -1;
}

/* Stakes for values in an order that mixes a sorted file: by steps of about .618 n, which with n have
 * no common factor.  The variance before a value is that of the values before and of one at a
 * standard deviation of 1/2.
 */
static void put_in_order(const double *values, ptrdiff_t n, double nats, double *ordered,
                         double *stakes)
{
    ptrdiff_t step = (ptrdiff_t)(0.6180339887498949 * n), place = 0, a, b;
    double mean = 0.5, squares = 0.25, scale = sqrt(2.0 * nats / n);
    for (step = step > 0 ? step : 1;; step++) {
        for (a = n, b = step; b;) {
            ptrdiff_t rest = a % b;
            a = b, b = rest;
        }
        if (a == 1)
            break;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        double x = values[place];
        ordered[i] = x;
        stakes[i] = squares / (i + 1.0);
        mean += (x - mean) / (i + 2.0);
        squares += (x - mean) * (x - mean);
        place += step;
        place -= place >= n ? n : 0;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        stakes[i] = fmin(scale / sqrt(stakes[i]), 0x1p60);
}

/* Standard deviations from 1/2, the largest that there is, by square roots of 2: the best bet each. */
static bets best_bets(double n, double nats)
{
    bets all = {.n = N_SPREADS, .adapts = 1};
    for (int j = 0; j < N_SPREADS; j++)
        all.best[j] = fmin(sqrt(2.0 * nats / n) * exp2(1.0 + 0.5 * j), 0x1p60);
    return all;
}

static double betting_capital_of(const double *counts, const double *ordered, const double *stakes,
                                 ptrdiff_t n, double mu, double nats)
{
    binned b;
    in_order x = {n, ordered, stakes, 0.0, 1.0};
    bets all = best_bets(n, nats);
    double grown[N_SPREADS + 1];
    take_bins(&b, counts, 0);
    return log_capital(&b, &x, &all, mu, grown) - n * ROUNDING;
}

static void betting_limits_of(const double *counts, const double *ordered, const double *stakes,
                              ptrdiff_t n, double mean, double nats, double *low, double *high)
{
    binned b;
    in_order x = {n, ordered, stakes, 0.0, 1.0};
    bets all = best_bets(n, nats);
    double variance = 0.0, best = sqrt(2.0 * nats / n), spread, reach, slope;
    *low = *high = mean;
    if (nats <= 0.0)
        return;
    for (int i = 0; i <= BINS; i++) {
        double apart = (double)i / BINS - mean;
        variance += counts[i] * apart * apart / n;
    }
    nats += n * ROUNDING;
    spread = sqrt(variance);
    reach = best * spread * (1.0 + 0.1 / nats) + nats / n;
    slope = -n * best / (spread + best);
    take_bins(&b, counts, 0);
    *low = lower_limit(&b, &x, &all, mean, nats, fmax(mean - reach, 0.1 * mean), slope);
    take_bins(&b, counts, 1);
    x.first = 1.0, x.sign = -1.0;
    mean = 1.0 - mean;
    *high = 1.0 - lower_limit(&b, &x, &all, mean, nats, fmax(mean - reach, 0.1 * mean), slope);
}

#endif
