/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction moves a chunk, so that it is named by two places. It is one chunk all the same
 * when it is loaded, and counts once; and two that are equal stay two. */
#include "chunk/trajectory.h"
#include "support/durable_bed.h"

enum { SIZE = 600, PAYLOAD = 700, FILLED = 350, LEFT = 340 };

typedef struct world {
    rp_sim *disk;
    rp_test_rig rig;
    rp_trajectory *shared; /* of item 1, in the first block, and of item 500, in the second */
    rp_place before;
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

/* Two checkpoints, the second of which has little left in most segments: the next will move
 * what there is. */
static void init(world *w)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, SIZE);

    w->disk = rp_sim_new();
    rp_test_rig_init(&w->rig, w->disk, NULL);
    w->rig.options.mode = RP_DURABLE_SYNC;
    w->rig.options.segment_bytes = 8192;
    w->rig.options.keep = 2;
    (void)rp_test_bed_table(&w->rig.bed, &o);
    rp_test_rig_open(&w->rig);
    w->shared = rp_test_blob_trajectory(&w->rig.bed.alloc, 1, 0, PAYLOAD);
    put(w, 1, w->shared);
    for (uint64_t key = 2; key < FILLED; key++) {
        rp_trajectory *t = rp_test_blob_trajectory(&w->rig.bed.alloc, key, 0, PAYLOAD);

        put(w, key, t);
        rp_trajectory_unref(t);
    }
    put(w, 500, w->shared);
    rp_test_rig_save(&w->rig);
    for (uint64_t key = 2; key < LEFT; key++) delete_item(w, key);
    rp_test_rig_save(&w->rig);
    assert_true(rp_chunk_place(w->shared->chunks[0], &w->before));
}

static bool was_moved(const world *w)
{
    rp_place now;

    return rp_chunk_place(w->shared->chunks[0], &now) && now.segment != w->before.segment;
}

static void deinit(world *w)
{
    rp_trajectory_unref(w->shared);
    rp_test_rig_deinit(&w->rig);
    rp_sim_free(w->disk);
}

static void newest_manifest(void *ctx, const char *path, uint64_t size)
{
    (void)size;
    if (strncmp(path, "manifest/", 9) == 0 && strstr(path, ".tmp") == NULL)
        (void)snprintf(ctx, RP_SIM_PATH, "%s", path);
}

/* What is on the disk is what is in memory; also if the newest checkpoint is damaged, if there
 * is one before it that it can be made from. */
static void check(world *w, bool older)
{
    rp_sim *image = rp_sim_copy(w->disk);
    char path[RP_SIM_PATH] = "";

    rp_sim_list(image, newest_manifest, path);
    if (older) assert_true(rp_sim_flip(image, path, 8 * 70));
    assert_int_equal(rp_test_digest_on(image, "t"), rp_table_digest(table_of(w)));
    rp_sim_free(image);
}

static void the_checkpoint_names_one_place_and_the_journal_another(void **state)
{
    world w;

    (void)state;
    init(&w);
    put(&w, 1000, w.shared);
    rp_test_rig_save(&w.rig);
    assert_true(was_moved(&w));
    check(&w, false);
    check(&w, true);
    put(&w, 1001, w.shared);
    check(&w, false);
    check(&w, true);
    delete_item(&w, 1);
    rp_test_rig_save(&w.rig);
    put(&w, 1002, w.shared);
    check(&w, false);
    check(&w, true);
    deinit(&w);
}

/* A checkpoint fails at any call: the next one may keep a block that names the old place,
 * beside one that names the new. */
static void one_checkpoint_names_both(void **state)
{
    size_t failed = 0, moved = 0;

    (void)state;
    for (uint64_t call = 1; call < 60; call += rp_test_step(1, 7)) {
        rp_sim_fault fault = {.error = RP_SIM_EIO}, none = {0};
        rp_table_change change = {.which = RP_CHANGE_MAX_BYTES};
        rp_table_info info;
        world w;

        init(&w);
        fault.call = rp_sim_calls(w.disk) + call;
        rp_sim_fail(w.disk, &fault);
        failed += rp_test_rig_try_save(&w.rig) != RP_OK;
        rp_sim_fail(w.disk, &none);
        moved += was_moved(&w);
        delete_item(&w, FILLED - 1); /* of the second block */
        rp_table_get_info(table_of(&w), &info);
        change.max_bytes = (uint64_t)info.bytes + 100; /* so that it cannot count twice */
        assert_ok(rp_table_alter(table_of(&w), &change, NULL));
        rp_test_rig_save(&w.rig);
        check(&w, false);
        deinit(&w);
    }
    assert_true(failed > 0 && moved > failed / 2);
}

/* A writer that has lost its connection sends a chunk again. */
static void equal_chunks_stay_two(void **state)
{
    rp_trajectory *again;
    world w;

    (void)state;
    init(&w);
    again = rp_test_blob_trajectory(&w.rig.bed.alloc, 1, 0, PAYLOAD);
    put(&w, 1000, again);
    check(&w, false);
    rp_test_rig_save(&w.rig);
    check(&w, false);
    check(&w, true);
    rp_trajectory_unref(again);
    deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checkpoint_names_one_place_and_the_journal_another),
        cmocka_unit_test(one_checkpoint_names_both),
        cmocka_unit_test(equal_chunks_stay_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
