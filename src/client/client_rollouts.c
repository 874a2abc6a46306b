/* SPDX-License-Identifier: Apache-2.0 */
/* rp_client_rollouts(): calls on the rollouts of the first shard, or of a store of this
 * process.
 *
 * A wait is cut into slices, FIRST_MS or half of the wait, and then SLICE_MS long. At the end
 * of a slice the server responds with the reason of the wait, which goes to on_wait. The
 * response to a slice may take until the whole wait ends: so a server that is stopped, or
 * accepts connections and says nothing, does not delay the end. The last slice ends with the
 * wait. By then the server has responded to another one, and its response may take ANSWER_MS
 * more, so that the client does not abandon a draw that the server has made. A call that does
 * not wait is one try, with TRY_MS for the connection and the response. */
#include <assert.h>

#include "client/unary.h"
#include "rollouts/rollout_draw.h"
#include "rollouts/rollout_messages.h"
#include "rollouts/rollout_set.h"
#include "store/rollout_journal.h"
#include "store/store.h"
#include "util/clock.h"
#include "util/error.h"

#define PATH "/reprise.v1.Rollouts/"

enum {
    NS_PER_MS = 1000000,
    FIRST_MS = 1000,
    SLICE_MS = 20000,
    ANSWER_MS = 1000,
    TRY_MS = 2000
};

/* The operation of an action; 0: it has none. */
static rp_rollout_op_kind kind_of(rp_rollouts_action action)
{
    switch (action) {
    case RP_ROLLOUTS_RESERVE: return RP_ROLLOUT_RESERVE;
    case RP_ROLLOUTS_ABORT: return RP_ROLLOUT_ABORT;
    case RP_ROLLOUTS_PUT: return RP_ROLLOUT_PUT;
    case RP_ROLLOUTS_UPDATE: return RP_ROLLOUT_UPDATE;
    case RP_ROLLOUTS_ADVANCE: return RP_ROLLOUT_ADVANCE;
    case RP_ROLLOUTS_DRAW: return RP_ROLLOUT_DRAW;
    case RP_ROLLOUTS_ACK: return RP_ROLLOUT_ACK;
    case RP_ROLLOUTS_RELEASE: return RP_ROLLOUT_RELEASE;
    case RP_ROLLOUTS_RENEW: return RP_ROLLOUT_RENEW;
    case RP_ROLLOUTS_SET_CURSOR: return RP_ROLLOUT_SET_CURSOR;
    case RP_ROLLOUTS_CONFIGURE: return RP_ROLLOUT_CONFIGURE;
    default: return (rp_rollout_op_kind)0;
    }
}

static rp_rollout_op op_of(const rp_rollouts_call *call)
{
    return (rp_rollout_op){
        .kind = kind_of(call->action),
        .ttl_ns = call->ttl_ns,
        .group = call->group,
        .index = call->index,
        .first_version = call->first_version,
        .last_version = call->last_version,
        .columns = call->columns,
        .column_count = call->column_count,
        .replace = call->replace,
        .version = call->version,
        .consumer = call->consumer,
        .groups = call->groups,
        .min_groups = call->min_groups,
        .column = call->column,
        .tokens = call->tokens,
        .lease = call->lease,
        .cursor = call->cursor,
        .data = {call->data, call->data_size},
        .options = call->options,
    };
}

/* The end of the next slice of a wait. */
static int64_t slice_end(rp_wait wait, int64_t now_ns, bool is_first)
{
    int64_t end_ns = now_ns + (is_first ? FIRST_MS : SLICE_MS) * (int64_t)NS_PER_MS;
    int64_t half_ns = now_ns + (wait.until_ns - now_ns) / 2;

    if (wait.until_ns == RP_NOW) return RP_NOW;
    if (is_first && half_ns > now_ns && half_ns < end_ns) return half_ns;
    return wait.until_ns < end_ns ? wait.until_ns : end_ns;
}

/* Whether a call that has ended at the end of a slice waits on. */
static bool waits_on(const rp_rollouts_call *call, rp_wait wait, int64_t end_ns,
                     const rp_error *error)
{
    if (end_ns == wait.until_ns) return false;
    if (call->on_wait != NULL) call->on_wait(call->ctx, error->text);
    return true;
}

