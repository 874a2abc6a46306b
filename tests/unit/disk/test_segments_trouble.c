/* SPDX-License-Identifier: Apache-2.0 */
/* Segments on a disk that fails and loses power, without memory, and with many threads. Chunks
 * that rp_segments_sync() has reported as safe must be at their locations after a power cut;
 * other chunks must be written again. */
#include <pthread.h>
#include <stdio.h>

#include "support/segments_rig.h"
#include "util/thread.h"

enum { CHUNKS = 30, BLOCK_BYTES = 700 };

/* A run of work, in which anything may fail and be tried again. */
typedef struct script {
    rp_rig rig;
    rp_chunk *chunks[CHUNKS];
    uint8_t block[BLOCK_BYTES];
    rp_disk_location block_location;
    size_t safe; /* so many chunks are safe */
    bool block_is_safe;
    uint64_t generation; /* of the block's place */
    size_t failures;
} script;

static void script_init(script *c)
{
    *c = (script){0};
    for (size_t i = 0; i < CHUNKS; i++) c->chunks[i] = rp_rig_chunk(i, i % 7 == 3 ? 6000 : 300);
    for (size_t i = 0; i < BLOCK_BYTES; i++) c->block[i] = (uint8_t)(i * 3);
}

static void script_deinit(script *c)
{
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(c->chunks[i]);
}

/* True if it went well; a failure must be one of the disk's or of memory. */
static bool is_fine(script *c, rp_status st)
{
    rp_rig_check(&c->rig);
    if (st == RP_OK) return true;
    assert_true(st == RP_UNAVAILABLE || st == RP_NO_RESOURCE || st == RP_EXISTS);
    c->failures++;
    return false;
}

static bool put_some(script *c, size_t from, size_t to)
{
    size_t half = (from + to) / 2; /* the chunks from here on are put together */
    rp_disk_location at;
    uint64_t n;

    for (size_t i = from; i < half; i++)
        if (!is_fine(c, rp_segments_put_chunk(c->rig.segments, c->chunks[i], &at)))
            return false;
    return is_fine(c, rp_segments_put_chunks(c->rig.segments, &c->chunks[half], to - half, &n));
}

/* Puts the block, unless its place of before still counts. */
static bool put_block(script *c)
{
    uint64_t generation = rp_segments_generation(c->rig.segments);

    if (c->block_location.segment != 0 && (c->block_is_safe || c->generation == generation))
        return true;
    c->generation = generation;
    return is_fine(c, rp_segments_put(c->rig.segments, RP_RECORD_BLOCK, 1, c->block,
                                      BLOCK_BYTES, &c->block_location));
}

/* One try of everything that is not safe. */
static bool try_once(script *c)
{
    rp_segments *s = c->rig.segments;
    size_t third = CHUNKS / 3;

    if (!put_some(c, 0, third) || !is_fine(c, rp_segments_flush(s, NULL))) return false;
    if (!put_some(c, third, 2 * third) || !is_fine(c, rp_segments_sync(s, NULL))) return false;
    c->safe = 2 * third;
    if (!put_block(c) || !put_some(c, 2 * third, CHUNKS)) return false;
    if (!is_fine(c, rp_segments_flush(s, NULL)) || !is_fine(c, rp_segments_sync(s, NULL)))
        return false;
    c->safe = CHUNKS;
    c->block_is_safe = c->generation == rp_segments_generation(s);
    return c->block_is_safe;
}

static rp_status read_all(const script *c, rp_segments *s, rp_disk_location *locations,
                          size_t count, rp_error *err)
{
    rp_status st = RP_OK;
    uint64_t bytes;

    for (size_t i = 0; i < count && st == RP_OK; i++) {
        st = rp_segments_open(s, locations[i].segment, &bytes, err);
        if (st == RP_OK) st = rp_rig_compare(s, &locations[i], c->chunks[i], err);
    }
    return st;
}

