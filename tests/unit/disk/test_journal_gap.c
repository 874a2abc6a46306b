/* SPDX-License-Identifier: Apache-2.0 */
/* A journal whose disk fails for so long that it discards its backlog, and the files that it
 * leaves. */
#include "support/journal_bed.h"

#include "util/error.h"

/* A journal that gives up soon, with ten records that are synced. */
static rp_journal *start_with_ten(rp_journal_options *o)
{
    rp_journal *j;
    rp_error err;

    o->max_queued = 4000;
    j = rp_test_journal_start(o);
    rp_test_work_through(j, 10);
    assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
    return j;
}

/* An older checkpoint has the numbers up to the gap, and no error. */
static void expect_gap(rp_sim *disk, uint64_t cut)
{
    uint64_t last = 0, torn = 0, before;
    bool is_there = false;
    rp_error err;

    for (int i = 0; i < 5000 && !is_there; i++) { /* until the thread has written the gap */
        rp_sim *image = rp_sim_copy(disk);
        rp_files *files = rp_sim_mount(image);

        /* If a checkpoint that had what is missing is damaged, nobody else has it. */
        is_there =
            rp_test_read_as(files, 3, RP_JOURNAL_OLDER, &before, &torn, &err) == RP_CORRUPT;
        assert_ok_err(rp_test_read_back(files, 3, false, &last, &torn, &err), &err);
        assert_int_equal(last, before);
        files->ops->free(files);
        rp_sim_free(image);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    /* Of the write that failed first, there is some part, or by chance nothing. */
    assert_true(is_there && last >= 10 && last < cut);
}

/* A checkpoint up to `cut` is complete. */
static void complete(rp_journal *j, uint64_t cut)
{
    rp_error err;

    assert_ok_err(rp_journal_trim(j, cut, &err), &err);
    rp_journal_resume(j, cut);
}

static void expect_well(rp_journal *j)
{
    rp_journal_info info;

    for (int i = 0; i < 5000; i++) {
        rp_journal_get_info(j, &info);
        if (!info.in_trouble) break;
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_false(info.in_trouble || info.is_lost);
}

/* With a disk that is away for good, sync mode promises nothing, and interval mode everything
 * until it has to give up. */
static void a_failing_disk_loses_no_promised_record(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = rp_test_journal_options(files, sync);
        rp_sim_fault away = {.error = RP_SIM_EIO, .for_good = true};
        uint64_t last, torn, cut;
        rp_error err;
        rp_journal *j;

        j = start_with_ten(&o);
        away.call = rp_sim_calls(disk) + 1;
        rp_sim_fail(disk, &away);
        (void)rp_test_append(j);
        if (sync) {
            rp_status st = rp_journal_wait(j, 11, rp_wait_forever(), &err);
            assert_int_equal(st, RP_UNAVAILABLE);
            for (int i = 0; !rp_journal_is_behind(j, true); i++) (void)rp_test_append(j);
            assert_int_equal(rp_journal_safe(j), 10);
        } else {
            for (int i = 0; !rp_journal_is_lost(j) && i < 10000; i++) {
                uint64_t lsn = rp_test_append(j);
                assert_ok_err(rp_journal_wait(j, lsn, rp_wait_ms(5000), &err), &err);
                assert_false(rp_journal_is_behind(j, true) && rp_journal_is_lost(j));
            }
            assert_true(rp_journal_is_lost(j));
            assert_int_equal(rp_journal_sync(j, rp_wait_ms(1000), &err), RP_UNAVAILABLE);
        }
        rp_sim_fail(disk, &(rp_sim_fault){0});
        if (sync) {
            rp_test_work_through(j, 5); /* all that waited has gone out */
            assert_int_equal(rp_journal_safe(j), rp_journal_last(j));
            last = rp_journal_last(j);
            rp_test_journal_stop(j);
            rp_test_expect_all(disk, 0, last);
        } else {
            cut = rp_journal_cut(j);
            for (int i = 0; i < 7; i++) (void)rp_test_append(j);
            complete(j, 0); /* not that one */
            expect_gap(disk, cut);
            complete(j, cut);
            rp_test_work_through(j, 5);
            expect_well(j);
            last = rp_journal_last(j);
            rp_test_journal_stop(j);
            assert_ok_err(rp_test_read_back(files, cut, false, &last, &torn, &err), &err);
            assert_int_equal(last, cut + 12);
        }
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

/* The disk is away from so many calls on, until the journal gives up. */
static void lose(rp_journal *j, rp_sim *disk, uint64_t calls)
{
    rp_sim_fault away = {.call = rp_sim_calls(disk) + calls,
                         .error = RP_SIM_EIO,
                         .for_good = true,
                         .seed = calls};
    rp_error err;

    rp_sim_fail(disk, &away);
    for (int i = 0; !rp_journal_is_lost(j) && i < 10000; i++)
        assert_ok_err(rp_journal_wait(j, rp_test_append(j), rp_wait_ms(5000), &err), &err);
    assert_true(rp_journal_is_lost(j));
}

typedef struct cuts {
    size_t with_temporary, with_gap; /* images that have them */
} cuts;

static void find_temporary(void *ctx, const char *path, uint64_t size)
{
    (void)size;
    if (strcmp(path, RP_JOURNAL_TEMPORARY) == 0) *(bool *)ctx = true;
}

/* Whatever a power cut leaves here can be read. */
static void cut_here(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                     const char *path)
{
    cuts *c = ctx;

    (void)call;
    (void)path;
    for (int v = 0; v < RP_SIM_VARIANTS; v++) {
        rp_sim *image = rp_sim_after(disk, (rp_sim_variant)v, number);
        rp_files *files = rp_sim_mount(image);
        uint64_t last, torn;
        bool has_temporary = false;
        rp_error err;

        assert_ok_err(rp_test_read_back(files, 3, false, &last, &torn, &err), &err);
        rp_sim_list(image, find_temporary, &has_temporary);
        c->with_temporary += has_temporary;
        c->with_gap +=
            rp_test_read_as(files, 3, RP_JOURNAL_OLDER, &last, &torn, &err) == RP_CORRUPT;
        files->ops->free(files);
        rp_sim_free(image);
    }
}

/* The file that says what was given up has its name only with that in it: whenever power is
 * cut, what came before is no damage; also if call `again` after the disk is back fails. */
static void check_gap(uint64_t seed, uint64_t again)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, false);
    cuts c = {0};
    uint64_t cut;
    rp_journal *j;

    j = start_with_ten(&o);
    lose(j, disk, 1 + seed);
    rp_sim_on_call(disk, cut_here, &c);
    rp_sim_fail(disk, &(rp_sim_fault){.call = again > 0 ? rp_sim_calls(disk) + again : 0,
                                      .error = RP_SIM_EIO,
                                      .seed = seed});
    cut = rp_journal_cut(j);
    rp_test_work_through(j, 5);
    rp_test_sync_in_the_end(j);
    rp_sim_on_call(disk, NULL, NULL); /* from here on the newest checkpoint is another */
    complete(j, cut);
    expect_well(j);
    rp_test_journal_stop(j);
    assert_true(c.with_temporary > 0 && c.with_gap > 0);
    assert_int_equal(rp_sim_open_handles(disk), 0);
    files->ops->free(files);
    rp_sim_free(disk);
}

static void a_gap_is_recorded_whole_or_not_at_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) check_gap(seed, 0);
    for (uint64_t again = 1; again < 10; again++) check_gap(again, again);
}

