/* SPDX-License-Identifier: Apache-2.0 */
/* The journal on a simulated disk: what it promises when power is cut or calls fail. */
#include "support/journal_bed.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

static const int64_t second_ns = 1000000000;

static void records_are_read_back(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = rp_test_journal_options(files, sync);
        rp_journal *j = rp_test_journal_start(&o);
        rp_journal_info info;
        rp_error err;

        for (int i = 0; i < 200; i++) {
            uint64_t lsn = rp_test_append(j);
            if (i % 7 == 0)
                assert_ok_err(rp_journal_wait(j, lsn, rp_wait_forever(), &err), &err);
        }
        assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
        rp_journal_get_info(j, &info);
        assert_int_equal(info.synced, 200);
        assert_int_equal(info.safe, 200);
        assert_true(info.files > 2 && !info.in_trouble);
        rp_test_journal_stop(j);
        rp_test_expect_all(disk, 0, 200);
        rp_test_expect_all(disk, 77, 200);
        rp_test_expect_all(disk, 200, 200);
        o.next_lsn = 201; /* and on, in a second life */
        j = rp_test_journal_start(&o);
        for (int i = 0; i < 50; i++) (void)rp_test_append(j);
        assert_ok(rp_journal_trim(j, 120, &err));
        rp_test_journal_stop(j);
        rp_test_expect_all(disk, 120, 250);
        assert_int_equal(rp_sim_open_handles(disk), 0);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

static void trimming_removes_files(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j = rp_test_journal_start(&o);
    rp_journal_info before, after;
    uint64_t last, torn;
    rp_error err;

    (void)state;
    for (int i = 0; i < 300; i++)
        assert_ok(rp_journal_wait(j, rp_test_append(j), rp_wait_forever(), &err));
    rp_journal_get_info(j, &before);
    assert_ok(rp_journal_trim(j, 150, &err));
    rp_journal_get_info(j, &after);
    assert_true(after.files < before.files && after.files > 1);
    rp_test_journal_stop(j);
    rp_test_expect_all(disk, 150, 300);
    assert_fails(rp_test_read_back(files, 0, false, &last, &torn, &err), RP_CORRUPT, &err,
                 "comes");
    files->ops->free(files);
    rp_sim_free(disk);
}

static void waits_end_by_timeout_and_cancellation(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j = rp_test_journal_start(&o);
    rp_cancel *cancel;
    rp_error err;

    (void)state;
    assert_ok(rp_cancel_new(&cancel));
    rp_cancel_fire(cancel);
    assert_fails(rp_journal_wait(j, 5, rp_wait_ms(5), &err), RP_DEADLINE, &err, "in time");
    assert_fails(rp_journal_wait(j, 5, rp_wait_none(), &err), RP_DEADLINE, &err, "yet");
    assert_fails(rp_journal_wait(j, 5, (rp_wait){RP_FOREVER, cancel}, &err), RP_CANCELLED, &err,
                 "ended");
    rp_cancel_free(cancel);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

typedef struct committer {
    rp_journal *j;
    pthread_t thread;
    size_t times;
} committer;

static void *commit(void *arg)
{
    committer *c = arg;
    uint8_t data[8] = {0};
    rp_bytes part = {data, sizeof data};

    for (size_t i = 0; i < c->times; i++) {
        uint64_t lsn = rp_journal_append(c->j, RP_RECORD_EVICT, &part, 1, NULL);
        if (rp_journal_wait(c->j, lsn, rp_wait_forever(), NULL) != RP_OK) abort();
    }
    return NULL;
}

static void slow_sync(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                      const char *path)
{
    struct timespec nap = {0, 200000};

    (void)ctx, (void)disk, (void)number, (void)path;
    if (strcmp(call, "sync") == 0) (void)nanosleep(&nap, NULL);
}

static void waiting_committers_share_syncs(void **state)
{
    enum { THREADS = 8, TIMES = 100 };
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    committer committers[THREADS];
    rp_journal_info info;
    rp_journal *j;

    (void)state;
    o.release = NULL;
    o.file_bytes = 0;
    rp_sim_on_call(disk, slow_sync, NULL);
    j = rp_test_journal_start(&o);
    for (size_t i = 0; i < THREADS; i++) {
        committers[i] = (committer){j, 0, TIMES};
        assert_true(
            rp_thread_start(&committers[i].thread, "committer", commit, &committers[i]));
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(committers[i].thread, NULL), 0);
    rp_journal_get_info(j, &info);
    assert_int_equal(info.safe, THREADS * TIMES);
    assert_true(info.syncs < THREADS * TIMES / 2); /* about an eighth */
    assert_ok(rp_journal_stop(j, NULL));
    files->ops->free(files);
    rp_sim_free(disk);
}

typedef struct cutter {
    _Atomic(rp_journal *) j;
    bool sync;
    size_t images;
    rp_rng rng;
} cutter;

/* What is on an image must be a prefix with everything that was promised; and the journal goes
 * on from there. */
static void check_image(rp_sim *image, uint64_t least, bool goes_on)
{
    rp_files *files = rp_sim_mount(image);
    uint64_t last = 0, torn;
    rp_error err = {.text = ""};

    assert_ok_err(rp_test_read_back(files, 0, false, &last, &torn, &err), &err);
    if (last < least)
        print_error("last %" PRIu64 ", promised %" PRIu64 " torn %" PRIu64 "\n", last, least,
                    torn);
    assert_true(last >= least);
    if (goes_on) {
        rp_journal_options o = rp_test_journal_options(files, true);
        rp_journal *j;

        o.next_lsn = last + 1;
        o.release = NULL;
        j = rp_test_journal_start(&o);
        for (int i = 0; i < 5; i++) {
            uint8_t data[RP_TEST_MOST_BYTES];
            uint64_t lsn = rp_journal_last(j) + 1;
            rp_bytes part = {data, rp_test_fill(lsn, data)};
            (void)rp_journal_append(j, rp_test_kind_of(lsn), &part, 1, NULL);
        }
        assert_ok_err(rp_journal_stop(j, &err), &err);
        rp_test_expect_all(image, 0, last + 5);
    }
    files->ops->free(files);
    rp_sim_free(image);
}

static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    cutter *c = ctx;
    rp_journal *j = atomic_load(&c->j);
    uint64_t safe = j != NULL ? rp_journal_safe(j) : 0;

    (void)path;
    for (int v = 0; v < RP_SIM_VARIANTS; v++, c->images++)
        check_image(rp_sim_after(disk, (rp_sim_variant)v, rp_rng_next(&c->rng)),
                    c->sync ? safe : 0, (number + (uint64_t)v) % 16 == 0);
    /* A killed process loses nothing that was safe, in either mode. */
    check_image(rp_sim_copy(disk), safe, false);
    (void)call;
}

static void power_cuts_leave_a_prefix(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = rp_test_journal_options(files, sync);
        cutter c = {.sync = sync};
        size_t count = rp_test_scaled(120, 30);
        rp_error err;
        rp_journal *j;

        rp_rng_init(&c.rng, 5);
        rp_sim_on_call(disk, on_call, &c);
        j = rp_test_journal_start(&o);
        atomic_store(&c.j, j);
        for (size_t i = 0; i < count; i++) {
            uint64_t lsn = rp_test_append(j);
            if (i % 3 == 0) assert_ok(rp_journal_wait(j, lsn, rp_wait_forever(), &err));
            if (i % 40 == 39) assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        }
        atomic_store(&c.j, NULL);
        rp_test_journal_stop(j);
        assert_true(c.images > 100);
        rp_sim_on_call(disk, NULL, NULL);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

/* Call `number` fails once: afterwards all is there, on stable storage. False: there was no
 * such call. */
static bool survives_failure(uint64_t number, rp_sim_error error, bool sync)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, sync);
    rp_sim_fault fault = {.call = number, .error = error, .seed = number};
    rp_journal *j = NULL;
    rp_error err;
    rp_status st;
    bool was_reached;

    rp_sim_fail(disk, &fault);
    st = rp_journal_start(&o, &j, &err);
    if (st == RP_OK) {
        rp_test_work_through(j, 25);
        rp_test_sync_in_the_end(j);
        rp_sim_drop_caches(disk);
        image = rp_sim_after(disk, RP_SIM_NONE, 1);
        check_image(image, 25, false);
        st = rp_journal_stop(j, &err); /* the call may be one of those at the end */
        assert_int_equal(atomic_load(&rp_test_alive), 0);
    } else {
        assert_true(rp_sim_failed(disk) > 0);
    }
    was_reached = rp_sim_calls(disk) >= number;
    image = rp_sim_after(disk, RP_SIM_NONE, 2);
    check_image(image, j != NULL ? 25 : 0, true);
    assert_int_equal(rp_sim_open_handles(disk), 0);
    files->ops->free(files);
    rp_sim_free(disk);
    return was_reached;
}

