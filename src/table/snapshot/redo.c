/* SPDX-License-Identifier: Apache-2.0 */
/* Repeating logged changes: the same steps in the same order by the same functions, but without
 * consulting the rate limiter and without events. Records are untrusted: every number is
 * checked before it is used. */
#include <assert.h>

#include "chunk/trajectory.h"
#include "table/operation/operation.h"
#include "util/error.h"
#include "util/verify.h"

/* Reclaims retired slots, oldest first, until `left` are left. False if there are fewer. */
static bool reclaim(rp_table *t, size_t left) RP_EXCLUDES(t->mu)
{
    rp_retired gone[RP_BLOCK];
    size_t n = 1, too_many;
    bool ok = true;

    while (n > 0) {
        rp_mutex_lock(&t->mu);
        ok = t->slots.retired >= left;
        too_many = ok ? t->slots.retired - left : 0;
        n = rp_slots_reclaim(&t->slots, gone, too_many < RP_BLOCK ? too_many : RP_BLOCK);
        rp_mutex_unlock(&t->mu);
        for (size_t i = 0; i < n; i++)
            rp_trajectory_unref_many(gone[i].trajectory, gone[i].references);
    }
    return ok;
}

void rp_table_redo_end(rp_table *t)
{
    (void)reclaim(t, 0);
}

static rp_status evict_locked(rp_table *t, size_t count, rp_error *err) RP_REQUIRES(t->mu)
{
    if (count > t->slots.live)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': %zu evictions, with %zu items",
                       t->options.name, count, t->slots.live);
    for (size_t i = 0; i < count; i++) rp_table_evict_locked(t);
    return RP_OK;
}

/* The caller has reclaimed all retired slots. */
static rp_status renumber_locked(rp_table *t, rp_error *err) RP_REQUIRES(t->mu)
{
    rp_indexes spent;

    if (t->slots.live > 0)
        return rp_fail(err, RP_CORRUPT,
                       "table '%.60s': slots are numbered from 0 again, with %zu items in them",
                       t->options.name, t->slots.live);
    rp_table_empty_indexes_locked(t, &spent);
    rp_indexes_free(&spent);
    return RP_OK;
}

static rp_status pause_locked(rp_table *t, uint32_t paused, rp_error *err) RP_REQUIRES(t->mu)
{
    if ((paused & ~(uint32_t)(RP_SIDE_INSERTS | RP_SIDE_SAMPLES)) != 0)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': sides %#x are not all known",
                       t->options.name, paused);
    t->paused = paused;
    return RP_OK;
}

static rp_status redo_one_locked(rp_table *t, const rp_inserted *in, rp_prepared *p,
                                 int64_t wall_ns, rp_error *err) RP_REQUIRES(t->mu)
{
    rp_insert item = {.key = in->key, .times_sampled = in->times_sampled};
    uint32_t slot = rp_table_find_locked(t, in->key, p->tag);

    if ((slot != RP_MAP_NONE) != (in->trajectory == NULL))
        return rp_fail(err, RP_CORRUPT, "table '%.60s': insert of key %llu, which is %s",
                       t->options.name, (unsigned long long)in->key,
                       slot != RP_MAP_NONE ? "there already" : "not there to be updated");
    if (slot != RP_MAP_NONE) {
        rp_table_set_priority_locked(t, slot, &p->weighed);
        return RP_OK;
    }
    if (in->evicted > t->slots.live)
        return rp_fail(err, RP_CORRUPT,
                       "table '%.60s': insert of key %llu evicts %u items, and there are %zu",
                       t->options.name, (unsigned long long)in->key, in->evicted,
                       t->slots.live);
    rp_account_add(&t->account, in->trajectory); /* first, as in fit_locked() */
    for (uint32_t i = 0; i < in->evicted; i++) rp_table_evict_locked(t);
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_insert_link_locked(t, &item, p, wall_ns);
    rp_table_count_out_locked(t, SIZE_MAX);
    return RP_OK;
}

