/* SPDX-License-Identifier: Apache-2.0 */
/* ApplyRollouts and PeekRollouts.
 *
 * An operation that has to wait stays in the worker's list (rollout_waits.h) with its request,
 * which counts in the bytes of waiting calls (pinned.h). The wait ends when the operation
 * succeeds or fails, when its timeout is over, or when the call ends. An operation that waits
 * has changed nothing.
 *
 * An operation that drops stale groups, or finds some that are still to be dropped, does a part
 * of it in each try and goes on in a later turn, also if its timeout is 0. Once an advance has
 * had its effect, only its call can end it early; the other calls and the timer then drop the
 * rest.
 *
 * A draw whose response would exceed message_bytes gives its groups back, and draws as many of
 * them as fit.
 *
 * A draw has happened when its response is made. If the response is not written whole, because
 * the call or the connection has ended, the lease is released (rollout_reply.c).
 *
 * Invariants:
 *   A1  has_op is set while `request` has an operation, whose bytes are in `block` or `copy`
 *       while the call waits, unless the operation has had its effect;
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
    rp_rollout_result result; /* of the last try */
    rp_error why;             /* of the last try that had to wait; "": ask rp_rollouts_why() */
    rp_rollout_parked parked; /* while is_parked is set, in the list of the rollouts */
    size_t work;              /* units of the tries in this turn */
    bool has_op, is_parked;
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

    if (a->is_parked) rp_rollouts_unpark(a->rollouts, &a->parked);
    a->is_parked = false;
    a->request.op.parked = NULL;
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

/* Applies the operation, and adds the work of the groups that this has dropped. */
static rp_status apply_once(apply_task *a, rp_error *err)
{
    uint64_t before = a->result.stale, dropped;
    rp_status st = rp_rollouts_apply_once(a->rollouts, &a->request.op, &a->result, err);
    size_t work;

    dropped = a->result.stale - before;
    if (a->result.goes_on) dropped = RP_ROLLOUT_STEPS * RP_ROLLOUT_STEP;
    work = (size_t)dropped * RP_ROLLOUT_GROUP_WORK;
    rp_defer_add_work(rp_task_worker(&a->reply.task), work);
    a->work += work;
    return st;
}

/* Expires what is over. RP_DEADLINE with result.goes_on: there is more of it. */
static rp_status expire(apply_task *a, rp_error *err)
{
    rp_rollout_waits *waits = &rp_task_worker(&a->reply.task)->rollout_waits;
    size_t work = rp_rollout_waits_expire(waits, a->rollouts);

    a->work += work;
    a->request.op.now_ns = rp_wall_ns(NULL);
    if (work == 0 || rp_rollouts_next_expiry(a->rollouts) > a->request.op.now_ns) return RP_OK;
    a->result.goes_on = true;
    return rp_fail(err, RP_DEADLINE, "groups whose time is over are being removed");
}

/* Tries the operation, with a->result. Adds the work to a->work. */
static rp_status try_op(apply_task *a, rp_error *err)
{
    rp_worker *worker = rp_task_worker(&a->reply.task);
    rp_store *store = worker->server->store;
    uint64_t claimed = 0;
    rp_status st = RP_OK;

    if (!a->result.has_effect) {
        a->result = (rp_rollout_result){.outcome = RP_ROLLOUT_DONE};
        st = expire(a, err);
        if (st == RP_OK) st = rp_store_rollouts_admit(store, &a->request.op, &claimed, err);
        if (st == RP_UNAVAILABLE) st = RP_DEADLINE; /* it waits for the journal */
    }
    if (st == RP_OK) st = apply_once(a, err);
    rp_store_rollouts_unclaim(store, claimed);
    rp_rollout_waits_watch_expiry(&worker->rollout_waits, a->rollouts);
    return st;
}

static void undraw(apply_task *a)
{
    rp_rollout_undraw(a->rollouts, a->result.batch);
    a->result = (rp_rollout_result){.outcome = RP_ROLLOUT_DONE};
}

/* Makes a draw that has happened end before the group with which its response would exceed
 * message_bytes. RP_NO_RESOURCE: that would be fewer than min_groups. RP_DEADLINE: others have
 * drawn the groups meanwhile. Then the groups are given back, as on all failures. */
