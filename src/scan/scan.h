/* Rows of losses, in order, through a guard's state, up to the row that must be withheld.
 *
 * Here it is decided which way they go, and nothing depends on that but time:
 *
 *     count_any_rows, judge_rows   whatever can be read: bits, or units of real-valued losses
 *     judge_tile                   bits that fit a tile, once there are extremes to widen
 *     judge_block                  bits in bit-sliced blocks
 *
 * One query, from Python to the kernel and back:
 *
 *     guard.query(losses)                        _kernels/guard.pyx
 *       GuardCore.query                          _kernels/guard.pyx       shape, dtype: no contents
 *         fill_source, values_as_rows            _kernels/rows.pyx        where the losses lie
 *         judge_row                              scan/widen.c             under the guard's lock
 *           read_tile -> packer->pack_row        kernels/packing_*.c      losses to bits, or refused
 *           kernel->widen_extremes               kernels/signed_sums_*.c  sums, extremes, growth
 *           passes                               scan/state.h             the gate, in integers
 *         else count_any_rows, judge_rows        the first row, long or real-valued ones, a ledger's
 *       Answer, or None                          and then guard._refuse raises HoldoutExhausted
 */
#ifndef RADABOUND_SCAN_H
#define RADABOUND_SCAN_H

#include "widen.h"

/* Whether so many rows go through faster as blocks, if there is a plan: there are enough of them,
 * and there is room for the packed ones, and for the plan of signs that are not kept. */
int sliced_pays(const struct kernel *kernel, const struct sliced_kernel *sliced,
                const struct sign_store *signs, const struct loss_rows *rows, ptrdiff_t n_rows);

/* How many rows are faster as a block than one after the other; 0: none are. */
ptrdiff_t least_block(const struct work *work);

/* Judges the rows from `first` on; returns the row at which it stopped: `last`, or the one that
 * `verdict` speaks of.  UNREADABLE: work->chunk->bad_sample of it is not a loss. */
ptrdiff_t scan_rows(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                    enum verdict *verdict);

/* Takes rows first .. last - 1 into the extremes of their studentised sums, in each of n_into ways,
 * whose means and scales are those of row 0 on, in units of one loss, and whose vectors are whole
 * strips.  Of `work` neither state nor totals are used.  Returns `last`, or the first row that
 * cannot be read: work->chunk->bad_sample says why. */
ptrdiff_t studentise_rows(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                          const struct studentised *into, int n_into);

#endif
