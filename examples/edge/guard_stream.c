/* A guard without Python: answers the mean of each row of losses until its budget is spent.
 *
 *     radabound edge new-state STATE ...       (Python, once)
 *     guard_stream STATE < losses
 *
 * A row is n_samples losses of 0 or 1, ceil(n_samples / 8) bytes, the lowest bit first, bits past
 * the end zero; rows follow one another.  STATE is locked while this runs, and flushed before an
 * answer is printed.  Exit status: 0 end of the losses, 3 halted, now or before; 1 anything else,
 * and then the row in hand has not been judged, or its answer not been shown.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "radabound_edge.h"

/* ---- the storage: a file with both slots, one after the other ------------------------------- */

static off_t slot_at(int slot) { return slot * (off_t)RADABOUND_EDGE_STATE_BYTES; }

static int read_slot(void *file, int slot, void *bytes)
{
    return pread(*(int *)file, bytes, RADABOUND_EDGE_STATE_BYTES, slot_at(slot)) !=
           RADABOUND_EDGE_STATE_BYTES;
}

static int write_slot(void *file, int slot, const void *bytes)
{
    return pwrite(*(int *)file, bytes, RADABOUND_EDGE_STATE_BYTES, slot_at(slot)) !=
               RADABOUND_EDGE_STATE_BYTES ||
           fsync(*(int *)file) != 0;
}

/* ---- the losses ----------------------------------------------------------------------------- */

enum { BUFFER_BYTES = 512 };

/* n bytes of the stream; fewer at its end; -1: it cannot be read. */
static ssize_t read_losses(uint8_t *bytes, ssize_t n)
{
    ssize_t done = 0, got = 1;
    for (; done < n && got > 0; done += got)
        got = read(STDIN_FILENO, bytes + done, (size_t)(n - done));
    return got < 0 ? -1 : done;
}

/* Pushes the next row, piece by piece.  1: it is whole; 0: the losses have ended before it; -1:
 * they end within it, cannot be read, or are no losses. */
static int push_row(struct radabound_edge *guard)
{
    uint8_t bytes[BUFFER_BYTES];
    for (uint32_t done = 0, n; done < guard->state.n_samples; done += n) {
        const uint32_t left = guard->state.n_samples - done;
        n = left < 8 * BUFFER_BYTES ? left : 8 * BUFFER_BYTES;
        const ssize_t n_bytes = (ssize_t)(n + 7) / 8, n_read = read_losses(bytes, n_bytes);
        if (n_read < n_bytes)
            return done == 0 && n_read == 0 ? 0 : -1;
        if (radabound_edge_push_bits(guard, bytes, n) != RADABOUND_EDGE_OK)
            return -1;
    }
    return 1;
}

int main(int n_arguments, char **arguments)
{
    static struct radabound_edge guard;
    static char line[128];
    int file = n_arguments == 2 ? open(arguments[1], O_RDWR) : -1;
    const struct radabound_edge_storage storage = {read_slot, write_slot, &file};
    setvbuf(stdout, line, _IOLBF, sizeof line);
    /* a standard stream was closed: what is printed, or read as losses, would be the state */
    if (file >= 0 && file <= STDERR_FILENO)
        return 1;
    if (file < 0 || lockf(file, F_TLOCK, 0) != 0 ||
        radabound_edge_init(&guard, &storage) != RADABOUND_EDGE_OK) {
        fputs("usage: guard_stream STATE < losses; STATE is not whole, or in use\n", stderr);
        return 1;
    }
    while (!radabound_edge_halted(&guard)) {
        const int whole = push_row(&guard);
        if (whole == 0)
            return 0;
        uint32_t count;
        const enum radabound_edge_result result = radabound_edge_finish(&guard, &count);
        if (whole < 0 || (result != RADABOUND_EDGE_OK && result != RADABOUND_EDGE_HALTED)) {
            fputs("a row is not whole, or the state could not be written\n", stderr);
            return 1;
        }
        if (result == RADABOUND_EDGE_OK &&
            printf("%" PRIu32 ": mean %.6f (%" PRIu32 " of %" PRIu32 "), complexity %" PRId64
                   " (budget %" PRId64 ")\n",
                   guard.state.n_answered, count / (double)guard.state.n_samples, count,
                   guard.state.n_samples, radabound_edge_complexity(&guard),
                   radabound_edge_budget(&guard)) < 0)
            return 1;
    }
    printf("halted after %" PRIu32 " answers, complexity %" PRId64 " (budget %" PRId64 ")\n",
           guard.state.n_answered, radabound_edge_complexity(&guard),
           radabound_edge_budget(&guard));
    return 3;
}
