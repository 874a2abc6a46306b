/* SPDX-License-Identifier: Apache-2.0 */
/* Inserting and sampling without waiting. Waiting: test_parked.c, test_blocking.c. */
#include <math.h>

#include "support/fixture.h"
#include "table/operation/operation.h"

static rp_test_bed bed;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_table *make(rp_selector_kind sampler, rp_selector_kind remover, int64_t max_size)
{
    rp_table_options o = rp_test_options("t", sampler, remover, max_size);
    return rp_test_bed_table(&bed, &o);
}

static void put(rp_table *t, uint64_t key, double priority)
{
    rp_test_put(t, key, priority, bed.plain);
}

/* Items with keys first, first + 1, ... and priority 1. */
static rp_insert *make_items(uint64_t first, size_t count)
{
    rp_insert *items = calloc(count, sizeof *items);

    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (rp_insert){.key = first + i, .priority = 1, .trajectory = bed.plain};
    return items;
}

static void insert_all(rp_table *t, const rp_insert *items, size_t count)
{
    size_t inserted = 0;

    assert_ok_err(rp_table_insert(t, items, count, rp_wait_none(), &inserted, &bed.err),
                  &bed.err);
    assert_int_equal(inserted, count);
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

static void full_table_evicts_what_the_remover_picks(void **state)
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

static void offered_references_of_a_partial_batch_stay_with_what_did_not_go_in(void **state)
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

static void sample_says_what_was_drawn_and_how(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 10);
    bed.wall_ns = 99;
    put(t, 1, 1);
    put(t, 2, 3);

    for (int32_t i = 1; i <= 20; i++) {
        rp_sample s = rp_test_draw(t);
        assert_true(s.probability == (s.key == 1 ? 0.25 : 0.75));
        assert_true(s.priority == (s.key == 1 ? 1 : 3));
        assert_true(s.weight == 1 && s.table_size == 2 && s.inserted_at_ns == 99);
        assert_false(s.rate_limited);
    }
    rp_table_info info = rp_test_info_of(t);
    assert_true(info.samples == 20 && info.unique_samples == 2);
}

static void item_goes_exactly_when_it_has_been_sampled_often_enough(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    rp_insert given = {.key = 2, .priority = 1, .trajectory = bed.plain, .times_sampled = 2};
    rp_insert beyond = {.key = 3, .priority = 1, .trajectory = bed.plain, .times_sampled = 3};
    o.max_times_sampled = 3;
    rp_table *t = rp_test_bed_table(&bed, &o);
    put(t, 1, 1);
    insert_all(t, &given, 1);
    insert_all(t, &beyond, 1);

    for (int32_t i = 1; i <= 3; i++) {
        rp_sample s = rp_test_draw(t);
        assert_true(s.key == 1 && s.times_sampled == i && s.table_size == 3);
    }
    assert_false(rp_test_has_key(t, 1));
    assert_true(rp_test_draw(t).key == 2); /* two more times are counted from the start */
    assert_false(rp_test_has_key(t, 2));
    for (int32_t i = 4; i < 9; i++)
        assert_int_equal(rp_test_draw(t).times_sampled, i); /* never 3 */
    rp_table_info info = rp_test_info_of(t);
    assert_true(info.deletes == 2 && info.evictions == 0 && info.unique_samples == 1);
}

static void batch_sees_deletions_it_causes(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    rp_sample_options four = {.count = 4}, distinct = {.count = 9, .distinct = true};
    rp_sample s[9];
    o.max_times_sampled = 2;
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 1; key <= 5; key++) put(t, key, 1);

    assert_int_equal(rp_test_draw_many(t, &four, s), 4);
    const uint64_t keys[] = {1, 1, 2, 2};
    const int64_t sizes[] = {5, 5, 4, 4};
    for (size_t i = 0; i < 4; i++)
        assert_true(s[i].key == keys[i] && s[i].table_size == sizes[i]);
    assert_int_equal(rp_test_draw_many(t, &distinct, s), 3);
    assert_int_equal(rp_test_draw_many(t, &distinct, s), 3);
    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_true(rp_table_check(t));
}

static void count_of_samples_that_saturates_stays_there(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_insert item = {
        .key = 1, .priority = 1, .trajectory = bed.plain, .times_sampled = INT32_MAX};
    insert_all(t, &item, 1);

    assert_int_equal(rp_test_draw(t).times_sampled, INT32_MAX);
    assert_int_equal(rp_test_draw(t).times_sampled, INT32_MAX);
}

