/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/pinned.h"

#include <assert.h>

#include "util/error.h"

enum { LEAST_BYTES = 64 << 10 /* of a share */ };

void rp_pinned_add(rp_worker *worker, size_t change)
{
    size_t before;

    if (change == 0) return;
    before =
        atomic_fetch_add_explicit(&worker->server->pinned_bytes, change, memory_order_relaxed);
    /* All that is subtracted was added before, by the same thread. */
    assert(change <= SIZE_MAX / 2 || before >= 0 - change);
    (void)before;
    rp_counter_add(&worker->metrics->pinned_bytes, change);
}

/* Bytes that each connection may hold, however much the others do (P2). */
static size_t share_of(const rp_worker *worker)
{
    size_t count =
        atomic_load_explicit(&worker->server->connection_count, memory_order_relaxed);
    size_t share = worker->limits.pinned_bytes / 4 / (count > 0 ? count : 1);

    return share > LEAST_BYTES ? share : LEAST_BYTES;
}

/* Whether the sum is over `bytes` and the connection over its share. */
static bool is_over(const rp_connection *c, size_t bytes)
{
    const rp_worker *worker = c->worker;

    return atomic_load_explicit(&worker->server->pinned_bytes, memory_order_relaxed) > bytes &&
           c->pinned_bytes + c->parked_bytes > share_of(worker);
}

bool rp_pinned_is_full(const rp_connection *c)
{
    return is_over(c, c->worker->limits.pinned_bytes - c->worker->limits.pinned_bytes / 4);
}

bool rp_pinned_is_short(const rp_connection *c)
{
    return is_over(c, c->worker->limits.pinned_bytes / 2);
}

void rp_pinned_refuse(rp_task *task)
{
    const rp_worker *worker = task->connection->worker;
    rp_error error;

    (void)rp_fail(
        &error, RP_NO_RESOURCE,
        "chunks without an item and inserts that wait take %zu bytes, over three "
        "quarters of the limit pinned_bytes, %zu, of all connections; try again later",
        atomic_load_explicit(&worker->server->pinned_bytes, memory_order_relaxed),
        worker->limits.pinned_bytes);
    rp_task_refuse(task, RP_REFUSED_PINNED, &error);
}

bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes)
{
    rp_connection *c = task->connection;
    const rp_server_limits *limits = &c->worker->limits;
    rp_error error;

    assert(c->pinned_bytes >= *counted);
    c->pinned_bytes += bytes - *counted;
    rp_pinned_add(c->worker, bytes - *counted);
    *counted = bytes;
    if (bytes > limits->stream_pinned_bytes) {
        (void)rp_fail(&error, RP_NO_RESOURCE,
                      "%zu bytes of chunks without an item are over the limit of %zu", bytes,
                      limits->stream_pinned_bytes);
        rp_task_refuse(task, RP_REFUSED_STREAM_PINNED, &error);
    } else if (c->pinned_bytes > limits->connection_pinned_bytes) {
        (void)rp_fail(&error, RP_NO_RESOURCE,
                      "%zu bytes of chunks without an item on one connection are over %zu",
                      c->pinned_bytes, limits->connection_pinned_bytes);
        rp_task_refuse(task, RP_REFUSED_CONNECTION_PINNED, &error);
    } else if (bytes > 0 && rp_pinned_is_full(c)) {
        rp_pinned_refuse(task);
    } else {
        return false;
    }
    return true;
}
