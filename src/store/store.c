/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a list of tables and the resources that they share. Tables are found by name with
 * a binary search in a second array, which is sorted by name.
 *
 * The store owns a reference to each table in the list. rp_store_drop_table() removes a table
 * from the list, then its items, then drops the store's reference; other references keep an
 * empty, closed table. Tables refer to the budget, not to the store, and may outlive it.
 *
 * Invariants, whenever mu is free:
 *   S1  the names of the tables in the list are unique;
 *   S2  the bit of an id is set exactly for tables in the list and tables being dropped, and no
 *       two of them have the same id;
 *   S3  table_count <= table_capacity, and table_count <= RP_MAX_TABLES;
 *   S4  once the store is closed, the list is constant;
 *   S5  by_name has the tables of the list, in ascending order of their names.
 * Debug builds run is_valid_locked() (S1, S2, S3, S5) after each change of the list. */
#include "store/store.h"

#include <assert.h>
#include <string.h>

#include "rollouts/rollout_set.h"
#include "runs/runs.h"
#include "store/no_table.h"
#include "table/account.h"
#include "table/table_log.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/printable.h"
#include "util/verify.h"

enum {
    IDS_PER_WORD = 64,
    RELIEF_SHARE = 4096, /* 1/4096 of the limit is evicted before waiting inserts are retried */
    RELIEF_STEPS = 64,   /* steps in one call */
};

struct rp_store {
    /* constant after creation: no lock */
    rp_allocator alloc;
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
    rp_budget *budget;        /* has a lock of its own */
    rp_runs *runs;            /* has a lock of its own */
    rp_rollout_set *rollouts; /* has a lock of its own */

    rp_mutex watch_mu; /* rank RP_RANK_ROLLOUT_WATCH */
    rp_rollout_watch *watches RP_GUARDED_BY(watch_mu);
    rp_rollout_journal *rollout_journal RP_GUARDED_BY(watch_mu); /* NULL: none */
    size_t journal_users RP_GUARDED_BY(watch_mu);                /* threads that may use it */
    rp_cond journal_left;                                        /* there are none any more */

    rp_mutex mu;                     /* rank 20 */
    uint64_t seed RP_GUARDED_BY(mu); /* changed only by rp_store_restore() */
    rp_rng keys RP_GUARDED_BY(mu);
    rp_table **tables RP_GUARDED_BY(mu);  /* in the order in which they were added */
    rp_table **by_name RP_GUARDED_BY(mu); /* S5; has the same capacity */
    size_t table_count RP_GUARDED_BY(mu);
    size_t table_capacity RP_GUARDED_BY(mu);
    /* A bit for each id in use: id i + 1 is bit i. */
    uint64_t ids[RP_MAX_TABLES / IDS_PER_WORD] RP_GUARDED_BY(mu);
    rp_table_log *log RP_GUARDED_BY(mu);
    const char *durable RP_GUARDED_BY(mu); /* directory of the durable store; NULL: none */
    bool closed RP_GUARDED_BY(mu);
};

static rp_string string_of(const char *text)
{
    return (rp_string){text, strlen(text)};
}

/* Compares a name with that of a table, in the order of strcmp(). */
static int compare(rp_string name, const rp_table *table)
{
    const char *other = rp_table_name(table);
    size_t size = strlen(other), common = size < name.size ? size : name.size;
    int order = common > 0 ? memcmp(name.data, other, common) : 0;

    return order != 0 ? order : (name.size > size) - (name.size < size);
}

