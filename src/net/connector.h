/* SPDX-License-Identifier: Apache-2.0 */
/* Connects a socket to an address, without blocking: a name is looked up on a thread of its
 * own, and the addresses of the name are tried one after the other.
 *
 * All functions belong to the loop's thread. */
#ifndef RP_NET_CONNECTOR_H
#define RP_NET_CONNECTOR_H

#include "net/address.h"
#include "net/loop.h"

typedef struct rp_lookup rp_lookup;

/* Embed it in another struct, zero-initialise it and set the first three fields. */
typedef struct rp_connector rp_connector;
struct rp_connector {
    rp_loop *loop;
    const rp_address *address; /* borrowed */
    /* The attempt has ended. `fd` is a descriptor, which the callee owns and closes with
     * rp_connector_close_fd(); or -1, and `why` is the reason. Never called from within
     * rp_connector_start(). */
    void (*on_done)(rp_connector *connector, int fd, const char *why);
    /* private */
    enum { RP_CONNECTOR_IDLE, RP_CONNECTOR_BEGIN, RP_CONNECTOR_LOOKUP, RP_CONNECTOR_TRY } phase;
    rp_lookup *lookup; /* may outlive an attempt; the next attempt waits for it */
    rp_endpoints endpoints;
    size_t next;    /* index of the next endpoint to try */
    rp_watch watch; /* watch.fd is being connected; -1: none */
    rp_timer timer; /* due when the phase has to end */
    int64_t until_ns;
    char why[160];
};

/* Starts an attempt that ends by `until_ns`. No attempt may be running. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_connector_start(rp_connector *connector, int64_t until_ns);
/* Ends the attempt without calling on_done. A lookup that has begun continues, and its result
 * is dropped. */
void rp_connector_stop(rp_connector *connector);

/* Closes a descriptor that on_done has returned. */
void rp_connector_close_fd(int fd);

#endif
