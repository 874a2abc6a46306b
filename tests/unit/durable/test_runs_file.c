/* SPDX-License-Identifier: Apache-2.0 */
/* The file RUNS: runs are saved with checkpoints and restored. */
#include "disk/names.h"
#include "runs/runs.h"
#include "support/durable_bed.h"

static rp_run_view view;

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static void report(rp_test_rig *rig, const char *run, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++) {
        rp_scalar scalar = {text("loss"), i, 1, 0.5};
        rp_run_report r = {.run = text(run), .scalars = &scalar, .scalar_count = 1};
        assert_int_equal(rp_runs_report(rp_store_runs(rig->bed.store), &r, 1, NULL, NULL),
                         RP_OK);
    }
}

static void open_rig(rp_test_rig *rig, rp_sim *disk)
{
    rp_test_rig_init(rig, disk, NULL);
    rp_test_rig_open(rig);
}

/* Runs are saved after the checkpoint is over, and before the next one begins. */
static void checkpoint(rp_test_rig *rig)
{
    rp_test_rig_save(rig);
    rp_test_rig_save(rig);
}

static bool has_run(rp_test_rig *rig, const char *name)
{
    return rp_runs_find(rp_store_runs(rig->bed.store), text(name), &view);
}

static bool has_file(rp_test_rig *rig, const char *path)
{
    rp_file *file = NULL;

    if (rig->files->ops->open(rig->files, path, RP_OPEN_READ, &file, NULL) != RP_OK)
        return false;
    rig->files->ops->close(file);
    return true;
}

static void runs_are_saved_with_checkpoints_and_restored(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;

    (void)state;
    open_rig(&rig, disk);
    checkpoint(&rig);
    assert_false(has_file(&rig, RP_RUNS_PATH)); /* there are no runs */
    report(&rig, "a", 0, 5000);
    report(&rig, "b", 0, 3);
    checkpoint(&rig);
    rp_test_rig_deinit(&rig);

    open_rig(&rig, disk);
    assert_true(has_run(&rig, "a"));
    assert_int_equal(view.last_number, 5000);
    assert_true(has_run(&rig, "b"));
    assert_true(rp_runs_check(rp_store_runs(rig.bed.store)));
    report(&rig, "a", 5000, 10);
    checkpoint(&rig);
    rp_test_rig_deinit(&rig);

    open_rig(&rig, disk);
    assert_true(has_run(&rig, "a"));
    assert_int_equal(view.last_number, 5010);
    assert_int_equal(atomic_load(&rig.event_count), 0);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

/* Changes a byte of the file, or cuts it off there. */
static void damage(rp_test_rig *rig, uint64_t at, bool cut)
{
    rp_file *file = NULL;
    uint8_t byte;
    rp_bytes part = {&byte, 1};
    size_t got;

    assert_ok(rig->files->ops->open(rig->files, RP_RUNS_PATH, RP_OPEN_WRITE, &file, NULL));
    assert_ok(rig->files->ops->read(file, at, &byte, 1, &got, NULL));
    byte ^= 0x20;
    if (cut)
        assert_ok(rig->files->ops->truncate(file, at, NULL));
    else
        assert_ok(rig->files->ops->write(file, at, &part, 1, NULL));
    rig->files->ops->close(file);
}

static uint64_t size_of(rp_test_rig *rig, const char *path)
{
    rp_file *file = NULL;
    uint64_t size = 0;

    assert_ok(rig->files->ops->open(rig->files, path, RP_OPEN_READ, &file, NULL));
    assert_ok(rig->files->ops->size(file, &size, NULL));
    rig->files->ops->close(file);
    return size;
}

static void a_damaged_file_is_reported_and_the_store_opens(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    uint64_t size;

    (void)state;
    open_rig(&rig, disk);
    report(&rig, "a", 0, 3);
    report(&rig, "b", 0, 3);
    checkpoint(&rig);
    size = size_of(&rig, RP_RUNS_PATH);
    rp_test_rig_deinit(&rig);

    for (uint64_t at = 0; at < size; at += 7)
        for (int cut = 0; cut < 2; cut++) {
            rp_sim *copy = rp_sim_copy(disk);

            rp_test_rig_init(&rig, copy, NULL);
            damage(&rig, at, cut != 0);
            rp_test_rig_open(&rig);
            assert_int_equal(atomic_load(&rig.degraded_count), 1);
            assert_true(rp_runs_check(rp_store_runs(rig.bed.store)));
            assert_false(has_file(&rig, RP_RUNS_PATH));
            assert_true(has_file(&rig, "quarantine/" RP_RUNS_PATH));
            report(&rig, "c", 0, 1);
            checkpoint(&rig); /* the next one is written */
            assert_true(has_file(&rig, RP_RUNS_PATH));
            rp_test_rig_deinit(&rig);
            rp_sim_free(copy);
        }
    rp_sim_free(disk);
}

enum { MOST_CALLS = 64 };

/* The calls that use RUNS. */
typedef struct calls {
    uint64_t numbers[MOST_CALLS];
    size_t count;
} calls;

static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    calls *c = ctx;

    (void)disk, (void)call;
    if (strcmp(path, RP_RUNS_PATH) == 0 && c->count < MOST_CALLS)
        c->numbers[c->count++] = number;
}

