/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: clients of this host hold chunks in the shared arena, and read them there.
 *
 * A client opens a second connection to the Unix socket and keeps it (lease_link.c):
 *
 *   client   "RSM1"  u16 bytes of what follows  what it would send as `authorization`
 *   server   "RSM1"  u32 version (2)  u64 bytes of the reserve  16 bytes: the lease's id
 *   server   u64 bytes of the arena's next part, with a descriptor of it (SCM_RIGHTS) that can
 *            only be read; before the first answer that names an offset in that part
 *   client   u64 hold, as often as it needs one no more
 *            u64 2^63 + call  u64 count, once the call is over for it
 *
 * All numbers are little-endian. If the client lacks the role, or the server has no arena, the
 * server closes the connection. A message on a Unix socket is in its receiver's queue once it
 * has been sent: so a client that reads a response finds the parts that it needs without
 * waiting.
 *
 * Calls of SampleShared name the lease. Each sample with chunks in the arena is a hold of the
 * lease, which keeps the trajectory. When the connection ends, the lease ends with all of its
 * holds, so a client that crashes leaves nothing behind. Holds outlive the calls that made
 * them.
 *
 * A call may end before the client has read all of its responses. So each call has a number,
 * chosen by the client, and at the end the client sends how many holds of it have arrived: the
 * others are released. That message uses another connection than the call and may arrive before
 * the call; the last few such numbers are remembered, and their calls refused.
 *
 * The server ends a lease itself only after the arena was retired, so that bytes that a client
 * still reads do not change.
 *
 * Invariants of a lease, whenever its lock is free:
 *   L1  `bytes` is the sum of the bytes of all holds;
 *   L2  each index below `capacity` is a hold or in the list of free ones;
 *   L3  the holds of an open call are in its list, in descending order of their ordinals;
 *   L4  call_count is the length of `calls`, and at most MAX_CALLS.
 *
 * Any thread. Locks: the list's and each lease's, both rank 77, never held together. */
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

/* A new lease on `arena` with a random id, for the client behind `socket`. Borrows both until
 * the lease ends. NULL: no memory. Returns owned: end it. */
rp_lease *rp_lease_new(rp_leases *leases, const rp_shared_arena *arena, int socket);
/* Releases all holds and drops the owner's reference. NULL is fine. */
void rp_lease_end(rp_lease *lease);
const uint8_t *rp_lease_id(const rp_lease *lease); /* borrowed */

/* The lease of that id, a reference, or NULL. */
rp_lease *rp_leases_find(rp_leases *leases, const void *id, size_t size);
void rp_lease_unref(rp_lease *lease); /* NULL is fine */

/* Begins a call of that number, below 2^63. NULL: the lease has ended, the number is in use or
 * was closed, there are too many calls, or no memory. Returns owned: end it before the
 * reference to the lease is dropped. */
rp_lease_call *rp_lease_begin_call(rp_lease *lease, uint64_t number);
void rp_lease_end_call(rp_lease *lease, rp_lease_call *call); /* NULL is fine */
/* The client has received `count` holds of the call, and expects no more. False: that cannot be
 * right. */
bool rp_lease_close_call(rp_lease *lease, uint64_t number, uint64_t count);

/* Holds a trajectory, with a reference of its own, and counts `bytes` for it. Sends the client
 * the parts of the arena that it does not have. Returns the hold; 0: the lease or the call has
 * ended, the lease would hold more than `limit` bytes or all leases four times as much, there
 * is no memory, or a part could not be sent without waiting. */
uint64_t rp_lease_hold(rp_lease *lease, rp_lease_call *call, rp_trajectory *trajectory,
                       size_t bytes, size_t limit);
/* Releases holds. False if one of them is not held; the others are released all the same. */
bool rp_lease_release(rp_lease *lease, const uint64_t *holds, size_t count);

size_t rp_lease_held_bytes(rp_lease *lease);

#endif