static void every_call_may_fail(void **state)
{
    uint64_t step = rp_test_length(rp_test_step(1, 3), 7);

    (void)state;
    for (int sync = 0; sync < 2; sync++)
        for (int error = 0; error < RP_SIM_ERRORS; error++)
            for (uint64_t number = 1; survives_failure(number, (rp_sim_error)error, sync);)
                number += step;
}

/* While it is not 0, no journal file can be made, written or synced, and it counts how often
 * that was tried. Files can be removed. */
static void fail_journal(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                         const char *path)
{
    atomic_int *tries = ctx;

    if (atomic_load(tries) == 0 || strncmp(path, "wal/", 4) != 0) return;
    if (strcmp(call, "open") != 0 && strcmp(call, "write") != 0 && strcmp(call, "sync") != 0)
        return;
    atomic_fetch_add(tries, 1);
    rp_sim_fail(disk, &(rp_sim_fault){.call = number, .seed = number});
}

/* Records that were acknowledged and not synced stay when checkpoints trim the journal and the
 * file that is to take their place cannot be made. */
static void acknowledged_records_are_not_trimmed_issue_20(void **state)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_files *files = rp_sim_mount(disk), *copied;
    rp_journal_options o = rp_test_journal_options(files, false);
    atomic_int tries = 0;
    uint64_t last, torn;
    rp_journal_info info;
    rp_journal *j;
    rp_status st;
    rp_error err;

    (void)state;
    o.interval_ns = INT64_C(3600) * 1000000000;
    o.file_bytes = 1 << 20;
    rp_sim_on_call(disk, fail_journal, &tries);
    j = rp_test_journal_start(&o);
    for (int i = 0; i < 5; i++) (void)rp_test_append(j);
    assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
    for (int i = 0; i < 5; i++) (void)rp_test_append(j);
    assert_ok(rp_journal_wait(j, 10, rp_wait_forever(), &err));
    atomic_store(&tries, 1);
    (void)rp_test_append(j);
    for (int i = 0; i < 20000 && atomic_load(&tries) < 5; i++) /* a new file was tried */
        (void)nanosleep(&(struct timespec){0, 500000}, NULL);
    rp_journal_get_info(j, &info);
    assert_int_equal(info.condemned, 1);

    assert_ok_err(rp_journal_trim(j, 5, &err), &err);

    image = rp_sim_copy(disk);
    copied = rp_sim_mount(image);
    assert_ok_err(rp_test_read_back(copied, 5, false, &last, &torn, &err), &err);
    assert_true(last >= 10);
    copied->ops->free(copied);
    rp_sim_free(image);
    st = rp_journal_stop(j, &err);
    assert_int_equal(st, RP_UNAVAILABLE);
    rp_sim_on_call(disk, NULL, NULL);
    files->ops->free(files);
    rp_sim_free(disk);
}

