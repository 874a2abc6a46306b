/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: what clients of this host hold in the shared arena.
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
 * All numbers are little-endian. A client that is not let in, or has nothing to be let into, is
 * hung up on. A message on a Unix socket is in its receiver's queue when it has been sent: so a
 * client that reads an answer finds the parts that the answer needs without waiting for them.
 * Calls of SampleShared name the lease; each sample that has chunks in the arena is
 * then a hold of it, which keeps the trajectory. When the connection ends, for whatever reason,
 * so does the lease, with all of its holds: a client that dies leaves nothing behind. Calls
 * and other connections may come and go meanwhile, and what came on them stays held.
 *
 * A call may end with answers on their way whose holds the client will never hear of. So every
 * call has a number, its client's choice, and in the end the client says how many holds of it
 * have come: the others are let go. As this travels on another connection than the call, it may
 * come before the call does; the last few such numbers are remembered and refused.
 *
 * The server ends a lease by itself only once the arena is retired, so that what the client
 * still reads does not change.
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
    rp_loop_metrics *metrics; /* those that no loop owns */
    rp_mutex lock;
    rp_lease *first RP_GUARDED_BY(lock);
} rp_leases;

void rp_leases_init(rp_leases *leases, const rp_allocator *alloc, rp_loop_metrics *metrics);
void rp_leases_deinit(rp_leases *leases); /* there are none any more */

/* A new lease on `arena` with a random id, for the client behind `socket`. Borrows both until
 * the lease ends. NULL: no memory. Returns owned: end it. */
rp_lease *rp_lease_new(rp_leases *leases, const rp_shared_arena *arena, int socket);
/* Lets all holds go and drops the owner's reference. NULL is fine. */
void rp_lease_end(rp_lease *lease);
const uint8_t *rp_lease_id(const rp_lease *lease); /* borrowed */

/* The lease of that id, a reference, or NULL. */
rp_lease *rp_leases_find(rp_leases *leases, const void *id, size_t size);
void rp_lease_unref(rp_lease *lease); /* NULL is fine */

/* A call of that number, below 2^63. NULL: the lease has ended, the number is in use or over,
 * there are too many, or no memory. Returns owned: end it, before the lease is let go. */
rp_lease_call *rp_lease_begin_call(rp_lease *lease, uint64_t number);
void rp_lease_end_call(rp_lease *lease, rp_lease_call *call); /* NULL is fine */
/* The client has had `count` holds of it, and knows of no more. False: nonsense. */
bool rp_lease_close_call(rp_lease *lease, uint64_t number, uint64_t count);

/* Holds a trajectory, of which it takes a reference of its own, for `bytes` of its chunks, and
 * sends the client the parts of the arena that it does not have. 0: the lease or the call is
 * over, the lease would hold more than `limit` bytes or all leases four times as much, there is
 * no memory, or a part could not be sent without waiting. */
uint64_t rp_lease_hold(rp_lease *lease, rp_lease_call *call, rp_trajectory *trajectory,
                       size_t bytes, size_t limit);
/* Lets holds go. False if one of them is not held; the others are let go all the same. */
bool rp_lease_release(rp_lease *lease, const uint64_t *holds, size_t count);

size_t rp_lease_held_bytes(rp_lease *lease);

#endif
