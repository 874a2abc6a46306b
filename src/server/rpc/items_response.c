/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/items_response.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"
#include "wire/chunk_rekey.h"
#include "wire/row_cut.h"
#include "wire/sample_response.h"

enum {
    GATHER,
    CHUNKS,
    ENTRIES,
    DONE,
    /* The work of an item and of a slice, in bytes. */
    ITEM_WORK = 256,
    SLICE_WORK = 32,
    LEAST_SLICE_BYTES = 4,     /* least bytes of a slice in an entry */
    ENTRY_HEAD_BYTES = 32,     /* most bytes of an entry around its info */
    MAX_CHUNK_WORK = 32 << 20, /* larger chunks are not cut: that would take too long */
};

struct rp_response_chunk {
    rp_chunk *chunk; /* borrowed from the samples */
    rp_chunk *cut;   /* the chunk that is sent instead; a reference, or NULL */
    size_t first, end;
    bool is_other; /* another chunk has the same key, so it needs a key of its own */
};

/* A chunk that is not the first one of its key. */
struct rp_other_chunk {
    const rp_chunk *chunk; /* borrowed from the samples */
    uint32_t index;        /* in chunks */
};

void rp_items_response_init(rp_items_response *response, const rp_allocator *alloc,
                            uint64_t seed, const rp_items_material *material, rp_message *reply)
{
    *response = (rp_items_response){
        .alloc = *alloc,
        .material = *material,
        .reply = reply,
        .phase = material->with_chunks ? GATHER : ENTRIES,
        .cut_left = material->max_cut_bytes,
        .next_key = 1,
    };
    rp_map_init(&response->map, alloc, seed);
    rp_map_init(&response->other_map, alloc, seed);
}

void rp_items_response_deinit(rp_items_response *response)
{
    const rp_allocator *alloc = &response->alloc;

    for (size_t i = 0; i < response->chunk_count; i++) rp_chunk_unref(response->chunks[i].cut);
    rp_release(alloc, response->chunks, response->chunk_capacity * sizeof *response->chunks);
    rp_release(alloc, response->others, response->other_capacity * sizeof *response->others);
    rp_release(alloc, response->slices, response->slice_capacity * sizeof *response->slices);
    rp_release(alloc, response->columns, response->column_capacity * sizeof *response->columns);
    rp_decoder_free(response->decoder);
    rp_map_deinit(&response->map);
    rp_map_deinit(&response->other_map);
}

size_t rp_items_response_bytes(const rp_items_response *response)
{
    return response->reply->bytes.size + response->reply->borrowed;
}

size_t rp_items_response_work(const rp_items_response *response)
{
    return response->work_done;
}

/* Bytes that may be added to the reply. */
static size_t room(const rp_items_response *a)
{
    size_t bytes = rp_items_response_bytes(a);

    return bytes < a->material.max_bytes ? a->material.max_bytes - bytes : 0;
}

static rp_status too_large(const rp_items_response *a, rp_error *err)
{
    return rp_fail(err, RP_NO_RESOURCE,
                   "the answer would be over the limit message_bytes of %zu; ask for fewer of "
                   "the %zu items",
                   a->material.max_bytes, a->material.count);
}

static void work(rp_items_response *a, size_t bytes)
{
    a->work_left = bytes < a->work_left ? a->work_left - bytes : 0;
    a->work_done += bytes;
}