/* What is safe is on the disk that a cut leaves, by its places alone. */
static void expect_safe(script *c, rp_sim_variant variant, uint64_t seed)
{
    rp_rig after = rp_rig_open(rp_sim_after(c->rig.disk, variant, seed), 1000000);
    rp_disk_location locations[CHUNKS];
    uint8_t block[BLOCK_BYTES];
    rp_error err = {0};
    uint64_t bytes;

    for (size_t i = 0; i < c->safe; i++)
        assert_true(rp_segments_locate(c->rig.segments, c->chunks[i], &locations[i]));
    assert_ok_err(read_all(c, after.segments, locations, c->safe, &err), &err);
    if (c->block_is_safe) {
        assert_ok(rp_segments_open(after.segments, c->block_location.segment, &bytes, NULL));
        assert_ok_err(rp_segments_read(after.segments, &c->block_location, RP_RECORD_BLOCK,
                                       block, NULL, &err),
                      &err);
        assert_memory_equal(block, c->block, BLOCK_BYTES);
    }
    rp_rig_close(&after);
}

/* All that was put can be read now, from memory or from the disk. */
static void expect_readable(script *c)
{
    for (size_t i = 0; i < CHUNKS; i++) {
        rp_disk_location location;
        rp_error err = {0};
        if (!rp_segments_locate(c->rig.segments, c->chunks[i], &location)) continue;
        assert_ok_err(rp_rig_compare(c->rig.segments, &location, c->chunks[i], &err), &err);
    }
}

static uint64_t calls_of_the_script(void)
{
    uint64_t calls;
    script c;

    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    assert_true(try_once(&c));
    assert_int_equal(rp_segments_generation(c.rig.segments), 0);
    expect_safe(&c, RP_SIM_NONE, 0);
    calls = rp_sim_calls(c.rig.disk);
    rp_rig_close(&c.rig);
    script_deinit(&c);
    return calls;
}

/* Returns whether the fault was met. */
static bool run_with_fault(rp_sim_fault fault)
{
    bool met;
    script c;

    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    rp_sim_fail(c.rig.disk, &fault);
    for (int i = 0; i < 3 && !try_once(&c); i++) expect_safe(&c, RP_SIM_NONE, 0);
    met = rp_sim_failed(c.rig.disk) > 0;
    assert_true(c.failures > 0 || !met || !fault.for_good);
    rp_sim_drop_caches(c.rig.disk); /* what a failed sync has lost may vanish */
    rp_sim_fail(c.rig.disk, &(rp_sim_fault){0});
    expect_readable(&c);
    for (int i = 0; i < 3 && !try_once(&c); i++) {}
    assert_int_equal(c.safe, CHUNKS);
    assert_true(c.block_is_safe);
    rp_sim_drop_caches(c.rig.disk);
    expect_readable(&c);
    expect_safe(&c, RP_SIM_NONE, 0);
    expect_safe(&c, RP_SIM_ALL, 0);
    rp_rig_close(&c.rig);
    script_deinit(&c);
    return met;
}

static void every_call_may_fail(void **state)
{
    uint64_t calls = calls_of_the_script(), met = 0;

    (void)state;
    assert_true(calls > 15);
    for (uint64_t call = 1; call <= calls; call++)
        for (int error = 0; error < RP_SIM_ERRORS; error++)
            for (int for_good = 0; for_good < 2; for_good++) {
                if (!rp_test_chosen(call + (uint64_t)(error + for_good), 3)) continue;
                met += run_with_fault((rp_sim_fault){.call = call,
                                                     .error = (rp_sim_error)error,
                                                     .for_good = for_good != 0,
                                                     .seed = call});
            }
    assert_true(met > rp_test_length(8, 2) * calls);
}

