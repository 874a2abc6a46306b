/* SPDX-License-Identifier: Apache-2.0 */
#include "support/writing.h"

typedef struct copying {
    rp_test_rig rig; /* 'a' copies to 'b' */
    rp_extension extension;
    uint64_t keys[200];
    int count;
} copying;

static void setup(copying *c, rp_table_options source, rp_table_options target,
                  int64_t timeout_ms)
{
    rp_test_rig *r = &c->rig;

    c->count = 0;
    rp_test_rig_open(r, NULL);
    assert_ok_err(rp_store_add_table(r->store, &target, &r->b, &r->err), &r->err);
    assert_ok_err(
        rp_insert_on_sample_extension(&r->alloc, r->b, timeout_ms, &c->extension, &r->err),
        &r->err);
    source.extensions = &c->extension;
    source.extension_count = 1;
    assert_ok_err(rp_store_add_table(r->store, &source, &r->a, &r->err), &r->err);
}

static rp_table_options fifo(const char *name)
{
    rp_table_options table = rp_test_open_table(name);
    table.sampler.kind = RP_FIFO;
    return table;
}

static void insert(copying *c, double priority)
{
    rp_test_append(&c->rig, 1);
    c->keys[c->count++] = rp_test_put_latest(&c->rig, "a", priority);
}

static void sample(copying *c, size_t count, bool distinct)
{
    rp_sample_options options = {.count = count, .distinct = distinct};
    rp_sample samples[200];
    size_t drawn;

    assert_ok(rp_table_sample(c->rig.a, &options, samples, &drawn, rp_wait_none(), NULL));
    rp_samples_release(samples, drawn);
}

static void expect_counts(const copying *c, int64_t copied, int64_t dropped)
{
    int64_t got_copied, got_dropped;

    rp_insert_on_sample_read(&c->extension, &got_copied, &got_dropped);
    assert_int_equal(got_copied, copied);
    assert_int_equal(got_dropped, dropped);
}

static void first_sample_copies_the_item(void **state)
{
    rp_sample got;
    size_t found;
    copying c;
    (void)state;
    setup(&c, fifo("a"), rp_test_open_table("b"), 100);
    insert(&c, 2.5);
    insert(&c, 3.5);

    sample(&c, 1, false);

    assert_int_equal(rp_test_info(c.rig.b).size, 1);
    assert_ok(rp_table_peek(c.rig.b, c.keys, 1, &got, &found, NULL));
    assert_int_equal(found, 1);
    assert_true(got.priority == 2.5);
    assert_int_equal(got.times_sampled, 1);
    rp_samples_release(&got, 1);
    rp_test_expect_item(&c.rig, c.rig.b, c.keys[0], 0, 1, 1);
    expect_counts(&c, 1, 0);
    rp_test_rig_deinit(&c.rig);
}

static void later_samples_copy_nothing(void **state)
{
    copying c;
    (void)state;
    setup(&c, fifo("a"), rp_test_open_table("b"), 100);
    insert(&c, 1);

    sample(&c, 5, false); /* five draws of the one item */
    sample(&c, 3, false);

    expect_counts(&c, 1, 0);
    rp_test_rig_deinit(&c.rig);
}

static void copy_shares_its_bytes_with_the_original(void **state)
{
    rp_store_info store;
    copying c;
    (void)state;
    setup(&c, fifo("a"), rp_test_open_table("b"), 100);
    insert(&c, 1);

    sample(&c, 1, false);

    rp_store_get_info(c.rig.store, &store);
    assert_int_equal(rp_test_info(c.rig.a).bytes, rp_test_info(c.rig.b).bytes);
    assert_true(store.bytes > rp_test_info(c.rig.a).bytes); /* by an item, and no chunk */
    assert_true(store.bytes < rp_test_info(c.rig.a).bytes * 7 / 4);
    rp_test_rig_deinit(&c.rig);
}

static void item_removed_by_its_last_sample_stays_in_the_target(void **state)
{
    rp_table_options source = fifo("a");
    copying c;
    (void)state;
    source.max_times_sampled = 1;
    setup(&c, source, rp_test_open_table("b"), 100);
    insert(&c, 1);

    sample(&c, 1, false);

    assert_int_equal(rp_test_info(c.rig.a).size, 0);
    rp_test_expect_item(&c.rig, c.rig.b, c.keys[0], 0, 1, 1);
    rp_test_rig_deinit(&c.rig);
}

