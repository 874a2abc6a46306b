/* SPDX-License-Identifier: Apache-2.0 */
/* Saves a store as a dm-reverb checkpoint.
 *
 * A cut gives the tables as of one instant. Each file is one pass: the tables; the items, table
 * by table in order of insertion, which collects their chunks; the chunks. DONE is written
 * last, when all other files are on stable storage, so that dm-reverb never sees a partial
 * checkpoint. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "durable/reverb/reverb_checkpoint.h"
#include "durable/reverb/reverb_wire.h"
#include "durable/reverb/tfrecord.h"
#include "durable/reverb/zlib_stream.h"
#include "store/store.h"
#include "table/snapshot/cut.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum { DECODER_BYTES = 1 << 20, CUT_TRIES = 8 };

static const char *const file_names[] = {"tables.tfrecord", "items.tfrecord", "chunks.tfrecord",
                                         "DONE"};
enum { TABLES, ITEMS, CHUNKS, DONE, FILES };

typedef struct saving {
    const rp_allocator *alloc;
    rp_files *files;
    rp_reverb_options options;
    rp_reverb_report report;
    rp_progress_meter meter;
    uint64_t chunk_bytes; /* written */
    rp_table **tables;
    size_t table_count, table_room;
    rp_cut *cut;
    rp_reverb_chunks *index;
    rp_decoder *decoder;
    rp_slot *slots; /* of one table */
    size_t slot_room;
    rp_buf record; /* the current one */
    /* The current file. */
    rp_file_stream stream;
    rp_deflater *deflater;
    uint32_t made; /* a bit for each file that was created */
} saving;

static rp_status open_file(saving *s, int which, rp_error *err)
{
    char path[RP_REVERB_PATH_BYTES];
    rp_status st;

    assert(s->stream.file == NULL && s->deflater == NULL && which >= 0 && which < FILES);
    s->stream = (rp_file_stream){0};
    st =
        s->files->ops->open(s->files, rp_reverb_path(path, s->report.folder, file_names[which]),
                            RP_OPEN_CREATE, &s->stream.file, err);
    if (st != RP_OK) return st;
    s->made |= 1u << which;
    if (which == DONE) return RP_OK;
    return rp_deflater_new(s->alloc, (rp_byte_sink){rp_file_stream_write, &s->stream},
                           &s->deflater, err);
}

/* Finishes and syncs the file if `st` is RP_OK, and closes it in any case. */
static rp_status close_file(saving *s, rp_status st, rp_error *err)
{
    if (s->stream.file == NULL) return st;
    if (st == RP_OK && s->deflater != NULL) st = rp_deflater_finish(s->deflater, err);
    if (st == RP_OK) st = s->files->ops->sync(s->stream.file, err);
    rp_deflater_free(s->deflater);
    s->deflater = NULL;
    s->files->ops->close(s->stream.file);
    s->stream.file = NULL;
    s->report.bytes += s->stream.position;
    return st;
}

/* Writes s->record and clears it. */
static rp_status put_record(saving *s, rp_error *err)
{
    const rp_byte_sink sink = {rp_deflater_write, s->deflater};
    rp_status st;

    if (s->record.bad) return rp_fail_memory(err, s->record.size);
    st = rp_tfrecord_write(sink, s->record.data, s->record.size, err);
    rp_buf_clear(&s->record);
    return st;
}

/* Removes the files after a failure. dm-reverb ignores them without DONE. The empty folder
 * stays. */
static void remove_files(saving *s)
{
    char path[RP_REVERB_PATH_BYTES];

    for (int i = FILES; i-- > 0;)
        if (s->made & 1u << i)
            (void)s->files->ops->remove(
                s->files, rp_reverb_path(path, s->report.folder, file_names[i]), NULL);
}

static rp_status write_table(saving *s, size_t i, rp_error *err)
{
    const rp_table_state *state = rp_cut_state(s->cut, i);
    const char *name = rp_table_name(s->tables[i]);
    rp_reverb_table t = {
        .name = {name, strlen(name)},
        .sampler = state->options.sampler,
        .remover = state->options.remover,
        .limiter = state->options.limiter,
        .inserts = state->limiter.inserts,
        .samples = state->limiter.samples,
        .deletes = state->limiter.deletes,
        .max_size = state->options.max_size,
        .max_times_sampled = state->options.max_times_sampled,
        .deleted_episodes = state->deleted_episodes,
        .unique_samples = state->unique_samples,
    };

    /* The limiter's own bounds: they shift when the limiter is recentered. */
    t.limiter.min_diff = state->limiter.min_diff;
    t.limiter.max_diff = state->limiter.max_diff;
    /* A table with a soft limit may hold more items than max_size, but not in dm-reverb. */
    if ((uint64_t)t.max_size < state->live) t.max_size = (int64_t)state->live;
    rp_reverb_table_write(&s->record, &t, s->tables[i]->options.signature);
    return put_record(s, err);
}

