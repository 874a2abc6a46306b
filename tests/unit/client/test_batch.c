/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: their samples, the layout of their columns, and the decoded data. */
#include <stdatomic.h>
#include <unistd.h>

#include "support/batch_bed.h"

static rp_status try_batch(size_t size, rp_ragged ragged, rp_batch **out)
{
    if (sampler == NULL) open_sampler(NULL);
    (void)rp_test_give(&sources, 0, size);
    return rp_sampler_batch(sampler, size, ragged, false, rp_wait_none(), out, &err);
}

static rp_batch *make_batch(size_t size, rp_ragged ragged)
{
    rp_batch *b = NULL;

    assert_ok_err(try_batch(size, ragged, &b), &err);
    assert_int_equal(rp_batch_size(b), size);
    return b;
}

static void expect_shape(const rp_batch *b, size_t column, rp_shape shape)
{
    char text[64];

    if (rp_shape_equal(&rp_batch_get_column(b, column)->shape, &shape)) return;
    fail_msg("%s", rp_shape_text(&rp_batch_get_column(b, column)->shape, text, sizeof text));
}

static void items_of_one_length_are_stacked(void **state)
{
    (void)state;
    int32_t got[12];
    void *dst = got;
    size_t bytes = sizeof got;
    rp_batch *b;

    for (uint64_t i = 0; i < 3; i++) add_ints(i, 2, 2);
    for (int ragged = 0; ragged < 2; ragged++) {
        b = make_batch(3, (rp_ragged)ragged);
        assert_int_equal(rp_batch_column_count(b), 1);
        expect_shape(b, 0, SHAPE(3, 2, 2));
        assert_int_equal(rp_batch_get_column(b, 0)->dtype, RP_INT32);
        assert_int_equal(rp_batch_get_column(b, 0)->bytes, sizeof got);
        assert_null(rp_batch_lengths(b, 0));
        assert_int_equal(rp_batch_samples(b)[2].key, 3 * ragged + 2);
        memset(got, 0xee, sizeof got);
        assert_ok_err(rp_batch_decode(b, &dst, &bytes, &err), &err);
        for (int i = 0; i < 12; i++) assert_int_equal(got[i], 1000 * (i / 4) + i % 4);
        rp_batch_free(b);
    }
}

static void a_batch_over_the_limit_is_refused_issue_20(void **state)
{
    (void)state;
    rp_batch *b = NULL;

    for (uint64_t i = 0; i < 8; i++) add_ints(i, 2, 2); /* 16 bytes each */
    batch_bytes = 4 * 16;
    rp_batch_free(make_batch(4, RP_RAGGED_REFUSE));
    assert_fails(try_batch(5, RP_RAGGED_REFUSE, &b), RP_NO_RESOURCE, &err, "batch_bytes");
    assert_non_null(strstr(err.text, "80"));
    assert_non_null(strstr(err.text, "64"));
    rp_batch_free(make_batch(4, RP_RAGGED_OFFSETS));
}

/* One long item makes all of a padded batch long. */
static void padding_counts_in_a_batch(void **state)
{
    (void)state;
    rp_batch *b = NULL;

    add_ints(0, 1, 1);
    add_ints(1, 1, 1);
    add_ints(2, 30, 1);
    batch_bytes = 3 * 30 * 4 - 1;
    assert_fails(try_batch(3, RP_RAGGED_PAD, &b), RP_NO_RESOURCE, &err, "360 bytes");
    rp_batch_free(make_batch(3, RP_RAGGED_OFFSETS));
}

static void columns_may_be_left_out_and_sizes_must_fit(void **state)
{
    (void)state;
    int32_t got[2][4];
    void *dst[2] = {NULL, got[1]};
    size_t bytes[2] = {0, sizeof got[1]};
    rp_batch *b;

    for (uint64_t i = 0; i < 2; i++) {
        rp_chunk *chunks[2] = {rp_test_ints(i, RP_CODEC_SNAPPY, 2, 1),
                               rp_test_ints(10 + i, RP_CODEC_SNAPPY, 2, 1)};
        add_item(chunks, 2, false);
    }
    b = make_batch(2, RP_RAGGED_REFUSE);
    assert_ok_err(rp_batch_decode(b, dst, bytes, &err), &err);
    assert_memory_equal(got[1], ((int32_t[]){10000, 10001, 11000, 11001}), sizeof got[1]);
    bytes[1]--;
    assert_fails(rp_batch_decode(b, dst, bytes, &err), RP_INVALID, &err,
                 "column 1: the batch has 16 bytes, got room for 15");
    rp_batch_free(b);
}