/* On servers. */

/* Calls a method of the first shard. On RP_OK `*out` has the response, which the caller frees.
 * Takes the message. */
static rp_status call_first(rp_client *client, rp_rollouts_call *call,
                            const rp_unary_request *request, rp_wait wait, rp_unary **out,
                            rp_error *err)
{
    rp_status st = request->message->bad
                       ? rp_fail(err, RP_NO_RESOURCE, "out of memory for a request")
                       : rp_unary_call(client, request, 0, 1, wait, out, err);

    call->is_sent = st == RP_OK && rp_unary_response_of(*out, 0)->is_reached;
    if (st == RP_OK) st = rp_unary_result(*out, err);
    return st;
}

/* A wait for a response that comes at once. A caller that does not want to wait for anything
 * else waits for the response. */
static rp_wait answer_wait(rp_wait wait)
{
    if (wait.until_ns != RP_NOW) return wait;
    return (rp_wait){rp_now_ns() + TRY_MS * (int64_t)NS_PER_MS, wait.cancel};
}

/* The wait for the response to a slice that ends at `end_ns`. */
static rp_wait slice_wait(rp_wait wait, int64_t now_ns, int64_t end_ns)
{
    int64_t least_ns = now_ns + ANSWER_MS * (int64_t)NS_PER_MS;

    if (wait.until_ns == RP_NOW) return answer_wait(wait);
    if (end_ns == wait.until_ns && end_ns > now_ns) least_ns += end_ns - now_ns;
    return (rp_wait){wait.until_ns > least_ns ? wait.until_ns : least_ns, wait.cancel};
}

static rp_status read_response(rp_client *client, const rp_unary *u, rp_rollouts_call *call,
                               rp_error *err)
{
    const rp_unary_response *response = rp_unary_response_of(u, 0);
    rp_rollout_response r;
    rp_status st =
        rp_rollout_response_read(&client->alloc, response->data, response->size, &r, err);

    if (st != RP_OK) return st;
    call->repeated = r.outcome == RP_ROLLOUT_REPEATED;
    call->gone = r.outcome == RP_ROLLOUT_GONE;
    call->fate = r.fate;
    call->current_version = r.version;
    call->removed = r.removed;
    call->draw = r.draw;
    return RP_OK;
}

/* Makes one try. It has a connection by `connect_by_ns`, unless that is RP_NOW. */
static rp_status apply_once(rp_client *client, rp_rollouts_call *call,
                            const rp_rollout_apply *apply, int64_t connect_by_ns, rp_wait wait,
                            rp_error *err)
{
    bool repeatable = call->action != RP_ROLLOUTS_DRAW && call->action != RP_ROLLOUTS_RELEASE;
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_rollout_apply_write(&message, apply);
    st = call_first(
        client, call,
        &(rp_unary_request){PATH "ApplyRollouts", &message, repeatable, false, connect_by_ns},
        wait, &u, err);
    if (st == RP_OK) st = read_response(client, u, call, err);
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return st;
}

