/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the items of a checkpoint, one block of slots at a time. Keeps the chunks that were
 * read last, since neighbouring items share them.
 *
 *   U1  a cache entry with a chunk has a reference to it and its location;
 *   U2  `items` counts the items of the current table that were passed on. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "disk/files_read_only.h"
#include "durable/tool/data_read.h"
#include "reprise/data.h"
#include "util/error.h"
#include "util/mem.h"

enum { CACHED = 1024 }; /* chunks */

typedef struct dump {
    const rp_allocator *alloc;
    const rp_data_dump_options *o;
    rp_files *files;
    rp_manifest *manifest;
    rp_data_reader reader;
    rp_image image;
    struct {
        rp_disk_location location;
        rp_chunk *chunk;
    } cache[CACHED]; /* by location */
    /* Scratch memory for one item. */
    rp_slices *columns;
    rp_chunk_slice *slices;
    size_t column_room, slice_room;
    uint64_t items; /* U2 */
} dump;

/* Returns a reference to the chunk at a location, from the cache or from the disk. */
static rp_status get_chunk(dump *d, const rp_disk_location *location, rp_chunk **out,
                           rp_error *err)
{
    size_t at =
        (size_t)((location->segment * 0x9e3779b97f4a7c15u + location->offset) >> 5) % CACHED;
    rp_record record;
    rp_error why = {0};
    rp_status st;

    assert(at < CACHED);
    if (d->cache[at].chunk != NULL && d->cache[at].location.segment == location->segment &&
        d->cache[at].location.offset == location->offset) {
        *out = rp_chunk_ref(d->cache[at].chunk);
        return RP_OK;
    }
    st = rp_data_reader_get(&d->reader, location, RP_RECORD_CHUNK, &record, err);
    if (st != RP_OK) return st;
    st = rp_chunk_parse(d->alloc, record.payload, record.size,
                        &(rp_chunk_limits){RP_MAX_RECORD_BYTES, SIZE_MAX / 2, RP_MAX_COLUMNS},
                        out, &why);
    if (st != RP_OK)
        return rp_fail(err, st, "segment %" PRIu64 ": offset %" PRIu64 ": %.160s",
                       location->segment, location->offset, why.text);
    rp_chunk_unref(d->cache[at].chunk);
    d->cache[at].chunk = rp_chunk_ref(*out);
    d->cache[at].location = *location;
    return RP_OK;
}

static rp_status reserve(dump *d, size_t columns, size_t slices, rp_error *err)
{
    if (columns > d->column_room) {
        if (!rp_resize_array(d->alloc, &d->columns, d->column_room, columns,
                             sizeof *d->columns))
            return rp_fail_memory(err, columns * sizeof *d->columns);
        d->column_room = columns;
    }
    if (slices > d->slice_room) {
        if (!rp_resize_array(d->alloc, &d->slices, d->slice_room, slices, sizeof *d->slices))
            return rp_fail_memory(err, slices * sizeof *d->slices);
        d->slice_room = slices;
    }
    return RP_OK;
}

static rp_status make_trajectory(dump *d, const rp_image_slot *slot, rp_trajectory **out,
                                 rp_error *err)
{
    const rp_image_column *columns = d->image.columns + slot->first_column;
    size_t slices = 0, n = 0;
    rp_status st;

    assert((size_t)slot->first_column + slot->column_count <= d->image.column_count);
    for (size_t c = 0; c < slot->column_count; c++) slices += columns[c].slice_count;
    st = reserve(d, slot->column_count, slices, err);
    for (size_t c = 0; st == RP_OK && c < slot->column_count; c++) {
        d->columns[c] = (rp_slices){d->slices + n, columns[c].slice_count, columns[c].squeeze};
        for (size_t i = 0; st == RP_OK && i < columns[c].slice_count; i++) {
            const rp_image_slice *s = &d->image.slices[columns[c].first_slice + i];
            rp_chunk *chunk = NULL;

            assert(n < d->slice_room && s->location < d->image.location_count);
            st = get_chunk(d, &d->image.locations[s->location], &chunk, err);
            if (st == RP_OK)
                d->slices[n++] = (rp_chunk_slice){chunk, s->column, s->offset, s->length};
        }
    }
    if (st == RP_OK) st = rp_trajectory_new(d->alloc, d->columns, slot->column_count, out, err);
    for (size_t i = 0; i < n; i++) rp_chunk_unref(d->slices[i].chunk);
    return st == RP_INVALID ? RP_CORRUPT : st;
}

static rp_status dump_slot(dump *d, const char *table, const rp_image_slot *slot,
                           const rp_table_state *state, rp_error *err)
{
    rp_sample item = {
        .key = slot->key,
        .priority = slot->priority,
        .table_size = (int64_t)state->live,
        .inserted_at_ns = slot->inserted_at_ns,
        .times_sampled = slot->times_sampled,
    };
    rp_status st = make_trajectory(d, slot, &item.trajectory, err);

    assert(slot->live);
    if (st != RP_OK) return st;
    d->o->on_item(d->o->ctx, table, &item);
    rp_trajectory_unref(item.trajectory);
    return RP_OK;
}

