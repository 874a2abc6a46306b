/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "support/writing.h"

typedef struct counted {
    rp_test_rig rig;
    rp_extension extension;
} counted;

/* A table 'a' that counts, of at most `max_size` items. */
static void setup(counted *c, rp_table_options table)
{
    rp_test_rig_open(&c->rig, NULL);
    assert_ok(rp_statistics_extension(&c->rig.alloc, &c->extension));
    table.extensions = &c->extension;
    table.extension_count = 1;
    assert_ok_err(rp_store_add_table(c->rig.store, &table, &c->rig.a, &c->rig.err),
                  &c->rig.err);
    rp_test_append(&c->rig, 1);
}

static uint64_t insert(counted *c, double priority)
{
    return rp_test_put_latest(&c->rig, "a", priority);
}

static void sample(counted *c, size_t count)
{
    rp_sample_options options = {.count = count};
    rp_sample samples[16];
    size_t drawn;

    assert_ok(rp_table_sample(c->rig.a, &options, samples, &drawn, rp_wait_none(), NULL));
    rp_samples_release(samples, drawn);
}

static rp_statistics read_counts(const counted *c)
{
    rp_statistics s;

    rp_statistics_read(&c->extension, &s);
    return s;
}

static void counts_are_zero_before_the_first_event(void **state)
{
    rp_statistics zero = {0}, s;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    s = read_counts(&c);

    assert_memory_equal(&s, &zero, sizeof s);
    rp_test_rig_deinit(&c.rig);
}

static void every_kind_of_event_is_counted(void **state)
{
    uint64_t keys[3];
    rp_update updates[2];
    rp_statistics s;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    for (int i = 0; i < 3; i++) keys[i] = insert(&c, 1);
    sample(&c, 5);
    for (int i = 0; i < 2; i++) updates[i] = (rp_update){keys[i], 2};
    assert_ok(rp_table_update(c.rig.a, updates, 2, NULL, NULL));
    assert_ok(rp_table_delete(c.rig.a, keys, 1, NULL, NULL));
    assert_ok(rp_table_reset(c.rig.a, NULL));

    s = read_counts(&c);
    assert_int_equal(s.inserts, 3);
    assert_int_equal(s.samples, 5);
    assert_int_equal(s.updates, 2);
    assert_int_equal(s.deletes, 1); /* a reset is not a delete */
    assert_int_equal(s.resets, 1);
    rp_test_rig_deinit(&c.rig);
}

static void priorities_of_inserts_and_updates_are_summed_up(void **state)
{
    rp_update update = {.priority = 10};
    rp_statistics s;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    update.key = insert(&c, 4);
    (void)insert(&c, -2);
    assert_ok(rp_table_update(c.rig.a, &update, 1, NULL, NULL));

    s = read_counts(&c);
    assert_true(s.priority_min == -2);
    assert_true(s.priority_max == 10);
    assert_true(fabs(s.priority_mean - 4) < 1e-12);
    rp_test_rig_deinit(&c.rig);
}

static void infinite_priority_does_not_spoil_the_mean(void **state)
{
    rp_statistics s;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    (void)insert(&c, 1);
    (void)insert(&c, INFINITY);
    (void)insert(&c, 3);

    s = read_counts(&c);
    assert_true(s.priority_mean == 2);
    assert_true(isinf(s.priority_max));
    rp_test_rig_deinit(&c.rig);
}

static void mean_of_the_largest_and_the_smallest_number_is_finite(void **state)
{
    rp_statistics s;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    (void)insert(&c, DBL_MAX);
    (void)insert(&c, -DBL_MAX);

    s = read_counts(&c);
    assert_true(s.priority_mean == 0);
    rp_test_rig_deinit(&c.rig);
}

static void use_of_deleted_items_is_counted(void **state)
{
    rp_table_options table = rp_test_open_table("a");
    rp_statistics s;
    counted c;
    (void)state;
    table.max_size = 1;
    table.sampler.kind = RP_FIFO;
    setup(&c, table);

    (void)insert(&c, 1);
    sample(&c, 4);
    (void)insert(&c, 1); /* evicts the first */
    (void)insert(&c, 1); /* evicts the second, which nobody saw */

    s = read_counts(&c);
    assert_int_equal(s.deletes, 2);
    assert_int_equal(s.deleted_unsampled, 1);
    assert_true(s.times_sampled_mean == 2);
    rp_test_rig_deinit(&c.rig);
}

static void *read_until_all_are_in(void *arg)
{
    rp_statistics s;

    do {
        rp_statistics_read(arg, &s);
        /* One consistent set: each insert has priority 3 and comes before its sample. */
        if (s.inserts > 0 && (s.priority_mean != 3 || s.samples > s.inserts)) return arg;
    } while (s.inserts < 500);
    return NULL;
}

static void counts_are_read_as_one_set_while_they_change(void **state)
{
    pthread_t reader;
    void *failed;
    counted c;
    (void)state;
    setup(&c, rp_test_open_table("a"));

    assert_int_equal(pthread_create(&reader, NULL, read_until_all_are_in, &c.extension), 0);
    for (int i = 0; i < 500; i++) {
        (void)insert(&c, 3);
        sample(&c, 1);
    }
    assert_int_equal(pthread_join(reader, &failed), 0);

    assert_null(failed);
    rp_test_rig_deinit(&c.rig);
}

static rp_status make_and_discard(const rp_allocator *alloc)
{
    rp_extension e;
    rp_status st = rp_statistics_extension(alloc, &e);

    if (st == RP_OK) rp_extension_discard(&e);
    return st;
}

static void extension_that_no_table_took_can_be_discarded(void **state)
{
    rp_extension plain = {.name = "plain"};
    (void)state;

    rp_test_survives_oom(make_and_discard);
    rp_extension_discard(&plain); /* nothing to free */
    assert_null(plain.name);
    rp_extension_discard(NULL);
}

RP_TESTS(extension_statistics)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_zero_before_the_first_event),
        cmocka_unit_test(every_kind_of_event_is_counted),
        cmocka_unit_test(priorities_of_inserts_and_updates_are_summed_up),
        cmocka_unit_test(infinite_priority_does_not_spoil_the_mean),
        cmocka_unit_test(mean_of_the_largest_and_the_smallest_number_is_finite),
        cmocka_unit_test(use_of_deleted_items_is_counted),
        cmocka_unit_test(counts_are_read_as_one_set_while_they_change),
        cmocka_unit_test(extension_that_no_table_took_can_be_discarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
