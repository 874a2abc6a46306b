/* SPDX-License-Identifier: Apache-2.0 */
/* Stacking on several threads.
 *
 * Units are numbered, column by column, and handed out by an atomic counter. The caller returns
 * when all units are done, not when all helpers have run. A late helper finds no unit left,
 * touches nothing else and drops its reference to the work. So the objects that the work points
 * to need to live only as long as the call. */
#include "client/sampler/batch_decode.h"

#include <assert.h>
#include <stdatomic.h>

#include "chunk/decoder.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/refcount.h"

enum {
    UNIT_BYTES = 256 << 10,   /* decoded by one unit, about */
    HELPED_BYTES = 512 << 10, /* one helper is woken for each so many bytes */
    CACHE_BYTES = 4 << 20,    /* of a decoder */
    LARGE_BYTES = 8 << 20,    /* of a whole batch: more than the private cache of a core */
    MAX_HELPERS = 64,
};

struct rp_stack_pool {
    rp_refcount refs;
    rp_allocator alloc;
    rp_runtime *runtime;
    size_t helpers;
    rp_mutex mu; /* rank 82 */
    rp_decoder *free[MAX_HELPERS + 1] RP_GUARDED_BY(mu);
    size_t free_count RP_GUARDED_BY(mu);
};

rp_status rp_stack_pool_new(const rp_allocator *alloc, rp_runtime *runtime, size_t helpers,
                            rp_stack_pool **out)
{
    rp_stack_pool *p = rp_alloc_zero(alloc, sizeof *p);
    size_t workers = rp_runtime_workers(runtime);

    if (p == NULL) return RP_NO_RESOURCE;
    rp_refcount_init(&p->refs);
    p->alloc = *alloc;
    p->runtime = runtime;
    p->helpers = helpers == 0 || helpers > workers ? workers : helpers;
    if (p->helpers > MAX_HELPERS) p->helpers = MAX_HELPERS;
    rp_mutex_init(&p->mu, RP_RANK_SAMPLER);
    *out = p;
    return RP_OK;
}

rp_stack_pool *rp_stack_pool_ref(rp_stack_pool *pool)
{
    rp_refcount_inc(&pool->refs);
    return pool;
}

void rp_stack_pool_unref(rp_stack_pool *p)
{
    rp_allocator alloc;

    if (p == NULL || !rp_refcount_dec(&p->refs)) return;
    alloc = p->alloc;
    for (size_t i = 0; i < p->free_count; i++) rp_decoder_free(p->free[i]);
    rp_mutex_deinit(&p->mu);
    rp_release(&alloc, p, sizeof *p);
}

static rp_status take_decoder(rp_stack_pool *p, bool is_large, rp_decoder **out)
{
    rp_status st = RP_OK;

    *out = NULL;
    rp_mutex_lock(&p->mu);
    if (p->free_count > 0) *out = p->free[--p->free_count];
    rp_mutex_unlock(&p->mu);
    if (*out == NULL) st = rp_decoder_new(&p->alloc, CACHE_BYTES, out);
    if (st == RP_OK) rp_decoder_set_large(*out, is_large);
    return st;
}

static void give_decoder(rp_stack_pool *p, rp_decoder *d)
{
    bool is_kept = false;

    rp_mutex_lock(&p->mu);
    if (p->free_count <= p->helpers) {
        p->free[p->free_count++] = d;
        is_kept = true;
    }
    rp_mutex_unlock(&p->mu);
    if (!is_kept) rp_decoder_free(d);
}

typedef struct work work;

typedef struct helper {
    rp_job job; /* first */
    work *work;
} helper;

struct work {
    rp_refcount refs; /* the caller's, and one for each helper */
    rp_allocator alloc;
    size_t unit_count;
    atomic_size_t next; /* unit; relaxed: units do not change once threads share the work */
    /* borrowed from the caller, valid until all units are done */
    rp_stack_pool *pool;
    const rp_trajectory *const *trajectories;
    size_t count;
    const rp_stack_column *columns;
    size_t column_count;
    bool is_large;

    rp_mutex mu; /* rank 82 */
    rp_cond cv;
    size_t done RP_GUARDED_BY(mu); /* units */
    rp_status status RP_GUARDED_BY(mu);
    size_t failed_unit RP_GUARDED_BY(mu); /* the first in order, so that the error does not
                                             depend on the threads */
    rp_error error RP_GUARDED_BY(mu);

    size_t helper_count;
    helper helpers[];
};

static size_t items_per_unit(const rp_stack_column *c, size_t count)
{
    size_t n = c->item_bytes > 0 ? UNIT_BYTES / c->item_bytes : count;

    if (n > count) n = count;
    return n > 0 ? n : 1;
}

static size_t units_of(const rp_stack_column *c, size_t count)
{
    size_t n = items_per_unit(c, count);

    return (count + n - 1) / n;
}

/* Memory for consecutive items, without gaps. */
typedef struct target {
    uint8_t *dst;
    size_t bytes;
} target;

/* Decodes `count` items from `first` on into consecutive memory. */
static rp_status stack(const work *w, rp_decoder *d, const rp_stack_column *c, size_t first,
                       size_t count, target to, rp_error *err)
{
    const rp_trajectory *const *t = w->trajectories + first;

    assert(first + count <= w->count);
    if (c->strings)
        return rp_decoder_stack_strings(d, t, count, c->column, (rp_string *)(void *)to.dst,
                                        to.bytes / sizeof(rp_string), err);
    return rp_decoder_stack(d, t, count, c->column, to.dst, to.bytes, err);
}

