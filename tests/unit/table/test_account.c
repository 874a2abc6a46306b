/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and episodes, as the tables of a store show them. */
#include "chunk/keep.h"
#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"
#include "util/rng.h"

enum { CHUNKS = 6 };

typedef struct world {
    rp_test_bed bed;
    rp_chunk *chunks[CHUNKS]; /* two of each episode: 0 0 1 1 2 2 */
    uint64_t cost[CHUNKS];
    rp_table *tables[4];
} world;

static void world_init(world *w, const rp_store_options *options)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    rp_test_bed_init(&w->bed, options);
    for (size_t i = 0; i < CHUNKS; i++) {
        w->chunks[i] = rp_test_try_blob(&w->bed.alloc, 10 + i, i / 2, 40);
        w->cost[i] = rp_chunk_memory(w->chunks[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        rp_table_options o = rp_test_options(names[i], RP_FIFO, RP_FIFO, 1000);
        w->tables[i] = rp_test_bed_table(&w->bed, &o);
    }
}

static void world_deinit(world *w)
{
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(w->chunks[i]);
    rp_test_bed_deinit(&w->bed);
}

/* Inserts an item that refers to chunks first .. first + count - 1. */
static rp_status put(world *w, int table, uint64_t key, size_t first, size_t count)
{
    rp_trajectory *t = rp_test_try_join(&w->bed.alloc, w->chunks + first, count);
    rp_status st = rp_test_try_put(w->tables[table], key, 1, t, &w->bed.err);

    rp_trajectory_unref(t);
    return st;
}

static void take(world *w, int table, uint64_t key)
{
    size_t found;
    assert_ok(rp_table_delete(w->tables[table], &key, 1, &found, NULL));
    assert_int_equal(found, 1);
}

/* What include/reprise/trajectory.h says of an item of `chunks` slices in one column. */
static uint64_t item_cost(uint64_t chunks)
{
    return 248 + 8 * chunks + 8 + 24 * chunks;
}

static uint64_t store_bytes(world *w)
{
    rp_store_info info;
    rp_store_get_info(w->bed.store, &info);
    return info.bytes;
}

static uint64_t table_bytes(world *w, int table)
{
    return rp_test_info_of(w->tables[table]).bytes;
}

static void chunk_shared_by_items_counts_once(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);

    assert_ok(put(&w, 0, 1, 0, 2));
    assert_ok(put(&w, 0, 2, 1, 2)); /* shares chunk 1 */
    assert_int_equal(table_bytes(&w, 0), 2 * item_cost(2) + w.cost[0] + w.cost[1] + w.cost[2]);
    take(&w, 0, 1);
    assert_int_equal(table_bytes(&w, 0), item_cost(2) + w.cost[1] + w.cost[2]);
    take(&w, 0, 2);
    assert_int_equal(table_bytes(&w, 0), 0);
    assert_int_equal(store_bytes(&w), 0);

    world_deinit(&w);
}

/* Each further table has entries for the chunk in its maps: issue 20. */
static void chunk_shared_by_tables_counts_once_in_the_store_and_once_in_each(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);

    for (int t = 0; t < 4; t++) assert_ok(put(&w, t, 1, 0, 1)); /* the third and fourth spill */

    assert_int_equal(store_bytes(&w), 4 * item_cost(1) + w.cost[0] + 3 * RP_HOLDER_BYTES);
    for (int t = 0; t < 4; t++) {
        assert_int_equal(table_bytes(&w, t), item_cost(1) + w.cost[0]);
        assert_true(rp_table_check(w.tables[t]));
    }
    world_deinit(&w);
}

/* Whatever order they leave in, each table loses it with its own last item, the store with the
 * last of all. */
