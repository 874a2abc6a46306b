/* SPDX-License-Identifier: Apache-2.0 */
/* Data directories without a running store. tests/cli/test_data.py tests the command; this file
 * tests directories with a journal, which only a running store writes. */
#include "reprise/data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chunk/trajectory.h"
#include "disk/names.h"
#include "runs/runs.h"
#include "store/store.h"
#include "support/chunks.h"
#include "support/fixture.h"

/* A directory as a process leaves it that is killed: a checkpoint without items, a journal with
 * some. */
typedef struct scene {
    char root[64];
    char data[128], copy[128];
} scene;

enum { ITEMS = 20 };

static void shell(const char *format, const char *one, const char *two)
{
    char command[512];

    (void)snprintf(command, sizeof command, format, one, two);
    assert_int_equal(system(command), 0);
}

static void insert(rp_table *table, uint64_t key)
{
    rp_chunk *chunk = rp_test_ints(key + 1, RP_CODEC_SNAPPY, 4, 8);
    rp_chunk_slice slice = {chunk, 0, 1, 2};
    rp_slices column = {&slice, 1, false};
    rp_insert item = {.key = key, .priority = (double)key};

    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &item.trajectory, NULL));
    assert_ok(rp_table_insert(table, &item, 1, rp_wait_none(), NULL, NULL));
    rp_trajectory_unref(item.trajectory);
    rp_chunk_unref(chunk);
}

static int arrange(void **state)
{
    const rp_table_options options = {
        .name = "t", .max_size = 100, .limiter = rp_limiter_min_size(1)};
    scene *s = calloc(1, sizeof *s);
    rp_durable_options durable = {.mode = RP_DURABLE_SYNC, .period_ns = RP_FOREVER};
    rp_store *store = NULL;
    rp_table *table = NULL;
    rp_durable *d = NULL;
    rp_error err = {0};

    assert_non_null(s);
    (void)snprintf(s->root, sizeof s->root, "data_test_XXXXXX");
    assert_non_null(mkdtemp(s->root));
    (void)snprintf(s->data, sizeof s->data, "%s/running", s->root);
    (void)snprintf(s->copy, sizeof s->copy, "%s/data", s->root);
    durable.directory = s->data;
    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok(rp_store_add_table(store, &options, &table, NULL));
    assert_ok_err(rp_durable_open(&durable, store, &d, &err), &err);
    for (uint64_t key = 0; key < ITEMS; key++) insert(table, key);
    assert_int_equal(rp_data_locked_by(s->data), getpid());
    shell("cp -r %s %s", s->data, s->copy);
    assert_ok(rp_durable_close(d, NULL));
    rp_store_free(store);
    *state = s;
    return 0;
}

static int tidy(void **state)
{
    scene *s = *state;

    shell("rm -rf %s%s", s->root, "");
    free(s);
    return 0;
}

/* What a look found, by kind. */
typedef struct seen {
    rp_data_file last[RP_DATA_OTHER + 1];
    int count[RP_DATA_OTHER + 1];
    int damaged;
} seen;

static void on_file(void *ctx, const rp_data_file *file)
{
    seen *s = ctx;

    s->last[file->kind] = *file;
    s->count[file->kind]++;
    if (file->state != RP_DATA_DAMAGED) return;
    s->damaged++;
    assert_true(file->problem[0] != '\0');
}

static seen verify(const scene *s, rp_data_summary *summary)
{
    seen found = {0};
    const rp_data_look_options options = {
        .directory = s->copy, .thorough = true, .on_file = on_file, .ctx = &found};
    rp_error err = {0};

    assert_ok_err(rp_data_look(&options, summary, &err), &err);
    assert_int_equal(summary->damaged, found.damaged);
    return found;
}

/* The file of the journal with the most in it. */
static void journal_path(const scene *s, char path[256])
{
    rp_data_summary summary;
    seen found = verify(s, &summary);

    assert_true(found.count[RP_DATA_JOURNAL] >= 1);
    (void)snprintf(path, 256, "%s/%s", s->copy, found.last[RP_DATA_JOURNAL].path);
}

