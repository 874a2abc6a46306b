/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails, of opening a durable store, of a checkpoint, of loading one, once and
 * from then on. Each time the call says RP_NO_RESOURCE, what is on the disk can be loaded, and
 * in the end nothing is left. */
#include "support/durable_bed.h"

enum { ITEMS = 300 };

static void put_items(rp_test_rig *rig, rp_table *t, uint64_t first, size_t count)
{
    for (uint64_t key = first; key < first + count; key++) {
        rp_trajectory *trajectory = rp_test_blob_trajectory(&rig->bed.alloc, key, key / 10, 40);

        rp_test_put(t, key, (double)(key % 5), trajectory);
        rp_trajectory_unref(trajectory);
    }
}

static rp_sim *saved_disk(uint64_t *digest)
{
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, ITEMS);
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_table *t;

    rp_test_rig_init(&rig, disk, NULL);
    t = rp_test_bed_table(&rig.bed, &o);
    rp_test_rig_open(&rig);
    put_items(&rig, t, 1, ITEMS);
    rp_test_rig_save(&rig);
    *digest = rp_table_digest(t);
    rp_test_rig_deinit(&rig);
    return disk;
}

static void loading_survives_running_out_of_memory(void **state)
{
    uint64_t digest;
    rp_sim *saved = saved_disk(&digest);
    rp_status st = RP_NO_RESOURCE;

    (void)state;
    for (size_t room = 0; st != RP_OK; room += rp_test_chosen(1, 3) ? 1 : 3) {
        rp_sim *disk = rp_sim_copy(saved);
        rp_test_rig rig;

        rp_test_rig_init(&rig, disk, NULL);
        rig.bed.oom.left = room;
        st = rp_test_rig_try_open(&rig);
        rig.bed.oom.left = RP_TEST_OOM_UNLIMITED;
        if (st == RP_OK)
            assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), digest);
        else
            assert_int_equal(st, RP_NO_RESOURCE);
        rp_test_rig_deinit(&rig);
        if (room % 16 == 0) assert_int_equal(rp_test_digest_on(disk, "t"), digest);
        rp_sim_free(disk);
    }
    rp_sim_free(saved);
}

static void a_checkpoint_survives_running_out_of_memory(void **state)
{
    uint64_t before, after;
    rp_sim *saved = saved_disk(&before);
    rp_status st = RP_NO_RESOURCE;

    (void)state;
    for (size_t room = 0; st != RP_OK; room += rp_test_chosen(1, 3) ? 1 : 3) {
        rp_sim *disk = rp_sim_copy(saved);
        rp_test_rig rig;

        rp_test_rig_init(&rig, disk, NULL);
        rp_test_rig_open(&rig);
        put_items(&rig, rp_test_rig_find(&rig, "t"), 1000, 20);
        after = rp_table_digest(rp_test_rig_find(&rig, "t"));
        rig.bed.oom.left = room;
        st = rp_test_rig_try_save(&rig);
        rig.bed.oom.left = RP_TEST_OOM_UNLIMITED;
        if (st != RP_OK) {
            rp_sim *image = rp_sim_copy(disk);

            assert_int_equal(st, RP_NO_RESOURCE);
            assert_int_equal(rp_test_digest_on(image, "t"), before);
            rp_sim_free(image);
            rp_test_rig_save(&rig); /* there is memory again */
        }
        rp_test_rig_deinit(&rig);
        assert_int_equal(rp_test_digest_on(disk, "t"), after);
        rp_sim_free(disk);
    }
    rp_sim_free(saved);
}

RP_TESTS(durable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_survives_running_out_of_memory),
        cmocka_unit_test(a_checkpoint_survives_running_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
