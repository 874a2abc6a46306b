/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier when the disk fails, is damaged, or memory is short. */
#include "support/tier_bed.h"

static void test_damaged_record_fails_its_sample_alone(void **state)
{
    rp_sample_options options = {.count = 4, .distinct = true};
    rp_sample samples[4];
    rp_tier_rig rig;
    rp_disk_location location;
    rp_sample sample;
    char path[32];
    size_t drawn;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    assert_ok(rp_table_peek_unread(rig.table, (uint64_t[]){3}, 1, &sample, NULL, NULL));
    assert_true(rp_chunk_locate(rp_trajectory_get_chunk(sample.trajectory, 0), &location));
    rp_samples_release(&sample, 1);
    assert_true(rp_sim_flip(rig.disk, rp_segment_path(path, location.segment),
                            8 * (location.offset + 32 + 5000)));
    assert_int_equal(peek(&rig, 3), RP_CORRUPT);
    assert_int_equal(peek(&rig, 3), RP_CORRUPT); /* it is not kept for good either */
    assert_ok(peek(&rig, 2));
    assert_ok(peek(&rig, 4));
    /* It is among the four that a sample draws. */
    assert_int_equal(
        rp_table_sample(rig.table, &options, samples, &drawn, rp_wait_none(), &rig.bed.err),
        RP_CORRUPT);
    assert_non_null(strstr(rig.bed.err.text, "table 't'"));
    assert_ok(rp_table_delete(rig.table, (uint64_t[]){3}, 1, NULL, NULL));
    assert_ok(rp_table_sample(rig.table, &options, samples, &drawn, rp_wait_none(), NULL));
    for (size_t i = 0; i < drawn; i++)
        rp_tier_rig_assert(samples[i].trajectory, &samples[i].key, 1, ROW);
    rp_samples_release(samples, drawn);
    assert_true(rp_table_check(rig.table));
    rp_tier_rig_deinit(&rig);
}

static void fail_from_now_on(rp_tier_rig *rig, rp_sim_error error)
{
    rp_sim_fail(rig->disk, &(rp_sim_fault){.call = rp_sim_calls(rig->disk) + 1,
                                           .error = error,
                                           .for_good = true,
                                           .seed = 3});
}

static void be_well(rp_tier_rig *rig)
{
    rp_sim_fail(rig->disk, &(rp_sim_fault){0});
}

static void test_failed_reads_recover(void **state)
{
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    fail_from_now_on(&rig, RP_SIM_EIO);
    assert_int_equal(peek(&rig, 1), RP_UNAVAILABLE);
    assert_ok(peek(&rig, 299)); /* that is in memory */
    be_well(&rig);
    assert_ok(peek(&rig, 1));
    rp_tier_rig_deinit(&rig);
}

/* While writes fail, inserts wait and the tier reports it is degraded. When writes succeed
 * again, it recovers by itself, and no item is lost. */
static void write_fails(rp_sim_error error)
{
    rp_tier_rig rig;
    uint64_t key = 1;

    set_up(&rig);
    fill(&rig, key, 150);
    fail_from_now_on(&rig, error);
    for (key = 150; rp_tier_rig_put(&rig, key, ROW, 50) == RP_OK; key++) assert_true(key < 400);
    assert_int_equal(rig.bed.err.code, RP_DEADLINE);
    rp_tier_rig_await(atomic_load(&rig.troubles) == 1);
    assert_true(rp_tier_rig_info(&rig).degraded);
    assert_int_equal(atomic_load(&rig.recoveries), 0);
    be_well(&rig);
    for (; key < 400; key++) assert_ok(rp_tier_rig_put(&rig, key, ROW, 20000));
    assert_int_equal(atomic_load(&rig.recoveries), 1);
    assert_false(rp_tier_rig_info(&rig).degraded);
    rp_sim_drop_caches(rig.disk);
    for (key = 1; key < 400; key++) assert_ok(peek(&rig, key));
    rp_tier_rig_deinit(&rig);
}

static void test_failed_writes_recover(void **state)
{
    (void)state;
    write_fails(RP_SIM_ENOSPC);
    write_fails(RP_SIM_EROFS);
    write_fails(RP_SIM_SHORT);
}

/* Memory is full of chunks that could not be written; then all items but the last `left` go. */
static void fail_and_delete(rp_tier_rig *rig, uint64_t left)
{
    uint64_t key;

    set_up(rig);
    fill(rig, 1, 150);
    fail_from_now_on(rig, RP_SIM_ENOSPC);
    for (key = 150; rp_tier_rig_put(rig, key, ROW, 50) == RP_OK; key++) assert_true(key < 400);
    rp_tier_rig_await(atomic_load(&rig->troubles) == 1);
    for (uint64_t k = 1; k < key - left; k++)
        assert_ok(rp_table_delete(rig->table, &k, 1, NULL, NULL));
}

