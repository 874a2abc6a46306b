/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the new chunks of a block of slots, in batches. The slots, trajectories and chunks of a
 * large table are in no cache, so those of the whole block are prefetched, one level after the
 * other. */
#include "chunk/trajectory.h"
#include "durable/checkpoint/checkpoint.h"
#include "durable/checkpoint/checkpoint_inside.h"
#include "util/error.h"
#include "util/mem.h"

enum { BATCH_CHUNKS = 256 };

static void prefetch_trajectories(const rp_slot *slots)
{
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const char *at = (const char *)slots[i].trajectory;

        if (slots[i].state != RP_SLOT_LIVE) continue;
        for (size_t line = 0; line < 3; line++) __builtin_prefetch(at + line * RP_CACHE_LINE);
    }
}

/* The first chunk of each trajectory: most have only one. */
static void prefetch_chunks(const rp_slot *slots)
{
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_chunk *chunk;

        if (slots[i].state != RP_SLOT_LIVE || slots[i].trajectory->chunk_count == 0) continue;
        chunk = slots[i].trajectory->chunks[0];
        __builtin_prefetch(&chunk->refs, 1);
        __builtin_prefetch(&chunk->home, 1);
    }
}

static rp_status put(rp_checkpoint_run *r, rp_chunk *const *chunks, size_t count, rp_error *err)
{
    uint64_t bytes = 0;
    rp_status st = rp_segments_put_chunks(r->c->segments, chunks, count, &bytes);

    r->result.bytes += bytes;
    r->chunk_bytes += bytes;
    if (st == RP_NO_RESOURCE) return rp_fail_memory(err, chunks[0]->wire_bytes);
    return st == RP_OK ? st : rp_fail(err, st, "checkpoint: a chunk could not be queued");
}

rp_status rp_checkpoint_put_new(rp_checkpoint_run *r, rp_error *err)
{
    rp_chunk *batch[BATCH_CHUNKS];
    size_t count = 0;
    rp_status st = RP_OK;

    prefetch_trajectories(r->slots);
    prefetch_chunks(r->slots);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_trajectory *t = r->slots[i].trajectory;

        if (r->slots[i].state != RP_SLOT_LIVE) continue;
        for (uint32_t k = 0; k < t->chunk_count; k++) {
            rp_disk_location ignored;

            if (rp_segments_locate(r->c->segments, t->chunks[k], &ignored)) continue;
            batch[count++] = t->chunks[k];
            if (count < BATCH_CHUNKS) continue;
            st = put(r, batch, count, err);
            if (st != RP_OK) return st;
            count = 0;
        }
    }
    return count > 0 ? put(r, batch, count, err) : RP_OK;
}
