/* SPDX-License-Identifier: Apache-2.0 */
/* Carries bytes between two links, both ways, until the far one is through: what speaks to
 * plain sockets only can so be had under TLS. Everything happens on one loop's thread. */
#ifndef RP_SERVER_HTTP_RELAY_H
#define RP_SERVER_HTTP_RELAY_H

#include "net/link.h"
#include "net/loop.h"

typedef struct rp_relay rp_relay;

/* All relays of an owner. Zero-initialise it and fill in the first part. */
typedef struct rp_relays {
    rp_loop *loop;
    int64_t linger_ns; /* for the near one to take what is left, and to go, once the far one is
                          through */
    size_t most;       /* at once */

    rp_relay *first;
    size_t count;
} rp_relays;

/* Begins to carry. Takes both links in every case; their descriptors do not block. When the far
 * one has sent its last byte, the near one has it all and says its last byte too, or when it
 * breaks, both are closed. RP_NO_RESOURCE (memory, or one too many). */
RP_NODISCARD rp_status rp_relay_start(const rp_allocator *alloc, rp_relays *relays,
                                      rp_link *near, rp_link *far);

/* Ends them all. */
void rp_relays_deinit(rp_relays *relays);

#endif
