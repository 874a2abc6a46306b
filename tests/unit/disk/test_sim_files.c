/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the simulated disk really fails as documented. If it did not, tests that rely on
 * it would pass. */
#include "support/sim_files.h"

#include <pthread.h>
#include <string.h>

#include "support/unit.h"

enum { SEEDS = 64, BYTES = 4 * RP_SIM_PAGE };

typedef struct scene {
    rp_sim *disk;
    rp_files *fs;
} scene;

static int arrange(void **state)
{
    scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->disk = rp_sim_new();
    s->fs = rp_sim_mount(s->disk);
    *state = s;
    return 0;
}

static int tidy(void **state)
{
    scene *s = *state;

    assert_int_equal(rp_sim_open_handles(s->disk), 0);
    s->fs->ops->free(s->fs);
    rp_sim_free(s->disk);
    free(s);
    return 0;
}

static rp_file *create(rp_files *fs, const char *path)
{
    rp_file *file = NULL;

    assert_ok(fs->ops->open(fs, path, RP_OPEN_CREATE, &file, NULL));
    return file;
}

static void fill(rp_file *file, uint64_t offset, size_t size, uint8_t byte)
{
    static uint8_t data[BYTES];

    memset(data, byte, size);
    assert_ok(file->files->ops->write(file, offset, &(rp_bytes){data, size}, 1, NULL));
}

/* The size of a file, or -1. */
typedef struct wanted {
    const char *path;
    int64_t size;
} wanted;

static void compare(void *ctx, const char *path, uint64_t size)
{
    wanted *w = ctx;

    if (strcmp(path, w->path) == 0) w->size = (int64_t)size;
}

static int64_t size_of(rp_sim *disk, const char *path)
{
    wanted w = {path, -1};

    rp_sim_list(disk, compare, &w);
    return w.size;
}

/* How many bytes of a file have this value. */
static size_t count(rp_sim *disk, const char *path, uint8_t byte)
{
    static uint8_t data[BYTES];
    size_t got = rp_sim_read(disk, path, 0, data, sizeof data), found = 0;

    for (size_t i = 0; i < got; i++) found += data[i] == byte;
    return found;
}

/* A file of four pages of 1, synced, name and all, and then overwritten with 2. */
static rp_file *overwritten(rp_files *fs)
{
    rp_file *file = create(fs, "a");

    fill(file, 0, BYTES, 1);
    assert_ok(fs->ops->sync(file, NULL));
    assert_ok(fs->ops->sync_directory(fs, "", NULL));
    fill(file, 0, BYTES, 2);
    return file;
}

static void unsynced_writes_may_be_lost(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a");
    rp_sim *image;

    fill(file, 0, 1000, 1);
    assert_ok(s->fs->ops->sync(file, NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "a"), -1); /* the data is safe, its name is not */
    rp_sim_free(image);
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    fill(file, 500, 1000, 2);
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "a"), 1000);
    assert_int_equal(count(image, "a", 1), 1000);
    rp_sim_free(image);
    image = rp_sim_after(s->disk, RP_SIM_ALL, 0);
    assert_int_equal(count(image, "a", 1), 500);
    assert_int_equal(count(image, "a", 2), 1000);
    rp_sim_free(image);
    s->fs->ops->close(file);
}

static void names_in_an_unsynced_directory_are_lost_with_it(void **state)
{
    scene *s = *state;
    rp_file *file;
    rp_sim *image;

    assert_ok(s->fs->ops->make_directory(s->fs, "d", NULL));
    file = create(s->fs, "d/a");
    assert_ok(s->fs->ops->sync_directory(s->fs, "d", NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "d/a"), -1);
    rp_sim_free(image);
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "d/a"), 0);
    rp_sim_free(image);
    s->fs->ops->close(file);
}

/* Sectors come one by one, and over the seeds in every number from few to most. */
static void a_subset_of_sectors_survives(void **state)
{
    scene *s = *state;
    rp_file *file = overwritten(s->fs);
    size_t least = BYTES, most = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_SUBSET, seed);
        size_t new = count(image, "a", 2);

        assert_int_equal(new % RP_SIM_SECTOR, 0);
        assert_int_equal(new + count(image, "a", 1), BYTES);
        if (new < least) least = new;
        if (new > most) most = new;
        rp_sim_free(image);
    }
    assert_true(least < BYTES / 2 && most > BYTES / 2 && least < most);
    s->fs->ops->close(file);
}

