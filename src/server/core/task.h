/* SPDX-License-Identifier: Apache-2.0 */
/* A task: a call from the server's side. rp_task_kind is what a method does with it.
 *
 * A task begins when a request's headers have been accepted (calls.h) and exists until
 * on_close. It is finished as soon as it has a status; responses that were sent before may
 * still wait to be written.
 *
 * Invariants:
 *   K1  a finished task has no deadline armed, does not wait for the journal and sends nothing;
 *   K2  `flushes` says whether the task is in connection->flushes;
 *   K3  `held` is set only while the task waits for the journal;
 *   K4  worker->batching is a task with open batches. They are flushed before any other event
 * is
 *       handled on the worker, and before its turn ends.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_TASK_H
#define RP_SERVER_CORE_TASK_H

#include "server/core/connection_state.h"

typedef struct rp_task_kind {
    size_t bytes;        /* of its struct, which begins with rp_task */
    bool waits_for_room; /* holds responses back while there is no room; others are refused */
    bool visits_tables;  /* takes time for every table: deferral.h */
    bool works_while_loading; /* does not need the store */
    bool is_moderated;        /* its peers do not wait for each response: read_moderation.h */
    void (*on_open)(rp_task *task); /* may be NULL, as may all but on_message */
    void (*on_message)(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
    void (*on_half_close)(rp_task *task); /* NULL: the call must have had its message */
    void (*on_room)(rp_task *task);
    void (*on_flush)(rp_task *task);         /* at the end of a turn in which it was touched */
    void (*on_flush_batches)(rp_task *task); /* starts its open batches: K4 */
    void (*on_dropped)(rp_task *task);       /* releases references to dropped tables */
    size_t (*on_pinned)(rp_task *task);      /* updates the pinned and parked bytes of its
                                                connection; returns its own: pinned.h */
    void (*on_end)(rp_task *task);           /* it is finished */
    void (*on_close)(rp_task *task);         /* always, at last */
} rp_task_kind;

/* The kind of each method; NULL: there is no such method. Defined by rpc/. */
extern const rp_task_kind *const rp_task_kinds[RP_METHODS];

/* Zeroed but for the first four when on_open is called. */
struct rp_task {
    const rp_task_kind *kind;
    rp_connection *connection;
    rp_call *call;
    rp_method method;
    rp_status status; /* how it ended, if is_finished */
    bool is_finished;
    bool flushes;
    rp_task *prev, *next; /* in connection->tasks */
    rp_task *prev_flush, *next_flush;
    rp_timer deadline;
    rp_safe_wait safe;  /* while it waits for the journal */
    rp_message *held;   /* the response that waits for the journal, or NULL */
    rp_block *deferred; /* the request that waits for another turn, or NULL: deferral.h */
    rp_task *prev_deferred, *next_deferred;
};

/* Makes a task of this kind for a call. NULL: there is no memory. */
rp_task *rp_task_new(rp_connection *connection, rp_call *call, rp_method method,
                     const rp_task_kind *kind);
/* Makes a task of the kind of its method and calls its on_open. `timeout_ns` < 0: no deadline.
 * False: there is no memory. */
RP_NODISCARD bool rp_task_begin(rp_connection *connection, rp_call *call, rp_method method,
                                int64_t timeout_ns);
/* The call is over: calls on_close and frees the task. */
void rp_task_close(rp_task *task);
/* The call was ended below, with this status. */
void rp_task_ended(rp_task *task, rp_status status);

/* Decodes the fields of a request that has none of interest. False, with the call ended, if
 * the bytes are no message. */
bool rp_task_is_message(rp_task *task, const uint8_t *data, size_t size);
/* Has on_flush called at the end of this turn. */
void rp_task_touch(rp_task *task);
/* Calls on_flush of all tasks of a connection that were touched. */
void rp_task_flush_all(rp_connection *connection);

/* Ends the call: after the responses that were sent, or at once without them. A task that is
 * finished is left alone. */
void rp_task_finish(rp_task *task, rp_status status, const char *text);
void rp_task_abort(rp_task *task, rp_status status, const char *text);
/* Aborts it for a failure of decoding or a limit, which is counted. */
void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error);

/* An empty response, or NULL with the call ended. */
rp_message *rp_task_new_message(rp_task *task);
/* Sends a response, which it takes; ends the call if there is no memory. */
void rp_task_send(rp_task *task, rp_message *reply);
/* Sends the response and ends the call with RP_OK. */
void rp_task_respond(rp_task *task, rp_message *reply);
/* The same once the journal has made the change `lsn` safe. NULL: an empty message. */
void rp_task_respond_when_safe(rp_task *task, rp_message *reply, uint64_t lsn);
/* Responds with an empty message, at once. */
void rp_task_respond_empty(rp_task *task);

static inline rp_worker *rp_task_worker(const rp_task *task)
{
    return task->connection->worker;
}

/* Starts open batches (K4). May end the task that has them. */
static inline void rp_worker_flush_batches(rp_worker *worker)
{
    if (worker->batching != NULL) worker->batching->kind->on_flush_batches(worker->batching);
}

/* The same unless this task has them: before an event of the task is handled. */
static inline void rp_worker_flush_other_batches(rp_worker *worker, const rp_task *task)
{
    if (worker->batching != task) rp_worker_flush_batches(worker);
}

#endif
