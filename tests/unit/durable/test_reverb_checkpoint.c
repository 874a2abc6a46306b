/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that dm-reverb 0.14 wrote (by tests/data/reverb/make.py) are read, written and
 * read again; some are damaged first. */
#include "durable/reverb/reverb_checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "durable/reverb/reverb_wire.h"
#include "durable/reverb/tfrecord.h"
#include "store/store.h"
#include "support/chunks.h"
#include "table/snapshot/cut.h"

#define DATA RP_TEST_DATA "/reverb/"

static const char *const file_names[] = {"tables.tfrecord", "items.tfrecord",
                                         "chunks.tfrecord"};

typedef struct scene {
    char directory[64]; /* beside where the test runs */
    rp_files *fs;
} scene;

static int arrange(void **state)
{
    scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    (void)snprintf(s->directory, sizeof s->directory, "reverb_test_XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    assert_ok(rp_files_open_directory(rp_allocator_default(), s->directory, &s->fs, NULL));
    *state = s;
    return 0;
}

static int tidy(void **state)
{
    scene *s = *state;
    char command[128];

    s->fs->ops->free(s->fs);
    (void)snprintf(command, sizeof command, "rm -rf %s", s->directory);
    assert_int_equal(system(command), 0);
    free(s);
    return 0;
}

/* Loads one of the checkpoints in tests/data into a store. */
static rp_status load_into(rp_store *store, const char *name, const rp_reverb_options *options,
                           rp_reverb_report *report, rp_error *err)
{
    char path[256];
    rp_files *fs = NULL;
    rp_status st;

    (void)snprintf(path, sizeof path, DATA "%s", name);
    assert_ok(rp_files_open_directory(rp_allocator_default(), path, &fs, NULL));
    st = rp_reverb_load(fs, store, options, report, err);
    fs->ops->free(fs);
    return st;
}

static rp_store *new_store(const rp_allocator *alloc)
{
    const rp_store_options options = {.alloc = alloc, .seed = 1};
    rp_store *store = NULL;

    assert_ok(rp_store_new(&options, &store, NULL));
    return store;
}

/* A store filled from one of the checkpoints. */
static rp_store *load(const char *name, rp_reverb_report *report)
{
    rp_store *store = new_store(NULL);
    rp_error err = {0};

    assert_ok_err(load_into(store, name, NULL, report, &err), &err);
    return store;
}

static size_t read_file(const char *path, uint8_t *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t size;

    assert_non_null(file);
    size = fread(out, 1, room, file);
    assert_true(size < room);
    (void)fclose(file);
    return size;
}

static void write_file(const scene *s, const char *name, const void *data, size_t size,
                       const char *mode)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", s->directory, name);
    file = fopen(path, mode);
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Copies a checkpoint into the scene. */
static void copy(const scene *s, const char *name)
{
    char command[512];

    (void)snprintf(command, sizeof command, "cp %s%s/* %s/", DATA, name, s->directory);
    assert_int_equal(system(command), 0);
}

/* What all tables are, in one number; the order of tables does not matter. */
static uint64_t digest(rp_store *store)
{
    rp_table *tables[32];
    size_t count = rp_store_tables(store, tables, COUNT_OF(tables));
    uint64_t sum = count;

    assert_true(count <= COUNT_OF(tables));
    for (size_t i = 0; i < count; i++) {
        assert_true(rp_table_check(tables[i]));
        sum += rp_table_digest(tables[i]);
    }
    return sum;
}

static void assert_load_fails(const scene *s, rp_status expected, const char *part)
{
    rp_store *store = new_store(NULL);
    rp_error err = {0};

    assert_fails(rp_reverb_load(s->fs, store, NULL, NULL, &err), expected, &err, part);
    assert_int_equal(rp_store_tables(store, NULL, 0), 0);
    rp_store_free(store);
}

/* From expected.json. */
static void tables_equal_those_of_dm_reverb(void **state)
{
    static const struct {
        const char *name;
        rp_selector_kind sampler, remover;
        int64_t size, max_size, inserts, samples, deletes, unique, deleted;
        int32_t times;
    } expected[] = {
        {"uniform", RP_UNIFORM, RP_FIFO, 9, 100, 9, 2, 0, 2, 0, 0},
        {"fifo", RP_FIFO, RP_FIFO, 8, 100, 9, 3, 1, 1, 0, 0},
        {"lifo", RP_LIFO, RP_LIFO, 9, 100, 9, 1, 0, 1, 0, 0},
        {"prioritized", RP_PRIORITIZED, RP_PRIORITIZED, 9, 100, 9, 2, 0, 2, 0, 0},
        {"max-heap", RP_MAX_HEAP, RP_FIFO, 9, 100, 9, 2, 0, 1, 0, 0},
        {"min-heap", RP_MIN_HEAP, RP_FIFO, 9, 100, 9, 1, 0, 1, 0, 0},
        {"signed", RP_FIFO, RP_FIFO, 4, 100, 4, 0, 0, 0, 0, 0},
        {"ratio", RP_FIFO, RP_FIFO, 4, 100, 4, 2, 0, 1, 0, 0},
        {"small", RP_FIFO, RP_FIFO, 4, 4, 9, 2, 5, 1, 5, 3},
        {"queue", RP_FIFO, RP_FIFO, 3, 8, 5, 2, 2, 2, 2, 1},
        {"stack", RP_LIFO, RP_LIFO, 3, 8, 5, 2, 2, 2, 2, 1},
        {"empty", RP_UNIFORM, RP_FIFO, 0, 100, 0, 0, 0, 0, 0, 0},
    };
    rp_reverb_report report;
    rp_store *store = load("zlib", &report);

    (void)state;
    assert_int_equal(report.tables, COUNT_OF(expected));
    assert_int_equal(report.items, 71);
    assert_int_equal(report.chunks, 80); /* one stands twice in the file */
    assert_true(report.compressed);
    assert_false(report.old_form);
    assert_int_equal(rp_store_tables(store, NULL, 0), COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        rp_table *t = rp_test_table(store, expected[i].name);
        rp_table_info info;

        assert_non_null(t);
        rp_table_get_info(t, &info);
        assert_int_equal(info.sampler.kind, expected[i].sampler);
        assert_int_equal(info.remover.kind, expected[i].remover);
        assert_int_equal(info.size, expected[i].size);
        assert_int_equal(info.max_size, expected[i].max_size);
        assert_int_equal(info.inserts, expected[i].inserts);
        assert_int_equal(info.samples, expected[i].samples);
        assert_int_equal(info.deletes, expected[i].deletes);
        assert_int_equal(info.unique_samples, expected[i].unique);
        assert_int_equal(info.deleted_episodes, expected[i].deleted);
        assert_int_equal(info.max_times_sampled, expected[i].times);
        assert_true(rp_table_check(t));
    }
    rp_store_free(store);
}

static void exponents_limiters_and_signatures_are_loaded(void **state)
{
    rp_store *store = load("zlib", NULL);
    rp_table_info info;

    (void)state;
    rp_table_get_info(rp_test_table(store, "prioritized"), &info);
    assert_true(info.sampler.exponent == 0.8 && info.remover.exponent == -0.4);
    rp_table_get_info(rp_test_table(store, "ratio"), &info);
    assert_true(info.limiter.samples_per_insert == 2.0 && info.limiter.min_size == 2);
    assert_true(info.limiter.min_diff == 0.0 && info.limiter.max_diff == 8.0);
    rp_table_get_info(rp_test_table(store, "signed"), &info);
    assert_non_null(info.signature);
    assert_int_equal(rp_signature_column_count(info.signature), 2);
    assert_string_equal(rp_signature_column(info.signature, 1)->name, "b/0");
    rp_store_free(store);
}

/* The numbers 2, 3, 4 wait in the queue, of which 0 and 1 were drawn. */
static void data_and_order_are_kept(void **state)
{
    rp_store *store = load("zlib", NULL);
    rp_decoder *decoder = NULL;

    (void)state;
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    for (int32_t i = 2; i < 5; i++) {
        const rp_sample_options one = {.count = 1};
        const rp_trajectory *trajectory;
        rp_sample sample;
        int32_t value = -1;
        size_t drawn;

        assert_ok(rp_table_sample(rp_test_table(store, "queue"), &one, &sample, &drawn,
                                  rp_wait_none(), NULL));
        trajectory = sample.trajectory;
        assert_ok(rp_decoder_stack(decoder, &trajectory, 1, 0, &value, sizeof value, NULL));
        assert_int_equal(value, i);
        assert_int_equal(sample.times_sampled, 1);
        assert_true(sample.inserted_at_ns > INT64_C(1700000000) * 1000000000);
        rp_samples_release(&sample, 1);
    }
    rp_decoder_free(decoder);
    rp_store_free(store);
}

static void a_plain_file_is_read_as_a_compressed_one(void **state)
{
    rp_reverb_report report;
    rp_store *one = load("zlib", NULL), *other = load("plain", &report);

    (void)state;
    assert_false(report.compressed);
    assert_true(digest(one) == digest(other));
    rp_store_free(one);
    rp_store_free(other);
}

static void old_formats_are_converted(void **state)
{
    static const char *const names[] = {"small", "ratio", "queue", "stack"};
    rp_reverb_report report;
    rp_store *one = load("zlib", NULL), *other = load("old", &report);

    (void)state;
    assert_true(report.old_form);
    assert_int_equal(report.tables, COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        rp_table_info a, b;

        rp_table_get_info(rp_test_table(one, names[i]), &a);
        rp_table_get_info(rp_test_table(other, names[i]), &b);
        assert_int_equal(a.size, b.size);
        assert_int_equal(a.inserts, b.inserts);
        assert_true(rp_table_check(rp_test_table(other, names[i])));
    }
    rp_store_free(one);
    rp_store_free(other);
}

static void formats_are_not_mixed(void **state)
{
    static uint8_t bytes[1 << 16];
    const scene *s = *state;
    size_t size;

    copy(s, "plain");
    size = read_file(DATA "old/chunks.tfrecord", bytes, sizeof bytes);
    write_file(s, "chunks.tfrecord", bytes, size, "ab");
    assert_load_fails(s, RP_CORRUPT, "chunks.tfrecord: record 82: chunks of the old form");
    copy(s, "plain");
    size = read_file(DATA "old/items.tfrecord", bytes, sizeof bytes);
    write_file(s, "items.tfrecord", bytes, size, "ab");
    assert_load_fails(s, RP_CORRUPT, "items.tfrecord: record 72: items of the old form");
}

static void missing_files_are_named(void **state)
{
    const scene *s = *state;

    assert_load_fails(s, RP_NOT_FOUND, "there is no checkpoint of dm-reverb");
    copy(s, "plain");
    write_file(s, "chunks.tfrecord", "", 0, "wb");
    assert_load_fails(s, RP_CORRUPT, "items.tfrecord: record 1: item ");
    copy(s, "plain");
    write_file(s, "tables.tfrecord", "", 0, "wb");
    assert_load_fails(s, RP_CORRUPT, "which is not in tables.tfrecord");
    copy(s, "plain");
    assert_ok(s->fs->ops->remove(s->fs, "items.tfrecord", NULL));
    assert_load_fails(s, RP_NOT_FOUND, "items.tfrecord");
    assert_ok(s->fs->ops->remove(s->fs, "DONE", NULL));
    assert_load_fails(s, RP_CORRUPT, "DONE is missing");
}

static void the_newest_complete_checkpoint_is_read(void **state)
{
    static const char *const folders[] = {
        "2020-01-01T00:00:00+00:00", "2021-01-01T00:00:00+00:00", "2022-01-01T00:00:00+00:00"};
    scene *s = *state;
    rp_reverb_report report;
    rp_store *store = new_store(NULL);
    rp_error err = {0};

    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        scene inner = *s;

        (void)snprintf(inner.directory, sizeof inner.directory, "%.20s/%s", s->directory,
                       folders[i]);
        assert_int_equal(mkdir(inner.directory, 0700), 0);
        copy(&inner, i == 1 ? "plain" : "old");
        if (i == 2) {
            char done[128];
            (void)snprintf(done, sizeof done, "%s/DONE", inner.directory);
            assert_int_equal(unlink(done), 0);
        }
    }
    assert_ok_err(rp_reverb_load(s->fs, store, NULL, &report, &err), &err);
    assert_string_equal(report.folder, folders[1]);
    assert_int_equal(report.tables, 12);
    rp_store_free(store);
}