static void a_sector_is_torn(void **state)
{
    scene *s = *state;
    rp_file *file = overwritten(s->fs);
    size_t garbage = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_TORN, seed);
        size_t new = count(image, "a", 2), old = count(image, "a", 1);
        uint8_t last = 0;

        assert_int_not_equal(new % RP_SIM_SECTOR, 0);
        assert_int_equal(size_of(image, "a"), BYTES);
        garbage += new + old < BYTES;
        assert_int_equal(rp_sim_read(image, "a", new - 1, &last, 1), 1);
        assert_true(last == 2 || new + old < BYTES); /* new bytes stand in front */
        rp_sim_free(image);
    }
    assert_true(garbage > 0 && garbage < SEEDS);
    s->fs->ops->close(file);
}

static void a_growing_file_is_torn_short_or_with_its_size(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a");
    size_t shorter = 0, whole = 0;

    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    fill(file, 0, BYTES - 100, 2);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_TORN, seed);
        int64_t size = size_of(image, "a");

        assert_true(size > 0 && size <= BYTES - 100);
        shorter += size < BYTES - 100;
        whole += size == BYTES - 100;
        assert_true(count(image, "a", 2) < BYTES - 100);
        rp_sim_free(image);
    }
    assert_true(shorter > 0 && whole > 0);
    s->fs->ops->close(file);
}

static void a_rename_is_lost(void **state)
{
    scene *s = *state;
    rp_file *old = create(s->fs, "a"), *new;
    rp_sim *image;

    fill(old, 0, 10, 1);
    assert_ok(s->fs->ops->sync(old, NULL));
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    new = create(s->fs, "a.new");
    fill(new, 0, 20, 2);
    assert_ok(s->fs->ops->rename(s->fs, "a.new", "a", NULL));
    assert_int_equal(size_of(s->disk, "a"), 20);
    image = rp_sim_after(s->disk, RP_SIM_LOST_RENAME, 0);
    assert_int_equal(size_of(image, "a"), 10);
    assert_int_equal(size_of(image, "a.new"), 20);
    rp_sim_free(image);
    image = rp_sim_after(s->disk, RP_SIM_ALL, 0);
    assert_int_equal(size_of(image, "a"), 20);
    assert_int_equal(size_of(image, "a.new"), -1);
    rp_sim_free(image);
    /* Renamed before its data was synced: the name is there, the data is not. */
    image = rp_sim_after(s->disk, RP_SIM_STALE_SIZE, 1);
    assert_true(size_of(image, "a") == 0 || count(image, "a", 2) != 20);
    rp_sim_free(image);
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    image = rp_sim_after(s->disk, RP_SIM_LOST_RENAME, 0);
    assert_int_equal(size_of(image, "a"), 20);
    rp_sim_free(image);
    s->fs->ops->close(old);
    s->fs->ops->close(new);
}

static void an_entry_is_lost(void **state)
{
    static const char *const paths[] = {"a", "b", "c"};
    size_t lost[3] = {0};
    scene *s = *state;

    for (size_t i = 0; i < 3; i++) s->fs->ops->close(create(s->fs, paths[i]));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_LOST_ENTRY, seed);
        size_t missing = 0;
        for (size_t i = 0; i < 3; i++) {
            missing += size_of(image, paths[i]) < 0;
            lost[i] += size_of(image, paths[i]) < 0;
        }
        assert_true(missing > 0);
        rp_sim_free(image);
    }
    for (size_t i = 0; i < 3; i++) assert_true(lost[i] > 0 && lost[i] < SEEDS);
}

/* Removed, and back after the cut. */
static void a_removal_is_lost(void **state)
{
    scene *s = *state;
    rp_sim *image;

    s->fs->ops->close(create(s->fs, "a"));
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    assert_ok(s->fs->ops->remove(s->fs, "a", NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "a"), 0);
    rp_sim_free(image);
    image = rp_sim_after(s->disk, RP_SIM_ALL, 0);
    assert_int_equal(size_of(image, "a"), -1);
    rp_sim_free(image);
}

