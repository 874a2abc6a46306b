/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/calls.h"

#include <assert.h>
#include <stdio.h>

#include "server/bounds/limits.h"
#include "server/core/connection_room.h"
#include "server/core/deferral.h"
#include "server/core/journal_room.h"
#include "server/core/page_response.h"
#include "server/core/task.h"
#include "util/error.h"

enum {
    MAX_PATH_BYTES = 2048, /* two names of a page, all of them escapes, fit */
    /* Calls that a connection may have even if there are `calls` of them on all connections, so
     * that no client can keep the calls of others out. */
    OWN_CALLS = 16,
};

static bool is(rp_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool begins(rp_string text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* Ends a call for which no task was made. */
static void reject(rp_connection *c, rp_call *call, rp_method method, rp_refusal why,
                   const rp_error *error)
{
    rp_connection_refused(c, why);
    rp_counter_add(&c->worker->metrics->calls[method][error->code], 1);
    rp_call_finish(call, error->code, error->text);
}

/* Whether one more call would be beyond the limit on those of all connections. `own` is the
 * number of calls of the connection, with this one. */
static bool is_beyond_calls(const rp_worker *worker, size_t own)
{
    size_t all = 0;

    if (own <= OWN_CALLS) return false;
    for (size_t i = 0; i < worker->server->worker_count; i++)
        all += rp_counter_get(&rp_metrics_loop(worker->server->metrics, i)->streams);
    return all >= worker->limits.calls;
}

/* Checks by its headers whether a call of this method may begin. `*role` receives the role of
 * the peer; if the call may not begin, `*why` receives the reason. */
static rp_status check_head(rp_connection *c, const rp_request_head *head, rp_method method,
                            const char *authorization, rp_role *role, rp_refusal *why,
                            rp_error *err)
{
    rp_server *server = c->worker->server;
    const rp_credentials shown = {authorization, c->certificate, c->peer};
    const rp_task_kind *kind = rp_task_kinds[method];
    rp_gate_result result = {.why = *why};
    size_t own = rp_h2_call_count(c->h2); /* with this one */
    rp_status st;

    if (head->too_large || head->too_many) {
        *why = head->too_many ? RP_REFUSED_HEADER_FIELDS : RP_REFUSED_HEADER_BYTES;
        return rp_fail(err, RP_NO_RESOURCE, "headers over %zu bytes or %zu fields",
                       c->worker->limits.header_bytes, c->worker->limits.header_fields);
    }
    if (atomic_load_explicit(&server->draining, memory_order_relaxed)) {
        *why = RP_REFUSED_DRAINING;
        return rp_fail(err, RP_UNAVAILABLE, "the server is shutting down");
    }
    /* Acquire: pairs with rp_server_set_health(), so that the loaded store is visible. */
    if (!atomic_load_explicit(&server->is_loaded, memory_order_acquire) &&
        (kind == NULL || !kind->works_while_loading)) {
        *why = RP_REFUSED_LOADING;
        return rp_server_fail_loading(server, err);
    }
    if (head->bad_timeout) {
        *why = RP_REFUSED_DECODE;
        return rp_fail(err, RP_INVALID, "malformed grpc-timeout");
    }
    if (head->is_repeated) {
        *why = RP_REFUSED_DECODE;
        return rp_fail(err, RP_INVALID, "there is more than one authorization header");
    }
    if (kind == NULL) {
        *why = RP_REFUSED_UNKNOWN_METHOD;
        return rp_fail(err, RP_UNIMPLEMENTED, "no such method");
    }
    if (method == RP_METHOD_RESET && server->reset_off) {
        *why = RP_REFUSED_RESET_OFF;
        return rp_fail(err, RP_DENIED, "this server does not allow Reset");
    }
    if (!kind->waits_for_room && rp_connection_is_full(c, why))
        return rp_fail(err, RP_NO_RESOURCE, "%s", RP_NO_ROOM_TEXT);
    st = rp_gate_check(server->gate, &shown, rp_method_role(method),
                       rp_loop_now(c->worker->loop), &c->memo, &result, err);
    rp_client_count_call(&c->client, result.who.role);
    *role = result.who.role;
    *why = result.why;
    if (st != RP_OK) return st;
    if (is_beyond_calls(c->worker, own)) {
        *why = RP_REFUSED_CALLS;
        return rp_fail(err, RP_NO_RESOURCE,
                       "%zu calls are open, as many as the limit calls allows, and this "
                       "connection has %zu of them already; end some or raise the limit",
                       c->worker->limits.calls, own - 1);
    }
    /* With credentials, a call that needs no role shows nothing about its peer. */
    if (server->is_open || rp_method_role(method) != RP_ROLE_NONE)
        return rp_connection_accept(c, why, err);
    if (!c->is_accepted && own > RP_NEW_CALLS) {
        *why = RP_REFUSED_STREAMS;
        return rp_fail(
            err, RP_NO_RESOURCE,
            "%d calls are open on a connection without a call that shows credentials",
            RP_NEW_CALLS);
    }
    return RP_OK;
}

static void on_request(void *user, rp_call *call, const rp_request_head *head)
{
    rp_connection *c = user;
    char path[MAX_PATH_BYTES], authorization[RP_AUTH_MAX_TOKEN_BYTES + 32] = "";
    size_t path_size = head->path.size < sizeof path ? head->path.size : 0;
    rp_method method;
    rp_refusal why = RP_REFUSED_DECODE;
    rp_role role = RP_ROLE_NONE;
    rp_error error = {0};

    rp_worker_flush_batches(c->worker);
    memcpy(path, head->path.data, path_size); /* a longer path is none */
    path[path_size] = '\0';
    if (head->authorization.size < sizeof authorization)
        memcpy(authorization, head->authorization.data, head->authorization.size);
    else
        (void)snprintf(authorization, sizeof authorization, "too long");
    if (!is(head->method, "POST") || begins(head->path, "/v1/")) {
        rp_page_respond(c, call, head, path, authorization);
        return;
    }
    if (!begins(head->content_type, "application/grpc")) {
        rp_call_respond_http(call, &(rp_http_response){415, "text/plain", NULL, NULL}, NULL);
        return;
    }
    method = rp_method_of(path);
    if (check_head(c, head, method, authorization, &role, &why, &error) != RP_OK) {
        reject(c, call, method, why, &error);
    } else if (!rp_task_begin(c, call, method, role, head->timeout_ns)) {
        (void)rp_fail_memory(&error, rp_task_kinds[method]->bytes);
        reject(c, call, method, RP_REFUSED_MEMORY, &error);
    }
}

static bool may_deliver(void *user, rp_call *call, size_t size)
{
    rp_task *task = rp_call_user(call);

    (void)user;
    if (task == NULL || task->is_finished) return true;
    if (task->kind->logs && !rp_journal_room_may_begin(task, size)) return false;
    return rp_defer_may_begin(task, size);
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);
    bool is_again = rp_call_is_again(call);
    rp_refusal why;

    if (!is_again) {
        c->turn.messages++;
        rp_counter_add(&c->worker->metrics->messages_read, 1);
    }
    if (task == NULL || !task->kind->is_moderated) c->turn.others = true;
    rp_worker_flush_other_batches(c->worker, task);
    if (task == NULL || task->is_finished) return;
    if (task->held != NULL || task->is_deferred) {
        rp_task_abort(task, RP_INVALID, "the call has more than one request message");
    } else if (!task->kind->waits_for_room && rp_connection_is_full(c, &why)) {
        /* There was room when the call began; other calls have used it since. */
        rp_connection_refused(c, why);
        rp_task_abort(task, RP_NO_RESOURCE, RP_NO_ROOM_TEXT);
    } else {
        if (!is_again) rp_defer_begin_message(c->worker, size);
        task->kind->on_message(task, data, size, block);
        rp_defer_end_message(c->worker);
    }
}

static void on_half_close(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    rp_worker_flush_other_batches(c->worker, task);
    if (task == NULL || task->is_finished || task->held != NULL || task->is_deferred) return;
    if (task->kind->on_half_close != NULL)
        task->kind->on_half_close(task);
    else
        rp_task_finish(task, RP_INVALID, "the call ended without a request message");
}

static void on_room(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    rp_worker_flush_other_batches(c->worker, task);
    if (task != NULL && !task->is_finished && task->kind->on_room != NULL)
        task->kind->on_room(task);
}

static void on_close(void *user, rp_call *call)
{
    rp_connection *c = user;
    rp_task *task = rp_call_user(call);

    if (task == NULL) return;
    assert(task->call == call && task->connection == c);
    rp_worker_flush_other_batches(c->worker, task);
    rp_defer_forget(task);
    rp_task_close(task);
}

/* Whether the peer has reset this call because its deadline has passed. */
static bool is_expired(rp_connection *c, const rp_call *call)
{
    const rp_task *task = rp_call_user(call);

    return task != NULL &&
           rp_expiries_take(&c->expiries, task->expiry_ns, c->worker->limits.streams,
                            rp_loop_now(c->worker->loop));
}

static bool on_nuisance(void *user, rp_nuisance kind, rp_call *call)
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

    assert(kind >= 0 && kind < RP_NUISANCE_KINDS);
    if (kind == RP_NUISANCE_RESET && is_expired(c, call)) return true;
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
    rp_worker_flush_other_batches(c->worker, task);
    rp_connection_refused(c, why);
    if (task != NULL && !task->is_finished) rp_task_ended(task, status);
}

const rp_h2_handler rp_calls_handler = {
    .on_request = on_request,
    .may_deliver = may_deliver,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_room = on_room,
    .on_close = on_close,
    .on_nuisance = on_nuisance,
    .on_fault = on_fault,
};
