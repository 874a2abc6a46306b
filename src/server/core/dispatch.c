/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/dispatch.h"

#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/core/connection.h"
#include "util/mem.h"

/* A connection that is being passed to its worker. */
typedef struct arrival {
    rp_post post;
    rp_worker *worker;
    rp_tls *tls; /* a reference, or NULL */
    int fd;
    bool replaces; /* it has a claim to the place of a newcomer */
    char peer[RP_PEER_BYTES];
} arrival;

static rp_server *server_of(rp_acceptor *acceptor)
{
    return (rp_server *)((char *)acceptor - offsetof(rp_server, acceptor));
}

static rp_worker *least_loaded(rp_server *server)
{
    rp_worker *best = &server->workers[0];

    assert(server->worker_count > 0);
    for (size_t i = 1; i < server->worker_count; i++) {
        rp_worker *worker = &server->workers[i];
        if (atomic_load_explicit(&worker->connection_count, memory_order_relaxed) <
            atomic_load_explicit(&best->connection_count, memory_order_relaxed))
            best = worker;
    }
    return best;
}

/* The worker whose oldest newcomer is the oldest of all; NULL if each has a claim to its place.
 */
static rp_worker *worker_of_oldest(rp_server *server)
{
    rp_worker *best = NULL;
    int64_t best_ns = INT64_MAX;

    for (size_t i = 0; i < server->worker_count; i++) {
        int64_t oldest_ns = rp_newcomers_oldest_ns(&server->workers[i].newcomers);
        if (oldest_ns >= best_ns) continue;
        best = &server->workers[i];
        best_ns = oldest_ns;
    }
    return best;
}

static void count_refusal(rp_server *server, rp_refusal why)
{
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->refusals[why], 1);
}

/* Closes a connection beyond a limit. Sends SETTINGS and GOAWAY (ENHANCE_YOUR_CALM) first, for
 * a peer that speaks HTTP/2. */
static void reject(rp_server *server, int fd, rp_refusal why)
{
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    static const uint8_t go_away[] = {0, 0, 28, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b};
    static const char reason[] = "too many connections";
    uint8_t frames[sizeof settings + sizeof go_away + sizeof reason - 1];

    memcpy(frames, settings, sizeof settings);
    memcpy(frames + sizeof settings, go_away, sizeof go_away);
    memcpy(frames + sizeof settings + sizeof go_away, reason, sizeof reason - 1);
    count_refusal(server, why);
    (void)send(fd, frames, sizeof frames, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

static rp_refusal reason_of(const rp_places *places)
{
    return places->is_by_descriptors ? RP_REFUSED_DESCRIPTORS : RP_REFUSED_CONNECTIONS;
}

static void on_arrival(rp_post *post)
{
    arrival *a = (arrival *)(void *)post;
    rp_server *server = a->worker->server;

    if (a->replaces && !rp_connection_make_place(a->worker)) {
        rp_places places = rp_worker_places(a->worker);
        reject(server, a->fd, reason_of(&places));
        rp_connection_count_out(a->worker);
    } else {
        rp_connection_open(a->worker, a->fd, a->peer, a->tls);
    }
    rp_newcomers_arrived(&a->worker->newcomers);
    rp_tls_unref(a->tls);
    rp_release(&server->alloc, a, sizeof *a);
}

static void on_connection(rp_acceptor *acceptor, int fd, const char *peer)
{
    rp_server *server = server_of(acceptor);
    size_t count = atomic_load_explicit(&server->connection_count, memory_order_relaxed);
    rp_places places = rp_worker_places(&server->workers[0]);
    rp_worker *worker = NULL;
    arrival *a;

    if (count < places.all)
        worker = least_loaded(server);
    else if (count < places.most)
        worker = worker_of_oldest(server);
    if (worker == NULL) {
        reject(server, fd, reason_of(&places));
        return;
    }
    a = rp_alloc_zero(&server->alloc, sizeof *a);
    if (a == NULL) {
        reject(server, fd, RP_REFUSED_MEMORY);
        return;
    }
    a->post.run = on_arrival;
    a->worker = worker;
    a->replaces = count >= places.all;
    rp_newcomers_send(&worker->newcomers, a->replaces);
    a->fd = fd;
    (void)snprintf(a->peer, sizeof a->peer, "%s", peer);
    rp_mutex_lock(&server->lock);
    a->tls = server->tls != NULL ? rp_tls_ref(server->tls) : NULL;
    rp_mutex_unlock(&server->lock);
    atomic_fetch_add_explicit(&server->connection_count, 1, memory_order_relaxed); /* V1 */
    atomic_fetch_add_explicit(&a->worker->connection_count, 1, memory_order_relaxed);
    rp_loop_post(a->worker->loop, &a->post);
}

static void on_exhausted(rp_acceptor *acceptor)
{
    count_refusal(server_of(acceptor), RP_REFUSED_DESCRIPTORS);
}

static void on_failed(rp_acceptor *acceptor, const rp_listener *listener)
{
    rp_server_log(server_of(acceptor), RP_LOG_ERROR, "listen", "address=%s failed=watch",
                  listener->text);
}

const rp_acceptor_handler rp_dispatch_handler = {
    .on_connection = on_connection,
    .on_exhausted = on_exhausted,
    .on_failed = on_failed,
};
