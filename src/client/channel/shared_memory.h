/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory with a server of the same host: chunks are read in the server's memory, without
 * a copy. The server's side and the protocol are in server/shm/lease.h.
 *
 * A lease is a second connection to the server's Unix socket, and read-only mappings of the
 * files whose descriptors the server sends over it. A hold keeps the range of the server's
 * memory that has the chunks of one sample. When the last of these chunks is released, on any
 * thread, the hold is returned to the server; many holds are returned in one message. The lease
 * and its mappings live until the channel no longer uses the lease and all holds are released.
 * So samples stay valid when streams end, connections break or the server ends. If a hold is
 * not returned, the server reclaims the range only when this process exits.
 *
 * In the child of a fork, samples of the parent are valid only as long as the parent keeps
 * them.
 *
 * The memory is checked like any data from the server: ranges against the sizes of the files,
 * which cannot shrink, and chunks when they are parsed and decoded. A server that changes a
 * chunk while it is read can cause wrong numbers. */
#ifndef RP_CLIENT_CHANNEL_SHARED_MEMORY_H
#define RP_CLIENT_CHANNEL_SHARED_MEMORY_H

#include "net/address.h"
#include "net/loop.h"
#include "wire/sample_response_read.h"

enum { RP_LEASE_BYTES = 16 }; /* of the id of a lease */

typedef struct rp_shared_lease rp_shared_lease;

rp_shared_lease *rp_shared_lease_ref(rp_shared_lease *lease);
void rp_shared_lease_unref(rp_shared_lease *lease); /* any thread; NULL is fine */
const uint8_t *rp_shared_lease_id(const rp_shared_lease *lease);
/* Returns true if the connection of the lease is known to be broken. */
bool rp_shared_lease_is_lost(rp_shared_lease *lease);

/* A call of SampleShared. Embed it and zero-initialise it. One thread. */
typedef struct rp_shared_call {
    rp_shared_source source; /* for the reader */
    rp_shared_lease *lease;  /* a reference; NULL: not begun */
    uint64_t number;         /* of the call among those of the lease, from 1 */
    uint64_t count;          /* holds received */
    void *latest;            /* the last hold */
} rp_shared_call;

/* Begins a call. Takes a reference to the lease. */
void rp_shared_call_begin(rp_shared_call *call, rp_shared_lease *lease);
/* Tells the server that the call takes no more holds. Does nothing if it has not begun. */
void rp_shared_call_end(rp_shared_call *call);

typedef enum rp_share_state {
    RP_SHARE_NONE,    /* no lease was requested yet */
    RP_SHARE_ASKING,  /* a request is in progress */
    RP_SHARE_READY,   /* there is a lease */
    RP_SHARE_REFUSED, /* the server has refused */
} rp_share_state;

typedef struct rp_share_wait rp_share_wait;
struct rp_share_wait {
    void (*on_done)(rp_share_wait *wait); /* never called from within a function below */
    rp_share_wait *prev, *next;           /* private */
    bool is_waiting;                      /* private */
};

/* The lease of a channel. Zero-initialise it and set the four fields before "private". Loop
 * thread. */
typedef struct rp_share {
    const rp_allocator *alloc; /* borrowed, as are the next three fields */
    rp_loop *loop;
    const rp_address *address;
    const char *authorization; /* or NULL */
    /* private */
    rp_share_state state;
    rp_shared_lease *lease;
    rp_share_wait *waits;
    rp_watch watch;
    rp_timer timer; /* armed while ASKING: the timeout of the request */
    size_t sent, size;
    uint8_t *greeting;
} rp_share;

/* Returns a reference to the lease, or NULL if there is none. Starts a request for a lease if
 * none was requested yet. While a request is in progress, sets `*later`: then wait->on_done is
 * called when the request ends. */
rp_shared_lease *rp_share_get(rp_share *share, rp_share_wait *wait, bool *later);
/* Allows another request after a refusal. Call it when the channel has a new connection. */
void rp_share_renew(rp_share *share);
/* Cancels `wait`. Does nothing if it is not waiting. */
void rp_share_forget(rp_share *share, rp_share_wait *wait);
/* Drops a lease that the server does not know: the next rp_share_get() requests another one. A
 * `lease` of NULL means that the server does not support leases: none is requested any more. */
void rp_share_lost(rp_share *share, const rp_shared_lease *lease);
void rp_share_deinit(rp_share *share); /* no wait may be left */

#endif
