/* SPDX-License-Identifier: Apache-2.0 */
/* Requests become tasks, by their method; tasks end with a status. */
#include <assert.h>
#include <stdio.h>

#include "server/bounds/limits.h"
#include "server/core/deferral.h"
#include "server/core/inside.h"
#include "server/core/page_answer.h"
#include "util/error.h"
#include "util/mem.h"

static const rp_task_kind *const kinds[RP_METHODS] = {
    [RP_METHOD_INSERT_STREAM] = &rp_insert_stream_kind,
    [RP_METHOD_SAMPLE_STREAM] = &rp_sample_stream_kind,
    [RP_METHOD_MUTATE_PRIORITIES] = &rp_mutate_kind,
    [RP_METHOD_RESET] = &rp_reset_kind,
    [RP_METHOD_CHECKPOINT] = &rp_checkpoint_kind,
    [RP_METHOD_SERVER_INFO] = &rp_server_info_kind,
    [RP_METHOD_INITIALIZE_CONNECTION] = &rp_initialize_kind,
    [RP_METHOD_PEEK] = &rp_peek_kind,
    [RP_METHOD_SAMPLE] = &rp_sample_kind,
    [RP_METHOD_SAMPLE_SHARED] = &rp_sample_shared_kind,
    [RP_METHOD_WHY_BLOCKED] = &rp_why_blocked_kind,
    [RP_METHOD_STATUS] = &rp_status_kind,
    [RP_METHOD_UPDATE] = &rp_update_kind,
    [RP_METHOD_DELETE] = &rp_delete_kind,
    [RP_METHOD_CREATE_TABLE] = &rp_create_table_kind,
    [RP_METHOD_DROP_TABLE] = &rp_drop_table_kind,
    [RP_METHOD_ALTER_TABLE] = &rp_alter_table_kind,
    [RP_METHOD_PAUSE_TABLE] = &rp_pause_table_kind,
    [RP_METHOD_RESUME_TABLE] = &rp_resume_table_kind,
    [RP_METHOD_HEALTH_CHECK] = &rp_health_check_kind,
    [RP_METHOD_HEALTH_WATCH] = &rp_health_watch_kind,
    [RP_METHOD_REFLECTION] = &rp_reflection_kind,
};

enum { MAX_PATH_BYTES = 256 };

