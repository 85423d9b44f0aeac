/* Queries, a row each: cells of 64 bits, the first two of which no other row has.
 *
 *     column   base + cell, a cell of the fewest bytes that all of them fit: none if all are equal
 *     slots    open addressing: where a row's hash points to, or the next free one after it,
 *
 *         slot  =  tag << index_bits  |  row + 1        0: free
 *
 * in which the tag, further bits of the hash, spares a look at nearly all rows that are others.
 *
 * The memory is the caller's, who makes room before rows are added: nothing here can fail.
 */
#ifndef RADABOUND_QUERY_TABLE_H
#define RADABOUND_QUERY_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/sign_stream.h"

enum { N_KEYS = 2 };

struct cells {
    uint64_t base;
    void *cells; /* NULL: each is base */
    int width;   /* bytes of a cell, signed: 0, 1, 2, 4 or 8 */
};

struct query_table {
    struct cells *columns;
    ptrdiff_t n_columns, n_rows;
    uint32_t *slots;
    ptrdiff_t n_slots; /* more than rows, always */
    int index_bits;
};

/* Rows to add: a column of them, cells `stride` bytes apart. */
struct new_cells {
    const char *first;
    ptrdiff_t stride;
};

RB_INLINE uint64_t new_cell(const struct new_cells *added, ptrdiff_t row)
{
    uint64_t cell;
    memcpy(&cell, added->first + row * added->stride, sizeof cell);
    return cell;
}

RB_INLINE uint64_t cell_at(const struct cells *column, ptrdiff_t row)
{
    switch (column->width) {
    case 0:
        return column->base;
    case 1:
        return column->base + (uint64_t)((const int8_t *)column->cells)[row];
    case 2:
        return column->base + (uint64_t)((const int16_t *)column->cells)[row];
    case 4:
        return column->base + (uint64_t)((const int32_t *)column->cells)[row];
    default:
        return column->base + ((const uint64_t *)column->cells)[row];
    }
}

/* Of a cell that fits. */
RB_INLINE void set_cell(struct cells *column, ptrdiff_t row, uint64_t cell)
{
    const uint64_t offset = cell - column->base;
    switch (column->width) {
    case 0:
        break;
    case 1:
        ((int8_t *)column->cells)[row] = (int8_t)offset;
        break;
    case 2:
        ((int16_t *)column->cells)[row] = (int16_t)offset;
        break;
    case 4:
        ((int32_t *)column->cells)[row] = (int32_t)offset;
        break;
    default:
        ((uint64_t *)column->cells)[row] = offset;
    }
}

/* The width that the column needs for these too. */
static int width_for(const struct cells *column, const struct new_cells *added, ptrdiff_t n_rows)
{
    uint64_t spread = 0; /* every bit in which an offset differs from its sign */
    if (added->stride == 0 && n_rows > 1)
        n_rows = 1;
    for (ptrdiff_t row = 0; row < n_rows; row++) {
        const uint64_t offset = new_cell(added, row) - column->base;
        spread |= (offset ^ (0 - (offset >> 63))) | (offset != 0);
    }
    const int width = spread >> 31 ? 8 : spread >> 15 ? 4 : spread >> 7 ? 2 : spread != 0;
    return width > column->width ? width : column->width;
}

/* Cells that lie in `cells`, `from` bytes each, take `to` bytes from now on. */
static void widen_cells(struct cells *column, void *cells, int to, ptrdiff_t n_rows)
{
    struct cells wide = {column->base, cells, to};
    column->cells = cells;
    for (ptrdiff_t row = n_rows; row-- > 0;)
        set_cell(&wide, row, cell_at(column, row));
    *column = wide;
}

RB_INLINE uint64_t query_hash(uint64_t code, uint64_t rerun)
{
    return mix64(code + rerun * SIGN_GOLDEN);
}

RB_INLINE uint64_t new_hash(const struct new_cells *added, ptrdiff_t row)
{
    return query_hash(new_cell(&added[0], row), new_cell(&added[1], row));
}

RB_INLINE ptrdiff_t first_slot(const struct query_table *table, uint64_t hash)
{
    return (ptrdiff_t)((hash >> 32) * (uint64_t)table->n_slots >> 32);
}

RB_INLINE ptrdiff_t next_slot(const struct query_table *table, ptrdiff_t slot)
{
    return slot + 1 < table->n_slots ? slot + 1 : 0;
}

RB_INLINE uint32_t slot_of(const struct query_table *table, uint64_t hash, ptrdiff_t row)
{
    return (uint32_t)hash << table->index_bits | (uint32_t)(row + 1);
}

