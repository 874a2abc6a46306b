/* SPDX-License-Identifier: Apache-2.0 */
/* A set of rollouts: an array in the order of their names. */
#include <assert.h>

#include "rollouts/rollout_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"
#include "util/mem.h"

struct rp_rollout_set {
    rp_allocator alloc;
    uint64_t seed;
    rp_rollout_common common;
    rp_mutex mu; /* rank RP_RANK_ROLLOUT_SET; guards all below */
    rp_rollout_log *log RP_GUARDED_BY(mu);
    bool is_closed RP_GUARDED_BY(mu);
    size_t count RP_GUARDED_BY(mu);
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT] RP_GUARDED_BY(mu);
};

rp_rollout_set *rp_rollout_set_new(const rp_allocator *alloc, uint64_t seed)
{
    rp_rollout_set *set = rp_alloc_zero(alloc, sizeof *set);

    if (set == NULL) return NULL;
    set->alloc = *alloc;
    set->seed = seed;
    rp_mutex_init(&set->mu, RP_RANK_ROLLOUT_SET);
    rp_mutex_init(&set->common.mu, RP_RANK_ROLLOUT_COMMON);
    set->common.most_bytes = rp_rollout_set_default_bytes(0);
    return set;
}

void rp_rollout_set_close(rp_rollout_set *set)
{
    rp_mutex_lock(&set->mu);
    set->is_closed = true;
    for (size_t i = 0; i < set->count; i++) rp_rollouts_close(set->all[i]);
    rp_mutex_unlock(&set->mu);
}

/* Ends what rollouts share with the set. */
static void detach(rp_rollouts *r)
{
    rp_rollouts_close(r);
    rp_mutex_lock(&r->mu);
    if (r->common != NULL) atomic_fetch_sub(&r->common->image_bytes, r->image_bytes);
    r->image_bytes = 0;
    r->common = NULL;
    r->log = NULL;
    rp_mutex_unlock(&r->mu);
}

void rp_rollout_set_free(rp_rollout_set *set)
{
    rp_allocator alloc;

    if (set == NULL) return;
    alloc = set->alloc;
    for (size_t i = 0; i < set->count; i++) {
        detach(set->all[i]);
        rp_rollouts_unref(set->all[i]);
    }
    rp_mutex_deinit(&set->common.mu);
    rp_mutex_deinit(&set->mu);
    rp_release(&alloc, set, sizeof *set);
}

uint64_t rp_rollout_set_default_bytes(uint64_t bytes)
{
    uint64_t half = rp_machine_memory() / 2;

    if (bytes > 0) return bytes / 3;
    return half > 0 && half < RP_ROLLOUT_SET_BYTES ? half : RP_ROLLOUT_SET_BYTES;
}

void rp_rollout_set_set_most_bytes(rp_rollout_set *set, uint64_t most_bytes)
{
    rp_mutex_lock(&set->common.mu);
    set->common.most_bytes = most_bytes;
    rp_mutex_unlock(&set->common.mu);
}

uint64_t rp_rollout_set_most_bytes(rp_rollout_set *set)
{
    uint64_t most_bytes;

    rp_mutex_lock(&set->common.mu);
    most_bytes = set->common.most_bytes;
    rp_mutex_unlock(&set->common.mu);
    return most_bytes;
}

uint64_t rp_rollout_set_image_bytes(rp_rollout_set *set)
{
    return atomic_load(&set->common.image_bytes);
}

void rp_rollout_set_set_log(rp_rollout_set *set, rp_rollout_log *log)
{
    rp_mutex_lock(&set->mu);
    set->log = log;
    for (size_t i = 0; i < set->count; i++) rp_rollouts_set_log(set->all[i], log);
    rp_mutex_unlock(&set->mu);
}

void rp_rollout_set_set_watch(rp_rollout_set *set, void (*watch)(void *ctx, rp_rollouts *r),
                              void *ctx)
{
    set->common.watch = watch;
    set->common.ctx = ctx;
}

/* The index of the first rollouts whose name is not below `name`. */
static size_t index_of(const rp_rollout_set *set, rp_string name, bool *found)
    RP_REQUIRES(set->mu)
{
    size_t i = 0;
    int order = 1;

    while (i < set->count &&
           (order = rp_rollout_compare(rp_rollouts_name(set->all[i]), name)) < 0)
        i++;
    *found = i < set->count && order == 0;
    return i;
}

/* Adds to the sum of max_bytes. */
static rp_status share_bytes(rp_rollout_set *set, uint64_t bytes, rp_error *err)
{
    uint64_t shared, most;
    bool fits;

    rp_mutex_lock(&set->common.mu);
    shared = set->common.bytes;
    most = set->common.most_bytes;
    fits = shared <= most && bytes <= most - shared;
    if (fits) set->common.bytes += bytes;
    rp_mutex_unlock(&set->common.mu);
    if (fits) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   "max_bytes %" PRIu64 " and those of other rollouts, %" PRIu64
                   ", exceed the limit of %" PRIu64
                   " for all rollouts: lower max_bytes, or give the store more memory",
                   bytes, shared, most);
}