static rp_status apply_remote(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                              rp_error *err)
{
    rp_rollout_apply apply = {.rollouts = call->rollouts, .op = op_of(call)};
    rp_error error = {0};
    bool is_first = true;
    int64_t started_ns = rp_now_ns();
    rp_status st;

    for (;;) {
        int64_t now_ns = rp_now_ns(), end_ns = slice_end(wait, now_ns, is_first);
        rp_wait answer = slice_wait(wait, now_ns, end_ns);

        apply.op.waited_ns = is_first ? 0 : now_ns - started_ns;
        apply.timeout_ms = end_ns > now_ns ? (end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
        st = apply_once(client, call, &apply, wait.until_ns, answer, &error);
        is_first = false;
        if (st == RP_DEADLINE && call->is_sent && rp_now_ns() < answer.until_ns &&
            waits_on(call, wait, end_ns, &error))
            continue;
        return st == RP_OK ? RP_OK : rp_fail(err, st, "%s", error.text);
    }
}

static rp_status create_remote(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                               rp_error *err)
{
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_rollout_create_write(&message, call->rollouts, call->options);
    st = call_first(client, call,
                    &(rp_unary_request){PATH "CreateRollouts", &message, false, false, 0},
                    answer_wait(wait), &u, err);
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return st;
}

static const char *path_of(rp_rollouts_action action)
{
    if (action == RP_ROLLOUTS_DROP) return PATH "DropRollouts";
    if (action == RP_ROLLOUTS_LIST) return PATH "ListRollouts";
    return action == RP_ROLLOUTS_PEEK ? PATH "PeekRollouts" : PATH "ReadCursor";
}

/* The actions whose request has names only. */
static rp_status names_remote(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                              rp_error *err)
{
    const rp_rollout_names names = {
        call->rollouts, call->action == RP_ROLLOUTS_PEEK ? call->group : call->cursor};
    const rp_unary_response *response;
    rp_bytes cursor;
    rp_unary *u = NULL;
    rp_buf message;
    rp_status st;

    rp_buf_init(&message, &client->alloc);
    rp_rollout_names_write(&message, &names);
    st = call_first(client, call,
                    &(rp_unary_request){path_of(call->action), &message,
                                        call->action != RP_ROLLOUTS_DROP, false, 0},
                    answer_wait(wait), &u, err);
    if (st == RP_OK) {
        response = rp_unary_response_of(u, 0);
        if (call->action == RP_ROLLOUTS_PEEK) st = read_response(client, u, call, err);
        if (call->action == RP_ROLLOUTS_LIST)
            st = rp_rollout_entries_read(&client->alloc, response->data, response->size, call,
                                         err);
        if (call->action == RP_ROLLOUTS_READ_CURSOR) {
            st = rp_rollout_cursor_read(response->data, response->size, &cursor, err);
            if (st == RP_OK) call->on_data(call->ctx, cursor.data, cursor.size);
        }
    }
    rp_unary_free(u);
    rp_buf_deinit(&message);
    return st;
}

/* On a store of this process. */

static rp_status find(rp_client *client, rp_string name, rp_rollouts **out, rp_error *err)
{
    *out = rp_rollout_set_find(rp_store_rollouts(client->store), name);
    if (*out != NULL) return RP_OK;
    return rp_rollout_set_missing(rp_store_rollouts(client->store), name, err);
}

/* Reservations and leases whose time is over are not seen by the caller. */
static void expire(rp_rollouts *rollouts)
{
    int64_t now_ns = rp_wall_ns(NULL);

    while (rp_rollouts_expire(rollouts, now_ns) > 0) continue;
}

/* Ends a draw that its caller does not get. */
static void undraw(rp_rollouts *rollouts, rp_rollout_batch *batch)
{
    rp_rollout_result ignored;

    if (batch != NULL && batch->lease != 0)
        (void)!rp_rollouts_apply(rollouts,
                                 &(rp_rollout_op){.kind = RP_ROLLOUT_RELEASE,
                                                  .now_ns = rp_wall_ns(NULL),
                                                  .lease = batch->lease},
                                 &ignored, NULL);
    rp_rollout_batch_free(batch);
}

/* Makes a draw of the batch of a result. If there is no memory, releases its lease. */
static rp_status take_batch(rp_client *client, rp_rollouts *rollouts, rp_rollout_batch *batch,
                            rp_rollouts_call *call, rp_error *err)
{
    rp_status st = rp_rollout_draw_of(&client->alloc, batch, &call->draw, err);

    if (st != RP_OK) undraw(rollouts, batch);
    return st;
}

static rp_status apply_local(rp_client *client, rp_rollouts *rollouts, rp_rollouts_call *call,
                             rp_wait wait, rp_error *err)
{
    rp_rollout_op op = op_of(call);
    rp_rollout_result result = {0};
    rp_error error = {0};
    bool is_first = true;
    uint64_t claimed = 0;
    int64_t started_ns = rp_now_ns(), end_ns;
    rp_status st;

    do {
        op.waited_ns = is_first ? 0 : rp_now_ns() - started_ns;
        end_ns = slice_end(wait, rp_now_ns(), is_first);
        is_first = false;
        expire(rollouts);
        op.now_ns = rp_wall_ns(NULL);
        st = rp_store_rollouts_admit_wait(client->store, &op, (rp_wait){end_ns, wait.cancel},
                                          &claimed, &error);
        if (st == RP_OK && end_ns == RP_NOW)
            st = rp_rollouts_apply(rollouts, &op, &result, &error);
        else if (st == RP_OK)
            st = rp_rollouts_apply_wait(rollouts, &op, (rp_wait){end_ns, wait.cancel}, &result,
                                        &error);
        rp_store_rollouts_unclaim(client->store, claimed);
    } while (st == RP_DEADLINE && waits_on(call, wait, end_ns, &error));
    if (st == RP_OK) /* what was done is not undone, so the deadline does not count */
        st = rp_store_rollouts_wait(client->store, result.lsn,
                                    (rp_wait){RP_FOREVER, wait.cancel}, &error);
    if (st != RP_OK) {
        undraw(rollouts, result.batch); /* also if the wait for its record was cancelled */
        return rp_fail(err, st, "%s", error.text);
    }
    call->repeated = result.outcome == RP_ROLLOUT_REPEATED;
    call->gone = result.outcome == RP_ROLLOUT_GONE;
    call->fate = result.fate;
    call->current_version = result.version;
    call->removed = result.stale + result.evicted + result.acknowledged;
    if (result.batch == NULL) return RP_OK;
    return take_batch(client, rollouts, result.batch, call, err);
}

static rp_status peek_local(rp_client *client, rp_rollouts *rollouts, rp_rollouts_call *call,
                            rp_error *err)
{
    rp_rollout_batch *batch = NULL;
    rp_rollout_info info;
    rp_status st;

    expire(rollouts);
    st = rp_rollouts_peek(rollouts, call->group, &call->fate, &batch);
    if (st != RP_OK) return rp_fail(err, st, "out of memory for a group");
    rp_rollouts_get_info(rollouts, &info);
    call->current_version = info.version;
    return batch != NULL ? take_batch(client, rollouts, batch, call, err) : RP_OK;
}

static rp_status cursor_local(rp_client *client, rp_rollouts *rollouts, rp_rollouts_call *call,
                              rp_error *err)
{
    rp_buf bytes;
    rp_status st;

    rp_buf_init(&bytes, &client->alloc);
    st = rp_rollouts_read_cursor(rollouts, call->cursor, &bytes);
    if (st == RP_OK && bytes.bad) st = RP_NO_RESOURCE;
    if (st == RP_OK)
        call->on_data(call->ctx, bytes.data, bytes.size);
    else
        (void)rp_fail(err, st, "rollouts '%.*s' have no cursor '%.*s'",
                      (int)call->rollouts.size, call->rollouts.data, (int)call->cursor.size,
                      call->cursor.data);
    rp_buf_deinit(&bytes);
    return st;
}

static rp_status entry_local(rp_client *client, rp_rollouts *rollouts, rp_rollouts_call *call,
                             rp_error *err)
{
    char names[RP_ROLLOUT_CURSORS][RP_ROLLOUT_NAME_BYTES + 1];
    rp_string cursors[RP_ROLLOUT_CURSORS];
    rp_rollouts_entry entry = {.name = rp_rollouts_name(rollouts), .cursors = cursors};
    rp_rollout_options *options = rp_rollouts_copy_options(rollouts, &client->alloc);
    rp_rollout_info info;

    if (options == NULL) return rp_fail_memory(err, sizeof *options);
    expire(rollouts);
    rp_rollouts_get_info(rollouts, &info);
    while (entry.cursor_count < RP_ROLLOUT_CURSORS &&
           rp_rollouts_cursor_name(rollouts, entry.cursor_count, names[entry.cursor_count])) {
        const char *name = names[entry.cursor_count];

        cursors[entry.cursor_count++] = (rp_string){name, strlen(name)};
    }
    entry.options = options;
    entry.info = &info;
    call->on_entry(call->ctx, &entry);
    rp_rollout_options_free(options, &client->alloc);
    return RP_OK;
}

static rp_status list_local(rp_client *client, rp_rollouts_call *call, rp_error *err)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count = rp_rollout_set_list(rp_store_rollouts(client->store), all);
    rp_status st = RP_OK;

    for (size_t i = 0; i < count; i++) {
        if (st == RP_OK) st = entry_local(client, all[i], call, err);
        rp_rollouts_unref(all[i]);
    }
    return st;
}

