/* SPDX-License-Identifier: Apache-2.0 */
/* The journal on a simulated disk: what it promises when power is cut or calls fail. */
#include "disk/journal.h"

#include <inttypes.h>
#include <stdio.h>

#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/rng.h"
#include "util/thread.h"

static const rp_store_id id = {{1, 2, 3, 4}};
static const int64_t second_ns = 1000000000;

/* --- records whose contents follow from their numbers ------------------------------------------------- */

enum { MOST_BYTES = 600 };

static size_t fill(uint64_t lsn, uint8_t *out)
{
    rp_rng rng;
    size_t size;

    rp_rng_init(&rng, lsn);
    size = 1 + rp_rng_below(&rng, lsn % 9 == 0 ? MOST_BYTES - 1 : 40);
    for (size_t i = 0; i < size; i++) out[i] = (uint8_t)rp_rng_next(&rng);
    return size;
}

static rp_record_kind kind_of(uint64_t lsn)
{
    return (rp_record_kind)(RP_RECORD_INSERT + lsn % 10);
}

static atomic_size_t alive; /* raw records that the journal has */

static void on_release(void *ctx, rp_record_kind kind, const void *raw, size_t size)
{
    (void)ctx, (void)kind, (void)raw, (void)size;
    (void)atomic_fetch_sub(&alive, 1);
}

static uint64_t append(rp_journal *j)
{
    uint8_t data[MOST_BYTES];
    uint64_t lsn = rp_journal_last(j) + 1; /* one thread appends */
    size_t size = fill(lsn, data);
    rp_bytes parts[2] = {{data, size / 2}, {data + size / 2, size - size / 2}};
    bool is_kept;

    assert_int_equal(rp_journal_append(j, kind_of(lsn), parts, 2, &is_kept), lsn);
    if (is_kept) (void)atomic_fetch_add(&alive, 1);
    return lsn;
}

typedef struct seen {
    uint64_t last;
    size_t count;
} seen;

static rp_status on_record(void *ctx, const rp_record *record, rp_error *err)
{
    seen *s = ctx;
    uint8_t data[MOST_BYTES];
    size_t size = fill(record->number, data);

    (void)err;
    assert_int_equal(record->number, s->last + 1);
    assert_int_equal(record->kind, kind_of(record->number));
    assert_int_equal(record->size, size);
    assert_memory_equal(record->payload, data, size);
    s->last = record->number;
    s->count++;
    return RP_OK;
}

static rp_status read_as(rp_files *files, uint64_t from, rp_journal_reading how, uint64_t *last,
                         uint64_t *torn, rp_error *err)
{
    seen s = {.last = from};
    rp_status st = rp_journal_read(rp_allocator_default(), files, &id, from, how, on_record, &s,
                                   last, torn, err);

    assert_int_equal(*last, s.last);
    return st;
}

static rp_status read_back(rp_files *files, uint64_t from, bool salvage, uint64_t *last,
                           uint64_t *torn, rp_error *err)
{
    return read_as(files, from, salvage ? RP_JOURNAL_SALVAGE : RP_JOURNAL_LIVE, last, torn,
                   err);
}

static rp_journal_options options_for(rp_files *files, bool sync)
{
    return (rp_journal_options){.alloc = rp_allocator_default(),
                                .files = files,
                                .store = id,
                                .next_lsn = 1,
                                .sync = sync,
                                .interval_ns = 2000000,
                                .retry_ns = 500000,
                                .file_bytes = 3000,
                                .release = on_release};
}

static rp_journal *start(const rp_journal_options *o)
{
    rp_journal *j = NULL;
    rp_error err;

    assert_ok_err(rp_journal_start(o, &j, &err), &err);
    return j;
}

static void stop(rp_journal *j)
{
    rp_error err;

    assert_ok_err(rp_journal_stop(j, &err), &err);
    assert_int_equal(atomic_load(&alive), 0);
}