static void a_new_table_of_that_name_is_filled(void **state)
{
    const rp_table_options options = {
        .name = "small", .max_size = 77, .limiter = rp_limiter_min_size(5)};
    rp_store *store = new_store(NULL);
    rp_table *table = NULL;
    rp_table_info info;

    (void)state;
    assert_ok(rp_store_add_table(store, &options, &table, NULL));
    assert_ok(load_into(store, "zlib", NULL, NULL, NULL));
    rp_table_get_info(table, &info);
    assert_int_equal(info.size, 4);
    assert_int_equal(info.max_size, 4);
    assert_int_equal(info.limiter.min_size, 1);
    rp_store_free(store);
}

static void a_table_that_differs_leaves_the_store_as_it_was(void **state)
{
    const rp_table_options options = {.name = "small",
                                      .sampler = {RP_LIFO, 0},
                                      .max_size = 77,
                                      .limiter = rp_limiter_min_size(5)};
    rp_store *store = new_store(NULL);
    rp_error err = {0};
    rp_table_info info;

    (void)state;
    assert_ok(rp_store_add_table(store, &options, NULL, NULL));
    assert_fails(load_into(store, "zlib", NULL, NULL, &err), RP_PRECONDITION, &err,
                 "table 'small' has another sampler");
    assert_int_equal(rp_store_tables(store, NULL, 0), 1);
    rp_table_get_info(rp_test_table(store, "small"), &info);
    assert_int_equal(info.size, 0);
    assert_int_equal(info.max_size, 77);
    rp_store_free(store);
}

