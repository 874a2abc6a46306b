/* SPDX-License-Identifier: Apache-2.0 */
/* A server: the tables of a store, on the network.
 *
 * It speaks Reverb's gRPC service, so that any Reverb client can use it, a service of its own
 * (proto/reprise/v1), gRPC health and reflection, and plain HTTP for /healthz, /metrics and
 * /v1/info, all on one port. It runs on threads of its own, one event loop each; every
 * connection stays on one of them.
 *
 * Nothing a peer sends can stop it or a table: what a peer can make grow has a limit below. A
 * peer that goes over one gets a status or loses its connection; nobody else notices. */
#ifndef REPRISE_SERVER_H
#define REPRISE_SERVER_H

#include "reprise/durable.h"
#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_server rp_server;

/* What peers may ask for. 0 stands for the default, which rp_server_limits_default() gives. */
typedef struct rp_server_limits {
    size_t connections;         /* open at once: 10,000 */
    size_t streams;             /* calls open at once on a connection: 1,024 */
    size_t message_bytes;       /* of one gRPC message: 64 MiB; at most half of queued_bytes */
    size_t chunk_bytes;         /* of one chunk as it travels: 32 MiB */
    size_t tensor_bytes;        /* of one chunk, decompressed: 256 MiB */
    size_t item_bytes;          /* of one item, decoded: 1 GiB */
    size_t columns;             /* of one item: 4,096 */
    size_t chunks;              /* of one item, each counted once: 262,144 */
    size_t slices;              /* of all items of a message: 1,048,576 */
    size_t items;               /* of one message: 262,144 */
    size_t keys;                /* of one message that updates, deletes or keeps: 262,144 */
    size_t distinct_samples;    /* of one Sample without repetition: 4,096 */
    size_t stream_pinned_bytes; /* memory of chunks that a stream holds and no item: 64 MiB */
    size_t connection_pinned_bytes; /* the same over all streams of a connection: 256 MiB */
    size_t pinned_bytes; /* the same over all connections, and inserts that wait: 10 % of the
                            memory */
    size_t stream_queued_bytes;     /* answers waiting for a slow reader: 2 MiB */
    size_t connection_queued_bytes; /* the same over all streams of a connection: 16 MiB */
    size_t queued_bytes;      /* messages and answers of all connections: 5 % of the memory */
    size_t shared_held_bytes; /* of chunks that a client of this host reads in place: 1 GiB;
                               * all of them together: four times as much */
    size_t header_bytes;      /* of a request's headers: 16 KiB */
    size_t header_fields;     /* 64 */
    size_t abuse_burst;       /* resets, pings, settings, empty frames in a row: 1,000 */
    size_t abuse_per_second;  /* of them that are forgiven: 33 */
    int64_t handshake_ms;     /* for TLS, preface and settings: 10,000 */
    int64_t stall_ms;         /* with answers pending and nothing read: 60,000 */
    int64_t message_grace_ms; /* before a message must come at 1 KiB/s: 30,000 */
    int64_t ping_ms;          /* silence before we ask whether a peer lives: 30,000 */
    int64_t ping_timeout_ms;  /* for the answer: 20,000 */
    size_t tables;            /* created over the wire and otherwise: 1,024 */
    int64_t checkpoint_spacing_ms; /* between checkpoints that are asked for, after a few in a
                                      row: 10,000 */
} rp_server_limits;

RP_API rp_server_limits rp_server_limits_default(void);

/* How to tell who may do what. Without any of it every peer is an administrator, and the server
 * binds to loopback addresses and Unix sockets only, unless `insecure` is set. Paths are read
 * at the start and again by rp_server_reload(). */
typedef struct rp_server_security {
    const char *certificate_file; /* PEM, the chain; NULL: no TLS */
    const char *key_file;         /* PEM */
    const char *client_ca_file;   /* PEM: client certificates are asked for and checked */
    bool require_client_certificate;
    const char *tokens_file; /* see docs/security.md: role, name, SHA-256 of a token per line */
    bool insecure;           /* any address, without credentials */
    bool reset_off;          /* refuse Reset to everybody */
    /* Names, separated by commas, under which pages over HTTP/1.1 may be asked for if there are
     * no credentials, besides IP addresses, names without a dot and those below "localhost". */
    const char *page_hosts;
} rp_server_security;

typedef enum rp_log_level {
    RP_LOG_ERROR = 0,
    RP_LOG_WARNING = 1,
    RP_LOG_INFO = 2,
    RP_LOG_DEBUG = 3,
} rp_log_level;