/* Adds rollouts and takes the reference. */
static rp_status add_locked(rp_rollout_set *set, rp_rollouts *r, rp_error *err)
    RP_REQUIRES(set->mu)
{
    rp_string name = rp_rollouts_name(r);
    bool found;
    size_t index = index_of(set, name, &found);
    rp_status st;

    assert(set->count <= RP_ROLLOUT_SET_COUNT && r->common == NULL);
    if (set->is_closed) return rp_fail(err, RP_CANCELLED, "the store is closed");
    if (found)
        return rp_fail(err, RP_EXISTS, "there are rollouts '%.*s' already", (int)name.size,
                       name.data);
    if (set->count == RP_ROLLOUT_SET_COUNT)
        return rp_fail(err, RP_NO_RESOURCE, "there are %d rollouts, which is the limit",
                       RP_ROLLOUT_SET_COUNT);
    st = share_bytes(set, r->options->max_bytes, err);
    if (st != RP_OK) return st;
    memmove(set->all + index + 1, set->all + index, (set->count - index) * sizeof set->all[0]);
    set->all[index] = r;
    set->count++;
    rp_mutex_lock(&r->mu);
    r->common = &set->common;
    rp_rollout_count_image(r);
    r->log = set->log;
    r->lsn = 0;
    rp_mutex_unlock(&r->mu);
    return RP_OK;
}

rp_status rp_rollout_set_create(rp_rollout_set *set, rp_string name,
                                const rp_rollout_options *options, rp_rollouts **out,
                                uint64_t *lsn, rp_error *err)
{
    rp_rollouts *r;
    uint64_t number = 0;
    rp_status st = rp_rollouts_new(&set->alloc, set->seed, name, options, &r, err);

    if (st != RP_OK) return st;
    if (out != NULL) rp_refcount_inc(&r->refs);
    rp_mutex_lock(&set->mu);
    st = add_locked(set, r, err);
    if (st == RP_OK && set->log != NULL) {
        number = set->log->created(set->log, r, options);
        rp_mutex_lock(&r->mu);
        r->lsn = number; /* no other thread has found the rollouts yet */
        rp_mutex_unlock(&r->mu);
    }
    rp_mutex_unlock(&set->mu);
    if (st != RP_OK) {
        if (out != NULL) rp_rollouts_unref(r);
        rp_rollouts_unref(r);
        return st;
    }
    if (out != NULL) *out = r;
    if (lsn != NULL) *lsn = number;
    return RP_OK;
}

rp_status rp_rollout_set_add(rp_rollout_set *set, rp_rollouts *r, rp_error *err)
{
    rp_status st;

    rp_mutex_lock(&set->mu);
    st = add_locked(set, r, err);
    if (st == RP_OK) rp_refcount_inc(&r->refs);
    rp_mutex_unlock(&set->mu);
    return st;
}

rp_rollouts *rp_rollout_set_find(rp_rollout_set *set, rp_string name)
{
    rp_rollouts *r = NULL;
    size_t index;
    bool found;

    rp_mutex_lock(&set->mu);
    index = index_of(set, name, &found);
    if (found) r = rp_rollouts_ref(set->all[index]);
    rp_mutex_unlock(&set->mu);
    return r;
}

rp_status rp_rollout_set_drop(rp_rollout_set *set, rp_string name, uint64_t *lsn, rp_error *err)
{
    rp_rollouts *r = NULL;
    uint64_t number = 0, bytes;
    size_t index;
    bool found;

    rp_mutex_lock(&set->mu);
    index = index_of(set, name, &found);
    if (found) {
        r = set->all[index];
        /* From here on no operation is logged, so the record of the drop is the last one. */
        detach(r);
        if (set->log != NULL) number = set->log->dropped(set->log, r);
        set->count--;
        memmove(set->all + index, set->all + index + 1,
                (set->count - index) * sizeof set->all[0]);
        bytes = r->options->max_bytes;
        rp_mutex_lock(&set->common.mu);
        assert(set->common.bytes >= bytes);
        set->common.bytes -= bytes;
        rp_mutex_unlock(&set->common.mu);
    }
    rp_mutex_unlock(&set->mu);
    if (!found) return rp_rollout_set_missing(set, name, err);
    rp_rollouts_unref(r);
    if (lsn != NULL) *lsn = number;
    return RP_OK;
}

size_t rp_rollout_set_list(rp_rollout_set *set, rp_rollouts *out[RP_ROLLOUT_SET_COUNT])
{
    size_t count;

    rp_mutex_lock(&set->mu);
    count = set->count;
    for (size_t i = 0; i < count; i++) out[i] = rp_rollouts_ref(set->all[i]);
    rp_mutex_unlock(&set->mu);
    return count;
}

rp_status rp_rollout_set_missing(rp_rollout_set *set, rp_string name, rp_error *err)
{
    char names[128] = "";
    size_t used = 0;

    rp_mutex_lock(&set->mu);
    for (size_t i = 0; i < set->count && used + 1 < sizeof names; i++) {
        rp_string other = rp_rollout_name_text(set->all[i]->name);

        (void)snprintf(names + used, sizeof names - used, "%s'%.*s'",
                       i > 0 ? ", " : "; there are ", (int)(other.size < 64 ? other.size : 64),
                       other.data);
        used = strlen(names);
    }
    rp_mutex_unlock(&set->mu);
    return rp_fail(err, RP_NOT_FOUND, "there are no rollouts '%.*s'%s",
                   (int)(name.size < 100 ? name.size : 100), name.data, names);
}

bool rp_rollout_set_is_full(rp_rollout_set *set)
{
    bool is_full;

    rp_mutex_lock(&set->mu);
    is_full = set->count == RP_ROLLOUT_SET_COUNT;
    rp_mutex_unlock(&set->mu);
    return is_full;
}
