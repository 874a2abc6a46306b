/* SPDX-License-Identifier: Apache-2.0 */
/* The byte budget compared with the memory that a store really takes, and the cost of enforcing
 * it. */
#include <unistd.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/fixture.h"
#include "table/table.h"
#include "util/rng.h"

enum { HANG_SECONDS = 120 /* only ends what would take hours */ };

typedef struct world {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_store *store;
    uint64_t next_chunk;
    size_t
        turns; /* times that an insert looked at the clock: before it takes the table's lock */
} world;

static int64_t count_turns(void *ctx)
{
    world *w = ctx;

    w->turns++;
    return 1;
}

static void world_init(world *w, uint64_t max_bytes, rp_budget_policy policy)
{
    *w = (world){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED)};
    w->alloc = rp_test_oom_allocator(&w->oom);
    assert_ok(rp_store_new(&(rp_store_options){.alloc = &w->alloc,
                                               .max_bytes = max_bytes,
                                               .policy = policy,
                                               .seed = 7,
                                               .wall_ns = count_turns,
                                               .wall_ctx = w},
                           &w->store, NULL));
}

static void world_deinit(world *w)
{
    rp_store_free(w->store);
    assert_int_equal(w->oom.live, 0);
}

static rp_table *add_table(world *w, const char *name, rp_selector_kind sampler,
                           rp_selector_kind remover, int64_t max_size)
{
    rp_table_options o = rp_test_options(name, sampler, remover, max_size);
    rp_table *t;

    assert_ok(rp_store_add_table(w->store, &o, &t, NULL));
    return t;
}

/* A trajectory of one column: `slices` slices that go round `chunks` new chunks. Returns owned.
 */
static rp_trajectory *make(world *w, size_t chunks, size_t slices, size_t payload)
{
    rp_chunk **made = malloc(chunks * sizeof *made);
    rp_chunk_slice *all = malloc(slices * sizeof *all);
    rp_slices column = {all, slices, false};
    rp_trajectory *t;

    assert_true(made != NULL && all != NULL && slices >= chunks);
    for (size_t i = 0; i < chunks; i++) {
        made[i] = rp_test_try_blob(&w->alloc, w->next_chunk, w->next_chunk, payload);
        w->next_chunk++;
        assert_non_null(made[i]);
    }
    for (size_t i = 0; i < slices; i++)
        all[i] = (rp_chunk_slice){.chunk = made[i % chunks], .length = 1};
    assert_ok(rp_trajectory_new(&w->alloc, &column, 1, &t, NULL));
    for (size_t i = 0; i < chunks; i++) rp_chunk_unref(made[i]);
    free(made);
    free(all);
    return t;
}

static rp_status put(rp_table *t, uint64_t key, rp_trajectory *trajectory)
{
    return rp_test_try_put(t, key, 1, trajectory, NULL);
}

static uint64_t store_bytes(const world *w)
{
    rp_store_info info;

    rp_store_get_info(w->store, &info);
    assert_true(info.bytes <= info.max_bytes);
    return info.bytes;
}

static void slices_count(void **state)
{
    (void)state;
    enum { SLICES = 9000, LIMIT = 4 << 20 };
    world w;
    world_init(&w, LIMIT, RP_BUDGET_EVICT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 1000);
    rp_trajectory *item = make(&w, 1, SLICES, 16);

    for (uint64_t key = 0; key < 100; key++) {
        rp_trajectory *again = rp_trajectory_over(&w.alloc, item, item->chunks);
        assert_non_null(again);
        assert_ok(put(t, key, again));
        rp_trajectory_unref(again);
    }

    assert_true(rp_test_info_of(t).size <= LIMIT / (24 * SLICES));
    assert_true(rp_test_info_of(t).size > 1);
    assert_true(w.oom.live_bytes < LIMIT + (1 << 20));
    rp_trajectory_unref(item);
    world_deinit(&w);
}

/* A random item: tiny, large, of many slices or of many chunks. */
static rp_trajectory *any_item(world *w, rp_rng *rng, size_t largest)
{
    switch (rp_rng_below(rng, 16)) {
    case 0: return make(w, 1, 1, 1 + rp_rng_below(rng, largest / 2));
    case 1: return make(w, 1, 1 + rp_rng_below(rng, largest / 256), 1);
    case 2: {
        size_t chunks = 1 + rp_rng_below(rng, largest / 2048);
        return make(w, chunks, chunks, 1);
    }
    default: return make(w, 1, 1, 1 + rp_rng_below(rng, 40));
    }
}

/* What docs/operations.md promises of the tables: a tenth more than max_bytes, and 256 KiB for
 * each table. */
