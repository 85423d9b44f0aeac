#include "gains.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"

enum { ROW_BY_ROW = 30 };     /* so few rows that differ are not worth a chord of the region's edge */
enum { LANES = 8 };           /* laws at a time: one's step needs the one before, eight fill the wait */
#define TRUNCATED_NATS 8.0    /* what is left out of a sum is exp(-8) of what is allowed, on each side */
#define TIE 1e-9              /* points that close count as equal: more than rounding moves a rate */
#define SLACK 0.008           /* the cells' share of the nats, less where few rows differ: it costs less */
#define LOST (1.0 / 128)      /* the part of the error that the limits of p and of q have */
#define NEAR 0.0006           /* how near to the limit a search ends, of the nats */
#define FEW 8.0
#define MANY 400.0
static const double PI = 3.14159265358979323846;

/* ---- the order: what the best bet in hindsight against "the gain is at most D" has won ----------- */

/* ln max over 0 <= b <= 1/(1+D) of (1 + b(1-D))^n+ (1 - b(1+D))^n- (1 - bD)^n0; 0 from the mean on. */
static double rate(double plus, double minus, double m, double d, double *slope)
{
    const double none = m - plus - minus, excess = plus - minus - m * d;
    *slope = 0.0; /* as one row with -1 becomes one with 1 */
    if (excess <= 0.0)
        return 0.0;
    const double up = 1.0 - d, down = 1.0 + d;
    /* where the derivative is 0: m D up down b^2 - linear b + excess = 0 */
    const double linear =
        plus * up * (1.0 + 2.0 * d) + minus * down * (1.0 - 2.0 * d) - 2.0 * none * d * d;
    const double square = m * d * up * down;
    const double inside = linear * linear - 4.0 * square * excess;
    const double root = sqrt(inside > 0.0 ? inside : 0.0);
    double bet = linear >= 0.0 ? 2.0 * excess / (linear + root) : (linear - root) / (2.0 * square);
    const double most = 1.0 / down;
    if (!(bet <= most))
        bet = most;
    const double gain = log1p(bet * up), won = plus * gain + none * log1p(-bet * d);
    if (minus <= 0.0)
        return won;
    const double loss = log1p(-bet * down);
    *slope = gain - loss;
    return won + minus * loss;
}

/* The largest D that the bet refutes at this rate: below the mean, above -1. */
static double refuted(double plus, double minus, double m, double wanted)
{
    double low = -1.0, high = (plus - minus) / m, slope;
    for (;;) {
        const double middle = 0.5 * (low + high);
        if (!(low < middle && middle < high) || high - low <= 1e-13 * fabs(low + high))
            return low;
        if (rate(plus, minus, m, middle, &slope) >= wanted)
            low = middle;
        else
            high = middle;
    }
}

/* ---- the points as large as the one observed: of N rows that differ, n+ >= least[N - first] ------- */

struct region {
    double m, gain, wanted;
    int64_t first, last;   /* of the memory */
    int64_t filled[2];     /* from and to which it is filled */
    double edge[2];        /* the real n+ at which the rate is the wanted one, there; or NAN */
    int64_t *least;        /* N + 1: none */
};

static int64_t least_of(const struct region *region, int64_t n)
{
    return region->least[n - region->first];
}

static int is_in(const struct region *region, int64_t plus, int64_t n)
{
    double slope;
    const double won = rate((double)plus, (double)(n - plus), region->m, region->gain, &slope);
    return won >= region->wanted;
}

/* The real n+ at which the rate is the wanted one, rounded down; NAN if it is not between 0 and N.  The rate
 * is convex in n+, so that steps of Newton's method come from above. */
static double edge_at(const struct region *region, int64_t n, double near)
{
    double x = near, change = 1.0, slope;
    for (int i = 0; i < 12 && fabs(change) > 1e-6; i++) {
        if (!(x > 0.0 && x < (double)n))
            return NAN;
        change = (rate(x, (double)n - x, region->m, region->gain, &slope) - region->wanted) / slope;
        x -= change;
    }
    return fabs(change) <= 1e-6 ? x - 1e-6 : NAN;
}

