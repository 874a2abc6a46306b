/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts that do not wait. Samples: test_operation_sample.c. Waiting: test_parked.c,
 * test_blocking.c. */
#include <math.h>

#include "operation_fixture.h"
#include "table/operation/operation.h"

/* Items with keys first, first + 1, ... and priority 1. */
static rp_insert *make_items(uint64_t first, size_t count)
{
    rp_insert *items = calloc(count, sizeof *items);

    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (rp_insert){.key = first + i, .priority = 1, .trajectory = bed.plain};
    return items;
}

static void new_key_becomes_an_item(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_insert item = {.key = 0, .priority = 2.5, .trajectory = bed.plain, .times_sampled = 3};
    bed.wall_ns = 4321;

    insert_all(t, &item, 1);

    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 1 && info.inserts == 1 && info.updates == 0);
    assert_true(info.bytes == rp_trajectory_cost(bed.plain) && info.episodes == 1);
    rp_sample s = rp_test_draw(t);
    assert_true(s.key == 0 && s.priority == 2.5 && s.inserted_at_ns == 4321);
    assert_int_equal(s.times_sampled, 4);                   /* goes on from what was given */
    assert_int_equal(rp_test_info_of(t).unique_samples, 0); /* it was not its first */
}

static void existing_key_only_changes_its_priority(void **state)
{
    (void)state;
    rp_table *t = make(RP_MAX_HEAP, RP_FIFO, 10);
    rp_trajectory *other = rp_test_blob_trajectory(&bed.alloc, 2, 2, 1000);
    rp_insert again = {.key = 7, .priority = 9, .trajectory = other, .times_sampled = 5};
    put(t, 7, 1);
    put(t, 8, 2);
    (void)rp_test_draw(t);
    rp_table_info before = rp_test_info_of(t);
    bed.wall_ns += 50;

    insert_all(t, &again, 1);

    rp_table_info after = rp_test_info_of(t);
    assert_true(after.size == 2 && after.inserts == before.inserts);
    assert_true(after.bytes == before.bytes && after.max_priority == 9);
    rp_sample s;
    rp_sample_options one = {.count = 1};
    size_t drawn;
    assert_ok(rp_table_sample(t, &one, &s, &drawn, rp_wait_none(), NULL));
    assert_true(s.key == 7 && s.priority == 9 && s.times_sampled == 1);
    assert_true(s.inserted_at_ns == bed.wall_ns - 50 && s.trajectory == bed.plain);
    rp_samples_release(&s, 1);
    rp_trajectory_unref(other);
}

static void key_that_comes_twice_in_a_batch_is_one_item(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_insert *items = make_items(1, 3);
    items[2].key = 1;
    items[2].priority = 6;

    insert_all(t, items, 3);

    assert_int_equal(rp_test_info_of(t).size, 2);
    assert_int_equal(rp_test_info_of(t).inserts, 2);
    assert_true(rp_test_draw(t).priority == 6);
    assert_true(rp_table_check(t));
    free(items);
}

static void full_table_evicts_the_pick_of_the_remover(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_MIN_HEAP, 3);
    put(t, 1, 5);
    put(t, 2, 4);
    put(t, 3, 6);

    put(t, 4, 4.5);

    assert_false(rp_test_has_key(t, 2));
    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 3 && info.evictions == 1 && info.deletes == 1 &&
                info.inserts == 4);
}

static void eviction_may_hit_the_new_item_itself(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_MIN_HEAP, 3);
    for (uint64_t key = 1; key <= 3; key++) put(t, key, 5);

    put(t, 4, 1);

    assert_false(rp_test_has_key(t, 4));
    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 3 && info.inserts == 4 &&
                info.deletes == 1); /* counted all the same */
    assert_true(rp_table_check(t));
}

static void lifo_remover_keeps_the_oldest(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_LIFO, 2);

    for (uint64_t key = 1; key <= 9; key++) put(t, key, 1);

    assert_true(rp_test_has_key(t, 1) && rp_test_has_key(t, 2));
    assert_int_equal(rp_test_info_of(t).evictions, 7);
}