static void a_file_that_cannot_be_read_is_not_replaced(void **state)
{
    rp_sim *disk = rp_sim_new();
    calls found = {.count = 0};
    rp_test_rig rig;
    rp_sim *copy;
    uint64_t size;

    (void)state;
    open_rig(&rig, disk);
    report(&rig, "a", 0, 3);
    report(&rig, "b", 0, 3);
    checkpoint(&rig);
    size = size_of(&rig, RP_RUNS_PATH);
    rp_test_rig_deinit(&rig);
    copy = rp_sim_copy(disk);
    rp_sim_on_call(copy, on_call, &found);
    open_rig(&rig, copy);
    rp_test_rig_deinit(&rig);
    rp_sim_free(copy);
    assert_true(found.count > 1); /* it is opened and read */

    for (size_t i = 0; i < found.count; i++) {
        copy = rp_sim_copy(disk);
        rp_sim_fail(copy, &(rp_sim_fault){.call = found.numbers[i], .error = RP_SIM_EIO});
        open_rig(&rig, copy);
        report(&rig, "c", 0, 1);
        checkpoint(&rig);
        if (rp_sim_failed(copy) > 0 && !(has_run(&rig, "a") && has_run(&rig, "b"))) {
            assert_true(atomic_load(&rig.degraded_count) > 0);
            assert_int_equal(size_of(&rig, "quarantine/" RP_RUNS_PATH), size);
        }
        rp_test_rig_deinit(&rig);
        rp_sim_free(copy);
    }
    rp_sim_free(disk);
}