/* Fills upwards, or downwards.  One more row that differs raises the least n+ by 0 or 1, since the order
 * grows with n+ and falls with n-.  The edge is concave in N, since the rate is convex in the counts: chords
 * run below it, and count at most a few points too many. */
static void fill_region(struct region *region, int64_t to, int side)
{
    const int way = side ? 1 : -1;
    while ((to - region->filled[side]) * way > 0) {
        const int64_t from = region->filled[side], k = least_of(region, from);
        int64_t end = from + way * (1 + (int64_t)(0.5 * sqrt((double)from)));
        end = end < region->first ? region->first : end > region->last ? region->last : end;
        const double length = (double)(end - from);
        double edge = region->edge[side], next = NAN;
        if (from > ROW_BY_ROW) {
            edge = isnan(edge) ? edge_at(region, from, (double)k) : edge;
            next = edge_at(region, end, edge + 0.5 * length); /* as if rows went half to either side */
        }
        if (isnan(next)) {
            const int64_t n = from + way;
            region->least[n - region->first] =
                way > 0 ? k + !is_in(region, k, n)
                        : k - (k > 0 && (k > n + 1 || is_in(region, k - 1, n)));
            region->filled[side] = n;
            region->edge[side] = NAN;
            continue;
        }
        for (int64_t n = from + way; (end - n) * way >= 0; n += way) {
            const double chord = edge + (next - edge) * ((double)(n - from) / length);
            const int64_t before = least_of(region, n - way), least = (int64_t)ceil(chord);
            const int64_t bottom = way > 0 ? before : before - 1;
            region->least[n - region->first] =
                least < bottom ? bottom : least > bottom + 1 ? bottom + 1 : least;
        }
        region->filled[side] = end;
        region->edge[side] = next;
    }
}

/* ---- binomial probabilities -------------------------------------------------------------------------- */

/* ln n! less Stirling's formula */
static double stirling(double n)
{
    static const double few[] = {
        0.081061466795327258, 0.041340695955409294, 0.027677925684998339, 0.020790672103765093,
        0.016644691189821192, 0.013876128823070748, 0.01189670994589177,  0.010411265261972096,
        0.0092554621827127329, 0.0083305634333628713, 0.0075736754879518408, 0.0069428401072095299,
        0.0064089941880042071, 0.0059513701127588477, 0.0055547335519628014,
    };
    if (n < 16.0)
        return few[(int)n - 1];
    const double i = 1.0 / (n * n);
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - i / 1188) * i) * i) * i) / n;
}

/* ln P(Bin(n, p) = k) */
static double log_binomial(double k, double n, double p)
{
    if (k <= 0.0)
        return n > 0.0 ? n * log1p(-p) : 0.0;
    if (k >= n)
        return n * log(p);
    const double rest = n - k, mean = n * p, away = k - mean;
    return -(k * log1p(away / mean) + rest * log1p(-away / (n - mean))) +
           0.5 * log(n / (2.0 * PI * k * rest)) + (stirling(n) - stirling(k) - stirling(rest));
}

/* P(Bin(n, p) >= k) over P(Bin(n, p) = k), 0 < k <= n and p < 1 */
static double tail_over_first(double k, double n, double p)
{
    const double odds = p / (1.0 - p);
    double term = 1.0, sum = 1.0;
    for (; k < n; k++) {
        const double factor = (n - k) / (k + 1.0) * odds;
        term *= factor;
        sum += term;
        if (factor < 1.0 && term * factor < 1e-17 * sum * (1.0 - factor))
            break;
    }
    return sum;
}

/* ---- the probability of the region, for eight laws at a time ---------------------------------------- */

struct laws {
    int n;
    double p[LANES], q[LANES];
};

struct worst {
    double log_probability, slope; /* slope: of the logarithm, in D at the same s */
};

/* Sums over N = Bin(m, s), and over n+ = Bin(N, rho) given N with rho = p/s.  From one N to the next
 * each probability follows from the one before by a product and a sum:
 *     P(Bin(n+1, rho) >= k)   = P(Bin(n, rho) >= k) + rho P(Bin(n, rho) = k-1)
 *     P(Bin(n+1, rho) >= k+1) = P(Bin(n, rho) >= k) - (1-rho) P(Bin(n, rho) = k) */
