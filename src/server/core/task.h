/* SPDX-License-Identifier: Apache-2.0 */
/* A task: the server's state of one RPC (call). The rp_task_kind of the call's method holds its
 * callbacks.
 *
 * A task begins when a request's headers have been accepted (calls.h) and exists until
 * on_close. A task is finished as soon as its status is set, even if its responses still wait
 * to be written.
 *
 * Invariants:
 *   K1  a finished task has no armed deadline, does not wait for the journal and sends nothing;
 *   K2  `flushes` is set exactly while the task is in the list connection->flushes;
 *   K3  `held`, a response, is set only while the task waits until the journal has made its
 *       change safe (safety.h);
 *   K4  worker->batching is the task with open batches of inserts, that is, batches not yet
 *       started. The worker starts them before it handles an event of another task, and before
 *       its turn ends.
 *
 * All functions must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_TASK_H
#define RP_SERVER_CORE_TASK_H

#include "server/core/connection_state.h"

typedef struct rp_task_kind {
    size_t bytes;             /* size of the method's struct, which begins with rp_task */
    bool waits_for_room;      /* false: calls without room for their responses are refused */
    bool logs;                /* its message asks for a change that the journal logs:
                                 journal_room.h */
    bool works_while_loading; /* its calls work while the store is being loaded */
    bool is_moderated;        /* its clients do not wait for each response: read_moderation.h */
    void (*on_open)(rp_task *task); /* every callback but on_message may be NULL */
    void (*on_message)(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
    void (*on_half_close)(rp_task *task);    /* NULL: the call fails unless its message has
                                                arrived */
    void (*on_turn)(rp_task *task);          /* the deferred task continues: deferral.h */
    void (*on_room)(rp_task *task);          /* there is room for responses again */
    void (*on_flush)(rp_task *task);         /* called at the end of a turn in which
                                                rp_task_touch() was called */
    void (*on_flush_batches)(rp_task *task); /* starts the task's open batches: K4 */
    void (*on_dropped)(rp_task *task);       /* releases references to dropped tables */
    size_t (*on_pinned)(rp_task *task); /* updates the connection's pinned and parked bytes, and
                                           returns the task's: pinned.h */
    void (*on_late)(rp_task *task, rp_error *why); /* the deadline has passed: sets the text of
                                                      the error */
    void (*on_end)(rp_task *task);                 /* the task is finished */
    void (*on_close)(rp_task *task);               /* called last, before the task is freed */
} rp_task_kind;

/* The kind of each method; NULL: there is no such method. Defined by rpc/. */
extern const rp_task_kind *const rp_task_kinds[RP_METHODS];

/* When on_open is called, the first five fields, the deadline and the links of
 * connection->tasks are set; all other fields are zero. */
struct rp_task {
    const rp_task_kind *kind;
    rp_connection *connection;
    rp_call *call;
    rp_method method;
    rp_role role;     /* role of the client, by the credentials of this call */
    rp_status status; /* how the call ended, if is_finished */
    bool is_finished;
    bool flushes;
    bool waits_for_journal; /* its message waits until the journal's backlog is shorter:
                               journal_room.h */
    bool is_deferred;       /* the task continues in a later turn: deferral.h */
    rp_task *prev, *next;   /* in connection->tasks */
    rp_task *prev_flush, *next_flush;
    rp_timer deadline;
    int64_t expiry_ns; /* from then on the client may reset the call because of its deadline:
                          expiry.h */
    rp_safe_wait safe; /* the wait until the task's change is safe */
    rp_message *held;  /* the response to send when the change is safe, or NULL */
    rp_safe_wait room; /* the wait for a shorter backlog, while waits_for_journal */
    size_t room_bytes; /* size of the message that waits */
    rp_task *prev_deferred, *next_deferred;
};

/* Makes a task of this kind for a call. Returns NULL if there is no memory. */
rp_task *rp_task_new(rp_connection *connection, rp_call *call, rp_method method,
                     const rp_task_kind *kind);
/* Makes a task for a call of `method` and calls its on_open. `role` is the role of the client.
 * The deadline is `timeout_ns` from now; there is none if it is negative. Returns false if
 * there is no memory. */
RP_NODISCARD bool rp_task_begin(rp_connection *connection, rp_call *call, rp_method method,
                                rp_role role, int64_t timeout_ns);
/* If the task's message waits for a shorter backlog of the journal (journal_room.h), ends this
 * wait. */
void rp_task_leave_room(rp_task *task);
/* Calls on_close and frees the task. Must be called when the RPC is over. */
void rp_task_close(rp_task *task);
/* Finishes the task. Called when the HTTP/2 session (rp_h2) has ended the call with `status`.
 */
void rp_task_ended(rp_task *task, rp_status status);

/* For methods that use no field of their request: checks that the request is a well-formed
 * message. If not, ends the call and returns false. */
bool rp_task_is_message(rp_task *task, const uint8_t *data, size_t size);
/* Makes the worker call on_flush at the end of this turn of its loop. */
void rp_task_touch(rp_task *task);
/* Calls on_flush of all tasks of a connection that were touched. */
void rp_task_flush_all(rp_connection *connection);

/* Both functions end the call. rp_task_finish() ends it after its queued responses have been
 * written. rp_task_abort() drops them and ends the call at once. A finished task is not
 * changed. */
void rp_task_finish(rp_task *task, rp_status status, const char *text);
void rp_task_abort(rp_task *task, rp_status status, const char *text);
/* Aborts the call because its request cannot be decoded or a limit is reached, and counts the
 * refusal. */
void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error);

/* Makes an empty response. If there is no memory, ends the call and returns NULL. */
rp_message *rp_task_new_message(rp_task *task);
/* Sends a response and takes ownership of it. Ends the call if there is no memory. */
void rp_task_send(rp_task *task, rp_message *reply);
/* Sends the response and ends the call with RP_OK. */
void rp_task_respond(rp_task *task, rp_message *reply);
/* Sends the response and ends the call with RP_OK once the journal has made the change with the
 * log sequence number `lsn` safe (safety.h). If `reply` is NULL, the response is an empty
 * message. */
void rp_task_respond_when_safe(rp_task *task, rp_message *reply, uint64_t lsn);
/* Responds with an empty message, at once. */
void rp_task_respond_empty(rp_task *task);

static inline rp_worker *rp_task_worker(const rp_task *task)
{
    return task->connection->worker;
}

/* Starts open batches of inserts (invariant K4). This can end the task that has them. */
static inline void rp_worker_flush_batches(rp_worker *worker)
{
    if (worker->batching != NULL) worker->batching->kind->on_flush_batches(worker->batching);
}

/* Starts the open batches unless they belong to `task` (invariant K4). Called before an event
 * of `task` is handled. */
static inline void rp_worker_flush_other_batches(rp_worker *worker, const rp_task *task)
{
    if (worker->batching != task) rp_worker_flush_batches(worker);
}

#endif