/* Between directories a file may be in both after a cut. */
static void a_move_between_directories_is_two_changes(void **state)
{
    scene *s = *state;
    rp_sim *image;

    assert_ok(s->fs->ops->make_directory(s->fs, "d", NULL));
    s->fs->ops->close(create(s->fs, "a"));
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    assert_ok(s->fs->ops->rename(s->fs, "a", "d/a", NULL));
    assert_ok(s->fs->ops->sync_directory(s->fs, "d", NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "a"), 0);
    assert_int_equal(size_of(image, "d/a"), 0);
    rp_sim_free(image);
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(size_of(image, "a"), -1);
    rp_sim_free(image);
}

static void a_size_is_stale_either_way(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a");
    size_t without_size = 0, without_data = 0;

    fill(file, 0, 700, 1);
    assert_ok(s->fs->ops->sync(file, NULL));
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    fill(file, 600, 1000, 2);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_STALE_SIZE, seed);
        if (size_of(image, "a") == 700) {
            assert_int_equal(count(image, "a", 2), 100); /* data, and not the size */
            without_size++;
        } else {
            assert_int_equal(size_of(image, "a"), 1600);
            assert_int_equal(count(image, "a", 1), 700);
            assert_int_equal(count(image, "a", 0), 900);
            without_data++;
        }
        rp_sim_free(image);
    }
    assert_true(without_size > 0 && without_data > 0);
    s->fs->ops->close(file);
}

static void a_tail_is_garbage(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a");
    size_t least = BYTES, most = 0;

    fill(file, 0, 1000, 1);
    assert_ok(s->fs->ops->sync(file, NULL));
    assert_ok(s->fs->ops->sync_directory(s->fs, "", NULL));
    fill(file, 1000, BYTES - 1000, 2);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_sim *image = rp_sim_after(s->disk, RP_SIM_GARBAGE, seed);
        size_t new = count(image, "a", 2);
        assert_int_equal(size_of(image, "a"), BYTES);
        assert_true(new < BYTES - 1000);
        if (new < least) least = new;
        if (new > most) most = new;
        rp_sim_free(image);
    }
    assert_true(least < most);
    s->fs->ops->close(file);
}

static void the_same_seed_gives_the_same_image(void **state)
{
    static uint8_t one[BYTES], two[BYTES];
    scene *s = *state;
    rp_file *file = overwritten(s->fs);

    for (int variant = 0; variant < RP_SIM_VARIANTS; variant++) {
        rp_sim *a = rp_sim_after(s->disk, (rp_sim_variant)variant, 5);
        rp_sim *b = rp_sim_after(s->disk, (rp_sim_variant)variant, 5);
        size_t got = rp_sim_read(a, "a", 0, one, BYTES);
        assert_int_equal(rp_sim_read(b, "a", 0, two, BYTES), got);
        assert_memory_equal(one, two, got);
        rp_sim_free(a);
        rp_sim_free(b);
    }
    s->fs->ops->close(file);
}

static void images_do_not_see_each_other(void **state)
{
    scene *s = *state;
    rp_file *file = overwritten(s->fs);
    rp_sim *copy = rp_sim_copy(s->disk), *image;

    assert_true(rp_sim_flip(copy, "a", 8 * 5000));
    assert_int_equal(count(copy, "a", 2), BYTES - 1);
    assert_int_equal(count(s->disk, "a", 2), BYTES);
    fill(file, 0, 10, 7);
    assert_int_equal(count(copy, "a", 7), 0);
    image = rp_sim_after(copy, RP_SIM_NONE, 0); /* what is not synced is copied as such */
    assert_int_equal(count(image, "a", 1), BYTES - 1);
    rp_sim_free(image);
    rp_sim_free(copy);
    s->fs->ops->close(file);
}

static void power_is_cut_at_a_call(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a");
    rp_error err;

    rp_sim_cut(s->disk, rp_sim_calls(s->disk) + 2);
    fill(file, 0, 10, 1);
    assert_fails(s->fs->ops->write(file, 10, &(rp_bytes){"x", 1}, 1, &err), RP_UNAVAILABLE,
                 &err, "power");
    assert_int_equal(s->fs->ops->sync(file, &err), RP_UNAVAILABLE);
    assert_int_equal(size_of(s->disk, "a"), 10);
    s->fs->ops->close(file);
}

typedef struct told {
    uint64_t calls, images;
    char log[256];
} told;

