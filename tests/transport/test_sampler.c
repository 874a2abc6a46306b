/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers over every transport: one by one, in batches, and how they end. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "support/transports.h"

static rp_sampler *open_sampler(rp_test_transport *t, const rp_sampler_options *options)
{
    rp_sampler *sampler = NULL;

    assert_ok_err(rp_sampler_new(t->client, options, &sampler, &t->err), &t->err);
    return sampler;
}

/* With one stream to one server samples come in the order in which they were drawn; in turns
 * from several, each in its own order. */
static void samples_come_in_order(rp_test_transport *t)
{
    enum { ITEMS = 300 };
    const char *bag = rp_test_bag(t);
    rp_sampler_options options = {.table = bag,
                                  .max_samples = ITEMS,
                                  .max_in_flight = 7,
                                  .max_per_stream = 50,
                                  .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler;
    bool seen[ITEMS] = {false};

    rp_test_fill_table(t, bag, 0, ITEMS, NULL);
    sampler = open_sampler(t, &options);
    for (int32_t done = 0; done < ITEMS;) {
        rp_sample out[5];
        size_t n = 0;

        assert_ok_err(rp_sampler_next(sampler, out, 5, &n, rp_test_soon(), &t->err), &t->err);
        assert_true(n >= 1 && n <= 5);
        for (size_t i = 0; i < n; i++, done++) {
            int32_t x = rp_test_int_of(t, &out[i]);

            if (t->way != RP_TEST_SHARDS) assert_int_equal(x, done);
            assert_true(x >= 0 && x < ITEMS && !seen[x]);
            seen[x] = true;
        }
        rp_samples_release(out, n);
    }
    rp_sampler_free(sampler);
}

static void a_sampler_ends_after_max_samples(rp_test_transport *t)
{
    const char *replay = rp_test_replay(t);
    rp_sampler *sampler;
    rp_sample out[100];
    size_t n, done = 0;
    rp_status st;

    rp_test_fill_table(t, replay, 0, 10, NULL);
    sampler = rp_test_sampler(t, replay, 57);
    while ((st = rp_sampler_next(sampler, out, 100, &n, rp_test_soon(), &t->err)) == RP_OK) {
        for (size_t i = 0; i < n; i++) {
            assert_true(fabs(out[i].probability - 0.1) < 1e-9);
            assert_int_equal(out[i].table_size, 10);
        }
        rp_samples_release(out, n);
        done += n;
    }
    assert_int_equal(st, RP_PRECONDITION);
    assert_int_equal(done, 57);
    assert_int_equal(rp_sampler_next(sampler, out, 1, &n, rp_test_soon(), &t->err),
                     RP_PRECONDITION);
    rp_sampler_free(sampler);
    assert_int_equal(rp_test_table_sum(t, replay).info.samples, 57); /* none was lost */
}

static void several_streams(rp_test_transport *t)
{
    enum { ITEMS = 500 };
    const char *bag = rp_test_bag(t);
    rp_sampler_options options = {.table = bag,
                                  .max_samples = ITEMS,
                                  .max_in_flight = 10,
                                  .streams = 4,
                                  .rate_limiter_timeout_ms = -1};
    static uint64_t keys[ITEMS];
    rp_sampler *sampler;
    bool seen[ITEMS] = {false};

    rp_test_fill_table(t, bag, 0, ITEMS, keys);
    sampler = open_sampler(t, &options);
    for (size_t done = 0; done < ITEMS; done++) {
        rp_sample one;
        size_t n;
        int32_t x;

        assert_ok_err(rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err), &t->err);
        x = rp_test_int_of(t, &one);
        assert_true(x >= 0 && x < ITEMS && !seen[x]);
        assert_true(one.key == keys[x]);
        seen[x] = true;
        rp_samples_release(&one, 1);
    }
    rp_sampler_free(sampler);
}