/* Returns how many tables of by_name are before `name`: its index, if there is such a table. */
static size_t place_locked(const rp_store *s, rp_string name) RP_REQUIRES(s->mu)
{
    size_t from = 0, to = s->table_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare(name, s->by_name[middle]) > 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static rp_table *find_locked(const rp_store *s, rp_string name) RP_REQUIRES(s->mu)
{
    size_t i = place_locked(s, name);

    return i < s->table_count && compare(name, s->by_name[i]) == 0 ? s->by_name[i] : NULL;
}

#ifndef NDEBUG
/* Returns true if S1, S2, S3 and S5 hold. S1 follows from S5: names ascend, and each table of
 * the list is found under its name, so there are as many names as tables. */
static bool is_valid_locked(const rp_store *s) RP_REQUIRES(s->mu)
{
    uint64_t seen[RP_MAX_TABLES / IDS_PER_WORD] = {0};

    if (s->table_count > s->table_capacity || s->table_count > RP_MAX_TABLES)
        return false; /* S3 */
    for (size_t i = 0; i < s->table_count; i++) {
        unsigned id = rp_table_id(s->tables[i]) - 1u, word = id / IDS_PER_WORD;
        uint64_t bit = (uint64_t)1 << id % IDS_PER_WORD;

        if (id >= RP_MAX_TABLES) return false;
        if ((s->ids[word] & bit) == 0 || (seen[word] & bit) != 0) return false; /* S2 */
        seen[word] |= bit;
        if (i > 0 &&
            strcmp(rp_table_name(s->by_name[i - 1]), rp_table_name(s->by_name[i])) >= 0)
            return false; /* S5 */
        if (find_locked(s, string_of(rp_table_name(s->tables[i]))) != s->tables[i])
            return false; /* S1, S5 */
    }
    return true;
}
#endif

/* Adds a table to the list, which has room for it. */
static void add_locked(rp_store *s, rp_table *table) RP_REQUIRES(s->mu)
{
    size_t at = place_locked(s, string_of(rp_table_name(table)));

    assert(s->table_count < s->table_capacity); /* S3 */
    memmove(s->by_name + at + 1, s->by_name + at, (s->table_count - at) * sizeof *s->by_name);
    s->by_name[at] = table;
    s->tables[s->table_count++] = table;
    RP_VERIFY(s->table_count, is_valid_locked(s));
}

static void remove_locked(rp_store *s, const rp_table *table) RP_REQUIRES(s->mu)
{
    size_t at = place_locked(s, string_of(rp_table_name(table))), i = 0;

    assert(s->table_count <= s->table_capacity && s->by_name[at] == table); /* S3, S5 */
    while (s->tables[i] != table) i++;
    s->table_count--;
    memmove(s->tables + i, s->tables + i + 1, (s->table_count - i) * sizeof *s->tables);
    memmove(s->by_name + at, s->by_name + at + 1, (s->table_count - at) * sizeof *s->by_name);
    RP_VERIFY(s->table_count, is_valid_locked(s));
}

/* Calls all watches of the store. */
static void on_rollouts_changed(void *ctx, rp_rollouts *rollouts)
{
    rp_store *s = ctx;

    rp_mutex_lock(&s->watch_mu);
    for (rp_rollout_watch *w = s->watches; w != NULL; w = w->next) w->changed(w, rollouts);
    rp_mutex_unlock(&s->watch_mu);
}

void rp_store_wake_rollouts(rp_store *s)
{
    on_rollouts_changed(s, NULL);
}

void rp_store_watch_rollouts(rp_store *s, rp_rollout_watch *watch)
{
    rp_mutex_lock(&s->watch_mu);
    watch->next = s->watches;
    s->watches = watch;
    rp_mutex_unlock(&s->watch_mu);
}

void rp_store_unwatch_rollouts(rp_store *s, rp_rollout_watch *watch)
{
    rp_rollout_watch **at = &s->watches;

    rp_mutex_lock(&s->watch_mu);
    while (*at != NULL && *at != watch) at = &(*at)->next;
    if (*at != NULL) *at = watch->next;
    rp_mutex_unlock(&s->watch_mu);
}

rp_status rp_store_enter_durable(rp_store *s, const char *directory, rp_error *err)
{
    rp_status st = RP_OK;

    rp_mutex_lock(&s->mu);
    if (s->durable != NULL)
        st =
            rp_fail(err, RP_PRECONDITION,
                    "durable: the store is kept in '%.200s' already; close that first, or open "
                    "'%.200s' with another store",
                    s->durable, directory);
    else
        s->durable = directory;
    rp_mutex_unlock(&s->mu);
    return st;
}

void rp_store_leave_durable(rp_store *s)
{
    rp_mutex_lock(&s->mu);
    s->durable = NULL;
    rp_mutex_unlock(&s->mu);
}

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
    s->budget = rp_budget_new(alloc, o.max_bytes, o.policy);
    if (s->budget != NULL) s->runs = rp_runs_new(alloc);
    if (s->runs != NULL) s->rollouts = rp_rollout_set_new(alloc, rp_system_seed());
    if (s->rollouts == NULL) {
        rp_runs_free(s->runs);
        rp_budget_unref(s->budget);
        rp_release(alloc, s, sizeof *s);
        return rp_fail_memory(err, sizeof *s->budget);
    }
    rp_mutex_init(&s->mu, RP_RANK_STORE);
    rp_mutex_init(&s->watch_mu, RP_RANK_ROLLOUT_WATCH);
    rp_cond_init(&s->journal_left);
    rp_rollout_set_set_watch(s->rollouts, on_rollouts_changed, s);
    rp_rollout_set_set_most_bytes(s->rollouts, rp_rollout_set_default_bytes(o.max_bytes));
    rp_rng_init(&s->keys, s->seed);
    *out = s;
    return RP_OK;
}

