/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a dm-reverb checkpoint: first the tables, then the chunks, which are indexed by key,
 * then the items, whose trajectories refer to the chunks. The store is not changed until
 * everything has been read; then each table is created and restored.
 *
 * Old forms: the tensors of a chunk may be in another field (deprecated_data), an item may have
 * chunk keys and a range of rows instead of a trajectory, and items may be in the record of
 * their table. A file must have one form only. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk.h"
#include "durable/reverb/reverb_loading.h"
#include "durable/reverb/reverb_wire.h"
#include "durable/reverb/tfrecord.h"
#include "durable/reverb/zlib_stream.h"
#include "store/store.h"
#include "table/snapshot/cut.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"
#include "wire/signature_wire.h"

static const char tables_name[] = "tables.tfrecord";
static const char chunks_name[] = "chunks.tfrecord";
static const char items_name[] = "items.tfrecord";

/* Puts the file and the number of the record before an error text. RP_INVALID becomes
 * RP_CORRUPT: the file is wrong, not the call. */
static rp_status blame(rp_status status, const char *file, uint64_t record, rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES];

    if (status == RP_INVALID) status = RP_CORRUPT;
    if (err == NULL) return status;
    memcpy(text, err->text, sizeof text);
    return rp_fail(err, status, "%s: record %" PRIu64 ": %.200s", file, record, text);
}

typedef rp_status visit_record(rp_reverb_loading *l, const uint8_t *data, size_t size,
                               rp_error *err);

/* Calls `visit` for each record of a file. RP_NOT_FOUND if the file does not exist. */
static rp_status each_record(rp_reverb_loading *l, const char *name, visit_record *visit,
                             rp_error *err)
{
    char path[RP_REVERB_PATH_BYTES];
    rp_file_stream stream = {0};
    rp_tfrecord_reader reader;
    rp_inflater *inflater = NULL;
    rp_inflate_options inflate = {.max_bytes = l->options.max_bytes,
                                  .is_plain = rp_tfrecord_is_plain};
    const uint8_t *data = NULL;
    size_t size = 0;
    rp_error why = {0}; /* err may be NULL, and blame() needs the text */
    rp_status st = l->files->ops->open(l->files, rp_reverb_path(path, l->report.folder, name),
                                       RP_OPEN_READ, &stream.file, err);

    if (st != RP_OK) return st;
    inflate.source = (rp_byte_source){rp_file_stream_read, &stream};
    st = rp_inflater_new(l->alloc, &inflate, &inflater, err);
    rp_tfrecord_reader_init(&reader, l->alloc, (rp_byte_source){rp_inflater_read, inflater},
                            l->options.max_record);
    while (st == RP_OK) {
        st = rp_tfrecord_next(&reader, &data, &size, &why);
        if (st == RP_OK && data == NULL) break;
        if (st == RP_OK) st = visit(l, data, size, &why);
        if (st != RP_OK) {
            st = blame(st, name, reader.count, &why);
            if (err != NULL) *err = why;
        }
        rp_progress_reach(&l->meter, l->done_bytes + rp_inflater_consumed(inflater));
    }
    if (st == RP_OK) {
        l->report.compressed |= rp_inflater_is_compressed(inflater);
        l->done_bytes += stream.position;
    }
    rp_tfrecord_reader_deinit(&reader);
    rp_inflater_free(inflater);
    l->files->ops->close(stream.file);
    return st;
}

static bool has_file(rp_files *files, const char *folder, const char *name, uint64_t *size)
{
    char path[RP_REVERB_PATH_BYTES];
    rp_file *file = NULL;

    if (files->ops->open(files, rp_reverb_path(path, folder, name), RP_OPEN_READ, &file,
                         NULL) != RP_OK)
        return false;
    if (size != NULL && files->ops->size(file, size, NULL) != RP_OK) *size = 0;
    files->ops->close(file);
    return true;
}

/* The greatest name below a bound. */
typedef struct greatest {
    const char *below; /* "": no bound */
    char name[256];
} greatest;

static void offer_name(void *ctx, const char *name)
{
    greatest *g = ctx;

    if (name[0] == '.' || strlen(name) >= sizeof g->name) return;
    if (g->below[0] != '\0' && strcmp(name, g->below) >= 0) return;
    if (strcmp(name, g->name) > 0) (void)snprintf(g->name, sizeof g->name, "%s", name);
}