static void squeezed_columns_have_no_rows(void **state)
{
    (void)state;
    int32_t got[6];
    void *dst = got;
    size_t bytes = sizeof got;

    for (uint64_t i = 0; i < 3; i++) {
        rp_chunk *chunk = rp_test_ints(i, RP_CODEC_SNAPPY, 1, 2);
        add_item(&chunk, 1, true);
    }
    for (int ragged = 0; ragged < 3; ragged++) {
        rp_batch *b = make_batch(3, (rp_ragged)ragged);

        expect_shape(b, 0, SHAPE(3, 2));
        assert_null(rp_batch_lengths(b, 0));
        assert_ok_err(rp_batch_decode(b, &dst, &bytes, &err), &err);
        assert_memory_equal(got, ((int32_t[]){0, 1, 1000, 1001, 2000, 2001}), sizeof got);
        rp_batch_free(b);
    }
}

static void arguments_are_checked(void **state)
{
    (void)state;
    rp_batch *b;

    add_ints(1, 1, 1);
    open_sampler(NULL);
    assert_fails(rp_sampler_batch(sampler, 0, RP_RAGGED_PAD, false, rp_wait_none(), &b, &err),
                 RP_INVALID, &err, "got 0");
    assert_fails(rp_sampler_batch(sampler, 1, (rp_ragged)7, false, rp_wait_none(), &b, &err),
                 RP_INVALID, &err, "ragged");
}

static void add_ragged(void)
{
    add_ints(1, 2, 2);
    add_ints(2, 1, 2);
    add_ints(3, 3, 2);
}

static void ragged_items_are_refused(void **state)
{
    (void)state;
    rp_batch *b = NULL;

    add_ragged();
    assert_fails(try_batch(3, RP_RAGGED_REFUSE, &b), RP_INVALID, &err,
                 "item 1, column 0: 1 row but item 0 has 2");
}

static void ragged_items_are_padded(void **state)
{
    (void)state;
    const int32_t expected[] = {1000, 1001, 1002, 1003, 0,    0,    2000, 2001, 0,
                                0,    0,    0,    3000, 3001, 3002, 3003, 3004, 3005};
    int32_t got[18];
    void *dst = got;
    size_t bytes = sizeof got;
    rp_batch *b;

    add_ragged();
    b = make_batch(3, RP_RAGGED_PAD);
    expect_shape(b, 0, SHAPE(3, 3, 2));
    assert_memory_equal(rp_batch_lengths(b, 0), ((int64_t[]){2, 1, 3}), 24);
    memset(got, 0xee, sizeof got);
    assert_ok_err(rp_batch_decode(b, &dst, &bytes, &err), &err);
    assert_memory_equal(got, expected, sizeof got);
    rp_batch_free(b);
}

static void ragged_items_are_concatenated_with_offsets(void **state)
{
    (void)state;
    const int32_t expected[] = {1000, 1001, 1002, 1003, 2000, 2001,
                                3000, 3001, 3002, 3003, 3004, 3005};
    int32_t got[12];
    void *dst = got;
    size_t bytes = sizeof got;
    rp_batch *b;

    add_ragged();
    b = make_batch(3, RP_RAGGED_OFFSETS);
    expect_shape(b, 0, SHAPE(6, 2));
    assert_memory_equal(rp_batch_lengths(b, 0), ((int64_t[]){0, 2, 3, 6}), 32);
    assert_ok_err(rp_batch_decode(b, &dst, &bytes, &err), &err);
    assert_memory_equal(got, expected, sizeof got);
    rp_batch_free(b);
}