static rp_status refuse_one(void *ctx, const rp_record *record, rp_error *err)
{
    (void)err;
    return record->number == *(uint64_t *)ctx ? RP_NOT_FOUND : RP_OK;
}

/* What was given up may speak of what is gone: nobody had promised it. */
static void chunks_missing_before_a_gap_are_no_damage(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, false);
    uint64_t cut, last, torn, refused = 13;
    const rp_journal_read_options read = {.alloc = rp_allocator_default(),
                                          .files = files,
                                          .store = &rp_test_store_id,
                                          .how = RP_JOURNAL_LIVE,
                                          .each = refuse_one,
                                          .ctx = &refused};
    rp_error err;
    rp_journal *j;

    (void)state;
    o.interval_ns = (int64_t)3600 * 1000000000;
    j = start_with_ten(&o);
    rp_test_work_through(j, 5); /* written, and not synced */
    lose(j, disk, 1);
    rp_sim_fail(disk, &(rp_sim_fault){0});
    cut = rp_journal_cut(j);
    rp_test_work_through(j, 5);
    rp_test_sync_in_the_end(j);
    assert_ok_err(rp_journal_read(&read, &last, &torn, &err), &err);
    assert_int_equal(last, 12);
    assert_true(torn > 0);
    refused = 8;
    assert_int_equal(rp_journal_read(&read, &last, &torn, &err), RP_CORRUPT);
    assert_int_equal(last, 7);
    complete(j, cut);
    expect_well(j);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

