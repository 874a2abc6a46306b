/* SPDX-License-Identifier: Apache-2.0 */
/* A relay copies bytes between two links (sockets, with or without TLS) in both directions,
 * until the far link has ended. With a relay, a peer can reach a server for plain sockets over
 * TLS: the near link leads to the TLS peer, the far link to the server. All functions must be
 * called on the loop's thread.
 *
 * Invariants:
 *   R1  each relay is in the list relays->first once. `count` is the length of the list, and <=
 *       most;
 *   R2  each direction (way) of a relay has a buffer, in which start <= end <= WAY_BYTES;
 *   R3  a way reads only while its buffer is empty. */
#ifndef RP_SERVER_HTTP_RELAY_H
#define RP_SERVER_HTTP_RELAY_H

#include "net/link.h"
#include "net/loop.h"

typedef struct rp_relay rp_relay;

/* All relays of an owner. Zero-initialise it and set the first three fields. */
typedef struct rp_relays {
    rp_loop *loop;
    int64_t linger_ns; /* after the far link has ended, the near peer must read the rest and
                          close its side within this time */
    size_t most;       /* bound of `count` */

    rp_relay *first;
    size_t count;
} rp_relays;

/* Starts a relay. Takes ownership of both links in every case. Their descriptors must be
 * non-blocking. The relay closes both links in each of these cases: a link breaks; the far link
 * has ended, and the near peer has read everything and ended its side; linger_ns is over.
 * Errors: RP_NO_RESOURCE (memory, or `most` reached). */
RP_NODISCARD rp_status rp_relay_start(const rp_allocator *alloc, rp_relays *relays,
                                      rp_link *near, rp_link *far);

/* Starts a relay from `near` to one end of a new socket pair. Returns the descriptor of the
 * other end, which the caller owns, or -1 on failure. On failure `near` can still be open. */
RP_NODISCARD int rp_relay_to_pair(const rp_allocator *alloc, rp_relays *relays, rp_link *near);

/* Closes all relays. */
void rp_relays_deinit(rp_relays *relays);

#endif
