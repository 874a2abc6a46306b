/* SPDX-License-Identifier: Apache-2.0 */
/* A server makes the tables of a store available on the network.
 *
 * One port serves four things: Reverb's gRPC service, so that any client of Reverb (DeepMind's
 * dm-reverb) can use the server; reprise's own gRPC services (proto/reprise/v1); gRPC health
 * and reflection; and plain HTTP for /healthz, /metrics and /v1/info. The server runs on
 * threads of its own, each with one event loop. A connection stays on one thread.
 *
 * A peer is a program that connects to the server. It cannot exhaust the server's memory:
 * rp_server_limits has a limit for everything that a peer can make grow. A peer that exceeds a
 * limit gets an error status or loses its connection. Other peers are not affected. */
#ifndef REPRISE_SERVER_H
#define REPRISE_SERVER_H

#include "reprise/durable.h"
#include "reprise/store.h"

RP_BEGIN_DECLS

typedef struct rp_server rp_server;

/* Limits for peers. A comment names what is limited, and after the colon the default. A field
 * that is 0 has its default. A call is a gRPC call, which uses one HTTP/2 stream.
 * docs/limits.md explains how the limits work. */
typedef struct rp_server_limits {
    size_t connections; /* open connections on which the peer has made at least one call that
                           its credentials allow: 10,000. In addition, 64 connections without an
                           allowed call can be open */
    size_t streams;     /* open calls of one connection: 1,024 */
    size_t calls;       /* open calls of all connections: 65,536; 16 are always allowed to each
                           connection */
    size_t message_bytes; /* bytes of one gRPC message: 64 MiB. At least 4 KiB, and at most half
                             of queued_bytes */
    size_t chunk_bytes;   /* bytes of one chunk as it is sent: 32 MiB */
    size_t tensor_bytes;  /* bytes of one chunk, decompressed: 256 MiB */
    size_t item_bytes;    /* bytes of one item, decoded: 1 GiB */
    size_t columns;       /* columns of one item: 4,096 */
    size_t chunks;        /* different chunks of one item: 262,144 */
    size_t slices;        /* slices of all items of one message: 1,048,576 */
    size_t items;         /* items of one message: 262,144 */
    size_t keys; /* keys in one message (items to update or delete, chunks to keep): 262,144 */
    size_t distinct_samples;    /* items of one call of Sample with `distinct`: 4,096 */
    size_t stream_pinned_bytes; /* bytes of chunks that one insert stream keeps because later
                                   items can refer to them, and that no table holds: 64 MiB */
    size_t connection_pinned_bytes; /* the bytes that stream_pinned_bytes limits, summed over
                                       all streams of a connection: 256 MiB */
    size_t pinned_bytes; /* the same bytes of chunks, summed over all connections, plus waiting
                            inserts with their chunks, plus waiting calls and responses of
                            rollouts: 10 % of the machine's memory */
    size_t stream_queued_bytes; /* bytes of responses of a stream that wait until the peer reads
                                   them: 2 MiB */
    size_t connection_queued_bytes; /* the bytes that stream_queued_bytes limits, summed over
                                       all streams of a connection: 16 MiB */
    size_t queued_bytes;      /* bytes of messages and responses of all connections: 5 % of the
                                 machine's memory */
    size_t shared_held_bytes; /* bytes of chunks that one client of this host holds in shared
                                 memory to read them in place: 1 GiB. All clients of this host
                                 together can hold four times as much */
    size_t run_bytes;         /* bytes of all runs (reprise/runs.h) together: 64 MiB */
    size_t header_bytes;      /* bytes of the headers of a request: 16 KiB */
    size_t header_fields;     /* header fields of a request: 64 */
    size_t abuse_burst;       /* events such as resets, pings, settings and empty frames of a
                                 connection in a burst: 1,000 */
    size_t abuse_per_second;  /* rate at which the budget of abuse_burst refills, in events a
                                 second: 33 */
    int64_t handshake_ms;     /* time limit of each of three steps: the TLS handshake, the first
                                 frames, and a block of headers: 10,000 */
    int64_t stall_ms; /* longest time in which a peer reads nothing although responses to it
                         wait: 60,000 */
    int64_t message_grace_ms; /* time for which a message can arrive at less than 1 KiB/s:
                                 30,000 */
    int64_t ping_ms;          /* time without a byte from the peer, after which the server sends
                                 a ping: 30,000 */
    int64_t ping_timeout_ms;  /* how long the server waits for the acknowledgement of a ping:
                                 20,000 */
    size_t tables;            /* tables of the store: 1,024 */
    int64_t checkpoint_spacing_ms; /* least time between two checkpoints that peers request:
                                      10,000. The first six can follow each other without this
                                      pause */
} rp_server_limits;

RP_API rp_server_limits rp_server_limits_default(void);

/* Authentication and TLS. A server has credentials if tokens_file or client_ca_file is set. On
 * a server without credentials every peer has the role admin, and the server listens only on
 * loopback addresses and Unix sockets, unless `insecure` is set. rp_server_start() and
 * rp_server_reload() read the files. */
typedef struct rp_server_security {
    const char *certificate_file; /* PEM, the certificate chain; NULL: no TLS */
    const char *key_file;         /* PEM */
    const char *client_ca_file;   /* PEM: client certificates are requested and verified */
    bool require_client_certificate;
    const char *tokens_file; /* one token per line: its role, its name and its SHA-256
                                (docs/security.md) */
    bool insecure;           /* listen on any address, even without credentials */
    bool reset_off;          /* refuse the call Reset to all roles */
    /* Additional host names, separated by commas, under which a server without credentials
     * serves pages over HTTP/1.1. Under IP addresses, names without a dot and names below
     * "localhost" it always serves pages. */
    const char *page_hosts;
} rp_server_security;

