/* The power fails at every instant of a write of each slot: linked with the example for the board,
 * in front of its flash (--wrap), whose pages keep what they have when the CPU is reset.
 *
 * A cut leaves what real flash may leave: a page of which a part is erased, a word of which some
 * bits are programmed.  Which instant is next stands in flash too, a bit for every cut.
 */
#include "board.h"
#include "radabound_edge.h"

void __real_erase_page(uintptr_t page);
void __real_write_word(uintptr_t place, uint32_t word);

enum {
    RECORD = 0x3f400, MARK = RECORD + PAGE_BYTES - 4, MARKED = 0x600dcafe, /* one bit a cut */
    N_INSTANTS = 3 + 2 * (RADABOUND_EDGE_STATE_BYTES / 4), /* of an erase, and of the words */
};

static uint32_t n_writes, instant; /* since the reset; since the erase */

static volatile uint32_t *record(uint32_t cut) { return (volatile uint32_t *)RECORD + cut / 32; }

static uint32_t n_cuts(void)
{
    uint32_t n = 0;
    while (!(*record(n) >> n % 32 & 1))
        n++;
    return n;
}

/* Whether the power fails now: not at the factory, nor in the write of a row that was cut before. */
static int fails(void)
{
    const uint32_t n = n_cuts();
    return n_writes > (n > 0 ? 1u : 2u) && n < 2 * N_INSTANTS && instant++ == n / 2;
}

static void reset(void)
{
    const uint32_t n = n_cuts();
    __real_write_word((uintptr_t)record(n), *record(n) & ~((uint32_t)1 << n % 32));
    *(volatile uint32_t *)0xe000ed0c = 0x05fa0004; /* AIRCR: SYSRESETREQ */
    for (;;) {
    }
}

void __wrap_erase_page(uintptr_t page)
{
    static uint32_t old[PAGE_BYTES / 4];
    if (*(volatile uint32_t *)MARK != MARKED) {
        __real_erase_page(RECORD);
        __real_write_word(MARK, MARKED);
    }
    n_writes++;
    instant = 0;
    if (fails())
        reset();
    memcpy(old, (const void *)page, sizeof old);
    __real_erase_page(page);
    if (fails()) {
        for (uint32_t i = 0; i < PAGE_BYTES / 4; i += 1 + i % 3)
            __real_write_word(page + 4 * i, old[i]);
        reset();
    }
    if (fails())
        reset();
}

void __wrap_write_word(uintptr_t place, uint32_t word)
{
    if (fails()) {
        __real_write_word(place, word | 0x5a3c96f0);
        reset();
    }
    __real_write_word(place, word);
    if (fails())
        reset();
}
