/* SPDX-License-Identifier: Apache-2.0 */
/* ApplyRollouts and PeekRollouts.
 *
 * An operation that has to wait stays in the worker's list (rollout_waits.h) with its request,
 * which counts in the bytes of waiting calls (pinned.h). The wait ends when the operation
 * succeeds or fails, when its timeout is over, or when the call ends. An operation that waits
 * has changed nothing.
 *
 * A draw whose response would exceed message_bytes gives its groups back, and draws as many of
 * them as fit.
 *
 * A draw has happened when its response is made. If the response is not written whole, because
 * the call or the connection has ended, the lease is released (rollout_reply.c).
 *
 * Invariants:
 *   A1  has_op is set while `request` has an operation, whose bytes are in `block` or `copy`
 *       while the call waits;
 *   A2  parked_bytes is counted in the connection's parked_bytes and in the server's
 *       pinned_bytes; it is 0 unless the call waits. */
#include <assert.h>

#include "rollouts/rollout_set.h"
#include "server/core/deferral.h"
#include "server/core/pinned.h"
#include "server/rpc/methods.h"
#include "server/rpc/rollout_reply.h"
#include "store/rollout_journal.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    NS_PER_MS = 1000000,
    MOST_WAIT_MS = 60000,
    REASON_NS = 1000000,
    TRY_WORK = 16, /* units of a try, without its bytes */
};

typedef struct apply_task {
    rp_rollout_reply reply; /* first */
    rp_rollout_wait wait;
    rp_rollout_apply request;
    rp_rollouts *rollouts; /* a reference */
    rp_block *block;       /* a reference, or NULL */
    uint8_t *copy;         /* of the request, if it has no block */
    size_t size;           /* of `copy` */
    size_t request_bytes, parked_bytes;
    rp_timer timer;
    rp_error why; /* of the last try that had to wait */
    bool has_op;
} apply_task;

static apply_task *apply_of(rp_task *task)
{
    return (apply_task *)(void *)task;
}

/* Ends the wait, and frees the request. */
static void drop_request(apply_task *a)
{
    rp_task *task = &a->reply.task;
    rp_worker *worker = rp_task_worker(task);

    rp_counter_sub(&worker->metrics->rollout_waits, a->wait.is_waiting);
    rp_rollout_waits_remove(&worker->rollout_waits, &a->wait);
    rp_loop_disarm(worker->loop, &a->timer);
    if (a->has_op) rp_rollout_op_deinit(&a->request.op, &worker->server->alloc);
    a->has_op = false;
    rp_block_unref(a->block);
    a->block = NULL;
    rp_release(&worker->server->alloc, a->copy, a->size);
    a->copy = NULL;
    assert(task->connection->parked_bytes >= a->parked_bytes); /* A2 */
    task->connection->parked_bytes -= a->parked_bytes;
    rp_pinned_add(worker, 0 - a->parked_bytes);
    a->parked_bytes = 0;
}

static rp_status try_op(apply_task *a, rp_rollout_result *result, rp_error *err)
{
    rp_task *task = &a->reply.task;
    rp_store *store = rp_task_worker(task)->server->store;
    uint64_t claimed = 0;
    rp_status st;

    rp_rollouts_expire(a->rollouts);
    a->request.op.now_ns = rp_wall_ns(NULL);
    st = rp_store_rollouts_admit(store, &a->request.op, &claimed, err);
    if (st == RP_UNAVAILABLE) st = RP_DEADLINE; /* it waits for the journal */
    if (st == RP_OK) st = rp_rollouts_apply(a->rollouts, &a->request.op, result, err);
    rp_store_rollouts_unclaim(store, claimed);
    rp_rollout_waits_watch_expiry(&rp_task_worker(task)->rollout_waits, a->rollouts);
    return st;
}

static void undraw(apply_task *a, rp_rollout_result *result)
{
    rp_rollout_undraw(a->rollouts, result->batch);
    result->batch = NULL;
}

/* Makes a draw that has happened end before the group with which its response would exceed
 * message_bytes. RP_NO_RESOURCE: that would be fewer than min_groups. RP_DEADLINE: others have
 * drawn the groups meanwhile. Then the groups are given back, as on all failures. */