/* Every 7th bit of every file, compressed and plain: found, or without effect. */
static void damage_is_found(void **state)
{
    static const char *const kinds[] = {"zlib", "plain"};
    static uint8_t bytes[1 << 16];
    const scene *s = *state;

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        rp_store *whole = load(kinds[k], NULL);
        uint64_t expected = digest(whole);

        rp_store_free(whole);
        copy(s, kinds[k]);
        for (size_t f = 0; f < COUNT_OF(file_names); f++) {
            char path[256];
            size_t size, step = k == 0 ? rp_test_length(rp_test_step(31, 97), 293)
                                       : rp_test_length(rp_test_step(211, 641), 1931);

            (void)snprintf(path, sizeof path, DATA "%s/%s", kinds[k], file_names[f]);
            size = read_file(path, bytes, sizeof bytes);
            for (size_t bit = f; bit < 8 * size; bit += step) {
                rp_store *store = new_store(NULL);
                rp_status st;

                bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                write_file(s, file_names[f], bytes, size, "wb");
                st = rp_reverb_load(s->fs, store, NULL, NULL, NULL);
                if (st == RP_OK) assert_true(digest(store) == expected);
                if (st != RP_OK) assert_true(st == RP_CORRUPT || st == RP_NO_RESOURCE);
                rp_store_free(store);
                bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            write_file(s, file_names[f], bytes, size, "wb");
        }
    }
}