/* Finds the newest checkpoint: the last name in byte order whose folder has DONE. */
static rp_status find_folder(rp_reverb_loading *l, rp_error *err)
{
    char below[256] = "";

    if (has_file(l->files, "", "DONE", NULL)) return RP_OK;
    if (has_file(l->files, "", tables_name, NULL))
        return rp_fail(err, RP_CORRUPT,
                       "the file DONE is missing: dm-reverb did not finish this checkpoint");
    for (;;) {
        greatest g = {below, ""};
        rp_status st = l->files->ops->list(l->files, "", offer_name, &g, err);

        if (st != RP_OK) return st;
        if (g.name[0] == '\0')
            return rp_fail(err, RP_NOT_FOUND,
                           "there is no checkpoint of dm-reverb: neither this directory nor a "
                           "folder in it has the file DONE");
        if (has_file(l->files, g.name, "DONE", NULL)) {
            memcpy(l->report.folder, g.name, sizeof g.name);
            return RP_OK;
        }
        memcpy(below, g.name, sizeof below);
    }
}

static void measure(rp_reverb_loading *l)
{
    const char *const names[] = {tables_name, chunks_name, items_name};

    for (size_t i = 0; i < 3; i++) {
        uint64_t size = 0;
        if (has_file(l->files, l->report.folder, names[i], &size)) l->report.bytes += size;
    }
    l->meter.on_progress = l->options.on_progress;
    l->meter.ctx = l->options.ctx;
    rp_progress_begin(&l->meter, "importing", l->report.bytes);
}

static rp_reverb_loaded_table *find_table(rp_reverb_loading *l, rp_string name)
{
    for (size_t i = 0; i < l->table_count; i++) {
        size_t at = (l->last_table + i) % l->table_count;
        const char *other = l->tables[at].name;

        if (strlen(other) != name.size || memcmp(other, name.data, name.size) != 0) continue;
        l->last_table = at;
        return &l->tables[at];
    }
    return NULL;
}

static rp_status visit_table(rp_reverb_loading *l, const uint8_t *data, size_t size,
                             rp_error *err)
{
    size_t capacity = l->table_capacity < 8 ? 8 : 2 * l->table_capacity;
    rp_reverb_loaded_table *t;
    rp_reverb_table header;
    rp_status st = rp_reverb_table_read(data, size, &header, err);

    if (st != RP_OK) return st;
    if (find_table(l, header.name) != NULL)
        return rp_fail(err, RP_CORRUPT, "there is a second table '%.*s'",
                       (int)(header.name.size < 64 ? header.name.size : 64), header.name.data);
    if (l->table_count == RP_MAX_TABLES)
        return rp_fail(err, RP_PRECONDITION,
                       "%s has more than %d tables, the most that a store can have: save fewer "
                       "in a checkpoint",
                       tables_name, RP_MAX_TABLES);
    if (l->table_count == l->table_capacity) {
        if (!rp_resize_array(l->alloc, &l->tables, l->table_capacity, capacity,
                             sizeof *l->tables))
            return rp_fail_memory(err, capacity * sizeof *l->tables);
        l->table_capacity = capacity;
    }
    assert(l->table_count < l->table_capacity); /* B1 */
    assert(header.name.size < sizeof t->name);
    t = &l->tables[l->table_count];
    *t = (rp_reverb_loaded_table){.header = header};
    memcpy(t->name, header.name.data, header.name.size); /* the rest is zeroes */
    if (header.signature != NULL) {
        st = rp_wire_read_signature(rp_store_allocator(l->store), header.signature,
                                    header.signature_size, &t->signature, err);
        if (st != RP_OK) return st;
    }
    if (header.max_times_sampled < 0) t->header.max_times_sampled = 0;
    l->items_in_tables |= header.old_items > 0;
    l->table_count++;
    return RP_OK;
}

/* Records a form. Returns false if both forms have been seen. */
static bool note_form(unsigned *seen, rp_reverb_form form)
{
    *seen |= (unsigned)form;
    return *seen != RP_REVERB_BOTH;
}