static void take_images(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                        const char *path)
{
    told *t = ctx;
    size_t used = strlen(t->log);

    assert_int_equal(number, ++t->calls);
    (void)snprintf(t->log + used, sizeof t->log - used, "%s(%s) ", call, path);
    for (int variant = 0; variant < RP_SIM_VARIANTS; variant++, t->images++)
        rp_sim_free(rp_sim_after(disk, (rp_sim_variant)variant, number));
}

static void a_hook_sees_every_call(void **state)
{
    scene *s = *state;
    rp_file *file;
    told t = {0};
    char byte;
    size_t got;

    rp_sim_on_call(s->disk, take_images, &t);
    file = overwritten(s->fs);
    assert_ok(s->fs->ops->read(file, 0, &byte, 1, &got, NULL));
    assert_string_equal(t.log, "open(a) write(a) sync(a) sync_directory() write(a) read(a) ");
    assert_int_equal(t.images, 6 * RP_SIM_VARIANTS);
    assert_int_equal(rp_sim_calls(s->disk), 6);
    s->fs->ops->close(file);
}

/* Each error at each kind of call, once and for good. */
static void calls_fail_as_configured(void **state)
{
    static const struct {
        rp_sim_error error;
        rp_status open, write, read, sync;
    } rows[] = {
        {RP_SIM_EIO, RP_UNAVAILABLE, RP_UNAVAILABLE, RP_UNAVAILABLE, RP_UNAVAILABLE},
        {RP_SIM_ENOSPC, RP_OK, RP_NO_RESOURCE, RP_OK, RP_NO_RESOURCE},
        {RP_SIM_EDQUOT, RP_OK, RP_NO_RESOURCE, RP_OK, RP_NO_RESOURCE},
        {RP_SIM_EROFS, RP_OK, RP_UNAVAILABLE, RP_OK, RP_UNAVAILABLE},
        {RP_SIM_EMFILE, RP_NO_RESOURCE, RP_OK, RP_OK, RP_OK},
        {RP_SIM_SHORT, RP_OK, RP_NO_RESOURCE, RP_UNAVAILABLE, RP_OK},
    };
    scene *s = *state;
    const rp_files_ops *ops = s->fs->ops;
    rp_file *file = create(s->fs, "a"), *other = NULL;
    char bytes[100];
    size_t got;

    fill(file, 0, sizeof bytes, 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int for_good = 0; for_good < 2; for_good++)
            for (uint64_t call = 1; call <= 4; call++) {
                rp_sim_fault fault = {rp_sim_calls(s->disk) + call, rows[i].error,
                                      for_good != 0, i};
                rp_status expected[4] = {rows[i].open, rows[i].write, rows[i].read,
                                         rows[i].sync};
                for (uint64_t k = 1; k <= 4; k++)
                    if (k != call && !(for_good && k > call)) expected[k - 1] = RP_OK;
                rp_sim_fail(s->disk, &fault);
                assert_int_equal(ops->open(s->fs, "a", RP_OPEN_READ, &other, NULL),
                                 expected[0]);
                if (expected[0] == RP_OK) ops->close(other);
                assert_int_equal(ops->write(file, 0, &(rp_bytes){bytes, sizeof bytes}, 1, NULL),
                                 expected[1]);
                assert_int_equal(ops->read(file, 0, bytes, sizeof bytes, &got, NULL),
                                 expected[2]);
                assert_int_equal(ops->sync(file, NULL), expected[3]);
                for (size_t k = 0, failures = 0; k < 4; k++) {
                    failures += expected[k] != RP_OK;
                    if (k == 3) assert_int_equal(rp_sim_failed(s->disk), failures);
                }
            }
    ops->close(file);
}

static void a_write_that_fails_has_written_a_part(void **state)
{
    static uint8_t data[1000];
    scene *s = *state;
    bool some = false, none = false;

    memset(data, 3, sizeof data);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rp_file *file = create(s->fs, "a");
        rp_sim_fault fault = {rp_sim_calls(s->disk) + 1, RP_SIM_SHORT, false, seed};
        int64_t size;

        rp_sim_fail(s->disk, &fault);
        assert_int_equal(s->fs->ops->write(file, 0, &(rp_bytes){data, 1000}, 1, NULL),
                         RP_NO_RESOURCE);
        size = size_of(s->disk, "a");
        assert_true(size < 1000);
        some = some || size > 500;
        none = none || size < 100;
        s->fs->ops->close(file);
        assert_ok(s->fs->ops->remove(s->fs, "a", NULL));
    }
    assert_true(some && none);
}

