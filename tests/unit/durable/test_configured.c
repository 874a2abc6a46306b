/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose configuration differs from what is saved. */
#include "support/durable_bed.h"

static const rp_string NAME = {"t", 1};

static void put_items(rp_test_rig *rig, rp_table *t, uint64_t first, size_t count,
                      size_t payload)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t key = first + i;
        rp_trajectory *trajectory =
            rp_test_blob_trajectory(&rig->bed.alloc, key, key / 10, payload);

        rp_test_put(t, key, (double)(key % 17) / 3, trajectory);
        rp_trajectory_unref(trajectory);
    }
}

/* A disk whose journal has evictions of the first 200 of 300 items, with no checkpoint after
 * them. */
static rp_sim *evicted_disk(void)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 100);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;

    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    put_items(&rig, t, 1, 300, 10);
    rp_test_rig_deinit(&rig);
    return disk;
}

static void changed_selectors_apply_after_the_redo(void **state)
{
    rp_sim *disk = evicted_disk();

    (void)state;
    for (int remover = RP_FIFO; remover <= RP_MAX_HEAP; remover++) {
        rp_table_options o = rp_test_options("t", RP_UNIFORM, (rp_selector_kind)remover, 100);
        rp_sim *copy = rp_sim_copy(disk);
        rp_test_rig rig;
        rp_table *t;

        rp_test_rig_init(&rig, copy, NULL);
        rig.options.mode = RP_DURABLE_SYNC;
        rig.options.accept_changes = true;
        t = rp_test_bed_table(&rig.bed, &o);
        rp_test_rig_open(&rig);
        assert_true(rp_table_check(t));
        assert_int_equal(rp_test_info_of(t).size, 100);
        for (uint64_t key = 201; key <= 300; key++) assert_true(rp_test_has_key(t, key));
        rp_test_rig_deinit(&rig);
        rp_sim_free(copy);
    }
    rp_sim_free(disk);
}

static void drop_and_add(rp_test_rig *rig, rp_selector_kind sampler)
{
    rp_table_options o = rp_test_options("t", sampler, RP_FIFO, 100);

    assert_ok_err(rp_store_drop_table(rig->bed.store, NAME, &rig->err), &rig->err);
    assert_ok_err(rp_store_add_table(rig->bed.store, &o, NULL, &rig->err), &rig->err);
}

/* Opens the disk with a uniform table. */
static rp_status open_uniform(rp_test_rig *rig, rp_sim *disk)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 100);

    rp_test_rig_init(rig, disk, NULL);
    rig->options.mode = RP_DURABLE_SYNC;
    (void)rp_test_bed_table(&rig->bed, &o);
    return rp_test_rig_try_open(rig);
}

static int64_t size_now(rp_test_rig *rig)
{
    rp_table *t = rp_store_find_table(rig->bed.store, NAME);
    int64_t size = t != NULL ? rp_test_info_of(t).size : -1;

    rp_table_unref(t);
    return size;
}

static void selectors_are_compared_after_the_redo(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;

    (void)state;
    assert_ok(open_uniform(&rig, disk));
    drop_and_add(&rig, RP_LIFO);
    rp_test_rig_save(&rig);
    drop_and_add(&rig, RP_UNIFORM); /* in the journal only */
    t = rp_store_find_table(rig.bed.store, NAME);
    put_items(&rig, t, 1, 5, 10);
    rp_table_unref(t);
    rp_test_rig_deinit(&rig);

    assert_ok_err(open_uniform(&rig, disk), &rig.err);
    assert_int_equal(size_now(&rig), 5);
    drop_and_add(&rig, RP_LIFO);
    rp_test_rig_deinit(&rig);

    assert_fails(open_uniform(&rig, disk), RP_PRECONDITION, &rig.err, "sampler lifo");
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void a_configured_table_that_was_dropped_is_created(void **state)
{
    for (int saved = 0; saved < 2; saved++) {
        rp_sim *disk = rp_sim_new();
        rp_test_rig rig;

        (void)state;
        assert_ok(open_uniform(&rig, disk));
        assert_ok_err(rp_store_drop_table(rig.bed.store, NAME, &rig.err), &rig.err);
        if (saved) rp_test_rig_save(&rig);
        rp_test_rig_deinit(&rig);
        for (int i = 0; i < 2; i++) {
            assert_ok_err(open_uniform(&rig, disk), &rig.err);
            assert_int_equal(size_now(&rig), 0);
            rp_test_rig_deinit(&rig);
        }
        rp_sim_free(disk);
    }
}

RP_TESTS(configured)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_selectors_apply_after_the_redo),
        cmocka_unit_test(selectors_are_compared_after_the_redo),
        cmocka_unit_test(a_configured_table_that_was_dropped_is_created),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