static void flip(const char *path, long offset)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    byte = fgetc(file);
    assert_true(byte != EOF);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void the_data_of_a_killed_process_is_valid(void **state)
{
    const scene *s = *state;
    rp_data_summary summary;
    seen found = verify(s, &summary);

    assert_int_equal(found.damaged, 0);
    assert_int_equal(summary.checkpoint, 1);
    assert_int_equal(summary.items, 0);
    assert_true(summary.journalled >= ITEMS);
    assert_true(found.last[RP_DATA_JOURNAL].state == RP_DATA_OPEN ||
                found.last[RP_DATA_JOURNAL].state == RP_DATA_FINE);
    assert_int_equal(rp_data_locked_by(s->copy), 0);
}

static void load(const scene *s)
{
    const rp_table_options options = {
        .name = "t", .max_size = 100, .limiter = rp_limiter_min_size(1)};
    rp_durable_options durable = {
        .directory = s->copy, .mode = RP_DURABLE_SYNC, .period_ns = RP_FOREVER};
    rp_store *store = NULL;
    rp_table *table = NULL;
    rp_durable *d = NULL;
    rp_error err = {0};

    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok(rp_store_add_table(store, &options, &table, NULL));
    assert_ok_err(rp_durable_open(&durable, store, &d, &err), &err);
    assert_int_equal(rp_test_info_of(table).size, ITEMS);
    insert(table, ITEMS + 1);
    assert_ok(rp_durable_close(d, NULL));
    rp_store_free(store);
}

/* A process that is killed after it has made a file, and before it has written to it. */
static void empty_files_are_leftovers_and_not_damage_issue_20(void **state)
{
    const scene *s = *state;
    rp_data_summary summary;
    seen found = verify(s, &summary);
    uint64_t unused = summary.unused;
    char name[32];

    (void)snprintf(name, sizeof name, "%016llx",
                   (unsigned long long)found.last[RP_DATA_JOURNAL].last_lsn + 1);
    shell("touch %s/wal/%s", s->copy, name);
    shell("touch %s/seg/00000000000000ff%s", s->copy, "");
    found = verify(s, &summary);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(summary.unused, unused + 2);
    assert_int_equal(found.last[RP_DATA_SEGMENT].state, RP_DATA_UNUSED);
    assert_int_equal(found.last[RP_DATA_JOURNAL].state, RP_DATA_UNUSED);
    assert_true(summary.journalled >= ITEMS);
    load(s);
    assert_int_equal(verify(s, &summary).damaged, 0);
}

static void a_torn_tail_is_not_damage(void **state)
{
    const scene *s = *state;
    rp_data_summary summary;
    struct stat about;
    char path[256];
    FILE *file;
    seen found;

    journal_path(s, path);
    assert_int_equal(stat(path, &about), 0);
    file = fopen(path, "ab"); /* half a record behind the last */
    assert_non_null(file);
    assert_int_equal(fwrite("half a record", 1, 13, file), 13);
    assert_int_equal(fclose(file), 0);
    found = verify(s, &summary);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(summary.torn, 1);
    assert_int_equal(found.last[RP_DATA_JOURNAL].state, RP_DATA_TORN);
    assert_true(summary.journalled >= ITEMS);
}

static void damage_in_the_middle_of_the_journal_is_damage(void **state)
{
    const scene *s = *state;
    rp_data_summary summary;
    char path[256];
    seen found;

    journal_path(s, path);
    flip(path, 64 + 40); /* in the first record */
    found = verify(s, &summary);
    assert_int_equal(found.damaged, 1);
    assert_int_equal(found.last[RP_DATA_JOURNAL].state, RP_DATA_DAMAGED);
}

typedef struct dumped {
    int tables, items;
    uint64_t keys;
} dumped;

static void on_table(void *ctx, const rp_table_info *table)
{
    assert_string_equal(table->name, "t");
    ((dumped *)ctx)->tables++;
}

static void on_item(void *ctx, const char *table, const rp_sample *item)
{
    dumped *d = ctx;
    rp_trajectory_column column = rp_trajectory_get_column(item->trajectory, 0);

    assert_string_equal(table, "t");
    assert_int_equal(column.shape.dims[0], 2);
    assert_int_equal(column.shape.dims[1], 8);
    assert_true(item->priority == (double)item->key);
    d->items++;
    d->keys += item->key;
}