static void count_trouble(void *ctx, const rp_error *why)
{
    if (why != NULL) (void)atomic_fetch_add((atomic_size_t *)ctx, 1);
}

static void expect_told(atomic_size_t *told, size_t count)
{
    for (int i = 0; i < 5000 && atomic_load(told) < count; i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(atomic_load(told), count);
}

/* A checkpoint that began before has not what is given up while it is written: whoever has
 * checkpoints made is told that another is needed. */
static void giving_up_records_during_a_checkpoint_requests_another(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    atomic_size_t told = 0;
    uint64_t cut;
    rp_journal *j;

    (void)state;
    o.on_trouble = count_trouble;
    o.ctx = &told;
    j = rp_test_journal_start(&o);
    (void)rp_journal_append_nothing(j);
    expect_told(&told, 1);
    cut = rp_journal_cut(j);
    (void)rp_journal_append_nothing(j);
    expect_told(&told, 2);
    complete(j, cut);
    assert_true(rp_journal_is_lost(j));
    cut = rp_journal_cut(j);
    complete(j, cut);
    rp_test_work_through(j, 5);
    expect_told(&told, 2);
    assert_int_equal(rp_journal_safe(j), cut + 5);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* A disk that makes no new segments, and a record for one as soon as the journal has written.
 */
static struct broken {
    const rp_files_ops *real;
    rp_segments *segments;
    atomic_bool is_broken, is_armed;
} broken;

static rp_status open_unless_broken(rp_files *fs, const char *path, rp_open_how how,
                                    rp_file **out, rp_error *err)
{
    if (atomic_load(&broken.is_broken) && strncmp(path, "seg/", 4) == 0)
        return rp_fail(err, RP_UNAVAILABLE, "%s: broken", path);
    return broken.real->open(fs, path, how, out, err);
}

static rp_status write_then_put(rp_file *file, uint64_t offset, const rp_bytes *parts,
                                size_t count, rp_error *err)
{
    static const uint8_t block[5000];
    rp_status st = broken.real->write(file, offset, parts, count, err);
    rp_disk_location location;

    if (atomic_exchange(&broken.is_armed, false))
        assert_ok(rp_segments_put(broken.segments, RP_RECORD_BLOCK, 1, block, sizeof block,
                                  &location));
    return st;
}

/* What was written and not synced is given up as well: a power cut leaves no more of it than
 * of what was not written. */
static void written_records_may_be_given_up(void **state)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_files *files = rp_sim_mount(disk);
    rp_files_ops ops = *files->ops;
    rp_segments_options so = {.alloc = rp_allocator_default(),
                              .files = files,
                              .store = rp_test_store_id,
                              .next_number = 1};
    rp_journal_options o = rp_test_journal_options(files, false);
    rp_journal_info info = {0};
    uint64_t last, torn, cut;
    rp_error err;
    rp_journal *j;

    (void)state;
    broken = (struct broken){.real = files->ops};
    ops.open = open_unless_broken;
    ops.write = write_then_put;
    files->ops = &ops;
    assert_ok_err(rp_segments_new(&so, &broken.segments, &err), &err);
    o.segments = broken.segments;
    o.max_queued = 4000;
    o.file_bytes = 1 << 20;
    j = rp_test_journal_start(&o);
    rp_test_work_through(j, 10);
    assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
    atomic_store(&broken.is_broken, true);
    atomic_store(&broken.is_armed, true);
    (void)rp_test_append(j);
    for (int i = 0; !rp_journal_is_lost(j) && i < 5000; i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(rp_journal_is_lost(j));
    cut = rp_journal_cut(j);
    atomic_store(&broken.is_broken, false);
    for (int i = 0; i < 5; i++) (void)rp_test_append(j);
    for (int i = 0; info.synced < cut + 5 && i < 5000; i++) {
        rp_journal_get_info(j, &info);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    image = rp_sim_after(disk, RP_SIM_NONE, 1);
    complete(j, cut);
    rp_test_work_through(j, 1);
    rp_test_journal_stop(j);
    files->ops = broken.real;
    rp_segments_free(broken.segments);
    files->ops->free(files);
    files = rp_sim_mount(image);
    assert_ok_err(rp_test_read_back(files, 3, false, &last, &torn, &err), &err);
    assert_int_equal(last, 10);
    files->ops->free(files);
    rp_sim_free(image);
    rp_sim_free(disk);
}

static void count_pass(void *ctx)
{
    (void)atomic_fetch_add((atomic_size_t *)ctx, 1);
}

/* A journal that waits for a checkpoint has nothing to do: its thread sleeps, also when the
 * time of its next try or sync has passed. */
static void a_journal_that_gave_up_sleeps_issue_20(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, false);
    atomic_size_t passes = 0;
    size_t before;
    rp_journal *j;

    (void)state;
    o.on_pass = count_pass;
    o.ctx = &passes;
    j = start_with_ten(&o);
    lose(j, disk, 1);

    before = atomic_load(&passes);
    (void)nanosleep(&(struct timespec){0, 50 * 1000000}, NULL); /* a hundred times retry_ns */

    assert_true(atomic_load(&passes) - before < 20);
    rp_sim_fail(disk, &(rp_sim_fault){0});
    complete(j, rp_journal_cut(j));
    expect_well(j);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* A checkpoint that completes in the middle of a pass: while the thread lets go of records that
 * it has given up, since the disk is full. */
typedef struct finish {
    rp_sim *disk;
    _Atomic(rp_journal *) journal;
} finish;

static void complete_meanwhile(void *ctx, rp_record_kind kind, const void *raw, size_t size)
{
    finish *f = ctx;
    rp_journal *j = atomic_load(&f->journal);

    rp_test_on_release(ctx, kind, raw, size);
    if (j == NULL || !rp_journal_is_lost(j)) return;
    atomic_store(&f->journal, NULL);
    rp_sim_set_capacity(f->disk, 0);
    rp_journal_resume(j, rp_journal_cut(j));
}

static void a_checkpoint_may_end_within_a_pass_issue_20(void **state)
{
    finish f = {.disk = rp_sim_new()};
    rp_files *files = rp_sim_mount(f.disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    static const uint8_t zeroes[3 * RP_SIM_PAGE];
    rp_bytes large = {zeroes, sizeof zeroes};
    rp_journal *j;

    (void)state;
    o.release = complete_meanwhile;
    o.ctx = &f;
    j = rp_test_journal_start(&o);
    rp_test_work_through(j, 3);
    rp_sim_set_capacity(f.disk, 1);
    atomic_store(&f.journal, j);
    /* One record, and none behind it that would wake the thread. */
    assert_true(rp_journal_append(j, RP_RECORD_UPDATE, &large, 1, NULL) > 0);
    (void)atomic_fetch_add(&rp_test_alive, 1);
    for (int i = 0; i < 10000; i++) {
        if (atomic_load(&f.journal) == NULL && !rp_journal_is_behind(j, true)) break;
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_null(atomic_load(&f.journal));
    assert_false(rp_journal_is_behind(j, true));
    rp_test_work_through(j, 3);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(f.disk);
}

/* All records in memory count in the backlog, also those that are written and not synced. */
static void records_count_until_they_are_synced(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, false);
    uint64_t most, lsn = 0;
    rp_error err;
    rp_journal *j;

    (void)state;
    o.interval_ns = INT64_C(3600) * 1000000000;
    j = start_with_ten(&o);
    assert_int_equal(rp_journal_backlog(j, &most), 0);
    assert_int_equal(most, 4000);
    for (int i = 0; i < 5; i++) lsn = rp_test_append(j);
    assert_ok_err(rp_journal_wait(j, lsn, rp_wait_forever(), &err), &err); /* it is written */
    assert_true(rp_journal_backlog(j, &most) > 0);
    assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
    for (int i = 0; i < 5000 && rp_journal_backlog(j, &most) > 0; i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(rp_journal_backlog(j, &most), 0);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

static bool is_in_trouble(rp_journal *j)
{
    rp_journal_info info;

    rp_journal_get_info(j, &info);
    return info.in_trouble || info.is_lost;
}

/* Changes without chunks, such as deletes, do not wait for ever while a checkpoint frees a full
 * disk, though the checkpoint may need them: their records are given up. */
static void deletes_go_on_while_a_checkpoint_frees_the_disk(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_journal *j;

    (void)state;
    j = start_with_ten(&o);
    rp_sim_set_capacity(disk, 1);
    for (int i = 0; !rp_journal_is_lost(j) && i < 5000; i++) {
        (void)rp_test_append(j);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_true(rp_journal_is_lost(j));
    (void)rp_journal_cut(j); /* the checkpoint has begun, and does not end */
    for (int n = 0; n < 20; n++) {
        for (int i = 0; i < 5000 && rp_journal_is_behind(j, false); i++)
            (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        assert_false(rp_journal_is_behind(j, false));
        assert_true(rp_journal_is_behind(j, true));
        while (!rp_journal_is_behind(j, false)) (void)rp_test_append(j);
    }
    for (int i = 0; !rp_journal_is_lost(j) && i < 5000; i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    rp_sim_set_capacity(disk, 0);
    /* The thread may give up records once more after a cut: then the next checkpoint ends it.
     */
    for (int i = 0; i < 5000 && is_in_trouble(j); i++) {
        complete(j, rp_journal_cut(j));
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    assert_false(is_in_trouble(j));
    rp_test_work_through(j, 3);
    rp_test_journal_stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* Chunks that are queued without a record hold up changes that put chunks, and no others: one
 * of these may end the wait of the inserts that queued them. */
static void queued_chunks_do_not_hold_up_other_changes(void **state)
{
    static const uint8_t block[5000];
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_segments_options so = {.alloc = rp_allocator_default(),
                              .files = files,
                              .store = rp_test_store_id,
                              .next_number = 1};
    rp_journal_options o = rp_test_journal_options(files, true);
    rp_disk_location location;
    rp_segments *segments;
    rp_journal *j;
    rp_error err;

    (void)state;
    assert_ok_err(rp_segments_new(&so, &segments, &err), &err);
    o.segments = segments;
    o.max_queued = sizeof block;
    j = rp_test_journal_start(&o);
    assert_false(rp_journal_is_behind(j, true));
    assert_ok(rp_segments_put(segments, RP_RECORD_BLOCK, 1, block, sizeof block, &location));
    assert_true(rp_journal_is_behind(j, true));
    assert_false(rp_journal_is_behind(j, false));
    rp_test_work_through(j, 1); /* its record also writes the queue */
    assert_false(rp_journal_is_behind(j, true));
    rp_test_journal_stop(j);
    rp_segments_free(segments);
    files->ops->free(files);
    rp_sim_free(disk);
}

RP_TESTS(journal_gap)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_disk_loses_no_promised_record),
        cmocka_unit_test(a_gap_is_recorded_whole_or_not_at_all),
        cmocka_unit_test(chunks_missing_before_a_gap_are_no_damage),
        cmocka_unit_test(giving_up_records_during_a_checkpoint_requests_another),
        cmocka_unit_test(written_records_may_be_given_up),
        cmocka_unit_test(a_journal_that_gave_up_sleeps_issue_20),
        cmocka_unit_test(a_checkpoint_may_end_within_a_pass_issue_20),
        cmocka_unit_test(records_count_until_they_are_synced),
        cmocka_unit_test(deletes_go_on_while_a_checkpoint_frees_the_disk),
        cmocka_unit_test(queued_chunks_do_not_hold_up_other_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