/* Creates or drops rollouts. */
static rp_status change_local(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                              rp_error *err)
{
    rp_rollout_set *set = rp_store_rollouts(client->store);
    uint64_t lsn = 0, claimed = 0;
    rp_status st;

    if (call->action == RP_ROLLOUTS_CREATE) {
        st = rp_store_rollouts_admit_wait(client->store, NULL, wait, &claimed, err);
        if (st == RP_OK)
            st = rp_rollout_set_create(set, call->rollouts, call->options, NULL, &lsn, err);
        rp_store_rollouts_unclaim(client->store, claimed);
    } else {
        st = rp_rollout_set_drop(set, call->rollouts, &lsn, err);
        rp_store_wake_rollouts(client->store);
    }
    if (st != RP_OK) return st;
    return rp_store_rollouts_wait(client->store, lsn, (rp_wait){RP_FOREVER, wait.cancel}, err);
}

static rp_status call_local(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                            rp_error *err)
{
    rp_rollouts *rollouts;
    rp_status st;

    if (call->action == RP_ROLLOUTS_CREATE || call->action == RP_ROLLOUTS_DROP)
        return change_local(client, call, wait, err);
    if (call->action == RP_ROLLOUTS_LIST && call->rollouts.size == 0)
        return list_local(client, call, err);
    st = find(client, call->rollouts, &rollouts, err);
    if (st != RP_OK) return st;
    if (call->action == RP_ROLLOUTS_LIST)
        st = entry_local(client, rollouts, call, err);
    else if (call->action == RP_ROLLOUTS_PEEK)
        st = peek_local(client, rollouts, call, err);
    else if (call->action == RP_ROLLOUTS_READ_CURSOR)
        st = cursor_local(client, rollouts, call, err);
    else
        st = apply_local(client, rollouts, call, wait, err);
    rp_rollouts_unref(rollouts);
    return st;
}

