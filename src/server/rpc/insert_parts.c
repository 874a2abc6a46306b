/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/insert_parts.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "util/error.h"
#include "util/mem.h"

enum { ADOPT_BYTES = 32 << 10 /* larger chunks stay in the memory of their message */ };

static void release_block(void *block)
{
    rp_block_unref(block);
}

/* Copies a chunk into the shared arena, for clients of this host. NULL if it is too small for
 * that, or there is no memory. */
static rp_block *share(const rp_server *server, const uint8_t *data, size_t size)
{
    rp_block *block;

    if (server->arena == NULL || size < RP_SHARED_MIN_BYTES) return NULL;
    block = rp_block_new_apart(&server->alloc, &server->arena_alloc, size);
    if (block == NULL) return NULL;
    memcpy(block->data, data, size);
    block->size = size;
    return block;
}

/* Makes a chunk of its serialised message. */
static rp_status make_chunk(const rp_worker *worker, rp_chunk_template *template,
                            rp_string wire, const rp_chunk_head *head, rp_block *block,
                            rp_chunk **out, rp_error *err)
{
    const uint8_t *data = (const uint8_t *)wire.data;
    size_t size = wire.size;
    const rp_allocator *alloc = &worker->server->alloc;
    const rp_chunk_limits limits = {
        .max_wire_bytes = worker->limits.chunk_bytes,
        .max_raw_bytes = worker->limits.tensor_bytes,
        .max_columns = worker->limits.columns,
    };
    rp_status st;

    if (block == NULL || size < ADOPT_BYTES || size < block->size / 2) {
        block = share(worker->server, data, size);
        if (block == NULL)
            return rp_chunk_template_parse(template, alloc, (rp_bytes){data, size}, head,
                                           &limits, out, err);
        data = block->data;
    } else {
        (void)rp_block_ref(block);
    }
    st = rp_chunk_adopt(alloc, data, size, &limits, &(rp_chunk_owner){release_block, block},
                        out, err);
    if (st != RP_OK) rp_block_unref(block);
    return st;
}

/* Checks a chunk that is sent again. Of a chunk that was moved to disk only the size is
 * compared. */
static rp_status compare_chunk(rp_chunk *chunk, const uint8_t *data, size_t size, rp_error *err)
{
    bool is_same = chunk->wire_bytes == size;

    if (is_same && rp_chunk_pin(chunk)) {
        is_same = memcmp(chunk->wire, data, size) == 0;
        rp_chunk_unpin(chunk);
    }
    if (is_same) return RP_OK;
    return rp_fail(err, RP_INVALID, "chunk %llu came twice, with other data",
                   (unsigned long long)chunk->origin.key);
}

rp_status rp_insert_parts_add_chunk(const rp_worker *worker, rp_stream_chunks *chunks,
                                    rp_chunk_template *template, const uint8_t *data,
                                    size_t size, rp_block *block, rp_error *err)
{
    rp_chunk *chunk, *before;
    rp_chunk_head head;
    rp_status st = rp_chunk_wire_peek(data, size, &head, err);

    if (st != RP_OK) return st;
    before = rp_stream_chunks_find(chunks, head.origin.key, false);
    if (before != NULL) return compare_chunk(before, data, size, err);
    st = make_chunk(worker, template, (rp_string){(const char *)data, size}, &head, block,
                    &chunk, err);
    if (st != RP_OK) return st;
    if (chunk->origin.key != head.origin.key &&
        rp_stream_chunks_find(chunks, chunk->origin.key, false) != NULL)
        st = rp_fail(err, RP_INVALID, "chunk %llu came twice",
                     (unsigned long long)chunk->origin.key);
    else if (rp_stream_chunks_add(chunks, chunk) != RP_OK)
        st = rp_fail_memory(err, sizeof(rp_stream_chunk));
    if (st != RP_OK) rp_chunk_unref(chunk);
    return st;
}

rp_status rp_insert_parts_trajectory(rp_worker *worker, rp_stream_chunks *chunks,
                                     rp_wire_item *item, rp_trajectory **out, rp_error *err)
{
    rp_item_room *room = &worker->item_room;
    const rp_decoded_limit limit = {worker->limits.item_bytes, "the server's limit item_bytes"};
    size_t first = 0;
    rp_status st;

    assert(item->slice_count <= room->slice_capacity);
    assert(item->column_count <= room->column_capacity);
    for (size_t i = 0; i < item->slice_count; i++) {
        const rp_wire_slice *from = &room->wire_slices[i];
        rp_chunk *chunk = i > 0 && from->chunk_key == from[-1].chunk_key
                              ? room->slices[i - 1].chunk
                              : rp_stream_chunks_find(chunks, from->chunk_key, true);
        if (chunk == NULL)
            return rp_fail(err, RP_INTERNAL, "Could not find sequence chunk %llu.",
                           (unsigned long long)from->chunk_key);
        room->slices[i] = (rp_chunk_slice){chunk, from->index, from->offset, from->length};
    }
    for (size_t i = 0; i < item->column_count; i++) {
        const rp_wire_column *from = &room->wire_columns[i];
        room->columns[i] = (rp_slices){room->slices + first, from->slice_count, from->squeeze};
        first += from->slice_count;
    }
    assert(first == item->slice_count);
    st = rp_trajectory_new_unheld(&worker->server->alloc, room->columns, item->column_count,
                                  &limit, out, err);
    if (st != RP_OK) return st;
    rp_trajectory_hold(*out);
    if ((*out)->chunk_count <= worker->limits.chunks) return RP_OK;
    item->excess = RP_EXCESS_CHUNKS;
    return rp_fail(
        err, RP_NO_RESOURCE,
        "the item refers to %u chunks, over the limit chunks, %zu; use longer chunks",
        (*out)->chunk_count, worker->limits.chunks);
}