static void batches_of_many_blocks_go_in_as_single_inserts_would(void **state)
{
    (void)state;
    static const size_t sizes[] = {255, 256, 257, 4095, 4096, 4097, 10000};

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make(RP_FIFO, RP_FIFO, 300);
        rp_insert *items = make_items(0, sizes[i]);

        insert_all(t, items, sizes[i]);

        rp_table_info info = rp_test_info_of(t);
        assert_int_equal(info.inserts, sizes[i]);
        assert_int_equal(info.size, sizes[i] < 300 ? sizes[i] : 300);
        assert_int_equal(rp_test_draw(t).key, sizes[i] < 300 ? 0 : sizes[i] - 300);
        assert_true(rp_table_check(t));
        free(items);
    }
}

static void inserting_nothing_is_fine(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 300);
    size_t inserted = 5;

    assert_ok(rp_table_insert(t, NULL, 0, rp_wait_none(), &inserted, NULL));

    assert_int_equal(inserted, 0);
}

/* The bad item is the last: none of those before it may have gone in. */
static void bad_item_anywhere_in_a_batch_changes_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 256, 257, 1000};
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 5000);
    put(t, 1u << 20, 1);

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_insert *items = make_items(0, sizes[i]), *last = &items[sizes[i] - 1];
        rp_table_info before = rp_test_info_of(t);
        size_t inserted = 5;

        last->priority = NAN;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), &inserted, &bed.err),
                     RP_INVALID, &bed.err, "NaN");
        assert_int_equal(inserted, 0);
        last->priority = 1;
        last->trajectory = NULL;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), &inserted, &bed.err),
                     RP_INVALID, &bed.err, "it has no trajectory");
        last->trajectory = bed.plain;
        last->times_sampled = -1;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), &inserted, &bed.err),
                     RP_INVALID, &bed.err, "times_sampled must be >= 0, got -1");
        assert_unchanged(t, &before);
        free(items);
    }
}

static void refused_item_is_named(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 256, 1000}, places[] = {0, 200, 900};
    rp_table *t = make(RP_FIFO, RP_FIFO, 5000);

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_insert *items = make_items(0, sizes[i]);
        rp_op op = {.items = items, .count = sizes[i], .until_ns = RP_NOW};
        items[places[i]].priority = NAN;

        assert_true(rp_table_start_insert(t, &op));

        assert_true(op.status == RP_INVALID && op.done == 0);
        assert_int_equal(op.refused, places[i]);
        free(items);
    }
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 256, 257};
    rp_table *t = make(RP_FIFO, RP_FIFO, 5000);
    rp_table_info before = rp_test_info_of(t);

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_insert *items = make_items(0, sizes[i]);
        size_t inserted = 5;

        items[sizes[i] - 1].flags = RP_INSERT_MAX_PRIORITY | 4;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), &inserted, &bed.err),
                     RP_INVALID, &bed.err, "flags 0x5 are not all known");
        assert_int_equal(inserted, 0);
        assert_unchanged(t, &before);
        free(items);
    }
}

/* A chunk belongs to the first store that takes it; one that refuses it has not. */
static void refused_batch_leaves_its_chunks_free_for_another_store(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 256, 300};
    rp_test_bed other;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 5000);
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 5000), *elsewhere;
    rp_test_bed_init(&other, NULL);
    elsewhere = rp_test_bed_table(&other, &o);

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_insert *items = make_items(0, sizes[i]), *last = &items[sizes[i] - 1];
        rp_trajectory *own = rp_test_blob_trajectory(&other.alloc, i, i, 20);
        for (size_t j = 0; j < sizes[i]; j++) items[j].trajectory = own;

        last->priority = NAN;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), NULL, &bed.err),
                     RP_INVALID, &bed.err, "NaN");
        last->priority = 1;
        last->flags = 4;
        assert_fails(rp_table_insert(t, items, sizes[i], rp_wait_none(), NULL, &bed.err),
                     RP_INVALID, &bed.err, "flags");

        rp_test_put(elsewhere, i, 1, own);
        assert_fails(rp_test_try_put(t, i, 1, own, &bed.err), RP_INVALID, &bed.err,
                     "is in use by another store");
        rp_trajectory_unref(own);
        free(items);
    }
    rp_test_bed_deinit(&other);
}

