/* SPDX-License-Identifier: Apache-2.0 */
/* Leases. With a lease, a client of this host holds chunks in the shared arena
 * (util/shared_arena.h) and reads them there.
 *
 * A client opens a second connection to the Unix socket and keeps it open (lease_link.c). On
 * this connection the client and the server send:
 *
 *   client   once: "RSM1", u16 size of the next field, the value of its `authorization` header
 *   server   once: "RSM1", u32 version (2), u64 the bound of the arena's size, 16 bytes: the
 *            lease's id
 *   server   for each part of the arena: u64 size of the part, with a read-only descriptor of
 *            it (SCM_RIGHTS); before the first response that names an offset in that part
 *   client   for each hold that it no longer needs: u64 number of the hold
 *   client   for each call from which it reads no more: u64 2^63 + number of the call, u64
 *            count of its holds that have arrived
 *
 * All numbers are little-endian. If the client lacks the role that SampleShared needs, or the
 * server has no arena, the server closes the connection. A message on a Unix socket is in its
 * receiver's queue once it has been sent. So a client that reads a response finds the
 * descriptors that it needs without waiting.
 *
 * Calls of SampleShared name the lease. For each sample with chunks in the arena the server
 * adds a hold, which is a reference to the trajectory, to the lease. Holds outlive the calls
 * that made them. When the connection ends, the lease ends with all of its holds, so a client
 * that crashes leaves nothing behind.
 *
 * A call may end before the client has read all of its responses. So each call has a number,
 * chosen by the client, and at the end the client sends how many holds of the call have
 * arrived; the server releases the others. That message uses another connection than the call
 * and may arrive before it. So the last 64 numbers of calls that were closed before they began
 * are remembered, and these calls are refused.
 *
 * The server ends a lease itself only after the arena has stopped reusing freed blocks
 * (rp_shared_arena_retire()), so that bytes that a client still reads do not change.
 *
 * Invariants of a lease, whenever its lock is free:
 *   L1  `bytes` is the sum of the bytes of all holds;
 *   L2  each index below `capacity` is that of a hold or is in the list of free indexes;
 *   L3  the holds of an open call are in its list, the latest first;
 *   L4  call_count is the length of `calls`, and at most MAX_CALLS.
 *
 * Any thread may call these functions. The list of leases and each lease have a lock of rank
 * 77; no two are held together. */
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
 * Borrows both until the lease ends. NULL: no memory. The caller ends it with rp_lease_end().
 */
rp_lease *rp_lease_new(rp_leases *leases, const rp_shared_arena *arena, int socket);
/* Releases all holds and drops the owner's reference. NULL is fine. */
void rp_lease_end(rp_lease *lease);
const uint8_t *rp_lease_id(const rp_lease *lease); /* borrowed */

/* Finds the lease with that id. Returns a reference, or NULL. */
rp_lease *rp_leases_find(rp_leases *leases, const void *id, size_t size);
void rp_lease_unref(rp_lease *lease); /* NULL is fine */

/* Begins the call `number`, which is below 2^63. NULL: the lease has ended, the number is in
 * use or was closed, there are too many calls, or no memory. The caller ends the call before it
 * drops its reference to the lease. */
rp_lease_call *rp_lease_begin_call(rp_lease *lease, uint64_t number);
void rp_lease_end_call(rp_lease *lease, rp_lease_call *call); /* NULL is fine */
/* The client has received `count` holds of the call `number` and expects no more; releases the
 * others. False if the client violates the protocol: the call was closed before, had fewer
 * holds, or has not begun although `count` is not 0; or too many calls were closed before they
 * began. */
bool rp_lease_close_call(rp_lease *lease, uint64_t number, uint64_t count);

/* Adds a hold: a new reference to `trajectory`, for which `bytes` are counted. Sends the client
 * descriptors of the parts of the arena that it does not have. Returns the number of the hold.
 * Returns 0 if the lease or the call has ended, the lease would hold more than `limit` bytes,
 * all leases together would hold more than 4 * `limit`, there is no memory, or a descriptor
 * could not be sent without waiting. */
uint64_t rp_lease_hold(rp_lease *lease, rp_lease_call *call, rp_trajectory *trajectory,
                       size_t bytes, size_t limit);
/* Releases the holds with these numbers. If one does not exist, returns false, and releases the
 * others all the same. */
bool rp_lease_release(rp_lease *lease, const uint64_t *holds, size_t count);

size_t rp_lease_held_bytes(rp_lease *lease);

#endif
