/* SPDX-License-Identifier: Apache-2.0 */
/* A dm-reverb checkpoint that is being loaded, shared by reverb_load.c, which reads it, and
 * reverb_fill.c, which fills the store.
 *
 * Invariants:
 *   B1  each count is at most its capacity;
 *   B2  the names of tables are unique;
 *   B3  an item owns its trajectory until give_block() in reverb_fill.c passes it to the
 *       table. */
#ifndef RP_DURABLE_REVERB_REVERB_LOADING_H
#define RP_DURABLE_REVERB_REVERB_LOADING_H

#include "chunk/trajectory.h"
#include "durable/reverb/reverb_checkpoint.h"
#include "durable/reverb/reverb_wire.h"
#include "wire/fields.h"

/* An item that was read from the file. */
typedef struct rp_reverb_loaded_item {
    uint64_t key;
    double priority;
    rp_trajectory *trajectory; /* owned (invariant B3) */
    int64_t inserted_at_ns;
    int32_t times_sampled;
} rp_reverb_loaded_item;

typedef struct rp_reverb_loaded_table {
    rp_reverb_table header; /* its `name` and `signature` are not used: the fields below have
                               them */
    char name[RP_WIRE_MAX_NAME_BYTES + 1];
    rp_signature *signature;
    rp_reverb_loaded_item *items;
    size_t count, capacity;
    rp_table *table; /* a reference; NULL until the store is filled */
    bool made;       /* this load has created the table */
    bool restored;   /* the table of the store has received the items */
} rp_reverb_loaded_table;

typedef struct rp_reverb_loading {
    const rp_allocator *alloc;
    rp_files *files;
    rp_store *store;
    rp_reverb_options options;
    rp_reverb_report report;
    rp_progress_meter meter;
    uint64_t done_bytes; /* total size of the files that were read before the current one */
    rp_reverb_chunks *index;
    rp_reverb_loaded_table *tables;
    size_t table_count, table_capacity;
    size_t last_table;    /* index of the table to which the last item belongs */
    bool items_in_tables; /* the file has the old form, in which the record of a table contains
                             the table's items */
    unsigned item_forms, chunk_forms; /* rp_reverb_form bits seen so far */
    rp_buf scratch;
    /* Scratch memory for one item. */
    rp_wire_column *wire_columns;
    rp_wire_slice *wire_slices;
    rp_slices *columns;
    rp_chunk_slice *slices;
    uint64_t *keys;
    size_t wire_column_room, wire_slice_room, column_room, slice_room, key_room;
} rp_reverb_loading;

/* Creates and restores all tables. If this fails for a table, drops the tables that were
 * created and empties those that were restored. */
RP_NODISCARD rp_status rp_reverb_fill_store(rp_reverb_loading *l, rp_error *err);

#endif