static void too_large_batches_are_refused(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_insert item = {.key = 1, .trajectory = bed.plain};
    rp_sample_options many = {.count = (1 << 20) + 1};
    rp_sample sample;
    size_t n;
    put(t, 1, 1);

    assert_fails(rp_table_insert(t, &item, (1 << 20) + 1, rp_wait_none(), &n, &bed.err),
                 RP_INVALID, &bed.err, "1048577 items in one call, the bound is 1048576");
    assert_fails(rp_table_sample(t, &many, &sample, &n, rp_wait_none(), &bed.err), RP_INVALID,
                 &bed.err, "1048577");
}

static void items_must_match_the_signature(void **state)
{
    (void)state;
    rp_spec column = {"x", RP_UINT8, {.rank = 2, .dims = {-1, 16}}};
    rp_signature *signature = NULL;
    rp_table_options o = rp_test_options("typed", RP_FIFO, RP_FIFO, 10);
    rp_trajectory *other = rp_test_blob_trajectory(&bed.alloc, 2, 2, 17);
    assert_ok(rp_signature_flat(&bed.alloc, &column, 1, &signature, NULL));
    o.signature = signature;
    rp_table *t = rp_test_bed_table(&bed, &o);
    rp_signature_unref(signature);

    put(t, 1, 1);
    rp_table_info before = rp_test_info_of(t);
    assert_fails(rp_test_try_put(t, 2, 1, other, &bed.err), RP_INVALID, &bed.err,
                 "table 'typed': item 0, key 2:");

    assert_unchanged(t, &before);
    rp_trajectory_unref(other);
}

static void limiter_that_refuses_part_of_a_batch_lets_the_rest_in(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    rp_insert *items = make_items(0, 700);
    size_t inserted = 0;
    o.limiter = rp_limiter_queue(500);
    rp_table *t = rp_test_bed_table(&bed, &o);

    assert_fails(rp_table_insert(t, items, 700, rp_wait_none(), &inserted, &bed.err),
                 RP_DEADLINE, &bed.err,
                 "(500 inserts + 1) * 1 - 0 samples = 501 is over max_diff 500");

    assert_int_equal(inserted, 500);
    assert_int_equal(rp_test_info_of(t).size, 500);
    free(items);
}

static void update_of_an_existing_key_waits_like_an_insert(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(2);
    rp_table *t = rp_test_bed_table(&bed, &o);
    put(t, 1, 1);
    put(t, 2, 1);

    assert_int_equal(rp_test_try_put(t, 1, 5, bed.plain, NULL), RP_DEADLINE);

    assert_true(rp_test_draw(t).priority == 1);
}

static void byte_limit_of_the_table_evicts(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 100);
    rp_trajectory *blobs[6];
    for (size_t i = 0; i < 6; i++)
        blobs[i] = rp_test_blob_trajectory(&bed.alloc, 10 + i, 1 + i, i == 5 ? 1500 : 100);
    uint64_t each = rp_trajectory_cost(blobs[0]);
    o.max_bytes = 3 * each;
    rp_table *t = rp_test_bed_table(&bed, &o);

    for (uint64_t key = 0; key < 5; key++) rp_test_put(t, key, 1, blobs[key]);
    assert_int_equal(rp_test_info_of(t).bytes, 3 * each);
    assert_int_equal(rp_test_info_of(t).evictions, 2);
    assert_int_equal(rp_test_draw(t).key, 2);
    rp_test_put(t, 5, 1, blobs[5]); /* one large for all three small ones */
    assert_int_equal(rp_test_info_of(t).size, 1);
    rp_test_put(t, 6, 1, blobs[0]); /* evicts the large one */
    rp_test_put(t, 7, 1, blobs[0]); /* the same chunk counts once: no eviction */
    rp_test_put(t, 8, 1, blobs[0]);
    rp_test_put(t, 9, 1, blobs[0]);
    assert_int_equal(rp_test_info_of(t).size, 4);
    assert_true(rp_test_info_of(t).bytes < 3 * each);
    assert_true(rp_table_check(t));

    for (size_t i = 0; i < 6; i++) rp_trajectory_unref(blobs[i]);
}