static void a_file_that_is_cut_off_is_refused(void **state)
{
    static uint8_t bytes[1 << 16];
    const scene *s = *state;
    size_t size = read_file(DATA "zlib/items.tfrecord", bytes, sizeof bytes);

    copy(s, "zlib");
    for (size_t cut = 1; cut < size; cut += 97) {
        write_file(s, "items.tfrecord", bytes, cut, "wb");
        assert_load_fails(s, RP_CORRUPT, "items.tfrecord: record ");
    }
}

/* A checkpoint of tables that have no items and differ in their names only. */
static void write_tables(const scene *s, rp_reverb_table table, int count)
{
    uint8_t head[RP_TFRECORD_HEAD_BYTES], foot[RP_TFRECORD_FOOT_BYTES];
    rp_buf record, all;
    char name[16];

    rp_buf_init(&record, rp_allocator_default());
    rp_buf_init(&all, rp_allocator_default());
    for (int i = 0; i < count; i++) {
        table.name = (rp_string){name, (size_t)snprintf(name, sizeof name, "t%d", i)};
        rp_buf_clear(&record);
        rp_reverb_table_write(&record, &table, NULL);
        rp_tfrecord_put_head(head, record.size);
        rp_tfrecord_put_foot(foot, record.data, record.size);
        rp_buf_append(&all, head, sizeof head);
        rp_buf_append(&all, record.data, record.size);
        rp_buf_append(&all, foot, sizeof foot);
    }
    assert_false(record.bad || all.bad);
    write_file(s, "tables.tfrecord", all.data, all.size, "wb");
    rp_buf_deinit(&all);
    write_file(s, "items.tfrecord", "", 0, "wb");
    write_file(s, "chunks.tfrecord", "", 0, "wb");
    write_file(s, "DONE", "", 0, "wb");
    rp_buf_deinit(&record);
}

