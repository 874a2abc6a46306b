/* SPDX-License-Identifier: Apache-2.0 */
/* A real full disk: a data directory on a tmpfs of 64 MiB that another file fills. The
 * checkpoint fails with an error, the data on disk can still be loaded, and inserts and samples
 * continue. When there is space again, the next checkpoint succeeds without a restart. If the
 * test cannot mount, it is skipped. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "reprise/durable.h"
#include "support/fixture.h"
#include "table/snapshot/cut.h"
#include "util/clock.h"
#include "util/rng.h"

enum { MIB = 1 << 20, CHUNK = 64 << 10, WELL_MS = 10000 };

static char folder[] = "./reprise-full-XXXXXX";
static bool is_mounted;

static int mount_disk(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
    /* Other processes must not see the mount. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
    is_mounted = mount("tmpfs", folder, "tmpfs", 0, "size=64m") == 0;
    return 0;
}

static int unmount_disk(void **state)
{
    (void)state;
    if (is_mounted) (void)umount2(folder, MNT_DETACH);
    return rmdir(folder);
}

static void run(const char *format, const char *a, const char *b)
{
    char command[512];

    (void)snprintf(command, sizeof command, format, a, b);
    assert_int_equal(system(command), 0);
}

typedef struct side {
    rp_store *store;
    rp_durable *durable;
    rp_table *table;
    uint64_t next;
} side;

static void open_side(side *s, const char *directory, rp_durability mode, int64_t max_size)
{
    rp_store_options store = {.seed = 5};
    rp_durable_options options = {.directory = directory,
                                  .mode = mode,
                                  .period_ns = RP_FOREVER,
                                  .segment_bytes = 4 * MIB};
    rp_table_options table = rp_test_options("t", RP_UNIFORM, RP_FIFO, max_size);
    rp_error err = {0};

    memset(s, 0, sizeof *s);
    assert_ok_err(rp_store_new(&store, &s->store, &err), &err);
    assert_ok_err(rp_store_add_table(s->store, &table, NULL, &err), &err);
    assert_ok_err(rp_durable_open(&options, s->store, &s->durable, &err), &err);
    s->table = rp_test_table(s->store, "t");
}

static void close_side(side *s)
{
    rp_error err = {0};

    assert_ok_err(rp_durable_close(s->durable, &err), &err);
    rp_store_free(s->store);
}

/* Inserts `count` chunks, or fewer if inserts wait for space. Returns the digest after the last
 * acknowledged insert, or 0. */
static uint64_t fill(side *s, size_t count)
{
    uint64_t acked = 0;

    for (size_t i = 0; i < count; i++) {
        rp_insert item = {.key = ++s->next, .priority = 1};
        rp_status st;

        item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), s->next, 1, CHUNK);
        st = rp_table_insert(s->table, &item, 1, rp_wait_ms(5000), NULL, NULL);
        rp_trajectory_unref(item.trajectory);
        if (st == RP_OK) acked = rp_table_digest(s->table);
        if (st == RP_DEADLINE) break;
    }
    return acked;
}

/* Fills the disk except for `leave` bytes. */
static void put_ballast(size_t leave)
{
    char path[64];
    struct statvfs info;
    int fd;

    (void)snprintf(path, sizeof path, "%s/ballast", folder);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fstatvfs(fd, &info), 0);
    assert_int_equal(posix_fallocate(fd, 0, (off_t)(info.f_bavail * info.f_bsize - leave)), 0);
    assert_int_equal(close(fd), 0);
}

