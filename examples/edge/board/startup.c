/* What runs before main: for a Cortex-M, and for a Cortex-A without its caches. */
#include <stdint.h>

#include "board.h"

extern uint32_t data_start[], data_end[], data_stored[], bss_start[], bss_end[];
extern uint32_t stack_end[]; /* board.ld */
int main(void);

void start(void)
{
    for (uint32_t *to = data_start, *from = data_stored; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
    leave(main());
}

#if __ARM_ARCH_PROFILE == 'M'

static void fault(void) { leave(70); }

/* The first word is the stack, then come the handlers: reset, NMI, hard fault. */
__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    void (*handlers[15])(void);
} vectors = {stack_end, {start, fault, fault}};

#else

__attribute__((section(".vectors"), naked, used)) void enter(void)
{
    __asm__("ldr sp, =stack_end\n bl start\n");
}

#endif

/* What a compiler may call without being asked to; a board with a C library has them. */
void *memset(void *to, int value, size_t n)
{
    for (uint8_t *byte = to; n > 0; n--)
        *byte++ = (uint8_t)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    uint8_t *byte = to;
    for (const uint8_t *source = from; n > 0; n--)
        *byte++ = *source++;
    return to;
}
