/* SPDX-License-Identifier: Apache-2.0 */
/* Counters are in shards, one for each loop, aligned to two cache lines, so that loops do not
 * write to each other's lines. The counters of tables are in an array sorted by name. */
#include "server/metrics/metrics.h"

#include <assert.h>
#include <stdlib.h>

#include "util/mem.h"
#include "util/mutex.h"
#include "util/refcount.h"

enum { SHARD_ALIGN = 2 * RP_CACHE_LINE };

struct rp_table_metrics {
    rp_refcount refs;
    rp_allocator alloc;
    size_t loops;
    size_t size_bytes; /* of the whole allocation */
    uint8_t *shards;
    char *name;
};

struct rp_metrics {
    rp_allocator alloc;
    size_t loops;
    uint8_t *shards; /* loops + 1 shards: the last is shared */
    size_t shard_bytes;
    rp_mutex mu;
    rp_table_metrics **tables RP_GUARDED_BY(mu); /* sorted by name; a reference each */
    size_t table_count RP_GUARDED_BY(mu), table_capacity RP_GUARDED_BY(mu);
};

/* The struct has counters only, so that rp_metrics_sum() can treat it as an array. */
static_assert(sizeof(rp_loop_metrics) % sizeof(rp_counter) == 0, "counters only");

static size_t stride_of(size_t bytes)
{
    return (bytes + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
}

rp_status rp_metrics_new(const rp_allocator *alloc, size_t loops, rp_metrics **out)
{
    rp_metrics *metrics = rp_alloc_zero(alloc, sizeof *metrics);

    if (metrics == NULL) return RP_NO_RESOURCE;
    metrics->alloc = *alloc;
    metrics->loops = loops;
    rp_mutex_init(&metrics->mu, RP_RANK_METRICS);
    if (rp_size_add(loops, 1, &metrics->shard_bytes) &&
        rp_size_mul(metrics->shard_bytes, stride_of(sizeof(rp_loop_metrics)),
                    &metrics->shard_bytes))
        metrics->shards = rp_alloc_aligned(alloc, metrics->shard_bytes);
    if (metrics->shards == NULL) {
        rp_metrics_free(metrics);
        return RP_NO_RESOURCE;
    }
    *out = metrics;
    return RP_OK;
}

void rp_metrics_free(rp_metrics *metrics)
{
    rp_allocator alloc;

    if (metrics == NULL) return;
    alloc = metrics->alloc;
    for (size_t i = 0; i < metrics->table_count; i++)
        rp_table_metrics_unref(metrics->tables[i]);
    rp_release(&alloc, metrics->tables, metrics->table_capacity * sizeof *metrics->tables);
    if (metrics->shards != NULL)
        rp_release_aligned(&alloc, metrics->shards, metrics->shard_bytes);
    rp_mutex_deinit(&metrics->mu);
    rp_release(&alloc, metrics, sizeof *metrics);
}

size_t rp_metrics_loops(const rp_metrics *metrics)
{
    return metrics->loops;
}

rp_loop_metrics *rp_metrics_loop(rp_metrics *metrics, size_t loop)
{
    assert(loop <= metrics->loops); /* M2 */
    return (rp_loop_metrics *)(void *)(metrics->shards +
                                       loop * stride_of(sizeof(rp_loop_metrics)));
}

rp_loop_metrics *rp_metrics_shared(rp_metrics *metrics)
{
    return rp_metrics_loop(metrics, metrics->loops);
}

void rp_metrics_sum(rp_metrics *metrics, rp_loop_metrics *out)
{
    rp_counter *sums = (rp_counter *)(void *)out;

    memset(out, 0, sizeof *out);
    for (size_t loop = 0; loop <= metrics->loops; loop++) {
        const rp_counter *counters = (const rp_counter *)(void *)rp_metrics_loop(metrics, loop);

        for (size_t i = 0; i < sizeof *out / sizeof *sums; i++)
            rp_counter_add(&sums[i], rp_counter_get(&counters[i]));
    }
}

/* Makes the counters of a table in one allocation: the header, the shards from the next
 * boundary on, and the name. */
static rp_table_metrics *new_table(const rp_allocator *alloc, size_t loops, const char *name)
{
    size_t head = stride_of(sizeof(rp_table_metrics)), name_bytes = strlen(name) + 1, size;
    rp_table_metrics *table;

    if (!rp_size_mul(loops, stride_of(sizeof(rp_table_counters)), &size) ||
        !rp_size_add(size, head + name_bytes, &size))
        return NULL;
    table = rp_alloc_aligned(alloc, size);
    if (table == NULL) return NULL;
    rp_refcount_init(&table->refs);
    table->alloc = *alloc;
    table->loops = loops;
    table->size_bytes = size;
    table->shards = (uint8_t *)table + head;
    table->name = (char *)table + size - name_bytes;
    memcpy(table->name, name, name_bytes);
    return table;
}

rp_table_metrics *rp_table_metrics_ref(rp_table_metrics *table)
{
    rp_refcount_inc(&table->refs);
    return table;
}

void rp_table_metrics_unref(rp_table_metrics *table)
{
    rp_allocator alloc;

    if (table == NULL || !rp_refcount_dec(&table->refs)) return;
    alloc = table->alloc;
    rp_release_aligned(&alloc, table, table->size_bytes);
}

rp_table_counters *rp_table_metrics_loop(rp_table_metrics *table, size_t loop)
{
    assert(loop < table->loops); /* M2 */
    return (rp_table_counters *)(void *)(table->shards +
                                         loop * stride_of(sizeof(rp_table_counters)));
}

/* Finds the index of a name, or the index to insert it at. True if it is there. */
static bool find_locked(const rp_metrics *metrics, const char *name, size_t *place)
    RP_REQUIRES(metrics->mu)
{
    size_t low = 0, high = metrics->table_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(metrics->tables[middle]->name, name);

        if (order == 0) {
            *place = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return false;
}

/* Adds an entry at `place`. NULL if there is no memory. */
static rp_table_metrics *add_locked(rp_metrics *metrics, const char *name, size_t place)
    RP_REQUIRES(metrics->mu)
{
    size_t count = metrics->table_count;
    rp_table_metrics *table;

    if (count == metrics->table_capacity) {
        size_t capacity = count > 0 ? 2 * count : 8;

        if (!rp_resize_array(&metrics->alloc, &metrics->tables, count, capacity,
                             sizeof *metrics->tables))
            return NULL;
        metrics->table_capacity = capacity;
    }
    table = new_table(&metrics->alloc, metrics->loops, name);
    if (table == NULL) return NULL;
    memmove(metrics->tables + place + 1, metrics->tables + place,
            (count - place) * sizeof *metrics->tables);
    metrics->tables[place] = table;
    metrics->table_count++;
    assert(place == 0 || strcmp(metrics->tables[place - 1]->name, name) < 0); /* M1 */
    assert(place == count || strcmp(metrics->tables[place + 1]->name, name) > 0);
    return table;
}

rp_table_metrics *rp_metrics_table(rp_metrics *metrics, const char *name)
{
    rp_table_metrics *table;
    size_t place;

    rp_mutex_lock(&metrics->mu);
    if (find_locked(metrics, name, &place))
        table = metrics->tables[place];
    else
        table = add_locked(metrics, name, place);
    if (table != NULL) rp_refcount_inc(&table->refs);
    rp_mutex_unlock(&metrics->mu);
    return table;
}

void rp_metrics_forget_table(rp_metrics *metrics, const char *name)
{
    rp_table_metrics *table = NULL;
    size_t place;

    rp_mutex_lock(&metrics->mu);
    if (find_locked(metrics, name, &place)) {
        table = metrics->tables[place];
        memmove(metrics->tables + place, metrics->tables + place + 1,
                (metrics->table_count - place - 1) * sizeof *metrics->tables);
        metrics->table_count--;
    }
    rp_mutex_unlock(&metrics->mu);
    rp_table_metrics_unref(table);
}

void rp_metrics_sum_table(rp_metrics *metrics, const char *name, rp_table_sums *out)
{
    rp_table_metrics *table = NULL;
    size_t place;

    memset(out, 0, sizeof *out);
    rp_mutex_lock(&metrics->mu);
    if (find_locked(metrics, name, &place))
        table = rp_table_metrics_ref(metrics->tables[place]);
    rp_mutex_unlock(&metrics->mu);
    if (table == NULL) return;
    for (size_t loop = 0; loop < table->loops; loop++) {
        const rp_table_counters *c = rp_table_metrics_loop(table, loop);

#define ADD(field, metric, help) out->field += rp_counter_get(&c->field);
        RP_TABLE_COUNTERS(ADD)
#undef ADD
        rp_histogram_add(&out->insert_ns, &c->insert_ns);
        rp_histogram_add(&out->sample_ns, &c->sample_ns);
    }
    rp_table_metrics_unref(table);
}