static void offsets_are_given_also_for_items_of_one_length(void **state)
{
    (void)state;
    rp_batch *b;

    add_ints(1, 2, 2);
    b = make_batch(3, RP_RAGGED_OFFSETS);
    expect_shape(b, 0, SHAPE(6, 2));
    assert_memory_equal(rp_batch_lengths(b, 0), ((int64_t[]){0, 2, 4, 6}), 32);
    rp_batch_free(b);
}

static void items_that_differ_are_refused(void **state)
{
    (void)state;
    double value = 1;
    rp_spec spec = {"x", RP_FLOAT64, SCALAR};
    rp_chunk *chunks[2];
    rp_batch *b = NULL;

    add_ints(1, 2, 2);
    add_ints(2, 2, 3);
    for (int i = 0; i < 3; i++)
        assert_fails(try_batch(2, (rp_ragged)i, &b), RP_INVALID, &err,
                     "item 1, column 0: shape [2,3] but item 0 has [2,2]");
    rp_trajectory_unref(items[--item_count]);
    chunks[0] = rp_test_chunk(3, NULL, &spec, 1, &value);
    add_item(chunks, 1, false);
    assert_fails(try_batch(2, RP_RAGGED_PAD, &b), RP_INVALID, &err, "dtype double");
    rp_trajectory_unref(items[--item_count]);
    chunks[0] = rp_test_ints(4, RP_CODEC_NONE, 2, 2);
    chunks[1] = rp_test_ints(5, RP_CODEC_NONE, 2, 2);
    add_item(chunks, 2, false);
    assert_fails(try_batch(2, RP_RAGGED_PAD, &b), RP_INVALID, &err,
                 "item 1: 2 columns but item 0 has 1");
}

static void strings_borrow_from_the_batch(void **state)
{
    (void)state;
    const rp_string words[] = {{"ada", 3}, {"", 0}, {"lovelace", 8}};
    rp_spec spec = {"s", RP_STRING, SCALAR};
    rp_string got[4];
    void *dst = got;
    size_t bytes = sizeof got;
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 2, words);
    rp_batch *b;

    add_item(&chunk, 1, false);
    chunk = rp_test_chunk(2, NULL, &spec, 1, words + 2);
    add_item(&chunk, 1, false);
    b = make_batch(2, RP_RAGGED_PAD);
    expect_shape(b, 0, SHAPE(2, 2));
    assert_int_equal(rp_batch_get_column(b, 0)->bytes, sizeof got);
    rp_sampler_free(sampler); /* a batch may outlive it */
    sampler = NULL;
    memset(got, 0xee, sizeof got);
    assert_ok_err(rp_batch_decode(b, &dst, &bytes, &err), &err);
    for (; item_count > 0; item_count--) rp_trajectory_unref(items[item_count - 1]);
    assert_memory_equal(got[0].data, "ada", 3);
    assert_int_equal(got[1].size, 0);
    assert_int_equal(got[2].size, 8);
    assert_memory_equal(got[2].data, "lovelace", 8);
    assert_true(got[3].size == 0 && got[3].data == NULL);
    rp_batch_free(b);
}

