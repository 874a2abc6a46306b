/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/sample_array.h"

#include <assert.h>

#include "server/bounds/limits.h"
#include "server/core/task.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    FREE_BYTES = 4096,  /* arrays of at most this many bytes are not refused for lack of room */
    SMALL_COUNT = 1024, /* samples; a larger array is mapped, and gets its pages one by one */
    MOST_MAPPED = 4096, /* mapped arrays: a process may have about 65,000 mappings */
};

/* Counts one more mapped array. False if there are MOST_MAPPED already. */
static bool take_mapping(rp_server *server)
{
    if (atomic_fetch_add_explicit(&server->mapped_arrays, 1, memory_order_relaxed) <
        MOST_MAPPED)
        return true;
    (void)atomic_fetch_sub_explicit(&server->mapped_arrays, 1, memory_order_relaxed);
    return false;
}

static void give_mapping(rp_server *server)
{
    size_t before = atomic_fetch_sub_explicit(&server->mapped_arrays, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
}

rp_status rp_sample_array_init(rp_sample_array *array, rp_worker *worker, size_t count,
                               bool is_whole, rp_refusal *why, rp_error *err)
{
    size_t bytes, counted, used = rp_queue_bytes(&worker->queue, RP_QUEUE_OUT);
    size_t limit = rp_server_limits_side_bytes(&worker->limits);
    rp_server *server = worker->server;

    assert(count > 0);
    *array = (rp_sample_array){.count = count};
    if (!is_whole && count > SMALL_COUNT) {
        array->is_mapped = take_mapping(server);
        if (!array->is_mapped) array->count = count = SMALL_COUNT;
    }
    if (!rp_size_mul(count, sizeof *array->samples, &bytes)) bytes = SIZE_MAX / 2;
    counted = is_whole ? bytes : 0;
    if (counted > FREE_BYTES && (used > limit || counted > limit - used)) {
        *why = RP_REFUSED_QUEUED;
        (void)rp_fail(err, RP_NO_RESOURCE,
                      "no room for %zu item%s: answers to all connections together hold %zu of "
                      "%zu bytes, half of queued_bytes",
                      count, count == 1 ? "" : "s", used, limit);
    } else {
        array->samples =
            array->is_mapped ? rp_map_pages(bytes) : rp_alloc(&server->alloc, bytes);
        if (array->samples == NULL) {
            *why = RP_REFUSED_MEMORY;
            (void)rp_fail_memory(err, bytes);
        }
    }
    if (array->samples == NULL) {
        if (array->is_mapped) give_mapping(server);
        return RP_NO_RESOURCE;
    }
    array->counted_bytes = counted;
    rp_queue_count(&worker->queue, RP_QUEUE_OUT, counted);
    return RP_OK;
}

void rp_sample_array_deinit(rp_sample_array *array, rp_worker *worker, size_t used)
{
    size_t bytes = array->count * sizeof *array->samples;

    if (array->samples == NULL) return;
    assert(used <= array->count);
    rp_samples_release(array->samples, used);
    if (array->is_mapped) {
        rp_unmap_pages(array->samples, bytes);
        give_mapping(worker->server);
    } else {
        rp_release(&worker->server->alloc, array->samples, bytes);
    }
    rp_queue_count(&worker->queue, RP_QUEUE_OUT, 0 - array->counted_bytes);
    *array = (rp_sample_array){0};
}