static bool is_enough(const dump *d)
{
    return d->o->max_items != 0 && d->items >= d->o->max_items;
}

static rp_status dump_block(dump *d, const rp_manifest_table *table, size_t block,
                            rp_error *err)
{
    const char *name = table->state.options.name;
    rp_record record;
    rp_status st;

    assert(block < table->block_count);
    st = rp_data_reader_get(&d->reader, &table->blocks[block].location, RP_RECORD_BLOCK,
                            &record, err);
    if (st != RP_OK) return st;
    if (rp_manifest_hash_block(record.payload, record.size) != table->blocks[block].hash)
        return rp_fail(err, RP_CORRUPT,
                       "table '%.64s': block %zu is not the one that was written", name, block);
    st = rp_image_read(&d->image, record.payload, record.size, err);
    for (size_t i = 0; st == RP_OK && i < RP_SLOTS_PER_BLOCK && !is_enough(d); i++) {
        if (!d->image.slots[i].live) continue;
        st = dump_slot(d, name, &d->image.slots[i], &table->state, err);
        d->items++;
    }
    return st;
}

static void report_table(const dump *d, const rp_table_state *s)
{
    const rp_table_info info = {
        .name = s->options.name,
        .sampler = s->options.sampler,
        .remover = s->options.remover,
        .limiter = s->options.limiter,
        .max_size = s->options.max_size,
        .max_bytes = s->options.max_bytes,
        .max_times_sampled = s->options.max_times_sampled,
        .soft_limit = s->options.soft_limit,
        .paused = s->paused,
        .signature = s->options.signature,
        .size = (int64_t)s->live,
        .inserts = s->limiter.inserts,
        .samples = s->limiter.samples,
        .deletes = s->limiter.deletes,
        .updates = s->updates,
        .evictions = s->evictions,
        .deleted_episodes = s->deleted_episodes,
        .unique_samples = s->unique_samples,
        .max_priority = s->max_priority,
        .limiter_diff = rp_rate_limiter_diff(&s->limiter),
    };

    if (d->o->on_table != NULL) d->o->on_table(d->o->ctx, &info);
}

/* RP_NOT_FOUND, with the tables that the checkpoint has, as far as there is room. */
static rp_status no_table(const dump *d, rp_error *err)
{
    char names[160] = "no tables";
    size_t used = 0, shown = 0, count = d->manifest->table_count;

    for (; shown < count && used < sizeof names - 90; shown++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s'",
                                 shown > 0 ? ", " : "",
                                 d->manifest->tables[shown].state.options.name);
    if (shown < count)
        (void)snprintf(names + used, sizeof names - used, " and %zu more", count - shown);
    return rp_fail(err, RP_NOT_FOUND, "checkpoint %" PRIu64 " has no table '%.48s'; it has %s",
                   d->manifest->store.checkpoint, d->o->table, names);
}

static rp_status dump_tables(dump *d, rp_error *err)
{
    bool found = false;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < d->manifest->table_count; i++) {
        const rp_manifest_table *table = &d->manifest->tables[i];

        if (d->o->table != NULL && strcmp(d->o->table, table->state.options.name) != 0)
            continue;
        found = true;
        report_table(d, &table->state);
        d->items = 0;
        if (d->o->on_item == NULL) continue;
        for (size_t b = 0; st == RP_OK && b < table->block_count && !is_enough(d); b++)
            st = dump_block(d, table, b, err);
    }
    if (st == RP_OK && !found && d->o->table != NULL) return no_table(d, err);
    return st;
}

rp_status rp_data_dump(const rp_data_dump_options *options, rp_error *err)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_error why = {0};
    rp_status st;
    dump *d;

    if (options == NULL || options->directory == NULL)
        return rp_fail(err, RP_INVALID, "no %s",
                       options == NULL ? "options are given" : "directory is given");
    d = rp_alloc_zero(alloc, sizeof *d);
    if (d == NULL) return rp_fail_memory(err, sizeof *d);
    d->alloc = alloc;
    d->o = options;
    st = rp_files_open_read_only(alloc, options->directory, &d->files, err);
    rp_data_reader_init(&d->reader, alloc, d->files);
    rp_image_init(&d->image, alloc);
    if (st == RP_OK)
        st = rp_data_find_manifest(alloc, d->files, options->checkpoint, &d->manifest, &why);
    if (st != RP_OK && why.code == RP_NOT_FOUND)
        (void)!rp_fail(err, st, "%.160s: %.300s", options->directory, why.text);
    else if (st != RP_OK && why.code != RP_OK && err != NULL)
        *err = why;
    if (st == RP_OK) st = dump_tables(d, err);
    for (size_t i = 0; i < CACHED; i++) rp_chunk_unref(d->cache[i].chunk);
    rp_release(alloc, d->columns, d->column_room * sizeof *d->columns);
    rp_release(alloc, d->slices, d->slice_room * sizeof *d->slices);
    rp_image_deinit(&d->image);
    rp_data_reader_deinit(&d->reader);
    rp_manifest_free(d->manifest);
    if (d->files != NULL) d->files->ops->free(d->files);
    rp_release(alloc, d, sizeof *d);
    return st;
}