static void a_rate_limiter_timeout_ends_the_sampler(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    /* Long enough for a busy machine to deliver the six samples. */
    rp_sampler_options options = {.table = bag, .rate_limiter_timeout_ms = 1500};
    rp_sampler *sampler;
    rp_sample out[10];
    size_t n, done = 0;
    rp_status st;

    rp_test_fill_table(t, bag, 0, 6, NULL);
    sampler = open_sampler(t, &options);
    while ((st = rp_sampler_next(sampler, out, 10, &n, rp_test_soon(), &t->err)) == RP_OK) {
        rp_samples_release(out, n);
        done += n;
    }
    assert_int_equal(st, RP_DEADLINE);
    assert_int_equal(done, 6); /* what came before is given first */
    assert_int_equal(rp_sampler_next(sampler, out, 1, &n, rp_test_soon(), &t->err),
                     RP_DEADLINE);
    rp_sampler_free(sampler);
}

static void a_timeout_of_zero_ends_the_sampler_at_once(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_sampler_options options = {.table = bag, .rate_limiter_timeout_ms = 0};
    rp_sampler *sampler;
    rp_sample out[10];
    size_t n, done = 0;
    rp_status st;

    rp_test_fill_table(t, bag, 0, 6, NULL);
    sampler = open_sampler(t, &options);
    while ((st = rp_sampler_next(sampler, out, 10, &n, rp_test_soon(), &t->err)) == RP_OK) {
        rp_samples_release(out, n);
        done += n;
    }
    assert_int_equal(st, RP_DEADLINE);
    assert_int_equal(done, 6);
    rp_sampler_free(sampler);
}

typedef struct filling {
    rp_test_transport *t;
    const char *table;
} filling;

static void *fill_later(void *user)
{
    filling *f = user;

    (void)usleep(50000);
    rp_test_fill_table(f->t, f->table, 5, 3, NULL);
    return NULL;
}

static void a_sampler_waits_for_items(rp_test_transport *t)
{
    filling f = {t, rp_test_bag(t)};
    rp_sampler *sampler = rp_test_sampler(t, f.table, 0);
    rp_sample one;
    pthread_t thread;
    size_t n;
    int64_t before_ns = rp_now_ns();
    char why[512];
    bool seen[3] = {false};

    assert_int_equal(rp_sampler_next(sampler, &one, 1, &n, rp_wait_none(), &t->err),
                     RP_DEADLINE);
    assert_int_equal(rp_sampler_next(sampler, &one, 1, &n, rp_wait_ms(60), &t->err),
                     RP_DEADLINE);
    assert_true(rp_now_ns() - before_ns >= 59000000);
    rp_sampler_why(sampler, why, sizeof why);
    assert_true(why[0] != 0);
    assert_int_equal(pthread_create(&thread, NULL, fill_later, &f), 0);
    for (size_t i = 0; i < 3; i++) {
        int32_t x;

        assert_ok_err(rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err), &t->err);
        x = rp_test_int_of(t, &one) - 5;
        assert_true(x >= 0 && x < 3 && !seen[x]);
        seen[x] = true;
        rp_samples_release(&one, 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    rp_sampler_free(sampler);
}

static void an_unknown_table_is_not_found(rp_test_transport *t)
{
    rp_sampler_options options = {.table = "nowhere", .checked = true};
    rp_sampler *sampler = NULL;
    rp_sample one;
    size_t n;

    assert_fails(rp_sampler_new(t->client, &options, &sampler, &t->err), RP_NOT_FOUND, &t->err,
                 "nowhere");
    sampler = rp_test_sampler(t, "nowhere", 0);
    assert_fails(rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err), RP_NOT_FOUND,
                 &t->err, "nowhere");
    rp_sampler_free(sampler);
}

static void *fire(void *cancel)
{
    (void)usleep(30000);
    rp_cancel_fire(cancel);
    return NULL;
}

static void waits_can_be_cancelled(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_sampler *sampler = rp_test_sampler(t, bag, 0);
    rp_sample one;
    size_t n;

    for (int i = 0; i < 2; i++) {
        rp_wait wait = {RP_FOREVER, NULL};
        rp_batch *batch = NULL;
        pthread_t thread;
        rp_status st;

        assert_ok(rp_cancel_new(&wait.cancel));
        assert_int_equal(pthread_create(&thread, NULL, fire, wait.cancel), 0);
        if (i == 0)
            st = rp_sampler_next(sampler, &one, 1, &n, wait, &t->err);
        else
            st = rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, true, wait, &batch, &t->err);
        assert_int_equal(st, RP_CANCELLED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        rp_cancel_free(wait.cancel);
    }
    /* It goes on afterwards. */
    rp_test_fill_table(t, bag, 3, 1, NULL);
    assert_ok_err(rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err), &t->err);
    assert_int_equal(rp_test_int_of(t, &one), 3);
    rp_samples_release(&one, 1);
    rp_sampler_free(sampler);
}

