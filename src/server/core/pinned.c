/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/pinned.h"

#include <assert.h>

#include "store/store.h"
#include "util/clock.h"
#include "util/error.h"

enum {
    LEAST_BYTES = 64 << 10, /* least size of a share */
    SWEEP_PART = 10,        /* sweeps take at most a tenth of a worker's time */
    LOOK_PART = 50,         /* looks take at most a fiftieth of it */
    LEAST_REST_NS = 5000000,
};

void rp_pinned_add(rp_worker *worker, size_t change)
{
    size_t before;

    if (change == 0) return;
    before =
        atomic_fetch_add_explicit(&worker->server->pinned_bytes, change, memory_order_relaxed);
    /* Bytes that are subtracted were added before, by the same thread. */
    assert(change <= SIZE_MAX / 2 || before >= 0 - change);
    (void)before;
}

void rp_pinned_keep(rp_worker *worker, size_t change)
{
    rp_budget_add_kept(rp_store_budget(worker->server->store), change);
}

size_t rp_pinned_sum(const rp_server *server)
{
    return atomic_load_explicit(&server->pinned_bytes, memory_order_relaxed) +
           (size_t)rp_budget_kept(rp_store_budget(server->store));
}

/* Bytes that each connection may hold, however much the others hold (P2). */
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

    return rp_pinned_sum(worker->server) > bytes &&
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
        "chunks without an item and calls that wait take %zu bytes, over three "
        "quarters of the limit pinned_bytes, %zu, of all connections; try again later",
        rp_pinned_sum(worker->server), worker->limits.pinned_bytes);
    rp_task_refuse(task, RP_REFUSED_PINNED, &error);
}

bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes)
{
    rp_connection *c = task->connection;
    const rp_server_limits *limits = &c->worker->limits;
    rp_error error;

    assert(c->pinned_bytes >= *counted);
    c->pinned_bytes += bytes - *counted;
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

/* Updates the pinned and parked bytes of all connections of a worker. */
static void look(rp_worker *worker)
{
    for (rp_connection *c = worker->connections; c != NULL; c = c->next)
        for (rp_task *task = c->tasks; task != NULL; task = task->next)
            if (task->kind->on_pinned != NULL && !task->is_finished)
                (void)task->kind->on_pinned(task);
}

/* Refuses streams of a connection until it holds at most `most` bytes, or the sum is at most
 * `target`. */
static void refuse_some(rp_connection *c, size_t most, size_t target)
{
    for (rp_task *task = c->tasks, *next; task != NULL; task = next) {
        next = task->next;
        if (c->pinned_bytes + c->parked_bytes <= most ||
            rp_pinned_sum(c->worker->server) <= target)
            return;
        if (task->kind->on_pinned != NULL && !task->is_finished &&
            task->kind->on_pinned(task) > 0)
            rp_pinned_refuse(task);
    }
}

/* P4. Connections that hold the most are refused first. */
static void sweep(rp_worker *worker)
{
    size_t limit = worker->limits.pinned_bytes, target = limit - limit / 4;
    size_t share = share_of(worker), most = limit / 2 > share ? limit / 2 : share;

    look(worker);
    for (;;) {
        for (rp_connection *c = worker->connections; c != NULL; c = c->next)
            refuse_some(c, most, target);
        if (most == share || rp_pinned_sum(worker->server) <= target) return;
        most = most / 4 > share ? most / 4 : share;
    }
}

/* Only wakes the loop: rp_pinned_end_turn() makes the check. */
static void on_check(rp_post *post)
{
    rp_worker *worker = (rp_worker *)((char *)post - offsetof(rp_worker, check_pinned));

    atomic_store_explicit(&worker->check_posted, false, memory_order_release);
}

static void on_rested(rp_timer *timer)
{
    (void)timer;
}

void rp_pinned_init(rp_worker *worker)
{
    worker->check_pinned.run = on_check;
    worker->pinned_rest.on_due = on_rested;
}

/* Makes the other workers check too: their streams may hold more, and may be silent. */
static void wake_others(const rp_worker *worker)
{
    rp_server *server = worker->server;

    for (size_t i = 0; i < server->worker_count; i++) {
        rp_worker *other = &server->workers[i];
        if (other != worker && other->loop != NULL &&
            !atomic_exchange_explicit(&other->check_posted, true, memory_order_acq_rel))
            rp_loop_post(other->loop, &other->check_pinned);
    }
}

/* The earliest time of the next look or sweep, after one that began at `from_ns` and has just
 * ended. */
static int64_t rest_until(int64_t from_ns, int64_t part)
{
    int64_t to_ns = rp_now_ns(), rest_ns = part * (to_ns - from_ns);

    return to_ns + (rest_ns > LEAST_REST_NS ? rest_ns : LEAST_REST_NS);
}

void rp_pinned_end_turn(rp_worker *worker)
{
    size_t limit = worker->limits.pinned_bytes, sum = rp_pinned_sum(worker->server);
    int64_t now_ns;

    if (sum <= limit / 2 || worker->stopping) return;
    now_ns = rp_now_ns();
    if (sum <= limit) {
        if (now_ns < worker->looked_until_ns) return;
        look(worker);
        worker->looked_until_ns = rest_until(now_ns, LOOK_PART);
        return;
    }
    if (now_ns >= worker->swept_until_ns) {
        wake_others(worker);
        sweep(worker);
        worker->swept_until_ns = rest_until(now_ns, SWEEP_PART);
    }
    /* If there is no memory for the timer, the next turn of any worker checks again. */
    if (rp_pinned_sum(worker->server) > limit)
        (void)!rp_loop_arm(worker->loop, &worker->pinned_rest, worker->swept_until_ns);
}
