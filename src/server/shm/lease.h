/* SPDX-License-Identifier: Apache-2.0 */
/* Leases let a client on the server's host read samples in shared memory. The server's chunks
 * (encoded columns of steps) lie in an arena, a pool of shared memory (util/shared_arena.h).
 * With a lease, the client maps the arena, and the server keeps chunks in it for the client.
 *
 * A client opens a second connection to the Unix socket and keeps it open (lease_link.c). On
 * this connection the client and the server send:
 *
 *   client   once: "RSM1", u16 size of the next field, the value of its `authorization` header
 *   server   once: "RSM1", u32 version (2), u64 upper bound of the arena's size, 16 bytes: the
 *            lease's id
 *   server   for each part of the arena: u64 size of the part, with a read-only descriptor of
 *            it (SCM_RIGHTS); before the first response that names an offset in that part
 *   client   for each hold that it no longer needs: u64 number of the hold
 *   client   for each call from which it will read nothing more: u64 2^63 + number of the call
 *            (numbers of holds are below 2^63), u64 how many holds of this call the client has
 *            received
 *
 * All numbers are little-endian. If the client lacks the role that SampleShared needs, or the
 * server has no arena, the server closes the connection. A message on a Unix socket is in the
 * receiver's queue as soon as it has been sent. So a client that has read a response finds the
 * descriptors that it needs without waiting.
 *
 * A call of SampleShared names the lease. For each sample with chunks in the arena, the server
 * adds a hold to the lease: a reference to the sample's trajectory. Holds outlive the calls
 * that made them. When the lease's connection ends, the lease ends and its holds are released,
 * even if the client crashed.
 *
 * A call can end before the client has read all of its responses. So the client chooses a
 * number for each call. At the end of the call, the client sends this number and the number of
 * holds of the call that it has received. The server then releases the other holds of the call.
 * The number is sent on another connection than the call, and can arrive before the call
 * begins. So the server remembers the last 64 numbers of calls that were closed before they
 * began, and refuses these calls.
 *
 * When the server shuts down, it ends all leases. Before that, it stops the arena from reusing
 * freed blocks, for good (rp_shared_arena_retire()). So bytes that clients still read do not
 * change.
 *
 * Invariants of a lease, whenever its lock is free:
 *   L1  `bytes` is the sum of the bytes of all holds;
 *   L2  the lease has an array of holds. The number of a hold is its index in the array plus 1.
 *       Each entry of the array without a hold is in the list of free entries;
 *   L3  the holds of an open call are in the call's list, the latest first;
 *   L4  call_count is the length of `calls`, and at most MAX_CALLS.
 *
 * Any thread may call these functions. The list of leases and each lease have a lock of rank
 * RP_RANK_LEASE (util/mutex.h). No thread holds two of these locks. */
#ifndef RP_SERVER_SHM_LEASE_H
#define RP_SERVER_SHM_LEASE_H

#include "reprise/trajectory.h"
#include "server/metrics/metrics.h"
#include "util/mutex.h"
#include "util/refcount.h"
#include "util/shared_arena.h"

#define RP_LEASE_MAGIC "RSM1"

enum {
    RP_LEASE_MAGIC_BYTES = 4,
    RP_LEASE_VERSION = 2,
    RP_LEASE_ID_BYTES = 16,
    RP_LEASE_GREETING_BYTES = 32,
    RP_LEASE_PART_BYTES = 8,
};

typedef struct rp_lease rp_lease;
typedef struct rp_lease_call rp_lease_call;

typedef struct rp_leases {
    rp_allocator alloc;
    rp_loop_metrics *metrics; /* rp_metrics_shared() */
    rp_mutex lock;
    rp_lease *first RP_GUARDED_BY(lock);
} rp_leases;

void rp_leases_init(rp_leases *leases, const rp_allocator *alloc, rp_loop_metrics *metrics);
void rp_leases_deinit(rp_leases *leases); /* all leases must have ended */

/* Makes a lease on `arena` with a random id, for the client at the other end of `socket`.
 * Borrows both until the lease ends. Returns NULL if there is no memory. The caller must end
 * the lease with rp_lease_end(). */
rp_lease *rp_lease_new(rp_leases *leases, const rp_shared_arena *arena, int socket);
/* Ends the lease: releases all of its holds and drops the owner's reference. NULL is fine. */
void rp_lease_end(rp_lease *lease);
const uint8_t *rp_lease_id(const rp_lease *lease); /* borrowed */

/* Finds the lease whose id is the `size` bytes at `id`. Returns a reference, or NULL if there
 * is none. */
rp_lease *rp_leases_find(rp_leases *leases, const void *id, size_t size);
void rp_lease_unref(rp_lease *lease); /* NULL is fine */

/* Begins the call with the number `number`, which is below 2^63. Returns NULL if the lease has
 * ended, an open call has this number, a call with this number was closed before it began, the
 * lease has too many calls, or there is no memory. The caller must end the call before it drops
 * its reference to the lease. */
rp_lease_call *rp_lease_begin_call(rp_lease *lease, uint64_t number);
void rp_lease_end_call(rp_lease *lease, rp_lease_call *call); /* NULL is fine */
/* Must be called when the client has sent the number of a call and its count of holds. Keeps
 * the first `count` holds of the call, which the client has received, releases its other holds,
 * and allows no more holds for the call. Returns false if the client violates the protocol: the
 * call was closed before; the call had fewer than `count` holds; the call has not begun, and
 * `count` is not 0; or too many calls were closed before they began. */
bool rp_lease_close_call(rp_lease *lease, uint64_t number, uint64_t count);

/* Adds a hold: a new reference to `trajectory`, which counts as `bytes`. Sends the client the
 * descriptors of the parts of the arena that it does not have yet. Returns the number of the
 * hold. Returns 0, without making a hold, in these cases: the lease has ended; the client has
 * closed the call; the lease would hold more than `limit` bytes, or all leases together more
 * than 4 * `limit`; there is no memory; a descriptor could not be sent without waiting. */
uint64_t rp_lease_hold(rp_lease *lease, rp_lease_call *call, rp_trajectory *trajectory,
                       size_t bytes, size_t limit);
/* Releases the holds with these numbers. If a hold does not exist, still releases the others
 * and returns false. */
bool rp_lease_release(rp_lease *lease, const uint64_t *holds, size_t count);

size_t rp_lease_held_bytes(rp_lease *lease);

#endif
