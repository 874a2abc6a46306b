/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier: which chunks it keeps in memory, and which it reads again. */
#include "support/tier_bed.h"

static void test_table_larger_than_memory(void **state)
{
    enum { ITEMS = 500 }; /* of 8 KiB: four times what may be in memory */
    rp_tier_rig rig;
    rp_tier_info info;

    (void)state;
    set_up(&rig);
    for (uint64_t key = 1; key <= ITEMS; key++) {
        assert_ok(rp_tier_rig_put(&rig, key, ROW, 20000));
        assert_true(rp_tier_rig_info(&rig).resident_bytes <= MEMORY - CACHE);
    }
    info = rp_tier_rig_info(&rig);
    assert_true(info.spilled_bytes > 3 * MEMORY - MEMORY / 4);
    for (uint64_t key = 1; key <= ITEMS; key++) peek_and_compare(&rig, key, ROW);
    info = rp_tier_rig_info(&rig);
    assert_true(info.loads >= 300);
    assert_in_range(info.load_bytes / info.loads, 2 * ROW, 2 * ROW + 100);
    assert_true(info.cached_bytes <= CACHE && info.cached_bytes > CACHE / 2);
    assert_true(rp_tier_check(rig.tier));
    rp_tier_rig_deinit(&rig);
}

static void test_all_bytes_are_counted_for_the_table(void **state)
{
    rp_tier_rig rig;
    rp_store_info info;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    rp_store_get_info(rig.bed.store, &info);
    assert_true(info.bytes >= 299 * 2 * ROW); /* in memory or not */
    assert_true(rp_test_info_of(rig.table).bytes == info.bytes);
    rp_tier_rig_deinit(&rig);
}

static void test_removed_items_free_their_disk_space(void **state)
{
    rp_tier_rig rig;
    rp_tier_info info;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    for (uint64_t key = 1; key < 300; key += 2) peek_and_compare(&rig, key, ROW);
    assert_ok(rp_table_reset(rig.table, &rig.bed.err));
    info = rp_tier_rig_info(&rig);
    assert_int_equal(info.resident_bytes, 0);
    assert_int_equal(info.spilled_bytes, 0);
    assert_int_equal(info.cached_bytes, 0);
    fill(&rig, 1, 20); /* and it goes on */
    peek_and_compare(&rig, 1, ROW);
    rp_tier_rig_deinit(&rig);
}

/* Samples are good whatever becomes of the item and the tier. */
static void test_samples_outlive_table_store_and_tier(void **state)
{
    rp_sample_options options = {.count = 40, .distinct = true};
    rp_sample samples[40];
    rp_tier_rig rig;
    size_t drawn = 0;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    assert_ok(rp_table_sample(rig.table, &options, samples, &drawn, rp_wait_none(), NULL));
    assert_int_equal(drawn, 40);
    assert_ok(rp_table_reset(rig.table, NULL));
    fill(&rig, 1000, 1300);
    rp_tier_free(rig.tier);
    rig.tier = NULL;
    for (size_t i = 0; i < 40; i++)
        rp_tier_rig_assert(samples[i].trajectory, &samples[i].key, 1, ROW);
    rp_samples_release(samples, 40);
    rp_tier_rig_deinit(&rig);
}

/* What is in a reader's hands is not dropped below him; what he gives back is. */
static void test_pinned_chunks_stay(void **state)
{
    uint64_t keys[60];
    rp_sample samples[60];
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 61); /* below the mark: all in memory */
    for (uint64_t i = 0; i < 60; i++) keys[i] = i + 1;
    assert_ok(rp_table_peek(rig.table, keys, 60, samples, NULL, NULL));
    assert_int_equal(rp_tier_rig_info(&rig).loads, 0);
    fill(&rig, 61, 400);
    assert_true(rp_tier_rig_info(&rig).resident_bytes >= 60 * 2 * ROW);
    for (size_t i = 0; i < 60; i++) rp_tier_rig_assert(samples[i].trajectory, &keys[i], 1, ROW);
    rp_samples_release(samples, 60);
    fill(&rig, 400, 700);
    for (uint64_t key = 1; key < 700; key++) peek_and_compare(&rig, key, ROW);
    rp_tier_rig_deinit(&rig);
}