static void *close_later(void *sampler)
{
    (void)usleep(30000);
    rp_sampler_close(sampler);
    return NULL;
}

static void closing_ends_all_waits(rp_test_transport *t)
{
    rp_sampler *sampler = rp_test_sampler(t, rp_test_bag(t), 0);
    pthread_t thread;
    rp_sample one;
    size_t n;

    assert_int_equal(pthread_create(&thread, NULL, close_later, sampler), 0);
    assert_int_equal(rp_sampler_next(sampler, &one, 1, &n, rp_wait_forever(), &t->err),
                     RP_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rp_sampler_next(sampler, &one, 1, &n, rp_wait_forever(), &t->err),
                     RP_CANCELLED);
    rp_sampler_free(sampler);
}

/* Items 0 .. count - 1 of two columns: as many int32 rows as their number modulo 3, plus one,
 * and that number as a word. */
static void fill_ragged(rp_test_transport *t, const char *table, int32_t count, bool ragged)
{
    rp_trajectory_writer *w = rp_test_writer(t, 5, 2);
    char text[16];

    for (int32_t i = 0; i < count; i++) {
        size_t rows = ragged ? (size_t)i % 3 + 1 : 2;
        rp_string word = {text, (size_t)snprintf(text, sizeof text, "%d", i)};
        rp_ref xs[3], ws[1];
        rp_item_column columns[] = {{.refs = xs, .count = rows},
                                    {.refs = ws, .count = 1, .squeeze = true}};

        for (size_t k = 0; k < rows; k++) {
            int32_t x = 10 * i + (int32_t)k + 1;
            rp_value values[] = {{0, "x", rp_test_int(&x)},
                                 {1, "word", {RP_STRING, {0, {0}}, &word}}};
            rp_ref refs[2];

            assert_ok_err(rp_trajectory_writer_append(w, values, 2, 0, refs, &t->err), &t->err);
            xs[k] = refs[0];
            ws[0] = refs[1];
        }
        assert_ok_err(rp_trajectory_writer_create_item(w, &(rp_new_item){table, 1, columns, 2},
                                                       rp_test_soon(), NULL, &t->err),
                      &t->err);
    }
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
}

enum { BATCH = 8 };

typedef struct read_batch {
    rp_batch *batch;
    int32_t x[64];
    rp_string words[BATCH];
} read_batch;

static void fetch(rp_test_transport *t, rp_sampler *sampler, rp_ragged ragged, read_batch *r)
{
    void *dst[] = {r->x, r->words};
    size_t bytes[2];

    assert_ok_err(
        rp_sampler_batch(sampler, BATCH, ragged, true, rp_test_soon(), &r->batch, &t->err),
        &t->err);
    assert_int_equal(rp_batch_size(r->batch), BATCH);
    assert_int_equal(rp_batch_column_count(r->batch), 2);
    for (size_t c = 0; c < 2; c++) bytes[c] = rp_batch_get_column(r->batch, c)->bytes;
    assert_int_equal(rp_batch_get_column(r->batch, 0)->dtype, RP_INT32);
    assert_int_equal(rp_batch_get_column(r->batch, 1)->dtype, RP_STRING);
    assert_true(bytes[0] <= sizeof r->x);
    assert_int_equal(bytes[1], sizeof r->words);
    assert_ok_err(rp_batch_decode(r->batch, dst, bytes, &t->err), &t->err);
}

/* The number of an item, from its word. */
static int32_t number_of(const read_batch *r, size_t item)
{
    char text[16] = "";

    assert_true(r->words[item].size < sizeof text);
    memcpy(text, r->words[item].data, r->words[item].size);
    return (int32_t)strtol(text, NULL, 10);
}