static void check_memory(const world *w, uint64_t max_bytes, size_t tables)
{
    (void)store_bytes(w);
    if (w->oom.live_bytes > max_bytes + max_bytes / 10 + tables * (256 << 10))
        fail_msg("%zu bytes of memory with max_bytes %zu", (size_t)w->oom.live_bytes,
                 (size_t)max_bytes);
}

static void memory_stays_within_the_budget(void **state)
{
    (void)state;
    static const rp_selector_kind kinds[] = {RP_FIFO,     RP_UNIFORM,     RP_MIN_HEAP,
                                             RP_MAX_HEAP, RP_PRIORITIZED, RP_LIFO};
    static const uint64_t limits[] = {1 << 20, 5 << 20, 16 << 20};
    enum { TABLES = 6 };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int policy = RP_BUDGET_EVICT; policy <= RP_BUDGET_REJECT; policy++) {
            world w;
            rp_table *tables[TABLES];
            rp_rng rng;
            world_init(&w, limits[l], (rp_budget_policy)policy);
            rp_rng_init(&rng, 3 * l + (uint64_t)policy);
            for (size_t i = 0; i < TABLES; i++)
                tables[i] = add_table(&w, (const char *[]){"a", "b", "c", "d", "e", "f"}[i],
                                      kinds[i], kinds[(i + 1) % TABLES], 1 << 20);

            /* In turn each table gets most of what comes, then loses most of what it has. */
            for (size_t i = 0, most = rp_test_scaled(5000, 1000); i < most; i++) {
                rp_table *t = tables[i * 12 / most % TABLES];
                uint64_t keys[64];
                rp_trajectory *item = any_item(&w, &rng, limits[l] / 4);

                if (rp_rng_below(&rng, 20) == 0) t = tables[rp_rng_below(&rng, TABLES)];
                (void)put(t, i, item);
                rp_trajectory_unref(item);
                check_memory(&w, limits[l], TABLES);
                if (rp_rng_below(&rng, 400) == 0) {
                    uint64_t first = i - (i < 3000 ? i : 3000);
                    for (uint64_t at = first; at < i; at += 64) {
                        for (size_t k = 0; k < 64; k++) keys[k] = at + k;
                        for (size_t k = 0; k < TABLES; k++)
                            assert_ok(rp_table_delete(tables[k], keys, 64, NULL, NULL));
                    }
                }
            }
            for (size_t i = 0; i < TABLES; i++) assert_true(rp_table_check(tables[i]));
            world_deinit(&w);
        }
}

static void idle_indexes_of_many_tables_count(void **state)
{
    (void)state;
    enum { LIMIT = 4 << 20, TABLES = 24 };
    world w;
    world_init(&w, LIMIT, RP_BUDGET_REJECT);

    for (size_t i = 0; i < TABLES; i++) { /* each is filled, and loses all but one */
        char name[8];
        (void)snprintf(name, sizeof name, "%zu", i);
        rp_table *t = add_table(&w, name, RP_PRIORITIZED, RP_FIFO, 1 << 20);
        rp_trajectory *item = make(&w, 1, 1, 1);
        uint64_t key = 0;
        while (put(t, key, item) == RP_OK) key++;
        rp_trajectory_unref(item);
        check_memory(&w, LIMIT, i + 1);
        for (uint64_t k = 1; k < key; k++) assert_ok(rp_table_delete(t, &k, 1, NULL, NULL));
    }

    world_deinit(&w);
}

/* Each turn leaves the lock: others get in between. */
static void one_insert_that_evicts_many_takes_turns(void **state)
{
    (void)state;
    enum { ITEMS = 20000 };
    static const bool by_table[] = {false, true};

    for (size_t i = 0; i < COUNT_OF(by_table); i++) {
        world w;
        world_init(&w, by_table[i] ? 0 : (uint64_t)ITEMS * 640 + (1 << 20), RP_BUDGET_EVICT);
        rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 1 << 20);
        rp_table *t;
        if (by_table[i]) o.max_bytes = (uint64_t)ITEMS * 640 + (1 << 20);
        assert_ok(rp_store_add_table(w.store, &o, &t, NULL));
        for (uint64_t key = 0; key < ITEMS; key++) {
            rp_trajectory *tiny = make(&w, 1, 1, 1);
            assert_ok(put(t, key, tiny));
            rp_trajectory_unref(tiny);
        }
        rp_trajectory *large = make(&w, 1, 1, ITEMS * 400);
        int64_t evictions = rp_test_info_of(t).evictions;
        w.turns = 0;

        rp_insert item = {.key = ITEMS, .priority = 1, .trajectory = large};
        assert_ok(rp_table_insert(t, &item, 1, rp_wait_ms(60000), NULL, NULL));

        evictions = rp_test_info_of(t).evictions - evictions;
        assert_true(evictions > ITEMS / 2);
        assert_true(w.turns >= (size_t)evictions / (2 * RP_BLOCK));
        assert_true(rp_table_check(t));
        rp_trajectory_unref(large);
        world_deinit(&w);
    }
}

