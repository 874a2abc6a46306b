/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of reprise.v1: the connections of the server. */
#include <assert.h>

#include "server/core/deferral.h"
#include "server/core/worker.h"
#include "server/http/server_view.h"
#include "server/rpc/methods.h"
#include "util/clock.h"
#include "wire/connection_messages.h"

static void write_clients(rp_buf *out, const rp_client_views *clients, uint64_t caller)
{
    enum { NS_PER_MS = 1000000 };
    int64_t now_ns = rp_now_ns();

    for (size_t i = 0; i < clients->count; i++) {
        const rp_client_view *c = &clients->views[i];
        const rp_wire_connection connection = {
            .id = c->id,
            .address = {c->peer, strlen(c->peer)},
            .role = {rp_role_name(c->role), strlen(rp_role_name(c->role))},
            .protocol = {rp_client_protocol_name(c->protocol),
                         strlen(rp_client_protocol_name(c->protocol))},
            .open_ms = (now_ns - c->since_ns) / NS_PER_MS,
            .calls = c->calls,
            .bytes_in = c->bytes_in,
            .bytes_out = c->bytes_out,
            .is_caller = c->id == caller,
        };

        rp_wire_write_connection(out, &connection);
    }
    rp_wire_write_connection_total(out, clients->total);
}

static void on_clients(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    rp_worker *worker = rp_task_worker(task);
    rp_server *server = worker->server;
    rp_client_views clients;
    rp_message *reply;

    (void)block;
    if (!rp_task_is_message(task, data, size)) return; /* it has no fields */
    reply = rp_defer_reply(task);
    if (reply == NULL) return;
    if (rp_client_views_take(&clients, &server->alloc, &server->clients) != RP_OK) {
        rp_message_release(&worker->replies, reply);
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory to list the clients");
        return;
    }
    write_clients(&reply->bytes, &clients, task->connection->client.id);
    rp_client_views_deinit(&clients);
    rp_defer_respond(task, reply);
}

const rp_task_kind rp_clients_kind = {
    .bytes = sizeof(rp_task), .works_while_loading = true, .on_message = on_clients};
