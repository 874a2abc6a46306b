/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the options of a table in use, and pausing it.
 *
 * If a bound is lowered, items are evicted first, a block per acquisition of the lock. After
 * each block the current bound is lowered to what the remaining items use, so that T2 holds
 * whenever the lock is free and the table does not grow again. When the items fit the new
 * bounds, all options are changed at once. */
#include <assert.h>

#include "table/table_log.h"
#include "util/error.h"

enum {
    KNOWN = RP_ALTER_MAX_SIZE | RP_ALTER_MAX_BYTES | RP_ALTER_MAX_TIMES_SAMPLED |
            RP_ALTER_LIMITER | RP_ALTER_RECENTER
};

static bool has(const rp_table_alteration *change, uint32_t bit)
{
    return (change->which & bit) != 0;
}

/* Changes the requested fields and writes no others: some are read without the lock. */
static void apply(rp_table_options *o, const rp_table_alteration *change)
{
    if (has(change, RP_ALTER_MAX_SIZE)) o->max_size = change->max_size;
    if (has(change, RP_ALTER_MAX_BYTES)) o->max_bytes = change->max_bytes;
    if (has(change, RP_ALTER_MAX_TIMES_SAMPLED))
        o->max_times_sampled = change->max_times_sampled;
    if (has(change, RP_ALTER_LIMITER)) o->limiter = change->limiter;
}

static bool fits_locked(const rp_table *t, const rp_table_options *to) RP_REQUIRES(t->mu)
{
    if (!to->soft_limit && t->slots.live > (size_t)to->max_size) return false;
    return to->max_bytes == 0 || t->account.bytes <= to->max_bytes;
}

/* Evicts a block of the items over the new bounds. True if the rest fits; otherwise lowers the
 * current bounds to what the remaining items use. The caller has reserved room for the
 * events. */
static bool shrink_locked(rp_table *t, const rp_table_options *to) RP_REQUIRES(t->mu)
{
    rp_table_options *now = &t->options;

    t->removed_chunks = 0;
    for (size_t i = 0;
         i < RP_BLOCK && t->removed_chunks <= RP_BLOCK_CHUNKS && !fits_locked(t, to); i++) {
        rp_log_make_room_locked(t);
        rp_table_evict_locked(t);
        rp_log_add_evicted_locked(t);
        rp_table_count_out_locked(t, SIZE_MAX);
    }
    if (fits_locked(t, to)) return true;
    if (!to->soft_limit && to->max_size < now->max_size)
        now->max_size =
            (int64_t)t->slots.live > to->max_size ? (int64_t)t->slots.live : to->max_size;
    if (to->max_bytes > 0 && (now->max_bytes == 0 || to->max_bytes < now->max_bytes))
        now->max_bytes = t->account.bytes > to->max_bytes ? t->account.bytes : to->max_bytes;
    assert(now->soft_limit || t->slots.live <= (size_t)now->max_size); /* T2 */
    return false;
}

/* Logs pending evictions and an alteration. */
static void tell_locked(rp_table *t, const rp_table_alteration *alter) RP_REQUIRES(t->mu)
{
    rp_log_record change = {.kind = RP_LOGGED_ALTER, .alter = *alter};

    if (rp_table_log_of(t) != NULL) rp_log_locked(t, &change);
}

/* Logs the current bounds, while they are being lowered or after they were restored. */
static void log_bounds_locked(rp_table *t) RP_REQUIRES(t->mu)
{
    rp_table_alteration now = {.which = RP_ALTER_MAX_SIZE | RP_ALTER_MAX_BYTES,
                               .max_size = t->options.max_size,
                               .max_bytes = t->options.max_bytes};
    tell_locked(t, &now);
}

static void commit_locked(rp_table *t, const rp_table_alteration *change) RP_REQUIRES(t->mu)
{
    assert(rp_mutex_is_held(&t->mu));
    apply(&t->options, change);
    assert(t->options.soft_limit || t->slots.live <= (size_t)t->options.max_size); /* T2 */
    if (has(change, RP_ALTER_MAX_TIMES_SAMPLED)) t->times_altered = true;
    if (has(change, RP_ALTER_LIMITER)) rp_rate_limiter_alter(&t->limiter, &change->limiter);
    if (has(change, RP_ALTER_RECENTER)) rp_rate_limiter_recenter(&t->limiter);
}

rp_status rp_alter_redo_locked(rp_table *t, const rp_log_record *change, rp_error *err)
{
    rp_table_options to = t->options;
    rp_error why;

    apply(&to, &change->alter);
    if ((change->alter.which & ~(uint32_t)KNOWN) != 0 ||
        rp_table_check_options(&to, &why) != RP_OK)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': options that cannot be: %.120s",
                       t->options.name,
                       (change->alter.which & ~(uint32_t)KNOWN) != 0 ? "unknown" : why.text);
    if (!to.soft_limit && t->slots.live > (size_t)to.max_size)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': max_size %lld, with %zu items",
                       t->options.name, (long long)to.max_size, t->slots.live);
    commit_locked(t, &change->alter);
    return RP_OK;
}

/* Restores bounds that were lowered part of the way, unless another thread has altered them
 * since. */
