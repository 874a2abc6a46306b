/* SPDX-License-Identifier: Apache-2.0 */
/* A relay copies bytes between two links, both ways, until the far one has ended. It lets a
 * plain-socket server be reached over TLS: the near link is the TLS peer, the far link the
 * server. All functions belong to the loop's thread.
 *
 * Invariants:
 *   R1  each relay is in relays->first once; count is the length of that list, and <= most;
 *   R2  start <= end <= WAY_BYTES in each buffer;
 *   R3  a way reads only while its buffer is empty. */
#ifndef RP_SERVER_HTTP_RELAY_H
#define RP_SERVER_HTTP_RELAY_H

#include "net/link.h"
#include "net/loop.h"

typedef struct rp_relay rp_relay;

/* All relays of an owner. Zero-initialise it and fill in the first part. */
typedef struct rp_relays {
    rp_loop *loop;
    int64_t linger_ns; /* after the far link has ended: time for the near one to read the rest
                          and to close */
    size_t most;       /* at once */

    rp_relay *first;
    size_t count;
} rp_relays;

/* Starts a relay. Takes both links in every case; their descriptors must not block. Both are
 * closed when the far link has ended and the near one has read everything and ended too, or
 * when one breaks. RP_NO_RESOURCE (memory, or `most` reached). */
RP_NODISCARD rp_status rp_relay_start(const rp_allocator *alloc, rp_relays *relays,
                                      rp_link *near, rp_link *far);

/* Closes all relays. */
void rp_relays_deinit(rp_relays *relays);

#endif
