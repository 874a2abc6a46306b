/* SPDX-License-Identifier: Apache-2.0 */
/* The newest checkpoint is damaged: the checkpoint before it and the journal since then have
 * all data, or the directory is refused. */
#include <inttypes.h>

#include "support/durable_bed.h"

enum { SIZE = 60, PAYLOAD = 700 };

static void put(rp_test_rig *rig, uint64_t first, size_t count)
{
    rp_table *t = rp_test_rig_find(rig, "t");

    for (uint64_t key = first; key < first + count; key++) {
        rp_trajectory *trajectory =
            rp_test_blob_trajectory(&rig->bed.alloc, key, key / 10, PAYLOAD);

        rp_test_put(t, key, (double)(key % 17), trajectory);
        rp_trajectory_unref(trajectory);
    }
}

/* Opens the disk with table "t". */
static void open_as(rp_test_rig *rig, rp_sim *disk, rp_durability mode)
{
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, SIZE);

    rp_test_rig_init(rig, disk, NULL);
    rig->options.mode = mode;
    rig->options.segment_bytes = 8192;
    rig->options.keep = 2;
    (void)rp_test_bed_table(&rig->bed, &o);
    rp_test_rig_open(rig);
}

/* Through a dozen checkpoints, between which all data is replaced, at any time. */
static void the_previous_checkpoint_and_the_journal_have_everything(void **state)
{
    (void)state;
    for (int mode = RP_DURABLE_INTERVAL; mode <= RP_DURABLE_SYNC; mode++) {
        rp_sim *disk = rp_sim_new();
        rp_test_rig rig;

        open_as(&rig, disk, (rp_durability)mode);
        for (uint64_t round = 1; round < rp_test_length(24, 12); round++) {
            uint64_t digest;
            rp_test_rig again;
            rp_sim *image;

            put(&rig, 100 * round, 50);
            if (round % 2 == 0) rp_test_rig_save(&rig);
            put(&rig, 100 * round + 50, round % 5); /* and none, sometimes */
            if (round < 4) continue;
            digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
            image = rp_sim_copy(disk);
            rp_test_damage_newest(image);
            open_as(&again, image, (rp_durability)mode);
            assert_true(again.degraded_count > 0); /* somebody is told */
            assert_int_equal(rp_table_digest(rp_test_rig_find(&again, "t")), digest);
            put(&again, 100000, 20); /* and it goes on from there */
            digest = rp_table_digest(rp_test_rig_find(&again, "t"));
            rp_test_rig_deinit(&again);
            assert_int_equal(rp_test_digest_on(image, "t"), digest);
            rp_sim_free(image);
        }
        rp_test_rig_deinit(&rig);
        rp_sim_free(disk);
    }
}

static void count_temporary(void *ctx, const char *path, uint64_t size)
{
    (void)size;
    *(size_t *)ctx += strstr(path, ".tmp") != NULL;
}

/* Whoever was killed while it made a file leaves it under another name. */
static void temporary_files_are_removed(void **state)
{
    static const char *const left[] = {RP_CURRENT_TEMPORARY, RP_JOURNAL_TEMPORARY,
                                       "manifest/0000000000000009.tmp"};

    (void)state;
    for (int mode = RP_DURABLE_CHECKPOINT; mode <= RP_DURABLE_SYNC; mode++) {
        rp_sim *disk = rp_sim_new();
        uint64_t digest;
        size_t count = 0;
        rp_test_rig rig;

        open_as(&rig, disk, (rp_durability)mode);
        put(&rig, 1, 30);
        rp_test_rig_save(&rig);
        digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
        rp_test_rig_deinit(&rig);
        for (size_t i = 0; i < COUNT_OF(left); i++)
            assert_true(rp_sim_put(disk, left[i], "abc", 3));
        open_as(&rig, disk, (rp_durability)mode);
        assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), digest);
        rp_sim_list(disk, count_temporary, &count);
        assert_int_equal(count, 0);
        rp_test_rig_deinit(&rig);
        rp_sim_free(disk);
    }
}

/* The disk as it was before each call. */
typedef struct past {
    rp_sim *disks[256];
    size_t count;
} past;

static void keep_disk(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                      const char *path)
{
    past *p = ctx;

    (void)number;
    (void)call;
    (void)path;
    assert_true(p->count < COUNT_OF(p->disks));
    p->disks[p->count++] = rp_sim_copy(disk);
}

/* Checkpoints alone have no journal between them, and what one tells that begins later is no
 * use without the newest. */