static void a_full_disk_is_waited_out(void **state)
{
    script c;

    (void)state;
    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    rp_sim_set_capacity(c.rig.disk, 12000);
    for (int i = 0; i < 3; i++) assert_false(try_once(&c));
    expect_safe(&c, RP_SIM_NONE, 0);
    expect_readable(&c);
    rp_sim_set_capacity(c.rig.disk, 0);
    assert_true(try_once(&c) || try_once(&c));
    expect_safe(&c, RP_SIM_NONE, 0);
    rp_rig_close(&c.rig);
    script_deinit(&c);
}

static uint64_t size_of(rp_sim *disk, const char *path)
{
    uint8_t byte;
    uint64_t size = 0;

    while (rp_sim_read(disk, path, size, &byte, 1) == 1) size++;
    return size;
}

/* What a flush has written stays in the file when a later write fails; what the failed one
 * wrote gives its space back. */
static void flushed_chunks_survive_a_later_failed_write_issue_20(void **state)
{
    const rp_sim_error errors[] = {RP_SIM_ENOSPC, RP_SIM_EIO, RP_SIM_SHORT};

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        const char *path = "seg/0000000000000001";
        uint64_t flushed;
        script c;

        script_init(&c);
        c.rig = rp_rig_open(rp_sim_new(), 1);
        assert_true(put_some(&c, 0, 5));
        assert_ok(rp_segments_flush(c.rig.segments, NULL));
        flushed = size_of(c.rig.disk, path);
        assert_true(put_some(&c, 5, 12));
        rp_sim_fail(c.rig.disk, &(rp_sim_fault){.call = rp_sim_calls(c.rig.disk) + 1,
                                                .error = errors[i],
                                                .seed = 7});
        assert_int_not_equal(rp_segments_flush(c.rig.segments, NULL), RP_OK);
        rp_rig_check(&c.rig);

        assert_int_equal(size_of(c.rig.disk, path), flushed);
        expect_readable(&c);
        assert_ok(rp_segments_sync(c.rig.segments, NULL));
        c.safe = 12;
        expect_safe(&c, RP_SIM_NONE, 0);
        rp_rig_close(&c.rig);
        script_deinit(&c);
    }
}

/* On a full disk the queue is dropped: what is put then fits, and what was flushed is safe. */
static void dropping_the_queue_frees_space_for_new_chunks_issue_20(void **state)
{
    rp_disk_location location, moved;
    script c;

    (void)state;
    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    assert_true(put_some(&c, 0, 5));
    assert_ok(rp_segments_sync(c.rig.segments, NULL));
    assert_true(rp_segments_locate(c.rig.segments, c.chunks[0], &location));
    assert_true(put_some(&c, 5, 8));
    assert_ok(rp_segments_flush(c.rig.segments, NULL));
    rp_segments_drop_queue(c.rig.segments, false); /* nothing has failed */
    assert_int_equal(rp_segments_generation(c.rig.segments), 0);
    rp_sim_set_capacity(c.rig.disk, 5 * RP_SIM_PAGE);
    assert_ok(rp_segments_move_chunk(c.rig.segments, c.chunks[0], &moved, NULL));
    assert_true(put_some(&c, 8, CHUNKS));
    assert_int_equal(rp_segments_sync(c.rig.segments, NULL), RP_NO_RESOURCE);
    assert_true(rp_segments_is_full(c.rig.segments));
    assert_ok(rp_segments_sync_flushed(c.rig.segments, NULL));

    rp_segments_drop_queue(c.rig.segments, false);

    rp_rig_check(&c.rig);
    assert_int_equal(rp_segments_queued(c.rig.segments), 0);
    assert_int_equal(rp_segments_generation(c.rig.segments), 1);
    assert_false(rp_segments_locate(c.rig.segments, c.chunks[20], &moved));
    assert_true(rp_segments_locate(c.rig.segments, c.chunks[0], &moved));
    assert_true(moved.segment == location.segment && moved.offset == location.offset);
    c.safe = 8;
    expect_safe(&c, RP_SIM_NONE, 0);
    assert_true(put_some(&c, 20, 22));
    assert_ok(rp_segments_sync(c.rig.segments, NULL));
    rp_rig_check(&c.rig);
    assert_false(rp_segments_is_full(c.rig.segments));
    assert_true(rp_segments_has_stored(c.rig.segments, c.chunks[21]));
    expect_readable(&c);
    rp_rig_close(&c.rig);
    script_deinit(&c);
}