static rp_status fit_draw(apply_task *a, rp_rollout_result *result, rp_error *err)
{
    size_t most = rp_task_worker(&a->reply.task)->limits.message_bytes;
    uint32_t groups = a->request.op.groups, least = a->request.op.min_groups;
    rp_status st = RP_OK;

    while (st == RP_OK && result->batch != NULL && result->batch->lease != 0) {
        size_t count = result->batch->count, fits = rp_rollout_batch_fit(result->batch, most);

        if (fits == count) break;
        undraw(a, result);
        if (fits < (least > 0 ? least : 1)) {
            rp_connection_refused(a->reply.task.connection, RP_REFUSED_MESSAGE_BYTES);
            st = rp_fail(err, RP_NO_RESOURCE,
                         "%zu groups take more than message_bytes, %zu, which %zu of them do "
                         "not exceed: lower min_groups, or raise the limit",
                         count, most, fits);
        }
        a->request.op.groups = (uint32_t)fits; /* fewer each time */
        if (st == RP_OK) st = try_op(a, result, err);
    }
    a->request.op.groups = groups;
    return st;
}

/* The operation has succeeded or failed. */
static void end_op(apply_task *a, rp_status st, const rp_rollout_result *result,
                   const rp_error *error)
{
    rp_task *task = &a->reply.task;

    drop_request(a);
    if (st != RP_OK)
        rp_task_finish(task, st, error->text);
    else
        rp_rollout_respond(&a->reply, a->rollouts, result);
}

static size_t on_retry(rp_rollout_wait *wait)
{
    apply_task *a = (apply_task *)(void *)((char *)wait - offsetof(apply_task, wait));
    rp_worker *worker = rp_task_worker(&a->reply.task);
    size_t work = TRY_WORK + a->request_bytes / RP_UNIT_BYTES;
    rp_rollout_result result = {0};
    rp_error error = {0};
    rp_status st = try_op(a, &result, &error);

    if (st == RP_OK) st = fit_draw(a, &result, &error);
    rp_defer_add_work(worker, work);
    if (result.batch != NULL) work += rp_rollout_batch_work(result.batch);

    if (st == RP_DEADLINE)
        a->why = error;
    else
        end_op(a, st, &result, &error);
    return work;
}

static void on_timeout(rp_timer *timer)
{
    apply_task *a = (apply_task *)(void *)((char *)timer - offsetof(apply_task, timer));

    drop_request(a);
    rp_task_finish(&a->reply.task, RP_DEADLINE, a->why.text);
}

/* Keeps the bytes of the request, to which the operation refers. */
static rp_status keep_bytes(apply_task *a, const uint8_t *data, size_t size, rp_block *block)
{
    const rp_allocator *alloc = &rp_task_worker(&a->reply.task)->server->alloc;
    rp_status st;

    if (block != NULL) {
        a->block = rp_block_ref(block);
        return RP_OK;
    }
    a->copy = rp_alloc(alloc, size);
    if (a->copy == NULL) return RP_NO_RESOURCE;
    a->size = size;
    memcpy(a->copy, data, size);
    rp_rollout_op_deinit(&a->request.op, alloc);
    st = rp_rollout_apply_read(alloc, a->copy, size, &a->request, NULL);
    a->has_op = st == RP_OK;
    return st;
}

/* When the wait ends: a moment before the deadline of the call, so that the response has the
 * reason. */
static int64_t timeout_of(const apply_task *a)
{
    int64_t most_ms = a->request.timeout_ms, due_ns;
    const rp_timer *deadline = &a->reply.task.deadline;

    if (most_ms < 0 || most_ms > MOST_WAIT_MS) most_ms = MOST_WAIT_MS;
    due_ns = rp_now_ns() + most_ms * NS_PER_MS;
    if (deadline->place != 0 && deadline->due_ns - REASON_NS < due_ns)
        due_ns = deadline->due_ns - REASON_NS;
    return due_ns;
}

/* Lets the call wait, or refuses it. */
static void park(apply_task *a, const uint8_t *data, size_t size, rp_block *block)
{
    rp_task *task = &a->reply.task;
    rp_worker *worker = rp_task_worker(task);
    rp_connection *c = task->connection;

    a->parked_bytes = sizeof *a + size;
    c->parked_bytes += a->parked_bytes;
    rp_pinned_add(worker, a->parked_bytes);
    a->timer.on_due = on_timeout;
    a->timer.is_bulk = true;
    if (rp_pinned_is_full(c) || c->parked_bytes > worker->limits.connection_pinned_bytes) {
        rp_pinned_refuse(task);
    } else if (keep_bytes(a, data, size, block) != RP_OK ||
               rp_loop_arm(worker->loop, &a->timer, timeout_of(a)) != RP_OK) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a call that waits");
    }
}