static void test_items_share_chunks_across_tables(void **state)
{
    enum { CHUNKS = 200, LONG = 20 };
    const uint64_t step = rp_test_length(1, 4); /* of the items that are looked at */
    rp_table_options other = rp_test_options("other", RP_FIFO, RP_FIFO, 1 << 20);
    rp_chunk *chunks[CHUNKS], *some[LONG];
    rp_tier_rig rig;
    rp_table *second;

    (void)state;
    set_up(&rig);
    second = rp_test_bed_table(&rig.bed, &other);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        chunks[i] = rp_tier_rig_chunk(&rig.bed.alloc, i, ROW);
        if (i + 1 < LONG) continue;
        for (uint64_t k = 0; k < LONG; k++) some[k] = rp_chunk_ref(chunks[i + 1 - LONG + k]);
        rp_trajectory *trajectory = rp_tier_rig_join(&rig.bed.alloc, some, LONG);
        rp_insert item = {.key = i, .priority = 1, .trajectory = trajectory};
        assert_ok(rp_table_insert(rig.table, &item, 1, rp_wait_ms(20000), NULL, NULL));
        assert_ok(rp_table_insert(second, &item, 1, rp_wait_ms(20000), NULL, NULL));
        rp_trajectory_unref(trajectory);
    }
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(chunks[i]);
    assert_ok(rp_table_reset(rig.table, NULL));
    assert_true(rp_tier_check(rig.tier));
    for (uint64_t i = LONG - 1; i < CHUNKS; i += step) {
        uint64_t keys[LONG];
        rp_sample sample;
        for (uint64_t k = 0; k < LONG; k++) keys[k] = i + 1 - LONG + k;
        assert_ok(rp_table_peek(second, &i, 1, &sample, NULL, NULL));
        rp_tier_rig_assert(sample.trajectory, keys, LONG, ROW);
        rp_samples_release(&sample, 1);
    }
    rp_tier_rig_deinit(&rig);
}

/* What was sampled may be inserted again. */
static void test_samples_are_inserted_again(void **state)
{
    rp_table_options other = rp_test_options("other", RP_FIFO, RP_FIFO, 1 << 20);
    rp_tier_rig rig;
    rp_table *second;

    (void)state;
    set_up(&rig);
    second = rp_test_bed_table(&rig.bed, &other);
    fill(&rig, 1, 200);
    for (uint64_t key = 1; key < 200; key++) {
        rp_sample sample;
        assert_ok(rp_table_peek(rig.table, &key, 1, &sample, NULL, NULL));
        rp_insert item = {.key = key, .priority = 1, .trajectory = sample.trajectory};
        assert_ok(rp_table_insert(second, &item, 1, rp_wait_ms(20000), NULL, NULL));
        rp_samples_release(&sample, 1);
    }
    for (uint64_t key = 199; key > 0; key--) peek_and_compare(&rig, key, ROW);
    assert_ok(rp_table_reset(rig.table, NULL));
    rig.table = second;
    for (uint64_t key = 1; key < 200; key++) peek_and_compare(&rig, key, ROW);
    rp_tier_rig_deinit(&rig);
}

static atomic_int told;

static void count_told(rp_op *op)
{
    (void)op;
    atomic_fetch_add(&told, 1);
}

static void test_operations_wait_for_the_disk(void **state)
{
    rp_sample_options options = {.count = 8, .distinct = true};
    rp_sample samples[8];
    rp_op op = {
        .options = &options, .samples = samples, .until_ns = RP_NOW, .on_done = count_told};
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    atomic_store(&told, 0);
    assert_false(rp_table_start_sample(rig.table, &op)); /* the oldest are on disk */
    assert_false(rp_op_withdraw(&op, RP_CANCELLED));
    rp_tier_rig_await(atomic_load(&told) == 1);
    assert_int_equal(op.status, RP_OK);
    assert_int_equal(op.done, 8);
    for (size_t i = 0; i < 8; i++)
        rp_tier_rig_assert(samples[i].trajectory, &samples[i].key, 1, ROW);
    rp_samples_release(samples, 8);
    assert_true(rp_table_start_sample(rig.table, &op)); /* and now in the cache */
    assert_int_equal(op.done, 8);
    rp_samples_release(samples, 8);
    rp_tier_rig_deinit(&rig);
}

