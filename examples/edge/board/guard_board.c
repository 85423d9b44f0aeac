/* A guard on a microbit, with its state in two pages of flash.
 *
 *     guard_board STATE LOSSES          files of the host, by semihosting
 *
 * prints the count of each row of losses until the budget is spent, and then keeps silent about
 * them.  Reset it whenever you like: it goes on with the row that it has no answer of.  Where the
 * flash is new it takes STATE in, as a programmer does at the factory; at the end it writes STATE,
 * as a debugger reads it out.  Exit status: 0 end of the losses, 3 halted, 1 anything else.
 */
#include "board.h"
#include "radabound_edge.h"

enum { LAST_PAGES = 0x3f800, N_SLOTS = 2 };

typedef char a_state_fits_a_page[(int)RADABOUND_EDGE_STATE_BYTES <= (int)PAGE_BYTES ? 1 : -1];

/* ---- the storage: a page a slot -------------------------------------------------------------- */

static uintptr_t page_of(int slot) { return LAST_PAGES + (uintptr_t)slot * PAGE_BYTES; }

static int read_slot(void *context, int slot, void *bytes)
{
    (void)context;
    memcpy(bytes, (const void *)page_of(slot), RADABOUND_EDGE_STATE_BYTES);
    return 0;
}

/* Fails where the flash has worn out: what was written must be there. */
static int write_slot(void *context, int slot, const void *bytes)
{
    (void)context;
    erase_page(page_of(slot));
    for (size_t i = 0; i < RADABOUND_EDGE_STATE_BYTES; i += 4) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)bytes + i, sizeof word);
        write_word(page_of(slot) + i, word);
        if (*(const volatile uint32_t *)(page_of(slot) + i) != word)
            return 1;
    }
    return 0;
}

static const struct radabound_edge_storage storage = {read_slot, write_slot, NULL};

/* ---- the factory ----------------------------------------------------------------------------- */

/* Whether a page is as it came: all ones, or zeros in QEMU. */
static int is_new(int slot)
{
    const volatile uint8_t *page = (const volatile uint8_t *)page_of(slot);
    int i = 0;
    while (i < PAGE_BYTES && page[i] == page[0])
        i++;
    return i == PAGE_BYTES;
}

/* Both slots from a file, or into it; not 0 if that fails. */
static int program_flash(const char *name)
{
    uint8_t bytes[RADABOUND_EDGE_STATE_BYTES];
    const int file = open_file(name, READ_BYTES);
    int failed = file < 0;
    for (int slot = 0; slot < N_SLOTS && !failed; slot++)
        failed = read_file(file, bytes, sizeof bytes) != sizeof bytes ||
                 write_slot(NULL, slot, bytes);
    if (file >= 0)
        close_file(file);
    return failed;
}

static int read_out_flash(const char *name)
{
    const int file = open_file(name, WRITE_BYTES);
    int failed = file < 0;
    for (int slot = 0; slot < N_SLOTS && !failed; slot++)
        failed = write_file(file, (const void *)page_of(slot), RADABOUND_EDGE_STATE_BYTES);
    if (file >= 0)
        close_file(file);
    return failed;
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* Pushes the row after those that were answered.  1: it is whole; 0: there is none; -1: it ends
 * within, or its losses are none. */
static int push_row(struct radabound_edge *guard, int losses)
{
    uint8_t bytes[64];
    const uint32_t n_samples = guard->state.n_samples;
    if (seek_file(losses, (size_t)guard->state.n_answered * ((n_samples + 7) / 8)) != 0)
        return -1;
    for (uint32_t done = 0, n; done < n_samples; done += n) {
        n = n_samples - done < 8 * sizeof bytes ? n_samples - done : 8 * sizeof bytes;
        const size_t n_read = read_file(losses, bytes, (n + 7) / 8);
        if (n_read < (n + 7) / 8)
            return done == 0 && n_read == 0 ? 0 : -1;
        if (radabound_edge_push_bits(guard, bytes, n) != RADABOUND_EDGE_OK)
            return -1;
    }
    return 1;
}

/* The rows that are left, each with its answer; an exit status. */
static int judge_rows(struct radabound_edge *guard, int losses)
{
    while (!radabound_edge_halted(guard)) {
        const int whole = push_row(guard, losses);
        if (whole <= 0)
            return whole == 0 ? 0 : 1;
        uint32_t count;
        const enum radabound_edge_result result = radabound_edge_finish(guard, &count);
        if (result == RADABOUND_EDGE_OK) {
            print_number(guard->state.n_answered);
            print(": ");
            print_number(count);
            print(", complexity ");
            print_number(radabound_edge_complexity(guard));
            print("\n");
        } else if (result != RADABOUND_EDGE_HALTED) {
            return 1;
        }
    }
    print("halted after ");
    print_number(guard->state.n_answered);
    print(" answers, complexity ");
    print_number(radabound_edge_complexity(guard));
    print("\n");
    return 3;
}

/* Ends the word at the next blank; what follows it. */
static char *next_word(char *text)
{
    while (*text && *text != ' ')
        text++;
    if (*text)
        *text++ = '\0';
    return text;
}

int main(void)
{
    static struct radabound_edge guard;
    char line[256];
    if (read_command_line(line, sizeof line) == 0)
        return 1;
    char *const state = next_word(line), *const losses = next_word(state);
    next_word(losses);
    if (is_new(0) && is_new(1) && program_flash(state) != 0)
        return 1;
    const int file = open_file(losses, READ_BYTES);
    if (file < 0 || radabound_edge_init(&guard, &storage) != RADABOUND_EDGE_OK)
        return 1;
    const int status = judge_rows(&guard, file);
    return read_out_flash(state) == 0 ? status : 1;
}
