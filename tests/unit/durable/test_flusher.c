/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes segments beside a checkpoint: alone, and in checkpoints of some
 * megabytes, on disks that fail. */
#include "durable/checkpoint/flusher.h"
#include "support/durable_bed.h"
#include "support/segments_rig.h"
#include "util/thread.h"

enum { ITEMS = 1300, PAYLOAD = 8000 }; /* more than are queued before the flusher is used */

static void put(rp_rig *rig, uint64_t key)
{
    rp_chunk *chunk = rp_rig_chunk(key, 300);
    rp_disk_location location;

    assert_ok(rp_segments_put_chunk(rig->segments, chunk, &location));
    rp_chunk_unref(chunk);
}

static void a_pass_writes_what_is_queued(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_flusher f;

    (void)state;
    rp_flusher_init(&f, rig.segments);
    assert_ok(rp_flusher_end(&f, NULL)); /* before any request */
    for (uint64_t round = 0; round < 3; round++) {
        put(&rig, 2 * round);
        assert_ok(rp_flusher_request(&f, true, NULL));
        assert_true(f.has_thread);
        assert_int_equal(rp_segments_queued(rig.segments), 0);
        put(&rig, 2 * round + 1);
        assert_ok(rp_flusher_request(&f, false, NULL));
        assert_ok(rp_flusher_end(&f, NULL));
        assert_false(f.has_thread);
        rp_rig_check(&rig);
    }
    rp_flusher_deinit(&f);
    rp_rig_close(&rig);
}

static void a_failed_pass_is_reported_until_the_end(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_error err = {0};
    rp_flusher f;

    (void)state;
    rp_flusher_init(&f, rig.segments);
    put(&rig, 1);
    assert_ok(rp_flusher_request(&f, true, NULL));
    rp_sim_fail(rig.disk, &(rp_sim_fault){.call = 1, .error = RP_SIM_EIO, .for_good = true});
    put(&rig, 2);
    assert_int_equal(rp_flusher_request(&f, true, &err), RP_UNAVAILABLE);
    assert_true(strlen(err.text) > 0);
    rp_sim_fail(rig.disk, &(rp_sim_fault){0});
    err.text[0] = '\0';
    assert_int_equal(rp_flusher_request(&f, true, &err), RP_UNAVAILABLE); /* F2 */
    assert_true(strlen(err.text) > 0);
    assert_true(rp_segments_queued(rig.segments) > 0);
    assert_int_equal(rp_flusher_end(&f, &err), RP_UNAVAILABLE);
    rp_flusher_deinit(&f);
    assert_ok(rp_segments_sync(rig.segments, NULL));
    rp_rig_check(&rig);
    rp_rig_close(&rig);
}

/* The thread that writes to a segment first, and the one that renames files, which is the
 * checkpoint thread. */
typedef struct threads {
    _Atomic(pthread_t) first_writer, renamer;
    atomic_bool has_written;
} threads;

static void note_thread(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                        const char *path)
{
    threads *t = ctx;

    (void)disk, (void)number;
    if (strcmp(call, "rename") == 0) atomic_store(&t->renamer, pthread_self());
    if (strcmp(call, "write") != 0 || strncmp(path, "seg/", 4) != 0) return;
    if (!atomic_exchange(&t->has_written, true)) atomic_store(&t->first_writer, pthread_self());
}

static void fill(rp_test_rig *rig, rp_sim *disk, uint64_t first_key)
{
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, ITEMS);

    rp_test_rig_init(rig, disk, NULL);
    rig->options.segment_bytes = 3 << 20;
    (void)rp_test_bed_table(&rig->bed, &o);
    rp_test_rig_open(rig);
    rp_test_put_items(rig, rp_test_rig_find(rig, "t"), first_key, ITEMS, PAYLOAD);
}

/* What a process would find after a power cut now is the table. */
static void expect_saved(rp_test_rig *rig, rp_sim *disk)
{
    rp_sim *image = rp_sim_after(disk, RP_SIM_NONE, 1);

    assert_int_equal(rp_test_digest_on(image, "t"),
                     rp_table_digest(rp_test_rig_find(rig, "t")));
    rp_sim_free(image);
}

/* More is queued than the checkpoint thread may queue, and only the flusher writes before the
 * last block is put. */
static void a_large_checkpoint_is_written_by_two_threads(void **state)
{
    rp_sim *disk = rp_sim_new();
    threads t = {0};
    rp_test_rig rig;
    bool is_same;

    (void)state;
    fill(&rig, disk, 1);
    rp_sim_on_call(disk, note_thread, &t);
    rp_test_rig_save(&rig);
    rp_sim_on_call(disk, NULL, NULL);
    assert_true(atomic_load(&t.has_written));
    is_same = pthread_equal(atomic_load(&t.first_writer), atomic_load(&t.renamer)) != 0;
    assert_int_equal(is_same, rp_thread_processors() == 1);
    assert_true(rp_test_rig_info(&rig).last_checkpoint_bytes > (uint64_t)ITEMS * PAYLOAD);
    expect_saved(&rig, disk);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* The number of calls depends on the threads, so the loop ends when no call has failed. */
static void a_failed_call_of_either_thread_does_no_harm(void **state)
{
    static const rp_sim_error errors[] = {RP_SIM_EIO, RP_SIM_ENOSPC};
    rp_sim *disk = rp_sim_new();
    uint64_t key = 1, failures = 0;
    rp_test_rig rig;
    rp_status st;

    (void)state;
    fill(&rig, disk, key);
    for (size_t e = 0; e < COUNT_OF(errors); e++)
        for (uint64_t call = 1, failed = 1; failed > 0;
             call += rp_test_length(rp_test_step(8, 40), 200)) {
            rp_test_put_items(&rig, rp_test_rig_find(&rig, "t"), key += ITEMS, ITEMS, PAYLOAD);
            rp_sim_fail(disk,
                        &(rp_sim_fault){.call = rp_sim_calls(disk) + call, .error = errors[e]});
            st = rp_test_rig_try_save(&rig);
            failed = rp_sim_failed(disk);
            rp_sim_fail(disk, &(rp_sim_fault){0});
            if (failed == 0) assert_ok_err(st, &rig.err);
            if (st != RP_OK)
                failures++;
            else
                expect_saved(&rig, disk);
        }
    assert_true(failures > 0);
    rp_test_rig_save(&rig);
    expect_saved(&rig, disk);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

RP_TESTS(flusher)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_writes_what_is_queued),
        cmocka_unit_test(a_failed_pass_is_reported_until_the_end),
        cmocka_unit_test(a_large_checkpoint_is_written_by_two_threads),
        cmocka_unit_test(a_failed_call_of_either_thread_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
