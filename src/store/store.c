/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a list of tables with what they share. Tables are only ever added, and found by
 * name: there are few, so the list is searched. */
#include "store/store.h"

#include <string.h>

#include "table/account.h"
#include "table/table.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum { MAX_TABLES = 4096 };

struct rp_store {
    /* fixed at birth: no lock */
    rp_allocator alloc;
    uint64_t seed;
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
    rp_budget budget; /* has a lock of its own */

    rp_mutex mu; /* rank 20 */
    rp_rng keys RP_GUARDED_BY(mu);
    rp_table **tables RP_GUARDED_BY(mu);
    size_t table_count RP_GUARDED_BY(mu);
    size_t table_capacity RP_GUARDED_BY(mu);
    bool closed RP_GUARDED_BY(mu);
};

rp_status rp_store_new(const rp_store_options *options, rp_store **out, rp_error *err)
{
    rp_store_options o = {0};
    const rp_allocator *alloc;
    rp_store *s;

    if (options != NULL) o = *options;
    if (o.policy != RP_BUDGET_EVICT && o.policy != RP_BUDGET_BLOCK &&
        o.policy != RP_BUDGET_REJECT)
        return rp_fail(err, RP_INVALID, "store: there is no policy %d", (int)o.policy);
    alloc = o.alloc != NULL ? o.alloc : rp_allocator_default();
    s = rp_alloc_zero(alloc, sizeof *s);
    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->alloc = *alloc;
    s->seed = o.seed != 0 ? o.seed : rp_system_seed();
    s->wall_ns = o.wall_ns != NULL ? o.wall_ns : rp_wall_ns;
    s->wall_ctx = o.wall_ctx;
    rp_budget_init(&s->budget, o.max_bytes, o.policy);
    rp_mutex_init(&s->mu, RP_RANK_STORE);
    rp_rng_init(&s->keys, s->seed);
    *out = s;
    return RP_OK;
}

void rp_store_free(rp_store *s)
{
    rp_allocator alloc;

    if (s == NULL) return;
    rp_store_close(s);
    /* Last made first: an extension may refer to a table that was there before its own. */
    for (size_t i = s->table_count; i-- > 0;) rp_table_free(s->tables[i]);
    alloc = s->alloc;
    rp_release(&alloc, s->tables, s->table_capacity * sizeof(rp_table *));
    rp_budget_deinit(&s->budget);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

void rp_store_close(rp_store *s)
{
    rp_mutex_lock(&s->mu);
    s->closed = true; /* from here on the list does not change */
    rp_mutex_unlock(&s->mu);
    for (size_t i = 0; i < s->table_count; i++) rp_table_close(s->tables[i]);
}

/* FNV-1a: so that each table of a store has a seed of its own, whatever the order they are made
 * in. */
static uint64_t seed_for(const rp_store *s, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name != '\0'; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    hash ^= s->seed;
    hash = rp_splitmix64(&hash);
    return hash;
}

static rp_table *find_locked(rp_store *s, const char *name) RP_REQUIRES(s->mu)
{
    for (size_t i = 0; i < s->table_count; i++)
        if (strcmp(rp_table_name(s->tables[i]), name) == 0) return s->tables[i];
    return NULL;
}

static rp_status reserve_locked(rp_store *s, const char *name, rp_error *err) RP_REQUIRES(s->mu)
{
    size_t capacity = s->table_capacity < 8 ? 8 : 2 * s->table_capacity;

    if (s->closed) return rp_fail(err, RP_PRECONDITION, "store: closed");
    if (name != NULL && find_locked(s, name) != NULL)
        return rp_fail(err, RP_EXISTS, "store: there is a table '%s' already", name);
    if (s->table_count == MAX_TABLES)
        return rp_fail(err, RP_NO_RESOURCE, "store: it has %d tables, the most there can be",
                       MAX_TABLES);
    if (s->table_count < s->table_capacity) return RP_OK;
    if (!rp_resize_array(&s->alloc, &s->tables, s->table_capacity, capacity,
                         sizeof(rp_table *)))
        return rp_fail_memory(err, capacity * sizeof(rp_table *));
    s->table_capacity = capacity;
    return RP_OK;
}

rp_status rp_store_add_table(rp_store *s, const rp_table_options *options, rp_table **out,
                             rp_error *err)
{
    rp_table_birth birth = {&s->budget, 0, 0, s->wall_ns, s->wall_ctx};
    rp_table *table = NULL;
    rp_status st;

    if (options->name != NULL) birth.seed = seed_for(s, options->name);
    rp_mutex_lock(&s->mu);
    st = reserve_locked(s, options->name, err);
    birth.id = (uint16_t)(s->table_count + 1);
    if (st == RP_OK) st = rp_table_new(&s->alloc, options, &birth, &table, err);
    if (st == RP_OK) {
        s->tables[s->table_count++] = table;
        table->next_of_budget = atomic_load(&s->budget.first_table);
        atomic_store(&s->budget.first_table, table);
    }
    rp_mutex_unlock(&s->mu);
    if (st == RP_OK && out != NULL) *out = table;
    return st;
}

rp_table *rp_store_table(rp_store *s, const char *name)
{
    rp_table *table;

    rp_mutex_lock(&s->mu);
    table = find_locked(s, name);
    rp_mutex_unlock(&s->mu);
    return table;
}

size_t rp_store_tables(rp_store *s, rp_table **out, size_t capacity)
{
    size_t count;

    rp_mutex_lock(&s->mu);
    count = s->table_count;
    for (size_t i = 0; i < count && i < capacity; i++) out[i] = s->tables[i];
    rp_mutex_unlock(&s->mu);
    return count;
}

void rp_store_get_info(rp_store *s, rp_store_info *out)
{
    *out = (rp_store_info){
        .max_bytes = s->budget.limit,
        .policy = s->budget.policy,
        .bytes = rp_budget_used(&s->budget),
        .seed = s->seed,
    };
    rp_mutex_lock(&s->mu);
    out->table_count = s->table_count;
    rp_mutex_unlock(&s->mu);
}

uint64_t rp_store_new_key(rp_store *s)
{
    uint64_t key;

    rp_mutex_lock(&s->mu);
    key = rp_rng_next(&s->keys);
    rp_mutex_unlock(&s->mu);
    return key;
}

const rp_allocator *rp_store_allocator(rp_store *s)
{
    return &s->alloc;
}