void rp_store_free(rp_store *s)
{
    rp_allocator alloc;

    if (s == NULL) return;
    rp_store_close(s);
    assert(s->table_count <= s->table_capacity); /* S3 */
    /* In reverse order: an extension may refer to a table made before its own. */
    for (size_t i = s->table_count; i-- > 0;) {
        rp_table_drop(s->tables[i]);
        rp_table_unref(s->tables[i]);
    }
    alloc = s->alloc;
    rp_release(&alloc, s->tables, s->table_capacity * sizeof(rp_table *));
    rp_release(&alloc, s->by_name, s->table_capacity * sizeof(rp_table *));
    rp_budget_unref(s->budget);
    rp_rollout_set_free(s->rollouts);
    rp_runs_free(s->runs);
    assert(s->watches == NULL);
    rp_cond_deinit(&s->journal_left);
    rp_mutex_deinit(&s->watch_mu);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

void rp_store_close(rp_store *s)
{
    rp_mutex_lock(&s->mu);
    s->closed = true; /* from here on the list is constant (S4) */
    rp_mutex_unlock(&s->mu);
    for (size_t i = 0; i < s->table_count; i++) rp_table_close(s->tables[i]);
    rp_rollout_set_close(s->rollouts);
    rp_store_wake_rollouts(s);
}

/* Computes the seed of a table: FNV-1a of its name, mixed with the seed of the store. It does
 * not depend on the order in which tables are made. */
static uint64_t seed_for_locked(const rp_store *s, const char *name) RP_REQUIRES(s->mu)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name != '\0'; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    hash ^= s->seed;
    hash = rp_splitmix64(&hash);
    return hash;
}

/* Allocates an id for a new table. Returns 0 if all are in use. */
static uint16_t take_id_locked(rp_store *s) RP_REQUIRES(s->mu)
{
    for (unsigned i = 0; i < RP_MAX_TABLES; i++) {
        uint64_t bit = (uint64_t)1 << i % IDS_PER_WORD;

        if (s->ids[i / IDS_PER_WORD] & bit) continue;
        s->ids[i / IDS_PER_WORD] |= bit;
        assert(i + 1 <= UINT16_MAX);
        return (uint16_t)(i + 1);
    }
    return 0;
}

static void free_id_locked(rp_store *s, uint16_t id) RP_REQUIRES(s->mu)
{
    unsigned i = id - 1u;

    assert(i < RP_MAX_TABLES);
    assert((s->ids[i / IDS_PER_WORD] >> i % IDS_PER_WORD & 1) != 0); /* S2 */
    s->ids[i / IDS_PER_WORD] &= ~((uint64_t)1 << i % IDS_PER_WORD);
}

