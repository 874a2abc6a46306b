/* SPDX-License-Identifier: Apache-2.0 */
/* Interval mode: changes are written, and so acknowledged, while a sync runs. The test holds a
 * sync back, so nothing depends on how long one takes. */
#include "disk/segments.h"
#include "support/journal_bed.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mutex.h"

/* Holds back one sync of a disk, and then lets it pass or fail. */
static struct gate {
    const rp_files_ops *real;
    rp_mutex mu;
    rp_cond cv;
    int left; /* the sync that is held back, counted from now; 0: none */
    bool is_held, is_released, fails;
} gate;

static rp_status sync_at_gate(rp_file *file, rp_error *err)
{
    bool fails = false;

    rp_mutex_lock(&gate.mu);
    if (gate.left > 0 && --gate.left == 0) {
        gate.is_held = true;
        rp_cond_broadcast(&gate.cv);
        while (!gate.is_released) (void)rp_cond_wait(&gate.cv, &gate.mu, INT64_MAX);
        gate.is_held = false;
        fails = gate.fails;
    }
    rp_mutex_unlock(&gate.mu);
    if (fails) return rp_fail(err, RP_UNAVAILABLE, "the sync fails");
    return gate.real->sync(file, err);
}

/* Holds back the sync with that number, from 1. */
static void gate_close(int number, bool fails)
{
    rp_mutex_lock(&gate.mu);
    gate.left = number;
    gate.is_released = false;
    gate.fails = fails;
    rp_mutex_unlock(&gate.mu);
}

static void gate_await(void)
{
    rp_mutex_lock(&gate.mu);
    while (!gate.is_held) (void)rp_cond_wait(&gate.cv, &gate.mu, INT64_MAX);
    rp_mutex_unlock(&gate.mu);
}

static void gate_open(void)
{
    rp_mutex_lock(&gate.mu);
    gate.is_released = true;
    rp_cond_broadcast(&gate.cv);
    rp_mutex_unlock(&gate.mu);
}

typedef struct bed {
    rp_sim *disk;
    rp_files *files;
    rp_files_ops ops;
    rp_segments *segments;
    rp_journal *j;
} bed;

static void bed_init(bed *b, uint64_t max_queued)
{
    rp_segments_options so = {
        .alloc = rp_allocator_default(), .store = rp_test_store_id, .next_number = 1};
    rp_journal_options o;
    rp_error err;

    b->disk = rp_sim_new();
    so.files = b->files = rp_sim_mount(b->disk);
    gate = (struct gate){.real = b->files->ops};
    rp_mutex_init(&gate.mu, RP_RANK_WAITER);
    rp_cond_init(&gate.cv);
    b->ops = *b->files->ops;
    b->ops.sync = sync_at_gate;
    b->files->ops = &b->ops;
    assert_ok_err(rp_segments_new(&so, &b->segments, &err), &err);
    o = rp_test_journal_options(b->files, false);
    o.segments = b->segments;
    o.file_bytes = 1 << 20;
    o.max_queued = max_queued;
    b->j = rp_test_journal_start(&o);
}

static void bed_deinit(bed *b)
{
    rp_test_journal_stop(b->j);
    rp_segments_free(b->segments);
    b->files->ops = gate.real;
    assert_int_equal(rp_sim_open_handles(b->disk), 0);
    b->files->ops->free(b->files);
    rp_sim_free(b->disk);
    rp_cond_deinit(&gate.cv);
    rp_mutex_deinit(&gate.mu);
}

/* A chunk's worth of bytes for the segments, and a record. */
static uint64_t change(bed *b)
{
    static const uint8_t block[500];
    rp_disk_location location;

    assert_ok(rp_segments_put(b->segments, RP_RECORD_BLOCK, 1, block, sizeof block, &location));
    return rp_test_append(b->j);
}

static void change_and_wait(bed *b)
{
    rp_error err;

    assert_ok_err(rp_journal_wait(b->j, change(b), rp_wait_ms(20000), &err), &err);
}

static uint64_t synced(bed *b)
{
    rp_journal_info info;

    rp_journal_get_info(b->j, &info);
    return info.synced;
}

/* After a power cut, at least `count` records are there. */
static void expect_on_disk(bed *b, uint64_t count)
{
    rp_sim *image = rp_sim_after(b->disk, RP_SIM_NONE, 1);
    rp_files *files = rp_sim_mount(image);
    uint64_t last, torn;
    rp_error err;

    assert_ok_err(rp_test_read_back(files, 0, false, &last, &torn, &err), &err);
    assert_true(last >= count);
    files->ops->free(files);
    rp_sim_free(image);
}