static rp_status write_tables(saving *s, rp_error *err)
{
    rp_status st = open_file(s, TABLES, err);

    for (size_t i = 0; st == RP_OK && i < s->table_count; i++) st = write_table(s, i, err);
    return close_file(s, st, err);
}

static void sift(rp_slot *heap, size_t root, size_t count)
{
    rp_slot moved = heap[root];

    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child + 1].sequence > heap[child].sequence) child++;
        if (heap[child].sequence <= moved.sequence) break;
        heap[root] = heap[child];
    }
    heap[root] = moved;
}

/* Sorts slots by sequence with a heap sort: in place, without allocation. */
static void sort_slots(rp_slot *slots, size_t count)
{
    bool sorted = true;

    for (size_t i = 1; i < count && sorted; i++)
        sorted = slots[i - 1].sequence < slots[i].sequence;
    if (sorted) return;
    for (size_t i = count / 2; i-- > 0;) sift(slots, i, count);
    for (size_t left = count; left-- > 1;) {
        rp_slot last = slots[left];
        slots[left] = slots[0];
        slots[0] = last;
        sift(slots, 0, left);
    }
}

/* Collects the live slots of a table in order of insertion. */
static rp_status gather_slots(saving *s, size_t table, size_t *count, rp_error *err)
{
    size_t live = (size_t)rp_cut_state(s->cut, table)->live, n = 0;
    size_t blocks = rp_cut_block_count(s->cut, table);
    rp_slot block[RP_SLOTS_PER_BLOCK];

    if (live > s->slot_room) {
        if (!rp_resize_array(s->alloc, &s->slots, s->slot_room, live, sizeof *s->slots))
            return rp_fail_memory(err, live * sizeof *s->slots);
        s->slot_room = live;
    }
    for (size_t b = 0; b < blocks; b++) {
        rp_cut_read_block(s->cut, table, b, block);
        for (size_t i = 0; i < RP_SLOTS_PER_BLOCK && n < live; i++)
            if (block[i].state == RP_SLOT_LIVE) s->slots[n++] = block[i];
    }
    assert(n == live);
    sort_slots(s->slots, n);
    for (size_t i = 1; i < n; i++) assert(s->slots[i - 1].sequence <= s->slots[i].sequence);
    *count = n;
    return RP_OK;
}

/* Adds the chunks of a trajectory to the index. Two chunks with the same key must have the same
 * bytes. */
static rp_status note_chunks(saving *s, const rp_trajectory *t, rp_error *err)
{
    for (size_t i = 0; i < rp_trajectory_chunk_count(t); i++) {
        rp_chunk *chunk = rp_trajectory_get_chunk(t, i);
        rp_chunk *other = rp_reverb_chunks_get(s->index, chunk->origin.key);

        if (other == chunk) continue;
        if (other == NULL) {
            if (rp_reverb_chunks_add(s->index, chunk) != RP_OK)
                return rp_fail_memory(err, sizeof chunk);
            continue;
        }
        if (other->wire_bytes != chunk->wire_bytes ||
            memcmp(other->wire, chunk->wire, chunk->wire_bytes) != 0)
            return rp_fail(err, RP_PRECONDITION,
                           "two chunks that differ have the key %" PRIu64
                           ", which dm-reverb cannot keep apart",
                           chunk->origin.key);
    }
    return RP_OK;
}

static rp_status write_items(saving *s, rp_error *err)
{
    rp_status st = open_file(s, ITEMS, err);

    for (size_t table = 0; st == RP_OK && table < s->table_count; table++) {
        size_t count = 0;

        st = gather_slots(s, table, &count, err);
        for (size_t i = 0; st == RP_OK && i < count; i++) {
            const rp_slot *slot = &s->slots[i];
            const rp_reverb_item item = {slot->key, slot->priority, slot->times_sampled,
                                         slot->inserted_at_ns, slot->trajectory};

            st = note_chunks(s, slot->trajectory, err);
            if (st != RP_OK) break;
            rp_reverb_item_write(&s->record, rp_table_name(s->tables[table]), &item);
            st = put_record(s, err);
            s->report.items++;
            rp_progress_add(&s->meter, 0);
        }
    }
    return close_file(s, st, err);
}

static rp_status write_chunk(saving *s, rp_chunk *chunk, rp_error *err)
{
    const rp_byte_sink sink = {rp_deflater_write, s->deflater};
    rp_chunk *readable = NULL;
    rp_status st = rp_reverb_chunk_for(s->alloc, s->decoder, chunk, &readable, err);

    if (st != RP_OK) return st;
    st = rp_tfrecord_write(sink, readable->wire, readable->wire_bytes, err);
    s->chunk_bytes += chunk->wire_bytes;
    rp_progress_reach(&s->meter, s->chunk_bytes);
    rp_chunk_unref(readable);
    return st;
}

static rp_status write_chunks(saving *s, rp_error *err)
{
    rp_status st = open_file(s, CHUNKS, err);

    for (size_t i = 0; st == RP_OK && i < rp_reverb_chunks_count(s->index); i++)
        st = write_chunk(s, rp_reverb_chunks_at(s->index, i), err);
    s->report.chunks = rp_reverb_chunks_count(s->index);
    return close_file(s, st, err);
}

