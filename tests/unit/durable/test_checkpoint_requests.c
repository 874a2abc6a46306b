/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for checkpoints, periodic checkpoints, and changes while one is written. */
#include <pthread.h>
#include <sched.h>

#include "durable/async.h"
#include "support/durable_bed.h"

/* Replaces everything, again and again while a checkpoint is written. */
typedef struct replacer {
    rp_test_rig *rig;
    uint64_t next, calls;
} replacer;

static void replace_all(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                        const char *path)
{
    replacer *r = ctx;

    (void)disk, (void)number, (void)call, (void)path;
    if (r->calls++ % rp_test_step(10, 40) != 0) return;
    rp_test_put_items(r->rig, rp_test_rig_find(r->rig, "t"), r->next, 300, 900);
    r->next += 300;
}

static void a_checkpoint_is_of_its_instant_despite_concurrent_changes(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    replacer r = {&rig, 1000, 0};
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 300);

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.segment_bytes = 4096;
    (void)rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    rp_test_put_items(&rig, rp_test_rig_find(&rig, "t"), 1, 300, 900);
    for (int round = 0; round < 3; round++) {
        uint64_t digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
        rp_sim *image;

        rp_sim_on_call(disk, replace_all, &r);
        rp_test_rig_save(&rig);
        rp_sim_on_call(disk, NULL, NULL);
        image = rp_sim_copy(disk);
        assert_int_equal(rp_test_digest_on(image, "t"), digest);
        rp_sim_free(image);
    }
    assert_true(r.next > 9 * 300);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void await(rp_test_rig *rig, uint64_t checkpoints)
{
    int64_t until_ns = rp_now_ns() + INT64_C(20000000000);

    while (rp_test_rig_info(rig).checkpoints < checkpoints && rp_now_ns() < until_ns)
        (void)rp_test_rig_info(rig);
    assert_true(rp_test_rig_info(rig).checkpoints >= checkpoints);
}

/* A disk whose calls of the checkpoint thread wait until the test lets them go on. */
typedef struct hold {
    atomic_bool is_held, may_go;
    atomic_size_t answered;
} hold;

static void hold_up(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    hold *h = ctx;

    (void)disk, (void)number, (void)call, (void)path;
    atomic_store(&h->is_held, true);
    while (!atomic_load(&h->may_go)) {}
}

static void count_answer(void *ctx, rp_status status, const char *path, const char *text)
{
    hold *h = ctx;

    (void)text;
    assert_int_equal(status, RP_OK);
    assert_non_null(strstr(path, "sim/manifest/"));
    atomic_fetch_add(&h->answered, 1);
}