static void expect_all(rp_sim *disk, uint64_t from, uint64_t to)
{
    rp_files *files = rp_sim_mount(disk);
    uint64_t last, torn;
    rp_error err;

    assert_ok_err(read_back(files, from, false, &last, &torn, &err), &err);
    assert_int_equal(last, to);
    assert_int_equal(torn, 0);
    files->ops->free(files);
}

/* --- plain use ------------------------------------------------------------------------------------------- */

static void records_come_back(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = options_for(files, sync);
        rp_journal *j = start(&o);
        rp_journal_info info;
        rp_error err;

        for (int i = 0; i < 200; i++) {
            uint64_t lsn = append(j);
            if (i % 7 == 0)
                assert_ok_err(rp_journal_wait(j, lsn, rp_wait_forever(), &err), &err);
        }
        assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
        rp_journal_get_info(j, &info);
        assert_int_equal(info.synced, 200);
        assert_int_equal(info.safe, 200);
        assert_true(info.files > 2 && !info.in_trouble);
        stop(j);
        expect_all(disk, 0, 200);
        expect_all(disk, 77, 200);
        expect_all(disk, 200, 200);
        o.next_lsn = 201; /* and on, in a second life */
        j = start(&o);
        for (int i = 0; i < 50; i++) (void)append(j);
        assert_ok(rp_journal_trim(j, 120, 120, &err));
        stop(j);
        expect_all(disk, 120, 250);
        assert_int_equal(rp_sim_open_handles(disk), 0);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

static void trimming_removes_files(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, true);
    rp_journal *j = start(&o);
    rp_journal_info before, after;
    uint64_t last, torn;
    rp_error err;

    (void)state;
    for (int i = 0; i < 300; i++)
        assert_ok(rp_journal_wait(j, append(j), rp_wait_forever(), &err));
    rp_journal_get_info(j, &before);
    assert_ok(rp_journal_trim(j, 150, 150, &err));
    rp_journal_get_info(j, &after);
    assert_true(after.files < before.files && after.files > 1);
    stop(j);
    expect_all(disk, 150, 300);
    assert_fails(read_back(files, 0, false, &last, &torn, &err), RP_CORRUPT, &err, "comes");
    files->ops->free(files);
    rp_sim_free(disk);
}

static void waits_end(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, true);
    rp_journal *j = start(&o);
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
    stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* --- group commit ---------------------------------------------------------------------------------------- */

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

static void those_who_wait_share_syncs(void **state)
{
    enum { THREADS = 8, TIMES = 100 };
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, true);
    committer committers[THREADS];
    rp_journal_info info;
    rp_journal *j;

    (void)state;
    o.release = NULL;
    o.file_bytes = 0;
    rp_sim_on_call(disk, slow_sync, NULL);
    j = start(&o);
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

/* --- power cuts ------------------------------------------------------------------------------------------ */

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

    assert_ok_err(read_back(files, 0, false, &last, &torn, &err), &err);
    if (last < least)
        print_error("last %" PRIu64 ", promised %" PRIu64 " torn %" PRIu64 "\n", last, least,
                    torn);
    assert_true(last >= least);
    if (goes_on) {
        rp_journal_options o = options_for(files, true);
        rp_journal *j;

        o.next_lsn = last + 1;
        o.release = NULL;
        j = start(&o);
        for (int i = 0; i < 5; i++) {
            uint8_t data[MOST_BYTES];
            uint64_t lsn = rp_journal_last(j) + 1;
            rp_bytes part = {data, fill(lsn, data)};
            (void)rp_journal_append(j, kind_of(lsn), &part, 1, NULL);
        }
        assert_ok_err(rp_journal_stop(j, &err), &err);
        expect_all(image, 0, last + 5);
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
        rp_journal_options o = options_for(files, sync);
        cutter c = {.sync = sync};
        size_t count = rp_test_scaled(120, 30);
        rp_error err;
        rp_journal *j;

        rp_rng_init(&c.rng, 5);
        rp_sim_on_call(disk, on_call, &c);
        j = start(&o);
        atomic_store(&c.j, j);
        for (size_t i = 0; i < count; i++) {
            uint64_t lsn = append(j);
            if (i % 3 == 0) assert_ok(rp_journal_wait(j, lsn, rp_wait_forever(), &err));
            if (i % 40 == 39) assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        }
        atomic_store(&c.j, NULL);
        stop(j);
        assert_true(c.images > 100);
        rp_sim_on_call(disk, NULL, NULL);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

/* --- failures --------------------------------------------------------------------------------------------- */

/* Appends and waits; if a wait says that it cannot write, waits until it can. */
static void work_through(rp_journal *j, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t lsn = append(j);
        rp_error err;
        rp_status st = RP_UNAVAILABLE;

        for (int tries = 0; st == RP_UNAVAILABLE && tries < 20000; tries++) {
            st = rp_journal_wait(j, lsn, rp_wait_ms(2000), &err);
            if (st == RP_UNAVAILABLE) (void)nanosleep(&(struct timespec){0, 200000}, NULL);
        }
        assert_ok_err(st, &err);
    }
}