static void test_item_larger_than_memory(void **state)
{
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    assert_int_equal(rp_tier_rig_put(&rig, 1, MEMORY / 2, 1000), RP_NO_RESOURCE);
    assert_ok(rp_tier_rig_put(&rig, 1, ROW, 0));
    rp_tier_rig_deinit(&rig);
}

/* Where memory is not so full that chunks would go to disk by themselves. */
static void test_memory_is_freed_for_a_large_item(void **state)
{
    enum { LARGE = (MEMORY - CACHE) / 10 * 3 }; /* a row: three fifths in all */
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 40); /* two fifths: below the mark */
    assert_int_equal(rp_tier_rig_info(&rig).spilled_bytes, 0);
    for (uint64_t key = 101; key < 106; key++)
        assert_ok_err(rp_tier_rig_put(&rig, key, LARGE, 20000), &rig.bed.err);
    for (uint64_t key = 101; key < 106; key++) peek_and_compare(&rig, key, LARGE);
    for (uint64_t key = 1; key < 40; key++) peek_and_compare(&rig, key, ROW);
    rp_tier_rig_deinit(&rig);
}

/* A large item that is given up, and one for which room cannot be made yet. */
static void test_large_item_waits_for_readers(void **state)
{
    enum { LARGE = (MEMORY - CACHE) / 10 * 3 };
    uint64_t keys[39];
    rp_sample samples[39];
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 40);
    for (uint64_t i = 0; i < 39; i++) keys[i] = i + 1;
    assert_ok(rp_table_peek(rig.table, keys, 39, samples, NULL, NULL));
    assert_int_equal(rp_tier_rig_put(&rig, 101, LARGE, 50), RP_DEADLINE);
    assert_non_null(strstr(rig.bed.err.text, "waits for memory"));
    assert_int_equal(rp_tier_rig_info(&rig).spilled_bytes, 0);
    rp_samples_release(samples, 39);
    assert_ok_err(rp_tier_rig_put(&rig, 102, LARGE, 20000), &rig.bed.err);
    peek_and_compare(&rig, 102, LARGE);
    rp_tier_rig_deinit(&rig);
}

enum { SMALL = 250 }; /* of a row: such a chunk stays in memory */

static void set_up_policy(rp_tier_rig *rig, rp_budget_policy policy, int64_t max_size)
{
    rp_store_options store = {.policy = policy};
    rp_table_options options = rp_test_options("t", RP_FIFO, RP_FIFO, max_size);

    rp_tier_rig_init(rig, &store, &options, MEMORY, CACHE);
}

static void test_small_chunks_are_evicted_issue_20(void **state)
{
    /* Several times what the memory holds. */
    const uint64_t items = rp_test_length(4 * MEMORY / (2 * SMALL), 2000);
    rp_tier_rig rig;
    int64_t size;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_EVICT, 1 << 20);
    for (uint64_t key = 1; key <= items; key++) {
        assert_ok_err(rp_tier_rig_put(&rig, key, SMALL, 0), &rig.bed.err);
        assert_true(rp_tier_rig_info(&rig).resident_bytes <= MEMORY - CACHE);
    }
    size = rp_test_info_of(rig.table).size;
    assert_in_range(size, (MEMORY - CACHE) / (2 * SMALL + 800),
                    (MEMORY - CACHE) / (2 * SMALL + 500));
    for (uint64_t key = items - (uint64_t)size + 1; key <= items; key++)
        peek_and_compare(&rig, key, SMALL);
    assert_int_equal(atomic_load(&rig.troubles), 0);
    rp_tier_rig_deinit(&rig);
}

static void test_small_chunks_are_refused_issue_20(void **state)
{
    rp_tier_rig rig;
    uint64_t key = 1;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_REJECT, 1 << 20);
    while (rp_tier_rig_put(&rig, key, SMALL, 0) == RP_OK) key++;
    assert_int_equal(rig.bed.err.code, RP_NO_RESOURCE);
    assert_non_null(strstr(rig.bed.err.text, "never go to disk"));
    assert_int_equal(rp_test_info_of(rig.table).size, key - 1);
    assert_ok(rp_table_delete(rig.table, (uint64_t[]){1, 2, 3}, 3, NULL, NULL));
    assert_ok(rp_tier_rig_put(&rig, key, SMALL, 0));
    rp_tier_rig_deinit(&rig);
}