static void batches_are_stacked(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    bool seen[3 * BATCH] = {false};
    rp_sampler *sampler;

    fill_ragged(t, bag, 3 * BATCH, false);
    sampler = rp_test_sampler(t, bag, 3 * BATCH);
    for (size_t round = 0; round < 3; round++) {
        rp_shape shape = rp_test_shape(2, BATCH, 2);
        read_batch r;

        fetch(t, sampler, RP_RAGGED_REFUSE, &r);
        assert_true(rp_shape_equal(&rp_batch_get_column(r.batch, 0)->shape, &shape));
        for (size_t i = 0; i < BATCH; i++) {
            int32_t item = number_of(&r, i);

            assert_true(item >= 0 && item < 3 * BATCH && !seen[item]);
            seen[item] = true;
            assert_int_equal(r.x[2 * i], 10 * item + 1);
            assert_int_equal(r.x[2 * i + 1], 10 * item + 2);
        }
        if (round == 2) { /* a batch may outlive its sampler */
            rp_sampler_free(sampler);
            assert_ok_err(rp_batch_decode(r.batch, (void *[]){r.x, NULL},
                                          (size_t[]){8 * BATCH, 0}, &t->err),
                          &t->err);
        }
        rp_batch_free(r.batch);
    }
}

static void samples_are_stacked_as_they_come(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    int32_t x[4 * BATCH][2];
    rp_stack_place places[] = {{x, sizeof x[0]}, {NULL, 0}};
    bool seen[3 * BATCH] = {false};
    rp_sample samples[4 * BATCH];
    rp_sampler *sampler;
    size_t n;

    fill_ragged(t, bag, 3 * BATCH, false);
    sampler = rp_test_sampler(t, bag, 3 * BATCH);
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, BATCH}, &n,
                                   rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(n, BATCH);
    places[0].dst = x + BATCH;
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){places, 2, samples + BATCH, 3 * BATCH},
                                   &n, rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(n, 2 * BATCH); /* and then it is over */
    assert_fails(rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 1}, &n,
                                  rp_test_soon(), &t->err),
                 RP_PRECONDITION, &t->err, "over");
    for (size_t i = 0; i < 3 * BATCH; i++) {
        int32_t item = x[i][0] / 10;

        assert_true(item >= 0 && item < 3 * BATCH && !seen[item]);
        seen[item] = true;
        assert_int_equal(x[i][0], 10 * item + 1);
        assert_int_equal(x[i][1], 10 * item + 2);
        assert_true(samples[i].key != 0 && samples[i].trajectory == NULL);
    }
    rp_sampler_free(sampler);
}

/* So large that they are stacked two at a time. */
static void large_samples_are_stacked_in_groups(rp_test_transport *t)
{
    enum { ITEMS = 7, BYTES = 100 << 10 };
    static uint8_t row[BYTES], got[ITEMS][BYTES];
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 2, 1);
    rp_value value = {0, "x", {RP_UINT8, rp_test_shape(1, BYTES, 0), row}};
    rp_stack_place place = {got, BYTES};
    bool seen[ITEMS] = {false};
    rp_sample samples[ITEMS];
    rp_sampler *sampler;
    size_t n;

    for (size_t i = 0; i < ITEMS; i++) {
        rp_ref ref;
        rp_item_column column = {.refs = &ref, .count = 1, .squeeze = true};

        for (size_t k = 0; k < BYTES; k++) row[k] = (uint8_t)(k == 0 ? i : i * 31 + k);
        assert_ok_err(rp_trajectory_writer_append(w, &value, 1, 0, &ref, &t->err), &t->err);
        assert_ok_err(rp_trajectory_writer_create_item(w, &(rp_new_item){bag, 1, &column, 1},
                                                       rp_test_soon(), NULL, &t->err),
                      &t->err);
    }
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
    memset(got, 0xee, sizeof got);
    sampler = rp_test_sampler(t, bag, ITEMS);
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){&place, 1, samples, ITEMS}, &n,
                                   rp_test_soon(), &t->err),
                  &t->err);
    assert_int_equal(n, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        size_t item = got[i][0];

        assert_true(item < ITEMS && !seen[item]);
        seen[item] = true;
        for (size_t k = 1; k < BYTES; k++)
            if (got[i][k] != (uint8_t)(item * 31 + k)) fail_msg("item %zu, byte %zu", item, k);
    }
    rp_sampler_free(sampler);
}