typedef struct victim {
    char path[RP_SIM_PATH];
    uint64_t size;
} victim;

typedef struct victims {
    victim list[32];
    size_t count;
} victims;

static void note_file(void *ctx, const char *path, uint64_t size)
{
    victims *v = ctx;

    if (v->count == COUNT_OF(v->list) || strncmp(path, "wal/", 4) != 0) return;
    (void)snprintf(v->list[v->count].path, RP_SIM_PATH, "%s", path);
    v->list[v->count++].size = size;
}

/* Of a journal that was sealed everything is known to have been stored: no bit can change
 * unnoticed. */
static void damage_is_noticed(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j = rp_test_journal_start(&o);
    victims all = {.count = 0};
    size_t undone = 0, tried = 0;
    rp_error err;

    (void)state;
    rp_test_work_through(j, 60);
    rp_test_journal_stop(j);
    rp_sim_list(disk, note_file, &all);
    assert_true(all.count > 1);
    for (size_t i = 0; i < all.count; i++)
        for (uint64_t bit = 0; bit < 8 * all.list[i].size;
             bit += rp_test_length(rp_test_step(11, 89), 503), tried++) {
            uint64_t last = 0, torn = 0, salvaged = 0;
            rp_status st;

            assert_true(rp_sim_flip(disk, all.list[i].path, bit));
            st = rp_test_read_back(files, 0, false, &last, &torn, &err);
            if (last == 60) { /* only marks at the end of a file */
                assert_int_equal(st, RP_OK);
                undone++;
            } else if (i + 1 == all.count) {
                /* Behind the last SYNCED a flipped bit looks like a torn tail. */
                assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_PRECONDITION);
                if (st == RP_OK && last < 60) assert_true(torn > 0);
            } else {
                assert_true(st == RP_CORRUPT || st == RP_PRECONDITION);
                if (st == RP_CORRUPT)
                    assert_ok(rp_test_read_back(files, 0, true, &salvaged, &torn, &err));
                assert_true(salvaged < 60);
            }
            assert_true(rp_sim_flip(disk, all.list[i].path, bit));
        }
    assert_true(undone < tried / 4);
    rp_test_expect_all(disk, 0, 60);
    files->ops->free(files);
    rp_sim_free(disk);
}