static void take_back_locked(rp_table *t, const rp_altering *a) RP_REQUIRES(t->mu)
{
    if (t->options.max_size == a->lowered_size) t->options.max_size = a->max_size;
    if (t->options.max_bytes == a->lowered_bytes) t->options.max_bytes = a->max_bytes;
    log_bounds_locked(t);
}

static rp_status check(const rp_table_options *before, const rp_table_alteration *change,
                       rp_error *err)
{
    rp_table_options to = *before;

    apply(&to, change);
    if ((change->which & ~(uint32_t)KNOWN) != 0)
        return rp_fail(err, RP_INVALID, "table '%s': changes %#x are not all known",
                       before->name, change->which);
    return rp_table_check_options(&to, err);
}

rp_status rp_table_alter(rp_table *t, const rp_table_alteration *change, rp_error *err)
{
    rp_status st;
    uint64_t lsn = 0;

    if (change == NULL)
        return rp_fail(err, RP_INVALID, "table '%s': no alteration is given", t->options.name);
    st = rp_table_wait_for_log(t, err);
    if (st == RP_OK) st = rp_table_alter_logged(t, change, &lsn, err);
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
}

/* Checks the alteration, and records the current bounds. */
static rp_status begin_altering(rp_table *t, rp_altering *a, rp_error *err)
{
    rp_table_options before;
    rp_status st;

    rp_mutex_lock(&t->mu);
    before = t->options;
    rp_mutex_unlock(&t->mu);
    st = check(&before, &a->change, err);
    if (st != RP_OK) return st;
    a->max_size = a->lowered_size = before.max_size;
    a->max_bytes = a->lowered_bytes = before.max_bytes;
    a->has_begun = true;
    return RP_OK;
}

rp_status rp_table_alter_step(rp_table *t, rp_altering *a, uint64_t *lsn, rp_error *err)
{
    rp_status st = a->has_begun ? RP_OK : begin_altering(t, a, err);
    rp_table_options to;

    *lsn = 0;
    assert(!a->is_done);
    if (st != RP_OK) return st;
    rp_mutex_lock(&t->mu);
    to = t->options;
    apply(&to, &a->change);
    if (t->closed) {
        st = rp_table_refuse_closed(t, err);
    } else if (rp_events_reserve_locked(t, RP_BLOCK) != RP_OK) {
        st = rp_fail_memory(err, RP_BLOCK * sizeof(rp_event));
        take_back_locked(t, a);
    } else {
        a->is_done = shrink_locked(t, &to);
        if (a->is_done) {
            commit_locked(t, &a->change);
            tell_locked(t, &a->change);
        } else {
            log_bounds_locked(t);
        }
        a->lowered_size = t->options.max_size;
        a->lowered_bytes = t->options.max_bytes;
    }
    *lsn = t->log_buffer.lsn;
    rp_table_unlock(t);
    return st;
}

void rp_table_alter_give_up(rp_table *t, rp_altering *a)
{
    if (!a->has_begun || a->is_done) return;
    rp_mutex_lock(&t->mu);
    if (!t->closed) take_back_locked(t, a);
    rp_table_unlock(t);
}

rp_status rp_table_alter_logged(rp_table *t, const rp_table_alteration *change, uint64_t *lsn,
                                rp_error *err)
{
    rp_altering altering = {.change = *change};
    rp_status st = RP_OK;

    while (st == RP_OK && !altering.is_done) st = rp_table_alter_step(t, &altering, lsn, err);
    return st;
}

rp_status rp_table_set_paused_logged(rp_table *t, uint32_t sides, bool paused, uint64_t *lsn,
                                     rp_error *err)
{
    rp_log_record change = {.kind = RP_LOGGED_PAUSE};
    rp_status st = RP_OK;

    *lsn = 0;
    if (sides == 0 || (sides & ~(uint32_t)(RP_SIDE_INSERTS | RP_SIDE_SAMPLES)) != 0)
        return rp_fail(err, RP_INVALID,
                       "table '%s': the sides must be 1 (inserts), 2 (samples) or 3, got %u",
                       t->options.name, sides);
    rp_mutex_lock(&t->mu);
    if (t->closed)
        st = rp_table_refuse_closed(t, err);
    else
        change.paused = t->paused = paused ? t->paused | sides : t->paused & ~sides;
    if (st == RP_OK && rp_table_log_of(t) != NULL) rp_log_locked(t, &change);
    *lsn = t->log_buffer.lsn;
    rp_table_unlock(t); /* resumes parked operations */
    return st;
}

static rp_status set_paused(rp_table *t, uint32_t sides, bool paused, rp_error *err)
{
    rp_status st = rp_table_wait_for_log(t, err);
    uint64_t lsn = 0;

    if (st == RP_OK) st = rp_table_set_paused_logged(t, sides, paused, &lsn, err);
    return rp_table_wait_durable(t, st, lsn, rp_wait_forever(), err);
}

rp_status rp_table_pause(rp_table *t, uint32_t sides, rp_error *err)
{
    return set_paused(t, sides, true, err);
}

rp_status rp_table_resume(rp_table *t, uint32_t sides, rp_error *err)
{
    return set_paused(t, sides, false, err);
}
