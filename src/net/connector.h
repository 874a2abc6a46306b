/* SPDX-License-Identifier: Apache-2.0 */
/* Connects a socket to an address without blocking. A host name is looked up on a separate
 * thread. Then the addresses of the name are tried in turn.
 *
 * Only the loop's thread may call these functions. */
#ifndef RP_NET_CONNECTOR_H
#define RP_NET_CONNECTOR_H

#include "net/address.h"
#include "net/loop.h"

typedef struct rp_lookup rp_lookup;

/* A connector makes one attempt at a time to connect. The owner embeds it in another struct,
 * zero-initialises it and sets the first three fields. */
typedef struct rp_connector rp_connector;
struct rp_connector {
    rp_loop *loop;
    const rp_address *address; /* borrowed */
    /* Called when the attempt has ended. On success `fd` is a descriptor, which the callee owns
     * and closes with rp_connector_close_fd(). On failure `fd` is -1, and `why` is the reason.
     * Never called from within rp_connector_start(). */
    void (*on_done)(rp_connector *connector, int fd, const char *why);
    /* private */
    enum { RP_CONNECTOR_IDLE, RP_CONNECTOR_BEGIN, RP_CONNECTOR_LOOKUP, RP_CONNECTOR_TRY } phase;
    rp_lookup *lookup; /* can outlive an attempt; the next attempt waits until the lookup has
                          ended */
    rp_endpoints endpoints;
    size_t next;    /* index of the next endpoint to try */
    rp_watch watch; /* watch.fd is the socket that is being connected; -1: none */
    rp_timer timer; /* due when the phase must end */
    int64_t until_ns;
    char why[160];
};

/* Starts an attempt that ends at `until_ns` (monotonic time) at the latest. The caller must not
 * call this while an attempt is running. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_connector_start(rp_connector *connector, int64_t until_ns);
/* Ends the attempt without calling on_done. A lookup that has begun continues, and its result
 * is dropped. */
void rp_connector_stop(rp_connector *connector);

/* Closes a descriptor that on_done has received. */
void rp_connector_close_fd(int fd);

#endif
