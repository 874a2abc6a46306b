/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory with a server on the same host: the client reads the chunks of samples
 * (serialised rows of columns, chunk/chunk_api.h) in the server's memory, without a copy. The
 * server's side and the protocol are in server/shm/lease.h.
 *
 * A lease consists of a second connection to the server's Unix socket, and of read-only
 * mappings of the files whose descriptors the server sends over this connection. A hold keeps
 * the server from reusing the range of its memory that contains the chunks of one sample. When
 * the last of these chunks is released, on any thread, the hold is returned to the server; many
 * holds are returned in one message. If a hold is not returned, the server reclaims the range
 * only when this process exits.
 *
 * The lease and its mappings live until the channel no longer uses the lease and all holds are
 * released. Samples therefore stay valid when streams end, connections break or the server
 * ends. In the child of a fork, samples of the parent are valid only as long as the parent
 * keeps them.
 *
 * The client checks the contents of shared memory like other data from a server. It compares
 * ranges with the sizes of the files, which cannot shrink, and checks chunks when it parses and
 * decodes them. If a server changes a chunk while the client reads it, the client can get wrong
 * numbers. */
#ifndef RP_CLIENT_CHANNEL_SHARED_MEMORY_H
#define RP_CLIENT_CHANNEL_SHARED_MEMORY_H

#include "net/address.h"
#include "net/loop.h"
#include "wire/sample_response_read.h"

enum { RP_LEASE_BYTES = 16 }; /* size of the id of a lease */

typedef struct rp_shared_lease rp_shared_lease;

/* Leases have reference counts. */
rp_shared_lease *rp_shared_lease_ref(rp_shared_lease *lease);
void rp_shared_lease_unref(rp_shared_lease *lease); /* any thread; NULL is fine */
const uint8_t *rp_shared_lease_id(const rp_shared_lease *lease);
/* Returns true if the connection of the lease is known to be broken. */
bool rp_shared_lease_is_lost(rp_shared_lease *lease);

/* A call of the server's method SampleShared. The caller embeds the struct and zero-initialises
 * it. Not thread-safe. */
typedef struct rp_shared_call {
    rp_shared_source source; /* argument for the reader of responses
                                (wire/sample_response_read.h) */
    rp_shared_lease *lease;  /* a reference; NULL: the call has not begun */
    uint64_t number;         /* number of the call among those of the lease, from 1 */
    uint64_t count;          /* number of holds received */
    void *latest;            /* the hold received last */
} rp_shared_call;

/* Begins a call. Takes a reference to the lease. */
void rp_shared_call_begin(rp_shared_call *call, rp_shared_lease *lease);
/* Reports to the server that the call accepts no more holds. Does nothing if the call has not
 * begun. */
void rp_shared_call_end(rp_shared_call *call);

typedef enum rp_share_state {
    RP_SHARE_NONE,    /* no lease has been requested */
    RP_SHARE_ASKING,  /* a request is in progress */
    RP_SHARE_READY,   /* there is a lease */
    RP_SHARE_REFUSED, /* the server has refused */
} rp_share_state;

/* A wait for a lease. */
typedef struct rp_share_wait rp_share_wait;
struct rp_share_wait {
    void (*on_done)(rp_share_wait *wait); /* never called from within the functions below */
    rp_share_wait *prev, *next;           /* private */
    bool is_waiting;                      /* private */
};

/* The lease of a channel. The owner zero-initialises the struct and sets the fields before
 * "private". All functions must be called on the loop thread. */
typedef struct rp_share {
    const rp_allocator *alloc; /* this and the next three are borrowed */
    rp_loop *loop;
    const rp_address *address;
    const char *authorization; /* value of the HTTP header; NULL: none */
    /* private */
    rp_share_state state;
    rp_shared_lease *lease;
    rp_share_wait *waits;
    rp_watch watch;
    rp_timer timer; /* armed while ASKING: the timeout of the request */
    size_t sent, size;
    uint8_t *greeting;
} rp_share;

/* Returns a reference to the lease, or NULL if there is none. If no lease has been requested,
 * starts a request. If a request is in progress, sets `*later` to true, and calls wait->on_done
 * when the request ends. */
rp_shared_lease *rp_share_get(rp_share *share, rp_share_wait *wait, bool *later);
/* Allows another request after a refusal. The channel calls this function when it has a new
 * connection. */
void rp_share_renew(rp_share *share);
/* Cancels `wait`, if it is waiting. */
void rp_share_forget(rp_share *share, rp_share_wait *wait);
/* Drops `lease`, because the server does not know it or because its connection is broken; the
 * next rp_share_get() requests another. If `lease` is NULL, the server does not support leases,
 * and no more requests are made until rp_share_renew(). */
void rp_share_lost(rp_share *share, const rp_shared_lease *lease);
void rp_share_deinit(rp_share *share); /* must not be called while a wait is in progress */

#endif