static void damage_in_the_middle_is_not_a_torn_tail(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j;
    rp_sim *image;
    rp_files *mounted;
    uint64_t last, torn;
    rp_error err;
    char path[RP_JOURNAL_PATH_BYTES];

    (void)state;
    o.file_bytes = 0;
    j = rp_test_journal_start(&o);
    rp_test_work_through(j,
                         30); /* each with a sync: but for the last, all are marked as synced */
    image = rp_sim_after(disk, RP_SIM_ALL, 1);
    rp_test_journal_stop(j);
    mounted = rp_sim_mount(image);
    assert_true(rp_sim_flip(image, rp_journal_path(path, 1), 8 * 100));
    assert_fails(rp_test_read_back(mounted, 0, false, &last, &torn, &err), RP_CORRUPT, &err,
                 "on stable storage");
    assert_ok(rp_test_read_back(mounted, 0, true, &last, &torn, &err));
    assert_true(last < 30);
    assert_true(rp_sim_flip(image, path, 8 * 100));
    assert_ok(rp_test_read_back(mounted, 0, false, &last, &torn, &err));
    assert_int_equal(last, 30);
    mounted->ops->free(mounted);
    rp_sim_free(image);
    files->ops->free(files);
    rp_sim_free(disk);
}

static rp_status refuse_20(void *ctx, const rp_record *record, rp_error *err)
{
    (void)ctx, (void)err;
    return record->number == 20 ? RP_NOT_FOUND : RP_OK;
}

