/* What a guard costs on a CPU: instructions of a loss and of the end of a row, and stack.
 *
 *     guard_costs STATE          under QEMU with -icount: its clock goes on with instructions
 */
#include "board.h"
#include "radabound_edge.h"

enum { N_LOSSES = 64 * 64, COLOUR = 0x5a, PAINTED = 2048, CALIBRATION = 1000000 };

static uint8_t slots[2][RADABOUND_EDGE_STATE_BYTES];

static int read_slot(void *context, int slot, void *bytes)
{
    (void)context;
    memcpy(bytes, slots[slot], sizeof slots[slot]);
    return 0;
}

static int write_slot(void *context, int slot, const void *bytes)
{
    (void)context;
    memcpy(slots[slot], bytes, sizeof slots[slot]);
    return 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

#if __ARM_ARCH_PROFILE == 'M'

#define SYSTICK ((volatile uint32_t *)0xe000e010)

static void start_clock(void)
{
    SYSTICK[1] = 0xffffff;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
}

static uint32_t ticks_since(uint32_t start) { return (start - SYSTICK[2]) & 0xffffff; }
static uint32_t ticks(void) { return SYSTICK[2]; }

#else

static void start_clock(void) {}

static uint32_t ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("mrrc p15, 1, %0, %1, c14" : "=r"(low), "=r"(high));
    return low;
}

static uint32_t ticks_since(uint32_t start) { return ticks() - start; }

#endif

/* Ticks of so many times two instructions. */
static uint32_t calibrate(void)
{
    const uint32_t start = ticks();
    uint32_t n = CALIBRATION;
    __asm__ volatile(".syntax unified\n1: subs %0, #1\n bne 1b" : "+l"(n) : : "cc");
    return ticks_since(start);
}

/* ---- what is measured ------------------------------------------------------------------------ */

static struct radabound_edge guard;
static const struct radabound_edge_storage storage = {read_slot, write_slot, NULL};
static uint8_t losses[N_LOSSES / 8];

static void tell(const char *what, int64_t number)
{
    print(what);
    print_number(number);
    print("\n");
}

int main(void)
{
    char line[128];
    size_t start = 0;
    if (read_command_line(line, sizeof line) == 0)
        return 1;
    while (line[start] != ' ')
        start++;
    const int file = open_file(line + start + 1, READ_BYTES);
    if (file < 0 || read_file(file, slots, sizeof slots) != sizeof slots)
        return 1;
    for (uint32_t i = 0, word = 1; i < sizeof losses; i++, word = word * 1664525 + 1013904223)
        losses[i] = (uint8_t)(word >> 24);
    start_clock();
    const uint32_t known = calibrate();

    /* below the stack pointer nothing is in use: it is painted, and where the paint is gone the
     * functions of the guard have been */
    volatile uint8_t *top, *at;
    __asm__ volatile("mov %0, sp" : "=r"(top));
    for (at = top - PAINTED; at < top; at++)
        *at = COLOUR;
    uint32_t count;
    int failed = radabound_edge_init(&guard, &storage) != RADABOUND_EDGE_OK;
    const uint32_t before = ticks();
    failed |= radabound_edge_push_bits(&guard, losses, N_LOSSES) != RADABOUND_EDGE_OK;
    const uint32_t pushed = ticks_since(before), then = ticks();
    failed |= radabound_edge_finish(&guard, &count) != RADABOUND_EDGE_OK;
    const uint32_t finished = ticks_since(then);
    for (at = top - PAINTED; *at == COLOUR;)
        at++;
    const uint32_t stack = (uint32_t)(top - at);
    if (failed)
        return 1;
    tell("loss ", (int64_t)pushed * 2 * CALIBRATION / known / N_LOSSES);
    tell("finish ", (int64_t)finished * 2 * CALIBRATION / known);
    tell("stack ", stack);
    return 0;
}
