/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections, on one loop, and hands each to a callback.
 *
 * Invariants:
 *   A1  listener_count <= RP_LISTENERS, and addresses[i] is the text of listeners[i];
 *   A2  while is_accepting, the watch of each descriptor is on the loop.
 *
 * Functions belong to the loop's thread unless they say otherwise. */
#ifndef RP_SERVER_CORE_ACCEPTOR_H
#define RP_SERVER_CORE_ACCEPTOR_H

#include "net/listener.h"
#include "net/loop.h"

enum { RP_LISTENERS = 16 };

typedef struct rp_acceptor rp_acceptor;

typedef struct rp_listener_watch {
    rp_watch watch;
    rp_acceptor *acceptor;
} rp_listener_watch;

typedef struct rp_acceptor_listener {
    rp_listener listener;
    rp_listener_watch watches[RP_LISTENER_MAX_FDS];
} rp_acceptor_listener;

typedef struct rp_acceptor_handler {
    /* A connection was accepted: takes its descriptor. `peer` is its address. */
    void (*on_connection)(rp_acceptor *acceptor, int fd, const char *peer);
    /* The process or the system has run out of descriptors or memory. Accepting continues
     * after a pause. */
    void (*on_exhausted)(rp_acceptor *acceptor);
    /* A listener could not be watched. */
    void (*on_failed)(rp_acceptor *acceptor, const rp_listener *listener);
} rp_acceptor_handler;

/* A zeroed acceptor has no listeners. */
struct rp_acceptor {
    rp_acceptor_listener listeners[RP_LISTENERS];
    size_t listener_count;
    const char *addresses[RP_LISTENERS];
    rp_loop *loop;
    const rp_acceptor_handler *handler;
    rp_post start, stop;
    rp_timer pause; /* armed while accepting pauses because descriptors have run out */
    bool is_accepting;
};

/* Adds a listener for an address. Call it before rp_acceptor_start(). RP_NO_RESOURCE (there are
 * RP_LISTENERS already), and the errors of rp_listener_open(). */
RP_NODISCARD rp_status rp_acceptor_listen(rp_acceptor *acceptor, const char *address,
                                          const rp_listener **out, rp_error *err);
/* Start and stop accepting, by a post to the loop. Any thread; call each at most once. Stopping
 * closes the listeners, so the system refuses peers that connect afterwards. */
void rp_acceptor_start(rp_acceptor *acceptor, rp_loop *loop,
                       const rp_acceptor_handler *handler);
void rp_acceptor_stop(rp_acceptor *acceptor);
/* Closes the listeners. Call it after the loop has ended. */
void rp_acceptor_deinit(rp_acceptor *acceptor);

/* The first TCP port that the acceptor listens on; 0: none. Any thread. */
int rp_acceptor_port(const rp_acceptor *acceptor);
/* Whether the acceptor listens on a Unix socket. Call it before rp_acceptor_stop(). */
bool rp_acceptor_has_unix(const rp_acceptor *acceptor);

#endif