static void the_last_batch_has_the_remaining_items(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        rp_sampler_options o = {.max_samples = 7};
        rp_sample rest[10];
        rp_batch *b = NULL;
        size_t n;

        rp_test_sources_init(&sources, 1, bed.plain);
        open_sampler(&o);
        assert_int_equal(rp_test_give(&sources, 0, 7), 7);
        assert_ok_err(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, whole == 1,
                                       rp_wait_forever(), &b, &err),
                      &err);
        rp_batch_free(b);
        if (whole == 0) {
            assert_ok_err(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, false,
                                           rp_wait_forever(), &b, &err),
                          &err);
            assert_int_equal(rp_batch_size(b), 3);
            rp_batch_free(b);
        } else {
            for (int i = 0; i < 2; i++)
                assert_fails(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, true,
                                              rp_wait_forever(), &b, &err),
                             RP_PRECONDITION, &err,
                             "sampler of 't': only 3 of the 4 samples are left of its "
                             "max_samples, 7; ask for fewer");
            assert_ok_err(rp_sampler_next(sampler, rest, 10, &n, rp_wait_none(), &err), &err);
            assert_int_equal(n, 3); /* they are not lost */
            assert_int_equal(rest[0].key, 4);
            rp_samples_release(rest, n);
        }
        assert_fails(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, whole == 1,
                                      rp_wait_forever(), &b, &err),
                     RP_PRECONDITION, &err, "over");
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void a_timeout_loses_no_items(void **state)
{
    (void)state;
    rp_batch *b = NULL;
    rp_sample sample;
    size_t n;

    sources.trajectories = NULL;
    open_sampler(NULL);
    assert_int_equal(rp_test_give(&sources, 0, 3), 3);
    for (int i = 0; i < 3; i++)
        assert_fails(
            rp_sampler_batch(sampler, 10, RP_RAGGED_REFUSE, false, rp_wait_ms(1), &b, &err),
            RP_DEADLINE, &err, "in time");
    assert_ok_err(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), &err), &err);
    assert_int_equal(sample.key, 0);
    rp_samples_release(&sample, 1);
    assert_int_equal(rp_test_give(&sources, 0, 8), 8);
    assert_ok_err(
        rp_sampler_batch(sampler, 10, RP_RAGGED_REFUSE, false, rp_wait_none(), &b, &err), &err);
    for (size_t i = 0; i < 10; i++) assert_int_equal(rp_batch_samples(b)[i].key, i + 1);
    rp_batch_free(b);
    assert_int_equal(rp_test_give(&sources, 0, 2), 2); /* left there when it is freed */
    assert_int_equal(
        rp_sampler_batch(sampler, 10, RP_RAGGED_REFUSE, false, rp_wait_none(), &b, &err),
        RP_DEADLINE);
}

static void corrupt_data_is_a_status(void **state)
{
    (void)state;
    enum { ROWS = 64, COLS = 1024 };
    static uint32_t data[ROWS * COLS], got[4 * ROWS * COLS];
    rp_spec spec = {NULL, RP_UINT32, SHAPE(COLS)};
    void *dst = got;
    size_t bytes = sizeof got, size;
    rp_chunk *chunk, *parsed = NULL;
    uint8_t *copy;
    rp_batch *b;
    rp_rng rng;

    rp_rng_init(&rng, 83);
    for (size_t i = 0; i < COUNT_OF(data); i++) data[i] = (uint32_t)rp_rng_next(&rng) & 3;
    for (uint64_t i = 0; i < 3; i++) {
        chunk = rp_test_chunk(i, NULL, &spec, ROWS, data);
        add_item(&chunk, 1, false);
    }
    chunk = rp_test_chunk(3, NULL, &spec, ROWS, data);
    copy = malloc(rp_chunk_wire(chunk, &size) != NULL ? size : 0);
    assert_non_null(copy);
    memcpy(copy, rp_chunk_wire(chunk, &size), size);
    memset(copy + size - 60, 0xff, 40); /* copies from far before the beginning */
    assert_ok(rp_chunk_parse(rp_allocator_default(), copy, size, NULL, &parsed, NULL));
    free(copy);
    rp_chunk_unref(chunk);
    add_item(&parsed, 1, false);
    b = make_batch(4, RP_RAGGED_REFUSE);

    assert_fails(rp_batch_decode(b, &dst, &bytes, &err), RP_CORRUPT, &err,
                 "chunk 3, column 0: its snappy data is corrupt");
    rp_batch_free(b);
}

static rp_status decode_large(const rp_allocator *alloc)
{
    static int32_t got[16 * 8 * 4096];
    rp_sampler_feed feed;
    rp_sampler_options o = {.table = "t", .rate_limiter_timeout_ms = -1};
    void *dst[2] = {got, NULL};
    size_t bytes[2] = {sizeof got, 0};
    rp_sampler *s = NULL;
    rp_batch *b = NULL;
    rp_status st;

    rp_test_sources_init(&sources, 1, bed.plain);
    sources.trajectories = items;
    sources.trajectory_count = item_count;
    feed = rp_test_sources_feed(&sources, 5);
    st = rp_sampler_open(alloc, runtime, &feed, &o, &s, &err);
    if (st != RP_OK) return st;
    (void)rp_test_give(&sources, 0, 16);
    st = rp_sampler_batch(s, 16, RP_RAGGED_OFFSETS, true, rp_wait_none(), &b, &err);
    if (st == RP_OK) st = rp_batch_decode(b, dst, bytes, &err);
    if (st == RP_OK) expect_large(got, 16);
    rp_batch_free(b);
    rp_sampler_free(s);
    /* A helper that came too late lets go of the work when it runs. */
    for (int i = 0; i < 10000 && ((const rp_test_oom *)alloc->ctx)->live > 0; i++)
        (void)usleep(1000);
    return st;
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    add_large();
    rp_test_survives_oom(decode_large);
}

