/* SPDX-License-Identifier: Apache-2.0 */
/* Acceptor: listens on the addresses of a server, accepts connections on one event loop, and
 * passes each connection to a callback.
 *
 * Invariants:
 *   A1  listener_count <= RP_LISTENERS, and addresses[i] is the address of listeners[i] as
 *       text;
 *   A2  while is_accepting is true, the loop watches the descriptors of all listeners.
 *
 * A function must be called on the loop's thread unless its comment says otherwise. */
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
    /* Called for each accepted connection. Takes ownership of the descriptor `fd`. `peer` is
     * the peer's address. */
    void (*on_connection)(rp_acceptor *acceptor, int fd, const char *peer);
    /* Called when the process or the system has run out of descriptors or memory. The acceptor
     * stops accepting for a short time and then continues. */
    void (*on_exhausted)(rp_acceptor *acceptor);
    /* Called for each descriptor of a listener that the loop could not watch. */
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
    rp_timer pause; /* armed while the acceptor pauses after on_exhausted */
    bool is_accepting;
};

/* Adds a listener for an address. `*out` receives the listener, which the acceptor owns. The
 * caller must add all listeners before rp_acceptor_start(), and at most RP_LISTENERS. The
 * errors are the same as for rp_listener_open(). */
RP_NODISCARD rp_status rp_acceptor_listen(rp_acceptor *acceptor, const char *address,
                                          const rp_listener **out, rp_error *err);
/* Each of these two functions posts to the loop, which then starts or stops accepting. Both may
 * be called on any thread, each at most once. Stopping closes the listeners: the system refuses
 * peers that connect afterwards. */
void rp_acceptor_start(rp_acceptor *acceptor, rp_loop *loop,
                       const rp_acceptor_handler *handler);
void rp_acceptor_stop(rp_acceptor *acceptor);
/* Closes the listeners. Must be called after the loop has ended. */
void rp_acceptor_deinit(rp_acceptor *acceptor);

/* Returns the port of the first TCP listener, or 0 if there is none. May be called on any
 * thread. */
int rp_acceptor_port(const rp_acceptor *acceptor);
/* Returns whether the acceptor listens on a Unix socket. Must be called before
 * rp_acceptor_stop(). */
bool rp_acceptor_has_unix(const rp_acceptor *acceptor);

#endif
