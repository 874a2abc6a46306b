/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that do not wait. Inserts: test_operation.c. Waiting: test_parked.c,
 * test_blocking.c. */
#include <math.h>

#include "operation_fixture.h"
#include "table/operation/operation.h"

static void sample_has_the_info_of_the_draw(void **state)
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

static void item_is_removed_exactly_at_max_times_sampled(void **state)
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
                 "3 inserts * 1 - 3 samples - 1 = -1 is under min_diff 0; 1 more insert");
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
                 "0 items, min_size is 1; 1 more insert would release it");
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

static void same_seed_repeats_the_draws_bit_for_bit(void **state)
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

RP_TESTS(operation_sample)
{
    const struct CMUnitTest tests[] = {
        TEST(sample_has_the_info_of_the_draw),
        TEST(item_is_removed_exactly_at_max_times_sampled),
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
        TEST(same_seed_repeats_the_draws_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
