/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/clients.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void rp_clients_init(rp_clients *clients)
{
    *clients = (rp_clients){.first = NULL};
    rp_mutex_init(&clients->lock, RP_RANK_CLIENTS);
}

void rp_clients_deinit(rp_clients *clients)
{
    assert(clients->first == NULL); /* N1: all connections have ended */
    rp_mutex_deinit(&clients->lock);
}

void rp_clients_enter(rp_clients *clients, rp_client *client, const char *peer,
                      rp_client_protocol protocol, int64_t now_ns)
{
    assert(client->id == 0);
    (void)snprintf(client->peer, sizeof client->peer, "%s", peer);
    client->since_ns = now_ns;
    rp_client_set_protocol(client, protocol);
    rp_mutex_lock(&clients->lock);
    client->id = ++clients->last_id;
    client->next = clients->first;
    client->prev = NULL;
    if (client->next != NULL) client->next->prev = client;
    clients->first = client;
    clients->count++;
    rp_mutex_unlock(&clients->lock);
}

void rp_clients_leave(rp_clients *clients, rp_client *client)
{
    if (client->id == 0) return;
    rp_mutex_lock(&clients->lock);
    assert(clients->count > 0); /* N1 */
    *(client->prev != NULL ? &client->prev->next : &clients->first) = client->next;
    if (client->next != NULL) client->next->prev = client->prev;
    clients->count--;
    rp_mutex_unlock(&clients->lock);
    client->id = 0;
}

size_t rp_clients_list(rp_clients *clients, rp_client_view *out, size_t capacity)
{
    size_t n = 0;

    rp_mutex_lock(&clients->lock);
    for (rp_client *c = clients->first; c != NULL && n < capacity; c = c->next, n++) {
        rp_client_view *view = &out[n];

        view->id = c->id;
        view->since_ns = c->since_ns;
        memcpy(view->peer, c->peer, sizeof view->peer);
        view->protocol =
            (rp_client_protocol)atomic_load_explicit(&c->protocol, memory_order_relaxed);
        view->role = (rp_role)atomic_load_explicit(&c->role, memory_order_relaxed);
        view->calls = rp_counter_get(&c->calls);
        view->bytes_in = rp_counter_get(&c->bytes_in);
        view->bytes_out = rp_counter_get(&c->bytes_out);
    }
    n = clients->count;
    rp_mutex_unlock(&clients->lock);
    return n;
}

size_t rp_clients_count(rp_clients *clients)
{
    size_t count;

    rp_mutex_lock(&clients->lock);
    count = clients->count;
    rp_mutex_unlock(&clients->lock);
    return count;
}

const char *rp_client_protocol_name(rp_client_protocol protocol)
{
    switch (protocol) {
    case RP_CLIENT_NEW: return "new";
    case RP_CLIENT_H2: return "HTTP/2";
    case RP_CLIENT_HTTP1: return "HTTP/1.1";
    case RP_CLIENT_LEASE: return "shared memory";
    }
    return "unknown";
}
