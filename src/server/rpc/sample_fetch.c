/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/sample_fetch.h"

#include <assert.h>

#include "server/core/worker.h"
#include "util/mem.h"

enum {
    SMALL_FETCH = 64, /* capacity of a fetch for at most this many samples */
    MAX_IDLE_FETCHES = 64,
};

static size_t fetch_bytes(const rp_sample_fetch *fetch)
{
    return sizeof *fetch + fetch->capacity * sizeof *fetch->samples;
}

static void free_fetch(rp_sample_fetch *fetch)
{
    rp_release(&fetch->worker->server->alloc, fetch, fetch_bytes(fetch));
}

static rp_sample_fetch *make_fetch(rp_worker *worker, size_t capacity)
{
    rp_sample_fetch *fetch =
        rp_alloc(&worker->server->alloc, sizeof *fetch + capacity * sizeof *fetch->samples);

    if (fetch == NULL) return NULL;
    fetch->worker = worker;
    fetch->capacity = capacity;
    return fetch;
}

/* Bytes that count as queued while the fetch is in use. */
static size_t counted_bytes(const rp_sample_fetch *fetch)
{
    return fetch->capacity > SMALL_FETCH ? fetch_bytes(fetch) : 0;
}

rp_sample_fetch *rp_sample_fetch_new(rp_worker *worker, size_t count)
{
    size_t kind = count > SMALL_FETCH;
    rp_sample_fetch *fetch = worker->idle_fetches[kind];

    assert(count <= RP_MAX_FETCH);
    if (fetch != NULL) {
        worker->idle_fetches[kind] = fetch->next;
        worker->idle_fetch_count[kind]--;
    } else {
        fetch = make_fetch(worker, kind > 0 ? RP_MAX_FETCH : SMALL_FETCH);
    }
    assert(fetch == NULL || (count <= fetch->capacity && fetch->worker == worker));
    if (fetch != NULL) rp_queue_count(&worker->queue, RP_QUEUE_OUT, counted_bytes(fetch));
    return fetch;
}

void rp_sample_fetch_release(rp_sample_fetch *fetch)
{
    rp_worker *worker = fetch->worker;
    size_t kind = fetch->capacity > SMALL_FETCH;

    assert(fetch->served != NULL && fetch->drawn != NULL);
    rp_loop_disarm(worker->loop, &fetch->timer);
    rp_served_table_unref(fetch->served);
    rp_drawn_give(fetch->drawn, fetch->op.held_bytes);
    rp_drawn_unref(fetch->drawn);
    rp_queue_count(&worker->queue, RP_QUEUE_OUT, 0 - counted_bytes(fetch));
    if (worker->idle_fetch_count[kind] == MAX_IDLE_FETCHES) {
        free_fetch(fetch);
        return;
    }
    fetch->next = worker->idle_fetches[kind];
    worker->idle_fetches[kind] = fetch;
    worker->idle_fetch_count[kind]++;
}

void rp_sample_fetches_free(rp_worker *worker)
{
    for (size_t kind = 0; kind < 2; kind++)
        while (worker->idle_fetches[kind] != NULL) {
            rp_sample_fetch *fetch = worker->idle_fetches[kind];
            worker->idle_fetches[kind] = fetch->next;
            free_fetch(fetch);
        }
}