/* Until the disk has been tried again. */
static void sync_in_the_end(rp_journal *j)
{
    rp_error err;
    rp_status st = rp_journal_sync(j, rp_wait_forever(), &err);

    for (int i = 0; st == RP_UNAVAILABLE && i < 20000; i++) {
        (void)nanosleep(&(struct timespec){0, 200000}, NULL);
        st = rp_journal_sync(j, rp_wait_forever(), &err);
    }
    assert_ok_err(st, &err);
}

/* Call `number` fails once: afterwards all is there, on stable storage. False: there was no
 * such call. */
static bool survives_failure(uint64_t number, rp_sim_error error, bool sync)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, sync);
    rp_sim_fault fault = {.call = number, .error = error, .seed = number};
    rp_journal *j = NULL;
    rp_error err;
    rp_status st;
    bool was_reached;

    rp_sim_fail(disk, &fault);
    st = rp_journal_start(&o, &j, &err);
    if (st == RP_OK) {
        work_through(j, 25);
        sync_in_the_end(j);
        rp_sim_drop_caches(disk);
        image = rp_sim_after(disk, RP_SIM_NONE, 1);
        check_image(image, 25, false);
        st = rp_journal_stop(j, &err); /* the call may be one of those at the end */
        assert_int_equal(atomic_load(&alive), 0);
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
    uint64_t step = rp_test_scale() < 0.5 ? 3 : 1;

    (void)state;
    for (int sync = 0; sync < 2; sync++)
        for (int error = 0; error < RP_SIM_ERRORS; error++)
            for (uint64_t number = 1; survives_failure(number, (rp_sim_error)error, sync);)
                number += step;
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
        is_there = read_as(files, 3, RP_JOURNAL_OLDER, &before, &torn, &err) == RP_CORRUPT;
        assert_ok_err(read_back(files, 3, false, &last, &torn, &err), &err);
        assert_int_equal(last, before);
        files->ops->free(files);
        rp_sim_free(image);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    /* Of the write that failed first, there is some part, or by chance nothing. */
    assert_true(is_there && last >= 10 && last < cut);
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
static void a_disk_that_is_away(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = options_for(files, sync);
        rp_sim_fault away = {.error = RP_SIM_EIO, .for_good = true};
        uint64_t last, torn, cut;
        rp_error err;
        rp_journal *j;

        o.max_queued = 4000;
        j = start(&o);
        work_through(j, 10);
        assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        away.call = rp_sim_calls(disk) + 1;
        rp_sim_fail(disk, &away);
        (void)append(j);
        if (sync) {
            rp_status st = rp_journal_wait(j, 11, rp_wait_forever(), &err);
            assert_int_equal(st, RP_UNAVAILABLE);
            for (int i = 0; !rp_journal_is_behind(j); i++) (void)append(j);
            assert_int_equal(rp_journal_safe(j), 10);
        } else {
            for (int i = 0; !rp_journal_is_lost(j) && i < 10000; i++) {
                uint64_t lsn = append(j);
                assert_ok_err(rp_journal_wait(j, lsn, rp_wait_ms(5000), &err), &err);
                assert_false(rp_journal_is_behind(j) && rp_journal_is_lost(j));
            }
            assert_true(rp_journal_is_lost(j));
            assert_int_equal(rp_journal_sync(j, rp_wait_ms(1000), &err), RP_UNAVAILABLE);
        }
        rp_sim_fail(disk, &(rp_sim_fault){0});
        if (sync) {
            work_through(j, 5); /* all that waited has gone out */
            assert_int_equal(rp_journal_safe(j), rp_journal_last(j));
            last = rp_journal_last(j);
            stop(j);
            expect_all(disk, 0, last);
        } else {
            cut = rp_journal_cut(j);
            for (int i = 0; i < 7; i++) (void)append(j);
            assert_ok(rp_journal_trim(j, 0, 0, &err)); /* not that one */
            expect_gap(disk, cut);
            assert_ok(rp_journal_trim(j, cut, cut, &err));
            work_through(j, 5);
            expect_well(j);
            last = rp_journal_last(j);
            stop(j);
            assert_ok_err(read_back(files, cut, false, &last, &torn, &err), &err);
            assert_int_equal(last, cut + 12);
        }
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

typedef struct cuts {
    size_t with_temporary, with_gap; /* images that had them */
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

        assert_ok_err(read_back(files, 3, false, &last, &torn, &err), &err);
        rp_sim_list(image, find_temporary, &has_temporary);
        c->with_temporary += has_temporary;
        c->with_gap += read_as(files, 3, RP_JOURNAL_OLDER, &last, &torn, &err) == RP_CORRUPT;
        files->ops->free(files);
        rp_sim_free(image);
    }
}

/* The file that says what was given up has its name only with that in it: whenever power is
 * cut, what came before is no damage. */
static void a_gap_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = options_for(files, false);
        rp_sim_fault away = {.error = RP_SIM_EIO, .for_good = true, .seed = seed};
        cuts c = {0};
        uint64_t cut;
        rp_error err;
        rp_journal *j;

        o.max_queued = 4000;
        j = start(&o);
        work_through(j, 10);
        assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        away.call = rp_sim_calls(disk) + 1 + seed;
        rp_sim_fail(disk, &away);
        for (int i = 0; !rp_journal_is_lost(j) && i < 10000; i++)
            assert_ok_err(rp_journal_wait(j, append(j), rp_wait_ms(5000), &err), &err);
        assert_true(rp_journal_is_lost(j));
        rp_sim_on_call(disk, cut_here, &c);
        rp_sim_fail(disk, &(rp_sim_fault){0});
        cut = rp_journal_cut(j);
        work_through(j, 5);
        sync_in_the_end(j);
        rp_sim_on_call(disk, NULL, NULL); /* from here on the newest checkpoint is another */
        assert_ok(rp_journal_trim(j, cut, cut, &err));
        expect_well(j);
        stop(j);
        assert_true(c.with_temporary > 0 && c.with_gap > 0);
        files->ops->free(files);
        rp_sim_free(disk);
    }
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
static void what_is_given_up_again_is_told_again(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, true);
    atomic_size_t told = 0;
    uint64_t cut;
    rp_error err;
    rp_journal *j;

    (void)state;
    o.on_trouble = count_trouble;
    o.ctx = &told;
    j = start(&o);
    (void)rp_journal_append_nothing(j);
    expect_told(&told, 1);
    cut = rp_journal_cut(j);
    (void)rp_journal_append_nothing(j);
    expect_told(&told, 2);
    assert_ok(rp_journal_trim(j, cut, cut, &err));
    assert_true(rp_journal_is_lost(j));
    cut = rp_journal_cut(j);
    assert_ok(rp_journal_trim(j, cut, cut, &err));
    work_through(j, 5);
    expect_told(&told, 2);
    assert_int_equal(rp_journal_safe(j), cut + 5);
    stop(j);
    files->ops->free(files);
    rp_sim_free(disk);
}

