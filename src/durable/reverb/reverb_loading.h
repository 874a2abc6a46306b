/* SPDX-License-Identifier: Apache-2.0 */
/* A dm-reverb checkpoint that is being read, for reverb_load.c, which reads it, and
 * reverb_fill.c, which puts it into the store. */
#ifndef RP_DURABLE_REVERB_REVERB_LOADING_H
#define RP_DURABLE_REVERB_REVERB_LOADING_H

#include "chunk/trajectory.h"
#include "durable/reverb/reverb_checkpoint.h"
#include "durable/reverb/reverb_wire.h"
#include "wire/fields.h"

/* An item, read. */
typedef struct rp_loaded_item {
    uint64_t key;
    double priority;
    rp_trajectory *trajectory; /* owned until a table has it */
    int64_t inserted_at_ns;
    int32_t times_sampled;
} rp_loaded_item;

typedef struct rp_loaded_table {
    rp_reverb_table header; /* its name and signature are not valid: they are below */
    char name[RP_WIRE_MAX_NAME_BYTES + 1];
    rp_signature *signature;
    rp_loaded_item *items;
    size_t count, capacity;
    rp_table *table; /* a reference, from when the store's turn has come */
    bool made;       /* by us */
    bool restored;
} rp_loaded_table;

typedef struct rp_loading {
    const rp_allocator *alloc;
    rp_files *files;
    rp_store *store;
    rp_reverb_options options;
    rp_reverb_report report;
    rp_progress_meter meter;
    uint64_t done_bytes; /* of the files before */
    rp_reverb_chunks *index;
    rp_loaded_table *tables;
    size_t table_count, table_capacity;
    size_t last_table; /* that an item was for */
    bool items_in_tables;
    unsigned item_forms, chunk_forms; /* seen so far */
    rp_buf scratch;
    /* Room for an item. */
    rp_wire_column *wire_columns;
    rp_wire_slice *wire_slices;
    rp_slices *columns;
    rp_slice *slices;
    uint64_t *keys;
    size_t wire_column_room, wire_slice_room, column_room, slice_room, key_room;
} rp_loading;

/* Makes and restores all tables. If one fails, those before it are as they were. */
RP_NODISCARD rp_status rp_loading_fill_store(rp_loading *l, rp_error *err);

#endif
