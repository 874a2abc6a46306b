/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/journal_room.h"

#include <assert.h>

#include "server/bounds/limits.h"
#include "server/core/connection_room.h"

enum { WAITING_SHARE = 4 }; /* of the side for messages, that waiting messages may hold */

static void on_room(rp_safe_wait *wait)
{
    rp_task *task = (rp_task *)(void *)((char *)wait - offsetof(rp_task, room));
    rp_connection *c = task->connection;

    assert(!task->is_finished);
    rp_task_leave_room(task);
    rp_connection_touch(c);
    rp_call_resume(task->call); /* may end all calls of the connection */
    rp_worker_flush_batches(c->worker);
    rp_connection_count(c);
}

/* True if the worker can keep one more message of `size` bytes. */
static bool can_keep(const rp_worker *worker, size_t size)
{
    size_t most = rp_server_limits_side_bytes(&worker->limits) / WAITING_SHARE /
                  worker->server->worker_count;

    return worker->room_bytes == 0 ||
           (worker->room_bytes <= most && size <= most - worker->room_bytes);
}

bool rp_journal_room_may_begin(rp_task *task, size_t size)
{
    rp_worker *worker = rp_task_worker(task);
    rp_server *server = worker->server;
    uint64_t made = rp_safe_now(&server->room); /* before the backlog is read */
    rp_error error;

    if (server->safety.durable == NULL || !rp_durable_is_behind(server->safety.durable)) {
        rp_task_leave_room(task);
        return true;
    }
    if (!task->waits_for_journal) {
        if (!can_keep(worker, size)) {
            rp_safety_why_behind(&server->safety, &error);
            rp_task_refuse(task, RP_REFUSED_JOURNAL, &error);
            return true;
        }
        task->waits_for_journal = true;
        task->room_bytes = size;
        worker->room_bytes += size;
        rp_counter_add(&worker->metrics->journal_waits, 1);
    }
    task->room.on_safe = on_room;
    rp_safe_wait_begin(&worker->room_waits, &task->room, made + 1);
    return false;
}

void rp_journal_room_made(rp_server *server)
{
    if (rp_durable_is_behind(server->safety.durable)) return;
    (void)rp_safety_raise(&server->room, rp_safe_now(&server->room) + 1);
    for (size_t i = 0; i < server->worker_count; i++)
        rp_safe_waits_wake(&server->workers[i].room_waits);
}
