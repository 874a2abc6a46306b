/* SPDX-License-Identifier: Apache-2.0 */
/* Birth and end of rollouts, the dispatch of operations, copies for readers. rollouts_inside.h
 * has the invariants. */
#include <assert.h>

#include "rollouts/rollouts.h"

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

static void free_all(rp_rollouts *r)
{
    rp_rollout_group *group = r->first;

    while (group != NULL) {
        rp_rollout_group *next = group->next;

        rp_rollout_group_free(r, group);
        group = next;
    }
    for (size_t i = 0; i < r->slot_count; i++) rp_rollout_entry_free(r, r->entries[i]);
    for (size_t i = 0; i < r->lease_count; i++) rp_rollout_lease_free(r, r->leases[i]);
    for (size_t i = 0; i < RP_ROLLOUT_CONSUMERS; i++)
        rp_rollout_heap_deinit(&r->queues[i].ready, &r->alloc);
    rp_rollout_heap_deinit(&r->ages, &r->alloc);
    rp_rollout_heap_deinit(&r->oldest, &r->alloc);
    rp_rollout_heap_deinit(&r->times, &r->alloc);
    rp_rollout_heap_deinit(&r->lease_times, &r->alloc);
    rp_release(&r->alloc, r->entries, r->slot_capacity * sizeof(rp_rollout_entry *));
    rp_release(&r->alloc, r->free_slots, r->slot_capacity * sizeof *r->free_slots);
    rp_release(&r->alloc, r->leases, r->lease_capacity * sizeof(rp_rollout_lease *));
    rp_map_deinit(&r->map);
    rp_rollout_cursors_free(r);
    rp_rollout_needs_free(&r->alloc, r->needs, r->need_count);
    rp_rollout_options_free(r->options, &r->alloc);
    rp_rollout_name_unref(r->name);
}

rp_status rp_rollouts_new(const rp_allocator *alloc, uint64_t seed, rp_string name,
                          const rp_rollout_options *options, rp_rollouts **out, rp_error *err)
{
    rp_status st = rp_rollout_check_name(name, "rollouts", err);
    rp_rollouts *r;

    *out = NULL;
    if (st == RP_OK) st = rp_rollout_options_check(options, err);
    if (st != RP_OK) return st;
    r = rp_alloc_zero(alloc, sizeof *r);
    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    rp_refcount_init(&r->refs);
    r->alloc = *alloc;
    r->seed = seed;
    rp_mutex_init(&r->mu, RP_RANK_ROLLOUTS);
    rp_map_init(&r->map, alloc, seed);
    r->name = rp_rollout_name_new(alloc, name);
    r->options = rp_rollout_options_copy(alloc, options);
    if (r->name == NULL || r->options == NULL ||
        !rp_rollout_needs_new(alloc, r->options, &r->needs, &r->need_count)) {
        rp_rollouts_unref(r);
        return rp_fail_memory(err, sizeof *r);
    }
    r->version = options->first_version;
    r->next_number = r->next_ready = r->next_lease = 1;
    *out = r;
    return RP_OK;
}

rp_rollouts *rp_rollouts_ref(rp_rollouts *r)
{
    rp_refcount_inc(&r->refs);
    return r;
}

void rp_rollouts_unref(rp_rollouts *r)
{
    rp_allocator alloc;

    if (r == NULL || !rp_refcount_dec(&r->refs)) return;
    alloc = r->alloc;
    free_all(r);
    rp_mutex_deinit(&r->mu);
    rp_release(&alloc, r, sizeof *r);
}

rp_string rp_rollouts_name(const rp_rollouts *r)
{
    return rp_rollout_name_text(r->name);
}

rp_status rp_rollout_work_begin(rp_rollout_work *w, rp_rollouts *r, const rp_rollout_op *op,
                                rp_rollout_result *result, rp_error *err)
{
    bool has_item = op->kind == RP_ROLLOUT_PUT || op->kind == RP_ROLLOUT_UPDATE;
    rp_status st = rp_rollout_op_check(op, err);

    *result = (rp_rollout_result){.outcome = RP_ROLLOUT_DONE};
    *w = (rp_rollout_work){.r = r, .op = op, .result = result, .err = err};
    rp_buf_init(&w->record, &r->alloc);
    if (st != RP_OK || !has_item) return st;
    w->item = rp_rollout_stored_borrow(&r->alloc, op->columns, op->column_count,
                                       op->first_version, op->last_version);
    return w->item != NULL ? RP_OK : rp_fail_memory(err, sizeof *w->item);
}

/* Copies the columns, and encodes the operation for the log. */
static rp_status copy_item(rp_rollout_work *w, bool is_logged)
{
    assert(w->item != NULL && !w->is_copied);
    if (!rp_rollout_stored_copy(w->item)) return rp_fail_memory(w->err, w->item->bytes);
    w->is_copied = true;
    w->has_record = is_logged;
    if (is_logged) rp_rollout_op_write(&w->record, w->op);
    return RP_OK;
}