static bool is_missing(rp_string name)
{
    return name.data == NULL && name.size > 0;
}

static rp_status check(const rp_rollouts_call *call, rp_error *err)
{
    rp_rollout_op op;

    if ((int)call->action < 0 || call->action > RP_ROLLOUTS_READ_CURSOR)
        return rp_fail(err, RP_INVALID, "there is no action %d", (int)call->action);
    if (is_missing(call->rollouts) || is_missing(call->group) || is_missing(call->cursor))
        return rp_fail(err, RP_INVALID, "the name of the %s is NULL, with a size above 0",
                       is_missing(call->rollouts) ? "rollouts"
                       : is_missing(call->group)  ? "group"
                                                  : "cursor");
    if (call->action == RP_ROLLOUTS_LIST && call->on_entry == NULL)
        return rp_fail(err, RP_INVALID, "on_entry is not set");
    if (call->action == RP_ROLLOUTS_READ_CURSOR && call->on_data == NULL)
        return rp_fail(err, RP_INVALID, "on_data is not set");
    if ((call->action == RP_ROLLOUTS_CREATE || call->action == RP_ROLLOUTS_CONFIGURE) &&
        call->options == NULL)
        return rp_fail(err, RP_INVALID, "no options are given");
    if (call->action == RP_ROLLOUTS_CREATE) return rp_rollout_options_check(call->options, err);
    op = op_of(call);
    return op.kind != 0 ? rp_rollout_op_check(&op, err) : RP_OK;
}

rp_status rp_client_rollouts(rp_client *client, rp_rollouts_call *call, rp_wait wait,
                             rp_error *err)
{
    rp_status st;

    if (call == NULL) return rp_fail(err, RP_INVALID, "no call is given");
    st = check(call, err);
    call->repeated = call->gone = false;
    call->fate = RP_ROLLOUT_UNKNOWN;
    call->current_version = 0;
    call->removed = 0;
    call->draw = NULL;
    call->is_sent = false;
    if (st != RP_OK) return st;
    if (client->store != NULL) return call_local(client, call, wait, err);
    if (call->action == RP_ROLLOUTS_CREATE) return create_remote(client, call, wait, err);
    if (kind_of(call->action) == 0) return names_remote(client, call, wait, err);
    return apply_remote(client, call, wait, err);
}
