/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server: what its parts share.
 *
 *   server.c       starts and stops it all
 *   acceptor.c     takes connections and hands them to workers
 *   worker.c       a thread with an event loop; its connections, and what they share
 *   connection.c   a socket: TLS, HTTP/2 or HTTP/1.1, limits of time and memory
 *   queue_budget.c the bytes that all connections hold
 *   turns.c        room past its limit, lent to connections one after the other
 *   intake.c       incomplete messages: room for them, and their pace
 *   lease_link.c   a socket that holds a lease on shared memory
 *   calls.c        requests become tasks, by their method
 *   deferral.c     calls that visit every table, some in each turn
 *   handshakes.c   TLS handshakes, some in each turn
 *   closing.c      calls of closed connections, some in each turn
 *   safety.c       answers that wait for the journal
 *   memory_guard.c a thread that measures the memory of the process
 *   insert_stream.c, sample_stream.c, unary_calls.c, ...   the tasks
 *
 * A connection and all of its tasks belong to one worker's thread. What crosses threads: the
 * operations that tables complete and what the journal and checkpoints tell (they post to the
 * worker), the tables themselves, the gate, the metrics, and the atomics of rp_server below. */
#ifndef RP_SERVER_CORE_INSIDE_H
#define RP_SERVER_CORE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/loop.h"
#include "reprise/op.h"
#include "reprise/server.h"
#include "server/auth/gate.h"
#include "server/bounds/item_room.h"
#include "server/core/acceptor.h"
#include "server/core/checkpoint_desk.h"
#include "server/core/connection.h"
#include "server/core/memory_guard.h"
#include "server/core/queue_budget.h"
#include "server/core/safety.h"
#include "server/http/http_page.h"
#include "server/http/page.h"
#include "server/metrics/metrics.h"
#include "server/shm/lease.h"
#include "util/mutex.h"
#include "util/shared_arena.h"
#include "wire/h2/h2.h"

enum {
    RP_READ_BYTES = 256 << 10, /* read at a time, into the worker's buffer */
    RP_READ_TURN_BYTES =
        4 << 20,               /* in one turn, shared by the connections that are read from */
    RP_READ_EVENT_BYTES = 256, /* that a frame and a message count as, besides their bytes */
    RP_LISTENERS = 16,
    RP_OPEN_BATCHES = 8,    /* tables whose items are gathered at a time */
    RP_TURN_HANDSHAKES = 2, /* steps of TLS handshakes that one turn of a loop makes */
};

typedef struct rp_insert_batch rp_insert_batch;
typedef struct rp_sample_fetch rp_sample_fetch;

struct rp_server {
    rp_allocator alloc;
    rp_store *store; /* borrowed */
    rp_log log;
    bool moderate, insecure, reset_off, require_client_certificate;
    char *files[4];   /* copies of the paths in rp_server_security */
    char *page_hosts; /* a copy, or NULL */

    rp_mutex lock; /* rank RP_RANK_SERVER; guards the next five */
    struct rp_served *served RP_GUARDED_BY(lock); /* served.h */
    rp_server_limits limits RP_GUARDED_BY(lock);
    rp_tls *tls RP_GUARDED_BY(lock);
    rp_health health RP_GUARDED_BY(lock);
    char health_why[RP_VIEW_WHY_BYTES] RP_GUARDED_BY(lock);
    rp_cond changed; /* signalled with the lock held */

    rp_gate *gate;
    rp_metrics *metrics;
    rp_http_page *page;
    uint64_t state_id[2];
    uint64_t hash_seed; /* of maps whose keys peers choose */
    int64_t started_ns;
    atomic_bool draining;
    atomic_bool is_loaded; /* until then the store is somebody else's, and calls are refused */
    rp_safety safety;      /* its durable is set before is_loaded */
    rp_checkpoint_desk desk;
    atomic_uint_fast32_t health_version; /* moves when health does */
    atomic_size_t connection_count;
    /* Of all connections, as published, by side; see queue_budget.h for it and the next three.
     */
    atomic_size_t queued_bytes[RP_QUEUE_SIDES];
    rp_turns turns[RP_QUEUE_SIDES];
    atomic_size_t drawn_bytes; /* of items drawn for calls that are in no response yet */
    atomic_int_fast64_t
        short_ns[RP_QUEUE_SIDES]; /* when somebody found too little room; 0: never */
    atomic_size_t mapped_arrays;  /* with pages of their own: sample_room.h */
    atomic_size_t pinned_bytes;   /* of inserts that wait, without their chunks: rpc/pinned.h */
    rp_shared_arena *arena;       /* for clients of this host; NULL: there is none */
    rp_allocator arena_alloc;
    rp_leases leases;
    rp_memory_guard memory_guard;