/* Takes references to all tables; retries if tables are created meanwhile. */
static rp_status find_tables(saving *s, rp_store *store, rp_error *err)
{
    size_t count = rp_store_find_tables(store, NULL, 0);

    while (count > s->table_room) {
        if (!rp_resize_array(s->alloc, &s->tables, s->table_room, count, sizeof(rp_table *)))
            return rp_fail_memory(err, count * sizeof(rp_table *));
        s->table_room = count;
        count = rp_store_find_tables(store, s->tables, s->table_room);
        s->table_count = count < s->table_room ? count : s->table_room;
        assert(s->table_count <= s->table_room);
        if (count <= s->table_room) break;
        for (size_t i = 0; i < s->table_count; i++) rp_table_unref(s->tables[i]);
        s->table_count = 0;
    }
    s->report.tables = s->table_count;
    return RP_OK;
}

static rp_status take_cut(saving *s, rp_error *err)
{
    rp_status st = RP_OK;

    /* If a table has grown between the two steps, they are repeated. */
    for (int i = 0; i < CUT_TRIES; i++) {
        rp_cut_free(s->cut, false);
        s->cut = NULL;
        st = rp_cut_new(s->alloc, s->tables, s->table_count, &s->cut, err);
        if (st != RP_OK) return st;
        st = rp_cut_take(s->cut, NULL, NULL, NULL, err);
        if (st != RP_NO_RESOURCE) return st;
    }
    return st;
}

static rp_status write_all(saving *s, rp_store *store, rp_error *err)
{
    rp_store_info info;
    rp_status st = find_tables(s, store, err);

    if (st == RP_OK) st = take_cut(s, err);
    rp_store_get_info(store, &info);
    s->meter.on_progress = s->options.on_progress;
    s->meter.ctx = s->options.ctx;
    rp_progress_begin(&s->meter, "exporting", info.bytes);
    if (st == RP_OK) st = write_tables(s, err);
    if (st == RP_OK) st = write_items(s, err);
    if (st == RP_OK) st = write_chunks(s, err);
    if (st == RP_OK) st = s->files->ops->sync_directory(s->files, s->report.folder, err);
    if (st == RP_OK) st = close_file(s, open_file(s, DONE, err), err);
    if (st == RP_OK) st = s->files->ops->sync_directory(s->files, s->report.folder, err);
    if (st == RP_OK) st = s->files->ops->sync_directory(s->files, "", err);
    if (st == RP_OK) rp_progress_reach(&s->meter, s->meter.now.total);
    return st;
}

/* Creates the folder, which must not contain a checkpoint. */
static rp_status make_folder(saving *s, rp_error *err)
{
    int64_t now = s->options.wall_ns != 0 ? s->options.wall_ns : rp_wall_ns(NULL);
    char path[RP_REVERB_PATH_BYTES];
    rp_file *file = NULL;

    (void)rp_reverb_name(s->report.folder, now);
    for (int i = 0; i < FILES; i++) {
        if (s->files->ops->open(s->files, rp_reverb_path(path, s->report.folder, file_names[i]),
                                RP_OPEN_READ, &file, NULL) != RP_OK)
            continue;
        s->files->ops->close(file);
        return rp_fail(err, RP_EXISTS, "there is a checkpoint '%s' already", s->report.folder);
    }
    return s->files->ops->make_directory(s->files, s->report.folder, err);
}

rp_status rp_reverb_save(rp_files *files, rp_store *store, const rp_reverb_options *options,
                         rp_reverb_report *report, rp_error *err)
{
    saving s = {.alloc = rp_store_allocator(store), .files = files};
    rp_status st;

    if (rp_store_budget(store)->spill !=
        NULL) /* the bytes of its chunks may not be in memory */
        return rp_fail(
            err, RP_PRECONDITION,
            "a store with a disk tier cannot be exported: open it without max_memory");
    if (options != NULL) s.options = *options;
    s.report.compressed = true;
    rp_buf_init(&s.record, s.alloc);
    st = rp_reverb_chunks_new(s.alloc, &s.index);
    if (st == RP_OK) st = rp_decoder_new(s.alloc, DECODER_BYTES, &s.decoder);
    if (st != RP_OK) st = rp_fail_memory(err, sizeof s);
    if (st == RP_OK) st = make_folder(&s, err);
    if (st == RP_OK) {
        st = write_all(&s, store, err);
        if (st != RP_OK) remove_files(&s);
    }
    rp_cut_free(s.cut, false);
    for (size_t i = 0; i < s.table_count; i++) rp_table_unref(s.tables[i]);
    rp_release(s.alloc, s.tables, s.table_room * sizeof(rp_table *));
    rp_release(s.alloc, s.slots, s.slot_room * sizeof *s.slots);
    rp_reverb_chunks_free(s.index);
    rp_decoder_free(s.decoder);
    rp_buf_deinit(&s.record);
    if (st == RP_OK && report != NULL) *report = s.report;
    return st;
}
