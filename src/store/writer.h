/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a writer, shared by the files that implement it:
 *
 *   writer.c        birth and death, appending steps, completing chunks, episodes
 *   writer_items.c  creating items and inserting them
 */
#ifndef RP_STORE_WRITER_H
#define RP_STORE_WRITER_H

#include "store/history.h"
#include "store/pending.h"

typedef struct rp_writer_column {
    rp_spec spec; /* of a step; the name is ours */
    rp_chunk_builder *builder;
    int32_t first_step, last_step; /* of the rows in the builder, if there are any */
    bool awaited;                  /* W2 */
} rp_writer_column;

struct rp_writer {
    rp_store *store;
    rp_allocator alloc;
    size_t size_bytes; /* of the whole allocation */
    uint64_t episode;
    int32_t chunk_length; /* 0: as the tuners say */
    size_t max_pending;
    rp_history history;
    rp_pending pending;
    rp_table *table; /* the one found last, a reference, or NULL */
    /* What has gone in and is not known to be safe: the table's log up to there. A reference;
     * NULL: nothing. */
    rp_table *unsafe_table;
    uint64_t unsafe_lsn;
    size_t column_count;
    rp_writer_column *columns;
    rp_chunk_tuner *tuners; /* one per column */
    rp_pick *latest;        /* one per column, for rp_writer_create_latest() */
};

/* Completes the chunks that items wait for. */
RP_NODISCARD rp_status rp_writer_complete_awaited(rp_writer *w, rp_error *err);

/* Inserts all items that are complete, up to the first that is not. If that fails, the item at
 * the head of the queue is the one that failed. */
rp_status rp_writer_insert_complete(rp_writer *w, rp_wait wait, rp_error *err);

/* The same; if the item at the head is refused for good, drops it and names it in the error. */
RP_NODISCARD rp_status rp_writer_insert_or_drop(rp_writer *w, rp_wait wait, rp_error *err);

#endif