static rp_status asked_meanwhile = RP_INTERNAL;

static void ask_meanwhile(void)
{
    rp_sample sample;
    size_t n;

    sources.all[0].on_want = NULL;
    assert_int_equal(rp_test_give(&sources, 0, 2), 2);
    asked_meanwhile = rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), NULL);
    if (asked_meanwhile == RP_OK) rp_samples_release(&sample, 1);
}

/* Who asks while a batch has a part of its samples gets none of those that follow. */
static void a_batch_is_one_piece(void **state)
{
    rp_sampler_options o = {.max_in_flight = 10};
    rp_batch *b;

    (void)state;
    add_large();
    open_sampler(&o);
    assert_int_equal(rp_test_give(&sources, 0, 8), 8);
    sources.all[0].on_want = ask_meanwhile;
    assert_int_equal(
        rp_sampler_batch(sampler, 16, RP_RAGGED_REFUSE, true, rp_wait_none(), &b, &err),
        RP_DEADLINE);
    assert_int_equal(asked_meanwhile, RP_DEADLINE);
    assert_int_equal(rp_test_give(&sources, 0, 6), 6);
    assert_ok_err(
        rp_sampler_batch(sampler, 16, RP_RAGGED_REFUSE, true, rp_wait_none(), &b, &err), &err);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(rp_batch_samples(b)[i].key, rp_batch_samples(b)[0].key + i);
    rp_batch_free(b);
}

static atomic_int decoding; /* threads */

/* NULL if batches are pieces of one sequence, else what was wrong. */
static const char *decode_one(int32_t *got)
{
    void *dst[2] = {got, NULL};
    size_t bytes[2] = {16 * 8 * 4096 * sizeof *got, 0};
    const char *wrong = NULL;
    rp_batch *b = NULL;

    if (rp_sampler_batch(sampler, 16, RP_RAGGED_REFUSE, true, rp_wait_ms(20000), &b, NULL) !=
        RP_OK)
        return "no batch";
    if (rp_batch_decode(b, dst, bytes, NULL) != RP_OK) wrong = "not decoded";
    for (size_t k = 0; wrong == NULL && k < 16; k++) {
        uint64_t key = rp_batch_samples(b)[k].key;

        if (key != rp_batch_samples(b)[0].key + k) wrong = "not one piece";
        if (got[k * 8 * 4096 + 7] != (int32_t)(1000 * (key % 16) + 7)) wrong = "other data";
    }
    rp_batch_free(b);
    return wrong;
}

static void *decode_often(void *arg)
{
    int32_t *got = malloc(16 * 8 * 4096 * sizeof *got);
    const char *wrong = NULL;

    (void)arg;
    for (int i = 0; wrong == NULL && i < 30; i++) wrong = decode_one(got);
    free(got);
    atomic_fetch_sub(&decoding, 1);
    return (void *)(uintptr_t)wrong;
}

static void several_threads_decode_batches_of_one_sequence(void **state)
{
    (void)state;
    rp_sampler_options o = {.max_in_flight = 10};
    pthread_t threads[3];
    size_t given = 0;
    void *failed;

    add_large();
    open_sampler(&o);
    atomic_store(&decoding, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, decode_often, NULL), 0);
    while (given < 3 * 30 * 16 && atomic_load(&decoding) > 0) {
        size_t n = rp_test_give(&sources, 0, 5);

        given += n;
        if (n == 0) (void)usleep(50);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        if (failed != NULL) fail_msg("%s", (const char *)failed);
    }
}

/* One random column: its rows as they are, and chunks of them. */
typedef struct column {
    rp_spec spec;
    size_t row_bytes, rows; /* of all chunks */
    uint8_t *data;
    rp_chunk *chunks[8];
    size_t firsts[9]; /* row at which each chunk begins */
    size_t chunk_count;
} column;