static dumped dump(const char *directory)
{
    dumped d = {0};
    const rp_data_dump_options options = {
        .directory = directory, .on_table = on_table, .on_item = on_item, .ctx = &d};
    rp_error err = {0};

    assert_ok_err(rp_data_dump(&options, &err), &err);
    return d;
}

static void a_salvage_has_the_changes_of_the_journal(void **state)
{
    const scene *s = *state;
    char to[160];
    rp_data_move_options options = {.from = s->copy, .to = to};
    rp_data_moved moved;
    rp_error err = {0};
    dumped d;

    (void)snprintf(to, sizeof to, "%s/salvaged", s->root);
    assert_ok_err(rp_data_salvage(&options, &moved, &err), &err);
    assert_int_equal(moved.items, ITEMS);
    assert_true(moved.records >= ITEMS);
    d = dump(to);
    assert_int_equal(d.tables, 1);
    assert_int_equal(d.items, ITEMS);
    assert_int_equal(d.keys, ITEMS * (ITEMS - 1) / 2);
    assert_int_equal(dump(s->copy).items, 0); /* its checkpoint is from before */
}

static void the_source_directory_is_not_changed(void **state)
{
    const scene *s = *state;
    char to[160], before[256];
    rp_data_move_options options = {.from = s->copy, .to = to};
    rp_error err = {0};

    (void)snprintf(before, sizeof before, "%s/before", s->root);
    (void)snprintf(to, sizeof to, "%s/reverb", s->root);
    shell("cp -r %s %s", s->copy, before);
    assert_ok_err(rp_data_to_reverb(&options, NULL, &err), &err);
    (void)snprintf(to, sizeof to, "%s/salvaged", s->root);
    assert_ok_err(rp_data_salvage(&options, NULL, &err), &err);
    (void)verify(s, &(rp_data_summary){0});
    shell("diff -r %s %s", s->copy, before);
}

static void conversion_to_dm_reverb_round_trips(void **state)
{
    const scene *s = *state;
    char middle[160], to[160];
    rp_data_move_options there = {.from = s->copy, .to = middle};
    rp_data_move_options back = {.from = middle, .to = to};
    rp_data_moved moved;
    rp_error err = {0};

    (void)snprintf(middle, sizeof middle, "%s/reverb", s->root);
    (void)snprintf(to, sizeof to, "%s/back", s->root);
    assert_ok_err(rp_data_to_reverb(&there, &moved, &err), &err);
    assert_int_equal(moved.items, ITEMS);
    assert_ok_err(rp_data_from_reverb(&back, &moved, &err), &err);
    assert_int_equal(dump(to).items, ITEMS);
    assert_fails(rp_data_from_reverb(&back, &moved, &err), RP_EXISTS, &err,
                 "the directory is not empty");
}

static void damage_stops_a_conversion_but_not_a_salvage(void **state)
{
    const scene *s = *state;
    char path[256], to[160];
    rp_data_move_options options = {.from = s->copy, .to = to};
    rp_data_moved moved;
    rp_error err = {0};
    struct stat about;

    journal_path(s, path);
    assert_int_equal(stat(path, &about), 0);
    flip(path, (long)about.st_size / 2);
    (void)snprintf(to, sizeof to, "%s/reverb", s->root);
    assert_fails(rp_data_to_reverb(&options, &moved, &err), RP_CORRUPT, &err, "wal/");
    (void)snprintf(to, sizeof to, "%s/salvaged", s->root);
    assert_ok_err(rp_data_salvage(&options, &moved, &err), &err);
    assert_true(moved.items > 0 && moved.items < ITEMS);
    assert_int_equal((uint64_t)dump(to).items, moved.items);
}

/* A store that loads the copy, has a run and leaves it in RUNS. */
static void save_a_run(const scene *s)
{
    rp_durable_options durable = {
        .directory = s->copy, .mode = RP_DURABLE_SYNC, .period_ns = RP_FOREVER};
    rp_scalar scalar = {{"loss", 4}, 1, 1, 0.5};
    rp_run_report report = {.run = {"one", 3}, .scalars = &scalar, .scalar_count = 1};
    rp_store *store = NULL;
    rp_durable *d = NULL;
    rp_error err = {0};

    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok_err(rp_durable_open(&durable, store, &d, &err), &err);
    assert_ok(rp_runs_report(rp_store_runs(store), &report, 1, NULL, NULL));
    assert_ok_err(rp_durable_checkpoint(d, rp_wait_forever(), NULL, 0, &err), &err);
    assert_ok(rp_durable_close(d, NULL));
    rp_store_free(store);
}

