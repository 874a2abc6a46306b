/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that were written when their format was introduced can always be read. */
#include <dirent.h>
#include <stdio.h>

#include "support/durable_bed.h"

typedef struct known {
    const char *name;
    int64_t size, inserts, samples;
    uint64_t digest;
} known;

/* What tests/support/make_store.c said when it made tests/data/stores/v1. */
static const known v1[] = {
    {"prioritized", 109, 109, 60, 0x5f99a0c908c86606},
    {"uniform", 95, 110, 57, 0xd3f180bc9ccb5b76},
    {"queue", 111, 111, 62, 0x473477db724e4c2b},
    {"heap", 110, 110, 54, 0x5c3958259a37eff9},
};

/* The same of v1_moved. */
static const known v1_moved[] = {
    {"prioritized", 26, 109, 60, 0x8e7fa914381cb243},
    {"uniform", 27, 110, 57, 0xa45579dade5f3c7e},
    {"queue", 27, 111, 62, 0xa5872f4bd15464f6},
    {"heap", 30, 113, 54, 0x4e4ac3d573407739},
};

static void copy_file(rp_sim *disk, const char *root, const char *path)
{
    static char bytes[1 << 20];
    char from[4096];
    FILE *file;
    size_t size;

    (void)snprintf(from, sizeof from, "%s/%s", root, path);
    file = fopen(from, "rb");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size < sizeof bytes);
    (void)fclose(file);
    assert_true(rp_sim_put(disk, path, bytes, size));
}

/* The files of a directory, on a disk in memory: what is in the tree stays as it is. */
static rp_sim *disk_of(const char *root)
{
    static const char *const folders[] = {"manifest", "seg", "wal"};
    rp_sim *disk = rp_sim_new();
    rp_files *files = rp_sim_mount(disk);

    copy_file(disk, root, "CURRENT");
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char path[4096];
        struct dirent *entry;
        DIR *folder;

        assert_ok(files->ops->make_directory(files, folders[i], NULL));
        (void)snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        folder = opendir(path);
        assert_non_null(folder);
        while ((entry = readdir(folder)) != NULL) {
            if (entry->d_name[0] == '.') continue;
            (void)snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            copy_file(disk, root, path);
        }
        (void)closedir(folder);
    }
    files->ops->free(files);
    return disk;
}

/* `damaged`: a file that is; NULL: none. */
static void check_store(const char *root, const char *damaged, const known *tables,
                        size_t count)
{
    rp_sim *disk = disk_of(root);
    rp_test_rig rig;
    uint64_t items = 0;

    if (damaged != NULL) assert_true(rp_sim_flip(disk, damaged, 8 * 70));
    rp_test_rig_init(&rig, disk, NULL);
    rp_test_rig_open(&rig);
    assert_int_equal(rig.event_count > 0, damaged != NULL);
    assert_true(rp_test_rig_info(&rig).recovered_records > 0);
    assert_int_equal(rp_store_tables(rig.bed.store, NULL, 0), count);
    for (size_t i = 0; i < count; i++) {
        rp_table *t = rp_test_rig_find(&rig, tables[i].name);
        rp_table_info info = rp_test_info_of(t);

        assert_true(rp_table_check(t));
        assert_int_equal(info.size, tables[i].size);
        items += (uint64_t)info.size;
        assert_int_equal(info.inserts, tables[i].inserts);
        assert_int_equal(info.samples, tables[i].samples);
        assert_int_equal(rp_table_digest(t), tables[i].digest);
    }
    assert_int_equal(rp_test_rig_info(&rig).recovered_items, items);
    rp_test_rig_save(&rig); /* and it can be written to */
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void a_store_of_version_1_is_read(void **state)
{
    (void)state;
    check_store(RP_TEST_DATA "/stores/v1", NULL, v1, COUNT_OF(v1));
    check_store(RP_TEST_DATA "/stores/v1_moved", NULL, v1_moved, COUNT_OF(v1_moved));
    /* The one before names other places of chunks than the journal does. */
    check_store(RP_TEST_DATA "/stores/v1_moved", "manifest/0000000000000006", v1_moved,
                COUNT_OF(v1_moved));
}

/* A version, or a feature, of tomorrow. */
static void a_newer_store_is_refused_by_name(void **state)
{
    static const size_t fields[] = {8, 24};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        rp_sim *disk = disk_of(RP_TEST_DATA "/stores/v1");
        uint8_t header[RP_FILE_HEADER_BYTES];
        rp_test_rig rig;
        uint32_t crc;

        assert_int_equal(rp_sim_read(disk, "CURRENT", 0, header, sizeof header), sizeof header);
        header[fields[i]] = 2;
        crc = rp_crc32c(0, header, 60);
        for (int b = 0; b < 4; b++) header[60 + b] = (uint8_t)(crc >> 8 * b);
        assert_true(rp_sim_overwrite(disk, "CURRENT", 0, header, sizeof header));
        rp_test_rig_init(&rig, disk, NULL);
        assert_fails(rp_test_rig_try_open(&rig), RP_PRECONDITION, &rig.err, "file header");
        rp_test_rig_deinit(&rig);
        rp_sim_free(disk);
    }
}

RP_TESTS(golden)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_of_version_1_is_read),
        cmocka_unit_test(a_newer_store_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