static void large_batch_is_copied_whole(void **state)
{
    copying c;
    (void)state;
    setup(&c, rp_test_open_table("a"), rp_test_open_table("b"), 100);
    for (int i = 0; i < 200; i++) insert(&c, 1);

    sample(&c, 200, true);

    expect_counts(&c, 200, 0);
    assert_int_equal(rp_test_info(c.rig.b).size, 200);
    rp_test_rig_deinit(&c.rig);
}

static void copies_over_the_limit_of_the_target_are_dropped(void **state)
{
    rp_table_options target = fifo("b");
    copying c;
    (void)state;
    target.limiter = rp_limiter_queue(3);
    target.max_size = 3;
    target.max_times_sampled = 1;
    setup(&c, rp_test_open_table("a"), target, 5);
    for (int i = 0; i < 10; i++) insert(&c, 1);

    sample(&c, 10, true);

    expect_counts(&c, 3, 7);
    rp_test_rig_deinit(&c.rig);
}

static void without_a_timeout_nothing_waits(void **state)
{
    rp_table_options target = fifo("b");
    copying c;
    (void)state;
    target.limiter = rp_limiter_queue(1);
    target.max_size = 1;
    target.max_times_sampled = 1;
    setup(&c, rp_test_open_table("a"), target, 0);
    for (int i = 0; i < 4; i++) insert(&c, 1);

    sample(&c, 4, true);

    expect_counts(&c, 1, 3);
    rp_test_rig_deinit(&c.rig);
}

static void only_the_item_that_the_target_refuses_is_dropped(void **state)
{
    rp_table_options target = rp_test_open_table("b");
    copying c;
    (void)state;
    target.sampler = (rp_selector_options){.kind = RP_PRIORITIZED, .exponent = 1};
    setup(&c, rp_test_open_table("a"), target, 100);
    for (int i = 0; i < 6; i++) insert(&c, i == 2 ? -1 : 1); /* no weight can be negative */

    sample(&c, 6, true);

    expect_counts(&c, 5, 1);
    assert_false(rp_test_has(&c.rig, c.rig.b, c.keys[2]));
    rp_test_rig_deinit(&c.rig);
}

static void closed_target_drops_everything(void **state)
{
    copying c;
    (void)state;
    setup(&c, rp_test_open_table("a"), rp_test_open_table("b"), 10000);
    for (int i = 0; i < 3; i++) insert(&c, 1);
    rp_table_close(c.rig.b);

    sample(&c, 3, true);

    expect_counts(&c, 0, 3);
    rp_test_rig_deinit(&c.rig);
}

static void settings_out_of_range_are_refused(void **state)
{
    rp_extension e;
    copying c;
    rp_error err;
    (void)state;
    setup(&c, rp_test_open_table("a"), rp_test_open_table("b"), INT64_MAX);

    assert_fails(rp_insert_on_sample_extension(&c.rig.alloc, NULL, 1, &e, &err), RP_INVALID,
                 &err, "no target");
    assert_fails(rp_insert_on_sample_extension(&c.rig.alloc, c.rig.b, -1, &e, &err), RP_INVALID,
                 &err, "timeout_ms must be >= 0, got -1");
    insert(&c, 1);
    sample(&c, 1, false); /* a timeout of INT64_MAX is a long one, not one in the past */
    expect_counts(&c, 1, 0);
    rp_test_rig_deinit(&c.rig);
}

RP_TESTS(extension_insert_on_sample)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_sample_copies_the_item),
        cmocka_unit_test(later_samples_copy_nothing),
        cmocka_unit_test(copy_shares_its_bytes_with_the_original),
        cmocka_unit_test(item_removed_by_its_last_sample_stays_in_the_target),
        cmocka_unit_test(large_batch_is_copied_whole),
        cmocka_unit_test(copies_over_the_limit_of_the_target_are_dropped),
        cmocka_unit_test(without_a_timeout_nothing_waits),
        cmocka_unit_test(only_the_item_that_the_target_refuses_is_dropped),
        cmocka_unit_test(closed_target_drops_everything),
        cmocka_unit_test(settings_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