static void damage_of_runs_is_damage(void **state)
{
    const scene *s = *state;
    rp_data_summary summary;
    struct stat about;
    char path[256];
    seen found;

    save_a_run(s);
    found = verify(s, &summary);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.count[RP_DATA_RUNS], 1);
    assert_string_equal(found.last[RP_DATA_RUNS].path, RP_RUNS_PATH);
    assert_int_equal(found.last[RP_DATA_RUNS].records, 2); /* a run, and the end */
    (void)snprintf(path, sizeof path, "%s/%s", s->copy, RP_RUNS_PATH);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(found.last[RP_DATA_RUNS].good_bytes, about.st_size);
    flip(path, (long)about.st_size / 2);
    found = verify(s, &summary);
    assert_int_equal(found.damaged, 1);
    assert_int_equal(found.last[RP_DATA_RUNS].state, RP_DATA_DAMAGED);
    flip(path, (long)about.st_size / 2);
    assert_int_equal(verify(s, &summary).damaged, 0);
    assert_int_equal(truncate(path, about.st_size - 1), 0);
    found = verify(s, &summary);
    assert_int_equal(found.last[RP_DATA_RUNS].state, RP_DATA_DAMAGED);
}

static void a_store_has_one_directory(void **state)
{
    const scene *s = *state;
    rp_durable_options first = {.directory = s->copy, .mode = RP_DURABLE_SYNC};
    rp_durable_options second = first;
    char other[96];
    rp_store *store = NULL;
    rp_durable *a = NULL, *b = NULL;
    rp_error err = {0};

    (void)snprintf(other, sizeof other, "%s/other", s->root);
    second.directory = other;
    assert_ok(rp_store_new(NULL, &store, NULL));
    assert_ok_err(rp_durable_open(&first, store, &a, &err), &err);
    assert_fails(rp_durable_open(&second, store, &b, &err), RP_PRECONDITION, &err, s->copy);
    assert_null(b);
    assert_int_equal(access(other, F_OK), -1);
    assert_ok(rp_durable_close(a, NULL));
    assert_ok_err(rp_durable_open(&second, store, &b, &err), &err);
    assert_ok(rp_durable_close(b, NULL));
    rp_store_free(store);
}

static void a_directory_that_this_process_has_is_refused(void **state)
{
    scene *s = *state;
    rp_durable_options options = {.directory = s->copy, .mode = RP_DURABLE_SYNC};
    rp_store *first = NULL, *second = NULL;
    rp_durable *a = NULL, *b = NULL;
    rp_error err = {0};

    assert_ok(rp_store_new(NULL, &first, NULL));
    assert_ok(rp_store_new(NULL, &second, NULL));
    assert_ok_err(rp_durable_open(&options, first, &a, &err), &err);
    assert_fails(rp_durable_open(&options, second, &b, &err), RP_PRECONDITION, &err,
                 "has this directory: that is this process");
    assert_non_null(strstr(err.text, "close its storage first, or use another directory"));
    assert_null(strstr(err.text, "end that process"));
    assert_ok(rp_durable_close(a, NULL));
    rp_store_free(first);
    rp_store_free(second);
}

RP_TESTS(data)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, arrange, tidy)
    const struct CMUnitTest tests[] = {
        TEST(the_data_of_a_killed_process_is_valid),
        TEST(empty_files_are_leftovers_and_not_damage_issue_20),
        TEST(a_store_has_one_directory),
        TEST(a_torn_tail_is_not_damage),
        TEST(damage_in_the_middle_of_the_journal_is_damage),
        TEST(damage_of_runs_is_damage),
        TEST(a_salvage_has_the_changes_of_the_journal),
        TEST(the_source_directory_is_not_changed),
        TEST(conversion_to_dm_reverb_round_trips),
        TEST(damage_stops_a_conversion_but_not_a_salvage),
        TEST(a_directory_that_this_process_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