static void ragged_batches_are_padded(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_shape shape = rp_test_shape(2, BATCH, 3);
    rp_sampler *sampler;
    const int64_t *lengths;
    read_batch r;

    fill_ragged(t, bag, BATCH, true);
    sampler = rp_test_sampler(t, bag, BATCH);
    memset(r.x, 77, sizeof r.x);
    fetch(t, sampler, RP_RAGGED_PAD, &r);
    assert_true(rp_shape_equal(&rp_batch_get_column(r.batch, 0)->shape, &shape));
    lengths = rp_batch_lengths(r.batch, 0);
    assert_non_null(lengths);
    for (size_t i = 0; i < BATCH; i++) {
        int32_t item = number_of(&r, i);

        assert_int_equal(lengths[i], item % 3 + 1);
        for (int32_t k = 0; k < 3; k++)
            assert_int_equal(r.x[3 * i + (size_t)k], k <= item % 3 ? 10 * item + k + 1 : 0);
    }
    rp_batch_free(r.batch);
    rp_sampler_free(sampler);
}

static void ragged_batches_have_offsets(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_sampler *sampler;
    const int64_t *offsets;
    read_batch r;

    fill_ragged(t, bag, BATCH, true);
    sampler = rp_test_sampler(t, bag, BATCH);
    fetch(t, sampler, RP_RAGGED_OFFSETS, &r);
    offsets = rp_batch_lengths(r.batch, 0);
    assert_non_null(offsets);
    assert_null(rp_batch_lengths(r.batch, 1));
    assert_int_equal(offsets[0], 0);
    for (size_t i = 0; i < BATCH; i++) {
        int32_t item = number_of(&r, i);

        assert_int_equal(offsets[i + 1] - offsets[i], item % 3 + 1);
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
            assert_int_equal(r.x[k], 10 * item + (int32_t)(k - offsets[i]) + 1);
    }
    assert_int_equal(rp_batch_get_column(r.batch, 0)->shape.dims[0], offsets[BATCH]);
    rp_batch_free(r.batch);
    rp_sampler_free(sampler);
}

static void ragged_batches_are_refused(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_sampler *sampler;
    rp_batch *batch = NULL;

    fill_ragged(t, bag, BATCH, true);
    sampler = rp_test_sampler(t, bag, BATCH);
    assert_fails(rp_sampler_batch(sampler, BATCH, RP_RAGGED_REFUSE, true, rp_test_soon(),
                                  &batch, &t->err),
                 RP_INVALID, &t->err, "column 0");
    rp_sampler_free(sampler);
}

static void the_last_batch_may_be_smaller(rp_test_transport *t)
{
    const char *replay = rp_test_replay(t);
    rp_sampler *sampler;
    rp_batch *batch = NULL;
    rp_sample one;
    size_t n;

    rp_test_fill_table(t, replay, 0, 5, NULL);
    sampler = rp_test_sampler(t, replay, 11);
    for (size_t i = 0; i < 2; i++) {
        assert_ok_err(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, false, rp_test_soon(),
                                       &batch, &t->err),
                      &t->err);
        assert_int_equal(rp_batch_size(batch), 4);
        rp_batch_free(batch);
    }
    assert_int_equal(
        rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, true, rp_test_soon(), &batch, &t->err),
        RP_PRECONDITION);
    /* What there was is given to whoever asks next. */
    assert_ok_err(rp_sampler_next(sampler, &one, 1, &n, rp_test_soon(), &t->err), &t->err);
    rp_samples_release(&one, 1);
    assert_ok_err(
        rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, false, rp_test_soon(), &batch, &t->err),
        &t->err);
    assert_int_equal(rp_batch_size(batch), 2);
    rp_batch_free(batch);
    rp_sampler_free(sampler);
}

