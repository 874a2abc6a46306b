/* SPDX-License-Identifier: Apache-2.0 */
/* All chunks of a record are found before anything is changed. */
#include "durable/journal/journal_redo.h"

#include <assert.h>
#include <inttypes.h>

#include "chunk/trajectory.h"
#include "durable/format/image.h"
#include "durable/format/journal_records.h"
#include "durable/format/rollout_records.h"
#include "durable/journal/redo_rollouts.h"
#include "util/error.h"
#include "util/mem.h"

enum { MOST_TABLES = 4096 };

struct rp_redo {
    rp_redo_options o;
    rp_allocator alloc;
    uint64_t count;
    rp_decoded_change decoded; /* the current record */
    rp_chunk_slice *slices;    /* of one trajectory */
    rp_slices *columns;
    size_t slice_capacity, column_capacity;
};

rp_status rp_redo_new(const rp_redo_options *options, rp_redo **out, rp_error *err)
{
    rp_redo *r = rp_alloc_zero(options->alloc, sizeof *r);

    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    r->o = *options;
    r->alloc = *options->alloc;
    rp_decoded_change_init(&r->decoded, &r->alloc);
    *out = r;
    return RP_OK;
}

void rp_redo_free(rp_redo *r)
{
    rp_allocator alloc;
    rp_table **tables;

    if (r == NULL) return;
    alloc = r->alloc;
    tables = rp_alloc_array(&alloc, MOST_TABLES, sizeof *tables);
    if (tables != NULL) { /* otherwise the next operation of each table reclaims its slots */
        size_t count = rp_store_find_tables(r->o.store, tables, MOST_TABLES);

        for (size_t i = 0; i < count && i < MOST_TABLES; i++) {
            rp_table_redo_end(tables[i]);
            rp_table_unref(tables[i]);
        }
    }
    rp_release(&alloc, tables, MOST_TABLES * sizeof *tables);
    rp_decoded_change_deinit(&r->decoded);
    rp_release(&alloc, r->slices, r->slice_capacity * sizeof *r->slices);
    rp_release(&alloc, r->columns, r->column_capacity * sizeof *r->columns);
    rp_release(&alloc, r, sizeof *r);
}

uint64_t rp_redo_count(const rp_redo *r)
{
    return r->count;
}

static bool make_room(const rp_redo *r, void *array, size_t count, size_t *capacity,
                      size_t element_size)
{
    size_t want = *capacity < 64 ? 64 : *capacity;

    if (count <= *capacity) return true;
    assert(count <= SIZE_MAX / 2);
    while (want < count) want *= 2;
    if (!rp_resize_array(&r->alloc, array, *capacity, want, element_size)) return false;
    *capacity = want;
    return true;
}

/* Builds the trajectory of an inserted item. Returns owned. */
static rp_status make_trajectory(rp_redo *r, const rp_decoded_item *item, rp_trajectory **out,
                                 rp_error *err)
{
    const rp_decoded_change *decoded = &r->decoded;
    const rp_decoded_column *columns = decoded->columns + item->first_column;
    size_t slices = 0, at = 0;
    rp_error why;
    rp_status st;

    assert((size_t)item->first_column + item->column_count <= decoded->column_count);
    for (size_t i = 0; i < item->column_count; i++) slices += columns[i].slice_count;
    if (!make_room(r, &r->slices, slices, &r->slice_capacity, sizeof *r->slices) ||
        !make_room(r, &r->columns, item->column_count, &r->column_capacity, sizeof *r->columns))
        return rp_fail_memory(err, slices * sizeof *r->slices);
    for (size_t i = 0; i < item->column_count; i++) {
        r->columns[i] = (rp_slices){r->slices + at, columns[i].slice_count, columns[i].squeeze};
        for (size_t k = 0; k < columns[i].slice_count; k++, at++) {
            const rp_decoded_slice *from = &decoded->slices[columns[i].first_slice + k];

            assert(at < slices && from->location < decoded->location_count);
            r->slices[at] = (rp_chunk_slice){NULL, from->column, from->offset, from->length};
            st = r->o.chunk(r->o.ctx, &decoded->locations[from->location].at,
                            &r->slices[at].chunk, err);
            if (st == RP_OK &&
                r->slices[at].chunk->origin.key != decoded->locations[from->location].key)
                st = rp_fail(err, RP_CORRUPT,
                             "segment %" PRIu64 ", offset %" PRIu64 ": another chunk is there",
                             decoded->locations[from->location].at.segment,
                             decoded->locations[from->location].at.offset);
            if (st == RP_CORRUPT && err != NULL) err->code = RP_NOT_FOUND;
            if (st != RP_OK) return st == RP_CORRUPT ? RP_NOT_FOUND : st;
        }
    }
    st = rp_trajectory_new(&r->alloc, r->columns, item->column_count, out, &why);
    if (st == RP_INVALID) return rp_fail(err, RP_CORRUPT, "%.200s", why.text);
    if (st != RP_OK && err != NULL) *err = why;
    return st;
}