/* It is first in line between its turns: who comes later waits behind it. */
static void insert_that_evicts_many_is_not_starved(void **state)
{
    (void)state;
    enum { ITEMS = 20000 };
    world w;
    world_init(&w, (uint64_t)ITEMS * 640 + (1 << 20), RP_BUDGET_EVICT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 1 << 20);
    rp_trajectory *tiny = make(&w, 1, 1, 1), *large = make(&w, 1, 1, ITEMS * 400);
    rp_insert item = {.key = ITEMS, .priority = 1, .trajectory = large};
    for (uint64_t key = 0; key < ITEMS; key++) {
        rp_trajectory *own = make(&w, 1, 1, 1);
        assert_ok(put(t, key, own));
        rp_trajectory_unref(own);
    }

    assert_ok(rp_table_insert(t, &item, 1, rp_wait_ms(60000), NULL, NULL));

    assert_int_equal(rp_test_info_of(t).insert_waits.parked, 1);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
    rp_trajectory_unref(tiny);
    rp_trajectory_unref(large);
    world_deinit(&w);
}

/* A bad item behind one of many chunks: neither goes in. */
static void all_items_are_checked_before_the_first_goes_in(void **state)
{
    (void)state;
    world w;
    world_init(&w, 0, RP_BUDGET_EVICT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 10);
    rp_trajectory *wide = make(&w, RP_BLOCK_CHUNKS + 1, RP_BLOCK_CHUNKS + 1, 1);
    rp_insert items[] = {{.key = 1, .priority = 1, .trajectory = wide},
                         {.key = 2, .priority = 1, .trajectory = wide, .times_sampled = -1}};
    size_t inserted = 7;

    assert_int_equal(rp_table_insert(t, items, 2, rp_wait_none(), &inserted, NULL), RP_INVALID);

    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_int_equal(inserted, 0);
    rp_trajectory_unref(wide);
    world_deinit(&w);
}

/* What a table keeps for items that are gone is free when it is dropped, and those who wait for
 * bytes learn of it. */
static void index_of_a_dropped_table_is_free(void **state)
{
    (void)state;
    enum { LIMIT = 12 << 20 };
    world w;
    rp_table_info info;
    world_init(&w, LIMIT, RP_BUDGET_REJECT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 1 << 20), *other;
    rp_trajectory *tiny = make(&w, 1, 1, 1), *large = make(&w, 1, 1, LIMIT - 4000);
    uint64_t key = 0;
    while (put(t, key, tiny) == RP_OK) key++;
    while (--key > 0) assert_ok(rp_table_delete(t, &key, 1, NULL, NULL)); /* one is left */
    other = add_table(&w, "other", RP_FIFO, RP_FIFO, 10);
    assert_true(store_bytes(&w) > (1 << 20));
    assert_int_equal(put(other, 1, large), RP_NO_RESOURCE);
    (void)rp_table_ref(t);

    assert_ok(rp_store_drop_table(w.store, (rp_string){"t", 1}, NULL));

    assert_int_equal(store_bytes(&w), 0);
    assert_ok(put(other, 1, large));
    rp_table_get_info(other, &info);
    assert_int_equal(info.size, 1);
    rp_table_unref(t);
    rp_trajectory_unref(tiny);
    rp_trajectory_unref(large);
    world_deinit(&w);
}

/* Empties a table that has the keys 0 to count - 1. */
static void empty(rp_table *t, size_t way, uint64_t count)
{
    rp_error error;
    rp_sample sample;
    size_t n;

    if (way == 0) assert_ok(rp_table_reset(t, &error));
    for (uint64_t key = 0; way == 1 && key < count; key++)
        assert_ok(rp_table_delete(t, &key, 1, NULL, &error));
    if (way == 2)
        assert_ok(rp_table_alter(
            t,
            &(rp_table_alteration){.which = RP_ALTER_MAX_TIMES_SAMPLED, .max_times_sampled = 1},
            &error));
    for (uint64_t i = 0; way == 2 && i < count; i++) {
        assert_ok(rp_table_sample(t, &(rp_sample_options){.count = 1}, &sample, &n,
                                  rp_wait_none(), &error));
        rp_samples_release(&sample, n);
    }
}