/* The failure that Linux tells once: what was dirty is held for clean. */
static void a_failed_sync_loses_pages_for_good(void **state)
{
    scene *s = *state;
    rp_file *file = overwritten(s->fs);
    rp_sim_fault fault = {rp_sim_calls(s->disk) + 1, RP_SIM_EIO, false, 1};
    size_t survived;
    rp_sim *image;

    rp_sim_fail(s->disk, &fault);
    assert_int_equal(s->fs->ops->sync(file, NULL), RP_UNAVAILABLE);
    assert_ok(s->fs->ops->sync(file, NULL)); /* a lie */
    assert_int_equal(count(s->disk, "a", 2), BYTES);
    image = rp_sim_after(s->disk, RP_SIM_ALL, 0);
    survived = count(image, "a", 2);
    assert_true(survived < BYTES && survived % RP_SIM_PAGE == 0);
    assert_int_equal(count(image, "a", 1), BYTES - survived);
    rp_sim_free(image);
    rp_sim_drop_caches(s->disk); /* the system may show it at any time */
    assert_int_equal(count(s->disk, "a", 2), survived);
    fill(file, 0, BYTES, 3); /* written again they are dirty again */
    assert_ok(s->fs->ops->sync(file, NULL));
    image = rp_sim_after(s->disk, RP_SIM_NONE, 0);
    assert_int_equal(count(image, "a", 3), BYTES);
    rp_sim_free(image);
    s->fs->ops->close(file);
}

static void a_disk_fills_up(void **state)
{
    scene *s = *state;
    rp_file *file = create(s->fs, "a"), *other = create(s->fs, "b");
    static uint8_t data[BYTES];
    rp_error err;

    rp_sim_set_capacity(s->disk, 3 * RP_SIM_PAGE);
    fill(other, 0, 1, 1);
    assert_fails(s->fs->ops->write(file, 0, &(rp_bytes){data, BYTES}, 1, &err), RP_NO_RESOURCE,
                 &err, "No space");
    assert_int_equal(size_of(s->disk, "a"), 2 * RP_SIM_PAGE);
    fill(file, 0, 2 * RP_SIM_PAGE, 1); /* what it has can be written */
    assert_ok(s->fs->ops->remove(s->fs, "b", NULL));
    fill(file, 0, 3 * RP_SIM_PAGE, 1);
    s->fs->ops->close(file);
    s->fs->ops->close(other);
}

static void files_are_damaged(void **state)
{
    scene *s = *state;
    char data[8] = "";

    assert_true(rp_sim_put(s->disk, "a", "hello", 5));
    assert_false(rp_sim_put(s->disk, "d/a", "hello", 5));
    assert_true(rp_sim_flip(s->disk, "a", 9));
    assert_int_equal(rp_sim_read(s->disk, "a", 0, data, sizeof data), 5);
    assert_memory_equal(data, "hgllo", 5);
    assert_false(rp_sim_flip(s->disk, "a", 40));
    assert_true(rp_sim_overwrite(s->disk, "a", 1, "ey", 2));
    assert_false(rp_sim_overwrite(s->disk, "a", 4, "ey", 2));
    assert_true(rp_sim_resize(s->disk, "a", 3));
    assert_int_equal(rp_sim_read(s->disk, "a", 0, data, sizeof data), 3);
    assert_memory_equal(data, "hey", 3);
    assert_true(rp_sim_resize(s->disk, "a", 5));
    assert_int_equal(rp_sim_read(s->disk, "a", 0, data, sizeof data), 5);
    assert_memory_equal(data, "hey\0\0", 5);
    assert_true(rp_sim_delete(s->disk, "a"));
    assert_false(rp_sim_delete(s->disk, "a"));
}

static void one_mount_has_the_lock(void **state)
{
    scene *s = *state;
    rp_files *other = rp_sim_mount(s->disk);
    rp_error err;

    assert_ok(s->fs->ops->lock(s->fs, "LOCK", &err));
    assert_fails(other->ops->lock(other, "LOCK", &err), RP_PRECONDITION, &err, "process");
    s->fs->ops->free(s->fs);
    assert_ok(other->ops->lock(other, "LOCK", &err));
    s->fs = other;
}