static void numbers_that_no_table_can_have_are_refused(void **state)
{
    static const struct {
        rp_limiter_options limiter;
        int64_t inserts, samples, deletes;
        double exponent;
        const char *part;
    } cases[] = {
        {{1e30, 1, -1e30, 1e30}, 0, 0, 0, 1, "samples_per_insert must be in"},
        {{1, 1, NAN, 5}, 0, 0, 0, 1, "must be numbers"},
        {{1, 1, 1e300, 1e301}, 0, 0, 0, 1, "samples would wait for ever"},
        {{1, 1, -1e300, 1e300}, 0, 0, 0, 1e300, "exponent must be in"},
        {{1, 1, -1e300, 1e300}, INT64_MAX, 0, 0, 1, "over 2^53"},
        {{1, 1, -1e300, 1e300}, INT64_MIN, 0, 0, 1, "below 0"},
        {{1, 1, -1e300, 1e300}, 0, INT64_MIN, 0, 1, "below 0"},
        {{1, 1, -1e300, 1e300}, -1, 0, INT64_MIN, 1, "below 0"},
    };
    const scene *s = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const rp_reverb_table table = {
            .sampler = {RP_PRIORITIZED, cases[i].exponent},
            .remover = {RP_FIFO, 0},
            .limiter = cases[i].limiter,
            .max_size = 10,
            .inserts = cases[i].inserts,
            .samples = cases[i].samples,
            .deletes = cases[i].deletes,
        };

        write_tables(s, table, 1);
        assert_load_fails(s, RP_CORRUPT, cases[i].part);
    }
}

static void more_tables_than_a_store_can_have_are_refused(void **state)
{
    const rp_reverb_table table = {
        .sampler = {RP_UNIFORM, 0}, .limiter = rp_limiter_min_size(1), .max_size = 10};

    write_tables(*state, table, RP_MAX_TABLES + 1);
    assert_load_fails(*state, RP_PRECONDITION, "more than 4096 tables");
}

