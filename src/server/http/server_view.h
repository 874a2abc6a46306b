/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a server, its tables and its connections, from which the pages of the HTTP
 * server are made (page.h). */
#ifndef RP_SERVER_HTTP_SERVER_VIEW_H
#define RP_SERVER_HTTP_SERVER_VIEW_H

#include "reprise/server.h"
#include "server/metrics/clients.h"
#include "server/metrics/metrics.h"

enum {
    RP_VIEW_WAITING = 16, /* the most waiting calls of a table in a snapshot */
    RP_VIEW_WHY_BYTES = 256,
    RP_VIEW_CLIENTS = 1000, /* the most connections in a snapshot */
};

/* Copies of the connections, by descending id: the newest first. */
typedef struct rp_client_views {
    rp_client_view *views;
    size_t count; /* number of entries of `views` */
    size_t total; /* number of all connections */
    const rp_allocator *alloc;
} rp_client_views;

/* Copies the connections of `clients`. If `clients` is NULL, `views` is empty. On
 * RP_NO_RESOURCE there is nothing to deinitialise. */
RP_NODISCARD rp_status rp_client_views_take(rp_client_views *views, const rp_allocator *alloc,
                                            rp_clients *clients);
void rp_client_views_deinit(rp_client_views *views);
/* Returns the address of the client `id`; "this process" if `id` is 0; NULL if the client is
 * not in `views`. */
const char *rp_client_views_peer(const rp_client_views *views, uint64_t id);

/* The limits by name: X(field of rp_server_limits). */
#define RP_LIMITS(X)                                                                           \
    X(connections)                                                                             \
    X(streams)                                                                                 \
    X(calls)                                                                                   \
    X(message_bytes)                                                                           \
    X(chunk_bytes)                                                                             \
    X(tensor_bytes)                                                                            \
    X(item_bytes)                                                                              \
    X(columns)                                                                                 \
    X(chunks)                                                                                  \
    X(slices)                                                                                  \
    X(items)                                                                                   \
    X(keys)                                                                                    \
    X(distinct_samples)                                                                        \
    X(stream_pinned_bytes)                                                                     \
    X(connection_pinned_bytes)                                                                 \
    X(pinned_bytes)                                                                            \
    X(stream_queued_bytes)                                                                     \
    X(connection_queued_bytes)                                                                 \
    X(queued_bytes)                                                                            \
    X(shared_held_bytes)                                                                       \
    X(run_bytes)                                                                               \
    X(header_bytes)                                                                            \
    X(header_fields)                                                                           \
    X(abuse_burst)                                                                             \
    X(abuse_per_second)                                                                        \
    X(handshake_ms)                                                                            \
    X(stall_ms)                                                                                \
    X(message_grace_ms)                                                                        \
    X(ping_ms)                                                                                 \
    X(ping_timeout_ms)                                                                         \
    X(tables)                                                                                  \
    X(checkpoint_spacing_ms)

/* A snapshot of a server without its tables. */
typedef struct rp_server_view {
    const char *version; /* static */
    uint64_t page;       /* the number of the page that is being made */
    rp_health health;
    char why[RP_VIEW_WHY_BYTES]; /* the reason for `health`, or "" */
    int64_t uptime_ns;
    const char *const *addresses; /* the addresses on which it listens, as text */
    size_t address_count;
    bool tls, open;          /* whether it uses TLS; whether it requires no credentials */
    rp_server_limits limits; /* completed (bounds/limits.h) */
    size_t pinned_bytes;
    rp_metrics *metrics;
    const rp_client_views *clients; /* NULL: the addresses of clients are not known */
    rp_store *store;                /* NULL: the store is being loaded and must not be read */
    bool is_durable;
    rp_durable_info durable; /* zero if is_durable is false */
    rp_durable *handle;      /* borrowed from the server; NULL if is_durable is false */
    uint64_t disk_free_bytes, disk_total_bytes; /* UINT64_MAX: not known */
} rp_server_view;

/* A snapshot of a table and of the calls that wait for it. */
typedef struct rp_table_view {
    rp_table_info info;
    int64_t now_ns;        /* monotonic time of the snapshot */
    int64_t median_age_ns; /* median age of some randomly chosen items; -1: not known */
    size_t waiting_count;  /* number of calls that wait for the table */
    rp_waiting waiting[RP_VIEW_WAITING]; /* the first of these calls, described */
    uint64_t clients[RP_VIEW_WAITING];   /* ids of the clients that made them */
} rp_table_view;

void rp_table_view_take(rp_table_view *view, rp_table *table);

/* Returns the number of entries in `waiting`. */
size_t rp_table_view_described(const rp_table_view *view);

/* Snapshots of all tables, with references to the tables, so that their names and signatures
 * stay valid. */
typedef struct rp_table_views {
    rp_table_view *tables;
    rp_table **refs;
    size_t count, capacity;
    const rp_allocator *alloc;
} rp_table_views;

/* Takes a snapshot of all tables of `store`. If `store` is NULL, `views` is empty. On
 * RP_NO_RESOURCE there is nothing to deinitialise. */
RP_NODISCARD rp_status rp_table_views_take(rp_table_views *views, const rp_allocator *alloc,
                                           rp_store *store);
void rp_table_views_deinit(rp_table_views *views);

/* The number of bytes of a page that are reserved for text about other things than tables. */
enum { RP_PAGE_HEAD_BYTES = 256 << 10 };

/* Returns the most bytes of a page about `table_count` tables. Tables that do not fit are left
 * out. */
size_t rp_page_most_bytes(size_t table_count);

/* Returns "loading", "serving", "degraded" or "draining". The text is static. */
const char *rp_health_name(rp_health health);

#endif