static void distinct_batch_has_no_item_twice_and_ends_with_the_table(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make((rp_selector_kind)kind, RP_FIFO, 1000);
        rp_sample_options some = {.count = 300, .distinct = true};
        rp_sample_options all = {.count = 900, .distinct = true};
        rp_sample s[900];
        for (uint64_t key = 0; key < 600; key++) put(t, key, (double)(key % 4));

        size_t counts[] = {rp_test_draw_many(t, &some, s), rp_test_draw_many(t, &all, s)};

        bool seen[600] = {false};
        assert_true(counts[0] == 300 && counts[1] == 600);
        for (size_t i = 0; i < 600; i++) {
            assert_true(s[i].key < 600 && !seen[s[i].key]);
            seen[s[i].key] = true;
            assert_int_equal(s[i].table_size, 600);
        }
        assert_true(rp_table_check(t));
    }
}

static void limiter_gives_part_of_a_batch_without_waiting(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 10);
    rp_sample_options five = {.count = 5}, distinct = {.count = 5, .distinct = true};
    rp_sample s[5];
    size_t drawn = 0;
    o.limiter = rp_limiter_queue(10);
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 0; key < 3; key++) put(t, key, 1);

    assert_int_equal(rp_test_draw_many(t, &five, s), 3);
    assert_fails(rp_table_sample(t, &five, s, &drawn, rp_wait_none(), &bed.err), RP_DEADLINE,
                 &bed.err,
                 "3 inserts * 1 - 3 samples - 1 = -1 is under min_diff 0; 1 more inserts");
    assert_int_equal(drawn, 0);
    put(t, 3, 1); /* one allowed, and four items: distinct needs all of what it can have */
    assert_fails(rp_table_sample(t, &distinct, s, &drawn, rp_wait_none(), &bed.err),
                 RP_DEADLINE, &bed.err, "5 distinct items at once, and the limiter allows 1");
    distinct.at_least = 1;
    assert_int_equal(rp_test_draw_many(t, &distinct, s), 1);
}

static void batches_larger_than_any_buffer_are_drawn(void **state)
{
    (void)state;
    enum { LOTS = 5000 };
    rp_sample *s = calloc(LOTS, sizeof *s);
    assert_non_null(s);
    for (int kind = 0; kind < 6; kind++) {
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make((rp_selector_kind)kind, RP_FIFO, 1000);
        rp_sample_options many = {.count = LOTS};
        for (uint64_t key = 0; key < 100; key++) put(t, key, 1);

        assert_int_equal(rp_test_draw_many(t, &many, s), LOTS);

        int64_t times = 0;
        for (uint64_t key = 0; key < 100; key++) {
            rp_sample peeked;
            assert_ok(rp_table_peek(t, &key, 1, &peeked, NULL, NULL));
            times += peeked.times_sampled;
            rp_samples_release(&peeked, 1);
        }
        assert_int_equal(times, LOTS);
    }
    free(s);
}

static void importance_weights_follow_their_formula(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 10);
    rp_sample_options o = {.count = 200, .beta = 0.4};
    rp_sample s[200];
    double largest = 0;
    for (uint64_t key = 1; key <= 4; key++) put(t, key, (double)(key * key));

    assert_int_equal(rp_test_draw_many(t, &o, s), 200);

    for (size_t i = 0; i < 200; i++) largest = fmax(largest, pow(4 * s[i].probability, -0.4));
    for (size_t i = 0; i < 200; i++) {
        assert_true(s[i].weight > 0 && s[i].weight <= 1);
        assert_true(fabs(s[i].weight - pow(4 * s[i].probability, -0.4) / largest) < 1e-12);
    }
    o.beta = 0;
    assert_int_equal(rp_test_draw_many(t, &o, s), 200);
    for (size_t i = 0; i < 200; i++) assert_true(s[i].weight == 1);
}

/* Clients work weights out of what a server says. */
static void importance_weights_of_any_probabilities_are_numbers(void **state)
{
    static const double odd[] = {0, -0.0, 0x1p-1074, 1e-300, 1, -1, 1e308, INFINITY, NAN};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(odd); i++)
        for (size_t j = 0; j < COUNT_OF(odd); j++) {
            rp_sample s[2] = {{.table_size = INT64_MAX, .probability = odd[i]},
                              {.table_size = INT64_MIN, .probability = odd[j]}};

            rp_samples_weigh(s, 2, 0.4);
            assert_true(s[0].weight >= 0 && s[0].weight <= 1);
            assert_true(s[1].weight >= 0 && s[1].weight <= 1);
        }
}