/* The statuses of the system's files. */
static void statuses_equal_those_of_a_real_directory(void **state)
{
    scene *s = *state;
    const rp_files_ops *ops = s->fs->ops;
    rp_file *file = create(s->fs, "a"), *other = NULL;
    char byte;
    size_t got;

    assert_int_equal(ops->open(s->fs, "b", RP_OPEN_READ, &other, NULL), RP_NOT_FOUND);
    assert_int_equal(ops->open(s->fs, "b", RP_OPEN_WRITE, &other, NULL), RP_NOT_FOUND);
    assert_int_equal(ops->open(s->fs, "a", RP_OPEN_CREATE, &other, NULL), RP_EXISTS);
    assert_int_equal(ops->open(s->fs, "d/b", RP_OPEN_CREATE, &other, NULL), RP_NOT_FOUND);
    assert_int_equal(ops->remove(s->fs, "b", NULL), RP_NOT_FOUND);
    assert_int_equal(ops->rename(s->fs, "b", "c", NULL), RP_NOT_FOUND);
    assert_int_equal(ops->make_directory(s->fs, "a", NULL), RP_EXISTS);
    assert_int_equal(ops->sync_directory(s->fs, "d", NULL), RP_NOT_FOUND);
    assert_ok(ops->make_directory(s->fs, "d", NULL));
    assert_ok(ops->make_directory(s->fs, "d", NULL));
    assert_int_equal(ops->open(s->fs, "d", RP_OPEN_READ, &other, NULL), RP_UNAVAILABLE);
    fill(file, 0, 1, 9);
    assert_ok(ops->remove(s->fs, "a", NULL)); /* who has it open can still read it */
    assert_ok(ops->read(file, 0, &byte, 1, &got, NULL));
    assert_int_equal(byte, 9);
    ops->close(file);
}

static void *write_many(void *arg)
{
    scene *s = arg;

    for (int i = 0; i < 200; i++) {
        char path[32];
        rp_file *file = NULL;
        (void)snprintf(path, sizeof path, "%d_%lx", i, (unsigned long)pthread_self());
        if (s->fs->ops->open(s->fs, path, RP_OPEN_CREATE, &file, NULL) != RP_OK) return s;
        if (s->fs->ops->write(file, 0, &(rp_bytes){path, 20}, 1, NULL) != RP_OK) return s;
        if (s->fs->ops->sync(file, NULL) != RP_OK) return s;
        s->fs->ops->close(file);
        rp_sim_free(rp_sim_after(s->disk, RP_SIM_SUBSET, (uint64_t)i));
        if (s->fs->ops->remove(s->fs, path, NULL) != RP_OK) return s;
        if (i % 10 == 0 && s->fs->ops->sync_directory(s->fs, "", NULL) != RP_OK) return s;
    }
    return NULL;
}

static void threads_may_share_a_disk(void **state)
{
    scene *s = *state;
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, s), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed = s;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

RP_TESTS(sim_files)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, arrange, tidy)
    const struct CMUnitTest tests[] = {
        TEST(unsynced_writes_may_be_lost),
        TEST(names_in_an_unsynced_directory_are_lost_with_it),
        TEST(a_subset_of_sectors_survives),
        TEST(a_sector_is_torn),
        TEST(a_growing_file_is_torn_short_or_with_its_size),
        TEST(a_rename_is_lost),
        TEST(an_entry_is_lost),
        TEST(a_removal_is_lost),
        TEST(a_move_between_directories_is_two_changes),
        TEST(a_size_is_stale_either_way),
        TEST(a_tail_is_garbage),
        TEST(the_same_seed_gives_the_same_image),
        TEST(images_do_not_see_each_other),
        TEST(power_is_cut_at_a_call),
        TEST(a_hook_sees_every_call),
        TEST(calls_fail_as_configured),
        TEST(a_write_that_fails_has_written_a_part),
        TEST(a_failed_sync_loses_pages_for_good),
        TEST(a_disk_fills_up),
        TEST(files_are_damaged),
        TEST(one_mount_has_the_lock),
        TEST(statuses_equal_those_of_a_real_directory),
        TEST(threads_may_share_a_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
