/* SPDX-License-Identifier: Apache-2.0 */
/* The latest steps of an episode: for each step and column, where its row is.
 *
 * A ring of cells, a line of them for each step. A cell names the chunk that holds its row; as
 * long as it names none, the row is in the one chunk that its column is still collecting.
 *
 *   step          begin                                  end
 *   column 0      | A 0 | A 1 | A 2 | B 0 | open 0 | ... |
 *   column 1      | C 4 |  -  | C 5 |  -  | open 0 | ... |        -: left out of this step
 *
 * Invariants between calls:
 *   H1  end - begin <= limit, and every step in [begin, end) has a line;
 *   H2  the rows of a column grow by one from cell to cell within a chunk, so the cell of a
 *       chunk's last row is the last of its cells to go;
 *   H3  the history holds one reference to each chunk that a cell names, and drops it with the
 *       cell of its last row (H2). So an append touches no reference count.
 *
 * Part of the writer. One thread at a time. */
#ifndef RP_STORE_HISTORY_H
#define RP_STORE_HISTORY_H

#include "reprise/writer.h"

#define RP_ROW_ABSENT UINT32_MAX

typedef struct rp_cell {
    rp_chunk *chunk; /* NULL: being collected, or absent */
    uint32_t row;    /* in its chunk; RP_ROW_ABSENT: this column was left out */
} rp_cell;

typedef struct rp_history {
    rp_allocator alloc;
    size_t column_count;
    int64_t limit;      /* steps to keep, >= 1 */
    int64_t begin, end; /* steps it holds; `end` is the next one */
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

/* Adds a step, in the room reserved, and drops the oldest if there would be too many. Returns
 * its cells, all absent, for the caller to fill in: valid until the next call that is not
 * const. */
rp_cell *rp_history_push(rp_history *h);

/* The column's rows being collected, from `first_step` on, have become `chunk`, a chunk of one
 * column. Takes a reference of its own if it still has one of the rows. */
void rp_history_complete(rp_history *h, size_t column, int64_t first_step, rp_chunk *chunk);

/* Turns the rows of a pick, whose steps are all in [begin, end) and whose start is not
 * negative, into slices, as few as can be: a row that does not follow the one before it in the
 * same chunk starts a new one. Slices of rows being collected have no chunk. Writes them to
 * `out` (NULL: only counts them; stops after `max`) and their number to `*count`; takes no
 * references. False, and the step in `*absent`, if the column was left out of one. */
bool rp_history_slices(const rp_history *h, const rp_pick *pick, size_t max, rp_slice *out,
                       size_t *count, int64_t *absent);

/* Forgets all steps and begins at 0 again. Keeps the room. */
void rp_history_clear(rp_history *h);

#endif