static rp_status visit_chunk(rp_reverb_loading *l, const uint8_t *data, size_t size,
                             rp_error *err)
{
    const rp_chunk_limits limits = {l->options.max_record, SIZE_MAX / 2, RP_MAX_COLUMNS};
    rp_reverb_form form;
    rp_chunk *chunk = NULL;
    rp_status st = rp_reverb_chunk_form(data, size, &form, err);

    if (st != RP_OK) return st;
    if (!note_form(&l->chunk_forms, form))
        return rp_fail(err, RP_CORRUPT, "chunks of the old form are mixed with new ones");
    if (form == RP_REVERB_OLD) {
        rp_buf_clear(&l->scratch);
        rp_reverb_chunk_modernise(&l->scratch, data, size);
        if (l->scratch.bad) return rp_fail_memory(err, size);
        data = l->scratch.data;
        size = l->scratch.size;
        l->report.old_form = true;
    }
    st = rp_chunk_parse(rp_store_allocator(l->store), data, size, &limits, &chunk, err);
    if (st != RP_OK) return st;
    st = rp_reverb_chunks_add(l->index, chunk); /* of two with the same key the first counts */
    rp_chunk_unref(chunk);
    return st == RP_OK ? RP_OK : rp_fail_memory(err, sizeof(rp_chunk *));
}

/* Grows an array to at least `wanted` elements, and at least to twice its size. */
static rp_status reserve(rp_reverb_loading *l, void *array, size_t element_size, size_t *room,
                         size_t wanted, rp_error *err)
{
    size_t larger = 2 * *room > wanted ? 2 * *room : wanted;

    if (wanted <= *room) return RP_OK;
    assert(larger >= wanted);
    if (!rp_resize_array(l->alloc, array, *room, larger, element_size))
        return rp_fail_memory(err, larger);
    *room = larger;
    return RP_OK;
}

static rp_status reserve_item(rp_reverb_loading *l, size_t columns, size_t slices,
                              rp_error *err)
{
    rp_status st = reserve(l, &l->columns, sizeof *l->columns, &l->column_room, columns, err);

    return st == RP_OK ? reserve(l, &l->slices, sizeof *l->slices, &l->slice_room, slices, err)
                       : st;
}

static rp_status find_chunk(const rp_reverb_loading *l, uint64_t item, uint64_t key,
                            rp_chunk **out, rp_error *err)
{
    *out = rp_reverb_chunks_get(l->index, key);
    if (*out != NULL) return RP_OK;
    return rp_fail(err, RP_CORRUPT,
                   "item %" PRIu64 " refers to chunk %" PRIu64 ", which is not in %s", item,
                   key, chunks_name);
}

static rp_status new_trajectory(rp_reverb_loading *l, const rp_wire_item *item,
                                rp_trajectory **out, rp_error *err)
{
    size_t at = 0;
    rp_status st = reserve_item(l, item->column_count, item->slice_count, err);

    if (st != RP_OK) return st;
    if (item->column_count == 0)
        return rp_fail(err, RP_CORRUPT, "item %" PRIu64 " has no data", item->key);
    for (size_t c = 0; c < item->column_count; c++) {
        const rp_wire_column *column = &l->wire_columns[c];

        l->columns[c] = (rp_slices){l->slices + at, column->slice_count, column->squeeze};
        for (size_t i = 0; i < column->slice_count; i++, at++) {
            const rp_wire_slice *s = &l->wire_slices[at];
            rp_chunk *chunk;

            assert(at < item->slice_count);
            st = find_chunk(l, item->key, s->chunk_key, &chunk, err);
            if (st != RP_OK) return st;
            l->slices[at] = (rp_chunk_slice){chunk, s->index, s->offset, s->length};
        }
    }
    return rp_trajectory_new(rp_store_allocator(l->store), l->columns, item->column_count, out,
                             err);
}

/* Builds the slices of one column of an item in the old form, from l->slices[*at] on. */
static rp_status old_column(rp_reverb_loading *l, const rp_wire_item *item,
                            const rp_reverb_span *span, size_t column, size_t *at,
                            rp_error *err)
{
    size_t offset = (size_t)span->offset, left = (size_t)span->length, first = *at;

    for (size_t i = 0; i < span->key_count && left > 0; i++) {
        rp_chunk *chunk;
        size_t rows;
        rp_status st = find_chunk(l, item->key, l->keys[i], &chunk, err);

        if (st != RP_OK) return st;
        if (column >= chunk->column_count)
            return rp_fail(err, RP_CORRUPT,
                           "item %" PRIu64 " has chunks of different numbers of columns",
                           item->key);
        rows = rp_chunk_rows(chunk, column);
        if (offset >= rows) break; /* a range must begin in the first chunk */
        if (rows - offset < left)
            rows -= offset;
        else
            rows = left;
        assert(*at < l->slice_room && rows >= 1 && rows <= left);
        l->slices[(*at)++] =
            (rp_chunk_slice){chunk, (uint32_t)column, (uint32_t)offset, (uint32_t)rows};
        left -= rows;
        offset = 0;
    }
    if (left > 0 || *at == first)
        return rp_fail(err, RP_CORRUPT, "item %" PRIu64 " has a range beyond its chunks",
                       item->key);
    l->columns[column] = (rp_slices){l->slices + first, *at - first, false};
    return RP_OK;
}