struct lanes {
    double odds[LANES], under[LANES]; /* of s, and 1 over them */
    double rho[LANES], rest[LANES];   /* rest = 1 - rho */
    double over_rho[LANES], over_rest[LANES], against[LANES], one[LANES]; /* 1/rho, 1/rest, rest/rho, 1 */
    double scale[LANES];              /* a logarithm: what all below is in units of, lest it vanish */
    double mass[LANES];               /* P(N = n) */
    double first[LANES], tail[LANES]; /* P(n+ = k), P(n+ >= k) given N = n */
    double sum[LANES], slope[LANES];
};

static void start_lanes(struct lanes *lanes, const struct laws *laws, const struct region *region,
                        int64_t n)
{
    const int64_t k = least_of(region, n);
    for (int j = 0; j < LANES; j++) {
        const int from = j < laws->n ? j : laws->n - 1;
        const double p = laws->p[from], q = laws->q[from], s = p + q, rho = q > 0.0 ? p / s : 1.0;
        const double rest = q > 0.0 ? q / s : 0.0;
        lanes->odds[j] = s / (1.0 - s);
        lanes->under[j] = (1.0 - s) / s;
        lanes->rho[j] = rho;
        lanes->rest[j] = rest;
        lanes->over_rho[j] = 1.0 / rho;
        lanes->over_rest[j] = rest > 0.0 ? 1.0 / rest : 0.0;
        lanes->against[j] = rest / rho;
        lanes->one[j] = lanes->mass[j] = 1.0;
        lanes->scale[j] = log_binomial((double)n, region->m, s);
        lanes->first[j] = lanes->tail[j] = 0.0;
        if (k <= 0 || (k <= n && rest <= 0.0)) {
            lanes->tail[j] = 1.0;
            lanes->first[j] = k <= 0 ? exp(log_binomial(0.0, (double)n, rho)) : 0.0;
        } else if (k <= n) {
            lanes->scale[j] += log_binomial((double)k, (double)n, rho);
            lanes->first[j] = 1.0;
            lanes->tail[j] = tail_over_first((double)k, (double)n, rho);
        }
        lanes->sum[j] = lanes->tail[j];
        lanes->slope[j] = lanes->first[j] * (double)k;
    }
}

/* Where n+ is N at least for the first time: nothing has been added so far. */
static void enter_region(struct lanes *lanes, double n)
{
    for (int j = 0; j < LANES; j++) {
        lanes->tail[j] = 1.0;
        lanes->first[j] = lanes->rest[j] > 0.0 ? 1.0 : 0.0;
        lanes->scale[j] += n * log(lanes->rho[j]);
    }
}

/* Larger units, where numbers have grown: a step multiplies by 1e16 at most, since p and q are at least
 * that far from 0. */
static void rescale(struct lanes *lanes)
{
    for (int j = 0; j < LANES; j++) {
        const double most = fmax(lanes->first[j], lanes->tail[j]);
        if (most > 1e100) {
            lanes->scale[j] += log(most);
            lanes->first[j] /= most;
            lanes->tail[j] /= most;
            lanes->sum[j] /= most;
            lanes->slope[j] /= most;
        }
    }
}

/* To the next N, whose least n+ is k: mass, tail and first change by a number and a factor of the lane. */
static void step(struct lanes *lanes, double mass, const double *restrict of_mass, double tail,
                 const double *restrict of_tail, double first, const double *restrict of_first,
                 double k)
{
    for (int j = 0; j < LANES; j++) {
        lanes->mass[j] *= mass * of_mass[j];
        lanes->tail[j] += tail * of_tail[j] * lanes->first[j];
        lanes->first[j] *= first * of_first[j];
        lanes->sum[j] += lanes->mass[j] * lanes->tail[j];
        lanes->slope[j] += lanes->mass[j] * lanes->first[j] * k;
    }
}