static rp_status prepare_redo(const rp_table *t, const rp_inserted *in, rp_prepared *p,
                              rp_error *err)
{
    rp_error why;

    p->tag = rp_map_tag(&t->keys, in->key);
    p->trajectory = NULL;
    if (in->times_sampled < 0)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': key %llu was sampled %d times",
                       t->options.name, (unsigned long long)in->key, in->times_sampled);
    if (rp_table_weigh(t, in->priority, &p->weighed, &why) != RP_OK)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': insert of key %llu: %.120s",
                       t->options.name, (unsigned long long)in->key, why.text);
    if (in->trajectory == NULL) return RP_OK;
    if ((t->options.signature != NULL &&
         rp_trajectory_check(in->trajectory, t->options.signature, &why) != RP_OK) ||
        rp_budget_claim(t->account.budget, in->trajectory, &why) != RP_OK)
        return rp_fail(err, RP_CORRUPT, "table '%.60s': insert of key %llu: %.120s",
                       t->options.name, (unsigned long long)in->key, why.text);
    p->trajectory = rp_trajectory_ref(in->trajectory);
    return RP_OK;
}

/* One item at a time: reserving for each item has the same result as for a block. */
static rp_status redo_insert_locked(rp_table *t, const rp_log_record *change, rp_error *err)
    RP_REQUIRES(t->mu)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < change->count && st == RP_OK; i++) {
        const rp_inserted *in = &change->inserted[i];
        rp_insert item = {.trajectory = in->trajectory};
        rp_prepared p;

        st = prepare_redo(t, in, &p, err);
        if (st != RP_OK) return st;
        if (in->trajectory != NULL && rp_insert_reserve_locked(t, &item, 1) != RP_OK)
            st = rp_fail(err, RP_NO_RESOURCE, "table '%.60s': out of memory", t->options.name);
        if (st == RP_OK) st = redo_one_locked(t, in, &p, change->wall_ns, err);
        rp_trajectory_unref(p.trajectory); /* NULL if the table took it */
    }
    return st;
}

static rp_status change_locked(rp_table *t, const rp_log_record *change, rp_error *err)
    RP_REQUIRES(t->mu)
{
    switch (change->kind) {
    case RP_LOGGED_INSERT: return redo_insert_locked(t, change, err);
    case RP_LOGGED_SAMPLE: return rp_sample_redo_locked(t, change, err);
    case RP_LOGGED_UPDATE: return rp_update_redo_locked(t, change, err);
    case RP_LOGGED_DELETE: return rp_delete_redo_locked(t, change, err);
    case RP_LOGGED_EVICT: return evict_locked(t, change->count, err);
    case RP_LOGGED_RESET: rp_reset_redo_locked(t); return RP_OK;
    case RP_LOGGED_ALTER: return rp_alter_redo_locked(t, change, err);
    case RP_LOGGED_PAUSE: return pause_locked(t, change->paused, err);
    case RP_LOGGED_RENUMBER: return renumber_locked(t, err);
    }
    return rp_fail(err, RP_CORRUPT, "table '%.60s': there is no change %d", t->options.name,
                   (int)change->kind);
}

rp_status rp_table_redo(rp_table *t, const rp_log_record *change, rp_error *err)
{
    rp_status st;

    if (change->kind == RP_LOGGED_INSERT && !reclaim(t, change->dead))
        return rp_fail(err, RP_CORRUPT,
                       "table '%.60s': an insert found %zu items on their way out, and there "
                       "are fewer",
                       t->options.name, change->dead);
    /* Slot numbers restart from 0 only if all slots are free. */
    if (change->kind == RP_LOGGED_RENUMBER) (void)reclaim(t, 0);
    rp_mutex_lock(&t->mu);
    assert(rp_table_log_of(t) == NULL && !t->closed);
    assert(t->inserts.count == 0 && t->samples.count == 0);
    t->events.muted = true;
    st = change_locked(t, change, err);
    t->events.muted = false;
    rp_table_count_out_locked(t, SIZE_MAX);
    rp_account_settle(&t->account, rp_table_spare_locked(t));
    t->account.freed = 0;
    RP_VERIFY(t->slots.capacity, rp_table_check_locked(t));
    rp_mutex_unlock(&t->mu);
    return st;
}