/* A record that speaks of what is not there is where a tail is torn, if it may be. */
static void a_record_with_a_missing_chunk_is_a_torn_tail_without_sync(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = rp_test_journal_options(files, false);
        rp_journal *j;
        uint64_t last, torn;
        rp_error err;
        rp_status st;
        rp_sim *image;
        rp_files *mounted;

        o.file_bytes = 0;
        o.interval_ns = 3600 * second_ns;
        j = rp_test_journal_start(&o);
        for (int i = 0; i < 30; i++) {
            assert_ok(rp_journal_wait(j, rp_test_append(j), rp_wait_forever(), &err));
            if (sync) assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        }
        image = rp_sim_copy(disk);
        mounted = rp_sim_mount(image);
        st = rp_journal_read(&(rp_journal_read_options){.alloc = rp_allocator_default(),
                                                        .files = mounted,
                                                        .store = &rp_test_store_id,
                                                        .how = RP_JOURNAL_LIVE,
                                                        .each = refuse_20},
                             &last, &torn, &err);
        assert_int_equal(st, sync ? RP_CORRUPT : RP_OK);
        assert_int_equal(last, 19);
        rp_test_journal_stop(j);
        mounted->ops->free(mounted);
        rp_sim_free(image);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

/* Whatever there is no memory for: nothing leaks, nothing is promised and lost. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (size_t room = 0; room < 40; room++) {
        rp_test_oom oom = RP_TEST_OOM_INIT(room);
        rp_allocator alloc = rp_test_oom_allocator(&oom);
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = rp_test_journal_options(files, true);
        rp_journal *j = NULL;
        uint64_t safe = 0, last, torn;
        rp_error err;

        o.alloc = &alloc;
        if (rp_journal_start(&o, &j, &err) == RP_OK) {
            for (int i = 0; i < 30; i++)
                if (rp_journal_wait(j, rp_test_append(j), rp_wait_ms(100), &err) != RP_OK)
                    continue;
            safe = rp_journal_safe(j);
            (void)rp_journal_stop(j, &err);
            assert_int_equal(atomic_load(&rp_test_alive), 0);
        }
        assert_int_equal(oom.live, 0);
        assert_ok_err(rp_test_read_back(files, 0, false, &last, &torn, &err), &err);
        assert_true(last >= safe);
        assert_int_equal(rp_sim_open_handles(disk), 0);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

static const rp_files_ops *real_ops;

static rp_status size_of_a_sparse_file(rp_file *file, uint64_t *size, rp_error *err)
{
    rp_status st = real_ops->size(file, size, err);

    *size = UINT64_C(4) << 40;
    return st;
}

/* A journal file is read whole, so one that is far too large is refused before it is read. */
static void the_size_of_a_file_has_a_bound(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j = rp_test_journal_start(&o);
    uint64_t last, torn;
    rp_files_ops ops;
    rp_error err;

    (void)state;
    rp_test_work_through(j, 3);
    rp_test_journal_stop(j);
    real_ops = files->ops;
    ops = *real_ops;
    ops.size = size_of_a_sparse_file;
    files->ops = &ops;
    assert_fails(rp_test_read_back(files, 0, false, &last, &torn, &err), RP_CORRUPT, &err,
                 "a journal file at most");
    files->ops = real_ops;
    files->ops->free(files);
    rp_sim_free(disk);
}

RP_TESTS(journal)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_back),
        cmocka_unit_test(trimming_removes_files),
        cmocka_unit_test(waits_end_by_timeout_and_cancellation),
        cmocka_unit_test(waiting_committers_share_syncs),
        cmocka_unit_test(power_cuts_leave_a_prefix),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(acknowledged_records_are_not_trimmed_issue_20),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(damage_in_the_middle_is_not_a_torn_tail),
        cmocka_unit_test(a_record_with_a_missing_chunk_is_a_torn_tail_without_sync),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(the_size_of_a_file_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