/* A name that is taken is nobody's to overwrite. */
static void an_existing_file_is_not_overwritten(void **state)
{
    uint8_t byte = 0;
    script c;

    (void)state;
    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    assert_ok(c.rig.files->ops->make_directory(c.rig.files, "seg", NULL));
    assert_true(rp_sim_put(c.rig.disk, "seg/0000000000000001", "x", 1));
    assert_false(try_once(&c));
    assert_true(try_once(&c));
    expect_safe(&c, RP_SIM_NONE, 0);
    assert_int_equal(rp_sim_read(c.rig.disk, "seg/0000000000000001", 0, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    rp_rig_close(&c.rig);
    script_deinit(&c);
}

/* A sync fails once and then says that all is well: nobody may believe it. */
static void a_failed_sync_is_never_retried(void **state)
{
    script c;
    rp_disk_location before, after;

    (void)state;
    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    assert_true(put_some(&c, 0, 5));
    assert_ok(rp_segments_sync(c.rig.segments, NULL));
    c.safe = 5;
    assert_true(put_some(&c, 5, 9));
    assert_ok(rp_segments_flush(c.rig.segments, NULL));
    assert_true(rp_segments_locate(c.rig.segments, c.chunks[7], &before));
    rp_sim_fail(c.rig.disk, &(rp_sim_fault){.call = rp_sim_calls(c.rig.disk) + 1});
    assert_int_equal(rp_segments_sync(c.rig.segments, NULL), RP_UNAVAILABLE);
    assert_int_equal(rp_sim_failed(c.rig.disk), 1);
    assert_int_equal(rp_segments_generation(c.rig.segments), 1);
    assert_true(rp_segments_locate(c.rig.segments, c.chunks[7], &after));
    assert_true(after.segment > before.segment);
    assert_int_equal(rp_rig_compare(c.rig.segments, &before, c.chunks[7], NULL), RP_NOT_FOUND);
    expect_safe(&c, RP_SIM_NONE, 0);
    assert_ok(rp_segments_sync(c.rig.segments, NULL));
    c.safe = 9;
    expect_safe(&c, RP_SIM_NONE, 0);
    rp_rig_close(&c.rig);
    script_deinit(&c);
}

static void check_images(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                         const char *path)
{
    script *c = ctx;

    (void)disk;
    (void)call;
    (void)path;
    for (int variant = 0; variant < RP_SIM_VARIANTS; variant++)
        for (uint64_t seed = 0; seed < 4; seed++)
            expect_safe(c, (rp_sim_variant)variant, number * 4 + seed);
}

static void synced_chunks_survive_a_power_cut_at_any_call(void **state)
{
    script c;

    (void)state;
    script_init(&c);
    c.rig = rp_rig_open(rp_sim_new(), 1);
    rp_sim_on_call(c.rig.disk, check_images, &c);
    assert_true(try_once(&c));
    rp_sim_on_call(c.rig.disk, NULL, NULL);
    rp_rig_close(&c.rig);
    script_deinit(&c);
}

/* And with a failure before it. */
static void synced_chunks_survive_a_failure_and_a_power_cut(void **state)
{
    uint64_t calls = calls_of_the_script();

    (void)state;
    for (uint64_t call = 1; call <= calls; call++) {
        script c;

        if (!rp_test_chosen(call, 7)) continue;
        script_init(&c);
        c.rig = rp_rig_open(rp_sim_new(), 1);
        rp_sim_fail(c.rig.disk, &(rp_sim_fault){.call = call, .seed = call});
        rp_sim_on_call(c.rig.disk, check_images, &c);
        for (int i = 0; i < 4 && !try_once(&c); i++) {}
        assert_true(c.block_is_safe);
        rp_sim_on_call(c.rig.disk, NULL, NULL);
        rp_rig_close(&c.rig);
        script_deinit(&c);
    }
}

/* The n-th allocation fails, and the next time there is memory. */
static void memory_may_be_short_at_any_point(void **state)
{
    (void)state;
    for (size_t room = 0;; room++) {
        rp_test_oom o = RP_TEST_OOM_INIT(room);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        bool was_short;
        script c;

        script_init(&c);
        if (rp_rig_try_open(&c.rig, rp_sim_new(), &alloc, 1) != RP_OK) {
            assert_int_equal(o.live, 0);
            rp_rig_close(&c.rig);
            script_deinit(&c);
            continue;
        }
        /* With a failure of the disk, after which places are given anew. */
        rp_sim_fail(c.rig.disk, &(rp_sim_fault){.call = 4});
        (void)try_once(&c);
        (void)try_once(&c);
        was_short = o.failed > 0;
        expect_safe(&c, RP_SIM_NONE, 0);
        expect_readable(&c);
        atomic_store(&o.left, RP_TEST_OOM_UNLIMITED);
        for (int i = 0; i < 3 && !try_once(&c); i++) {}
        assert_true(c.block_is_safe);
        expect_safe(&c, RP_SIM_NONE, 0);
        rp_rig_close(&c.rig);
        script_deinit(&c);
        assert_int_equal(o.live, 0);
        if (!was_short) return;
    }
}

static rp_status open_read_and_move(const rp_allocator *alloc)
{
    rp_rig first = rp_rig_open(rp_sim_new(), 1), rig;
    rp_chunk *chunk = rp_rig_chunk(1, 200), *same = rp_rig_chunk(1, 200);
    rp_disk_location location, moved;
    uint64_t bytes;
    rp_status st;

    assert_ok(rp_segments_put_chunk(first.segments, chunk, &location));
    assert_ok(rp_segments_sync(first.segments, NULL));
    st = rp_rig_try_open(&rig, rp_sim_copy(first.disk), alloc, 2);
    if (st == RP_OK) st = rp_segments_open(rig.segments, 1, &bytes, NULL);
    if (st == RP_OK) st = rp_rig_compare(rig.segments, &location, chunk, NULL);
    if (st == RP_OK) st = rp_segments_adopt(rig.segments, same, &location, 0);
    if (st == RP_OK) st = rp_segments_move_chunk(rig.segments, same, &moved, NULL);
    if (st == RP_OK) st = rp_segments_sync(rig.segments, NULL);
    if (st == RP_OK) assert_ok(rp_rig_compare(rig.segments, &moved, chunk, NULL));
    rp_rig_close(&rig);
    rp_rig_close(&first);
    rp_chunk_unref(chunk);
    rp_chunk_unref(same);
    return st;
}

static void reading_and_moving_survive_without_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(open_read_and_move);
}

enum { THREADS = 4, ROUNDS = 60, PER_ROUND = 8 };

typedef struct crowd {
    rp_segments *segments;
    rp_chunk *shared[PER_ROUND]; /* which all of them put */
    atomic_uint failures;
    size_t number;
} crowd;

typedef struct member {
    crowd *crowd;
    size_t number;
    rp_chunk *chunks[PER_ROUND];
} member;

static bool reads_back(crowd *c, rp_chunk *chunk)
{
    /* A place may be given anew while we ask: then ask again. */
    for (int i = 0; i < 100; i++) {
        rp_disk_location location;
        rp_status st;
        if (!rp_segments_locate(c->segments, chunk, &location)) return false;
        st = rp_rig_compare(c->segments, &location, chunk, NULL);
        if (st == RP_OK) return true;
        if (st != RP_NOT_FOUND) return false;
    }
    return false;
}

static void *live(void *arg)
{
    member *m = arg;
    crowd *c = m->crowd;
    rp_disk_location location;

    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < PER_ROUND; i++) {
            size_t bytes = (round + i) % 11 == 0 ? 5000 : 100;
            if (rp_rig_try_chunk(rp_allocator_default(), 1000 * round + i, bytes,
                                 &m->chunks[i]) != RP_OK)
                return m;
            if (rp_segments_put_chunk(c->segments, m->chunks[i], &location) != RP_OK) return m;
            if (rp_segments_put_chunk(c->segments, c->shared[i], &location) != RP_OK) return m;
            if (!reads_back(c, m->chunks[i]) || !reads_back(c, c->shared[i])) return m;
        }
        if ((round + m->number) % 3 == 0 ? rp_segments_sync(c->segments, NULL) != RP_OK
                                         : rp_segments_flush(c->segments, NULL) != RP_OK)
            atomic_fetch_add(&c->failures, 1);
        for (size_t i = 0; i < PER_ROUND; i++) {
            if (!reads_back(c, m->chunks[i])) return m;
            rp_chunk_unref(m->chunks[i]);
        }
    }
    return NULL;
}