/* An operation that changes the options needs the role admin, as AlterTable does. False: the
 * call has ended. */
static bool is_allowed(apply_task *a)
{
    const rp_task *task = &a->reply.task;
    rp_error error;

    if (a->request.op.kind != RP_ROLLOUT_CONFIGURE || task->role >= RP_ROLE_ADMIN) return true;
    (void)rp_fail(&error, RP_DENIED, "your role is %s, and this operation needs %s",
                  rp_role_name(task->role), rp_role_name(RP_ROLE_ADMIN));
    rp_task_refuse(&a->reply.task, RP_REFUSED_DENIED, &error);
    return false;
}

/* Finds the rollouts of a request. False: the call has ended. */
static bool find(apply_task *a, rp_string name)
{
    rp_task *task = &a->reply.task;

    a->rollouts = rp_rollouts_of(task, name);
    return a->rollouts != NULL;
}

static void on_apply(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    apply_task *a = apply_of(task);
    rp_worker *worker = rp_task_worker(task);
    rp_rollout_result result = {0};
    rp_error error = {0};
    rp_status st;

    if (!rp_rollout_take_message(&a->reply)) return;
    if (rp_rollout_apply_read(&worker->server->alloc, data, size, &a->request, &error) !=
        RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    a->has_op = true;
    if (!is_allowed(a) || !find(a, a->request.rollouts)) return;
    a->wait.retry = on_retry;
    a->wait.rollouts = a->rollouts;
    a->request_bytes = size;
    /* In the list before the first try: no change may be missed. */
    if (a->request.timeout_ms != 0) {
        rp_rollout_waits_add(&worker->rollout_waits, &a->wait);
        rp_counter_add(&worker->metrics->rollout_waits, 1);
    }
    st = try_op(a, &result, &error);
    if (st == RP_OK) st = fit_draw(a, &result, &error);
    if (st == RP_DEADLINE && a->wait.is_waiting) {
        a->why = error;
        park(a, data, size, block);
    } else {
        end_op(a, st, &result, &error);
    }
}

static void on_peek(rp_task *task, const uint8_t *data, size_t size, rp_block *block)
{
    apply_task *a = apply_of(task);
    rp_rollout_result result = {0};
    rp_rollout_names names;
    rp_rollout_info info;
    rp_error error = {0};
    rp_status st;

    (void)block;
    if (!rp_rollout_take_message(&a->reply)) return;
    if (rp_rollout_names_read(data, size, &names, &error) != RP_OK) {
        rp_task_refuse(task, RP_REFUSED_DECODE, &error);
        return;
    }
    if (!find(a, names.rollouts)) return;
    rp_rollouts_expire(a->rollouts);
    st = rp_rollouts_peek(a->rollouts, names.other, &result.fate, &result.batch);
    if (st != RP_OK) {
        rp_task_abort(task, st, "out of memory for a group");
        return;
    }
    rp_rollouts_get_info(a->rollouts, &info);
    result.version = info.version;
    rp_rollout_respond(&a->reply, a->rollouts, &result);
}

static size_t on_pinned(rp_task *task)
{
    return apply_of(task)->parked_bytes + apply_of(task)->reply.waiting_bytes;
}

static void on_end(rp_task *task)
{
    drop_request(apply_of(task));
    rp_rollout_reply_close(&apply_of(task)->reply);
}

static void on_close(rp_task *task)
{
    apply_task *a = apply_of(task);

    on_end(task);
    rp_rollouts_unref(a->rollouts);
}

const rp_task_kind rp_apply_rollouts_kind = {
    .bytes = sizeof(apply_task),
    .logs = true,
    .on_message = on_apply,
    .on_half_close = rp_rollout_half_close,
    .on_turn = rp_rollout_turn,
    .on_room = rp_rollout_room,
    .on_pinned = on_pinned,
    .on_end = on_end,
    .on_close = on_close,
};

const rp_task_kind rp_peek_rollouts_kind = {
    .bytes = sizeof(apply_task),
    .on_message = on_peek,
    .on_half_close = rp_rollout_half_close,
    .on_turn = rp_rollout_turn,
    .on_room = rp_rollout_room,
    .on_pinned = on_pinned,
    .on_end = on_end,
    .on_close = on_close,
};