static void runs_without_room_stay_in_the_file_that_is_set_aside(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    uint64_t size;

    (void)state;
    open_rig(&rig, disk);
    report(&rig, "a", 0, 3000);
    report(&rig, "b", 0, 3000);
    checkpoint(&rig);
    size = size_of(&rig, RP_RUNS_PATH);
    rp_test_rig_deinit(&rig);

    rp_test_rig_init(&rig, disk, NULL);
    rig.options.run_bytes = 100000; /* of one of them */
    rp_test_rig_open(&rig);
    assert_true(has_run(&rig, "a"));
    assert_false(has_run(&rig, "b"));
    assert_int_equal(atomic_load(&rig.degraded_count), 1);
    assert_int_equal(size_of(&rig, "quarantine/" RP_RUNS_PATH), size);
    checkpoint(&rig);
    rp_test_rig_deinit(&rig);

    open_rig(&rig, disk);
    assert_true(has_run(&rig, "a")); /* what was loaded was saved again */
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void the_bound_is_set_before_runs_are_loaded(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_runs_info info;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    rig.options.run_bytes = 123456;
    rp_test_rig_open(&rig);
    rp_runs_get_info(rp_store_runs(rig.bed.store), &info);
    assert_int_equal(info.most_bytes, 123456);
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void add_size(void *ctx, const char *path, uint64_t size)
{
    (void)path;
    *(uint64_t *)ctx += (size + 4095) / 4096 * 4096;
}

static void the_file_leaves_room_on_the_disk(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    rp_runs_info info;
    uint64_t used = 0;

    (void)state;
    open_rig(&rig, disk);
    for (char name[] = "a"; name[0] < 'k'; name[0]++) report(&rig, name, 0, 3000);
    rp_runs_get_info(rp_store_runs(rig.bed.store), &info);
    rp_sim_list(disk, add_size, &used);
    rp_sim_set_capacity(disk, used + info.bytes * 3 / 2); /* the file would fit */
    checkpoint(&rig);
    assert_false(has_file(&rig, RP_RUNS_PATH));
    assert_true(atomic_load(&rig.degraded_count) > 0);
    rp_sim_set_capacity(disk, 0);
    checkpoint(&rig);
    assert_true(has_file(&rig, RP_RUNS_PATH));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

typedef struct ending {
    rp_test_rig *rig;
    bool has_file;
} ending;

static void on_done(void *ctx, rp_status status, const char *path, const char *why)
{
    ending *e = ctx;

    (void)path, (void)why;
    assert_ok(status);
    e->has_file = has_file(e->rig, RP_RUNS_PATH);
}

static void nobody_waits_for_the_file(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;
    ending e = {&rig, true};

    (void)state;
    open_rig(&rig, disk);
    report(&rig, "a", 0, 3);
    assert_ok(rp_durable_start_checkpoint(rig.durable, on_done, &e, NULL));
    checkpoint(&rig);
    assert_false(e.has_file);
    assert_true(has_file(&rig, RP_RUNS_PATH));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void the_file_is_written_only_if_runs_have_changed(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;

    (void)state;
    open_rig(&rig, disk);
    report(&rig, "a", 0, 3);
    checkpoint(&rig);
    assert_ok(rig.files->ops->remove(rig.files, RP_RUNS_PATH, NULL));
    checkpoint(&rig);
    assert_false(has_file(&rig, RP_RUNS_PATH));
    report(&rig, "a", 3, 1);
    checkpoint(&rig);
    assert_true(has_file(&rig, RP_RUNS_PATH));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

static void runs_of_the_store_are_saved_in_a_new_directory(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_test_rig rig;

    (void)state;
    rp_test_rig_init(&rig, disk, NULL);
    report(&rig, "a", 0, 3);
    rp_test_rig_open(&rig); /* writes the first checkpoint: so do salvage and import */
    assert_true(has_file(&rig, RP_RUNS_PATH));
    rp_test_rig_deinit(&rig);

    rp_test_rig_init(&rig, disk, NULL);
    report(&rig, "a", 0, 9); /* the run of the store stays */
    report(&rig, "b", 0, 1);
    rp_test_rig_open(&rig);
    assert_true(has_run(&rig, "a") && view.last_number == 9);
    assert_true(has_file(&rig, RP_RUNS_PATH)); /* it is not damaged */
    checkpoint(&rig);                          /* saves the runs that the store had before */
    rp_test_rig_deinit(&rig);

    open_rig(&rig, disk);
    assert_true(has_run(&rig, "a") && view.last_number == 9);
    assert_true(has_run(&rig, "b"));
    rp_test_rig_deinit(&rig);
    rp_sim_free(disk);
}

RP_TESTS(runs_file)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_saved_with_checkpoints_and_restored),
        cmocka_unit_test(a_damaged_file_is_reported_and_the_store_opens),
        cmocka_unit_test(a_file_that_cannot_be_read_is_not_replaced),
        cmocka_unit_test(runs_without_room_stay_in_the_file_that_is_set_aside),
        cmocka_unit_test(the_bound_is_set_before_runs_are_loaded),
        cmocka_unit_test(the_file_leaves_room_on_the_disk),
        cmocka_unit_test(nobody_waits_for_the_file),
        cmocka_unit_test(the_file_is_written_only_if_runs_have_changed),
        cmocka_unit_test(runs_of_the_store_are_saved_in_a_new_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