static void test_small_chunks_block_and_why_is_true_issue_20(void **state)
{
    rp_tier_rig rig;
    uint64_t key = 1;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_BLOCK, 1 << 20);
    while (rp_tier_rig_put(&rig, key, SMALL, 0) == RP_OK) key++;
    assert_int_equal(rig.bed.err.code, RP_DEADLINE);
    assert_non_null(strstr(rig.bed.err.text, "never go to disk"));
    assert_non_null(strstr(rig.bed.err.text, "deletes or evictions would release it"));
    peek_and_compare(&rig, 1, SMALL);
    assert_ok(rp_table_delete(rig.table, (uint64_t[]){1, 2, 3}, 3, NULL, NULL));
    assert_ok(rp_tier_rig_put(&rig, key, SMALL, 20000)); /* they made room */
    rp_tier_rig_deinit(&rig);
}

/* Memory that is lost counts like what never goes to disk, and not in the store's own limit. */
static void test_lost_memory_counts_in_that_of_the_tier(void **state)
{
    rp_tier_rig rig;
    rp_budget *budget;
    uint64_t key = 1;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_BLOCK, 1 << 20);
    budget = rp_store_budget(rig.bed.store);
    assert_ok(rp_tier_rig_put(&rig, key++, SMALL, 0));
    rp_budget_memory before = rp_budget_memory_now(budget);
    rp_budget_set_lost(budget, MEMORY - CACHE);

    assert_int_equal(before.limit, MEMORY - CACHE);
    assert_int_equal(rp_budget_memory_now(budget).used, before.used);
    assert_int_equal(rp_tier_rig_info(&rig).resident_bytes, before.used + MEMORY - CACHE);
    assert_int_equal(rp_tier_rig_put(&rig, key, SMALL, 0), RP_DEADLINE);
    assert_non_null(strstr(rig.bed.err.text, "lost in memory"));
    rp_budget_set_lost(budget, (MEMORY - CACHE) / 2);
    assert_ok(rp_tier_rig_put(&rig, key++, ROW, 20000)); /* larger ones go to disk as well */
    while (rp_tier_rig_put(&rig, key, SMALL, 0) == RP_OK) key++;
    assert_true(rp_budget_memory_now(budget).used <= (MEMORY - CACHE) / 2);
    rp_budget_set_lost(budget, 0);
    assert_ok(rp_tier_rig_put(&rig, key, SMALL, 20000));
    rp_tier_rig_deinit(&rig);
}

/* A table with few items does not pay for memory that is lost: its insert waits, and the
 * largest table makes room. */
static void test_largest_table_pays_for_lost_memory_of_the_tier(void **state)
{
    rp_table_options options = rp_test_options("few", RP_FIFO, RP_FIFO, 100);
    rp_insert items[3];
    rp_op ops[3];
    rp_tier_rig rig;
    rp_table *large;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_EVICT, 1 << 20);
    large = rig.table;
    for (uint64_t key = 1; rp_test_info_of(large).evictions == 0; key++)
        assert_ok(rp_tier_rig_put(&rig, key, SMALL, 0));
    for (uint64_t key = 1; key < 20; key++)
        assert_ok(rp_table_delete(large, &key, 1, NULL, NULL));
    rp_budget_set_lost(rp_store_budget(rig.bed.store), (MEMORY - CACHE) / 8);
    rig.table = rp_test_bed_table(&rig.bed, &options);
    atomic_store(&told, 0);
    for (int i = 0; i < 3; i++) {
        items[i] = (rp_insert){.key = 100001 + (uint64_t)i, .priority = 1};
        items[i].trajectory = rp_tier_rig_item(&rig.bed.alloc, items[i].key, SMALL);
        ops[i] = (rp_op){
            .items = &items[i], .count = 1, .until_ns = RP_FOREVER, .on_done = count_told};
        if (rp_table_start_insert(rig.table, &ops[i])) count_told(&ops[i]);
    }
    assert_in_range(atomic_load(&told), 0, 2); /* they wait */
    rp_tier_rig_await((rp_store_relieve(rig.bed.store), atomic_load(&told) == 3));
    for (int i = 0; i < 3; i++) rp_trajectory_unref(items[i].trajectory);
    assert_int_equal(rp_test_info_of(rig.table).size, 3);
    assert_true(rp_test_info_of(large).evictions > 1);
    assert_true(rp_table_check(large) && rp_tier_check(rig.tier));
    rp_tier_rig_deinit(&rig);
}