/* From n to n + 1 */
static void step_up(struct lanes *lanes, const struct region *region, int64_t at)
{
    const double n = (double)at, mass = (region->m - n) / (n + 1.0);
    const int64_t before = least_of(region, at), after = least_of(region, at + 1);
    const double k = (double)before;
    if (before > at) { /* no point of n rows is in the region */
        if (after <= at + 1)
            enter_region(lanes, n + 1.0);
        step(lanes, mass, lanes->odds, 0.0, lanes->one, 1.0, lanes->one, (double)after);
    } else if (after == before) {
        const double share = 1.0 / (n - k + 1.0);
        step(lanes, mass, lanes->odds, k * share, lanes->rest, (n + 1.0) * share, lanes->rest, k);
    } else
        step(lanes, mass, lanes->odds, -1.0, lanes->rest, (n + 1.0) / (k + 1.0), lanes->rho, k + 1.0);
}

/* From n + 1 to n */
static void step_down(struct lanes *lanes, const struct region *region, int64_t at)
{
    const double n = (double)at, mass = (n + 1.0) / (region->m - n);
    const int64_t before = least_of(region, at + 1), after = least_of(region, at);
    const double k = (double)before, share = k / (n + 1.0);
    if (after > at) {
        for (int j = 0; j < LANES; j++)
            lanes->first[j] = lanes->tail[j] = 0.0;
        step(lanes, mass, lanes->under, 0.0, lanes->one, 1.0, lanes->one, 0.0);
    } else if (after == before)
        step(lanes, mass, lanes->under, -share, lanes->one, (n + 1.0 - k) / (n + 1.0), lanes->over_rest, k);
    else
        step(lanes, mass, lanes->under, share, lanes->against, share, lanes->over_rho, k - 1.0);
}

/* Rows on either side of m s beyond which N has probability exp(-nats) at most (Bernstein). */
static double reach(double m, double s, double nats)
{
    const double third = nats / 3.0;
    return third + sqrt(third * third + 2.0 * nats * m * s * (1.0 - s));
}

static int64_t rows_below(double m, double s, double nats)
{
    const double n = floor(m * s - reach(m, s, nats));
    return n > 0.0 ? (int64_t)n : 0;
}

static int64_t rows_above(double m, double s, double nats)
{
    const double n = ceil(m * s + reach(m, s, nats));
    return (int64_t)(n < m ? n : m);
}

/* Laws in order of s: the largest probability of the region among them, rounded up. */
static void try_laws(const struct laws *laws, struct region *region, double nats,
                     struct worst *worst)
{
    if (laws->n == 0)
        return;
    const double m = region->m, left_out = nats + TRUNCATED_NATS;
    const double least = laws->p[0] + laws->q[0];
    const double most = laws->p[laws->n - 1] + laws->q[laws->n - 1];
    int64_t first = rows_below(m, least, left_out), last = rows_above(m, most, left_out);
    int64_t start = (int64_t)floor(0.5 * m * (least + most));
    if (most >= 1.0) /* all rows differ, and this is the only law */
        first = last = start = (int64_t)m;
    fill_region(region, first, 0);
    fill_region(region, last, 1);

    struct lanes up, down;
    start_lanes(&up, laws, region, start);
    down = up;
    memset(down.sum, 0, sizeof down.sum);
    memset(down.slope, 0, sizeof down.slope);
    for (int64_t n = start; n < last; n++) {
        step_up(&up, region, n);
        if (n % 4 == 0)
            rescale(&up);
    }
    for (int64_t n = start - 1; n >= first; n--) {
        step_down(&down, region, n);
        if (n % 4 == 0)
            rescale(&down);
    }
    const double steps = (double)(last - first + 1);
    const double rounding = 1.0 + 8.0 * DBL_EPSILON * (m + steps * steps + 100.0);
    for (int j = 0; j < laws->n; j++) {
        const double above = exp(up.scale[j] + log(up.sum[j]));
        const double below = exp(down.scale[j] + log(down.sum[j]));
        const double whole = (above + below) * rounding + 2.0 * exp(-left_out);
        const double log_probability = isnan(whole) ? 0.0 : log(whole);
        if (log_probability > worst->log_probability) {
            const double slope = (up.sum[j] > 0.0 ? above * (up.slope[j] / up.sum[j]) : 0.0) +
                                 (down.sum[j] > 0.0 ? below * (down.slope[j] / down.sum[j]) : 0.0);
            worst->log_probability = log_probability;
            worst->slope = slope / (2.0 * laws->p[j] * whole);
        }
    }
}

