/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a client shares with a server of the same host: the server's chunks, read where
 * they are. The server's side, and what is said, stand in server/shm/lease.h.
 *
 * A lease is a second connection to the server's Unix socket and mappings, which can only be
 * read, of the files that come over it. Samples hold places in the server's memory; when the
 * last chunk of a sample goes, on whatever thread, its hold is given back, many in one send.
 * The lease and its mapping live until the channel has another one, or none, and all holds are
 * gone: samples stay valid when streams end, connections break or the server is gone. Only an
 * exit of this process takes them from the server.
 *
 * In the child of a fork, samples of the parent are valid only as long as the parent keeps
 * them.
 *
 * What a server writes there is believed no more than what it sends: places are checked against
 * the files, the files cannot shrink, and chunks are checked as they are parsed and decoded. A
 * server that changes a chunk while it is read breaks its word, and can make us read wrong
 * numbers. */
#ifndef RP_CLIENT_CHANNEL_SHARED_MEMORY_H
#define RP_CLIENT_CHANNEL_SHARED_MEMORY_H

#include "net/address.h"
#include "net/loop.h"
#include "wire/sample_response_read.h"

enum { RP_LEASE_BYTES = 16 };

typedef struct rp_shared_lease rp_shared_lease;

rp_shared_lease *rp_shared_lease_ref(rp_shared_lease *lease);
void rp_shared_lease_unref(rp_shared_lease *lease); /* any thread; NULL is fine */
const uint8_t *rp_shared_lease_id(const rp_shared_lease *lease);
/* True if the server is not there any more, as far as we have noticed. */
bool rp_shared_lease_is_lost(rp_shared_lease *lease);

/* One call of SampleShared. Embed it; zero-initialise it. One thread. */
typedef struct rp_shared_call {
    rp_shared_source source; /* for the reader */
    rp_shared_lease *lease;  /* a reference; NULL: not begun */
    uint64_t number;
    uint64_t count; /* holds that have come */
    void *latest;   /* of them */
} rp_shared_call;

/* Takes a reference. */
void rp_shared_call_begin(rp_shared_call *call, rp_shared_lease *lease);
/* Tells the server that no more will be taken. Nothing if it has not begun. */
void rp_shared_call_end(rp_shared_call *call);

typedef enum rp_share_state {
    RP_SHARE_NONE,    /* nobody has asked yet */
    RP_SHARE_ASKING,  /* the server is being asked */
    RP_SHARE_READY,   /* there is a lease */
    RP_SHARE_REFUSED, /* there will be none */
} rp_share_state;

typedef struct rp_share_wait rp_share_wait;
struct rp_share_wait {
    void (*on_done)(rp_share_wait *wait); /* never from within a call below */
    rp_share_wait *prev, *next;           /* private */
    bool is_waiting;                      /* private */
};

/* Of a channel. Zero-initialise it and set the first group. */
typedef struct rp_share {
    const rp_allocator *alloc; /* borrowed, as are the next three */
    rp_loop *loop;
    const rp_address *address;
    const char *authorization; /* or NULL */
    /* private */
    rp_share_state state;
    rp_shared_lease *lease;
    rp_share_wait *waits;
    rp_watch watch;
    rp_timer timer; /* armed while it asks: how long that may take */
    size_t sent, size;
    uint8_t *greeting;
} rp_share;

/* The lease, a reference; or NULL, and `*later` says that wait->on_done will be called once it
 * is decided. */
rp_shared_lease *rp_share_get(rp_share *share, rp_share_wait *wait, bool *later);
/* The connection is a new one: a server that had refused is asked again. */
void rp_share_renew(rp_share *share);
/* Takes a wait back. Nothing if it does not wait. */
void rp_share_forget(rp_share *share, rp_share_wait *wait);
/* The server does not know this lease (NULL: there are no leases): another is asked for next
 * time, or none. */
void rp_share_lost(rp_share *share, const rp_shared_lease *lease);
void rp_share_deinit(rp_share *share); /* nobody waits */

#endif
