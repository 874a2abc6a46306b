/* SPDX-License-Identifier: Apache-2.0 */
/* A relay copies bytes between two links, in both directions, until the far link has ended. It
 * lets a plain-socket server be reached over TLS: the near link leads to the TLS peer, the far
 * link to the server. All functions belong to the loop's thread.
 *
 * Invariants:
 *   R1  each relay is in relays->first once; count is the length of that list, and <= most;
 *   R2  start <= end <= WAY_BYTES in each buffer; there is one for each direction (way);
 *   R3  a way reads only while its buffer is empty. */
#ifndef RP_SERVER_HTTP_RELAY_H
#define RP_SERVER_HTTP_RELAY_H

#include "net/link.h"
#include "net/loop.h"

typedef struct rp_relay rp_relay;

/* All relays of an owner. Zero-initialise it and set the first three fields. */
typedef struct rp_relays {
    rp_loop *loop;
    int64_t linger_ns; /* time that the near peer has, after the far link has ended, to read the
                          rest and to close */
    size_t most;       /* bound of `count` */

    rp_relay *first;
    size_t count;
} rp_relays;

/* Starts a relay. Takes both links in every case; their descriptors must be non-blocking. Both
 * are closed when the far link has ended, and the near peer has read everything and ended its
 * side too; or when one of them breaks. RP_NO_RESOURCE (memory, or `most` reached). */
RP_NODISCARD rp_status rp_relay_start(const rp_allocator *alloc, rp_relays *relays,
                                      rp_link *near, rp_link *far);

/* Starts a relay to one end of a new socket pair. Returns the descriptor of the other end,
 * owned; or -1, and then `near` may still be open. */
RP_NODISCARD int rp_relay_to_pair(const rp_allocator *alloc, rp_relays *relays, rp_link *near);

/* Closes all relays. */
void rp_relays_deinit(rp_relays *relays);

#endif