static void add_law(struct laws *laws, double p, double q, struct region *region, double nats,
                    struct worst *worst)
{
    laws->p[laws->n] = p;
    laws->q[laws->n++] = q;
    if (laws->n == LANES || p + q >= 1.0) {
        try_laws(laws, region, nats, worst);
        laws->n = 0;
    }
}

/* The largest probability of the region, of all laws of gain D with s between the two, divided by
 * exp(slack): laws of gain D + c at the ends of cells stand for all those between. */
static struct worst worst_law(double d, double s_low, double s_high, double slack,
                              struct region *region, double nats)
{
    const double share = slack / region->m, of_p = 0.4 * share, of_none = 0.2 * share;
    const double c = of_p + (d < 0.0 ? -d * share : 0.0), size = fabs(d);
    struct worst worst = {-INFINITY, 0.0};
    struct laws laws = {.n = 0};
    double s = s_low;
    if (s < size + 2.0 * c) { /* where p or q is next to 0 */
        const double p = d < 0.0 ? fmin(c, 1.0 - size) : fmin(d + c, 1.0);
        const double q = d < 0.0 ? size : 0.0;
        if (p + q >= 1.0)
            add_law(&laws, 1.0 - q, q, region, nats, &worst);
        else
            add_law(&laws, p, q, region, nats, &worst);
        s = size + 2.0 * c;
    }
    const double end = s_high < 1.0 - c ? s_high : 1.0 - c;
    for (int more = s <= end; more;) {
        const double p = 0.5 * (s + d + c), q = 0.5 * (s - d - c);
        add_law(&laws, p, q, region, nats, &worst);
        const double few = p < q ? p : q, none = 1.0 - s;
        const double by_root = 2.0 * sqrt(few * of_p) + of_p, by_square = sqrt(8.0 * few * of_p);
        const double by_none = sqrt(4.0 * of_none * of_none + 2.0 * of_none * none) - 2.0 * of_none;
        const double next = s + 2.0 * fmin(by_root > by_square ? by_root : by_square, by_none);
        more = s < end;
        s = next < end ? next : end;
    }
    try_laws(&laws, region, nats, &worst);
    laws.n = 0;
    if (s_high > 1.0 - c) {
        const double q = fmax(0.5 * (1.0 - d - c), 0.0);
        add_law(&laws, 1.0 - q, q, region, nats, &worst);
        try_laws(&laws, region, nats, &worst);
    }
    return worst;
}

/* What the best bet in hindsight must have won, as a logarithm, for a point to count: half the square of
 * the normal quantile at exp(-nats).  Any rate gives valid limits, and this one narrow ones. */
static double rate_at(double nats)
{
    double z = sqrt(2.0 * nats);
    for (int i = 0; i < 8; i++) { /* Newton's steps: the logarithm of the tail is concave */
        const double tail = 0.5 * erfc(z * sqrt(0.5));
        z += (log(tail) + nats) * tail * sqrt(2.0 * PI) * exp(0.5 * z * z);
    }
    return 0.5 * z * z;
}

/* ln(share / limit) for the lower limit of a share of successes, by Chernoff's bound at nats a row: the
 * root of share y - rest ln(1 + share/rest (1 - exp(-y))) = nats, rest = 1 - share.  It is convex, so that
 * a step of Newton's method never falls short. */
static double drop_at(double share, double rest, double nats)
{
    if (share <= 0.0 || rest <= 0.0)
        return nats; /* of none, any will do; of all, the limit is exp(-nats) */
    double y = sqrt(2.0 * nats * rest / share) + nats / share;
    for (int i = 0; i < 8; i++) {
        const double odds = -share * expm1(-y);
        y -= (share * y - rest * log1p(odds / rest) - nats) * (rest + odds) / odds;
    }
    return y * (1.0 + 1e-12) + 1e-12 * nats;
}