static void a_record_over_the_limit_is_refused(void **state)
{
    const rp_reverb_options small_record = {.max_record = 100},
                            small_file = {.max_bytes = 2000};
    rp_store *store = new_store(NULL);
    rp_error err = {0};

    (void)state;
    assert_fails(load_into(store, "zlib", &small_record, NULL, &err), RP_NO_RESOURCE, &err,
                 "100 are allowed");
    assert_fails(load_into(store, "zlib", &small_file, NULL, &err), RP_NO_RESOURCE, &err,
                 "2000 bytes allowed");
    rp_store_free(store);
}

static void written_checkpoints_are_read_back_to_the_bit(void **state)
{
    scene *s = *state;
    const rp_reverb_options options = {.wall_ns = INT64_C(1610558185547225671)};
    rp_store *store = load("zlib", NULL), *again = new_store(NULL);
    rp_reverb_report report;
    rp_error err = {0};

    assert_ok_err(rp_reverb_save(s->fs, store, &options, &report, &err), &err);
    assert_string_equal(report.folder, "2021-01-13T17:16:25.547225671+00:00");
    assert_int_equal(report.tables, 12);
    assert_int_equal(report.items, 71);
    assert_ok_err(rp_reverb_load(s->fs, again, NULL, &report, &err), &err);
    assert_true(report.compressed);
    assert_int_equal(report.unused_chunks, 0);
    assert_true(digest(store) == digest(again));

    assert_fails(rp_reverb_save(s->fs, store, &options, NULL, &err), RP_EXISTS, &err,
                 "2021-01-13");
    rp_store_free(store);
    rp_store_free(again);
}

/* Puts one item over all rows of a chunk into a table. */
static void insert(rp_table *table, uint64_t key, rp_chunk *chunk)
{
    rp_chunk_slice slice = {chunk, 0, 0, (uint32_t)rp_chunk_rows(chunk, 0)};
    rp_slices column = {&slice, 1, false};
    rp_insert item = {.key = key, .priority = 1};

    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &item.trajectory, NULL));
    assert_ok(rp_table_insert(table, &item, 1, rp_wait_none(), NULL, NULL));
    rp_trajectory_unref(item.trajectory);
}

static void chunks_of_other_codecs_are_reencoded(void **state)
{
    static const rp_codec codecs[] = {RP_CODEC_SNAPPY, RP_CODEC_NONE, RP_CODEC_ZSTD,
                                      RP_CODEC_LZ4};
    const rp_table_options options = {
        .name = "t", .max_size = 10, .limiter = rp_limiter_min_size(1)};
    scene *s = *state;
    rp_store *store = new_store(NULL), *again = new_store(NULL);
    rp_decoder *decoder = NULL;
    rp_table *table = NULL;
    rp_error err = {0};

    assert_ok(rp_store_add_table(store, &options, &table, NULL));
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        rp_chunk *chunk = rp_test_ints(i + 1, codecs[i], 5, 100);
        insert(table, i, chunk);
        rp_chunk_unref(chunk);
    }
    assert_ok_err(rp_reverb_save(s->fs, store, NULL, NULL, &err), &err);
    assert_ok_err(rp_reverb_load(s->fs, again, NULL, NULL, &err), &err);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    for (uint64_t key = 0; key < COUNT_OF(codecs); key++) {
        const rp_trajectory *trajectory;
        int32_t values[500];
        rp_sample sample;

        assert_ok(rp_table_peek(rp_test_table(again, "t"), &key, 1, &sample, NULL, NULL));
        trajectory = sample.trajectory;
        assert_int_equal(rp_chunk_codec(rp_trajectory_get_chunk(trajectory, 0)),
                         RP_CODEC_SNAPPY);
        assert_ok(rp_decoder_stack(decoder, &trajectory, 1, 0, values, sizeof values, NULL));
        for (int32_t i = 0; i < 500; i++)
            assert_int_equal(values[i], 1000 * ((int32_t)key + 1) + i);
        rp_samples_release(&sample, 1);
    }
    rp_decoder_free(decoder);
    rp_store_free(store);
    rp_store_free(again);
}

