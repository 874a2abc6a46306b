/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/worker.h"

#include <assert.h>

#include "server/core/connection.h"
#include "server/core/deferral.h"
#include "server/core/pinned.h"
#include "server/core/task.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

/* A client sends its next call within this time of a response, if it has little to compute. */
enum { POLL_NS = 30000 };

static void flush_connections(rp_worker *worker)
{
    while (worker->dirty != NULL) {
        rp_connection *connection = worker->dirty;
        assert(connection->is_dirty && connection->state != RP_CONNECTION_CLOSED); /* C2 */
        worker->dirty = connection->next_dirty;
        connection->is_dirty = false;
        rp_connection_flush(connection);
    }
}

static void end_turn(void *user)
{
    rp_worker *worker = user;

    assert(worker->batching == NULL && worker->open_count == 0); /* K4 */
    flush_connections(worker);
    rp_pinned_end_turn(worker);
    flush_connections(worker); /* connections of calls that rp_pinned_end_turn() has refused */
    /* Decays slowly, since there may be a turn without reads between two turns with many. */
    worker->readers_before /= 2;
    if (worker->readers_before < worker->readers) worker->readers_before = worker->readers;
    worker->readers = 0;
    rp_handshakes_end_turn(&worker->handshakes);
    rp_closing_end_turn(&worker->closing);
    rp_defer_end_turn(worker);
    rp_queue_publish(&worker->queue);
    rp_counter_add(&worker->metrics->turns, 1);
}

static void *run_loop(void *user)
{
    rp_worker *worker = user;

    rp_loop_run(worker->loop);
    return NULL;
}

static void on_stop(rp_post *post)
{
    rp_worker *worker = (rp_worker *)((char *)post - offsetof(rp_worker, stop));

    worker->stopping = true;
    rp_closing_finish(&worker->closing);
    while (worker->connections != NULL) rp_connection_end(worker->connections);
    rp_worker_stop_if_done(worker);
}

static void on_drain(rp_post *post)
{
    rp_worker *worker = (rp_worker *)((char *)post - offsetof(rp_worker, drain));

    for (rp_connection *c = worker->connections, *next; c != NULL; c = next) {
        next = c->next;
        rp_connection_drain(c);
    }
}

/* Tells the queues of handshakes how many of the server's places the worker has. */
static void share_places(rp_worker *worker)
{
    rp_handshakes_set_places(&worker->handshakes,
                             rp_worker_places(worker).all / worker->server->worker_count);
}

static void on_new_limits(rp_post *post)
{
    rp_worker *worker = (rp_worker *)((char *)post - offsetof(rp_worker, new_limits));

    atomic_store_explicit(&worker->limits_posted, false, memory_order_release);
    worker->limits = rp_server_limits_now(worker->server);
    share_places(worker);
}

void rp_worker_update_limits(rp_worker *worker)
{
    /* A post that has not run yet will copy the newest limits. */
    if (!atomic_exchange_explicit(&worker->limits_posted, true, memory_order_acq_rel))
        rp_loop_post(worker->loop, &worker->new_limits);
}

static void on_dropped(rp_post *post)
{
    rp_worker *worker = (rp_worker *)((char *)post - offsetof(rp_worker, dropped));

    atomic_store_explicit(&worker->dropped_posted, false, memory_order_release);
    for (rp_connection *c = worker->connections; c != NULL; c = c->next)
        for (rp_task *task = c->tasks; task != NULL; task = task->next)
            if (task->kind->on_dropped != NULL) task->kind->on_dropped(task);
}

void rp_worker_release_dropped(rp_worker *worker)
{
    if (!atomic_exchange_explicit(&worker->dropped_posted, true, memory_order_acq_rel))
        rp_loop_post(worker->loop, &worker->dropped);
}

void rp_worker_drain(rp_worker *worker)
{
    rp_loop_post(worker->loop, &worker->drain);
}

static void add_rollout_work(rp_rollout_waits *waits, size_t units)
{
    rp_defer_add_work((rp_worker *)(void *)((char *)waits - offsetof(rp_worker, rollout_waits)),
                      units);
}

rp_status rp_worker_init(rp_worker *worker, rp_server *server, size_t index, rp_error *err)
{
    rp_status st;

    assert(index < server->worker_count);
    *worker = (rp_worker){.server = server, .index = index};
    worker->metrics = rp_metrics_loop(server->metrics, index);
    worker->limits = rp_server_limits_now(server);
    worker->stop.run = on_stop;
    worker->drain.run = on_drain;
    worker->queue =
        (rp_queue_part){.budget = &server->budget, .counter = &worker->metrics->queued_bytes};
    rp_defer_init(worker, rp_connection_read, rp_connection_flush_warm);
    rp_pinned_init(worker);
    worker->new_limits.run = on_new_limits;
    worker->dropped.run = on_dropped;
    rp_message_pool_init(&worker->replies, &server->alloc);
    worker->read_buffer = rp_alloc(&server->alloc, RP_READ_BYTES);
    if (worker->read_buffer == NULL) return rp_fail_memory(err, RP_READ_BYTES);
    st = rp_loop_new(&server->alloc, &worker->loop, err);
    if (st != RP_OK) return st;
    rp_loop_set_turn_end(worker->loop, end_turn, worker);
    rp_loop_set_poll(worker->loop, POLL_NS);
    rp_handshakes_init(&worker->handshakes, worker->loop, &rp_connection_handshakes);
    share_places(worker);
    rp_newcomers_init(&worker->newcomers);
    rp_closing_init(&worker->closing, worker->loop, rp_connection_on_calls_ended,
                    rp_connection_on_all_calls_ended);
    rp_safe_waits_init(&worker->safe_waits, &server->safety, worker->loop);
    rp_safe_waits_init(&worker->room_waits, &server->room, worker->loop);
    rp_rollout_waits_init(&worker->rollout_waits, worker->loop, server->store);
    worker->rollout_waits.add_work = add_rollout_work;
    return RP_OK;
}

rp_status rp_worker_start(rp_worker *worker, rp_error *err)
{
    if (pthread_create(&worker->thread, NULL, run_loop, worker) != 0)
        return rp_fail(err, RP_NO_RESOURCE, "no thread for event loop %zu", worker->index);
    worker->has_thread = true;
    return RP_OK;
}

void rp_worker_stop(rp_worker *worker)
{
    if (!worker->has_thread) return;
    rp_loop_post(worker->loop, &worker->stop);
    (void)pthread_join(worker->thread, NULL);
    worker->has_thread = false;
}

void rp_worker_deinit(rp_worker *worker)
{
    if (worker->server == NULL) return;
    rp_worker_stop(worker);
    rp_closing_finish(&worker->closing);
    assert(worker->connections == NULL && worker->dirty == NULL);
    assert(worker->outstanding == 0 && worker->deferring == NULL);
    rp_worker_free_pools(worker);
    rp_message_pool_deinit(&worker->replies);
    rp_rollout_waits_deinit(&worker->rollout_waits);
    rp_loop_free(worker->loop);
    rp_release(&worker->server->alloc, worker->read_buffer, RP_READ_BYTES);
    worker->server = NULL;
}