    rp_worker *workers;
    size_t worker_count;
    rp_server_listener listeners[RP_LISTENERS];
    size_t listener_count;
    const char *addresses[RP_LISTENERS];
    size_t descriptor_room; /* connections that there are descriptors for */
    rp_post accept_start, accept_stop;
    rp_timer accept_rest; /* when descriptors ran out */
    bool is_accepting;    /* first worker's thread */
    bool is_open;         /* no credentials are asked for */
};

/* Sets up all that needs no thread and no descriptor of its own; the workers are zeroed. As
 * rp_server_start() otherwise. rp_server_free() frees it. */
RP_NODISCARD rp_status rp_server_new(rp_store *store, const rp_server_options *options,
                                     rp_server **out, rp_error *err);

/* A copy of the limits in force. */
rp_server_limits rp_server_limits_now(rp_server *server);
rp_health rp_server_health_now(rp_server *server);
/* What to say to a call while the store is loaded: RP_UNAVAILABLE. */
rp_status rp_server_fail_loading(rp_server *server, rp_error *err);

/* Writes a log line; `format` makes the fields. */
void rp_server_log(rp_server *server, rp_log_level level, const char *event, const char *format,
                   ...) RP_PRINTF(4, 5);

struct rp_worker {
    rp_server *server;
    size_t index;
    rp_loop *loop;
    pthread_t thread;
    bool has_thread;
    rp_loop_metrics *metrics;
    rp_server_limits limits; /* as last told: see rp_worker_limits() */
    rp_reply_pool replies;
    rp_safe_waits safe_waits;
    uint8_t *read_buffer;
    rp_connection *connections; /* all of them */
    rp_connection *dirty;       /* with something to write at the end of this turn */
    rp_insert_batch *idle_batches;
    rp_sample_fetch *idle_fetches[2]; /* small ones, large ones */
    size_t idle_batch_count, idle_fetch_count[2], open_count;
    rp_item_room item_room;
    rp_insert_batch *open[RP_OPEN_BATCHES]; /* of one stream: rpc/insert_stream.c */
    rp_task *gatherer; /* has gathered work from messages and not started it; or NULL */
    rp_connection *deferring, *deferring_last; /* with deferred calls: deferral.h */
    rp_timer deferral;
    size_t visits;                         /* of every table in this turn */
    rp_connection *shaking, *shaking_last; /* whose handshakes wait: handshakes.h */
    rp_timer shake;
    rp_connection *closing, *closing_last; /* closed, with calls left: closing.h */
    rp_timer close_more;
    size_t closed_calls;            /* of these, in this turn */
    size_t readers, readers_before; /* connections read from: in this turn, and before it */
    size_t handshakes;              /* steps in this turn */
    size_t queued_unpublished[RP_QUEUE_SIDES]; /* since the last rp_queue_publish() */
    size_t outstanding; /* operations that a table will complete, whatever the call does */
    rp_post stop, drain, new_limits, dropped, sweep;
    atomic_bool limits_posted, dropped_posted, sweep_posted; /* and not taken yet */
    rp_timer sweep_rest;                                     /* rpc/pinned.h, P4 */
    int64_t swept_until_ns;                                  /* no sweep before */
    bool stopping;
    atomic_size_t connection_count;
};

/* Sets one up without a thread: whoever runs its loop is the worker's thread. RP_NO_RESOURCE;
 * then it still has to be deinitialised. */
RP_NODISCARD rp_status rp_worker_init(rp_worker *worker, rp_server *server, size_t index,
                                      rp_error *err);
/* Starts a thread that runs its loop. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_worker_start(rp_worker *worker, rp_error *err);
/* Ends all connections and the thread; returns when it is gone. */
void rp_worker_stop(rp_worker *worker);
/* Without a thread, it must have no connections and no operations outstanding. */
void rp_worker_deinit(rp_worker *worker);
/* From any thread: take new limits; take note; drain. */
void rp_worker_take_limits(rp_worker *worker);
/* A table was dropped: its streams let go of it. */
void rp_worker_take_dropped(rp_worker *worker);
void rp_worker_drain(rp_worker *worker);
/* Says that an operation of a table has come home; a stopping worker waits for the last. */
void rp_worker_returned(rp_worker *worker);

