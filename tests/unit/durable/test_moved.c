/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction moves a chunk, so that two locations refer to it. When it is loaded, it is one
 * chunk and counts once. Two chunks with equal contents stay two. */
#include "chunk/trajectory.h"
#include "support/durable_bed.h"

enum {
    SIZE = 600,
    PAYLOAD = 700,
    FILLED = 350,
    LEFT = 345,
    SMALL = 8192, /* segments */
    LARGE = 32768,
    FULL = 45, /* items for a large one */
};

typedef struct world {
    rp_sim *disk;
    rp_test_rig rig;
    rp_trajectory *shared; /* of item 1, in the first block, and of item 500, in the second */
    rp_disk_location before;
} world;

static rp_table *table_of(world *w)
{
    return rp_test_rig_find(&w->rig, "t");
}

static void put(world *w, uint64_t key, rp_trajectory *trajectory)
{
    rp_test_put(table_of(w), key, (double)(key % 17), trajectory);
}

static void delete_item(world *w, uint64_t key)
{
    assert_ok(rp_table_delete(table_of(w), &key, 1, NULL, NULL));
}

static void put_new(world *w, uint64_t first, uint64_t count)
{
    for (uint64_t key = first; key < first + count; key++) {
        rp_trajectory *t = rp_test_blob_trajectory(&w->rig.bed.alloc, key, 0, PAYLOAD);

        put(w, key, t);
        rp_trajectory_unref(t);
    }
}

/* Two checkpoints, the second of which has little left in most segments: the next will move
 * what there is. */
static void init(world *w, uint64_t segment_bytes)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, SIZE);

    w->disk = rp_sim_new();
    rp_test_rig_init(&w->rig, w->disk, NULL);
    w->rig.options.mode = RP_DURABLE_SYNC;
    w->rig.options.segment_bytes = segment_bytes;
    w->rig.options.keep = 2;
    (void)rp_test_bed_table(&w->rig.bed, &o);
    rp_test_rig_open(&w->rig);
    w->shared = rp_test_blob_trajectory(&w->rig.bed.alloc, 1, 0, PAYLOAD);
    put(w, 1, w->shared);
    put_new(w, 2, FILLED - 2);
    put(w, 500, w->shared);
    rp_test_rig_save(&w->rig);
    for (uint64_t key = 2; key < LEFT; key++) delete_item(w, key);
    rp_test_rig_save(&w->rig);
    assert_true(rp_chunk_locate(w->shared->chunks[0], &w->before));
}

static bool was_moved(const world *w)
{
    rp_disk_location now;

    return rp_chunk_locate(w->shared->chunks[0], &now) && now.segment != w->before.segment;
}

static void deinit(world *w)
{
    rp_trajectory_unref(w->shared);
    rp_test_rig_deinit(&w->rig);
    rp_sim_free(w->disk);
}

/* What is on the disk is what is in memory. */
static void check(world *w)
{
    rp_sim *image = rp_sim_copy(w->disk);

    assert_int_equal(rp_test_digest_on(image, "t"), rp_table_digest(table_of(w)));
    rp_sim_free(image);
}

/* The same with the checkpoint before the newest, and the journal. */
static void check_older(world *w)
{
    rp_sim *image = rp_sim_copy(w->disk);

    rp_test_damage_newest(image);
    assert_int_equal(rp_test_digest_on(image, "t"), rp_table_digest(table_of(w)));
    rp_sim_free(image);
}

/* The same where the segment that the chunk is in has damage before it. */
static void check_salvaged(world *w)
{
    rp_sim *image = rp_sim_copy(w->disk);
    char path[RP_SIM_PATH];
    rp_test_rig again;
    rp_disk_location now;

    assert_true(rp_chunk_locate(w->shared->chunks[0], &now));
    assert_true(rp_sim_flip(image, rp_segment_path(path, now.segment), 8 * 80));
    rp_test_rig_init(&again, image, NULL);
    again.options.mode = RP_DURABLE_SYNC;
    again.options.salvage = true;
    rp_test_rig_open(&again);
    assert_true(rp_test_info_of(rp_test_rig_find(&again, "t")).bytes <=
                rp_test_info_of(table_of(w)).bytes);
    rp_test_rig_deinit(&again);
    rp_sim_free(image);
}

static void a_moved_chunk_may_have_two_locations_in_checkpoint_and_journal(void **state)
{
    world w;

    (void)state;
    init(&w, SMALL);
    put(&w, 1000, w.shared);
    rp_test_rig_save(&w.rig);
    assert_true(was_moved(&w));
    check(&w);
    check_older(&w);
    put(&w, 1001, w.shared);
    check(&w);
    check_older(&w);
    delete_item(&w, 1);
    rp_test_rig_save(&w.rig);
    put(&w, 1002, w.shared);
    check(&w);
    check_older(&w);
    deinit(&w);
}

/* A checkpoint fails at a call: the next one may keep a block that names the old place, beside
 * one that names the new, or if that segment was filled meanwhile and is mostly dead, one newer
 * still. False: there are no so many calls. */
static bool fail_and_go_on(uint64_t call, uint64_t segment_bytes, size_t *moved)
{
    rp_table_alteration change = {.which = RP_ALTER_MAX_BYTES};
    rp_sim_fault fault = {.error = RP_SIM_EIO}, none = {0};
    bool is_large = segment_bytes == LARGE, failed;
    world w;

    init(&w, segment_bytes);
    if (is_large) {
        put_new(&w, 3000, FULL);
        for (uint64_t key = 3000; key < 3000 + FULL; key++) delete_item(&w, key);
    }
    fault.call = rp_sim_calls(w.disk) + call;
    rp_sim_fail(w.disk, &fault);
    failed = rp_test_rig_try_save(&w.rig) != RP_OK;
    rp_sim_fail(w.disk, &none);
    *moved += was_moved(&w);
    if (is_large)
        put_new(&w, 2000, FULL); /* into the second block */
    else
        delete_item(&w, FILLED - 1);
    /* So that nothing can count twice. */
    change.max_bytes = (uint64_t)rp_test_info_of(table_of(&w)).bytes + 100;
    assert_ok(rp_table_alter(table_of(&w), &change, NULL));
    rp_test_rig_save(&w.rig);
    check(&w);
    check_salvaged(&w);
    deinit(&w);
    return failed;
}

static void a_moved_chunk_may_have_two_locations_in_one_checkpoint(void **state)
{
    static const uint64_t sizes[] = {SMALL, LARGE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t moved = 0;
        uint64_t call = 1;

        while (fail_and_go_on(call, sizes[i], &moved))
            call += rp_test_length(rp_test_step(1, 5), 11);
        assert_true(call > 10 && moved > 0);
    }
}

/* A writer that has lost its connection sends a chunk again. */
static void equal_chunks_stay_separate(void **state)
{
    rp_trajectory *again;
    world w;

    (void)state;
    init(&w, SMALL);
    again = rp_test_blob_trajectory(&w.rig.bed.alloc, 1, 0, PAYLOAD);
    put(&w, 1000, again);
    check(&w);
    rp_test_rig_save(&w.rig);
    check(&w);
    check_older(&w);
    rp_trajectory_unref(again);
    deinit(&w);
}

RP_TESTS(moved)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moved_chunk_may_have_two_locations_in_checkpoint_and_journal),
        cmocka_unit_test(a_moved_chunk_may_have_two_locations_in_one_checkpoint),
        cmocka_unit_test(equal_chunks_stay_separate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
