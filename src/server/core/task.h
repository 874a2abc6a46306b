/* SPDX-License-Identifier: Apache-2.0 */
/* A task: the server's state of a call. A rp_task_kind holds the callbacks of a method.
 *
 * A task begins when a request's headers have been accepted (calls.h) and exists until
 * on_close. It is finished as soon as it has a status; responses that were sent before may
 * still wait to be written.
 *
 * Invariants:
 *   K1  a finished task has no deadline armed, does not wait for the journal and sends nothing;
 *   K2  `flushes` is set exactly while the task is in connection->flushes;
 *   K3  `held` is set only while the task waits for the journal;
 *   K4  worker->batching is a task with open batches. They are started before the worker
 *       handles any other event, and before its turn ends.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_TASK_H
#define RP_SERVER_CORE_TASK_H

#include "server/core/connection_state.h"

typedef struct rp_task_kind {
    size_t bytes;        /* size of the method's struct, which begins with rp_task */
    bool waits_for_room; /* waits while there is no room for responses; others are refused */
    bool logs;           /* its message is a change, logged by the journal: journal_room.h */
    bool works_while_loading; /* does not need the store */
    bool is_moderated;        /* its peers do not wait for each response: read_moderation.h */
    void (*on_open)(rp_task *task); /* every callback but on_message may be NULL */
    void (*on_message)(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
    void (*on_half_close)(rp_task *task);    /* NULL: the call fails unless its message has
                                                arrived */
    void (*on_turn)(rp_task *task);          /* it was deferred and continues: deferral.h */
    void (*on_room)(rp_task *task);          /* there is room for responses again */
    void (*on_flush)(rp_task *task);         /* at the end of a turn in which it was touched */
    void (*on_flush_batches)(rp_task *task); /* starts its open batches: K4 */
    void (*on_dropped)(rp_task *task);       /* releases references to dropped tables */
    size_t (*on_pinned)(rp_task *task);      /* updates the pinned and parked bytes of its
                                                connection; returns the task's own: pinned.h */
    void (*on_end)(rp_task *task);           /* the task is finished */
    void (*on_close)(rp_task *task);         /* called last, before the task is freed */
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
    rp_role role;     /* of the peer, by the credentials of this call */
    rp_status status; /* how it ended, if is_finished */
    bool is_finished;
    bool flushes;
    bool waits_for_journal; /* its message waits for the journal's backlog: journal_room.h */
    bool is_deferred;       /* it continues in a later turn: deferral.h */
    rp_task *prev, *next;   /* in connection->tasks */
    rp_task *prev_flush, *next_flush;
    rp_timer deadline;
    int64_t expiry_ns; /* when the peer may reset it because of its deadline: expiry.h */
    rp_safe_wait safe; /* while it waits for the journal */
    rp_message *held;  /* the response that waits for the journal, or NULL */
    rp_safe_wait room; /* the wait, while waits_for_journal */
    size_t room_bytes; /* of the message that waits */
    rp_task *prev_deferred, *next_deferred;
};

/* Makes a task of this kind for a call. NULL: there is no memory. */
rp_task *rp_task_new(rp_connection *connection, rp_call *call, rp_method method,
                     const rp_task_kind *kind);
/* Makes a task of the kind of its method and calls its on_open. `role` is that of the peer.
 * `timeout_ns` < 0: no deadline. False: there is no memory. */
RP_NODISCARD bool rp_task_begin(rp_connection *connection, rp_call *call, rp_method method,
                                rp_role role, int64_t timeout_ns);
/* Ends the wait of its message for the journal's backlog, if it waits: journal_room.h. */
void rp_task_leave_room(rp_task *task);
/* The call is over: calls on_close and frees the task. */
void rp_task_close(rp_task *task);
/* The session (rp_h2) has ended the call with `status`. */
void rp_task_ended(rp_task *task, rp_status status);

/* Checks that the bytes of a request are a well-formed message, for methods that use none of
 * its fields. If not, ends the call and returns false. */
bool rp_task_is_message(rp_task *task, const uint8_t *data, size_t size);
/* Makes the worker call on_flush at the end of this turn of its loop. */
void rp_task_touch(rp_task *task);
/* Calls on_flush of all tasks of a connection that were touched. */
void rp_task_flush_all(rp_connection *connection);

/* End the call: rp_task_finish() after the queued responses have been written, rp_task_abort()
 * at once, dropping them. A task that is finished already is not changed. */
void rp_task_finish(rp_task *task, rp_status status, const char *text);
void rp_task_abort(rp_task *task, rp_status status, const char *text);
/* Aborts the call because its request cannot be decoded or a limit is reached; counts the
 * refusal. */
void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error);

/* Makes an empty response. If there is no memory, ends the call and returns NULL. */
rp_message *rp_task_new_message(rp_task *task);
/* Sends a response, of which it takes ownership. Ends the call if there is no memory. */
void rp_task_send(rp_task *task, rp_message *reply);
/* Sends the response and ends the call with RP_OK. */
void rp_task_respond(rp_task *task, rp_message *reply);
/* Sends the response and ends the call with RP_OK once the journal has made the change `lsn`
 * safe. If `reply` is NULL, the response is an empty message. */
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

/* Starts open batches unless they are those of `task`. Called before an event of the task is
 * handled. */
static inline void rp_worker_flush_other_batches(rp_worker *worker, const rp_task *task)
{
    if (worker->batching != task) rp_worker_flush_batches(worker);
}

#endif