/* Applies the decoded change to its table. */
static rp_status apply(rp_redo *r, rp_table *table, rp_error *err)
{
    rp_decoded_change *decoded = &r->decoded;
    size_t made = 0,
           count = decoded->change.kind == RP_LOGGED_INSERT ? decoded->change.count : 0;
    rp_status st = RP_OK;

    for (; made < count && st == RP_OK; made++)
        if (decoded->items[made].column_count > 0)
            st = make_trajectory(r, &decoded->items[made], &decoded->inserted[made].trajectory,
                                 err);
    if (st == RP_OK) st = rp_table_redo(table, &decoded->change, err);
    assert(made <= count && count <= RP_JOURNAL_MAX_ITEMS);
    for (size_t i = 0; i < made; i++) {
        rp_trajectory_unref(decoded->inserted[i].trajectory);
        decoded->inserted[i].trajectory = NULL;
    }
    return st;
}

static rp_status redo_change(rp_redo *r, const rp_record *record, rp_error *err)
{
    rp_status st =
        rp_decoded_change_read(&r->decoded, record->kind, record->payload, record->size, err);
    rp_table *table = NULL;

    if (st != RP_OK) return st;
    table = rp_store_find_table(r->o.store, r->decoded.table);
    if (table == NULL)
        return rp_fail(err, RP_CORRUPT, "there is no table '%.*s'", (int)r->decoded.table.size,
                       r->decoded.table.data);
    st = apply(r, table, err);
    rp_table_unref(table);
    return st;
}

static rp_status no_block(void *ctx, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK],
                          rp_error *err)
{
    (void)ctx, (void)out;
    return rp_fail(err, RP_CORRUPT, "a new table has a block %zu", block);
}

static rp_status no_set(void *ctx, int which, uint32_t *out, size_t count, rp_error *err)
{
    (void)ctx, (void)which, (void)out;
    if (count == 0) return RP_OK;
    return rp_fail(err, RP_CORRUPT, "a new table has %zu slots in a set", count);
}

/* Creates the table. If the store has a new table of that name, restores the initial state of
 * the record. */
static rp_status create(rp_redo *r, const rp_record *record, rp_error *err)
{
    static const rp_restore_source nothing = {.block = no_block, .set = no_set};
    rp_table_state state;
    rp_table *table = NULL;
    uint64_t lsn;
    rp_status st = rp_image_read_table(&r->alloc, record->payload, record->size, &state, err);

    if (st != RP_OK) return st;
    table = rp_store_find_table(r->o.store,
                                (rp_string){state.options.name, strlen(state.options.name)});
    if (table == NULL) {
        st = rp_store_add_table_logged(r->o.store, &state.options, &table, &lsn, err);
        if (st == RP_INVALID) {
            st = RP_CORRUPT;
            if (err != NULL) err->code = st;
        }
        if (st == RP_OK) (void)rp_table_ref(table);
    }
    if (st == RP_OK) st = rp_table_restore(table, &state, &nothing, err);
    rp_table_unref(table);
    rp_image_release_table(&r->alloc, &state);
    return st;
}

static rp_status drop(rp_redo *r, const rp_record *record, rp_error *err)
{
    rp_string name;
    rp_status st = rp_journal_read_drop(record->payload, record->size, &name, err);

    if (st == RP_OK) st = rp_store_drop_table(r->o.store, name, err);
    if (st == RP_NOT_FOUND) {
        st = RP_CORRUPT;
        if (err != NULL) err->code = st;
    }
    return st;
}

rp_status rp_redo_record(void *ctx, const rp_record *record, rp_error *err)
{
    rp_redo *r = ctx;
    rp_error why = {.text = ""};
    bool applied = true;
    rp_status st;

    if (rp_rollout_record_is(record->kind))
        st = rp_redo_rollouts(&(rp_rollouts_redo){.alloc = &r->alloc,
                                                  .store = r->o.store,
                                                  .found = r->o.rollouts,
                                                  .lsn = r->o.rollouts_lsn,
                                                  .salvage = r->o.salvage},
                              record, &applied, &why);
    else if (record->kind == RP_RECORD_CREATE)
        st = create(r, record, &why);
    else if (record->kind == RP_RECORD_DROP)
        st = drop(r, record, &why);
    else
        st = redo_change(r, record, &why);
    if (st == RP_OK) {
        r->count += applied;
        return RP_OK;
    }
    return rp_fail(err, st, "journal record %" PRIu64 ": %.200s", record->number, why.text);
}
