/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "support/writing.h"
#include "table/table.h"
#include "util/rng.h"

typedef struct diffused {
    rp_test_rig rig;
    uint64_t keys[16];
    int count;
} diffused;

static void setup(diffused *d, int32_t radius, double decay, int64_t max_size)
{
    rp_table_options table = rp_test_open_table("a");
    rp_extension extension;

    *d = (diffused){0};
    rp_test_rig_open(&d->rig, NULL);
    assert_ok_err(rp_diffusion_extension(&d->rig.alloc, radius, decay, &extension, &d->rig.err),
                  &d->rig.err);
    table.sampler = (rp_selector_options){.kind = RP_PRIORITIZED, .exponent = 1};
    table.max_size = max_size;
    table.extensions = &extension;
    table.extension_count = 1;
    assert_ok_err(rp_store_add_table(d->rig.store, &table, &d->rig.a, &d->rig.err),
                  &d->rig.err);
}

/* Inserts an item of the current episode with priority 0. */
static void insert(diffused *d, int count)
{
    for (int i = 0; i < count; i++) {
        rp_test_append(&d->rig, 1);
        d->keys[d->count++] = rp_test_put_latest(&d->rig, "a", 0);
    }
}

static void end_episode(diffused *d)
{
    rp_test_end_episode(&d->rig);
}

static void update(diffused *d, int item, double priority)
{
    rp_update u = {d->keys[item], priority};
    assert_ok(rp_table_update(d->rig.a, &u, 1, NULL, NULL));
}

static double priority(diffused *d, int item)
{
    rp_sample sample;
    size_t found;

    assert_ok(rp_table_peek(d->rig.a, &d->keys[item], 1, &sample, &found, NULL));
    assert_int_equal(found, 1);
    rp_samples_release(&sample, 1);
    return sample.priority;
}

/* The first items have these priorities. */
static void expect(diffused *d, const double *priorities, int count)
{
    for (int i = 0; i < count; i++) {
        if (fabs(priority(d, i) - priorities[i]) > 1e-12)
            print_error("item %d has %.17g, expected %.17g\n", i, priority(d, i),
                        priorities[i]);
        assert_true(fabs(priority(d, i) - priorities[i]) <= 1e-12);
    }
    assert_true(rp_table_check(d->rig.a));
}

static void update_moves_the_neighbours_on_both_sides(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 2, 0.5, 100);
    insert(&d, 7);

    update(&d, 3, 8);

    expect(&d, (double[]){0, 2, 4, 8, 4, 2, 0}, 7);
    rp_test_rig_deinit(&d.rig);
}

static void neighbours_move_towards_the_new_priority_from_where_they_are(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 1, 0.25, 100);
    insert(&d, 3);

    update(&d, 0, 8); /* 8 2 0 */
    update(&d, 2, 4); /* 8, 2 + (4 - 2) / 4, 4 */
    update(&d, 1, 0); /* 8 - 2, 0, 4 - 1 */

    expect(&d, (double[]){6, 0, 3}, 3);
    rp_test_rig_deinit(&d.rig);
}

static void episodes_do_not_touch_each_other(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 3, 0.5, 100);
    insert(&d, 2);
    end_episode(&d);
    insert(&d, 2);

    update(&d, 1, 4);

    expect(&d, (double[]){2, 4, 0, 0}, 4);
    rp_test_rig_deinit(&d.rig);
}

static void deleted_item_is_no_neighbour(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 1, 0.5, 100);
    insert(&d, 4);

    assert_ok(rp_table_delete(d.rig.a, &d.keys[1], 1, NULL, NULL));
    d.keys[1] = d.keys[2];
    d.keys[2] = d.keys[3];
    update(&d, 0, 4);

    expect(&d, (double[]){4, 2, 0}, 3);
    rp_test_rig_deinit(&d.rig);
}

static void item_inserted_after_the_last_was_deleted_joins_the_list(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 1, 0.5, 100);
    insert(&d, 3);

    assert_ok(rp_table_delete(d.rig.a, &d.keys[2], 1, NULL, NULL));
    d.count = 2;
    insert(&d, 1);
    update(&d, 2, 4);

    expect(&d, (double[]){0, 2, 4}, 3);
    rp_test_rig_deinit(&d.rig);
}

static void evicted_items_are_forgotten(void **state)
{
    diffused d;
    (void)state;
    setup(&d, 2, 0.5, 2);
    insert(&d, 16); /* only the last two are left */

    update(&d, 15, 4);

    assert_true(priority(&d, 14) == 2);
    assert_int_equal(rp_test_info(d.rig.a).size, 2);
    rp_test_rig_deinit(&d.rig);
}

/* Inserts three items and deletes them again. */
static void pass_through(diffused *d)
{
    d->count = 0;
    insert(d, 3);
    assert_ok(rp_table_delete(d->rig.a, d->keys, 3, NULL, NULL));
}

static void memory_does_not_grow_with_the_items_inserted_so_far(void **state)
{
    diffused d;
    size_t before;
    (void)state;
    setup(&d, 2, 0.5, 100);
    for (int i = 0; i < 100; i++) pass_through(&d);

    before = d.rig.oom.live_bytes;
    for (int i = 0; i < 1000; i++) pass_through(&d);

    assert_true(d.rig.oom.live_bytes < before + 512); /* chunks differ by a few bytes */
    rp_test_rig_deinit(&d.rig);
}