void rp_rollout_work_end(rp_rollout_work *w)
{
    rp_rollout_stored_unref(w->item);
    rp_rollout_stored_unref(w->replaced);
    rp_buf_deinit(&w->record);
    while (w->removed != NULL) {
        rp_rollout_group *next = w->removed->next;

        rp_rollout_group_free(w->r, w->removed);
        w->removed = next;
    }
    while (w->forgotten != NULL) {
        rp_rollout_entry *next = w->forgotten->next;

        rp_rollout_entry_free(w->r, w->forgotten);
        w->forgotten = next;
    }
}

static rp_status dispatch(rp_rollout_work *w)
{
    switch (w->op->kind) {
    case RP_ROLLOUT_RESERVE: return rp_rollout_do_reserve(w);
    case RP_ROLLOUT_ABORT: return rp_rollout_do_abort(w);
    case RP_ROLLOUT_PUT: return rp_rollout_do_put(w);
    case RP_ROLLOUT_UPDATE: return rp_rollout_do_update(w);
    case RP_ROLLOUT_ADVANCE: return rp_rollout_do_advance(w);
    case RP_ROLLOUT_DRAW: return rp_rollout_do_draw(w);
    case RP_ROLLOUT_ACK: return rp_rollout_do_ack(w);
    case RP_ROLLOUT_RELEASE: return rp_rollout_do_release(w);
    case RP_ROLLOUT_RENEW: return rp_rollout_do_renew(w);
    case RP_ROLLOUT_EXPIRE: return rp_rollout_do_expire(w);
    case RP_ROLLOUT_SET_CURSOR: return rp_rollout_do_cursor(w);
    case RP_ROLLOUT_CONFIGURE: return rp_rollout_do_configure(w);
    }
    return RP_INVALID;
}

/* True if the operation could see a stale group that is still to be dropped (G9). */
static bool sees_stale(rp_rollout_op_kind kind)
{
    return kind == RP_ROLLOUT_RESERVE || kind == RP_ROLLOUT_ABORT || kind == RP_ROLLOUT_PUT ||
           kind == RP_ROLLOUT_UPDATE || kind == RP_ROLLOUT_DRAW || kind == RP_ROLLOUT_CONFIGURE;
}

static rp_status goes_on(const rp_rollout_work *w)
{
    w->result->goes_on = true;
    return rp_fail(w->err, RP_DEADLINE, "rollouts '%.*s': stale groups are being dropped",
                   (int)w->r->name->size, w->r->name->text);
}

enum {
    HEAD_BYTES = 4096,                         /* the name, the numbers, the consumers */
    GONE_BYTES = RP_ROLLOUT_NAME_BYTES + 16,   /* a removed group */
    LEASE_BYTES = 64,                          /* its groups count with these */
    NUMBER_BYTES = 10,                         /* an acknowledged lease */
    NEED_BYTES = RP_ROLLOUT_NAME_BYTES + 8,    /* a column that a consumer needs */
    CURSOR_BYTES = RP_ROLLOUT_NAME_BYTES + 32, /* besides its data */
};

void rp_rollout_count_image(rp_rollouts *r)
{
    uint64_t bytes = HEAD_BYTES + r->bytes + r->gone_count * GONE_BYTES +
                     r->lease_count * LEASE_BYTES + r->acked_count * NUMBER_BYTES;

    for (size_t i = 0; i < r->options->consumer_count; i++)
        bytes += NEED_BYTES + r->options->consumers[i].column_count * NEED_BYTES;
    for (size_t i = 0; i < r->cursor_count; i++) bytes += CURSOR_BYTES + r->cursors[i].size;
    if (r->common == NULL) return;
    /* Unsigned arithmetic: the sum also falls. */
    (void)atomic_fetch_add(&r->common->image_bytes, bytes - r->image_bytes);
    r->image_bytes = bytes;
}