static rp_status fit_draw(apply_task *a, rp_error *err)
{
    size_t most = rp_task_worker(&a->reply.task)->limits.message_bytes;
    uint32_t groups = a->request.op.groups, least = a->request.op.min_groups;
    rp_status st = RP_OK;

    while (st == RP_OK && a->result.batch != NULL && a->result.batch->lease != 0) {
        size_t count = a->result.batch->count;
        size_t fits = rp_rollout_batch_fit(a->result.batch, most);

        if (fits == count) break;
        undraw(a);
        if (fits < (least > 0 ? least : 1)) {
            rp_connection_refused(a->reply.task.connection, RP_REFUSED_MESSAGE_BYTES);
            st = rp_fail(err, RP_NO_RESOURCE,
                         "%zu groups take more than message_bytes, %zu, which %zu of them do "
                         "not exceed: lower min_groups, or raise the limit",
                         count, most, fits);
        }
        a->request.op.groups = (uint32_t)fits; /* fewer each time */
        if (st == RP_OK) st = try_op(a, err);
    }
    a->request.op.groups = groups;
    return st;
}

/* The operation has succeeded or failed. */
static void end_op(apply_task *a, rp_status st, const rp_error *error)
{
    rp_task *task = &a->reply.task;

    drop_request(a);
    if (st != RP_OK)
        rp_task_finish(task, st, error->text);
    else
        rp_rollout_respond(&a->reply, a->rollouts, &a->result);
}

/* True if the operation is not over: it waits, or it has more to drop, in a later turn. */
static bool waits_on(const apply_task *a, rp_status st)
{
    if (st != RP_DEADLINE) return false;
    if (a->result.goes_on)
        rp_rollout_waits_wake(&rp_task_worker(&a->reply.task)->rollout_waits, a->rollouts);
    return a->result.goes_on || a->request.timeout_ms != 0;
}

static size_t on_retry(rp_rollout_wait *wait)
{
    apply_task *a = (apply_task *)(void *)((char *)wait - offsetof(apply_task, wait));
    rp_worker *worker = rp_task_worker(&a->reply.task);
    size_t work = TRY_WORK;
    rp_error error = {0};
    rp_status st;

    a->work = 0;
    st = try_op(a, &error);
    if (st == RP_OK) st = fit_draw(a, &error);
    if (st != RP_DEADLINE) work += a->request_bytes / RP_UNIT_BYTES; /* it was copied */
    rp_defer_add_work(worker, work);
    work += a->work;
    if (a->result.batch != NULL) work += rp_rollout_batch_work(a->result.batch);

    if (a->result.has_effect) rp_loop_disarm(worker->loop, &a->timer);
    if (waits_on(a, st))
        a->why = error;
    else
        end_op(a, st, &error);
    return work;
}

static void on_timeout(rp_timer *timer)
{
    apply_task *a = (apply_task *)(void *)((char *)timer - offsetof(apply_task, timer));

    if (a->is_parked && a->why.text[0] == '\0')
        (void)rp_rollouts_why(a->rollouts, &a->parked, &a->why);
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

/* Lets the call wait, or refuses it. An operation that has had its effect has no timeout, and
 * its columns and options are not used again. One without a timeout waits for stale groups
 * only. */
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
    if (a->result.has_effect) return;
    if (rp_pinned_is_full(c) || c->parked_bytes > worker->limits.connection_pinned_bytes) {
        rp_pinned_refuse(task);
    } else if (keep_bytes(a, data, size, block) != RP_OK ||
               (a->request.timeout_ms != 0 &&
                rp_loop_arm(worker->loop, &a->timer, timeout_of(a)) != RP_OK)) {
        rp_task_abort(task, RP_NO_RESOURCE, "out of memory for a call that waits");
    } else if (a->request.timeout_ms != 0) {
        a->parked.client = c->client.id;
        a->parked.waiting = a->result.waiting;
        rp_rollouts_park(a->rollouts, &a->parked, &a->request.op, a->timer.due_ns);
        a->request.op.parked = &a->parked;
        a->is_parked = true;
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
    rp_rollout_waits_add(&worker->rollout_waits, &a->wait);
    rp_counter_add(&worker->metrics->rollout_waits, 1);
    st = try_op(a, &error);
    if (st == RP_OK) st = fit_draw(a, &error);
    if (waits_on(a, st)) {
        a->why = error;
        park(a, data, size, block);
    } else {
        end_op(a, st, &error);
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
    (void)rp_rollout_waits_expire(&rp_task_worker(task)->rollout_waits, a->rollouts);
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