static void spilled_chunks_leave_in_any_order(void **state)
{
    (void)state;
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};

    for (size_t o = 0; o < COUNT_OF(orders); o++) {
        world w;
        world_init(&w, NULL);
        for (int t = 0; t < 4; t++)
            for (uint64_t key = 0; key < 3; key++) assert_ok(put(&w, t, key, 0, 1));

        for (size_t i = 0; i < 4; i++) {
            int t = orders[o][i];
            for (uint64_t key = 0; key < 3; key++) {
                uint64_t here = 3 - key, elsewhere = 3 * (3 - i);
                assert_int_equal(table_bytes(&w, t), here * item_cost(1) + w.cost[0]);
                assert_int_equal(store_bytes(&w), (here + elsewhere) * item_cost(1) +
                                                      w.cost[0] + (3 - i) * RP_HOLDER_BYTES);
                take(&w, t, key);
                assert_true(rp_table_check(w.tables[t]));
            }
            assert_int_equal(table_bytes(&w, t), 0);
        }
        assert_int_equal(store_bytes(&w), 0);
        world_deinit(&w);
    }
}

/* A table that spilled keeps counting in its map when an entry of the chunk becomes free. */
static void spilled_table_stays_spilled_when_an_entry_frees_up(void **state)
{
    (void)state;
    world w;
    world_init(&w, NULL);
    for (int t = 0; t < 3; t++) assert_ok(put(&w, t, 1, 0, 1));

    take(&w, 0, 1); /* frees an entry */
    assert_ok(put(&w, 2, 2, 0, 1));
    assert_ok(put(&w, 3, 1, 0, 1)); /* takes the entry */
    take(&w, 2, 1);

    assert_int_equal(table_bytes(&w, 2), item_cost(1) + w.cost[0]);
    take(&w, 2, 2);
    assert_int_equal(table_bytes(&w, 2), 0);
    assert_int_equal(store_bytes(&w), 2 * item_cost(1) + w.cost[0] + RP_HOLDER_BYTES);
    for (int t = 0; t < 4; t++) assert_true(rp_table_check(w.tables[t]));
    world_deinit(&w);
}

static void episodes_are_counted_while_referred_to(void **state)
{
    (void)state;
    world w;
    rp_table_info info;
    world_init(&w, NULL);

    assert_ok(put(&w, 0, 1, 0, 3)); /* episodes 0 and 1 */
    assert_ok(put(&w, 0, 2, 3, 2)); /* 1 and 2 */
    info = rp_test_info_of(w.tables[0]);
    assert_true(info.episodes == 3 && info.deleted_episodes == 0);
    take(&w, 0, 1);
    info = rp_test_info_of(w.tables[0]);
    assert_true(info.episodes == 2 && info.deleted_episodes == 1);
    assert_ok(put(&w, 0, 3, 0, 1)); /* an episode that returns is counted again */
    take(&w, 0, 3);
    take(&w, 0, 2);
    info = rp_test_info_of(w.tables[0]);
    assert_true(info.episodes == 0 && info.deleted_episodes == 4);
    assert_ok(rp_table_reset(w.tables[0], NULL));
    assert_int_equal(rp_test_info_of(w.tables[0]).deleted_episodes, 0);

    world_deinit(&w);
}

static void chunk_of_another_store_is_refused(void **state)
{
    (void)state;
    world w;
    rp_test_bed other;
    rp_table_options o = rp_test_options("a", RP_FIFO, RP_FIFO, 10);
    rp_table *t;
    rp_table_info before;
    rp_trajectory *trajectory;
    world_init(&w, NULL);
    rp_test_bed_init(&other, NULL);
    t = rp_test_bed_table(&other, &o);
    assert_ok(put(&w, 0, 1, 0, 1));
    before = rp_test_info_of(t);
    trajectory = rp_test_try_join(&w.bed.alloc, w.chunks, 2);

    assert_fails(rp_test_try_put(t, 1, 1, trajectory, &other.err), RP_INVALID, &other.err,
                 "chunk 10 is in use by another store");

    assert_unchanged(t, &before);
    rp_trajectory_unref(trajectory);
    world_deinit(&w);
    rp_test_bed_deinit(&other);
}

