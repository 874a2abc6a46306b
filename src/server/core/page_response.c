/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/page_response.h"

#include <assert.h>
#include <stdio.h>

#include "reprise/version.h"
#include "server/core/connection_room.h"
#include "util/clock.h"

static void describe(void *ctx, rp_server_view *view)
{
    rp_server *server = ctx;

    *view = (rp_server_view){
        .version = RP_VERSION,
        .uptime_ns = rp_now_ns() - server->started_ns,
        .addresses = server->acceptor.addresses,
        .address_count = server->acceptor.listener_count,
        .metrics = server->metrics,
    };
    /* Acquire: pairs with rp_server_set_health(), so that the loaded store is visible. */
    if (atomic_load_explicit(&server->is_loaded, memory_order_acquire)) {
        view->store = server->store;
        view->is_durable = server->safety.durable != NULL;
    }
    if (view->is_durable) rp_durable_get_info(server->safety.durable, &view->durable);
    rp_mutex_lock(&server->lock);
    view->health = server->health;
    (void)snprintf(view->why, sizeof view->why, "%s", server->health_why);
    view->limits = server->limits;
    view->tls = server->tls != NULL;
    rp_mutex_unlock(&server->lock);
    view->open = server->is_open;
    if (view->health != RP_HEALTH_SERVING || !view->durable.degraded) return;
    view->health = RP_HEALTH_DEGRADED;
    (void)snprintf(view->why, sizeof view->why, "%.*s", RP_VIEW_WHY_BYTES - 1,
                   view->durable.trouble);
}

rp_page_host rp_page_host_of(rp_server *server)
{
    return (rp_page_host){
        .ctx = server,
        .describe = describe,
        .gate = server->gate,
        .is_open = server->is_open,
        .names = server->page_hosts,
        .counters = rp_metrics_shared(server->metrics),
    };
}

void rp_page_respond(rp_connection *connection, rp_call *call, const char *method,
                     const char *path, const char *authorization)
{
    rp_worker *worker = connection->worker;
    rp_page_host host = rp_page_host_of(worker->server);
    const rp_page_request request = {
        .method = method,
        .path = path,
        .shown = {authorization, connection->certificate, connection->peer},
        .now_ns = rp_loop_now(worker->loop),
    };
    rp_page_answer answer = {0};
    rp_reply *body = rp_reply_new(&worker->replies);

    rp_buf_init(&answer.body, &worker->server->alloc);
    rp_page_render(&host, &request, &answer);
    assert(answer.status >= 200 && answer.status < 600 && answer.content_type != NULL);
    if (body != NULL) {
        if (!answer.head_only) rp_buf_append(&body->bytes, answer.body.data, answer.body.size);
        if (body->bytes.size > rp_connection_room(connection, RP_QUEUE_OUT)) {
            rp_connection_refused(connection, RP_REFUSED_QUEUED);
            rp_reply_release(&worker->replies, body);
            body = NULL;
        } else if (!rp_reply_close(body)) {
            rp_reply_release(&worker->replies, body);
            body = NULL;
        }
    }
    rp_buf_deinit(&answer.body);
    rp_call_answer(call,
                   &(rp_http_answer){body != NULL ? answer.status : 503, answer.content_type,
                                     answer.extra_name, answer.extra_value},
                   body);
    rp_connection_count(connection);
    rp_connection_touch(connection);
}