static void make_column(column *c, rp_rng *rng, uint64_t *key)
{
    static const rp_codec codecs[] = {RP_CODEC_SNAPPY, RP_CODEC_NONE, RP_CODEC_ZSTD,
                                      RP_CODEC_LZ4};
    size_t elements;

    c->spec = (rp_spec){"x",
                        rp_test_dtypes[rp_rng_below(rng, COUNT_OF(rp_test_dtypes))],
                        {.rank = (int32_t)rp_rng_below(rng, 3)}};
    for (int32_t i = 0; i < c->spec.shape.rank; i++)
        c->spec.shape.dims[i] = 1 + (int64_t)rp_rng_below(rng, rp_rng_below(rng, 9) ? 5 : 40);
    assert_ok(rp_shape_elements(&c->spec.shape, &elements));
    c->row_bytes = elements * rp_dtype_size(c->spec.dtype);
    c->chunk_count = 1 + rp_rng_below(rng, 8);
    c->rows = 0;
    for (size_t i = 0; i < c->chunk_count; i++) {
        c->firsts[i] = c->rows;
        c->rows += 1 + rp_rng_below(rng, 12);
    }
    c->firsts[c->chunk_count] = c->rows;
    c->data = malloc(c->rows * c->row_bytes + 1);
    assert_non_null(c->data);
    rp_test_fill(rng, c->data, c->rows * c->row_bytes);
    for (size_t i = 0; i < c->chunk_count; i++) {
        rp_chunk_options o = {.codec = codecs[rp_rng_below(rng, 4)],
                              .delta = rp_rng_below(rng, 2) == 1};

        c->chunks[i] = rp_test_chunk((*key)++, &o, &c->spec, c->firsts[i + 1] - c->firsts[i],
                                     c->data + c->firsts[i] * c->row_bytes);
    }
}

static void free_column(column *c)
{
    for (size_t i = 0; i < c->chunk_count; i++) rp_chunk_unref(c->chunks[i]);
    free(c->data);
}

/* Random slices of a column, and the rows they stand for. Returns how many rows. */
static size_t pick_slices(column *c, rp_rng *rng, size_t rows, rp_chunk_slice *slices,
                          size_t *count, uint8_t *plain)
{
    size_t total = 0;

    for (*count = 0; total < rows; (*count)++) {
        size_t chunk = rp_rng_below(rng, c->chunk_count);
        size_t own = c->firsts[chunk + 1] - c->firsts[chunk];
        size_t offset = rp_rng_below(rng, own);
        size_t length = 1 + rp_rng_below(rng, own - offset);

        if (length > rows - total) length = rows - total;
        slices[*count] =
            (rp_chunk_slice){c->chunks[chunk], 0, (uint32_t)offset, (uint32_t)length};
        memcpy(plain + total * c->row_bytes,
               c->data + (c->firsts[chunk] + offset) * c->row_bytes, length * c->row_bytes);
        total += length;
    }
    return total;
}

enum { MAX_ROWS = 24, COLUMNS = 3, BATCH = 20 };

/* What the batch must be, and is. */
static void check_random(rp_batch *b, column *columns, uint8_t *plain[COLUMNS][BATCH],
                         size_t lengths[COLUMNS][BATCH], rp_ragged ragged, const bool *squeeze)
{
    void *dst[COLUMNS];
    size_t bytes[COLUMNS];

    for (size_t c = 0; c < COLUMNS; c++) {
        bytes[c] = rp_batch_get_column(b, c)->bytes;
        dst[c] = malloc(bytes[c] + 1);
        assert_non_null(dst[c]);
        memset(dst[c], 0xee, bytes[c] + 1);
    }
    assert_ok_err(rp_batch_decode(b, dst, bytes, &err), &err);
    for (size_t c = 0; c < COLUMNS; c++) {
        size_t row = columns[c].row_bytes, at = 0, longest = 0;
        const uint8_t *got = dst[c];

        assert_int_equal(got[bytes[c]], 0xee);
        for (size_t i = 0; i < BATCH; i++)
            if (lengths[c][i] > longest) longest = lengths[c][i];
        for (size_t i = 0; i < BATCH; i++) {
            size_t used = lengths[c][i] * row;

            assert_memory_equal(got + at, plain[c][i], used);
            if (rp_batch_lengths(b, c) != NULL)
                assert_int_equal(rp_batch_lengths(b, c)[i],
                                 ragged == RP_RAGGED_PAD ? lengths[c][i] : at / row);
            at += used;
            if (ragged == RP_RAGGED_OFFSETS && !squeeze[c]) continue;
            for (; used < longest * row; used++) assert_int_equal(got[at++], 0);
        }
        assert_int_equal(at, bytes[c]);
        free(dst[c]);
    }
}