static rp_status fail_full(rp_error *err)
{
    return rp_fail(err, RP_NO_RESOURCE, "store: it has %d tables, no more are allowed",
                   RP_MAX_TABLES);
}

/* Checks that a table of this name can be added, and makes room for it. */
static rp_status reserve_locked(rp_store *s, const char *name, rp_error *err) RP_REQUIRES(s->mu)
{
    size_t capacity = s->table_capacity < 8 ? 8 : 2 * s->table_capacity;
    rp_table **by_name;

    if (s->closed) return rp_fail(err, RP_PRECONDITION, "store: closed");
    if (name != NULL && find_locked(s, string_of(name)) != NULL)
        return rp_fail(err, RP_EXISTS, "there is a table '%s' already", name);
    if (s->table_count == RP_MAX_TABLES) return fail_full(err);
    if (s->table_count < s->table_capacity) return RP_OK;
    by_name = rp_alloc_array(&s->alloc, capacity, sizeof(rp_table *));
    if (by_name == NULL || !rp_resize_array(&s->alloc, &s->tables, s->table_capacity, capacity,
                                            sizeof(rp_table *))) {
        rp_release(&s->alloc, by_name, capacity * sizeof(rp_table *));
        return rp_fail_memory(err, 2 * capacity * sizeof(rp_table *));
    }
    if (s->table_count > 0) memcpy(by_name, s->by_name, s->table_count * sizeof(rp_table *));
    rp_release(&s->alloc, s->by_name, s->table_capacity * sizeof(rp_table *));
    s->by_name = by_name;
    s->table_capacity = capacity;
    assert(s->table_count < s->table_capacity); /* S3 */
    return RP_OK;
}

/* Waits, without a lock, until the record `lsn` is durable. */
static rp_status wait_durable(rp_table_log *log, uint64_t lsn, rp_error *err)
{
    return log == NULL ? RP_OK : log->wait(log, lsn, rp_wait_forever(), err);
}

static rp_table_log *log_of(rp_store *s)
{
    rp_table_log *log;

    rp_mutex_lock(&s->mu);
    log = s->log;
    rp_mutex_unlock(&s->mu);
    return log;
}

void rp_store_set_log(rp_store *s, rp_table_log *log)
{
    rp_mutex_lock(&s->mu);
    s->log = log;
    for (size_t i = 0; i < s->table_count; i++) rp_table_set_log(s->tables[i], log);
    rp_mutex_unlock(&s->mu);
}

rp_status rp_store_add_table(rp_store *s, const rp_table_options *options, rp_table **out,
                             rp_error *err)
{
    uint64_t lsn;
    rp_status st;

    if (s == NULL) return rp_fail(err, RP_INVALID, "no store is given");
    if (options == NULL) return rp_fail(err, RP_INVALID, "no table options are given");
    /* Not in rp_store_add_table_logged(), so that directories of earlier versions can be read.
     */
    if (options->name != NULL && !rp_is_utf8(options->name, strlen(options->name)))
        return rp_fail(err, RP_INVALID,
                       "table name '%s' is not UTF-8: network clients could not read it",
                       options->name);
    st = rp_store_add_table_logged(s, options, out, &lsn, err);
    return st == RP_OK && lsn > 0 ? wait_durable(log_of(s), lsn, err) : st;
}

rp_status rp_store_add_table_logged(rp_store *s, const rp_table_options *options,
                                    rp_table **out, uint64_t *lsn, rp_error *err)
{
    rp_table_env env = {s->budget, 0, 0, s->wall_ns, s->wall_ctx};
    rp_table *table = NULL;
    rp_status st;

    *lsn = 0;
    rp_mutex_lock(&s->mu);
    if (options->name != NULL) env.seed = seed_for_locked(s, options->name);
    st = reserve_locked(s, options->name, err);
    if (st == RP_OK && s->log != NULL && s->log->admit != NULL)
        st = s->log->admit(s->log, options, err);
    if (st == RP_OK) env.id = take_id_locked(s);
    if (st == RP_OK && env.id == 0) st = fail_full(err); /* S2: some are still being dropped */
    if (st == RP_OK) st = rp_table_new(&s->alloc, options, &env, &table, err);
    if (st == RP_OK)
        add_locked(s, table);
    else if (env.id != 0)
        free_id_locked(s, env.id);
    if (st == RP_OK && s->log != NULL) { /* logged before another thread can find the table */
        *lsn = s->log->created(s->log, table);
        rp_table_set_log(table, s->log);
    }
    rp_mutex_unlock(&s->mu);
    if (st == RP_OK && out != NULL) *out = table;
    return st;
}