static void run_threads(rp_segments *segments, uint64_t *failures)
{
    crowd c = {.segments = segments};
    member members[THREADS];
    pthread_t threads[THREADS];
    rp_disk_location location;

    for (size_t i = 0; i < PER_ROUND; i++) c.shared[i] = rp_rig_chunk(i, 200);
    for (size_t i = 0; i < THREADS; i++) {
        members[i] = (member){.crowd = &c, .number = i};
        assert_true(rp_thread_start(&threads[i], "segments", live, &members[i]));
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = &c;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (size_t i = 0; i < PER_ROUND; i++) {
        assert_true(rp_segments_locate(segments, c.shared[i], &location));
        assert_true(reads_back(&c, c.shared[i]));
        rp_chunk_unref(c.shared[i]);
    }
    assert_ok(rp_segments_check(segments, NULL));
    *failures = atomic_load(&c.failures);
}

static void threads_share_the_segments(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    uint64_t failures = 0;

    (void)state;
    run_threads(rig.segments, &failures);
    assert_int_equal(failures, 0);
    rp_rig_close(&rig);
}

/* Every hundredth call fails while they do. */
static void fail_now_and_then(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                              const char *path)
{
    (void)ctx;
    (void)path;
    if (number % 20 == 0 && strcmp(call, "read") != 0)
        rp_sim_fail(disk, &(rp_sim_fault){.call = number, .seed = number});
}

static void threads_share_segments_that_fail(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    uint64_t failures = 0;

    (void)state;
    rp_sim_on_call(rig.disk, fail_now_and_then, NULL);
    run_threads(rig.segments, &failures);
    assert_true(failures > 0);
    rp_rig_close(&rig);
}

static void threads_share_segments_on_the_real_disk(void **state)
{
    char directory[] = "segments_test_XXXXXX", command[64];
    rp_segments_options options = {.alloc = rp_allocator_default(),
                                   .store = rp_rig_store,
                                   .segment_bytes = 1 << 16,
                                   .next_number = 1};
    rp_segments *s = NULL;
    uint64_t failures = 0;

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_ok(rp_files_open_directory(options.alloc, directory, &options.files, NULL));
    assert_ok(rp_segments_new(&options, &s, NULL));
    run_threads(s, &failures);
    assert_int_equal(failures, 0);
    rp_segments_free(s);
    options.files->ops->free(options.files);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

enum { SMALL_RECORDS = 3000 };

static void put_records(rp_rig *rig, size_t count)
{
    rp_disk_location location;

    for (size_t i = 0; i < count; i++)
        assert_ok(rp_segments_put(rig->segments, RP_RECORD_BLOCK, i, "block", 5, &location));
}

static void add_pages(void *ctx, const char *path, uint64_t size)
{
    (void)path;
    *(uint64_t *)ctx += (size + RP_SIM_PAGE - 1) / RP_SIM_PAGE * RP_SIM_PAGE;
}

static uint64_t used_by(rp_sim *disk)
{
    uint64_t bytes = 0;

    rp_sim_list(disk, add_pages, &bytes);
    return bytes;
}

/* The disk has no space for the seal: the segment is ended without it, and can be removed. */
static void a_segment_is_ended_without_room_for_its_seal_issue_20(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    uint64_t first = rp_segments_writing(rig.segments);
    rp_error err;

    (void)state;
    put_records(&rig, SMALL_RECORDS);
    assert_ok_err(rp_segments_sync(rig.segments, &err), &err);
    rp_sim_set_capacity(rig.disk, used_by(rig.disk));
    assert_ok_err(rp_segments_end_open(rig.segments, &err), &err);
    assert_true(rp_segments_writing(rig.segments) > first);
    assert_false(rp_segments_is_full(rig.segments));
    assert_ok_err(rp_segments_remove(rig.segments, first, &err), &err);
    put_records(&rig, 1);
    assert_ok_err(rp_segments_sync(rig.segments, &err), &err);
    rp_rig_check(&rig);
    rp_rig_close(&rig);
}

/* The blocks of a checkpoint that was given up go, whether they are written or not; a segment
 * with a chunk stays. */
static void segments_of_blocks_are_discarded_issue_20(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunk = rp_rig_chunk(1, 300);
    rp_disk_location location, kept;
    uint64_t before, first;
    rp_error err;

    (void)state;
    assert_ok(rp_segments_put_chunk(rig.segments, chunk, &kept));
    put_records(&rig, 10);
    assert_ok_err(rp_segments_end_open(rig.segments, &err), &err);
    before = used_by(rig.disk);
    first = rp_segments_writing(rig.segments);
    assert_true(first > kept.segment);
    put_records(&rig, SMALL_RECORDS);
    assert_ok_err(rp_segments_end_open(rig.segments, &err), &err); /* sealed */
    put_records(&rig, SMALL_RECORDS);
    assert_ok_err(rp_segments_flush(rig.segments, &err), &err); /* written */
    put_records(&rig, SMALL_RECORDS);                           /* queued */
    rp_segments_discard(rig.segments, kept.segment);
    rp_rig_check(&rig);
    assert_int_equal(used_by(rig.disk), before);
    assert_int_equal(rp_segments_queued(rig.segments), 0);
    assert_true(rp_segments_locate(rig.segments, chunk, &location));
    assert_int_equal(location.segment, kept.segment);
    assert_ok_err(rp_rig_compare(rig.segments, &location, chunk, &err), &err);
    rp_chunk_unref(chunk);
    rp_rig_close(&rig);
}

RP_TESTS(segments_trouble)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_full_disk_is_waited_out),
        cmocka_unit_test(flushed_chunks_survive_a_later_failed_write_issue_20),
        cmocka_unit_test(dropping_the_queue_frees_space_for_new_chunks_issue_20),
        cmocka_unit_test(an_existing_file_is_not_overwritten),
        cmocka_unit_test(a_failed_sync_is_never_retried),
        cmocka_unit_test(synced_chunks_survive_a_power_cut_at_any_call),
        cmocka_unit_test(synced_chunks_survive_a_failure_and_a_power_cut),
        cmocka_unit_test(memory_may_be_short_at_any_point),
        cmocka_unit_test(reading_and_moving_survive_without_memory),
        cmocka_unit_test(threads_share_the_segments),
        cmocka_unit_test(threads_share_segments_that_fail),
        cmocka_unit_test(threads_share_segments_on_the_real_disk),
        cmocka_unit_test(a_segment_is_ended_without_room_for_its_seal_issue_20),
        cmocka_unit_test(segments_of_blocks_are_discarded_issue_20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
