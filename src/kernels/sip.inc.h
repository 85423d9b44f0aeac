/* SipHash's state and steps, of one row or of many side by side.
 *
 * Whoever includes this has the type `lanes`, a word or several, TARGET, and rotated(x, bits).
 */
#include <string.h>

#define EACH RB_INLINE TARGET

struct sip {
    lanes v0, v1, v2, v3;
};

EACH void round_of(struct sip *s)
{
    s->v0 += s->v1, s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0, s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1, s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2, s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

EACH void take_in(struct sip *s, lanes word)
{
    s->v3 ^= word;
    round_of(s);
    s->v0 ^= word;
}

EACH struct sip begun(const uint64_t key[2])
{
    const lanes none = {0};
    return (struct sip){none + (key[0] ^ SIP_0), none + (key[1] ^ SIP_1), none + (key[0] ^ SIP_2),
                        none + (key[1] ^ SIP_3)};
}

EACH void finish(struct sip *s, uint64_t *hashes)
{
    const lanes none = {0};
    s->v2 ^= none + SIP_END;
    for (int i = 0; i < SIP_LAST_ROUNDS; i++)
        round_of(s);
    const lanes hashed = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
    memcpy(hashes, &hashed, sizeof hashed);
}
