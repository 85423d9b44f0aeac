/* The nRF51's controller of its flash: chapter 6 of its reference manual. */
#include "board.h"

#define REGISTER(place) (*(volatile uint32_t *)(uintptr_t)(0x4001e000 + (place)))
#define READY REGISTER(0x400)
#define CONFIG REGISTER(0x504)
#define ERASEPAGE REGISTER(0x508)

enum { READ_ONLY, WRITING, ERASING };

static void wait(void)
{
    while (!READY) {
    }
}

void erase_page(uintptr_t page)
{
    CONFIG = ERASING;
    wait();
    ERASEPAGE = (uint32_t)page;
    wait();
    CONFIG = READ_ONLY;
}

void write_word(uintptr_t place, uint32_t word)
{
    CONFIG = WRITING;
    wait();
    *(volatile uint32_t *)place = word;
    wait();
    CONFIG = READ_ONLY;
}
