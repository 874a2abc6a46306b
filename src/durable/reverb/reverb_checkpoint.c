/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/reverb_checkpoint.h"

#include <assert.h>
#include <stdio.h>

#include "chunk/chunk.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/mem.h"

char *rp_reverb_path(char out[RP_REVERB_PATH_BYTES], const char *folder, const char *name)
{
    (void)snprintf(out, RP_REVERB_PATH_BYTES, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                   name);
    return out;
}

struct rp_reverb_chunks {
    rp_allocator alloc;
    rp_map map; /* key -> index in `chunks` */
    rp_chunk **chunks;
    size_t count, capacity;
};

rp_status rp_reverb_chunks_new(const rp_allocator *alloc, rp_reverb_chunks **out)
{
    rp_reverb_chunks *index = rp_alloc_zero(alloc, sizeof *index);

    if (index == NULL) return RP_NO_RESOURCE;
    index->alloc = *alloc;
    rp_map_init(&index->map, alloc, rp_system_seed());
    *out = index;
    return RP_OK;
}

void rp_reverb_chunks_free(rp_reverb_chunks *index)
{
    rp_allocator alloc;

    if (index == NULL) return;
    alloc = index->alloc;
    for (size_t i = 0; i < index->count; i++) rp_chunk_unref(index->chunks[i]);
    rp_release(&alloc, index->chunks, index->capacity * sizeof(rp_chunk *));
    rp_map_deinit(&index->map);
    rp_release(&alloc, index, sizeof *index);
}

rp_chunk *rp_reverb_chunks_get(const rp_reverb_chunks *index, uint64_t key)
{
    uint32_t tag = rp_map_tag(&index->map, key), at;
    rp_map_cursor cursor = rp_map_start(&index->map, tag);

    while ((at = rp_map_next(tag, &cursor)) != RP_MAP_NONE) {
        assert(at < index->count);
        if (index->chunks[at]->origin.key == key) return index->chunks[at];
    }
    return NULL;
}

rp_status rp_reverb_chunks_add(rp_reverb_chunks *index, rp_chunk *chunk)
{
    size_t capacity = index->capacity < 64 ? 64 : 2 * index->capacity;
    uint64_t key = chunk->origin.key;

    if (rp_reverb_chunks_get(index, key) != NULL) return RP_OK;
    if (index->count >= RP_MAP_NONE - 1) return RP_NO_RESOURCE;
    if (index->count == index->capacity) {
        if (!rp_resize_array(&index->alloc, &index->chunks, index->capacity, capacity,
                             sizeof(rp_chunk *)))
            return RP_NO_RESOURCE;
        index->capacity = capacity;
    }
    if (rp_map_reserve(&index->map, 1) != RP_OK) return RP_NO_RESOURCE;
    rp_map_insert(&index->map, rp_map_tag(&index->map, key), (uint32_t)index->count);
    assert(index->count < index->capacity);
    index->chunks[index->count++] = rp_chunk_ref(chunk);
    assert(rp_reverb_chunks_get(index, key) == chunk);
    return RP_OK;
}

size_t rp_reverb_chunks_count(const rp_reverb_chunks *index)
{
    return index->count;
}

rp_chunk *rp_reverb_chunks_at(const rp_reverb_chunks *index, size_t i)
{
    assert(i < index->count);
    return index->chunks[i];
}