typedef enum rp_log_level {
    RP_LOG_ERROR = 0,
    RP_LOG_WARNING = 1,
    RP_LOG_INFO = 2,
    RP_LOG_DEBUG = 3,
} rp_log_level;

/* Receives log lines. `event` is a short name in lower case. `fields` is a list of key=value,
 * with values quoted if necessary. Both texts are valid during the call only. Any thread can
 * make the call. */
typedef struct rp_log {
    void (*write)(void *ctx, rp_log_level level, const char *event, const char *fields);
    void *ctx;
} rp_log;

/* Zero-initialise it; all fields have a default. */
typedef struct rp_server_options {
    const rp_allocator *alloc; /* NULL: rp_allocator_default(). The struct is copied */
    /* Addresses to listen on: "host:port" ("[::1]:8000", ":8000" for every address),
     * "unix:/path", or "fd:3" for a listening socket. If there are no addresses, the server
     * listens on "localhost:8000". Port 0 means any free port. */
    const char *const *addresses;
    size_t address_count;
    size_t loops;            /* event loops, one thread each; 0: one per processor */
    rp_server_limits limits; /* 0 in a field: the default */
    rp_server_security security;
    rp_log log;        /* if log.write is NULL, there is no log */
    bool moderate_off; /* read each message at once: do not wait until several small messages
                          have arrived */
    /* Disables shared memory. By default, a server that listens on a Unix socket without TLS
     * keeps chunks of 32 KiB and more in shared memory, which clients on this host read in
     * place. */
    bool shared_memory_off;
    size_t shared_memory_bytes; /* the most shared memory; 0: half of the machine's memory, at
                                   most 64 GiB */
    /* The rp_durable of the store (durable.h). Borrowed: it must outlive the server. With an
     * rp_durable, the gRPC call Checkpoint writes a checkpoint, and the server confirms a
     * change when the change is as safe as the mode of the rp_durable promises. NULL:
     * Checkpoint is an error until rp_server_set_durable() sets an rp_durable. */
    rp_durable *durable;
    /* The store is still being loaded. The server starts as RP_HEALTH_LOADING. Until
     * rp_server_set_health() sets RP_HEALTH_SERVING, the server does not use the store, and
     * calls get UNAVAILABLE. */
    bool loading;
    /* The process runs only this server. If set, a thread measures the memory of the process
     * and keeps it below the bound in docs/operations.md. Memory that is lost to fragmentation
     * counts in the store's max_bytes (rp_store_info.lost_bytes). Do not set this option in a
     * program that uses memory for other purposes: that memory would count as lost. */
    bool owns_process;
} rp_server_options;

/* Starts a server for `store`, which is borrowed and must outlive the server. After RP_OK the
 * server listens on all addresses.
 * Errors: RP_INVALID (a wrong address or limit, or a file that is not a certificate),
 * RP_PRECONDITION (an address that is not local, without credentials), RP_UNAVAILABLE (an
 * address is in use), RP_NOT_FOUND (a file does not exist), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_server_start(rp_store *store, const rp_server_options *options,
                                              rp_server **out, rp_error *err);

/* Returns the port of the first TCP address, or 0 if there is none. */
RP_API int rp_server_port(const rp_server *server);

/* Sets the rp_durable of a server that is in the state RP_HEALTH_LOADING, like the option
 * `durable`. Must not be called twice for a server. Errors: RP_PRECONDITION (the server has an
 * rp_durable, or is not loading), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_server_set_durable(rp_server *server, rp_durable *durable,
                                                    rp_error *err);

/* The state that /healthz reports. A server starts as RP_HEALTH_SERVING, or as
 * RP_HEALTH_LOADING with the option `loading`. While the rp_durable of a serving server is
 * degraded, /healthz reports the server as degraded. */
typedef enum rp_health {
    RP_HEALTH_LOADING = 0,
    RP_HEALTH_SERVING = 1,
    RP_HEALTH_DEGRADED = 2, /* serves, but an operator must act; `why` has the reason */
    RP_HEALTH_DRAINING = 3,
} rp_health;

RP_API void rp_server_set_health(rp_server *server, rp_health health, const char *why);

/* Reads certificates and tokens again and sets new limits (NULL: keeps the old ones). Open
 * streams are not affected. If the call fails, nothing has changed. Errors: those of
 * rp_server_start(). */
RP_API RP_NODISCARD rp_status rp_server_reload(rp_server *server,
                                               const rp_server_limits *limits, rp_error *err);

/* Stops accepting connections and calls. Open calls have at most `grace_ms` to finish; after
 * this time the server ends them with UNAVAILABLE. Returns when all connections have ended. The
 * store is not changed. */
RP_API void rp_server_drain(rp_server *server, int64_t grace_ms);

/* Drains the server without ending open calls: stops accepting connections and calls, and waits
 * until all connections have ended. `*calls` (`calls` may be NULL) gets the number of calls
 * that are still open. `wait.cancel` is ignored. Errors: RP_DEADLINE (some connections have not
 * ended; the caller can then call again, or free the server). */
RP_API RP_NODISCARD rp_status rp_server_drain_wait(rp_server *server, rp_wait wait,
                                                   size_t *calls);

/* Ends all connections and threads at once, and frees the server. */
RP_API void rp_server_free(rp_server *server); /* NULL is fine */

RP_END_DECLS

#endif