rp_table *rp_store_find_table(rp_store *s, rp_string name)
{
    rp_table *table;

    if (name.data == NULL) return NULL; /* a table has a name */
    rp_mutex_lock(&s->mu);
    table = find_locked(s, name);
    if (table != NULL) (void)rp_table_ref(table); /* alive: the list owns a reference */
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

size_t rp_store_find_tables(rp_store *s, rp_table **out, size_t capacity)
{
    size_t count;

    rp_mutex_lock(&s->mu);
    count = s->table_count;
    for (size_t i = 0; i < count && i < capacity; i++) out[i] = rp_table_ref(s->tables[i]);
    rp_mutex_unlock(&s->mu);
    return count;
}

void rp_store_trim(rp_store *s)
{
    rp_table *tables[RP_MAX_TABLES];
    size_t count = rp_store_find_tables(s, tables, RP_MAX_TABLES);

    for (size_t i = 0; i < count && i < RP_MAX_TABLES; i++) {
        rp_table_info info;
        rp_status st = RP_OK;
        uint64_t lsn;

        rp_table_get_info(tables[i], &info);
        if (info.soft_limit && info.size > info.max_size)
            st = rp_table_trim_logged(tables[i], NULL, &lsn, NULL);
        (void)st; /* closed, or out of memory: the next call tries again */
        rp_table_unref(tables[i]);
    }
}

/* Evicts from the table that uses most memory. Returns the number of items evicted. */
static size_t evict_from_largest(rp_store *s)
{
    rp_table *tables[RP_MAX_TABLES], *largest = NULL;
    size_t count = rp_store_find_tables(s, tables, RP_MAX_TABLES), evicted = 0;
    uint64_t most = 0, bytes = rp_budget_memory_now(s->budget).limit / RELIEF_SHARE + 1;

    assert(count <= RP_MAX_TABLES); /* S3 */
    for (size_t i = 0; i < count; i++) {
        uint64_t has = rp_table_memory(tables[i]);

        if (has > most) largest = tables[i];
        if (has > most) most = has;
    }
    if (largest != NULL) evicted = rp_table_evict_bytes(largest, bytes);
    for (size_t i = 0; i < count; i++) rp_table_unref(tables[i]);
    return evicted;
}

void rp_store_relieve(rp_store *s)
{
    for (int i = 0; i < RELIEF_STEPS && atomic_exchange(&s->budget->wants_relief, false); i++) {
        /* No insert waits any more. A later one sets the flag again after it is counted in
         * `waiting`. */
        if (atomic_load(&s->budget->waiting) == 0) return;
        if (evict_from_largest(s) > 0) continue;
        atomic_store(&s->budget->wants_relief, true); /* the next call tries again */
        return;
    }
}

typedef struct walk {
    const rp_store *store;
    size_t at;
} walk;

static const char *next_name_locked(void *ctx)
{
    walk *w = ctx;

    return w->at < w->store->table_count ? rp_table_name(w->store->tables[w->at++]) : NULL;
}

rp_status rp_store_no_table(rp_store *s, rp_string name, rp_error *err)
{
    if (err == NULL) return RP_NOT_FOUND;
    rp_mutex_lock(&s->mu);
    (void)rp_no_table(name, next_name_locked, &(walk){.store = s}, err);
    rp_mutex_unlock(&s->mu);
    return RP_NOT_FOUND;
}

/* Removes a table from the list. Its id stays in use (S2). */
static rp_status take_locked(rp_store *s, rp_string name, rp_table **out, rp_error *err)
    RP_REQUIRES(s->mu)
{
    rp_table *table = find_locked(s, name);

    if (s->closed) return rp_fail(err, RP_PRECONDITION, "store: closed");
    if (table == NULL) return rp_no_table(name, next_name_locked, &(walk){.store = s}, err);
    remove_locked(s, table);
    *out = table;
    return RP_OK;
}

rp_status rp_store_drop_table(rp_store *s, rp_string name, rp_error *err)
{
    uint64_t lsn;
    rp_status st;

    if (name.data == NULL || name.size == 0)
        return rp_fail(err, RP_INVALID, "no table name is given");
    st = rp_store_drop_table_logged(s, name, &lsn, err);
    return st == RP_OK && lsn > 0 ? wait_durable(log_of(s), lsn, err) : st;
}

rp_status rp_store_drop_table_logged(rp_store *s, rp_string name, uint64_t *lsn, rp_error *err)
{
    rp_table *table = NULL;
    rp_status st;

    rp_mutex_lock(&s->mu);
    *lsn = 0;
    st = take_locked(s, name, &table, err);
    if (table != NULL && s->log != NULL) {
        rp_table_set_log(table, NULL); /* no records after this: the name may be reused */
        *lsn = s->log->dropped(s->log, table);
    }
    rp_mutex_unlock(&s->mu);
    assert((st == RP_OK) == (table != NULL));
    if (table == NULL) return st;
    rp_table_drop(table);
    rp_mutex_lock(&s->mu);
    free_id_locked(s, rp_table_id(table)); /* no chunk has this holder any more */
    rp_mutex_unlock(&s->mu);
    rp_table_unref(table);
    return RP_OK;
}

void rp_store_get_info(rp_store *s, rp_store_info *out)
{
    *out = (rp_store_info){
        .max_bytes = s->budget->limit,
        .policy = s->budget->policy,
        .bytes = rp_budget_used(s->budget),
        .lost_bytes = atomic_load(&s->budget->lost),
    };
    rp_mutex_lock(&s->mu);
    out->seed = s->seed;
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

rp_runs *rp_store_runs(rp_store *s)
{
    return s->runs;
}

rp_rollout_set *rp_store_rollouts(rp_store *s)
{
    return s->rollouts;
}

void rp_store_set_rollout_journal(rp_store *s, rp_rollout_journal *journal)
{
    rp_mutex_lock(&s->watch_mu);
    s->rollout_journal = journal;
    while (journal == NULL && s->journal_users > 0)
        (void)rp_cond_wait(&s->journal_left, &s->watch_mu, RP_FOREVER);
    rp_mutex_unlock(&s->watch_mu);
}

rp_rollout_journal *rp_store_enter_rollout_journal(rp_store *s)
{
    rp_rollout_journal *journal;

    rp_mutex_lock(&s->watch_mu);
    s->journal_users++;
    journal = s->rollout_journal;
    rp_mutex_unlock(&s->watch_mu);
    return journal;
}

void rp_store_leave_rollout_journal(rp_store *s)
{
    rp_mutex_lock(&s->watch_mu);
    if (--s->journal_users == 0) rp_cond_broadcast(&s->journal_left);
    rp_mutex_unlock(&s->watch_mu);
}

rp_budget *rp_store_budget(rp_store *s)
{
    return s->budget;
}

rp_status rp_store_freeze(rp_store *s, rp_store_frozen *body, void *ctx, rp_error *err)
{
    rp_store_state state;
    rp_status st;

    rp_mutex_lock(&s->mu);
    state = (rp_store_state){s->seed, s->keys};
    st = body(ctx, s->tables, s->table_count, &state, err);
    rp_mutex_unlock(&s->mu);
    return st;
}

void rp_store_restore(rp_store *s, const rp_store_state *state)
{
    rp_mutex_lock(&s->mu);
    s->seed = state->seed;
    s->keys = state->keys;
    rp_mutex_unlock(&s->mu);
}