/* A table that is full evicts an item for each new one, whatever the policy. */
static void test_full_table_of_small_chunks_turns_over_issue_20(void **state)
{
    rp_tier_rig rig;
    uint64_t key = 1;
    int64_t size;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_BLOCK, 1 << 20);
    while (rp_tier_rig_put(&rig, key, SMALL, 0) == RP_OK) key++;
    size = (int64_t)key - 20; /* one item may be a little larger than another */
    rp_tier_rig_deinit(&rig);
    set_up_policy(&rig, RP_BUDGET_BLOCK, size);
    for (key = 1; key <= 3 * (uint64_t)size; key++)
        assert_ok_err(rp_tier_rig_put(&rig, key, SMALL, 0), &rig.bed.err);
    assert_int_equal(rp_test_info_of(rig.table).size, size);
    rp_tier_rig_deinit(&rig);
}

/* Another table has filled the memory with what never goes to disk. An item is let in for as
 * many of its own table as free what it takes: their heads, as their chunks lie on disk. */
static void test_memory_filled_by_another_table_is_freed_by_eviction_issue_20(void **state)
{
    rp_table_options options = rp_test_options("small", RP_FIFO, RP_FIFO, 1 << 20);
    rp_store_options store = {.policy = RP_BUDGET_REJECT};
    rp_tier_rig rig;
    rp_table *large;
    uint64_t key = 1000;

    (void)state;
    options.name = "t";
    rp_tier_rig_init(&rig, &store, &options, MEMORY, CACHE);
    fill(&rig, 1, 300);
    large = rig.table;
    options.name = "small";
    rig.table = rp_test_bed_table(&rig.bed, &options);
    while (rp_tier_rig_put(&rig, key, SMALL, 20000) == RP_OK) key++;
    assert_int_equal(rig.bed.err.code, RP_NO_RESOURCE);
    rp_store_budget(rig.bed.store)->policy = RP_BUDGET_EVICT;
    rig.table = large;

    assert_ok_err(rp_tier_rig_put(&rig, 500, ROW, 20000), &rig.bed.err);

    assert_in_range(rp_test_info_of(large).size, 299 - 3 * ROW / 500, 298);
    rp_tier_rig_deinit(&rig);
}

/* Index memory of items that are gone counts in the memory, until the table is empty. */
static void test_idle_indexes_count_in_memory_issue_20(void **state)
{
    rp_tier_rig rig;
    uint64_t key = 1, filled;

    (void)state;
    set_up_policy(&rig, RP_BUDGET_REJECT, 1 << 20);
    while (rp_tier_rig_put(&rig, key, 1, 0) == RP_OK) key++;
    filled = rp_tier_rig_info(&rig).resident_bytes;
    assert_true(filled <= MEMORY - CACHE);
    while (--key > 1) assert_ok(rp_table_delete(rig.table, &key, 1, NULL, NULL));
    assert_in_range(rp_tier_rig_info(&rig).resident_bytes, filled / 16, filled / 2);
    assert_ok(rp_table_delete(rig.table, &key, 1, NULL, NULL));
    assert_int_equal(rp_tier_rig_info(&rig).resident_bytes, 0);
    rp_tier_rig_deinit(&rig);
}

/* The limit of the store's own budget counts all bytes, and its policy stays its own. */
static void test_budget_of_the_store_counts_all_bytes(void **state)
{
    rp_store_options store = {.max_bytes = 2 * MEMORY, .policy = RP_BUDGET_REJECT};
    rp_table_options options = fifo();
    rp_tier_rig rig;
    uint64_t key = 1;
    rp_status st;

    (void)state;
    rp_tier_rig_init(&rig, &store, &options, MEMORY, CACHE);
    while ((st = rp_tier_rig_put(&rig, key, ROW, 20000)) == RP_OK) key++;
    assert_int_equal(st, RP_NO_RESOURCE);
    assert_in_range(key, 2 * MEMORY / (2 * ROW + 1200), 2 * MEMORY / (2 * ROW));
    assert_true(rp_tier_rig_info(&rig).spilled_bytes > MEMORY);
    rp_tier_rig_deinit(&rig);
}

