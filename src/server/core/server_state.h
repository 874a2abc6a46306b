/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a server and of its workers, shared by the units of core/ and rpc/.
 *
 * A unit is a header with its .c file. Each unit of core/ includes only units above it in this
 * list:
 *
 *   read_moderation, queue_budget, drawn, safety, closing, handshakes, acceptor, memory_guard,
 *   checkpoint_queue   units that use neither the fields of rp_server nor a connection
 *   server_state       this header: the structs, and access to fields that the server's lock
 *                      guards
 *   connection_state   the struct of a connection, its count of refusals, and whether it has
 *                      had an accepted call
 *   connection_room    how many queued bytes a connection may add
 *   connection_watch   decides whether a peer is too slow, and when to check again
 *   task               a call and its responses
 *   journal_room       makes changes wait while the backlog of the journal is at its bound
 *   pinned             limits on chunks and inserts that are in no table
 *   served_table       a table with its metrics
 *   deferral           spreads calls with much work over turns of the loop
 *   page_response      pages over HTTP/2
 *   calls              makes a task of each HTTP/2 request, by its method
 *   lease_link         a connection that holds a lease on shared memory
 *   connection         a socket from its first byte to its last
 *   worker             a thread with an event loop and its connections
 *   dispatch           assigns accepted connections to workers
 *   server             starts and stops everything
 *
 * The methods are implemented in rpc/, which also defines rp_task_kinds (task.h) and
 * rp_worker_free_pools (below).
 *
 * Threads: a connection and all of its tasks belong to one worker's thread. All threads share
 * the tables, the gate (auth/gate.h), the metrics, and the atomics of rp_server. Operations of
 * tables, the journal and checkpoints complete on other threads, which post to the worker's
 * loop.
 *
 * Invariants:
 *   V1  server->connection_count is the sum of the workers' connection_count;
 *   V2  is_loaded changes once, from false to true. safety.durable does not change afterwards;
 *   V3  only the worker's thread uses the lists of a worker (connections, dirty, idle_*, open);
 *   V4  a worker's loop stops only when `outstanding` is 0: each operation of a table that was
 *       started for the worker has completed, and each page that the worker has requested has
 *       arrived;
 *   V5  server->accepted_count is the number of connections whose is_accepted is set. */
#ifndef RP_SERVER_CORE_SERVER_STATE_H
#define RP_SERVER_CORE_SERVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/loop.h"
#include "net/tls.h"
#include "reprise/server.h"
#include "server/auth/gate.h"
#include "server/bounds/item_room.h"
#include "server/bounds/newcomers.h"
#include "server/bounds/rollout_waits.h"
#include "server/core/acceptor.h"
#include "server/core/checkpoint_queue.h"
#include "server/core/closing.h"
#include "server/core/handshakes.h"
#include "server/core/memory_guard.h"
#include "server/core/queue_budget.h"
#include "server/core/safety.h"
#include "server/http/http_page.h"
#include "server/metrics/clients.h"
#include "server/metrics/metrics.h"
#include "server/shm/lease.h"
#include "store/store.h"
#include "table/op.h"
#include "util/mutex.h"
#include "util/shared_arena.h"
#include "wire/h2/h2.h"

enum {
    RP_READ_BYTES = 256 << 10,    /* size of the worker's read buffer */
    RP_READ_TURN_BYTES = 4 << 20, /* bound on the cost of all reads in one turn */
    RP_READ_EVENT_BYTES = 256,    /* cost of a frame or message in addition to its bytes */
    RP_OPEN_BATCHES = 8,          /* the most open batches of inserts of a worker, each of one
                                     table (rpc/insert_batch.h) */
};

typedef struct rp_worker rp_worker;
typedef struct rp_connection rp_connection;
typedef struct rp_task rp_task;
typedef struct rp_insert_batch rp_insert_batch;
typedef struct rp_sample_fetch rp_sample_fetch;

struct rp_server {
    rp_allocator alloc;
    rp_store *store; /* borrowed */
    rp_log log;
    bool moderate, insecure, reset_off, require_client_certificate;
    char *files[4];   /* copies of the paths in rp_server_security */
    char *page_hosts; /* a copy of the option page_hosts, or NULL */

    rp_mutex lock; /* rank RP_RANK_SERVER; guards the next five fields */
    struct rp_served_table *served[RP_MAX_TABLES] RP_GUARDED_BY(lock); /* served_table.h */
    rp_server_limits limits RP_GUARDED_BY(lock);
    rp_tls *tls RP_GUARDED_BY(lock);
    rp_health health RP_GUARDED_BY(lock);
    char health_why[RP_VIEW_WHY_BYTES] RP_GUARDED_BY(lock);
    rp_cond changed; /* signalled with the lock held when the last connection ends */