/* Where the new row's key is, or -1; and its slot, or the one where it would be put. */
RB_INLINE ptrdiff_t find_row(const struct query_table *table, const struct new_cells *added,
                             ptrdiff_t new_row, uint64_t hash, ptrdiff_t *slot)
{
    const uint32_t tag = slot_of(table, hash, -1), index = ((uint32_t)1 << table->index_bits) - 1;
    ptrdiff_t at = first_slot(table, hash);
    for (;; at = next_slot(table, at)) {
        const uint32_t entry = table->slots[at];
        *slot = at;
        if (entry == 0)
            return -1;
        if (((entry ^ tag) & ~index) == 0) {
            const ptrdiff_t row = (ptrdiff_t)(entry & index) - 1;
            if (cell_at(&table->columns[0], row) == new_cell(&added[0], new_row) &&
                cell_at(&table->columns[1], row) == new_cell(&added[1], new_row))
                return row;
        }
    }
}

/* Whether the new row differs from the one that has its key. */
RB_INLINE int is_odd(const struct query_table *table, const struct new_cells *added,
                     ptrdiff_t new_row, ptrdiff_t row)
{
    for (ptrdiff_t c = N_KEYS; c < table->n_columns; c++)
        if (cell_at(&table->columns[c], row) != new_cell(&added[c], new_row))
            return 1;
    return 0;
}

RB_INLINE uint64_t hash_at(const struct query_table *table, ptrdiff_t row)
{
    return query_hash(cell_at(&table->columns[0], row), cell_at(&table->columns[1], row));
}

/* Slots of that memory, all free, for all rows that there are. */
static void fill_slots(struct query_table *table, uint32_t *slots, ptrdiff_t n_slots, int index_bits)
{
    table->slots = slots, table->n_slots = n_slots, table->index_bits = index_bits;
    for (ptrdiff_t row = 0; row < table->n_rows; row++) {
        const uint64_t hash = hash_at(table, row);
        ptrdiff_t at = first_slot(table, hash);
        while (slots[at])
            at = next_slot(table, at);
        slots[at] = slot_of(table, hash, row);
    }
}

/* Adds the rows whose keys are new.  Returns how many others differ from the row with their key. */
static ptrdiff_t add_rows(struct query_table *table, const struct new_cells *added,
                          ptrdiff_t n_rows)
{
    enum { AHEAD = 16 };
    ptrdiff_t n_odd = 0;
    for (ptrdiff_t first = 0; first < n_rows; first += AHEAD) {
        const ptrdiff_t n = (ptrdiff_t)smaller(AHEAD, n_rows - first);
        uint64_t hashes[AHEAD];
        for (ptrdiff_t i = 0; i < n; i++) {
            hashes[i] = new_hash(added, first + i);
            RB_PREFETCH(&table->slots[first_slot(table, hashes[i])], 3);
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            ptrdiff_t slot;
            const ptrdiff_t place = find_row(table, added, first + i, hashes[i], &slot);
            if (place >= 0) {
                n_odd += is_odd(table, added, first + i, place);
                continue;
            }
            for (ptrdiff_t c = 0; c < table->n_columns; c++)
                set_cell(&table->columns[c], table->n_rows, new_cell(&added[c], first + i));
            table->slots[slot] = slot_of(table, hashes[i], table->n_rows++);
        }
    }
    return n_odd;
}

/* Once they are added: where each one is, and how many were there after each, n_before before. */
static void place_rows(const struct query_table *table, const struct new_cells *added,
                       ptrdiff_t n_rows, ptrdiff_t n_before, int64_t *places, int64_t *numbers)
{
    for (ptrdiff_t row = 0; row < n_rows; row++) {
        ptrdiff_t slot;
        places[row] = find_row(table, added, row, new_hash(added, row), &slot);
        n_before = places[row] < n_before ? n_before : (ptrdiff_t)places[row] + 1;
        numbers[row] = n_before;
    }
}

/* As if the last rows had never been added. */
static void take_back_rows(struct query_table *table, ptrdiff_t n_rows)
{
    while (table->n_rows > n_rows) {
        const ptrdiff_t row = --table->n_rows;
        const uint64_t hash = hash_at(table, row);
        ptrdiff_t at = first_slot(table, hash);
        while (table->slots[at] != slot_of(table, hash, row))
            at = next_slot(table, at);
        table->slots[at] = 0; /* nothing that is there was put after it */
    }
}

#endif