static void a_later_journal_is_not_redone_on_an_older_checkpoint(void **state)
{
    rp_sim *disk = rp_sim_new();
    uint64_t digest, older;
    past p = {.count = 0};
    size_t opened = 0;
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_CHECKPOINT);
    put(&rig, 1, 30);
    rp_test_rig_save(&rig);
    older = rp_table_digest(rp_test_rig_find(&rig, "t"));
    put(&rig, 101, 3);
    rp_test_rig_save(&rig);
    rp_test_rig_deinit(&rig);
    open_as(&rig, disk, RP_DURABLE_SYNC);
    put(&rig, 201, 5);
    digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
    rp_test_rig_deinit(&rig);
    open_as(&rig, disk, RP_DURABLE_SYNC);
    assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), digest);
    rp_test_rig_deinit(&rig);
    rp_test_damage_newest(disk);
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    assert_fails(rp_test_rig_try_open(&rig), RP_CORRUPT, &rig.err, "journal");
    rp_test_rig_deinit(&rig);
    /* Salvaged, the older one counts, and the journal never again, whenever that is killed. */
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    rig.options.salvage = true;
    rp_sim_on_call(disk, keep_disk, &p);
    rp_test_rig_open(&rig);
    rp_sim_on_call(disk, NULL, NULL);
    assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), older);
    rp_test_rig_deinit(&rig);
    for (size_t i = 0; i < p.count; i++) {
        rp_test_rig_init(&rig, p.disks[i], NULL);
        rig.options.mode = RP_DURABLE_SYNC;
        if (rp_test_rig_try_open(&rig) == RP_OK) {
            assert_int_equal(rp_table_digest(rp_test_rig_find(&rig, "t")), older);
            opened++;
        } else {
            assert_int_equal(rig.err.code, RP_CORRUPT);
            assert_int_equal(opened, 0); /* once it is saved, it opens */
        }
        rp_test_rig_deinit(&rig);
        rp_sim_free(p.disks[i]);
    }
    assert_true(opened > 0 && opened < p.count);
    rp_sim_free(disk);
}

/* Without a journal, the items of the damaged checkpoint are missing. The state says so for as
 * long as the store is open, also after further checkpoints. */
static void a_fallback_without_a_journal_stays_a_trouble(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_durable_info info;
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_CHECKPOINT);
    put(&rig, 1, 7);
    rp_test_rig_save(&rig);
    rp_test_rig_deinit(&rig);
    rp_test_damage_newest(disk);
    open_as(&rig, disk, RP_DURABLE_CHECKPOINT);
    rp_test_rig_save(&rig);
    info = rp_test_rig_info(&rig);
    assert_true(info.degraded);
    assert_non_null(
        strstr(info.trouble, "checkpoint 2 could not be loaded, checkpoint 1 was loaded"));
    assert_non_null(strstr(info.trouble, "0 items; all changes since then are lost"));
    assert_non_null(strstr(info.trouble, "ends at the next start"));
    rp_test_rig_deinit(&rig);
    open_as(&rig, disk, RP_DURABLE_CHECKPOINT);
    assert_false(rp_test_rig_info(&rig).degraded);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* With the journal nothing is missing, but the disk has damaged a file. */
static void a_fallback_with_a_journal_says_that_it_was_applied(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_SYNC);
    put(&rig, 1, 7);
    rp_test_rig_save(&rig);
    rp_test_rig_deinit(&rig);
    rp_test_damage_newest(disk);
    open_as(&rig, disk, RP_DURABLE_SYNC);
    assert_non_null(
        strstr(rp_test_rig_info(&rig).trouble,
               "7 items; the changes that the journal has since then were applied"));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* A table grows by its configuration, which is in no journal either. */
static void a_journal_is_not_redone_on_a_checkpoint_before_a_config_change(void **state)
{
    rp_table_options wider = rp_test_options("t", RP_UNIFORM, RP_FIFO, 2 * SIZE);
    rp_sim *disk = rp_sim_new(), *image;
    uint64_t digest;
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_SYNC);
    put(&rig, 1, SIZE);
    rp_test_rig_deinit(&rig);
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    (void)rp_test_bed_table(&rig.bed, &wider);
    rp_test_rig_open(&rig);
    put(&rig, 101, SIZE);
    digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
    rp_test_rig_deinit(&rig);
    image = rp_sim_copy(disk);
    assert_int_equal(rp_test_digest_on(image, "t"), digest);
    rp_sim_free(image);
    rp_test_damage_newest(disk);
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.mode = RP_DURABLE_SYNC;
    (void)rp_test_bed_table(&rig.bed, &wider);
    assert_fails(rp_test_rig_try_open(&rig), RP_CORRUPT, &rig.err, "wal/");
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* It was written, and power failed before it counted. What happens then is another history than
 * that which it belongs to, so it must not be there to fall back on. */