/* The first chunk of a key, or NULL. */
static rp_response_chunk *find_key(const rp_items_response *a, uint64_t key)
{
    uint32_t tag = rp_map_tag(&a->map, key), slot;
    rp_map_cursor at = rp_map_start(&a->map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (a->chunks[slot].chunk->origin.key == key) return &a->chunks[slot];
    return NULL;
}

static uint32_t other_tag(const rp_items_response *a, const rp_chunk *chunk)
{
    return rp_map_tag(&a->other_map, (uint64_t)(uintptr_t)chunk);
}

static rp_response_chunk *find_other(const rp_items_response *a, const rp_chunk *chunk)
{
    uint32_t tag = other_tag(a, chunk), slot;
    rp_map_cursor at = rp_map_start(&a->other_map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (a->others[slot].chunk == chunk) return &a->chunks[a->others[slot].index];
    return NULL;
}

/* Finds the entry of `chunks` for a chunk of a sample, or NULL. */
static rp_response_chunk *find(const rp_items_response *a, const rp_chunk *chunk)
{
    rp_response_chunk *found = find_key(a, chunk->origin.key);

    if (found == NULL || found->chunk == chunk) return found;
    return a->other_count > 0 ? find_other(a, chunk) : NULL;
}

/* Adds a chunk to the array, but not to the maps. */
static rp_status add_chunk(rp_items_response *a, rp_chunk *chunk, rp_error *err)
{
    if (a->chunk_count == a->chunk_capacity) {
        size_t capacity = a->chunk_capacity > 0 ? 2 * a->chunk_capacity : 16;
        if (capacity >= RP_MAP_NONE ||
            !rp_resize_array(&a->alloc, &a->chunks, a->chunk_capacity, capacity,
                             sizeof *a->chunks))
            return rp_fail_memory(err, capacity * sizeof *a->chunks);
        a->chunk_capacity = capacity;
    }
    a->chunks[a->chunk_count++] = (rp_response_chunk){.chunk = chunk, .first = SIZE_MAX};
    return RP_OK;
}

static rp_status add_first(rp_items_response *a, rp_chunk *chunk, rp_error *err)
{
    if (rp_map_reserve(&a->map, 1) != RP_OK) return rp_fail_memory(err, sizeof(rp_map_bucket));
    rp_status st = add_chunk(a, chunk, err);
    if (st == RP_OK)
        rp_map_insert(&a->map, rp_map_tag(&a->map, chunk->origin.key),
                      (uint32_t)(a->chunk_count - 1));
    return st;
}

/* Adds a chunk that has the same key as `first`. */
static rp_status add_other(rp_items_response *a, rp_chunk *chunk,
                           const rp_response_chunk *first, rp_error *err)
{
    uint32_t index = (uint32_t)(first - a->chunks);
    bool is_same = first->chunk->wire_bytes == chunk->wire_bytes &&
                   memcmp(first->chunk->wire, chunk->wire, chunk->wire_bytes) == 0;

    work(a, chunk->wire_bytes);
    if (a->other_count == a->other_capacity) {
        size_t capacity = a->other_capacity > 0 ? 2 * a->other_capacity : 16;
        if (capacity >= RP_MAP_NONE ||
            !rp_resize_array(&a->alloc, &a->others, a->other_capacity, capacity,
                             sizeof *a->others))
            return rp_fail_memory(err, capacity * sizeof *a->others);
        a->other_capacity = capacity;
    }
    if (rp_map_reserve(&a->other_map, 1) != RP_OK)
        return rp_fail_memory(err, sizeof(rp_map_bucket));
    if (!is_same) { /* `first` may be moved */
        rp_status st = add_chunk(a, chunk, err);
        if (st != RP_OK) return st;
        index = (uint32_t)(a->chunk_count - 1);
        a->chunks[index].is_other = true;
    }
    rp_map_insert(&a->other_map, other_tag(a, chunk), (uint32_t)a->other_count);
    a->others[a->other_count++] = (rp_other_chunk){.chunk = chunk, .index = index};
    return RP_OK;
}

static rp_status gather_chunk(rp_items_response *a, rp_chunk *chunk, rp_error *err)
{
    const rp_response_chunk *first = find_key(a, chunk->origin.key);

    assert(a->phase == GATHER); /* R1 */
    if (first == NULL) return add_first(a, chunk, err);
    if (first->chunk == chunk || (a->other_count > 0 && find_other(a, chunk) != NULL))
        return RP_OK;
    return add_other(a, chunk, first, err);
}

static void gather_rows(rp_items_response *a, const rp_chunk_slice *slice)
{
    rp_response_chunk *found = find(a, slice->chunk);
    size_t end = (size_t)slice->offset + slice->length;

    assert(found != NULL); /* R3 */
    if (slice->offset < found->first) found->first = slice->offset;
    if (end > found->end) found->end = end;
}

static rp_status gather(rp_items_response *a, const rp_sample *sample, rp_error *err)
{
    const rp_trajectory *trajectory = sample->trajectory;

    work(a, ITEM_WORK + trajectory->chunk_count * SLICE_WORK);
    for (size_t i = 0; i < trajectory->chunk_count; i++) {
        rp_status st = gather_chunk(a, trajectory->chunks[i], err);
        if (st != RP_OK) return st;
    }
    if (!a->material.cut_rows) return RP_OK;
    for (size_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);
        for (size_t j = 0; j < column.slice_count; j++) gather_rows(a, &column.slices[j]);
        a->slice_bytes += column.slice_count * LEAST_SLICE_BYTES;
        if (a->slice_bytes > a->material.max_bytes) return too_large(a, err);
        work(a, column.slice_count * SLICE_WORK);
    }
    return RP_OK;
}

/* Cuts a chunk to the rows that are used, if that makes it shorter. A chunk that cannot be cut
 * is sent whole, as without cut_rows. So if its bytes are damaged, only the reader of its items
 * fails, and the other items of the response arrive. */
static void cut(rp_items_response *a, rp_response_chunk *c)
{
    size_t count = c->end - c->first, cost;

    assert(c->first < c->end && c->cut == NULL);
    cost = rp_row_cut_cost(c->chunk, c->first, count);
    if (cost == 0 || cost > MAX_CHUNK_WORK || cost > a->cut_left) return;
    a->cut_left -= cost;
    work(a, cost);
    if (a->decoder == NULL && rp_decoder_new(&a->alloc, 0, &a->decoder) != RP_OK) return;
    if (rp_row_cut(&a->alloc, a->decoder, c->chunk, c->first, count, &c->cut, NULL) != RP_OK)
        c->cut = NULL;
    rp_decoder_clear(a->decoder); /* so that it does not keep the chunk */
}

/* Gives a chunk a key that no other chunk of the response has. The chunk is sent with all its
 * rows. */
static rp_status rekey(rp_items_response *a, rp_response_chunk *c, rp_error *err)
{
    while (find_key(a, a->next_key) != NULL) {
        a->next_key++;
        work(a, SLICE_WORK);
    }
    work(a, 2 * c->chunk->wire_bytes);
    c->first = 0;
    return rp_chunk_rekey(&a->alloc, c->chunk, a->next_key++, &c->cut, err);
}

static rp_status write_chunk(rp_items_response *a, rp_response_chunk *c, rp_error *err)
{
    const rp_chunk *chunk = c->chunk;
    rp_status st = c->is_other ? rekey(a, c, err) : RP_OK;

    if (st != RP_OK) return st;
    if (a->material.cut_rows && !c->is_other) cut(a, c);
    if (c->cut != NULL) chunk = c->cut;
    work(a, ITEM_WORK);
    if (chunk->wire_bytes > room(a)) return too_large(a, err);
    return rp_wire_add_chunk(a->reply, chunk) ? RP_OK : rp_fail_memory(err, chunk->wire_bytes);
}

static bool is_cut(const rp_items_response *a, const rp_trajectory *trajectory)
{
    if (!a->material.with_chunks || (!a->material.cut_rows && a->other_count == 0))
        return false;
    for (size_t i = 0; i < trajectory->chunk_count; i++)
        if (find(a, trajectory->chunks[i])->cut != NULL) return true;
    return false;
}

static bool reserve(rp_items_response *a, size_t columns, size_t slices)
{
    if (columns > a->column_capacity) {
        if (!rp_resize_array(&a->alloc, &a->columns, a->column_capacity, columns,
                             sizeof *a->columns))
            return false;
        a->column_capacity = columns;
    }
    if (slices > a->slice_capacity) {
        if (!rp_resize_array(&a->alloc, &a->slices, a->slice_capacity, slices,
                             sizeof *a->slices))
            return false;
        a->slice_capacity = slices;
    }
    return true;
}

/* Makes a trajectory of the same rows that refers to the cut chunks and to those with new keys.
 * Returns owned. */
static rp_status shift(rp_items_response *a, const rp_trajectory *from, rp_trajectory **out,
                       rp_error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < from->column_count; i++)
        count += rp_trajectory_slices(from, i).slice_count;
    if (!reserve(a, from->column_count, count))
        return rp_fail_memory(err, count * sizeof *a->slices);
    count = 0;
    for (size_t i = 0; i < from->column_count; i++) {
        rp_slices column = rp_trajectory_slices(from, i);
        assert(count + column.slice_count <= a->slice_capacity);
        a->columns[i] = column;
        a->columns[i].slices = a->slices + count;
        for (size_t j = 0; j < column.slice_count; j++) {
            rp_chunk_slice slice = column.slices[j];
            const rp_response_chunk *c = find(a, slice.chunk);
            slice.chunk = c->cut != NULL ? c->cut : c->chunk;
            assert(c->cut == NULL || slice.offset >= c->first);
            if (c->cut != NULL) slice.offset -= (uint32_t)c->first;
            a->slices[count++] = slice;
        }
    }
    return rp_trajectory_new(&a->alloc, a->columns, from->column_count, out, err);
}