/* Number 1 is the sync of the segment, number 2 that of the journal. */
static void changes_are_acknowledged_while_a_sync_runs_issue_20(void **state)
{
    (void)state;
    for (int number = 1; number <= 2; number++) {
        uint64_t before;
        rp_error err;
        bed b;

        bed_init(&b, 0);
        change_and_wait(&b);
        assert_ok_err(rp_journal_sync(b.j, rp_wait_forever(), &err), &err);
        before = synced(&b);
        gate_close(number, false);
        change_and_wait(&b);
        gate_await();
        for (int i = 0; i < 20; i++) change_and_wait(&b);
        assert_int_equal(synced(&b), before);
        /* A disk that does not complete the sync is noticed, though the journal goes on. */
        assert_true(rp_journal_stalled_ns(b.j, rp_now_ns() + 3600000000000) > 0);
        gate_open();
        assert_ok_err(rp_journal_sync(b.j, rp_wait_forever(), &err), &err);
        assert_int_equal(synced(&b), 22);
        expect_on_disk(&b, 22);
        bed_deinit(&b);
    }
}

/* If a sync fails, records that were written meanwhile are written again as well. */
static void changes_made_during_a_failing_sync_are_kept_issue_20(void **state)
{
    (void)state;
    for (int number = 1; number <= 2; number++) {
        rp_journal_info info;
        bed b;

        bed_init(&b, 0);
        gate_close(number, true);
        change_and_wait(&b);
        gate_await();
        for (int i = 0; i < 20; i++) change_and_wait(&b);
        gate_open();
        rp_test_sync_in_the_end(b.j);
        rp_test_work_through(b.j, 3);
        rp_test_sync_in_the_end(b.j);
        rp_journal_get_info(b.j, &info);
        assert_int_equal(info.condemned, 1);
        expect_on_disk(&b, 24);
        rp_test_expect_all(b.disk, 0, 24);
        bed_deinit(&b);
    }
}

/* The chunks that records refer to are in memory until the sync: they have a bound. */
static void writing_waits_for_a_sync_that_falls_behind_issue_20(void **state)
{
    enum { MOST = 4000 };
    uint64_t lsn = 0, waiting, put;
    rp_error err;
    bed b;

    (void)state;
    bed_init(&b, MOST);
    gate_close(2, false); /* of the journal */
    change_and_wait(&b);
    gate_await();
    put = rp_segments_put_bytes(b.segments, &waiting);
    for (int i = 0; i < 1000 && !rp_journal_is_behind(b.j, true); i++) {
        lsn = change(&b);
        (void)!rp_journal_wait(b.j, lsn, rp_wait_ms(20), NULL);
    }
    assert_true(rp_journal_is_behind(b.j, true));
    assert_true(rp_segments_put_bytes(b.segments, &waiting) - put <= 3 * MOST);
    gate_open();
    assert_ok_err(rp_journal_wait(b.j, lsn, rp_wait_forever(), &err), &err);
    bed_deinit(&b);
}

static void count_pass(void *ctx)
{
    (void)atomic_fetch_add((atomic_size_t *)ctx, 1);
}

/* Chunks of inserts that wait for their tables are written although no change is logged, and
 * those who wait for the queue hear of it. */
static void queued_chunks_are_written_without_a_record_issue_20(void **state)
{
    static const uint8_t block[5000];

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_segments_options so = {.alloc = rp_allocator_default(),
                                  .files = files,
                                  .store = rp_test_store_id,
                                  .next_number = 1};
        rp_journal_options o = rp_test_journal_options(files, sync);
        rp_disk_location location;
        atomic_size_t passes = 0;
        rp_segments *segments;
        rp_journal *j;
        rp_error err;

        assert_ok_err(rp_segments_new(&so, &segments, &err), &err);
        o.segments = segments;
        o.max_queued = sizeof block;
        o.on_pass = count_pass;
        o.ctx = &passes;
        o.release = NULL;
        j = rp_test_journal_start(&o);
        for (int round = 0; round < 3; round++) {
            size_t before = atomic_load(&passes);

            assert_ok(
                rp_segments_put(segments, RP_RECORD_BLOCK, 1, block, sizeof block, &location));
            assert_true(rp_journal_is_behind(j, true));
            for (int i = 0; i < 5000 && (atomic_load(&passes) == before ||
                                         rp_segments_queued(segments) > 0);
                 i++)
                (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
            assert_false(rp_journal_is_behind(j, true));
        }
        assert_int_equal(rp_journal_last(j), 0);
        rp_test_journal_stop(j);
        rp_segments_free(segments);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

RP_TESTS(journal_beside)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_acknowledged_while_a_sync_runs_issue_20),
        cmocka_unit_test(changes_made_during_a_failing_sync_are_kept_issue_20),
        cmocka_unit_test(writing_waits_for_a_sync_that_falls_behind_issue_20),
        cmocka_unit_test(queued_chunks_are_written_without_a_record_issue_20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