double gain_limit(double n_plus, double n_minus, double m, double nats, struct gain_memory *memory)
{
    /* p and q have limits of their own, wrong with LOST of the probability in all */
    const double each = (nats + log(2.0 / LOST)) / m;
    const double p_low = n_plus / m * exp(-drop_at(n_plus / m, 1.0 - n_plus / m, each));
    const double q = n_minus / m, q_high = fmin(1.0, q - (1.0 - q) * expm1(-drop_at(1.0 - q, q, each)));
    const double slack = SLACK * nats * fmin(1.0, (n_plus + n_minus + FEW) / MANY);
    const double mean = (n_plus - n_minus) / m;
    double low = p_low - q_high, high = mean; /* D is refuted at low, and not at high */
    if (low >= high)
        return high;
    const double wanted = rate_at(nats);
    const double gain = refuted(n_plus, n_minus, m, wanted);
    double slope;
    const double most = rate(n_plus, n_minus, m, gain, &slope);

    const double spare = slack / m; /* more than c */
    const double widest[2] = {fmax(0.0, 2.0 * (p_low - spare) - mean),
                              fmin(1.0, 2.0 * (q_high + spare) + mean)};
    const int64_t observed = (int64_t)(n_plus + n_minus);
    struct region region = {.m = m, .gain = gain, .wanted = most - TIE * (1.0 + most),
                            .first = rows_below(m, widest[0], nats + TRUNCATED_NATS),
                            .last = rows_above(m, widest[1], nats + TRUNCATED_NATS),
                            .filled = {observed, observed}, .edge = {NAN, NAN}};
    region.first = region.first < observed ? region.first : observed;
    region.last = region.last > observed ? region.last : observed;
    const size_t n_needed = (size_t)(region.last - region.first + 1);
    if (n_needed > memory->capacity) {
        int64_t *larger = realloc(memory->least, n_needed * sizeof *larger);
        if (larger == NULL)
            return NAN;
        memory->least = larger;
        memory->capacity = n_needed;
    }
    region.least = memory->least;
    int64_t k = (int64_t)n_plus;
    while (k > 0 && is_in(&region, k - 1, observed))
        k--;
    region.least[observed - region.first] = k;

    const double allowed = -nats + log1p(-LOST) + m * log1p(-slack / m);
    const double near = NEAR * nats;
    /* Newton's steps until both ends are known, and then the Illinois method: the least favourable s
     * moves with D */
    double left_low = INFINITY, left_high = -INFINITY; /* nats left at the ends */
    /* ln F rises so steeply in D, nearly */
    double d = gain + (allowed + nats - 0.002 * nats) * (mean - gain) / (2.0 * wanted + 1.0);
    if (!(d > low && d < high))
        d = 0.5 * (low + high);
    int side = 0;
    for (int tries = 0; tries < 200 && low < d && d < high; tries++) {
        const double q_low = fmax(p_low - d, fmax(0.0, -d));
        const struct worst worst = worst_law(d, 2.0 * q_low + d, fmin(2.0 * q_high + d, 1.0), slack,
                                             &region, nats);
        const double left = allowed - 0.5 * near - worst.log_probability;
        if (left >= -0.5 * near) {
            low = d;
            left_low = left;
            if (left <= 0.5 * near)
                break;
            left_high *= side > 0 ? 0.5 : 1.0;
            side = 1;
        } else {
            high = d;
            left_high = left;
            left_low *= side < 0 ? 0.5 : 1.0;
            side = -1;
        }
        if (high - low <= 1e-12 * fmax(fabs(low), fabs(high)))
            break;
        double next = d + left / worst.slope;
        if (isfinite(left_low) && isfinite(left_high))
            next = low + (high - low) * (left_low / (left_low - left_high));
        d = next > low && next < high ? next : 0.5 * (low + high);
    }
    return fmax(low - 4.0 * DBL_EPSILON * fabs(low), -1.0);
}