static rp_status stack_range(const work *w, rp_decoder *d, const rp_stack_column *c,
                             size_t first, size_t count, rp_error *err)
{
    rp_status st = RP_OK;

    if (c->lengths == NULL && c->offsets == NULL)
        return stack(w, d, c, first, count,
                     (target){c->dst + first * c->item_bytes, count * c->item_bytes}, err);
    for (size_t i = first; st == RP_OK && i < first + count; i++) {
        if (c->offsets != NULL) {
            size_t from = (size_t)c->offsets[i] * c->row_bytes;
            size_t end = (size_t)c->offsets[i + 1] * c->row_bytes;

            assert(from <= end);
            st = stack(w, d, c, i, 1, (target){c->dst + from, end - from}, err);
        } else {
            uint8_t *dst = c->dst + i * c->item_bytes;
            size_t used = (size_t)c->lengths[i] * c->row_bytes;

            assert(used <= c->item_bytes);
            st = stack(w, d, c, i, 1, (target){dst, used}, err);
            memset(dst + used, 0, c->item_bytes - used);
        }
    }
    return st;
}

static rp_status run_unit(const work *w, rp_decoder *d, size_t unit, rp_error *err)
{
    const rp_stack_column *c = w->columns;
    size_t per_unit, first, count;

    for (; unit >= units_of(c, w->count); c++) unit -= units_of(c, w->count);
    per_unit = items_per_unit(c, w->count);
    first = unit * per_unit;
    count = w->count - first < per_unit ? w->count - first : per_unit;
    return stack_range(w, d, c, first, count, err);
}

static void note(work *w, size_t unit, rp_status st, const rp_error *err)
{
    rp_mutex_lock(&w->mu);
    if (st != RP_OK && (w->status == RP_OK || unit < w->failed_unit)) {
        w->status = st;
        w->failed_unit = unit;
        w->error = *err;
    }
    assert(w->done < w->unit_count);
    w->done++;
    if (w->done == w->unit_count) rp_cond_signal(&w->cv);
    rp_mutex_unlock(&w->mu);
}

static bool take_unit(work *w, size_t *unit)
{
    *unit = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
    return *unit < w->unit_count;
}

/* Takes units until there are none. The caller waits for all units, so the decoder is returned
 * to the pool before the last unit is counted as done. */
static void take_part(work *w)
{
    rp_decoder *decoder = NULL;
    rp_stack_pool *pool;
    size_t unit, next;

    if (!take_unit(w, &unit)) return;
    pool = w->pool;
    for (bool more = true; more; unit = next) {
        rp_error err = {.code = RP_OK};
        rp_status st = decoder != NULL ? RP_OK : take_decoder(pool, w->is_large, &decoder);

        if (st != RP_OK)
            (void)rp_fail(&err, st, "batch: no memory for a decoder");
        else
            st = run_unit(w, decoder, unit, &err);
        more = take_unit(w, &next);
        if (!more && decoder != NULL) give_decoder(pool, decoder);
        note(w, unit, st, &err);
    }
}

static void work_unref(work *w)
{
    rp_allocator alloc = w->alloc;

    if (!rp_refcount_dec(&w->refs)) return;
    rp_cond_deinit(&w->cv);
    rp_mutex_deinit(&w->mu);
    rp_release(&alloc, w, sizeof *w + w->helper_count * sizeof *w->helpers);
}

static void help(rp_job *job)
{
    work *w = ((helper *)job)->work;

    take_part(w);
    work_unref(w);
}

static size_t choose_helpers(const rp_stack_pool *pool, size_t units, size_t bytes)
{
    size_t n = bytes / HELPED_BYTES;

    if (n > pool->helpers) n = pool->helpers;
    return n < units ? n : units - 1;
}

static rp_status finish(work *w, rp_error *err)
{
    rp_status st;

    rp_mutex_lock(&w->mu);
    while (w->done < w->unit_count) (void)rp_cond_wait(&w->cv, &w->mu, INT64_MAX);
    st = w->status;
    if (st != RP_OK && err != NULL) *err = w->error;
    rp_mutex_unlock(&w->mu);
    work_unref(w);
    return st;
}

rp_status rp_stack_run(rp_stack_pool *pool, const rp_trajectory *const *trajectories,
                       size_t count, const rp_stack_column *columns, size_t column_count,
                       size_t all_bytes, rp_error *err)
{
    size_t units = 0, bytes = 0, helpers;
    work *w;

    for (size_t i = 0; i < column_count; i++) {
        units += units_of(&columns[i], count);
        bytes += count * columns[i].item_bytes;
    }
    if (units == 0) return RP_OK;
    helpers = all_bytes > 0 ? 0 : choose_helpers(pool, units, bytes);
    w = rp_alloc_zero(&pool->alloc, sizeof *w + helpers * sizeof *w->helpers);
    if (w == NULL) return rp_fail_memory(err, sizeof *w + helpers * sizeof *w->helpers);
    rp_refcount_init(&w->refs);
    w->alloc = pool->alloc;
    w->unit_count = units;
    atomic_init(&w->next, 0);
    w->pool = pool;
    w->trajectories = trajectories;
    w->count = count;
    w->columns = columns;
    w->column_count = column_count;
    w->is_large = bytes >= LARGE_BYTES || all_bytes >= LARGE_BYTES;
    rp_mutex_init(&w->mu, RP_RANK_SAMPLER);
    rp_cond_init(&w->cv);
    w->helper_count = helpers;
    rp_refcount_add(&w->refs, (uint32_t)helpers);
    for (size_t i = 0; i < helpers; i++) {
        w->helpers[i] = (helper){.job.run = help, .work = w};
        rp_runtime_submit(pool->runtime, &w->helpers[i].job);
    }
    take_part(w);
    return finish(w, err);
}