static void fill_up(rp_durability mode)
{
    char data[64], copy[] = "./reprise-copy-XXXXXX", copied[64], ballast[64];
    rp_status st = RP_UNAVAILABLE;
    uint64_t saved, at_end;
    rp_error err = {0};
    int64_t items;
    side s, other;

    (void)snprintf(data, sizeof data, "%s/data", folder);
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", folder);
    assert_non_null(mkdtemp(copy));
    (void)snprintf(copied, sizeof copied, "%s/data", copy);
    open_side(&s, data, mode, 10000);
    (void)fill(&s, 100);
    assert_ok_err(rp_durable_checkpoint(s.durable, rp_wait_forever(), NULL, 0, &err), &err);
    saved = rp_table_digest(s.table);
    put_ballast(2 * MIB);
    (void)fill(&s, 100); /* 6 MiB */
    /* With sync, the items that were inserted before inserts waited may fit in the reserve. */
    st = rp_durable_checkpoint(s.durable, rp_wait_forever(), NULL, 0, &err);
    assert_true(st == RP_NO_RESOURCE || (mode == RP_DURABLE_SYNC && st == RP_OK));
    assert_true(st == RP_OK || strlen(err.text) > 10);
    st = RP_UNAVAILABLE;
    /* The data on the disk can be loaded. */
    run("cp -r '%s' '%s'", data, copied);
    open_side(&other, copied, mode, 10000);
    assert_true(rp_table_check(other.table));
    if (mode == RP_DURABLE_CHECKPOINT) assert_true(rp_table_digest(other.table) == saved);
    assert_true(rp_test_info_of(other.table).size >= 100);
    close_side(&other);
    run("rm -rf '%s'%s", copy, "");
    /* The ballast is removed. */
    assert_int_equal(unlink(ballast), 0);
    for (int ms = 0; st != RP_OK && ms < WELL_MS; ms += 10) {
        st = rp_durable_checkpoint(s.durable, rp_wait_forever(), NULL, 0, &err);
        if (st != RP_OK) (void)usleep(10000);
    }
    assert_ok_err(st, &err);
    for (int ms = 0; ms < WELL_MS; ms += 10) {
        rp_durable_info info;
        rp_durable_get_info(s.durable, &info);
        if (!info.degraded) break;
        assert_true(ms + 10 < WELL_MS);
        (void)usleep(10000);
    }
    assert_true(fill(&s, 10) != 0);
    assert_ok_err(rp_durable_checkpoint(s.durable, rp_wait_forever(), NULL, 0, &err), &err);
    at_end = rp_table_digest(s.table);
    items = rp_test_info_of(s.table).size;
    assert_true(mode == RP_DURABLE_SYNC ? items >= 110 : items == 210);
    close_side(&s);
    open_side(&s, data, mode, 10000);
    assert_true(rp_table_digest(s.table) == at_end);
    assert_int_equal(rp_test_info_of(s.table).size, items);
    close_side(&s);
    run("rm -rf '%s'%s", data, "");
}

static bool is_degraded(const side *s)
{
    rp_durable_info info;

    rp_durable_get_info(s->durable, &info);
    return info.degraded;
}

/* The table holds 5 MiB, and 30 MiB are inserted, with `room` bytes of free space besides 12
 * MiB on the disk. Dead data must be removed to make space for new data. If removed files were
 * still open, their space would not be free. */
static void churn(size_t room)
{
    char data[64], ballast[64];
    uint64_t digest;
    rp_error err = {0};
    side s;

    (void)snprintf(data, sizeof data, "%s/data", folder);
    (void)snprintf(ballast, sizeof ballast, "%s/ballast", folder);
    open_side(&s, data, RP_DURABLE_INTERVAL, 80);
    (void)fill(&s, 200);
    assert_ok_err(rp_durable_checkpoint(s.durable, rp_wait_forever(), NULL, 0, &err), &err);
    put_ballast(room);
    (void)fill(&s, 500);
    for (int ms = 0; is_degraded(&s); ms++) {
        assert_true(ms < 3 * WELL_MS);
        (void)usleep(1000);
    }
    assert_true(fill(&s, 10) != 0);
    digest = rp_table_digest(s.table);
    close_side(&s);
    assert_int_equal(unlink(ballast), 0);
    open_side(&s, data, RP_DURABLE_INTERVAL, 80);
    assert_true(rp_table_digest(s.table) == digest);
    close_side(&s);
    run("rm -rf '%s'%s", data, "");
}

static void a_backlog_does_not_prevent_recovery_issue_20(void **state)
{
    (void)state;
    if (!is_mounted) skip();
    churn((size_t)2 * MIB);
}

static void dead_data_is_freed_without_a_free_byte_issue_20(void **state)
{
    (void)state;
    if (!is_mounted) skip();
    churn(0);
}

static void a_full_disk_is_survived_in_checkpoint_mode(void **state)
{
    (void)state;
    if (!is_mounted) skip();
    fill_up(RP_DURABLE_CHECKPOINT);
}

static void a_full_disk_is_survived_in_interval_mode(void **state)
{
    (void)state;
    if (!is_mounted) skip();
    fill_up(RP_DURABLE_INTERVAL);
}

static void a_full_disk_is_survived_in_sync_mode(void **state)
{
    (void)state;
    if (!is_mounted) skip();
    fill_up(RP_DURABLE_SYNC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_survived_in_checkpoint_mode),
        cmocka_unit_test(a_full_disk_is_survived_in_interval_mode),
        cmocka_unit_test(a_full_disk_is_survived_in_sync_mode),
        cmocka_unit_test(a_backlog_does_not_prevent_recovery_issue_20),
        cmocka_unit_test(dead_data_is_freed_without_a_free_byte_issue_20),
    };
    return cmocka_run_group_tests(tests, mount_disk, unmount_disk);
}
