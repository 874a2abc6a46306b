/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a server's connections, for the pages and calls that show the connections to
 * users.
 *
 * Each connection has an rp_client. The connection's thread writes the rp_client, and other
 * threads read it. Its counters are relaxed atomics, since no other memory depends on them. So
 * counting is a load and a store. The lock of the list is taken when a connection begins, when
 * it ends, and for a listing.
 *
 * Invariant N1: an rp_client is in the list, once, from rp_clients_enter() to
 * rp_clients_leave(). `count` is the length of the list. */
#ifndef RP_SERVER_METRICS_CLIENTS_H
#define RP_SERVER_METRICS_CLIENTS_H

#include "server/metrics/metrics.h"
#include "util/mutex.h"

enum { RP_CLIENT_PEER_BYTES = 64 };

typedef enum rp_client_protocol {
    RP_CLIENT_NEW, /* its protocol is not known yet */
    RP_CLIENT_H2,
    RP_CLIENT_HTTP1,
    RP_CLIENT_LEASE, /* the client reads shared memory (shm/lease.h) */
} rp_client_protocol;

typedef struct rp_client {
    struct rp_client *prev, *next;   /* guarded by the lock of rp_clients */
    uint64_t id;                     /* unique for the life of the server; 0: not in the list */
    int64_t since_ns;                /* monotonic time of rp_clients_enter() */
    char peer[RP_CLIENT_PEER_BYTES]; /* address of the client, truncated to fit */
    atomic_int protocol;             /* rp_client_protocol */
    atomic_int role;                 /* rp_role of its last call */
    rp_counter calls, bytes_in, bytes_out;
} rp_client;

typedef struct rp_clients {
    rp_mutex lock; /* rank RP_RANK_CLIENTS; guards the next three fields */
    rp_client *first RP_GUARDED_BY(lock);
    size_t count RP_GUARDED_BY(lock);
    uint64_t last_id RP_GUARDED_BY(lock);
} rp_clients;

void rp_clients_init(rp_clients *clients);
void rp_clients_deinit(rp_clients *clients);

/* Adds a zero-initialised client to the list. Any thread may call it. */
void rp_clients_enter(rp_clients *clients, rp_client *client, const char *peer,
                      rp_client_protocol protocol, int64_t now_ns);
/* Removes a client, if it is in the list. */
void rp_clients_leave(rp_clients *clients, rp_client *client);

static inline void rp_client_set_protocol(rp_client *client, rp_client_protocol protocol)
{
    atomic_store_explicit(&client->protocol, (int)protocol, memory_order_relaxed);
}

/* Counts a call (RPC or plain HTTP request). `role` is the role of the call's credentials. */
static inline void rp_client_count_call(rp_client *client, rp_role role)
{
    atomic_store_explicit(&client->role, (int)role, memory_order_relaxed);
    rp_counter_add(&client->calls, 1);
}

/* A copy of the values of an rp_client. */
typedef struct rp_client_view {
    uint64_t id;
    int64_t since_ns;
    char peer[RP_CLIENT_PEER_BYTES];
    rp_client_protocol protocol;
    rp_role role;
    uint64_t calls, bytes_in, bytes_out;
} rp_client_view;

/* Copies up to `capacity` clients, the newest first. Returns the number of all clients. Any
 * thread may call it. */
size_t rp_clients_list(rp_clients *clients, rp_client_view *out, size_t capacity);

/* Returns the number of clients. Any thread may call it. */
size_t rp_clients_count(rp_clients *clients);

/* Returns "new", "HTTP/2", "HTTP/1.1" or "shared memory". The text is static. */
const char *rp_client_protocol_name(rp_client_protocol protocol);

#endif