static void a_request_during_a_checkpoint_waits_for_the_next(void **state)
{
    rp_sim *disk = rp_sim_new();
    hold h = {0};
    rp_test_rig rig;
    uint64_t first;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    first = rp_test_rig_info(&rig).checkpoints;
    rp_sim_on_call(disk, hold_up, &h);
    assert_ok(rp_durable_start_checkpoint(rig.durable, count_answer, &h, NULL));
    while (!atomic_load(&h.is_held)) {}
    for (int i = 0; i < 5; i++) /* they share one */
        assert_ok(rp_durable_start_checkpoint(rig.durable, count_answer, &h, NULL));
    atomic_store(&h.may_go, true);
    await(&rig, first + 2);
    rp_test_rig_close(&rig);
    assert_int_equal(atomic_load(&h.answered), 6);
    rp_sim_on_call(disk, NULL, NULL);
    rp_test_rig_open(&rig);
    assert_int_equal(rp_test_rig_info(&rig).last_checkpoint, first + 2);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void a_checkpoint_completes_after_its_caller_left(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_cancel *cancel = NULL;
    hold h = {0};
    rp_test_rig rig;
    uint64_t first;
    char path[100];

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    first = rp_test_rig_info(&rig).checkpoints;
    rp_sim_on_call(disk, hold_up, &h);
    assert_fails(rp_durable_checkpoint(rig.durable, rp_wait_none(), NULL, 0, &rig.err),
                 RP_DEADLINE, &rig.err, "it goes on");
    atomic_store(&h.may_go, true);
    await(&rig, first + 1);
    atomic_store(&h.may_go, false);
    assert_ok(rp_cancel_new(&cancel));
    rp_cancel_fire(cancel);
    assert_int_equal(
        rp_durable_checkpoint(rig.durable, (rp_wait){RP_FOREVER, cancel}, NULL, 0, NULL),
        RP_CANCELLED);
    atomic_store(&h.may_go, true);
    await(&rig, first + 2);
    rp_cancel_free(cancel);
    assert_ok(rp_durable_checkpoint(rig.durable, rp_wait_forever(), path, sizeof path, NULL));
    assert_string_equal(path, "sim/manifest/0000000000000004");
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* Also if one is being written, which has not what he wanted saved. */
static void a_request_that_times_out_during_a_checkpoint_still_gets_the_next(void **state)
{
    rp_sim *disk = rp_sim_new();
    hold h = {0};
    rp_test_rig rig;
    uint64_t first;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    first = rp_test_rig_info(&rig).checkpoints;
    rp_sim_on_call(disk, hold_up, &h);
    assert_ok(rp_durable_start_checkpoint(rig.durable, count_answer, &h, NULL));
    while (!atomic_load(&h.is_held)) {}
    assert_int_equal(rp_durable_checkpoint(rig.durable, rp_wait_none(), NULL, 0, NULL),
                     RP_DEADLINE);
    atomic_store(&h.may_go, true);
    await(&rig, first + 2);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void checkpoints_are_written_periodically_and_loaded(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    uint64_t first;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.period_ns = 2000000;
    rp_test_rig_open(&rig);
    first = rp_test_rig_info(&rig).checkpoints;
    await(&rig, first + 3);
    rp_sim_fail(disk, &(rp_sim_fault){.call = 1, .error = RP_SIM_ENOSPC, .for_good = true});
    while (rp_test_rig_info(&rig).failed_checkpoints < 3 ||
           atomic_load(&rig.degraded_count) < 3) {}
    assert_true(rp_test_rig_info(&rig).degraded);
    assert_true(strlen(rp_test_rig_info(&rig).trouble) > 0);
    rp_sim_fail(disk, &(rp_sim_fault){0});
    await(&rig, rp_test_rig_info(&rig).checkpoints + 2);
    assert_false(rp_test_rig_info(&rig).degraded);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static pthread_t asker;
static atomic_uint_fast64_t read_bytes;
static atomic_size_t reads_by_asker;

static rp_status count_reads(rp_files *fs, uint64_t *total, uint64_t *available, rp_error *err)
{
    (void)fs, (void)err;
    if (pthread_equal(pthread_self(), asker)) atomic_fetch_add(&reads_by_asker, 1);
    *total = 2 * atomic_load(&read_bytes);
    *available = atomic_load(&read_bytes);
    return RP_OK;
}

/* A disk that does not respond delays the checkpoint thread, not whoever asks. */
static void the_free_space_is_not_read_by_who_asks_for_it(void **state)
{
    rp_sim *disk = rp_sim_new();
    uint64_t total = 0, available = 0;
    rp_files_ops ops;
    rp_test_rig rig;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    ops = *rig.files->ops;
    ops.space = count_reads;
    rig.files->ops = &ops;
    atomic_store(&read_bytes, UINT64_C(1) << 30);
    rp_test_rig_open(&rig);
    asker = pthread_self();
    atomic_store(&reads_by_asker, 0);
    rp_durable_space(rig.durable, &total, &available);
    assert_int_equal(total, UINT64_C(2) << 30);
    assert_int_equal(available, UINT64_C(1) << 30);
    atomic_store(&read_bytes, UINT64_C(1) << 29);
    while (available != UINT64_C(1) << 29) { /* a second after the first reading */
        rp_durable_space(rig.durable, &total, &available);
        (void)sched_yield();
    }
    assert_int_equal(atomic_load(&reads_by_asker), 0);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

RP_TESTS(checkpoint_requests)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_during_a_checkpoint_waits_for_the_next),
        cmocka_unit_test(a_checkpoint_completes_after_its_caller_left),
        cmocka_unit_test(a_request_that_times_out_during_a_checkpoint_still_gets_the_next),
        cmocka_unit_test(checkpoints_are_written_periodically_and_loaded),
        cmocka_unit_test(the_free_space_is_not_read_by_who_asks_for_it),
        cmocka_unit_test(a_checkpoint_is_of_its_instant_despite_concurrent_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