static void reset_forgets_all_items(void **state)
{
    rp_insert again = {0};
    diffused d;
    (void)state;
    setup(&d, 2, 0.5, 100);
    insert(&d, 2);
    again.key = d.keys[0];
    again.trajectory = rp_test_peek(&d.rig, d.rig.a, again.key);

    assert_ok(rp_table_reset(d.rig.a, NULL));
    assert_ok(rp_table_insert(d.rig.a, &again, 1, rp_wait_none(), NULL, NULL));
    d.count = 1;
    insert(&d, 1);
    update(&d, 1, 4);

    expect(&d, (double[]){2, 4}, 2); /* the item that stood between them is gone */
    rp_trajectory_unref(again.trajectory);
    rp_test_rig_deinit(&d.rig);
}

static void updates_of_one_call_come_out_as_if_made_one_by_one(void **state)
{
    rp_rng rng;
    (void)state;
    rp_rng_init(&rng, 11);

    for (int round = 0; round < 50; round++) {
        diffused together, alone;
        rp_update updates[8];
        double priorities[10];
        setup(&together, 3, 0.7, 100);
        setup(&alone, 3, 0.7, 100);
        insert(&together, 10);
        insert(&alone, 10);

        for (size_t i = 0; i < COUNT_OF(updates); i++) {
            int item = (int)rp_rng_below(&rng, 10);
            updates[i] = (rp_update){together.keys[item], rp_rng_unit(&rng)};
            update(&alone, item, updates[i].priority);
        }
        assert_ok(rp_table_update(together.rig.a, updates, COUNT_OF(updates), NULL, NULL));

        for (int i = 0; i < 10; i++) priorities[i] = priority(&alone, i);
        expect(&together, priorities, 10);
        rp_test_rig_deinit(&together.rig);
        rp_test_rig_deinit(&alone.rig);
    }
}

static void sampling_sees_the_diffused_priorities(void **state)
{
    rp_sample_options options = {.count = 1};
    rp_sample sample;
    size_t drawn;
    diffused d;
    (void)state;
    setup(&d, 1, 0.5, 100);
    insert(&d, 5);
    update(&d, 0, 4);

    assert_ok(rp_table_sample(d.rig.a, &options, &sample, &drawn, rp_wait_none(), NULL));

    assert_true(sample.key == d.keys[0] || sample.key == d.keys[1]);
    assert_true(fabs(sample.probability - (sample.key == d.keys[0] ? 4. / 6 : 2. / 6)) < 1e-12);
    rp_samples_release(&sample, 1);
    rp_test_rig_deinit(&d.rig);
}

static void item_without_memory_has_no_neighbours(void **state)
{
    rp_table_options table = rp_test_open_table("a");
    rp_test_oom none = RP_TEST_OOM_INIT(1); /* for the extension itself, and no more */
    rp_allocator alloc = rp_test_oom_allocator(&none);
    rp_extension extension;
    diffused d = {0};
    (void)state;
    rp_test_rig_open(&d.rig, NULL);
    assert_ok(rp_diffusion_extension(&alloc, 2, 0.5, &extension, NULL));
    table.extensions = &extension;
    table.extension_count = 1;
    assert_ok(rp_store_add_table(d.rig.store, &table, &d.rig.a, NULL));

    insert(&d, 3);
    none.left = RP_TEST_OOM_UNLIMITED;
    insert(&d, 2);
    update(&d, 1, 4);
    update(&d, 3, 8);

    expect(&d, (double[]){0, 4, 0, 8, 4}, 5); /* 3 and 4 know each other only */
    assert_true(none.failed > 0);
    rp_test_rig_deinit(&d.rig);
    assert_int_equal(none.live, 0);
}

static void settings_out_of_range_are_refused(void **state)
{
    rp_error err;
    rp_extension e;
    (void)state;

    assert_fails(rp_diffusion_extension(rp_allocator_default(), 0, 0.5, &e, &err), RP_INVALID,
                 &err, "radius must be in [1, 64], got 0");
    assert_fails(rp_diffusion_extension(rp_allocator_default(), 65, 0.5, &e, &err), RP_INVALID,
                 &err, "got 65");
    assert_fails(rp_diffusion_extension(rp_allocator_default(), 1, 0, &e, &err), RP_INVALID,
                 &err, "decay must be in (0, 1), got 0");
    assert_fails(rp_diffusion_extension(rp_allocator_default(), 1, 1, &e, &err), RP_INVALID,
                 &err, "got 1");
    assert_fails(rp_diffusion_extension(rp_allocator_default(), 1, NAN, &e, &err), RP_INVALID,
                 &err, "nan");
}

RP_TESTS(extension_diffusion)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(update_moves_the_neighbours_on_both_sides),
        cmocka_unit_test(neighbours_move_towards_the_new_priority_from_where_they_are),
        cmocka_unit_test(episodes_do_not_touch_each_other),
        cmocka_unit_test(deleted_item_is_no_neighbour),
        cmocka_unit_test(item_inserted_after_the_last_was_deleted_joins_the_list),
        cmocka_unit_test(evicted_items_are_forgotten),
        cmocka_unit_test(memory_does_not_grow_with_the_items_inserted_so_far),
        cmocka_unit_test(reset_forgets_all_items),
        cmocka_unit_test(updates_of_one_call_come_out_as_if_made_one_by_one),
        cmocka_unit_test(sampling_sees_the_diffused_priorities),
        cmocka_unit_test(item_without_memory_has_no_neighbours),
        cmocka_unit_test(settings_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