static rp_status old_trajectory(rp_reverb_loading *l, const rp_wire_item *item,
                                const rp_reverb_span *span, const uint8_t *data, size_t size,
                                rp_trajectory **out, rp_error *err)
{
    rp_chunk *first = NULL;
    size_t total, at = 0;
    rp_status st;

    if (span->key_count == 0 || span->offset < 0 || span->length < 1)
        return rp_fail(err, RP_CORRUPT, "item %" PRIu64 " has no data", item->key);
    st = reserve(l, &l->keys, sizeof *l->keys, &l->key_room, span->key_count, err);
    if (st != RP_OK) return st;
    rp_reverb_item_keys(data, size, l->keys);
    st = find_chunk(l, item->key, l->keys[0], &first, err);
    if (st != RP_OK) return st;
    if (first->column_count == 0)
        return rp_fail(err, RP_CORRUPT, "item %" PRIu64 " has no data", item->key);
    if (!rp_size_mul(first->column_count, span->key_count, &total) || total > RP_MAX_SLICES)
        return rp_fail(err, RP_NO_RESOURCE, "item %" PRIu64 " has more than %d slices",
                       item->key, RP_MAX_SLICES);
    st = reserve_item(l, first->column_count, total, err);
    for (size_t c = 0; st == RP_OK && c < first->column_count; c++)
        st = old_column(l, item, span, c, &at, err);
    if (st != RP_OK) return st;
    l->report.old_form = true;
    return rp_trajectory_new(rp_store_allocator(l->store), l->columns, first->column_count, out,
                             err);
}

static rp_status keep_item(rp_reverb_loading *l, rp_reverb_loaded_table *t,
                           const rp_wire_item *item, rp_trajectory *trajectory, rp_error *err)
{
    rp_status st = reserve(l, &t->items, sizeof *t->items, &t->capacity, t->count + 1, err);

    if (st != RP_OK) return st;
    assert(t->count < t->capacity && trajectory != NULL); /* B1, B3 */
    t->items[t->count++] = (rp_reverb_loaded_item){
        .key = item->key,
        .priority = item->priority,
        .trajectory = trajectory,
        .inserted_at_ns = item->inserted_at_ns,
        .times_sampled = item->times_sampled,
    };
    l->report.items++;
    return RP_OK;
}

/* Reads an item. `into` is its table; NULL: the one that the item names. */
static rp_status load_item(rp_reverb_loading *l, const uint8_t *data, size_t size,
                           rp_reverb_loaded_table *into, rp_error *err)
{
    size_t most = size / 2 + 1; /* a repeated field takes at least two bytes */
    rp_trajectory *trajectory = NULL;
    rp_reverb_form form;
    rp_reverb_span span;
    rp_wire_item item;
    rp_status st = rp_reverb_item_form(data, size, &form, &span, err);

    if (st == RP_OK)
        st = reserve(l, &l->wire_columns, sizeof *l->wire_columns, &l->wire_column_room,
                     most < RP_MAX_COLUMNS ? most : RP_MAX_COLUMNS, err);
    if (st == RP_OK)
        st = reserve(l, &l->wire_slices, sizeof *l->wire_slices, &l->wire_slice_room,
                     most < RP_MAX_SLICES ? most : RP_MAX_SLICES, err);
    if (st != RP_OK) return st;
    st = rp_wire_item_read_any(data, size,
                               &(rp_wire_item_arrays){l->wire_columns, l->wire_column_room,
                                                      l->wire_slices, l->wire_slice_room},
                               &item, err);
    if (st != RP_OK) return st;
    if (!note_form(&l->item_forms, form))
        return rp_fail(err, RP_CORRUPT, "items of the old form are mixed with new ones");
    if (into == NULL) into = find_table(l, item.table);
    if (into == NULL)
        return rp_fail(err, RP_CORRUPT,
                       "item %" PRIu64 " is in table '%.*s', which is not in %s", item.key,
                       (int)(item.table.size < 64 ? item.table.size : 64), item.table.data,
                       tables_name);
    if (form == RP_REVERB_OLD)
        st = old_trajectory(l, &item, &span, data, size, &trajectory, err);
    else
        st = new_trajectory(l, &item, &trajectory, err);
    if (st == RP_OK) st = keep_item(l, into, &item, trajectory, err);
    if (st != RP_OK) rp_trajectory_unref(trajectory);
    return st;
}