/* However a table loses its items, others get the memory of its indexes. */
static void index_of_an_emptied_table_is_free(void **state)
{
    (void)state;
    enum { LIMIT = 3 << 20 };
    static const rp_selector_kind kinds[] = {RP_FIFO, RP_UNIFORM, RP_MIN_HEAP, RP_PRIORITIZED};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t way = 0; way < 3; way++) {
            world w;
            world_init(&w, LIMIT, RP_BUDGET_REJECT);
            rp_table *t = add_table(&w, "t", kinds[i], kinds[i], 1 << 20);
            rp_table *other = add_table(&w, "other", RP_FIFO, RP_FIFO, 10);
            rp_trajectory *tiny = make(&w, 1, 1, 1), *large = make(&w, 1, 1, LIMIT - 4000);
            uint64_t key = 0;
            while (put(t, key, tiny) == RP_OK) key++;
            assert_true(key > 6000);
            assert_int_equal(put(other, 1, large), RP_NO_RESOURCE);

            empty(t, way, key);

            assert_int_equal(store_bytes(&w), 0);
            check_memory(&w, LIMIT, 2); /* of which `large` takes nearly all */
            assert_true(rp_table_check(t));
            assert_ok(put(other, 1, large)); /* and it works as before */
            assert_ok(rp_table_reset(other, NULL));
            for (key = 0; key < 2000; key++) assert_ok(put(t, key, tiny));
            assert_true(rp_table_check(t));
            rp_trajectory_unref(tiny);
            rp_trajectory_unref(large);
            world_deinit(&w);
        }
}

static void items_of_many_chunks_are_inserted_and_deleted_in_turns(void **state)
{
    (void)state;
    enum { CHUNKS = 5000, ITEMS = 40 };
    world w;
    rp_insert items[ITEMS];
    uint64_t keys[ITEMS];
    size_t found;
    world_init(&w, 0, RP_BUDGET_EVICT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, ITEMS);
    rp_trajectory *wide = make(&w, CHUNKS, CHUNKS, 1);
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (rp_insert){.key = i, .priority = 1, .trajectory = wide};
        keys[i] = i;
    }
    w.turns = 0;

    assert_ok(rp_table_insert(t, items, ITEMS, rp_wait_none(), &found, NULL));
    assert_int_equal(found, ITEMS);
    assert_true(w.turns >= ITEMS * CHUNKS / (RP_BLOCK_CHUNKS + CHUNKS));
    assert_ok(rp_table_delete(t, keys, ITEMS, &found, NULL));
    assert_int_equal(found, ITEMS);
    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_true(t->removed_chunks <= RP_BLOCK_CHUNKS + CHUNKS); /* by the last turn */
    rp_trajectory_unref(wide);
    world_deinit(&w);
}

/* Of both the cost was the product of the two numbers: hours. */
static void many_chunks_against_many_evictions_is_linear(void **state)
{
    (void)state;
    enum { MOST = 150000 };
    const size_t count = rp_test_length(MOST, MOST / 2);
    world w;
    world_init(&w, (uint64_t)1 << 30, RP_BUDGET_EVICT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 1 << 20);
    rp_trajectory *tiny = make(&w, 1, 1, 1), *wide = make(&w, count, count, 1);
    assert_ok(
        rp_table_alter(t,
                       &(rp_table_alteration){.which = RP_ALTER_MAX_BYTES,
                                              .max_bytes = rp_trajectory_cost(wide) + 1000},
                       NULL));
    (void)alarm(HANG_SECONDS);

    for (uint64_t key = 0; key < count; key++) assert_ok(put(t, key, tiny));
    assert_ok(put(t, count, wide));

    (void)alarm(0);
    assert_true(rp_test_info_of(t).evictions > (int64_t)count / 2);
    rp_trajectory_unref(tiny);
    rp_trajectory_unref(wide);
    world_deinit(&w);
}

static void replacing_an_item_of_many_chunks_is_linear(void **state)
{
    (void)state;
    enum { MOST = 150000 };
    const size_t count = rp_test_length(MOST, MOST / 2);
    world w;
    world_init(&w, (uint64_t)count * 600, RP_BUDGET_REJECT);
    rp_table *t = add_table(&w, "t", RP_FIFO, RP_FIFO, 1);
    (void)alarm(HANG_SECONDS);

    for (uint64_t key = 0; key < 3; key++) {
        rp_trajectory *wide = make(&w, count, count, 1);
        assert_ok(put(t, key, wide));
        rp_trajectory_unref(wide);
    }

    (void)alarm(0);
    world_deinit(&w);
}

RP_TESTS(memory_budget)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_count),
        cmocka_unit_test(memory_stays_within_the_budget),
        cmocka_unit_test(idle_indexes_of_many_tables_count),
        cmocka_unit_test(one_insert_that_evicts_many_takes_turns),
        cmocka_unit_test(insert_that_evicts_many_is_not_starved),
        cmocka_unit_test(all_items_are_checked_before_the_first_goes_in),
        cmocka_unit_test(index_of_a_dropped_table_is_free),
        cmocka_unit_test(index_of_an_emptied_table_is_free),
        cmocka_unit_test(items_of_many_chunks_are_inserted_and_deleted_in_turns),
        cmocka_unit_test(many_chunks_against_many_evictions_is_linear),
        cmocka_unit_test(replacing_an_item_of_many_chunks_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