rp_status rp_rollout_execute(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    rp_status st;

    if (r->is_closed)
        return rp_fail(w->err, RP_CANCELLED, "rollouts '%.*s' are closed", (int)r->name->size,
                       r->name->text);
    assert(rp_mutex_is_held(&r->mu));
    assert(w->removed == NULL && w->forgotten == NULL && w->replaced == NULL);
    if (r->has_stale && sees_stale(w->op->kind)) return goes_on(w);
    st = dispatch(w);
    if (w->needs_copy && !w->is_copied) return st;
    assert(st == RP_OK || !w->result->changed); /* a failed operation changes nothing */
    w->result->version = r->version;
    w->result->all_stale = r->stale;
    w->result->goes_on = st == RP_OK && r->has_stale;
    if (st == RP_OK && w->result->changed) {
        r->now_ns = w->op->now_ns;
        if (r->log != NULL)
            r->lsn = r->log->changed(r->log, r, w->op, w->has_record ? &w->record : NULL);
        rp_rollout_count_image(r);
    }
    /* A repeated operation is confirmed when the first one is safe. */
    if (st == RP_OK) w->result->lsn = r->lsn;
    if (w->result->changed) rp_rollout_wake(r); /* also if only a time changed */
    RP_VERIFY(r->group_count + r->item_count + r->gone_count + r->lease_count,
              rp_rollout_is_valid(r));
    return st;
}

rp_status rp_rollouts_apply_step(rp_rollouts *r, const rp_rollout_op *op,
                                 rp_rollout_result *result, rp_error *err)
{
    rp_rollout_common *common = NULL;
    rp_rollout_work w;
    rp_status st = rp_rollout_work_begin(&w, r, op, result, err);

    if (st == RP_OK) {
        rp_mutex_lock(&r->mu);
        st = rp_rollout_execute(&w);
        if (w.needs_copy) {
            bool is_logged = r->log != NULL;

            rp_mutex_unlock(&r->mu);
            st = copy_item(&w, is_logged);
            rp_mutex_lock(&r->mu);
            if (st == RP_OK) st = rp_rollout_execute(&w);
        }
        if (result->releases) common = r->common;
        rp_mutex_unlock(&r->mu);
    }
    rp_rollout_work_end(&w);
    if (common != NULL && common->watch != NULL) common->watch(common->ctx, r);
    return st;
}

/* Drops the next stale groups, which count as removed if the operation had its effect. */
static rp_status drop_more(rp_rollouts *r, int64_t now_ns, rp_rollout_result *result,
                           rp_error *err)
{
    const rp_rollout_op op = {.kind = RP_ROLLOUT_EXPIRE, .now_ns = now_ns};
    rp_rollout_result dropped;
    rp_status st = rp_rollouts_apply_step(r, &op, &dropped, err);

    result->goes_on = dropped.goes_on;
    if (st != RP_OK || !result->has_effect) return st;
    result->stale += dropped.all_stale - result->all_stale;
    result->all_stale = dropped.all_stale;
    result->lsn = dropped.lsn; /* the call ends when all of it is safe */
    return RP_OK;
}

/* One step of an operation that has had no effect yet. */
static rp_status begin(rp_rollouts *r, const rp_rollout_op *op, rp_rollout_result *result,
                       rp_error *err)
{
    rp_status st = rp_rollouts_apply_step(r, op, result, err);
    bool leaves_some = op->kind == RP_ROLLOUT_ADVANCE || op->kind == RP_ROLLOUT_CONFIGURE;

    result->has_effect = st == RP_OK;
    if (st == RP_OK && (!leaves_some || !result->changed)) result->goes_on = false;
    return st;
}

rp_status rp_rollouts_apply_once(rp_rollouts *r, const rp_rollout_op *op,
                                 rp_rollout_result *result, rp_error *err)
{
    rp_status st = RP_OK;

    for (int steps = 0;;) {
        if (!result->has_effect) {
            st = begin(r, op, result, err);
            if (!result->goes_on) return st;
            steps += st == RP_OK;
        }
        if (steps == RP_ROLLOUT_STEPS) break;
        st = drop_more(r, op->now_ns, result, err);
        if (st != RP_OK || (result->has_effect && !result->goes_on)) return st;
        steps++;
    }
    result->goes_on = true;
    return rp_fail(err, RP_DEADLINE, "rollouts '%.*s': stale groups are being dropped",
                   (int)r->name->size, r->name->text);
}

rp_status rp_rollouts_apply(rp_rollouts *r, const rp_rollout_op *op, rp_rollout_result *result,
                            rp_error *err)
{
    rp_status st;

    *result = (rp_rollout_result){.outcome = RP_ROLLOUT_DONE};
    do {
        st = rp_rollouts_apply_once(r, op, result, err);
    } while (st == RP_DEADLINE && result->goes_on);
    return st;
}

size_t rp_rollouts_expire(rp_rollouts *r, int64_t now_ns)
{
    const rp_rollout_op op = {.kind = RP_ROLLOUT_EXPIRE, .now_ns = now_ns};
    rp_rollout_result result;

    /* It fails only if the rollouts are closed, which the operation of the caller reports. */
    if (rp_rollouts_next_expiry(r) > now_ns ||
        rp_rollouts_apply_step(r, &op, &result, NULL) != RP_OK)
        return 0;
    return (size_t)(result.stale + result.expired + result.expired_leases +
                    result.expired_lease_groups);
}

