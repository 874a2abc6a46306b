/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/acceptor.h"

#include <assert.h>
#include <errno.h>

#include "net/fd_pass.h"
#include "util/error.h"

enum {
    ACCEPTS_A_TURN = 64,
    PAUSE_NS = 100000000, /* of accepting, when descriptors have run out */
};

static void watch_all(rp_acceptor *a, uint32_t events)
{
    assert(a->is_accepting); /* A2 */
    for (size_t i = 0; i < a->listener_count; i++)
        for (size_t j = 0; j < a->listeners[i].listener.fd_count; j++)
            rp_loop_change(a->loop, &a->listeners[i].watches[j].watch, events);
}

static void on_pause_over(rp_timer *timer)
{
    rp_acceptor *a = (rp_acceptor *)((char *)timer - offsetof(rp_acceptor, pause));

    if (a->is_accepting) watch_all(a, RP_READABLE);
}

/* Stops watching the listeners for a while, so that the loop does not fail to accept in every
 * turn. */
static void pause_accepting(rp_acceptor *a)
{
    a->handler->on_exhausted(a);
    if (rp_loop_arm(a->loop, &a->pause, rp_loop_now(a->loop) + PAUSE_NS) == RP_OK)
        watch_all(a, 0);
}

static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_acceptor *a = ((rp_listener_watch *)(void *)watch)->acceptor;
    char peer[RP_PEER_BYTES];

    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = rp_listener_accept(watch->fd, peer, sizeof peer);
        if (fd >= 0) {
            a->handler->on_connection(a, fd, peer);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(a);
        if (errno != ECONNABORTED && errno != EINTR) return;
    }
}

static void on_start(rp_post *post)
{
    rp_acceptor *a = (rp_acceptor *)((char *)post - offsetof(rp_acceptor, start));

    assert(!a->is_accepting);
    a->is_accepting = true;
    for (size_t i = 0; i < a->listener_count; i++) {
        rp_acceptor_listener *l = &a->listeners[i];
        for (size_t j = 0; j < l->listener.fd_count; j++) {
            rp_listener_watch *w = &l->watches[j];
            *w = (rp_listener_watch){{.fd = l->listener.fds[j]}, a};
            w->watch.on_ready = on_ready;
            if (rp_loop_watch(a->loop, &w->watch, RP_READABLE) != RP_OK)
                a->handler->on_failed(a, &l->listener);
        }
    }
}

static void on_stop(rp_post *post)
{
    rp_acceptor *a = (rp_acceptor *)((char *)post - offsetof(rp_acceptor, stop));

    for (size_t i = 0; a->is_accepting && i < a->listener_count; i++) {
        rp_listener *listener = &a->listeners[i].listener;
        rp_listener closing = *listener; /* other threads still read its text and port */
        for (size_t j = 0; j < listener->fd_count; j++)
            rp_loop_forget(a->loop, &a->listeners[i].watches[j].watch);
        listener->fd_count = 0;
        listener->unix_path[0] = '\0';
        rp_listener_close(&closing);
    }
    a->is_accepting = false;
    rp_loop_disarm(a->loop, &a->pause);
}

rp_status rp_acceptor_listen(rp_acceptor *a, const char *address, const rp_listener **out,
                             rp_error *err)
{
    rp_listener *listener = &a->listeners[a->listener_count].listener;
    rp_status st;

    assert(a->loop == NULL);                  /* not started */
    assert(a->listener_count < RP_LISTENERS); /* A1 */
    st = rp_listener_open(listener, address, err);
    if (st != RP_OK) return st;
    a->addresses[a->listener_count++] = listener->text;
    *out = listener;
    return RP_OK;
}

void rp_acceptor_start(rp_acceptor *a, rp_loop *loop, const rp_acceptor_handler *handler)
{
    assert(a->loop == NULL);
    a->loop = loop;
    a->handler = handler;
    a->start.run = on_start;
    a->pause.on_due = on_pause_over;
    rp_loop_post(loop, &a->start);
}

void rp_acceptor_stop(rp_acceptor *a)
{
    if (a->loop == NULL) return; /* never started */
    assert(a->stop.run == NULL); /* a post is in the queue once */
    a->stop.run = on_stop;
    rp_loop_post(a->loop, &a->stop);
}

void rp_acceptor_deinit(rp_acceptor *a)
{
    assert(a->listener_count <= RP_LISTENERS); /* A1 */
    for (size_t i = 0; i < a->listener_count; i++) rp_listener_close(&a->listeners[i].listener);
    a->listener_count = 0;
}

int rp_acceptor_port(const rp_acceptor *a)
{
    for (size_t i = 0; i < a->listener_count; i++)
        if (a->listeners[i].listener.port != 0) return a->listeners[i].listener.port;
    return 0;
}

bool rp_acceptor_has_unix(const rp_acceptor *a)
{
    for (size_t i = 0; i < a->listener_count; i++)
        if (a->listeners[i].listener.fd_count > 0 &&
            rp_fd_is_unix_socket(a->listeners[i].listener.fds[0]))
            return true;
    return false;
}