    rp_gate *gate;
    rp_metrics *metrics;
    rp_clients clients;
    rp_http_page *page;
    uint64_t state_id[2];
    uint64_t hash_seed; /* for maps whose keys peers choose */
    int64_t started_ns;
    atomic_bool draining;
    atomic_bool is_loaded; /* while false, calls that need the store are refused (V2) */
    rp_safety safety;
    rp_safety room; /* its `safe` is a count, not an LSN: journal_room.h */
    rp_checkpoint_queue checkpoints;
    atomic_uint_fast32_t health_version; /* incremented when health changes */
    atomic_size_t connection_count;      /* invariant V1 */
    atomic_size_t accepted_count;        /* invariant V5 */
    rp_queue_budget budget;              /* queue_budget.h */
    atomic_size_t mapped_arrays;         /* sample_array.h */
    atomic_size_t pinned_bytes; /* bytes of waiting inserts, without their chunks: pinned.h */
    rp_shared_arena *arena;     /* shared memory for clients of this host; NULL: disabled */
    rp_allocator arena_alloc;
    rp_leases leases;
    rp_memory_guard memory_guard;
    rp_post retry; /* retries tables that wait for bytes, on the first worker's loop */
    atomic_bool retry_posted;
    rp_rollout_watch rollout_watch; /* wakes the calls that wait for rollouts */

    rp_worker *workers;
    size_t worker_count;
    rp_acceptor acceptor;
    size_t descriptor_room; /* most connections that the limit on descriptors allows */
    bool is_open;           /* no credentials are required */
};

struct rp_worker {
    rp_server *server;
    size_t index;
    rp_loop *loop;
    pthread_t thread;
    bool has_thread;
    rp_loop_metrics *metrics;
    rp_server_limits limits; /* copy of server->limits: rp_worker_update_limits() */
    rp_message_pool replies;
    rp_safe_waits safe_waits;
    rp_safe_waits room_waits; /* waits of calls until the journal's backlog is shorter:
                                 journal_room.h */
    size_t room_bytes;        /* bytes of the messages of these calls */
    uint8_t *read_buffer;
    rp_connection *connections; /* all connections that are not in the state CLOSED */
    rp_connection *dirty;       /* connections to flush at the end of this turn */
    rp_insert_batch *idle_batches;
    rp_sample_fetch *idle_fetches[2]; /* the small fetches, the large fetches */
    size_t idle_batch_count, idle_fetch_count[2], open_count;
    rp_item_room item_room;
    rp_insert_batch *open[RP_OPEN_BATCHES]; /* open_count batches, all of the task `batching` */
    rp_task *batching; /* the task whose batches are open, that is, not started; or NULL */
    rp_connection *deferring, *deferring_last; /* connections with deferred calls: deferral.h */
    rp_connection *unread, *unread_last; /* connections that wait to be read: deferral.h */
    /* The functions passed to rp_defer_init() (deferral.h). */
    void (*read)(rp_connection *connection), (*write)(rp_connection *connection);
    rp_timer deferral;
    size_t work; /* units of work in this turn: deferral.h */
    /* The deferred task that continues now, or NULL. The task is allowed to add work until
     * `work` reaches turn_end. If more of its work remains, it is deferred again. */
    rp_task *turn_of;
    size_t turn_end;
    rp_connection *continued; /* the connection of the deferred task that continues now */
    rp_rollout_waits rollout_waits;
    rp_handshakes handshakes;
    rp_closing closing;
    rp_newcomers newcomers;
    /* readers: number of connections read in this turn. readers_before: maximum of `readers`
     * over earlier turns, halved after each turn. */
    size_t readers, readers_before;
    rp_queue_part queue; /* the worker's part of the budget of queued bytes */
    size_t outstanding;  /* invariant V4 */
    rp_post stop, drain, new_limits, dropped; /* worker.h */
    /* Whether the posts `new_limits` and `dropped` are in the loop's queue. */
    atomic_bool limits_posted, dropped_posted;
    rp_post check_pinned; /* this field and the next four: pinned.h */
    atomic_bool check_posted;
    rp_timer pinned_rest;
    int64_t looked_until_ns, swept_until_ns;
    bool stopping;
    atomic_size_t connection_count;
};

/* Return copies of the limits in force and of the server's health. All functions here may be
 * called on any thread, unless their comment names one. */
rp_server_limits rp_server_limits_now(rp_server *server);
rp_health rp_server_health_now(rp_server *server);

/* Sets `err` to the error of a call that arrives while the store is being loaded. Returns
 * RP_UNAVAILABLE. */
rp_status rp_server_fail_loading(rp_server *server, rp_error *err);

/* Writes a log line for `event`. `format` and the arguments after it give its fields. */
void rp_server_log(rp_server *server, rp_log_level level, const char *event, const char *format,
                   ...) RP_PRINTF(4, 5);

/* Records that an operation of a table has completed, or that a page has arrived (V4). Must be
 * called on the worker's thread. */
void rp_worker_returned(rp_worker *worker);
/* Stops the worker's loop if the worker is stopping and `outstanding` is 0. Must be called on
 * the worker's thread. */
void rp_worker_stop_if_done(rp_worker *worker);

/* Frees the batches and fetches that a worker keeps for reuse. Defined by rpc/. */
void rp_worker_free_pools(rp_worker *worker);

#endif