/* (size * probability)^-beta itself does not fit a double. */
static void importance_weights_stay_finite_for_any_beta(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 10);
    rp_sample_options o = {.count = 100, .beta = 5000};
    rp_sample s[100];
    for (uint64_t key = 1; key <= 4; key++) put(t, key, (double)key);

    assert_int_equal(rp_test_draw_many(t, &o, s), 100);

    for (size_t i = 0; i < 100; i++) assert_true(s[i].weight >= 0 && s[i].weight <= 1);
}

static void bad_sample_options_are_refused(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_FIFO, 10);
    rp_sample s[4];
    size_t drawn = 7;
    static const struct {
        rp_sample_options o;
        const char *part;
    } bad[] = {
        {{.count = 0}, "must be in 1 .. 1048576, got 0"},
        {{.count = 2, .at_least = 3}, "at_least is 3, over the count 2"},
        {{.count = 2, .beta = -0.5}, "beta must be finite and >= 0, got -0.5"},
        {{.count = 2, .beta = NAN}, "beta"},
        {{.count = 2, .beta = INFINITY}, "beta"},
    };
    put(t, 1, 1);
    rp_table_info before = rp_test_info_of(t);

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_fails(rp_table_sample(t, &bad[i].o, s, &drawn, rp_wait_none(), &bed.err),
                     RP_INVALID, &bed.err, bad[i].part);

    assert_int_equal(drawn, 7);
    assert_unchanged(t, &before);
}

static void empty_table_has_nothing_to_draw(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_FIFO, 10);
    rp_sample_options one = {.count = 1, .distinct = true};
    rp_sample s;
    size_t drawn = 3;

    assert_fails(rp_table_sample(t, &one, &s, &drawn, rp_wait_none(), &bed.err), RP_DEADLINE,
                 &bed.err,
                 "table 't' would have to wait: sample waits for inserts: the table has "
                 "0 items, min_size is 1; 1 more inserts would release it");
    assert_int_equal(drawn, 3);
}

static void play(uint64_t store_seed, uint64_t table_seed, uint64_t *keys, size_t count)
{
    rp_test_bed own;
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_UNIFORM, 50);
    o.seed = table_seed;
    rp_test_bed_init(&own, &(rp_store_options){.seed = store_seed});
    rp_table *t = rp_test_bed_table(&own, &o);
    for (size_t i = 0; i < count; i++) {
        rp_test_put(t, i, (double)(i % 7), own.plain);
        keys[i] = rp_test_draw(t).key;
    }
    rp_test_bed_deinit(&own);
}

static void same_seed_replays_bit_for_bit(void **state)
{
    (void)state;
    uint64_t a[300], b[300], c[300], d[300], e[300];

    play(1, 0, a, 300);
    play(1, 0, b, 300);
    play(2, 0, c, 300);
    play(1, 5, d, 300);
    play(2, 5, e, 300);

    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    assert_memory_not_equal(a, d, sizeof a);
    assert_memory_equal(d, e, sizeof d); /* the table's own seed comes first */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(operation)
{
    const struct CMUnitTest tests[] = {
        TEST(new_key_becomes_an_item),
        TEST(existing_key_only_changes_its_priority),
        TEST(key_that_comes_twice_in_a_batch_is_one_item),
        TEST(full_table_evicts_what_the_remover_picks),
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
        TEST(offered_references_of_a_partial_batch_stay_with_what_did_not_go_in),
        TEST(sample_says_what_was_drawn_and_how),
        TEST(item_goes_exactly_when_it_has_been_sampled_often_enough),
        TEST(batch_sees_deletions_it_causes),
        TEST(count_of_samples_that_saturates_stays_there),
        TEST(distinct_batch_has_no_item_twice_and_ends_with_the_table),
        TEST(limiter_gives_part_of_a_batch_without_waiting),
        TEST(batches_larger_than_any_buffer_are_drawn),
        TEST(importance_weights_follow_their_formula),
        TEST(importance_weights_of_any_probabilities_are_numbers),
        TEST(importance_weights_stay_finite_for_any_beta),
        TEST(bad_sample_options_are_refused),
        TEST(empty_table_has_nothing_to_draw),
        TEST(same_seed_replays_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