static void a_checkpoint_that_never_became_current_is_removed(void **state)
{
    rp_sim *disk = rp_sim_new();
    past p = {.count = 0};
    size_t had_it = 0;
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_SYNC);
    put(&rig, 1, 20);
    rp_test_rig_save(&rig);
    put(&rig, 101, 10);
    rp_sim_on_call(disk, keep_disk, &p);
    rp_test_rig_save(&rig);
    rp_sim_on_call(disk, NULL, NULL);
    rp_test_rig_deinit(&rig);
    for (size_t i = 0; i < p.count; i++) {
        rp_test_newest was = rp_test_newest_in(p.disks[i], "manifest/"), is;
        uint64_t digest;

        open_as(&rig, p.disks[i], RP_DURABLE_SYNC);
        is = rp_test_newest_in(p.disks[i], "manifest/");
        had_it += strcmp(is.path, was.path) < 0;
        put(&rig, 201, 15);
        digest = rp_table_digest(rp_test_rig_find(&rig, "t"));
        rp_test_rig_save(&rig);
        rp_test_rig_deinit(&rig);
        rp_test_damage_newest(p.disks[i]);
        assert_int_equal(rp_test_digest_on(p.disks[i], "t"), digest);
        rp_sim_free(p.disks[i]);
    }
    assert_true(had_it > 0);
    rp_sim_free(disk);
}

/* The newest can be read so far that it tells what it had; the journal has less. */
static void an_older_checkpoint_with_half_a_journal_is_refused(void **state)
{
    rp_sim *disk = rp_sim_new(), *image;
    rp_test_newest segment, journal;
    rp_test_rig rig;

    (void)state;
    open_as(&rig, disk, RP_DURABLE_SYNC);
    put(&rig, 1, 20);
    rp_test_rig_save(&rig);
    put(&rig, 101, 10);
    journal = rp_test_newest_in(disk, "wal/"); /* it ends with the tenth */
    rp_test_rig_save(&rig);
    segment =
        rp_test_newest_in(disk, "seg/"); /* whose last record is a block of the checkpoint */
    assert_true(rp_sim_flip(disk, segment.path, 8 * (segment.size - 10)));
    for (uint64_t lost = 0; lost <= 512; lost += 512) {
        rp_test_rig again;
        rp_status st;

        image = rp_sim_copy(disk);
        assert_true(rp_sim_resize(image, journal.path, journal.size - lost));
        rp_test_rig_init(&again, image, NULL);
        again.options.mode = RP_DURABLE_SYNC;
        st = rp_test_rig_try_open(&again);
        if (lost == 0) {
            assert_ok_err(st, &again.err);
            assert_true(again.degraded_count > 0);
            assert_int_equal(rp_table_digest(rp_test_rig_find(&again, "t")),
                             rp_table_digest(rp_test_rig_find(&rig, "t")));
        } else {
            assert_fails(st, RP_CORRUPT, &again.err,
                         "the journal has changes up to 29 of the 30");
        }
        rp_test_rig_deinit(&again);
        rp_sim_free(image);
    }
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* A file with a number that leaves none for the files to come is found before anything is
 * acknowledged, not at the next start. */
static void numbers_of_files_have_a_bound(void **state)
{
    static const char *const paths[] = {"seg/00000000fffffffe", "manifest/fffffffffffffffe"};
    rp_table_options o = rp_test_options("t", RP_UNIFORM, RP_FIFO, 150);
    rp_sim *disk = rp_sim_new();
    rp_file *file;
    rp_test_rig rig;

    (void)state;
    for (int i = 0; i < 2; i++) {
        rp_test_rig_init(&rig, disk, NULL);
        rig.options.mode = RP_DURABLE_SYNC;
        (void)rp_test_bed_table(&rig.bed, &o);
        assert_ok(rp_test_rig_try_open(&rig));
        rp_test_rig_deinit(&rig);
        rp_test_rig_init(&rig, disk, NULL);
        rig.options.mode = RP_DURABLE_SYNC;
        assert_ok(rig.files->ops->open(rig.files, paths[i], RP_OPEN_CREATE, &file, NULL));
        rig.files->ops->close(file);
        assert_int_equal(rp_test_rig_try_open(&rig), RP_CORRUPT);
        assert_non_null(strstr(rig.err.text, paths[i]));
        assert_non_null(strstr(rig.err.text, "move it away"));
        assert_ok(rig.files->ops->remove(rig.files, paths[i], NULL));
        rp_test_rig_deinit(&rig);
    }
    rp_sim_free(disk);
}

RP_TESTS(fallback)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_previous_checkpoint_and_the_journal_have_everything),
        cmocka_unit_test(temporary_files_are_removed),
        cmocka_unit_test(a_later_journal_is_not_redone_on_an_older_checkpoint),
        cmocka_unit_test(a_fallback_without_a_journal_stays_a_trouble),
        cmocka_unit_test(a_fallback_with_a_journal_says_that_it_was_applied),
        cmocka_unit_test(a_journal_is_not_redone_on_a_checkpoint_before_a_config_change),
        cmocka_unit_test(a_checkpoint_that_never_became_current_is_removed),
        cmocka_unit_test(an_older_checkpoint_with_half_a_journal_is_refused),
        cmocka_unit_test(numbers_of_files_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