/* Makes the reply hold a trajectory whose chunks it borrows. Takes the reference in any
 * case. */
static bool hold(rp_items_response *a, rp_trajectory *trajectory)
{
    bool is_borrowed = false;

    for (size_t i = 0; i < trajectory->chunk_count; i++)
        is_borrowed |= trajectory->chunks[i]->wire_bytes >= RP_MESSAGE_COPY_BYTES;
    if (is_borrowed && a->material.with_chunks && rp_message_hold(a->reply, trajectory))
        return true;
    rp_trajectory_unref(trajectory);
    return !is_borrowed || !a->material.with_chunks;
}

static rp_status write_entry(rp_items_response *a, const rp_sample *sample, rp_error *err)
{
    rp_sample shown = *sample;
    size_t size;
    bool ok;

    if (!is_cut(a, sample->trajectory)) {
        shown.trajectory = rp_trajectory_ref(sample->trajectory);
    } else {
        rp_status st = shift(a, sample->trajectory, &shown.trajectory, err);
        if (st != RP_OK) return st;
    }
    size = rp_sample_info_size(&shown, strlen(a->material.table)) + ENTRY_HEAD_BYTES;
    work(a, ITEM_WORK + 2 * size + rp_trajectory_slice_count(shown.trajectory) * SLICE_WORK);
    if (size > room(a)) {
        rp_trajectory_unref(shown.trajectory);
        return too_large(a, err);
    }
    ok = rp_wire_add_entry(a->reply, &shown, a->material.table);
    return hold(a, shown.trajectory) && ok ? RP_OK : rp_fail_memory(err, size);
}

/* Handles the next sample or chunk of this phase. */
static rp_status advance(rp_items_response *a, rp_error *err)
{
    size_t count = a->phase == CHUNKS ? a->chunk_count : a->material.count;
    const rp_sample *sample;

    assert(a->phase >= GATHER && a->phase < DONE && a->next <= count); /* R1 */
    if (a->next == count) {
        a->phase++;
        a->next = 0;
        return RP_OK;
    }
    if (a->phase == CHUNKS) return write_chunk(a, &a->chunks[a->next++], err);
    sample = &a->material.samples[a->next++];
    if (sample->trajectory == NULL) {
        work(a, 1);
        return RP_OK;
    }
    return a->phase == GATHER ? gather(a, sample, err) : write_entry(a, sample, err);
}

rp_status rp_items_response_step(rp_items_response *response, size_t bytes, bool *done,
                                 rp_error *err)
{
    rp_status st = RP_OK;

    response->work_left = bytes;
    response->work_done = 0;
    while (st == RP_OK && response->phase != DONE && response->work_left > 0)
        st = advance(response, err);
    *done = response->phase == DONE;
    return st;
}
