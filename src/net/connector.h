/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to a connected socket, without blocking: names are looked up on a thread of
 * their own, addresses are tried one after the other.
 *
 * Belongs to the thread of its loop. */
#ifndef RP_NET_CONNECTOR_H
#define RP_NET_CONNECTOR_H

#include "net/address.h"
#include "net/loop.h"

typedef struct rp_lookup rp_lookup;

/* Embed it; zero-initialise it and set the first group. */
typedef struct rp_connector rp_connector;
struct rp_connector {
    rp_loop *loop;
    const rp_address *address; /* borrowed */
    /* The attempt is over: a descriptor, set up for us and the receiver's now (see
     * rp_connector_close_fd()), or -1 and why. Never called from within start. */
    void (*on_done)(rp_connector *connector, int fd, const char *why);
    /* private */
    enum { RP_CONNECTOR_IDLE, RP_CONNECTOR_BEGIN, RP_CONNECTOR_LOOKUP, RP_CONNECTOR_TRY } phase;
    rp_lookup *lookup; /* may outlast an attempt; the next one waits for it */
    rp_endpoints endpoints;
    size_t next;    /* endpoint to be tried */
    rp_watch watch; /* its fd is that being connected; -1: none */
    rp_timer timer; /* the end of the phase */
    int64_t until_ns;
    char why[160];
};

/* Begins an attempt that is over by `until_ns`. Not while one runs. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_connector_start(rp_connector *connector, int64_t until_ns);
/* Ends it, without on_done. A lookup that has begun goes on by itself and is forgotten. */
void rp_connector_stop(rp_connector *connector);

/* Closes a descriptor that came from here. */
void rp_connector_close_fd(int fd);

#endif