static void item_larger_than_the_table_is_refused(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 100);
    uint64_t size = rp_trajectory_cost(bed.plain);
    rp_trajectory *large = rp_test_blob_trajectory(&bed.alloc, 2, 2, 17);
    o.max_bytes = size;
    rp_table *t = rp_test_bed_table(&bed, &o);
    put(t, 1, 1); /* exactly */
    rp_table_info before = rp_test_info_of(t);

    assert_fails(rp_test_try_put(t, 2, 1, large, &bed.err), RP_NO_RESOURCE, &bed.err,
                 "of the whole table");

    assert_unchanged(t, &before);
    rp_trajectory_unref(large);
}

/* What is offered is taken with the item: the fixture counts what is left. */
static void offered_references_are_taken_with_their_items(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    rp_insert items[300];
    size_t inserted = 0;
    o.limiter = rp_limiter_queue(280);
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t i = 0; i < 300; i++) /* every tenth key is there already when it comes */
        items[i] = (rp_insert){
            .key = i % 10 == 9 ? i - 1 : i,
            .priority = 1,
            .trajectory = rp_test_blob_trajectory(&bed.alloc, i, 1, 20),
            .flags = i % 3 == 0 ? 0 : RP_INSERT_TAKE,
        };

    assert_int_equal(rp_table_insert(t, items, 270, rp_wait_none(), &inserted, NULL), RP_OK);
    assert_int_equal(inserted, 270);
    assert_int_equal(rp_table_insert(t, items + 270, 30, rp_wait_none(), &inserted, NULL),
                     RP_OK);
    assert_int_equal(inserted, 30);
    put(t, 1000, 1);
    while (rp_table_can_insert(t, 1)) put(t, 2000 + inserted++, 1);
    rp_insert refused = {.key = 5000,
                         .priority = 1,
                         .flags = RP_INSERT_TAKE,
                         .trajectory = rp_test_blob_trajectory(&bed.alloc, 7, 7, 20)};
    assert_int_equal(rp_table_insert(t, &refused, 1, rp_wait_none(), NULL, NULL), RP_DEADLINE);
    refused.priority = NAN;
    assert_int_equal(rp_table_insert(t, &refused, 1, rp_wait_none(), NULL, NULL), RP_INVALID);

    rp_trajectory_unref(refused.trajectory); /* still ours */
    for (size_t i = 0; i < 300; i += 3) rp_trajectory_unref(items[i].trajectory);
    assert_true(rp_table_check(t));
}

static void offered_references_of_a_partial_batch_stay_with_the_items_left_out(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    rp_insert items[10];
    size_t inserted = 0;
    o.limiter = rp_limiter_queue(4);
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t i = 0; i < 10; i++)
        items[i] = (rp_insert){.key = i,
                               .priority = 1,
                               .trajectory = rp_test_blob_trajectory(&bed.alloc, i, 1, 20),
                               .flags = RP_INSERT_TAKE};

    assert_int_equal(rp_table_insert(t, items, 10, rp_wait_none(), &inserted, NULL),
                     RP_DEADLINE);

    assert_int_equal(inserted, 4);
    for (size_t i = 4; i < 10; i++) rp_trajectory_unref(items[i].trajectory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(operation)
{
    const struct CMUnitTest tests[] = {
        TEST(new_key_becomes_an_item),
        TEST(existing_key_only_changes_its_priority),
        TEST(key_that_comes_twice_in_a_batch_is_one_item),
        TEST(full_table_evicts_the_pick_of_the_remover),
        TEST(eviction_may_hit_the_new_item_itself),
        TEST(lifo_remover_keeps_the_oldest),
        TEST(batches_of_many_blocks_go_in_as_single_inserts_would),
        TEST(inserting_nothing_is_fine),
        TEST(bad_item_anywhere_in_a_batch_changes_nothing),
        TEST(refused_item_is_named),
        TEST(unknown_flags_are_refused),
        TEST(refused_batch_leaves_its_chunks_free_for_another_store),
        TEST(too_large_batches_are_refused),
        TEST(items_must_match_the_signature),
        TEST(limiter_that_refuses_part_of_a_batch_lets_the_rest_in),
        TEST(update_of_an_existing_key_waits_like_an_insert),
        TEST(byte_limit_of_the_table_evicts),
        TEST(item_larger_than_the_table_is_refused),
        TEST(offered_references_are_taken_with_their_items),
        TEST(offered_references_of_a_partial_batch_stay_with_the_items_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