/* What a method does. All are called on the worker's thread. */
typedef struct rp_task_kind {
    size_t bytes;                   /* of its struct, which begins with rp_task */
    void (*on_open)(rp_task *task); /* may be NULL, as may all but on_message */
    void (*on_message)(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
    void (*on_half_close)(rp_task *task); /* NULL: the call must have had its message */
    void (*on_room)(rp_task *task);
    void (*on_flush)(rp_task *task);    /* at the end of a turn in which it was touched */
    void (*on_gathered)(rp_task *task); /* starts what it has gathered */
    void (*on_dropped)(rp_task *task);  /* lets go of tables that were dropped */
    void (*on_end)(rp_task *task);      /* it has a status now, which may take time to leave */
    void (*on_close)(rp_task *task);    /* always, at last */
} rp_task_kind;

/* A call, from our side. Zeroed but for these when on_open is called. */
struct rp_task {
    const rp_task_kind *kind;
    rp_connection *connection;
    rp_call *call;
    rp_method method;
    rp_role role;
    rp_status status; /* how it ended, once it has */
    bool is_finished;
    bool flushes; /* in connection->flushes */
    rp_task *prev, *next;
    rp_task *prev_flush, *next_flush;
    rp_timer deadline;
    rp_safe_wait safe;  /* while it waits for the journal */
    rp_reply *held;     /* the answer that waits, if it does */
    rp_block *deferred; /* the request that waits for another turn, if it does */
    rp_task *prev_deferred, *next_deferred;
};

/* The handler of every connection's rp_h2; its user is the connection. */
extern const rp_h2_handler rp_calls_handler;

/* Whether the bytes are a message at all, of a request that says nothing. If not, ends it. */
bool rp_task_is_message(rp_task *task, const uint8_t *data, size_t size);
/* Has on_flush called at the end of this turn. */
void rp_task_touch(rp_task *task);
/* Ends the call: after what was sent, or at once. */
void rp_task_finish(rp_task *task, rp_status status, const char *text);
void rp_task_abort(rp_task *task, rp_status status, const char *text);
/* The same for a failure of decoding or limits, which is counted. */
void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error);
/* An empty reply, or NULL with the call ended. */
rp_reply *rp_task_reply(rp_task *task);
/* Closes and sends it, or ends the call. */
void rp_task_send(rp_task *task, rp_reply *reply);
/* Sends it and ends the call with RP_OK. */
void rp_task_answer(rp_task *task, rp_reply *reply);
/* The same for a response that may be large and says nothing of a change: if the connection has
 * no room for it, the call is refused instead. */
void rp_task_answer_in_room(rp_task *task, rp_reply *reply);
/* The same once what was done, under the number `lsn`, is safe. Without a reply: an empty
 * message. */
void rp_task_answer_safely(rp_task *task, rp_reply *reply, uint64_t lsn);
/* An empty message, at once. */
void rp_task_answer_empty(rp_task *task);

static inline rp_worker *rp_task_worker(const rp_task *task)
{
    return task->connection->worker;
}

/* Starts what has been gathered. May end the task that has. Whoever reads from a connection
 * does so when it has read. */
static inline void rp_worker_start_gathered(rp_worker *worker)
{
    if (worker->gatherer != NULL) worker->gatherer->kind->on_gathered(worker->gatherer);
}

/* The same unless this task has gathered it: for whatever happens to a task meanwhile. */
static inline void rp_worker_make_way(rp_worker *worker, const rp_task *task)
{
    if (worker->gatherer != task) rp_worker_start_gathered(worker);
}

/* The tasks. */
extern const rp_task_kind rp_insert_stream_kind, rp_sample_stream_kind, rp_sample_shared_kind,
    rp_mutate_kind, rp_reset_kind, rp_checkpoint_kind, rp_server_info_kind, rp_initialize_kind,
    rp_peek_kind, rp_sample_kind, rp_why_blocked_kind, rp_status_kind, rp_update_kind,
    rp_delete_kind, rp_create_table_kind, rp_drop_table_kind, rp_alter_table_kind,
    rp_pause_table_kind, rp_resume_table_kind, rp_health_check_kind, rp_health_watch_kind,
    rp_reflection_kind;

/* Frees what a worker keeps for reuse. */
void rp_insert_batches_free(rp_worker *worker);
void rp_sample_fetches_free(rp_worker *worker);

#endif