static rp_status visit_item(rp_reverb_loading *l, const uint8_t *data, size_t size,
                            rp_error *err)
{
    return load_item(l, data, size, NULL, err);
}

/* Reads the items inside the record of a table, in a second pass. */
static rp_status visit_table_items(rp_reverb_loading *l, const uint8_t *data, size_t size,
                                   rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    const uint8_t *item;
    size_t item_size;
    rp_reverb_table header;
    rp_status st = rp_reverb_table_read(data, size, &header, err);

    while (st == RP_OK && rp_reverb_table_next_item(&reader, &item, &item_size))
        st = load_item(l, item, item_size, find_table(l, header.name), err);
    return st;
}

static rp_status load_items(rp_reverb_loading *l, rp_error *err)
{
    bool has_items = has_file(l->files, l->report.folder, items_name, NULL);
    uint64_t before = l->report.items;
    rp_status st = RP_OK;

    if (l->items_in_tables) {
        l->report.old_form = true;
        st = each_record(l, tables_name, visit_table_items, err);
        if (st != RP_OK || !has_items) return st;
        before = l->report.items;
    }
    st = each_record(l, items_name, visit_item, err);
    if (st == RP_OK && l->items_in_tables && l->report.items > before)
        return rp_fail(err, RP_CORRUPT, "%s: there are items in %s too", items_name,
                       tables_name);
    return st;
}

static void clean_up(rp_reverb_loading *l)
{
    for (size_t i = 0; i < l->table_count; i++) {
        rp_reverb_loaded_table *t = &l->tables[i];

        for (size_t k = 0; k < t->count; k++) rp_trajectory_unref(t->items[k].trajectory);
        rp_release(l->alloc, t->items, t->capacity * sizeof *t->items);
        rp_signature_unref(t->signature);
        rp_table_unref(t->table);
    }
    rp_release(l->alloc, l->tables, l->table_capacity * sizeof *l->tables);
    rp_release(l->alloc, l->wire_columns, l->wire_column_room * sizeof *l->wire_columns);
    rp_release(l->alloc, l->columns, l->column_room * sizeof *l->columns);
    rp_release(l->alloc, l->wire_slices, l->wire_slice_room * sizeof *l->wire_slices);
    rp_release(l->alloc, l->slices, l->slice_room * sizeof *l->slices);
    rp_release(l->alloc, l->keys, l->key_room * sizeof *l->keys);
    rp_reverb_chunks_free(l->index);
    rp_buf_deinit(&l->scratch);
}

/* Counts chunks that no item refers to: those with the reference of the index only. */
static uint64_t count_unused(const rp_reverb_chunks *index)
{
    uint64_t unused = 0;

    for (size_t i = 0; i < rp_reverb_chunks_count(index); i++)
        unused += rp_refcount_is_one(&rp_reverb_chunks_at(index, i)->refs);
    return unused;
}

rp_status rp_reverb_load(rp_files *files, rp_store *store, const rp_reverb_options *options,
                         rp_reverb_report *report, rp_error *err)
{
    rp_reverb_loading l = {.alloc = rp_store_allocator(store), .files = files, .store = store};
    rp_status st;

    if (options != NULL) l.options = *options;
    if (l.options.max_record == 0) l.options.max_record = RP_REVERB_MAX_RECORD;
    rp_buf_init(&l.scratch, l.alloc);
    st = find_folder(&l, err);
    if (st != RP_OK) goto out;
    measure(&l);
    if (rp_reverb_chunks_new(l.alloc, &l.index) != RP_OK) {
        st = rp_fail_memory(err, sizeof l);
        goto out;
    }
    st = each_record(&l, tables_name, visit_table, err);
    if (st == RP_OK) st = each_record(&l, chunks_name, visit_chunk, err);
    if (st == RP_OK) st = load_items(&l, err);
    if (st != RP_OK) goto out;
    l.report.tables = l.table_count;
    l.report.chunks = rp_reverb_chunks_count(l.index);
    l.report.unused_chunks = count_unused(l.index);
    st = rp_reverb_fill_store(&l, err);
    if (st == RP_OK) rp_progress_reach(&l.meter, l.meter.now.total);
    if (st == RP_OK && report != NULL) *report = l.report;
out:
    clean_up(&l);
    return st;
}
