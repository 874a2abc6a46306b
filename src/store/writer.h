/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a writer, shared by the files that implement it:
 *
 *   writer.c        creation, appending steps, completing chunks, episodes
 *   writer_items.c  creating items and inserting them
 */
#ifndef RP_STORE_WRITER_H
#define RP_STORE_WRITER_H

#include "store/history.h"
#include "store/pending.h"

typedef struct rp_writer_column {
    rp_spec spec; /* of a step; the name is owned */
    rp_chunk_builder *builder;
    int32_t first_step, last_step; /* of the rows in the builder, if there are any */
    bool awaited;                  /* W2 */
} rp_writer_column;

struct rp_writer {
    rp_store *store;
    rp_allocator alloc;
    size_t size_bytes; /* of the whole allocation */
    uint64_t episode;
    int32_t chunk_length; /* 0: chosen by the tuners */
    size_t max_pending;
    rp_history history;
    rp_pending pending;
    rp_table *table; /* the table used last, owned, or NULL */
    /* Inserted items that may not be durable: log records of this table up to unsafe_lsn.
     * Owned; NULL: none. */
    rp_table *unsafe_table;
    uint64_t unsafe_lsn;
    size_t column_count;
    rp_writer_column *columns;
    rp_chunk_tuner *tuners; /* one per column */
    rp_pick *latest;        /* one per column, for rp_writer_create_latest() */
};

/* Completes the chunks that items wait for. */
RP_NODISCARD rp_status rp_writer_complete_awaited(rp_writer *w, rp_error *err);

/* Inserts items in order, up to the first that is not complete. If an insert fails, its item is
 * at the head of the queue. */
rp_status rp_writer_insert_complete(rp_writer *w, rp_wait wait, rp_error *err);

/* The same; if the table can never accept the item at the head, discards it and names it in the
 * error. */
RP_NODISCARD rp_status rp_writer_insert_or_drop(rp_writer *w, rp_wait wait, rp_error *err);

#endif