static void store_without_a_limit_counts_as_one_with(void **state)
{
    (void)state;
    for (uint64_t limit = 0; limit <= 1 << 20; limit += 1 << 20) {
        world w;
        rp_rng rng;
        bool there[4][8] = {{false}};
        size_t first[4][8] = {{0}};
        world_init(&w, &(rp_store_options){.max_bytes = limit});
        rp_rng_init(&rng, 9);

        for (int i = 0; i < 3000; i++) {
            size_t t = rp_rng_below(&rng, 4), key = rp_rng_below(&rng, 8);
            uint64_t in_store = 0;
            if (there[t][key]) {
                take(&w, (int)t, key);
            } else {
                first[t][key] = rp_rng_below(&rng, CHUNKS - 1);
                assert_ok(put(&w, (int)t, key, first[t][key], 2));
            }
            there[t][key] = !there[t][key];
            for (size_t c = 0; c < CHUNKS; c++) {
                bool in[4] = {false};
                uint64_t tables;
                for (size_t j = 0; j < 32; j++)
                    in[j / 8] |= there[j / 8][j % 8] && c - first[j / 8][j % 8] < 2;
                tables = (uint64_t)in[0] + in[1] + in[2] + in[3];
                if (tables > 0) in_store += w.cost[c] + (tables - 1) * RP_HOLDER_BYTES;
            }
            for (size_t j = 0; j < 32; j++) in_store += there[j / 8][j % 8] ? item_cost(2) : 0;
            assert_int_equal(store_bytes(&w), in_store);
        }
        for (int t = 0; t < 4; t++) assert_true(rp_table_check(w.tables[t]));
        world_deinit(&w);
    }
}

static void keep(world *w, size_t chunk)
{
    rp_budget_add_kept(rp_store_budget(w->bed.store), rp_chunk_keep(w->chunks[chunk]));
}

static void unkeep(world *w, size_t chunk)
{
    rp_budget_add_kept(rp_store_budget(w->bed.store), rp_chunk_unkeep(w->chunks[chunk]));
}

static uint64_t kept_bytes(world *w)
{
    return rp_budget_kept(rp_store_budget(w->bed.store));
}

/* N1 of chunk/keep.h: in `kept` or in `used`, never in both and never in none. */
static void a_kept_chunk_counts_while_no_table_holds_it(void **state)
{
    (void)state;
    const rp_store_options limited = {.max_bytes = 1 << 20};

    for (int is_limited = 0; is_limited < 2; is_limited++) {
        world w;
        world_init(&w, is_limited ? &limited : NULL);

        keep(&w, 0);
        assert_int_equal(kept_bytes(&w), w.cost[0]);
        assert_ok(put(&w, 0, 1, 0, 2)); /* chunk 1 is not kept */
        assert_int_equal(kept_bytes(&w), 0);
        for (int t = 1; t < 4; t++) assert_ok(put(&w, t, 1, 0, 1)); /* one of them spills */
        for (int t = 0; t < 3; t++) take(&w, t, 1);
        assert_int_equal(kept_bytes(&w), 0);
        assert_int_equal(store_bytes(&w), w.cost[0] + item_cost(1));
        take(&w, 3, 1); /* the last table */
        assert_int_equal(kept_bytes(&w), w.cost[0]);
        assert_int_equal(store_bytes(&w), 0);

        assert_ok(put(&w, 0, 2, 0, 1)); /* a table again, then nobody keeps it */
        keep(&w, 0);                    /* twice */
        unkeep(&w, 0);
        unkeep(&w, 0);
        assert_int_equal(kept_bytes(&w), 0);
        assert_ok(rp_table_reset(w.tables[0], NULL));
        assert_int_equal(kept_bytes(&w), 0);

        keep(&w, 1); /* kept, and released without a table */
        unkeep(&w, 1);
        assert_int_equal(kept_bytes(&w), 0);
        world_deinit(&w);
    }
}

RP_TESTS(account)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunk_shared_by_items_counts_once),
        cmocka_unit_test(chunk_shared_by_tables_counts_once_in_the_store_and_once_in_each),
        cmocka_unit_test(spilled_chunks_leave_in_any_order),
        cmocka_unit_test(spilled_table_stays_spilled_when_an_entry_frees_up),
        cmocka_unit_test(episodes_are_counted_while_referred_to),
        cmocka_unit_test(chunk_of_another_store_is_refused),
        cmocka_unit_test(store_without_a_limit_counts_as_one_with),
        cmocka_unit_test(a_kept_chunk_counts_while_no_table_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
