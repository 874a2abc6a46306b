/* SPDX-License-Identifier: Apache-2.0 */
/* Taking connections: on the first worker's loop, each handed to the worker that has fewest. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/core/inside.h"
#include "util/mem.h"

enum {
    ACCEPTS_A_TURN = 64,
    REST_NS = 100000000, /* when descriptors have run out */
};

/* A connection on its way to its worker. */
typedef struct arrival {
    rp_post post;
    rp_worker *worker;
    rp_tls *tls; /* a reference, or NULL */
    int fd;
    char peer[RP_PEER_BYTES];
} arrival;

static void on_arrival(rp_post *post)
{
    arrival *a = (arrival *)(void *)post;
    rp_server *server = a->worker->server;

    rp_connection_open(a->worker, a->fd, a->peer, a->tls);
    rp_tls_unref(a->tls);
    rp_release(&server->alloc, a, sizeof *a);
}

static rp_worker *least_loaded(rp_server *server)
{
    rp_worker *best = &server->workers[0];

    for (size_t i = 1; i < server->worker_count; i++) {
        rp_worker *worker = &server->workers[i];
        if (atomic_load_explicit(&worker->connection_count, memory_order_relaxed) <
            atomic_load_explicit(&best->connection_count, memory_order_relaxed))
            best = worker;
    }
    return best;
}

/* One too many: an HTTP/2 peer is told to calm down, whatever it was about to say. */
static void turn_away(rp_server *server, int fd, rp_refusal why)
{
    static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
    static const uint8_t go_away[] = {0, 0, 28, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b};
    static const char reason[] = "too many connections";
    uint8_t goodbye[sizeof settings + sizeof go_away + sizeof reason - 1];

    memcpy(goodbye, settings, sizeof settings);
    memcpy(goodbye + sizeof settings, go_away, sizeof go_away);
    memcpy(goodbye + sizeof settings + sizeof go_away, reason, sizeof reason - 1);
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->refusals[why], 1);
    (void)send(fd, goodbye, sizeof goodbye, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)close(fd);
}

static void hand_over(rp_server *server, int fd, const char *peer)
{
    size_t count = atomic_load_explicit(&server->connection_count, memory_order_relaxed);
    arrival *a;

    if (count >= server->workers[0].limits.connections || count >= server->descriptor_room) {
        turn_away(server, fd,
                  count >= server->descriptor_room ? RP_REFUSED_DESCRIPTORS
                                                   : RP_REFUSED_CONNECTIONS);
        return;
    }
    a = rp_alloc_zero(&server->alloc, sizeof *a);
    if (a == NULL) {
        turn_away(server, fd, RP_REFUSED_MEMORY);
        return;
    }
    a->post.run = on_arrival;
    a->worker = least_loaded(server);
    a->fd = fd;
    (void)snprintf(a->peer, sizeof a->peer, "%s", peer);
    rp_mutex_lock(&server->lock);
    a->tls = server->tls != NULL ? rp_tls_ref(server->tls) : NULL;
    rp_mutex_unlock(&server->lock);
    atomic_fetch_add_explicit(&server->connection_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&a->worker->connection_count, 1, memory_order_relaxed);
    rp_loop_post(a->worker->loop, &a->post);
}

static void watch_all(rp_server *server, uint32_t events)
{
    for (size_t i = 0; i < server->listener_count; i++)
        for (size_t j = 0; j < server->listeners[i].listener.fd_count; j++)
            rp_loop_change(server->workers[0].loop, &server->listeners[i].watches[j].watch,
                           events);
}

static void on_rested(rp_timer *timer)
{
    rp_server *server = (rp_server *)((char *)timer - offsetof(rp_server, accept_rest));

    if (server->is_accepting) watch_all(server, RP_READABLE);
}

/* The system has no descriptor for us: looking away for a while beats spinning. */
static void rest(rp_server *server)
{
    rp_loop *loop = server->workers[0].loop;

    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->refusals[RP_REFUSED_DESCRIPTORS],
                          1);
    if (rp_loop_arm(loop, &server->accept_rest, rp_loop_now(loop) + REST_NS) == RP_OK)
        watch_all(server, 0);
}

static void on_connection(rp_watch *watch, uint32_t events)
{
    rp_server *server = ((rp_listener_watch *)(void *)watch)->server;
    char peer[RP_PEER_BYTES];

    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = rp_listener_accept(watch->fd, peer, sizeof peer);
        if (fd >= 0) {
            hand_over(server, fd, peer);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            rest(server);
        if (errno != ECONNABORTED && errno != EINTR) return;
    }
}

static void on_start(rp_post *post)
{
    rp_server *server = (rp_server *)((char *)post - offsetof(rp_server, accept_start));

    server->is_accepting = true;
    for (size_t i = 0; i < server->listener_count; i++) {
        rp_server_listener *listener = &server->listeners[i];
        for (size_t j = 0; j < listener->listener.fd_count; j++) {
            rp_listener_watch *w = &listener->watches[j];
            *w = (rp_listener_watch){{.fd = listener->listener.fds[j]}, server};
            w->watch.on_ready = on_connection;
            if (rp_loop_watch(server->workers[0].loop, &w->watch, RP_READABLE) != RP_OK)
                rp_server_log(server, RP_LOG_ERROR, "listen", "address=%s failed=watch",
                              listener->listener.text);
        }
    }
}

static void on_stop(rp_post *post)
{
    rp_server *server = (rp_server *)((char *)post - offsetof(rp_server, accept_stop));

    for (size_t i = 0; server->is_accepting && i < server->listener_count; i++) {
        rp_listener *listener = &server->listeners[i].listener;
        for (size_t j = 0; j < listener->fd_count; j++)
            rp_loop_forget(server->workers[0].loop, &server->listeners[i].watches[j].watch);
        rp_listener closing = *listener; /* its text and port are still read */
        listener->fd_count = 0;
        listener->unix_path[0] = '\0';
        rp_listener_close(&closing); /* who comes now is told at once */
    }
    server->is_accepting = false;
    rp_loop_disarm(server->workers[0].loop, &server->accept_rest);
}

void rp_server_accept(rp_server *server)
{
    server->accept_start.run = on_start;
    server->accept_rest.on_due = on_rested;
    rp_loop_post(server->workers[0].loop, &server->accept_start);
}

void rp_server_stop_accepting(rp_server *server)
{
    server->accept_stop.run = on_stop;
    rp_loop_post(server->workers[0].loop, &server->accept_stop);
}
