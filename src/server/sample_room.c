/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sample_room.h"

#include "server/inside.h"
#include "server/limits.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    PAGE_BYTES = 4096,       /* that an array takes at least, and everybody may have */
    MAPPED_BYTES = 64 << 10, /* from here on its pages come one by one */
};

static void *new_array(const rp_allocator *alloc, size_t bytes)
{
    return bytes < MAPPED_BYTES ? rp_alloc(alloc, bytes) : rp_map_pages(bytes);
}

static void free_array(const rp_allocator *alloc, void *array, size_t bytes)
{
    if (bytes < MAPPED_BYTES)
        rp_release(alloc, array, bytes);
    else
        rp_unmap_pages(array, bytes);
}

rp_status rp_sample_room_init(rp_sample_room *room, rp_worker *worker, size_t count,
                              size_t at_once, rp_refusal *why, rp_error *err)
{
    size_t bytes, counted, used = rp_queue_bytes(worker, RP_QUEUE_OUT);
    size_t limit = rp_server_limits_side_bytes(&worker->limits);

    *room = (rp_sample_room){0};
    if (!rp_size_mul(count, sizeof *room->samples, &bytes)) bytes = SIZE_MAX / 2;
    counted = at_once < count ? at_once * sizeof *room->samples : bytes;
    if (counted > PAGE_BYTES && (used > limit || counted > limit - used)) {
        *why = RP_REFUSED_QUEUED;
        return rp_fail(err, RP_NO_RESOURCE,
                       "no room for %zu items: answers to all connections together hold %zu of "
                       "%zu bytes, half of queued_bytes",
                       count, used, limit);
    }
    room->samples = new_array(&worker->server->alloc, bytes);
    if (room->samples == NULL) {
        *why = RP_REFUSED_MEMORY;
        return rp_fail_memory(err, bytes);
    }
    room->count = count;
    room->counted_bytes = counted;
    rp_queue_count(worker, RP_QUEUE_OUT, counted);
    return RP_OK;
}

void rp_sample_room_deinit(rp_sample_room *room, rp_worker *worker, size_t used)
{
    if (room->samples == NULL) return;
    rp_samples_release(room->samples, used);
    free_array(&worker->server->alloc, room->samples, room->count * sizeof *room->samples);
    rp_queue_count(worker, RP_QUEUE_OUT, 0 - room->counted_bytes);
    *room = (rp_sample_room){0};
}