static void run_random(uint64_t seed, uint64_t *key)
{
    static uint8_t *plain[COLUMNS][BATCH];
    size_t lengths[COLUMNS][BATCH];
    bool squeeze[COLUMNS], equal[COLUMNS];
    column columns[COLUMNS];
    rp_chunk_slice slices[COLUMNS][MAX_ROWS];
    rp_ragged ragged;
    rp_batch *b;
    rp_rng rng;

    rp_rng_init(&rng, seed);
    ragged = (rp_ragged)rp_rng_below(&rng, 3);
    for (size_t c = 0; c < COLUMNS; c++) {
        make_column(&columns[c], &rng, key);
        squeeze[c] = rp_rng_below(&rng, 4) == 0;
        equal[c] = ragged == RP_RAGGED_REFUSE || rp_rng_below(&rng, 3) == 0;
    }
    for (size_t i = 0; i < BATCH; i++) {
        rp_slices picked[COLUMNS];

        for (size_t c = 0; c < COLUMNS; c++) {
            size_t rows = equal[c] && i > 0 ? lengths[c][0] : 1 + rp_rng_below(&rng, MAX_ROWS);

            if (squeeze[c]) rows = 1;
            plain[c][i] = malloc(rows * columns[c].row_bytes + 1);
            picked[c] = (rp_slices){.slices = slices[c], .squeeze = squeeze[c]};
            lengths[c][i] = pick_slices(&columns[c], &rng, rows, slices[c],
                                        &picked[c].slice_count, plain[c][i]);
        }
        assert_ok_err(rp_trajectory_new(rp_allocator_default(), picked, COLUMNS,
                                        &items[item_count++], &err),
                      &err);
    }
    b = make_batch(BATCH, ragged);
    check_random(b, columns, plain, lengths, ragged, squeeze);
    rp_batch_free(b);
    rp_sampler_free(sampler);
    sampler = NULL;
    rp_test_sources_init(&sources, 1, bed.plain);
    sources.trajectories = items;
    for (; item_count > 0; item_count--) rp_trajectory_unref(items[item_count - 1]);
    for (size_t c = 0; c < COLUMNS; c++) {
        free_column(&columns[c]);
        for (size_t i = 0; i < BATCH; i++) free(plain[c][i]);
    }
}

static void random_batches_equal_a_naive_decode(void **state)
{
    (void)state;
    size_t rounds = rp_test_scaled(2000, 100);
    uint64_t key = 1;

    for (size_t i = 0; i < rounds; i++) run_random(i, &key);
}

RP_TESTS(batch)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(items_of_one_length_are_stacked),
        T(columns_may_be_left_out_and_sizes_must_fit),
        T(a_batch_over_the_limit_is_refused_issue_20),
        T(padding_counts_in_a_batch),
        T(squeezed_columns_have_no_rows),
        T(arguments_are_checked),
        T(ragged_items_are_refused),
        T(ragged_items_are_padded),
        T(ragged_items_are_concatenated_with_offsets),
        T(offsets_are_given_also_for_items_of_one_length),
        T(items_that_differ_are_refused),
        T(strings_borrow_from_the_batch),
        T(the_last_batch_has_the_remaining_items),
        T(a_timeout_loses_no_items),
        T(corrupt_data_is_a_status),
        T(survives_a_lack_of_memory),
        T(a_batch_is_one_piece),
        T(several_threads_decode_batches_of_one_sequence),
        T(random_batches_equal_a_naive_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