/* Where log lines go. `event` is a short name in lower case, `fields` a list of key=value with
 * values quoted where needed; both are valid during the call only. Called on any thread. */
typedef struct rp_log {
    void (*write)(void *ctx, rp_log_level level, const char *event, const char *fields);
    void *ctx;
} rp_log;

/* Zero-initialise it; everything has a default. */
typedef struct rp_server_options {
    const rp_allocator *alloc; /* NULL: the C library's. The struct is copied */
    /* Where to listen: "host:port" ("[::1]:8000", ":8000" for every address), "unix:/path", or
     * "fd:3" for a socket that listens already. None: "localhost:8000". Port 0 is any free
     * one. */
    const char *const *addresses;
    size_t address_count;
    size_t loops;            /* threads; 0: one per processor */
    rp_server_limits limits; /* zeros are defaults */
    rp_server_security security;
    rp_log log;        /* a NULL write: silence */
    bool moderate_off; /* never let a busy loop rest to gather small messages */
    /* A server that listens on a Unix socket, without TLS, keeps chunks of 32 KiB and more
     * where clients of this host can read them in place. */
    bool shared_memory_off;
    size_t shared_memory_bytes; /* at most; 0: half of the memory, at most 64 GiB */
    /* Of the store: Checkpoint has one written, and answers that tell of changes leave when
     * these are as safe as its mode promises. Borrowed: it must outlive the server. NULL: there
     * is none, and Checkpoint is an error; or rp_server_set_durable() will give it. */
    rp_durable *durable;
    /* The store is not there yet: listen and say so. The server starts as RP_HEALTH_LOADING and
     * does not touch the store until it is told to serve: calls get UNAVAILABLE. */
    bool loading;
    /* The process is there for this server, and what memory it has is the server's business: a
     * thread measures it and keeps it below what docs/operations.md says. Memory that is lost
     * between items then counts in the store's max_bytes (rp_store_info.lost_bytes). Not for a
     * program that has memory of its own: that would be taken for lost. */
    bool owns_process;
} rp_server_options;

/* Starts a server of `store`, which is borrowed and must outlive it. When it returns RP_OK
 * every address listens. RP_INVALID (an address, a limit, a file that is no certificate),
 * RP_PRECONDITION (an address that is not loopback without credentials), RP_UNAVAILABLE (an
 * address in use), RP_NOT_FOUND (a file), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_server_start(rp_store *store, const rp_server_options *options,
                                              rp_server **out, rp_error *err);

/* The port of the first TCP address, or 0 if there is none. */
RP_API int rp_server_port(const rp_server *server);

/* Gives a server that is loading the durability of its store, as in its options; once, before
 * it is told to serve. RP_PRECONDITION (it has one, or does not load), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_server_set_durable(rp_server *server, rp_durable *durable,
                                                    rp_error *err);

/* What /healthz says. A server starts as RP_HEALTH_SERVING unless it is loading, and is shown
 * as degraded as long as its durable is. */
typedef enum rp_health {
    RP_HEALTH_LOADING = 0,
    RP_HEALTH_SERVING = 1,
    RP_HEALTH_DEGRADED = 2, /* it serves, but something needs a person: `why` says what */
    RP_HEALTH_DRAINING = 3,
} rp_health;

RP_API void rp_server_set_health(rp_server *server, rp_health health, const char *why);

/* Reads certificates and tokens again and takes new limits, without touching open streams. On
 * failure everything is as before. Statuses as for rp_server_start(). */
RP_API RP_NODISCARD rp_status rp_server_reload(rp_server *server,
                                               const rp_server_limits *limits, rp_error *err);

/* Takes no new connections or calls, lets open ones finish for at most `grace_ms`, then ends
 * the rest with UNAVAILABLE. Returns when all are gone. The store is left as it is. */
RP_API void rp_server_drain(rp_server *server, int64_t grace_ms);

/* The first half of it, in as many parts as the caller likes: takes no new connections or
 * calls, and waits until the open ones are gone. RP_DEADLINE: some are left; wait again, or
 * free the server. `wait.cancel` is not looked at. */
RP_API RP_NODISCARD rp_status rp_server_drain_wait(rp_server *server, rp_wait wait);

/* Stops at once whatever still runs and frees the server. */
RP_API void rp_server_free(rp_server *server); /* NULL is fine */

RP_END_DECLS

#endif