static void importance_weights(rp_test_transport *t)
{
    const char *table = rp_test_make_table(
        t, &(rp_table_options){.limiter = rp_limiter_min_size(1),
                               .sampler = {.kind = RP_PRIORITIZED, .exponent = 1},
                               .max_size = 100});
    rp_sampler_options options = {
        .table = table, .max_samples = 64, .beta = 0.5, .rate_limiter_timeout_ms = -1};
    rp_trajectory_writer *w = rp_test_writer(t, 8, 1);
    const rp_sample *samples;
    rp_sampler *sampler;
    rp_batch *batch = NULL;
    double largest = 0;

    for (int32_t i = 1; i <= 6; i++) {
        rp_ref ref = rp_test_append(t, w, i);

        (void)rp_test_create(t, w, table, i, &ref, 1);
    }
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
    sampler = open_sampler(t, &options);
    assert_ok_err(
        rp_sampler_batch(sampler, 64, RP_RAGGED_REFUSE, true, rp_test_soon(), &batch, &t->err),
        &t->err);
    samples = rp_batch_samples(batch);
    for (size_t i = 0; i < 64; i++) {
        assert_true(fabs(samples[i].probability - samples[i].priority / 21) < 1e-9);
        if (samples[i].weight > largest) largest = samples[i].weight;
    }
    assert_true(fabs(largest - 1) < 1e-12);
    for (size_t i = 1; i < 64; i++) /* weight ~ probability^-0.5 */
        assert_true(fabs(samples[i].weight / samples[0].weight -
                         sqrt(samples[0].priority / samples[i].priority)) < 1e-9);
    rp_batch_free(batch);
    rp_sampler_free(sampler);
}

enum { TAKERS = 4, TAKEN = 250 };

typedef struct taking {
    rp_test_transport *t;
    rp_sampler *sampler;
    pthread_t thread;
    bool seen[TAKERS * TAKEN];
} taking;

static void *take_all(void *user)
{
    taking *one = user;
    rp_sample out[9];
    size_t n;

    while (rp_sampler_next(one->sampler, out, 9, &n, rp_test_soon(), NULL) == RP_OK) {
        for (size_t i = 0; i < n; i++) one->seen[rp_test_int_of(one->t, &out[i])] = true;
        rp_samples_release(out, n);
    }
    return NULL;
}

static void several_threads_share_a_sampler(rp_test_transport *t)
{
    static taking takings[TAKERS];
    const char *bag = rp_test_bag(t);
    rp_sampler *sampler;

    rp_test_fill_table(t, bag, 0, TAKERS * TAKEN, NULL);
    sampler = rp_test_sampler(t, bag, TAKERS * TAKEN);
    for (size_t i = 0; i < TAKERS; i++) {
        takings[i] = (taking){.t = t, .sampler = sampler};
        assert_int_equal(pthread_create(&takings[i].thread, NULL, take_all, &takings[i]), 0);
    }
    for (size_t i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_join(takings[i].thread, NULL), 0);
    for (size_t x = 0; x < TAKERS * TAKEN; x++) {
        int by = 0;

        for (size_t i = 0; i < TAKERS; i++) by += takings[i].seen[x];
        assert_int_equal(by, 1);
    }
    rp_sampler_free(sampler);
}

RP_TESTS(sampler)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE(samples_come_in_order),
        RP_TEST_CASE(a_sampler_ends_after_max_samples),
        RP_TEST_CASE(several_streams),
        RP_TEST_CASE(a_rate_limiter_timeout_ends_the_sampler),
        RP_TEST_CASE(a_timeout_of_zero_ends_the_sampler_at_once),
        RP_TEST_CASE(a_sampler_waits_for_items),
        RP_TEST_CASE(an_unknown_table_is_not_found),
        RP_TEST_CASE(waits_can_be_cancelled),
        RP_TEST_CASE(closing_ends_all_waits),
        RP_TEST_CASE(batches_are_stacked),
        RP_TEST_CASE(samples_are_stacked_as_they_come),
        RP_TEST_CASE(large_samples_are_stacked_in_groups),
        RP_TEST_CASE(ragged_batches_are_padded),
        RP_TEST_CASE(ragged_batches_have_offsets),
        RP_TEST_CASE(ragged_batches_are_refused),
        RP_TEST_CASE(the_last_batch_may_be_smaller),
        RP_TEST_CASE(importance_weights),
        RP_TEST_CASE(several_threads_share_a_sampler),
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