static void different_chunks_with_one_key_are_refused(void **state)
{
    const rp_table_options options = {
        .name = "t", .max_size = 10, .limiter = rp_limiter_min_size(1)};
    scene *s = *state;
    rp_store *store = new_store(NULL);
    rp_table *table = NULL;
    rp_error err = {0};

    assert_ok(rp_store_add_table(store, &options, &table, NULL));
    for (size_t i = 0; i < 3; i++) {
        rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, i < 2 ? 5 : 6, 10);
        insert(table, i, chunk);
        rp_chunk_unref(chunk);
        if (i == 1) assert_ok_err(rp_reverb_save(s->fs, store, NULL, NULL, &err), &err);
    }
    assert_fails(rp_reverb_save(s->fs, store, NULL, NULL, &err), RP_PRECONDITION, &err,
                 "two chunks that differ have the key 1");
    rp_store_free(store);
}

static void no_memory_is_a_status(void **state)
{
    scene *s = *state;

    for (size_t room = 0;; room += room < 100 ? 1 : 7) {
        rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        rp_store *store = new_store(&alloc);
        rp_status st;

        atomic_store(&o.left, room);
        st = load_into(store, "zlib", NULL, NULL, NULL);
        if (st == RP_OK) st = rp_reverb_save(s->fs, store, NULL, NULL, NULL);
        if (st != RP_OK) assert_int_equal(st, RP_NO_RESOURCE);
        atomic_store(&o.left, RP_TEST_OOM_UNLIMITED);
        rp_store_free(store);
        assert_int_equal(o.live, 0);
        if (st == RP_OK) return;
    }
}

typedef struct told {
    int count;
    uint64_t done, total;
} told;

static void note(void *ctx, const rp_durable_progress *progress)
{
    told *t = ctx;

    assert_true(progress->done >= t->done);
    assert_true(progress->done <= progress->total);
    t->count++;
    t->done = progress->done;
    t->total = progress->total;
}

static void progress_is_reported_to_the_end(void **state)
{
    told t = {0};
    const rp_reverb_options options = {.on_progress = note, .ctx = &t};
    rp_store *store = new_store(NULL);

    (void)state;
    assert_ok(load_into(store, "zlib", &options, NULL, NULL));
    assert_true(t.count >= 1);
    assert_true(t.done == t.total && t.total > 0);
    rp_store_free(store);
}

RP_TESTS(reverb_checkpoint)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, arrange, tidy)
    const struct CMUnitTest tests[] = {
        TEST(tables_equal_those_of_dm_reverb),
        TEST(exponents_limiters_and_signatures_are_loaded),
        TEST(data_and_order_are_kept),
        TEST(a_plain_file_is_read_as_a_compressed_one),
        TEST(old_formats_are_converted),
        TEST(formats_are_not_mixed),
        TEST(missing_files_are_named),
        TEST(the_newest_complete_checkpoint_is_read),
        TEST(a_new_table_of_that_name_is_filled),
        TEST(a_table_that_differs_leaves_the_store_as_it_was),
        TEST(damage_is_found),
        TEST(a_file_that_is_cut_off_is_refused),
        TEST(numbers_that_no_table_can_have_are_refused),
        TEST(more_tables_than_a_store_can_have_are_refused),
        TEST(a_record_over_the_limit_is_refused),
        TEST(written_checkpoints_are_read_back_to_the_bit),
        TEST(chunks_of_other_codecs_are_reencoded),
        TEST(different_chunks_with_one_key_are_refused),
        TEST(no_memory_is_a_status),
        TEST(progress_is_reported_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