void rp_rollouts_close(rp_rollouts *r)
{
    rp_mutex_lock(&r->mu);
    r->is_closed = true;
    rp_rollout_wake(r);
    rp_mutex_unlock(&r->mu);
}

int64_t rp_rollouts_next_expiry(rp_rollouts *r)
{
    const rp_rollout_node *time, *lease_time;
    int64_t next = INT64_MAX;

    rp_mutex_lock(&r->mu);
    time = rp_rollout_heap_first(&r->times);
    lease_time = rp_rollout_heap_first(&r->lease_times);
    if (time != NULL) next = time->key;
    if (lease_time != NULL && lease_time->key < next) next = lease_time->key;
    if (r->has_stale) next = 0;
    rp_mutex_unlock(&r->mu);
    return next;
}

static void copy_consumer(const rp_rollouts *r, size_t index, rp_rollout_consumer_info *out)
{
    const rp_rollout_queue *queue = &r->queues[index];
    rp_string name = r->options->consumers[index].name;

    assert(queue->ready.count + queue->leased + queue->done <= r->group_count);
    *out = (rp_rollout_consumer_info){.ready = queue->ready.count,
                                      .leased = queue->leased,
                                      .done = queue->done,
                                      .drawn = queue->drawn,
                                      .acknowledged = queue->acknowledged};
    out->waiting = r->group_count - out->ready - out->leased - out->done;
    if (name.size > 0) memcpy(out->name, name.data, name.size);
}

void rp_rollouts_get_info(rp_rollouts *r, rp_rollout_info *out)
{
    rp_mutex_lock(&r->mu);
    *out = (rp_rollout_info){.version = r->version,
                             .groups = r->group_count,
                             .reserved = r->counts[RP_ROLLOUT_RESERVED],
                             .partial = r->counts[RP_ROLLOUT_PARTIAL],
                             .complete = r->counts[RP_ROLLOUT_COMPLETE],
                             .leased = r->counts[RP_ROLLOUT_LEASED],
                             .items = r->item_count,
                             .leases = r->lease_count,
                             .bytes = r->bytes,
                             .begun = r->group_count + r->acknowledged,
                             .may_begin = rp_rollout_may_begin(r),
                             .acknowledged = r->acknowledged,
                             .stale = r->stale,
                             .evicted = r->evicted,
                             .aborted = r->aborted,
                             .expired_reservations = r->expired_reservations,
                             .expired_leases = r->expired_leases,
                             .consumer_count = r->options->consumer_count};
    memcpy(out->staleness, r->staleness, sizeof out->staleness);
    for (size_t i = 0; i < out->consumer_count; i++) copy_consumer(r, i, &out->consumers[i]);
    rp_mutex_unlock(&r->mu);
}

rp_rollout_options *rp_rollouts_copy_options(rp_rollouts *r, const rp_allocator *alloc)
{
    rp_rollout_options *copy;

    rp_mutex_lock(&r->mu);
    copy = rp_rollout_options_copy(alloc, r->options);
    rp_mutex_unlock(&r->mu);
    return copy;
}

rp_status rp_rollouts_peek(rp_rollouts *r, rp_string group, rp_rollout_fate *fate,
                           rp_rollout_batch **out)
{
    const rp_rollout_entry *entry;
    rp_status st = RP_OK;

    *fate = RP_ROLLOUT_UNKNOWN;
    if (out != NULL) *out = NULL;
    rp_mutex_lock(&r->mu);
    entry = rp_rollout_find(r, group);
    if (entry != NULL && entry->group == NULL) *fate = entry->fate;
    if (entry != NULL && entry->group != NULL) {
        *fate = entry->group->age.at > 0 && rp_rollout_is_stale(r, entry->group->first_version)
                    ? RP_ROLLOUT_STALE /* it is still to be dropped */
                    : rp_rollout_state(entry->group);
        if (out != NULL && *fate != RP_ROLLOUT_STALE) {
            *out = rp_rollout_batch_new(&r->alloc, 1, entry->group->size);
            if (*out == NULL) st = RP_NO_RESOURCE;
        }
        if (out != NULL && *out != NULL) {
            rp_rollout_batch_add(*out, entry->group);
            (*out)->version = r->version;
        }
    }
    rp_mutex_unlock(&r->mu);
    return st;
}

void rp_rollouts_set_log(rp_rollouts *r, rp_rollout_log *log)
{
    rp_mutex_lock(&r->mu);
    r->log = log;
    r->lsn = 0;
    rp_mutex_unlock(&r->mu);
}

bool rp_rollouts_check(rp_rollouts *r)
{
    bool is_valid;

    rp_mutex_lock(&r->mu);
    is_valid = rp_rollout_is_valid(r);
    rp_mutex_unlock(&r->mu);
    return is_valid;
}
