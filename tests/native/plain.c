#include "plain.h"

#include "check.h"

enum { LANES = 8, WORD = 64, NEW_ROWS = 45 };

static uint64_t mixed(uint64_t z)
{
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9u;
    z ^= z >> 27;
    z *= 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t plain_sign_word(uint64_t seed, int64_t vector, int64_t word)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const uint64_t counter = ((uint64_t)vector << 40) + (uint64_t)word + 1;
    return mixed(mixed(seed + golden) + golden * counter);
}

static void extend_extremes(struct problem *p, int64_t row)
{
    for (int64_t v = 0; v < p->l; v++) {
        const int64_t sum = 2 * p->counts[row * p->n_strips * LANES + v] - p->totals[row];
        int64_t *maximum = p->maxima + row * p->l + v, *minimum = p->minima + row * p->l + v;
        *maximum = row > 0 && maximum[-p->l] > sum ? maximum[-p->l] : sum;
        *minimum = row > 0 && minimum[-p->l] < sum ? minimum[-p->l] : sum;
        p->plain[row] += *maximum > 0 ? *maximum : 0;
        p->half_range[row] += *maximum - *minimum;
    }
}

static void solve(struct problem *p)
{
    const int64_t n_lanes = p->n_strips * LANES;
    char *is_plus = NEW(char, p->m * n_lanes); /* [sample][vector] */
    for (int64_t v = 0; v < n_lanes; v++)
        for (int64_t w = 0; w < p->n_words; w++) {
            const uint64_t word = plain_sign_word(p->seed, v, w);
            p->lines[(v / LANES * p->n_words + w) * LANES + v % LANES] = word;
            for (int64_t i = WORD * w; i < WORD * (w + 1) && i < p->m; i++)
                is_plus[i * n_lanes + v] = (char)(word >> i % WORD & 1);
        }
    for (int64_t r = 0; r < p->n_rows; r++) {
        for (int64_t i = 0; i < p->m; i++) {
            const int32_t loss = p->losses[r * p->m + i];
            if (loss == 0)
                continue;
            p->packed[r * p->n_words + i / WORD] |= (uint64_t)1 << i % WORD;
            p->totals[r] += loss;
            for (int64_t v = 0; v < n_lanes; v++)
                p->counts[r * n_lanes + v] += is_plus[i * n_lanes + v] ? loss : 0;
        }
        extend_extremes(p, r);
    }
}

struct problem plain_problem(int64_t m, int64_t l, int64_t n_rows, int in_units)
{
    struct problem p = {
        .m = m, .l = l, .n_rows = n_rows, .in_units = in_units, .seed = random_bits()};
    p.n_words = (m + WORD - 1) / WORD;
    p.n_strips = (l + LANES - 1) / LANES;
    p.losses = NEW(int32_t, n_rows * m);
    p.packed = NEW(uint64_t, n_rows * p.n_words);
    p.totals = NEW(int64_t, n_rows);
    p.counts = NEW(int64_t, n_rows * p.n_strips * LANES);
    p.lines = NEW(uint64_t, p.n_strips * p.n_words * LANES);
    p.maxima = NEW(int64_t, n_rows * l);
    p.minima = NEW(int64_t, n_rows * l);
    p.plain = NEW(int64_t, n_rows);
    p.half_range = NEW(int64_t, n_rows);
    const int64_t rates = n_rows < NEW_ROWS ? n_rows : NEW_ROWS;
    for (int64_t r = 0; r < n_rows; r++) {
        const int64_t rate = r < NEW_ROWS ? r + 1 : random_below(NEW_ROWS);
        const int64_t like = r < NEW_ROWS || random_below(32) == 0 ? r : random_below(NEW_ROWS);
        for (int64_t i = 0; i < m; i++) {
            const int is_loss = random_below(rates + 1) < rate;
            const int64_t largest = (int64_t)1 << 24;
            int64_t loss = is_loss;
            if (in_units) /* the last row holds the largest sums that there are */
                loss *= r == n_rows - 1 ? largest : random_below(largest + 1);
            p.losses[r * m + i] = like < r ? p.losses[like * m + i] : (int32_t)loss;
        }
    }
    if (in_units) /* a first loss that needs them */
        p.losses[0] = 1 + (int32_t)random_below(((int64_t)1 << 24) - 1);
    solve(&p);
    return p;
}

void plain_bytes(const struct problem *p, char *bytes, ptrdiff_t stride)
{
    for (int64_t r = 0; r < p->n_rows; r++)
        for (int64_t i = 0; i < p->m; i++)
            if (p->losses[r * p->m + i])
                bytes[r * stride + i / 8] |= (char)(1 << i % 8);
}
