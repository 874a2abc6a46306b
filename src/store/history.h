/* SPDX-License-Identifier: Apache-2.0 */
/* The latest steps of an episode: for each step and column, the location of its row.
 *
 * A ring of cells, one line for each step. A cell names the chunk that holds its row. If it
 * names none, the row is in the builder of its column, which collects the next chunk.
 *
 *   step          begin                                  end
 *   column 0      | A 0 | A 1 | A 2 | B 0 | open 0 | ... |
 *   column 1      | C 4 |  -  | C 5 |  -  | open 0 | ... |        -: left out of this step
 *
 * Invariants between calls:
 *   H1  end - begin <= limit, and every step in [begin, end) has a line;
 *   H2  the rows of a column grow by one from cell to cell within a chunk, so the cell of a
 *       chunk's last row is the last of its cells to be removed;
 *   H3  the history holds one reference to each chunk that a cell names, and drops it with the
 *       cell of its last row (H2). So an append changes no reference count.
 *
 * Part of the writer. One thread at a time. */
#ifndef RP_STORE_HISTORY_H
#define RP_STORE_HISTORY_H

#include "reprise/writer.h"

#define RP_ROW_ABSENT UINT32_MAX

typedef struct rp_cell {
    rp_chunk *chunk; /* NULL: in the builder, or absent */
    uint32_t row;    /* in its chunk; RP_ROW_ABSENT: the step has no row of this column */
} rp_cell;

typedef struct rp_history {
    rp_allocator alloc;
    size_t column_count;
    int64_t limit;      /* steps to keep, >= 1 */
    int64_t begin, end; /* holds the steps [begin, end) */
    size_t capacity;    /* of the ring in steps: 0 or a power of two */
    rp_cell *cells;     /* of step s: column_count, from (s mod capacity) * column_count on */
} rp_history;

/* Cannot fail; allocates nothing. */
void rp_history_init(rp_history *h, const rp_allocator *alloc, size_t column_count,
                     int64_t limit);
void rp_history_deinit(rp_history *h);

/* Makes room for one more step. The ring doubles until it holds `limit` steps; after that this
 * allocates nothing. False, with nothing changed, if there is no memory. */
RP_NODISCARD bool rp_history_reserve(rp_history *h);

/* Adds a step, in the reserved room, and removes the oldest if there would be too many. Returns
 * its cells, all absent, for the caller to fill in: valid until the next call that is not
 * const. */
rp_cell *rp_history_push(rp_history *h);

/* Sets the chunk of the rows of a column from `first_step` on, which the builder has finished:
 * `chunk`, a chunk of one column. Takes a reference if the history has one of the rows. */
void rp_history_complete(rp_history *h, size_t column, int64_t first_step, rp_chunk *chunk);

/* Converts the rows of a pick, whose steps are all in [begin, end) and whose start is not
 * negative, into as few slices as possible. Slices of rows in the builder have no chunk. Writes
 * the slices to `out` (NULL: only counts them; stops after `max`) and their number to `*count`;
 * takes no references. False, with the step in `*absent`, if a step has no row of the column.
 */
bool rp_history_slices(const rp_history *h, const rp_pick *pick, size_t max, rp_slice *out,
                       size_t *count, int64_t *absent);

/* Removes all steps; the next one is 0. Keeps the memory. */
void rp_history_clear(rp_history *h);

#endif