static void the_tier_recovers_without_inserts(void **state)
{
    rp_tier_rig rig;

    (void)state;
    for (uint64_t left = 0; left <= 3; left += 3) {
        fail_and_delete(&rig, left);
        be_well(&rig);
        rp_tier_rig_await(atomic_load(&rig.recoveries) == 1);
        assert_false(rp_tier_rig_info(&rig).degraded);
        assert_int_equal(atomic_load(&rig.troubles), 1);
        assert_true(rp_tier_check(rig.tier));
        rp_tier_rig_deinit(&rig);
    }
}

/* While the disk fails, each retry gives the segments no more than they have already. */
static void the_queue_does_not_grow_while_the_disk_fails(void **state)
{
    rp_tier_rig rig;
    uint64_t calls, queued;

    (void)state;
    fail_and_delete(&rig, 100);
    queued = rp_segments_queued(rig.segments);
    assert_true(queued > 0);
    for (int retries = 0; retries < 4; retries++) {
        calls = rp_sim_calls(rig.disk);
        rp_tier_rig_await(rp_sim_calls(rig.disk) > calls);
    }
    assert_int_equal(rp_segments_queued(rig.segments), queued);
    be_well(&rig);
    rp_tier_rig_await(atomic_load(&rig.recoveries) == 1);
    assert_true(rp_tier_check(rig.tier));
    rp_tier_rig_deinit(&rig);
}

/* Room in memory does not make the tier well: it tries, and the disk still fails. */
static void the_tier_stays_degraded_until_a_write_succeeds(void **state)
{
    rp_tier_rig rig;
    uint64_t calls;

    (void)state;
    fail_and_delete(&rig, 3);
    calls = rp_sim_calls(rig.disk);
    rp_tier_rig_await(rp_sim_calls(rig.disk) > calls);
    assert_true(rp_tier_rig_info(&rig).degraded);
    assert_int_equal(atomic_load(&rig.recoveries), 0);
    assert_int_equal(atomic_load(&rig.troubles), 1);
    rp_tier_rig_deinit(&rig);
}

/* Each call of the disk in turn fails once: no item is lost. */
static void test_any_call_fails_once(void **state)
{
    uint64_t step = (uint64_t)(20 / (rp_test_scale() > 1 ? 1 : rp_test_scale())) / 4 + 1;

    (void)state;
    for (uint64_t call = 1; call < 60; call += step) {
        rp_tier_rig rig;

        set_up(&rig);
        rp_sim_fail(rig.disk, &(rp_sim_fault){.call = call, .error = RP_SIM_EIO, .seed = call});
        fill(&rig, 1, 200);
        be_well(&rig);
        rp_sim_drop_caches(rig.disk);
        for (uint64_t key = 1; key < 200; key++) assert_ok(peek(&rig, key));
        assert_true(rp_tier_check(rig.tier));
        rp_tier_rig_deinit(&rig);
    }
}

static void test_loads_without_memory(void **state)
{
    uint64_t keys[] = {1, 2, 3, 4, 298, 299};
    rp_sample samples[COUNT_OF(keys)];
    rp_status st = RP_NO_RESOURCE;
    rp_tier_rig rig;

    (void)state;
    set_up(&rig);
    fill(&rig, 1, 300);
    rp_tier_rig_await(rp_tier_rig_info(&rig).resident_bytes <= (MEMORY - CACHE) / 4 * 3);
    for (size_t room = 0; st != RP_OK; room++) {
        assert_true(room < 100);
        atomic_store(&rig.bed.oom.left, room);
        st = rp_table_peek(rig.table, keys, COUNT_OF(keys), samples, NULL, &rig.bed.err);
        atomic_store(&rig.bed.oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_true(rp_tier_check(rig.tier));
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        rp_tier_rig_assert(samples[i].trajectory, &keys[i], 1, ROW);
    rp_samples_release(samples, COUNT_OF(keys));
    rp_tier_rig_deinit(&rig);
}

RP_TESTS(tier_trouble)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_record_fails_its_sample_alone),
        cmocka_unit_test(test_failed_reads_recover),
        cmocka_unit_test(test_failed_writes_recover),
        cmocka_unit_test(the_tier_recovers_without_inserts),
        cmocka_unit_test(the_queue_does_not_grow_while_the_disk_fails),
        cmocka_unit_test(the_tier_stays_degraded_until_a_write_succeeds),
        cmocka_unit_test(test_any_call_fails_once),
        cmocka_unit_test(test_loads_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