static void test_options(void **state)
{
    rp_tier_options options = {.max_memory = MEMORY};
    rp_tier *tier = NULL;
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    options.store = rig.bed.store;
    options.segments = rig.segments;
    assert_int_equal(rp_tier_new(&options, &tier, &rig.bed.err), RP_PRECONDITION);
    options.max_memory = 0;
    assert_int_equal(rp_tier_new(&options, &tier, &rig.bed.err), RP_INVALID);
    options.max_memory = options.cache_bytes = 100;
    assert_int_equal(rp_tier_new(&options, &tier, &rig.bed.err), RP_INVALID);
    options.cache_bytes = 0;
    options.readers = 1000;
    assert_int_equal(rp_tier_new(&options, &tier, &rig.bed.err), RP_INVALID);
    assert_null(tier);
    rp_tier_rig_deinit(&rig);
}

/* Recovery reads chunks, gives them to the tier, and then to tables: memory never has more than
 * it may, and nothing is written. */
static void test_admitted_chunks(void **state)
{
    enum { ITEMS = 300 };
    rp_tier_rig rig;
    uint64_t calls;

    (void)state;
    set_up(&rig);
    for (uint64_t key = 1; key <= ITEMS; key++) {
        rp_chunk *chunk = rp_tier_rig_chunk(&rig.bed.alloc, key, ROW);
        rp_insert item = {.key = key, .priority = 1};
        rp_disk_location location;

        assert_ok(rp_segments_put_chunk(rig.segments, chunk, &location));
        assert_ok(rp_segments_sync(rig.segments, &rig.bed.err));
        assert_ok(rp_tier_admit(rig.tier, chunk));
        item.trajectory = rp_tier_rig_join(&rig.bed.alloc, &chunk, 1);
        assert_ok(rp_table_insert(rig.table, &item, 1, rp_wait_none(), NULL, &rig.bed.err));
        rp_trajectory_unref(item.trajectory);
    }
    calls = rp_sim_calls(rig.disk);
    assert_true(rp_tier_rig_info(&rig).resident_bytes <=
                (MEMORY - CACHE) / 5 * 3 + ITEMS * 700);
    assert_int_equal(rp_tier_rig_info(&rig).written_bytes, 0);
    for (uint64_t key = 1; key <= ITEMS; key++) assert_ok(peek(&rig, key));
    assert_true(rp_sim_calls(rig.disk) > calls);
    rp_tier_rig_deinit(&rig);
}

RP_TESTS(tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_larger_than_memory),
        cmocka_unit_test(test_all_bytes_are_counted_for_the_table),
        cmocka_unit_test(test_removed_items_free_their_disk_space),
        cmocka_unit_test(test_samples_outlive_table_store_and_tier),
        cmocka_unit_test(test_pinned_chunks_stay),
        cmocka_unit_test(test_items_share_chunks_across_tables),
        cmocka_unit_test(test_samples_are_inserted_again),
        cmocka_unit_test(test_operations_wait_for_the_disk),
        cmocka_unit_test(test_item_larger_than_memory),
        cmocka_unit_test(test_memory_is_freed_for_a_large_item),
        cmocka_unit_test(test_large_item_waits_for_readers),
        cmocka_unit_test(test_small_chunks_are_evicted_issue_20),
        cmocka_unit_test(test_small_chunks_are_refused_issue_20),
        cmocka_unit_test(test_small_chunks_block_and_why_is_true_issue_20),
        cmocka_unit_test(test_lost_memory_counts_in_that_of_the_tier),
        cmocka_unit_test(test_largest_table_pays_for_lost_memory_of_the_tier),
        cmocka_unit_test(test_full_table_of_small_chunks_turns_over_issue_20),
        cmocka_unit_test(test_memory_filled_by_another_table_is_freed_by_eviction_issue_20),
        cmocka_unit_test(test_idle_indexes_count_in_memory_issue_20),
        cmocka_unit_test(test_budget_of_the_store_counts_all_bytes),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_admitted_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
