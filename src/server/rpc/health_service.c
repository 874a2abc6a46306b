/* SPDX-License-Identifier: Apache-2.0 */
/* The services of gRPC itself: health and reflection. */
#include <string.h>

#include "server/core/task.h"
#include "server/rpc/methods.h"
#include "wire/descriptors.h"
#include "wire/health_messages.h"
#include "wire/reflection_messages.h"

enum { WATCH_NS = 100000000 }; /* between two checks for a change */

static bool is_known(rp_string service)
{
    if (service.size == 0) return true;
    for (size_t i = 0; i < rp_wire_service_count; i++)
        if (strlen(rp_wire_services[i]) == service.size &&
            memcmp(rp_wire_services[i], service.data, service.size) == 0)
            return true;
    return false;
}

static rp_wire_serving serving(rp_server *server)
{
    rp_health health = rp_server_health_now(server);

    return health == RP_HEALTH_SERVING || health == RP_HEALTH_DEGRADED ? RP_WIRE_SERVING
                                                                       : RP_WIRE_NOT_SERVING;
}

static void on_check(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_string service;
    rp_error error;
    rp_message *reply;

    (void)block;
    if (rp_wire_read_health_request(data, size, &service, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (!is_known(service)) {
        rp_task_finish(task, RP_NOT_FOUND, "unknown service");
        return;
    }
    reply = rp_task_new_message(task);
    if (reply == NULL) return;
    rp_wire_write_health_response(&reply->bytes, serving(rp_task_worker(task)->server));
    rp_task_respond(task, reply);
}

const rp_task_kind rp_health_check_kind = {
    .bytes = sizeof(rp_task), .works_while_loading = true, .on_message = on_check};

/* Watch: sends the state at once and after each change, until the peer ends the call. */
typedef struct health_watch {
    rp_task task;
    rp_timer timer;
    bool is_known;
    int sent; /* the last state; -1: none */
} health_watch;

static void send_change(health_watch *watch)
{
    rp_task *task = &watch->task;
    rp_worker *worker = rp_task_worker(task);
    rp_wire_serving now = watch->is_known ? serving(worker->server) : RP_WIRE_SERVICE_UNKNOWN;

    if ((int)now != watch->sent) {
        rp_message *reply = rp_task_new_message(task);
        if (reply == NULL) return;
        rp_wire_write_health_response(&reply->bytes, now);
        rp_task_send(task, reply);
        watch->sent = (int)now;
    }
    if (rp_loop_arm(worker->loop, &watch->timer, rp_loop_now(worker->loop) + WATCH_NS) != RP_OK)
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for a timer");
}

static void on_watch_due(rp_timer *timer)
{
    health_watch *watch = (health_watch *)((char *)timer - offsetof(health_watch, timer));

    if (!watch->task.is_finished) send_change(watch);
}

static void on_watch(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    health_watch *watch = (health_watch *)(void *)task;
    rp_string service;
    rp_error error;

    (void)block;
    if (rp_wire_read_health_request(data, size, &service, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    watch->is_known = is_known(service);
    watch->sent = -1;
    rp_loop_disarm(rp_task_worker(task)->loop, &watch->timer); /* armed by an earlier request */
    watch->timer = (rp_timer){.on_due = on_watch_due, .is_bulk = true};
    send_change(watch);
}

static void on_watch_half_close(rp_task *task)
{
    if (((health_watch *)(void *)task)->timer.on_due == NULL)
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

static void on_watch_close(rp_task *task)
{
    rp_loop_disarm(rp_task_worker(task)->loop, &((health_watch *)(void *)task)->timer);
}

const rp_task_kind rp_health_watch_kind = {
    .bytes = sizeof(health_watch),
    .works_while_loading = true,
    .on_message = on_watch,
    .on_half_close = on_watch_half_close,
    .on_close = on_watch_close,
};

static void on_reflection(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_wire_reflection_request request;
    rp_error error;
    rp_message *reply;

    (void)block;
    if (rp_wire_read_reflection_request(data, size, &request, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    reply = rp_task_new_message(task);
    if (reply == NULL) return;
    rp_wire_write_reflection_response(&reply->bytes, &request);
    rp_task_send(task, reply);
    if (rp_call_queued_bytes(task->call) > rp_task_worker(task)->limits.stream_queued_bytes) {
        rp_call_pause(task->call);
        rp_call_want_room(task->call);
    }
}

static void on_reflection_room(rp_task *task)
{
    rp_call_resume(task->call);
}

static void on_reflection_end(rp_task *task)
{
    rp_task_finish(task, RP_OK, NULL);
}

const rp_task_kind rp_reflection_kind = {
    .bytes = sizeof(rp_task),
    .works_while_loading = true,
    .on_message = on_reflection,
    .on_room = on_reflection_room,
    .on_half_close = on_reflection_end,
};
