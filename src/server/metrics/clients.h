/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a server, for people who look at it.
 *
 * Each connection has an rp_client, which its own thread writes and the thread that makes the
 * pages reads. Its counters are relaxed atomics, as no other memory depends on them: counting
 * is a load and a store. The lock is acquired when a connection begins and ends, and for a
 * listing.
 *
 * Invariant N1: each rp_client between rp_clients_enter() and rp_clients_leave() is in the
 * list, once; `count` is the length of the list. */
#ifndef RP_SERVER_METRICS_CLIENTS_H
#define RP_SERVER_METRICS_CLIENTS_H

#include "server/metrics/metrics.h"
#include "util/mutex.h"

enum { RP_CLIENT_PEER_BYTES = 64 };

typedef enum rp_client_protocol {
    RP_CLIENT_NEW, /* it has sent nothing yet, or the TLS handshake is not complete */
    RP_CLIENT_H2,
    RP_CLIENT_HTTP1,
    RP_CLIENT_LEASE, /* it reads shared memory */
} rp_client_protocol;

typedef struct rp_client {
    struct rp_client *prev, *next;   /* guarded by the lock of the rp_clients */
    uint64_t id;                     /* never used again; 0: it is in no list */
    int64_t since_ns;                /* monotonic; constant, as the next field */
    char peer[RP_CLIENT_PEER_BYTES]; /* its address, perhaps cut */
    atomic_int protocol;             /* rp_client_protocol */
    atomic_int role;                 /* rp_role, of its last call */
    rp_counter calls, bytes_in, bytes_out;
} rp_client;

typedef struct rp_clients {
    rp_mutex lock; /* rank RP_RANK_CLIENTS; guards the next three */
    rp_client *first RP_GUARDED_BY(lock);
    size_t count RP_GUARDED_BY(lock);
    uint64_t last_id RP_GUARDED_BY(lock);
} rp_clients;

void rp_clients_init(rp_clients *clients);
void rp_clients_deinit(rp_clients *clients);

/* Adds a zero-initialised client. Any thread. */
void rp_clients_enter(rp_clients *clients, rp_client *client, const char *peer,
                      rp_client_protocol protocol, int64_t now_ns);
/* Removes a client, if it is in the list. */
void rp_clients_leave(rp_clients *clients, rp_client *client);

static inline void rp_client_set_protocol(rp_client *client, rp_client_protocol protocol)
{
    atomic_store_explicit(&client->protocol, (int)protocol, memory_order_relaxed);
}

/* Counts a call, with the role that its credentials have. */
static inline void rp_client_count_call(rp_client *client, rp_role role)
{
    atomic_store_explicit(&client->role, (int)role, memory_order_relaxed);
    rp_counter_add(&client->calls, 1);
}

/* A copy of a client. */
typedef struct rp_client_view {
    uint64_t id;
    int64_t since_ns;
    char peer[RP_CLIENT_PEER_BYTES];
    rp_client_protocol protocol;
    rp_role role;
    uint64_t calls, bytes_in, bytes_out;
} rp_client_view;

/* Copies up to `capacity` clients, the newest first. Returns the number of all clients. Any
 * thread. */
size_t rp_clients_list(rp_clients *clients, rp_client_view *out, size_t capacity);

/* The number of clients. Any thread. */
size_t rp_clients_count(rp_clients *clients);

/* "new", "HTTP/2", "HTTP/1.1", "shared memory". Static. */
const char *rp_client_protocol_name(rp_client_protocol protocol);

#endif