/* A disk that makes no new segments, and a record for one as soon as the journal has written.
 */
static struct full {
    const rp_files_ops *real;
    rp_segments *segments;
    atomic_bool is_full, is_armed;
} full;

static rp_status open_unless_full(rp_files *fs, const char *path, rp_open_how how,
                                  rp_file **out, rp_error *err)
{
    if (atomic_load(&full.is_full) && strncmp(path, "seg/", 4) == 0)
        return rp_fail(err, RP_NO_RESOURCE, "%s: full", path);
    return full.real->open(fs, path, how, out, err);
}

static rp_status write_then_put(rp_file *file, uint64_t offset, const rp_bytes *parts,
                                size_t count, rp_error *err)
{
    static const uint8_t block[5000];
    rp_status st = full.real->write(file, offset, parts, count, err);
    rp_place place;

    if (atomic_exchange(&full.is_armed, false))
        assert_ok(
            rp_segments_put(full.segments, RP_RECORD_BLOCK, 1, block, sizeof block, &place));
    return st;
}

/* What was written and not synced is given up as well: a power cut leaves no more of it than
 * of what was not written. */
static void what_is_given_up_may_be_written(void **state)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_files *files = rp_sim_mount(disk);
    rp_files_ops ops = *files->ops;
    rp_segments_options so = {
        .alloc = rp_allocator_default(), .files = files, .store = id, .next_number = 1};
    rp_journal_options o = options_for(files, false);
    rp_journal_info info = {0};
    uint64_t last, torn, cut;
    rp_error err;
    rp_journal *j;

    (void)state;
    full = (struct full){.real = files->ops};
    ops.open = open_unless_full;
    ops.write = write_then_put;
    files->ops = &ops;
    assert_ok_err(rp_segments_new(&so, &full.segments, &err), &err);
    o.segments = full.segments;
    o.max_queued = 4000;
    o.file_bytes = 1 << 20;
    j = start(&o);
    work_through(j, 10);
    assert_ok_err(rp_journal_sync(j, rp_wait_forever(), &err), &err);
    atomic_store(&full.is_full, true);
    atomic_store(&full.is_armed, true);
    (void)append(j);
    for (int i = 0; !rp_journal_is_lost(j) && i < 5000; i++)
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_true(rp_journal_is_lost(j));
    cut = rp_journal_cut(j);
    atomic_store(&full.is_full, false);
    for (int i = 0; i < 5; i++) (void)append(j);
    for (int i = 0; info.synced < cut + 5 && i < 5000; i++) {
        rp_journal_get_info(j, &info);
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    image = rp_sim_after(disk, RP_SIM_NONE, 1);
    assert_ok_err(rp_journal_trim(j, cut, cut, &err), &err);
    work_through(j, 1);
    stop(j);
    files->ops = full.real;
    rp_segments_free(full.segments);
    files->ops->free(files);
    files = rp_sim_mount(image);
    assert_ok_err(read_back(files, 3, false, &last, &torn, &err), &err);
    assert_int_equal(last, 10);
    files->ops->free(files);
    rp_sim_free(image);
    rp_sim_free(disk);
}