static bool is(rp_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool begins(rp_string text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* Ends a call that never became a task. */
static void turn_away(rp_connection *c, rp_call *call, rp_method method, rp_refusal why,
                      const rp_error *error)
{
    rp_connection_refused(c, why);
    rp_counter_add(&c->worker->metrics->calls[method][error->code], 1);
    rp_call_finish(call, error->code, error->text);
}

static void on_deadline(rp_timer *timer)
{
    rp_task *task = (rp_task *)((char *)timer - offsetof(rp_task, deadline));

    rp_task_abort(task, RP_DEADLINE, "Deadline Exceeded");
}

/* NULL: no memory. */
static rp_task *new_task(rp_connection *c, rp_call *call, rp_method method,
                         const rp_task_kind *kind)
{
    rp_worker *worker = c->worker;
    rp_task *task = rp_alloc_zero(&worker->server->alloc, kind->bytes);

    if (task == NULL) return NULL;
    task->kind = kind;
    task->connection = c;
    task->call = call;
    task->method = method;
    task->deadline = (rp_timer){.on_due = on_deadline, .is_bulk = true};
    task->next = c->tasks;
    if (task->next != NULL) task->next->prev = task;
    c->tasks = task;
    rp_counter_add(&worker->metrics->streams, 1);
    rp_call_set_user(call, task);
    return task;
}

static void begin_task(rp_connection *c, rp_call *call, rp_method method,
                       const rp_task_kind *kind, int64_t timeout_ns)
{
    rp_worker *worker = c->worker;
    rp_task *task;
    int64_t now_ns = rp_loop_now(worker->loop);
    rp_error error;

    assert(kind != NULL); /* check_head() has looked */
    task = new_task(c, call, method, kind);
    if (task == NULL) {
        (void)rp_fail_memory(&error, kind->bytes);
        turn_away(c, call, method, RP_REFUSED_MEMORY, &error);
        return;
    }
    if (timeout_ns >= 0 && timeout_ns < INT64_MAX - now_ns &&
        rp_loop_arm(worker->loop, &task->deadline, now_ns + timeout_ns) != RP_OK) {
        rp_task_finish(task, RP_NO_RESOURCE, "out of memory for a deadline");
        return;
    }
    if (kind->on_open != NULL) kind->on_open(task);
}

/* Answers a request for a page, now or when it is made. */
static void begin_page(rp_connection *c, rp_call *call, bool head_only, const char *path,
                       const char *authorization)
{
    const rp_page_request request = {
        .method = head_only ? "HEAD" : "GET",
        .path = path,
        .shown = {authorization, c->certificate, c->peer},
        .now_ns = rp_loop_now(c->worker->loop),
    };
    const rp_http_answer unavailable = {503, "text/plain", "retry-after", "1"};
    rp_page_kind kind;
    rp_refusal why;
    rp_task *task;

    if (rp_connection_is_stuffed(c, &why)) {
        rp_connection_refused(c, why);
        rp_call_answer(call, &unavailable, NULL);
        return;
    }
    if (rp_page_answer_call(c, call, &request, &kind)) return;
    task = new_task(c, call, RP_METHOD_UNKNOWN, &rp_page_kind_of_task);
    if (task == NULL) {
        rp_connection_refused(c, RP_REFUSED_MEMORY);
        rp_call_answer(call, &unavailable, NULL);
        return;
    }
    rp_page_await(task, kind, head_only);
}

/* What does not need the store. */
static bool works_while_loading(rp_method method)
{
    return method == RP_METHOD_HEALTH_CHECK || method == RP_METHOD_HEALTH_WATCH ||
           method == RP_METHOD_REFLECTION;
}

static const char no_room[] = "too many answers wait to be read";

/* Whether a call holds its answers back until there is room for them. Others are refused. */
static bool waits_for_room(rp_method method)
{
    return method == RP_METHOD_INSERT_STREAM || method == RP_METHOD_SAMPLE_STREAM ||
           method == RP_METHOD_SAMPLE_SHARED;
}

/* Whether the call may go on, by what its headers say. */
static rp_status check_head(rp_connection *c, const rp_request_head *head, const char *path,
                            const char *authorization, rp_method *method, rp_refusal *why,
                            rp_error *err)
{
    rp_server *server = c->worker->server;
    const rp_credentials shown = {authorization, c->certificate, c->peer};

    *method = rp_method_of(path);
    if (head->too_large || head->too_many) {
        *why = head->too_many ? RP_REFUSED_HEADER_FIELDS : RP_REFUSED_HEADER_BYTES;
        return rp_fail(err, RP_NO_RESOURCE, "headers over %zu bytes or %zu fields",
                       c->worker->limits.header_bytes, c->worker->limits.header_fields);
    }
    if (atomic_load_explicit(&server->draining, memory_order_relaxed)) {
        *why = RP_REFUSED_DRAINING;
        return rp_fail(err, RP_UNAVAILABLE, "the server is shutting down");
    }
    /* Acquire: whoever sees it loaded sees all that was done to load it. */
    if (!atomic_load_explicit(&server->is_loaded, memory_order_acquire) &&
        !works_while_loading(*method)) {
        *why = RP_REFUSED_LOADING;
        return rp_server_fail_loading(server, err);
    }
    if (head->bad_timeout) {
        *why = RP_REFUSED_DECODE;
        return rp_fail(err, RP_INVALID, "malformed grpc-timeout");
    }
    if (*method == RP_METHOD_UNKNOWN || kinds[*method] == NULL) {
        *why = RP_REFUSED_UNKNOWN_METHOD;
        return rp_fail(err, RP_UNIMPLEMENTED, "no such method");
    }
    if (*method == RP_METHOD_RESET && server->reset_off) {
        *why = RP_REFUSED_RESET_OFF;
        return rp_fail(err, RP_DENIED, "this server does not allow Reset");
    }
    if (!waits_for_room(*method) && rp_connection_is_stuffed(c, why))
        return rp_fail(err, RP_NO_RESOURCE, "%s", no_room);
    return rp_gate_check(server->gate, &shown, rp_method_role(*method),
                         rp_loop_now(c->worker->loop), &c->memo, NULL, why, err);
}

static void on_request(void *user, rp_call *call, const rp_request_head *head)
{
    rp_connection *c = user;
    char path[MAX_PATH_BYTES] = "", authorization[RP_AUTH_MAX_TOKEN_BYTES + 32] = "";
    rp_method method = RP_METHOD_UNKNOWN;
    rp_refusal why = RP_REFUSED_DECODE;
    rp_error error = {0};

    rp_worker_start_gathered(c->worker);
    if (head->path.size < sizeof path) memcpy(path, head->path.data, head->path.size);
    if (head->authorization.size < sizeof authorization)
        memcpy(authorization, head->authorization.data, head->authorization.size);
    else
        (void)snprintf(authorization, sizeof authorization, "too long");
    if (is(head->method, "GET") || is(head->method, "HEAD")) {
        begin_page(c, call, is(head->method, "HEAD"), path, authorization);
        return;
    }
    if (!is(head->method, "POST")) {
        rp_call_answer(call, &(rp_http_answer){405, "text/plain", "allow", "GET, HEAD, POST"},
                       NULL);
        return;
    }
    if (!begins(head->content_type, "application/grpc")) {
        rp_call_answer(call, &(rp_http_answer){415, "text/plain", NULL, NULL}, NULL);
        return;
    }
    if (check_head(c, head, path, authorization, &method, &why, &error) != RP_OK) {
        turn_away(c, call, method, why, &error);
        return;
    }
    begin_task(c, call, method, kinds[method], head->timeout_ns);
}

/* The call has its status: nothing more is to be said. */
static void note_end(rp_task *task, rp_status status)
{
    task->is_finished = true;
    task->status = status;
    rp_loop_disarm(rp_task_worker(task)->loop, &task->deadline);
    rp_safe_wait_end(&rp_task_worker(task)->safe_waits, &task->safe);
    if (task->kind->on_end != NULL) task->kind->on_end(task);
    rp_connection_touch(task->connection);
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);
    rp_refusal why;

    c->turn.messages++;
    if (task == NULL || task->method != RP_METHOD_INSERT_STREAM) c->turn.others = true;
    rp_counter_add(&c->worker->metrics->messages_read, 1);
    rp_worker_make_way(c->worker, task);
    if (task == NULL || task->is_finished) return;
    if (task->held != NULL || task->deferred != NULL) {
        rp_task_abort(task, RP_INVALID, "the call has more than one request message");
    } else if (!waits_for_room(task->method) && rp_connection_is_stuffed(c, &why)) {
        /* Many calls may have begun when there was room. */
        rp_connection_refused(c, why);
        rp_task_abort(task, RP_NO_RESOURCE, no_room);
    } else if (rp_defer_applies(task->method)) {
        rp_defer_message(task, data, size, block);
    } else {
        task->kind->on_message(task, data, size, block);
    }
}

static void on_half_close(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    rp_worker_make_way(c->worker, task);
    if (task == NULL || task->is_finished || task->held != NULL || task->deferred != NULL)
        return;
    if (task->kind->on_half_close != NULL)
        task->kind->on_half_close(task);
    else
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

static void on_room(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    rp_worker_make_way(c->worker, task);
    if (task != NULL && !task->is_finished && task->kind->on_room != NULL)
        task->kind->on_room(task);
}

static void on_close(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_worker *worker = c->worker;
    rp_task *task = rp_call_user(call);

    if (task == NULL) return;
    rp_worker_make_way(worker, task);
    rp_loop_disarm(worker->loop, &task->deadline);
    rp_safe_wait_end(&worker->safe_waits, &task->safe);
    if (!task->is_finished) task->status = RP_CANCELLED;
    task->is_finished = true;
    if (task->kind->on_close != NULL) task->kind->on_close(task);
    rp_reply_release(&worker->replies, task->held);
    rp_defer_forget(task);
    if (task->flushes) {
        *(task->prev_flush != NULL ? &task->prev_flush->next_flush : &c->flushes) =
            task->next_flush;
        if (task->next_flush != NULL) task->next_flush->prev_flush = task->prev_flush;
    }
    *(task->prev != NULL ? &task->prev->next : &c->tasks) = task->next;
    if (task->next != NULL) task->next->prev = task->prev;
    if (task->method != RP_METHOD_UNKNOWN) /* a page */
        rp_counter_add(&worker->metrics->calls[task->method][task->status], 1);
    rp_counter_sub(&worker->metrics->streams, 1);
    rp_release(&worker->server->alloc, task, task->kind->bytes);
}

static bool on_nuisance(void *user, rp_nuisance kind)
{
    static const rp_abuse_kind abuses[RP_NUISANCE_KINDS] = {
        [RP_NUISANCE_RESET] = RP_ABUSE_CLIENT_RESET,
        [RP_NUISANCE_MADE_RESET] = RP_ABUSE_SERVER_RESET,
        [RP_NUISANCE_PING] = RP_ABUSE_PING,
        [RP_NUISANCE_SETTINGS] = RP_ABUSE_SETTINGS,
        [RP_NUISANCE_EMPTY] = RP_ABUSE_EMPTY_FRAME,
        [RP_NUISANCE_WINDOW] = RP_ABUSE_WINDOW_UPDATE,
        [RP_NUISANCE_BAD_FRAME] = RP_ABUSE_BAD_FRAME,
        [RP_NUISANCE_REFUSED] = RP_ABUSE_REFUSED_STREAM,
        [RP_NUISANCE_PRIORITY] = RP_ABUSE_PRIORITY,
        [RP_NUISANCE_OTHER] = RP_ABUSE_UNKNOWN_FRAME,
        [RP_NUISANCE_LATE] = RP_ABUSE_LATE_FRAME,
        [RP_NUISANCE_FRAGMENT] = RP_ABUSE_FRAGMENT,
        [RP_NUISANCE_TABLE_SIZE] = RP_ABUSE_TABLE_SIZE,
    };
    rp_connection *c = user;

    if (kind == RP_NUISANCE_REFUSED) rp_connection_refused(c, RP_REFUSED_STREAMS);
    return rp_connection_charge(c, abuses[kind]);
}

static void on_fault(void *user, rp_call *call, rp_call_fault fault, rp_status status)
{
    static const rp_refusal reasons[] = {
        [RP_FAULT_MESSAGE_BYTES] = RP_REFUSED_MESSAGE_BYTES,
        [RP_FAULT_COMPRESSED] = RP_REFUSED_COMPRESSION,
        [RP_FAULT_FRAMING] = RP_REFUSED_FRAMING,
        [RP_FAULT_MEMORY] = RP_REFUSED_MEMORY,
    };
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    rp_refusal why = reasons[fault];

    if (fault == RP_FAULT_MESSAGE_BYTES &&
        c->worker->limits.message_bytes == rp_server_limits_side_bytes(&c->worker->limits))
        why = RP_REFUSED_QUEUED;
    rp_worker_make_way(c->worker, task);
    rp_connection_refused(c, why);
    if (task != NULL && !task->is_finished) note_end(task, status);
}

const rp_h2_handler rp_calls_handler = {
    .on_request = on_request,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_close = on_close,
    .on_nuisance = on_nuisance,
    .on_fault = on_fault,
};

void rp_task_touch(rp_task *task)
{
    rp_connection *c = task->connection;

    rp_connection_touch(c);
    if (task->flushes) return;
    task->flushes = true;
    task->prev_flush = NULL;
    task->next_flush = c->flushes;
    if (c->flushes != NULL) c->flushes->prev_flush = task;
    c->flushes = task;
}

void rp_task_finish(rp_task *task, rp_status status, const char *text)
{
    if (task->is_finished) return;
    note_end(task, status);
    rp_call_finish(task->call, status, text);
}

void rp_task_abort(rp_task *task, rp_status status, const char *text)
{
    if (task->is_finished) return;
    note_end(task, status);
    rp_call_abort(task->call, status, text);
}

void rp_task_refuse(rp_task *task, rp_refusal why, const rp_error *error)
{
    /* Bytes from a peer that contradict themselves are its mistake, not damaged storage. */
    rp_status status = error->code == RP_CORRUPT ? RP_INVALID : error->code;

    if (task->is_finished) return;
    rp_connection_refused(task->connection, why);
    rp_task_abort(task, status, error->text);
}

rp_reply *rp_task_reply(rp_task *task)
{
    rp_reply *reply = rp_reply_new(&rp_task_worker(task)->replies);

    if (reply == NULL) rp_task_abort(task, RP_NO_RESOURCE, "out of memory for an answer");
    return reply;
}

void rp_task_send(rp_task *task, rp_reply *reply)
{
    if (!rp_reply_close(reply)) {
        rp_reply_release(&rp_task_worker(task)->replies, reply);
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for an answer");
        return;
    }
    rp_counter_add(&rp_task_worker(task)->metrics->messages_written, 1);
    rp_call_send(task->call, reply);
    rp_connection_count(task->connection);
    rp_connection_touch(task->connection);
}

void rp_task_answer(rp_task *task, rp_reply *reply)
{
    rp_task_send(task, reply);
    rp_task_finish(task, RP_OK, NULL);
}

rp_reply *rp_task_reply_in_room(rp_task *task)
{
    rp_reply *reply = rp_task_reply(task);

    if (reply != NULL)
        reply->bytes.most = RP_GRPC_PREFIX + rp_connection_room(task->connection, RP_QUEUE_OUT);
    return reply;
}

void rp_task_answer_in_room(rp_task *task, rp_reply *reply)
{
    rp_connection *c = task->connection;

    rp_defer_weigh(c->worker, reply->bytes.size);
    if (!reply->bytes.full && reply->bytes.size <= rp_connection_room(c, RP_QUEUE_OUT)) {
        rp_task_answer(task, reply);
        return;
    }
    rp_reply_release(&c->worker->replies, reply);
    rp_connection_refused(c, RP_REFUSED_QUEUED);
    rp_task_abort(task, RP_NO_RESOURCE, no_room);
}

static void send_held(rp_safe_wait *wait)
{
    rp_task *task = (rp_task *)(void *)((char *)wait - offsetof(rp_task, safe));
    rp_reply *reply = task->held;

    task->held = NULL;
    rp_task_answer(task, reply);
}

void rp_task_answer_safely(rp_task *task, rp_reply *reply, uint64_t lsn)
{
    rp_worker *worker = rp_task_worker(task);

    if (reply == NULL) reply = rp_task_reply(task);
    if (reply == NULL) return;
    if (lsn <= rp_safe_now(&worker->server->safety)) {
        rp_task_answer(task, reply);
        return;
    }
    task->held = reply;
    task->safe.on_safe = send_held;
    rp_safe_wait_begin(&worker->safe_waits, &task->safe, lsn);
}

void rp_task_answer_empty(rp_task *task)
{
    rp_reply *reply = rp_task_reply(task);

    if (reply != NULL) rp_task_answer(task, reply);
}
