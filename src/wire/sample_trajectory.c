/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the keys of a sample's slices to chunks, and makes its trajectory.
 *
 * Slices mostly refer to chunks in the order in which these were sent. So the chunk found last
 * and the one after it are tried first. Otherwise up to FEW chunks are searched one by one;
 * more are found by a hash table, which is made when it is first needed. */
#include <assert.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/error.h"
#include "wire/fields.h"
#include "wire/sample_reader.h"

enum { FEW = 16 };

static uint32_t map_find(const rp_sample_reader *r, uint64_t key)
{
    uint32_t tag = rp_map_tag(&r->map, key), slot;
    rp_map_cursor at = rp_map_start(&r->map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (r->chunks[slot]->origin.key == key) return slot;
    return RP_MAP_NONE;
}

/* Of two chunks with the same key the first is used. */
static rp_status map_chunks(rp_sample_reader *r, rp_error *err)
{
    if (rp_map_reserve(&r->map, r->chunk_count) != RP_OK)
        return rp_fail_memory(err, r->chunk_count * sizeof(uint64_t));
    r->mapped = true;
    for (size_t i = 0; i < r->chunk_count; i++) {
        uint64_t key = r->chunks[i]->origin.key;
        if (map_find(r, key) == RP_MAP_NONE)
            rp_map_insert(&r->map, rp_map_tag(&r->map, key), (uint32_t)i);
    }
    return RP_OK;
}

static rp_status find_slowly(rp_sample_reader *r, uint64_t key, rp_chunk **out, rp_error *err)
{
    size_t at = 0;
    rp_status st;

    if (r->chunk_count <= FEW) {
        while (at < r->chunk_count && r->chunks[at]->origin.key != key) at++;
    } else {
        st = r->mapped ? RP_OK : map_chunks(r, err);
        if (st != RP_OK) return st;
        at = map_find(r, key); /* RP_MAP_NONE is above all indexes */
    }
    if (at >= r->chunk_count)
        return rp_fail(err, RP_CORRUPT, "sample %llu: chunk %llu did not come with it",
                       (unsigned long long)r->sample.key, (unsigned long long)key);
    r->found = at;
    *out = r->chunks[at];
    return RP_OK;
}

static inline rp_status find_chunk(rp_sample_reader *r, uint64_t key, rp_chunk **out,
                                   rp_error *err)
{
    for (size_t i = r->found; i < r->found + 2 && i < r->chunk_count; i++)
        if (r->chunks[i]->origin.key == key) {
            r->found = i;
            *out = r->chunks[i];
            return RP_OK;
        }
    return find_slowly(r, key, out, err);
}

rp_status rp_sample_make_trajectory(rp_sample_reader *r, rp_error *err)
{
    const rp_decoded_limit limit = {r->limits.item_bytes, "the client's option item_bytes"};
    rp_chunk_slice *cut = r->cuts;
    rp_status st;

    assert(r->slice_count <= r->cut_capacity && r->column_count <= r->view_capacity); /* S2 */
    for (size_t i = 0; i < r->slice_count; i++) {
        const rp_wire_slice *slice = &r->slices[i];
        r->cuts[i] = (rp_chunk_slice){NULL, slice->index, slice->offset, slice->length};
        st = find_chunk(r, slice->chunk_key, &r->cuts[i].chunk, err);
        if (st != RP_OK) return st;
    }
    for (size_t i = 0; i < r->column_count; i++) {
        const rp_wire_column *column = &r->columns[i];
        r->views[i] = (rp_slices){cut, column->slice_count, column->squeeze};
        cut += column->slice_count;
    }
    assert(cut == r->cuts + r->slice_count);
    return rp_wire_blame_peer(rp_trajectory_new_unheld(&r->alloc, r->views, r->column_count,
                                                       &limit, &r->sample.trajectory, err),
                              err);
}