/* --- damage ------------------------------------------------------------------------------------------------ */

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
    rp_journal_options o = options_for(files, true);
    rp_journal *j = start(&o);
    victims all = {.count = 0};
    size_t undone = 0, tried = 0;
    rp_error err;

    (void)state;
    work_through(j, 60);
    stop(j);
    rp_sim_list(disk, note_file, &all);
    assert_true(all.count > 1);
    for (size_t i = 0; i < all.count; i++)
        for (uint64_t bit = 0; bit < 8 * all.list[i].size;
             bit += rp_test_step(11, 89), tried++) {
            uint64_t last = 0, torn = 0, salvaged = 0;
            rp_status st;

            assert_true(rp_sim_flip(disk, all.list[i].path, bit));
            st = read_back(files, 0, false, &last, &torn, &err);
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
                    assert_ok(read_back(files, 0, true, &salvaged, &torn, &err));
                assert_true(salvaged < 60);
            }
            assert_true(rp_sim_flip(disk, all.list[i].path, bit));
        }
    assert_true(undone < tried / 4);
    expect_all(disk, 0, 60);
    files->ops->free(files);
    rp_sim_free(disk);
}

static void a_middle_that_is_damaged_is_no_tail(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);
    rp_journal_options o = options_for(files, true);
    rp_journal *j;
    rp_sim *image;
    rp_files *mounted;
    uint64_t last, torn;
    rp_error err;
    char path[RP_JOURNAL_PATH_BYTES];

    (void)state;
    o.file_bytes = 0;
    j = start(&o);
    work_through(j, 30); /* each with a sync: but for the last, all are marked as synced */
    image = rp_sim_after(disk, RP_SIM_ALL, 1);
    stop(j);
    mounted = rp_sim_mount(image);
    assert_true(rp_sim_flip(image, rp_journal_path(path, 1), 8 * 100));
    assert_fails(read_back(mounted, 0, false, &last, &torn, &err), RP_CORRUPT, &err,
                 "on stable storage");
    assert_ok(read_back(mounted, 0, true, &last, &torn, &err));
    assert_true(last < 30);
    assert_true(rp_sim_flip(image, path, 8 * 100));
    assert_ok(read_back(mounted, 0, false, &last, &torn, &err));
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
static void what_is_not_there_ends_it(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = options_for(files, false);
        rp_journal *j;
        uint64_t last, torn;
        rp_error err;
        rp_status st;
        rp_sim *image;
        rp_files *mounted;

        o.file_bytes = 0;
        o.interval_ns = 3600 * second_ns;
        j = start(&o);
        for (int i = 0; i < 30; i++) {
            assert_ok(rp_journal_wait(j, append(j), rp_wait_forever(), &err));
            if (sync) assert_ok(rp_journal_sync(j, rp_wait_forever(), &err));
        }
        image = rp_sim_copy(disk);
        mounted = rp_sim_mount(image);
        st = rp_journal_read(rp_allocator_default(), mounted, &id, 0, RP_JOURNAL_LIVE,
                             refuse_20, NULL, &last, &torn, &err);
        assert_int_equal(st, sync ? RP_CORRUPT : RP_OK);
        assert_int_equal(last, 19);
        stop(j);
        mounted->ops->free(mounted);
        rp_sim_free(image);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

/* --- memory ------------------------------------------------------------------------------------------------ */

/* Whatever there is no memory for: nothing leaks, nothing is promised and lost. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (size_t room = 0; room < 40; room++) {
        rp_test_oom oom = RP_TEST_OOM_INIT(room);
        rp_allocator alloc = rp_test_oom_allocator(&oom);
        rp_sim *disk = rp_sim_new();
        rp_files *files = rp_sim_mount(disk);
        rp_journal_options o = options_for(files, true);
        rp_journal *j = NULL;
        uint64_t safe = 0, last, torn;
        rp_error err;

        o.alloc = &alloc;
        if (rp_journal_start(&o, &j, &err) == RP_OK) {
            for (int i = 0; i < 30; i++)
                if (rp_journal_wait(j, append(j), rp_wait_ms(100), &err) != RP_OK) continue;
            safe = rp_journal_safe(j);
            (void)rp_journal_stop(j, &err);
            assert_int_equal(atomic_load(&alive), 0);
        }
        assert_int_equal(oom.live, 0);
        assert_ok_err(read_back(files, 0, false, &last, &torn, &err), &err);
        assert_true(last >= safe);
        assert_int_equal(rp_sim_open_handles(disk), 0);
        files->ops->free(files);
        rp_sim_free(disk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(trimming_removes_files),
        cmocka_unit_test(waits_end),
        cmocka_unit_test(those_who_wait_share_syncs),
        cmocka_unit_test(power_cuts_leave_a_prefix),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_disk_that_is_away),
        cmocka_unit_test(a_gap_is_there_whole_or_not_at_all),
        cmocka_unit_test(what_is_given_up_again_is_told_again),
        cmocka_unit_test(what_is_given_up_may_be_written),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(a_middle_that_is_damaged_is_no_tail),
        cmocka_unit_test(what_is_not_there_ends_it),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
