/* SPDX-License-Identifier: Apache-2.0 */
/* The interaction of a writer with its sink: order, flushing, waiting, back-pressure, refusals.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/client_rig.h"

static void append(rp_test_client_rig *r, int count)
{
    while (count-- > 0) {
        int64_t step = rp_trajectory_writer_steps(r->writer);
        int32_t x = (int32_t)step;
        rp_value value = {0, "x", {RP_INT32, SCALAR, &x}};
        assert_ok_err(rp_trajectory_writer_append(r->writer, &value, 1, 0, NULL, &r->err),
                      &r->err);
    }
}

static rp_status try_item(rp_test_client_rig *r, const char *table, rp_wait wait, uint64_t *key)
{
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};

    assert_true(rp_trajectory_writer_find(r->writer, 0, -1, &ref));
    return rp_trajectory_writer_create_item(r->writer, &(rp_new_item){table, 2.5, &column, 1},
                                            wait, key, &r->err);
}

static uint64_t item(rp_test_client_rig *r)
{
    uint64_t key = 0;

    assert_ok_err(try_item(r, "a", rp_wait_none(), &key), &r->err);
    return key;
}

static rp_status flush(rp_test_client_rig *r, size_t leave, int64_t ms)
{
    return rp_trajectory_writer_flush(r->writer, leave, rp_wait_ms(ms), &r->err);
}

static size_t put_so_far(rp_test_client_rig *r)
{
    size_t count;

    rp_mutex_lock(&r->sink->mu);
    count = r->sink->count;
    rp_mutex_unlock(&r->sink->mu);
    return count;
}

static void items_are_sent_in_the_order_of_their_creation(void **state)
{
    enum { ITEMS = 500 };
    rp_test_client_rig r;
    uint64_t keys[ITEMS];
    (void)state;
    rp_test_client_init(&r, 10, 3, false);
    r.sink->automatic = true;

    for (int i = 0; i < ITEMS; i++) {
        append(&r, 1);
        assert_ok(try_item(&r, i % 3 == 0 ? "b" : "a", rp_wait_none(), &keys[i]));
    }
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    assert_int_equal(r.sink->count, ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        assert_true(r.sink->items[i].key == keys[i]);
        assert_true(r.sink->items[i].priority == 2.5);
        assert_string_equal(r.sink->items[i].table, i % 3 == 0 ? "b" : "a");
    }
    rp_test_client_deinit(&r);
}

/* Rows that are not compressed need nobody else: the sink has the item at once, unless one
 * before it waits. */
static void plain_items_are_sent_by_the_caller(void **state)
{
    rp_trajectory_writer_options o = {
        .column = {.history = 8, .chunk_length = 2, .chunk = {.codec = RP_CODEC_NONE}}};
    rp_test_client_rig r;
    uint64_t keys[4];
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    r.sink->automatic = true;

    append(&r, 2);
    keys[0] = item(&r);
    assert_int_equal(put_so_far(&r), 1);
    append(&r, 1);
    keys[1] = item(&r); /* of rows that are open */
    assert_int_equal(put_so_far(&r), 1);
    append(&r, 1);
    keys[2] = item(&r);
    append(&r, 2);
    keys[3] = item(&r);
    rp_test_sink_await(r.sink, 4);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    for (int i = 0; i < 4; i++) assert_true(r.sink->items[i].key == keys[i]);
    rp_test_client_deinit(&r);
}

enum { FRAME_WORDS = 512, FRAME_BYTES = 4 * FRAME_WORDS };

/* Appends a frame, of random words or of zeros. */
static void append_frame(rp_test_client_rig *r, bool is_noise)
{
    rp_rng rng;
    uint32_t words[FRAME_WORDS] = {0};
    rp_value value = {0, "x", {RP_UINT32, {.rank = 1, .dims = {FRAME_WORDS}}, words}};

    rp_rng_init(&rng, (uint64_t)rp_trajectory_writer_steps(r->writer));
    for (size_t i = 0; is_noise && i < FRAME_WORDS; i++) words[i] = (uint32_t)rp_rng_next(&rng);
    assert_ok_err(rp_trajectory_writer_append(r->writer, &value, 1, 0, NULL, &r->err), &r->err);
}

/* Checks the frame of an item of one row. Returns true if its chunk is not compressed. */
static bool check_frame(rp_test_client_rig *r, size_t index, uint32_t row, int64_t step,
                        bool is_noise)
{
    rp_chunk *chunk = rp_trajectory_get_chunk(r->sink->items[index].trajectory, 0);
    uint32_t words[FRAME_WORDS];
    rp_decoder *decoder;
    size_t wire_bytes;
    rp_rng rng;

    assert_ok(rp_decoder_new(&r->in.alloc, 1 << 20, &decoder));
    assert_ok_err(rp_decoder_rows(decoder, chunk, (rp_row_range){0, row, 1}, words,
                                  sizeof words, &r->err),
                  &r->err);
    rp_decoder_free(decoder);
    rp_rng_init(&rng, (uint64_t)step);
    for (size_t i = 0; i < FRAME_WORDS; i++)
        assert_int_equal(words[i], is_noise ? (uint32_t)rp_rng_next(&rng) : 0);
    (void)rp_chunk_wire(chunk, &wire_bytes);
    return wire_bytes > FRAME_BYTES;
}

/* True if the newest row was made into a chunk when it was appended. */
static bool is_chunk_already(rp_test_client_rig *r)
{
    const rp_writer_column *c = rp_writer_column_at(r->writer, 0);

    return rp_writer_cell_of(c, c->cells - 1)->rows->chunk != NULL;
}

/* The codec is tried now and then, so that values that become compressible are compressed. */
static void values_that_do_not_become_smaller_are_stored(void **state)
{
    enum { NOISE = 40, ZEROS = 50, UNTRIED = 63 };
    rp_trajectory_writer_options o = {.column = {.history = 1}};
    rp_test_client_rig r;
    size_t tried = 0, stored = 0;
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    r.sink->automatic = true;

    for (int64_t step = 0; step < NOISE + ZEROS; step++) {
        append_frame(&r, step < NOISE);
        if (!is_chunk_already(&r)) tried++;
        (void)item(&r);
        assert_ok_err(flush(&r, 0, 20000), &r.err);
        if (step == NOISE - 1) assert_true(tried >= 3 && tried <= 7);
    }
    for (size_t i = 0; i < NOISE; i++) assert_true(check_frame(&r, i, 0, (int64_t)i, true));
    for (size_t i = NOISE; i < NOISE + ZEROS; i++)
        if (check_frame(&r, i, 0, (int64_t)i, false)) {
            assert_int_equal(stored, i - NOISE); /* only the first ones */
            stored++;
        }
    assert_true(stored > 0 && stored <= UNTRIED && stored < ZEROS);
    rp_test_client_deinit(&r);
}

static void chunks_that_do_not_become_smaller_are_stored(void **state)
{
    enum { NOISE = 80, ZEROS = 100, UNTRIED = 63, ROWS = 2 };
    rp_trajectory_writer_options o = {.column = {.history = ROWS, .chunk_length = ROWS}};
    rp_test_client_rig r;
    size_t stored = 0;
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    r.sink->automatic = true;

    for (int64_t step = 0; step < NOISE + ZEROS; step++) {
        append_frame(&r, step < NOISE);
        (void)item(&r);
        if (step % ROWS == ROWS - 1) assert_ok_err(flush(&r, 0, 20000), &r.err);
    }
    for (size_t i = 0; i < NOISE; i++)
        assert_true(check_frame(&r, i, i % ROWS, (int64_t)i, true));
    for (size_t i = NOISE; i < NOISE + ZEROS; i++)
        if (check_frame(&r, i, i % ROWS, (int64_t)i, false)) {
            assert_int_equal(stored, i - NOISE);
            stored++;
        }
    assert_true(stored > 0 && stored <= ROWS * UNTRIED && stored < ZEROS);
    rp_test_client_deinit(&r);
}

static void item_waits_for_its_chunk_to_fill_or_for_a_flush(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 3, false);
    r.sink->automatic = true;

    append(&r, 1);
    (void)item(&r);
    append(&r, 1);
    (void)item(&r);
    assert_int_equal(put_so_far(&r), 0);
    append(&r, 1); /* full */
    rp_test_sink_await(r.sink, 2);
    append(&r, 1);
    (void)item(&r);
    assert_int_equal(put_so_far(&r), 2);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    assert_int_equal(put_so_far(&r), 3);
    rp_test_client_deinit(&r);
}

static void flush_leaves_the_latest_items_alone(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 20, 4, false);
    r.sink->automatic = true;
    append(&r, 6); /* rows 4 and 5 are open */
    for (int64_t step = 2; step < 6; step++) {
        rp_ref ref;
        rp_item_column column = {.refs = &ref, .count = 1};
        assert_true(rp_trajectory_writer_find(r.writer, 0, step, &ref));
        assert_ok(rp_trajectory_writer_create_item(r.writer, &(rp_new_item){"a", 1, &column, 1},
                                                   rp_wait_none(), NULL, &r.err));
    }

    assert_ok_err(flush(&r, 2, 20000), &r.err); /* what the first two need is closed already */
    assert_int_equal(put_so_far(&r), 2);
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 2);
    append(&r, 1); /* and what the others need is still open: it goes on growing */
    assert_ok_err(flush(&r, 1, 20000), &r.err);
    assert_int_equal(put_so_far(&r), 4);
    assert_int_equal(
        rp_chunk_get_column(rp_trajectory_get_chunk(r.sink->items[3].trajectory, 0), 0)
            ->shape.dims[0],
        3);
    rp_test_client_deinit(&r);
}

static void items_continue_after_a_flush_timeout(void **state)
{
    rp_test_client_rig r;
    char why[300];
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    append(&r, 1);
    (void)item(&r);
    rp_test_sink_await(r.sink, 1);

    assert_fails(flush(&r, 0, 5), RP_DEADLINE, &r.err, "the test has not said so yet");
    assert_fails(flush(&r, 0, 0), RP_DEADLINE, &r.err, "1 item is unconfirmed");
    rp_trajectory_writer_why(r.writer, why, sizeof why);
    assert_non_null(strstr(why, "1 item is unconfirmed: the test"));
    assert_int_equal(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(5), &r.err),
                     RP_DEADLINE);
    assert_int_equal(rp_trajectory_writer_steps(r.writer), 1); /* the episode goes on */
    assert_ok_err(flush(&r, 1, 0), &r.err);
    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    assert_ok_err(flush(&r, 0, 0), &r.err);
    rp_trajectory_writer_why(r.writer, why, sizeof why);
    assert_string_equal(why, "no item is unconfirmed");
    rp_test_client_deinit(&r);
}

typedef struct helper {
    rp_test_client_rig *rig;
    rp_cancel *cancel;
    size_t await;
    pthread_t thread;
} helper;

static void *fire(void *user)
{
    helper *h = user;

    rp_test_sink_await(h->rig->sink, h->await);
    rp_cancel_fire(h->cancel);
    return NULL;
}

static void *settle_one(void *user)
{
    helper *h = user;

    rp_test_sink_await(h->rig->sink, h->await);
    rp_test_sink_settle(h->rig->sink, 1, RP_OK, "");
    return NULL;
}

static void token_ends_waits_now_and_later(void **state)
{
    rp_test_client_rig r;
    helper h = {.rig = &r, .await = 1};
    rp_wait wait = rp_wait_forever();
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    assert_ok(rp_cancel_new(&h.cancel));
    wait.cancel = h.cancel;
    append(&r, 1);
    (void)item(&r);

    assert_int_equal(pthread_create(&h.thread, NULL, fire, &h), 0);
    assert_fails(rp_trajectory_writer_flush(r.writer, 0, wait, &r.err), RP_CANCELLED, &r.err,
                 "cancelled");
    (void)pthread_join(h.thread, NULL);
    assert_int_equal(rp_trajectory_writer_flush(r.writer, 0, wait, &r.err), RP_CANCELLED);
    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    assert_ok(rp_trajectory_writer_flush(r.writer, 0, wait, &r.err)); /* nothing to wait for */
    rp_cancel_free(h.cancel);
    rp_test_client_deinit(&r);
}

static void bound_on_items_blocks_creation(void **state)
{
    rp_trajectory_writer_options o = {.column = {.history = 10, .chunk_length = 5},
                                      .max_items = 2};
    rp_test_client_rig r;
    helper h = {.rig = &r, .await = 2};
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    append(&r, 1);
    (void)item(&r);
    (void)item(&r);

    assert_fails(try_item(&r, "a", rp_wait_ms(5), NULL), RP_DEADLINE, &r.err,
                 "2 items are unconfirmed");
    /* It did not just wait: it has closed the rows that the others need. */
    rp_test_sink_await(r.sink, 2);
    assert_int_equal(pthread_create(&h.thread, NULL, settle_one, &h), 0);
    assert_ok_err(try_item(&r, "a", rp_wait_ms(20000), NULL), &r.err);
    (void)pthread_join(h.thread, NULL);
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 2);
    rp_test_client_deinit(&r);
}

static void rejected_items_are_not_confirmed(void **state)
{
    rp_trajectory_writer_options o = {.column = {.history = 10, .chunk_length = 1}};
    rp_test_client_rig r;

    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    append(&r, 1);
    for (int i = 0; i < 4; i++) (void)item(&r);
    rp_test_sink_await(r.sink, 4);
    rp_test_sink_settle(r.sink, 2, RP_OK, "");
    assert_int_equal(rp_trajectory_writer_confirmed(r.writer), 2);
    rp_test_sink_settle(r.sink, 1, RP_DEADLINE, "late");
    assert_int_equal(rp_trajectory_writer_confirmed(r.writer), 2);
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 1);
    rp_test_sink_settle(r.sink, 1, RP_OK, "");

    assert_fails(flush(&r, 0, 0), RP_DEADLINE, &r.err, "1 item was refused: late");
    assert_int_equal(rp_trajectory_writer_confirmed(r.writer), 3);
    rp_test_client_deinit(&r);
}

static void refused_items_are_named_while_others_wait(void **state)
{
    rp_test_client_rig r;

    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    append(&r, 1);
    for (int i = 0; i < 3; i++) (void)item(&r);
    rp_test_sink_await(r.sink, 3);
    rp_test_sink_settle(r.sink, 1, RP_NO_RESOURCE, "too large");
    assert_fails(flush(&r, 0, 5), RP_DEADLINE, &r.err,
                 "1 item was refused so far: too large; 2");
    rp_test_sink_settle(r.sink, 1, RP_DENIED, "not you");
    assert_fails(flush(&r, 0, 5), RP_DEADLINE, &r.err,
                 "passed: 2 items were refused so far, the first: too large; 1 item is");
    rp_test_client_deinit(&r);
}

static void bound_on_bytes_blocks_creation(void **state)
{
    rp_trajectory_writer_options o = {.column = {.history = 10, .chunk_length = 1},
                                      .max_bytes = 1};
    rp_test_client_rig r;
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    append(&r, 1);

    (void)item(&r); /* one may always be there */
    assert_int_equal(try_item(&r, "a", rp_wait_ms(5), NULL), RP_DEADLINE);
    rp_test_sink_await(r.sink, 1);
    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    (void)item(&r);
    rp_test_sink_await(r.sink, 2);
    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    assert_ok_err(flush(&r, 0, 0), &r.err);
    assert_int_equal(r.writer->bytes, 0);
    rp_test_client_deinit(&r);
}

static void rows_count_once_for_all_items(void **state)
{
    rp_test_client_rig r;
    size_t one;
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    append(&r, 1);
    (void)item(&r);
    rp_test_sink_await(r.sink, 1);
    one = r.writer->bytes;
    assert_true(one > 0);

    for (int i = 0; i < 5; i++) (void)item(&r);
    rp_test_sink_await(r.sink, 6);
    assert_int_equal(r.writer->bytes, one);
    rp_test_sink_settle(r.sink, 5, RP_OK, "");
    assert_int_equal(r.writer->bytes, one);
    rp_test_sink_settle(r.sink, 1, RP_INVALID, "no");
    assert_int_equal(r.writer->bytes, 0);
    rp_test_client_deinit(&r);
}

static void limit_on_items_in_flight_does_not_cut_chunks(void **state)
{
    rp_trajectory_writer_options o = {.column = {.history = 10, .chunk_length = 5}};
    rp_test_client_rig r;
    rp_writer_parts parts;
    (void)state;
    rp_test_client_open_store(&r);
    parts = rp_test_client_parts(&r);
    parts.max_in_flight = 1;
    assert_ok(rp_trajectory_writer_open(&parts, &o, &r.writer, &r.err));
    rp_trajectory_writer_attach(r.writer, rp_test_client_sink(&r, false));

    for (int i = 0; i < 4; i++) {
        append(&r, 1);
        (void)item(&r); /* all wait for the same chunk, none is in flight */
    }
    append(&r, 1);
    rp_test_sink_await(r.sink, 4);
    assert_int_equal(try_item(&r, "a", rp_wait_ms(5), NULL), RP_DEADLINE);
    rp_test_sink_settle(r.sink, 4, RP_OK, "");
    (void)item(&r);
    rp_test_client_deinit(&r);
}

static void *run_flush(void *arg)
{
    (void)flush(arg, 0, 20000);
    return NULL;
}

static void await_waiting(rp_trajectory_writer *w)
{
    bool is_waiting = false;

    while (!is_waiting) {
        (void)usleep(1000);
        rp_mutex_lock(&w->mu);
        is_waiting = w->waiting;
        rp_mutex_unlock(&w->mu);
    }
}

/* Hundreds at once, one of them twice, and some that are not this writer's. */
static void many_items_are_settled_at_once(void **state)
{
    enum { MANY = 200 };
    uint64_t keys[MANY + 3];
    rp_test_client_rig r;
    pthread_t thread;
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    append(&r, 1);
    for (int i = 0; i < MANY; i++) (void)item(&r);
    rp_test_sink_await(r.sink, MANY);
    assert_int_equal(pthread_create(&thread, NULL, run_flush, &r), 0);
    await_waiting(r.writer);

    keys[0] = r.sink->items[8].key ^ (uint64_t)1 << 60; /* in the place of another */
    keys[1] = r.sink->items[9].key + 5000;              /* in none */
    for (size_t i = 0; i < MANY; i++) keys[2 + i] = r.sink->items[i].key;
    keys[MANY + 2] = keys[7];
    r.sink->events.on_settled(r.sink->events.user, keys, MANY + 3, RP_NOT_FOUND, "no table");
    r.sink->settled = MANY;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_fails(r.err.code, RP_NOT_FOUND, &r.err,
                 "200 items were refused, the first: no table");
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    rp_test_client_deinit(&r);
}

static void refused_items_are_reported_by_the_next_flush(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    append(&r, 1);
    for (int i = 0; i < 4; i++) (void)item(&r);
    rp_test_sink_await(r.sink, 4);

    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    rp_test_sink_settle(r.sink, 1, RP_NOT_FOUND, "no table 'a'");
    rp_test_sink_settle(r.sink, 1, RP_INVALID, "something else");
    assert_fails(flush(&r, 0, 5), RP_DEADLINE, &r.err, "1 item is");
    rp_test_sink_settle(r.sink, 1, RP_OK, "");
    assert_fails(flush(&r, 0, 5), RP_NOT_FOUND, &r.err,
                 "2 items were refused, the first: no table 'a'");
    assert_ok_err(flush(&r, 0, 5), &r.err);
    (void)item(&r);
    rp_test_sink_await(r.sink, 5);
    rp_test_sink_settle(r.sink, 1, RP_DENIED, "not you");
    assert_fails(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(5), &r.err),
                 RP_DENIED, &r.err, "1 item was refused: not you");
    assert_ok(rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(5), &r.err));
    rp_test_client_deinit(&r);
}

static void sink_without_memory_gets_items_again(void **state)
{
    rp_test_client_rig r;
    uint64_t keys[3];
    (void)state;
    rp_test_client_init(&r, 10, 5, false);
    r.sink->automatic = true;
    r.sink->fail_puts = SIZE_MAX; /* a flush may try more than once */
    append(&r, 1);
    for (int i = 0; i < 3; i++) keys[i] = item(&r);

    assert_fails(flush(&r, 0, 20000), RP_NO_RESOURCE, &r.err, "out of memory");
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 3);
    assert_int_equal(flush(&r, 0, 20000), RP_NO_RESOURCE);
    rp_mutex_lock(&r.sink->mu);
    r.sink->fail_puts = 0;
    rp_mutex_unlock(&r.sink->mu);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    assert_int_equal(r.sink->count, 3);
    for (int i = 0; i < 3; i++) assert_true(r.sink->items[i].key == keys[i]);
    rp_test_client_deinit(&r);
}

static void keys_follow_from_the_seed(void **state)
{
    uint64_t keys[2][3];
    (void)state;
    for (int run = 0; run < 2; run++) {
        rp_test_client_rig r;
        rp_test_client_init(&r, 10, 2, false);
        for (int i = 0; i < 3; i++) {
            append(&r, 1);
            keys[run][i] = item(&r);
        }
        rp_test_client_deinit(&r);
    }
    assert_memory_equal(keys[0], keys[1], sizeof keys[0]);
    assert_true(keys[0][0] != keys[0][1] && keys[0][1] != keys[0][2]);
}

static void writer_stays_with_the_parent_of_a_fork(void **state)
{
    rp_test_client_rig r;
    int status = 0;
    pid_t child;
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    r.sink->automatic = true;
    append(&r, 1);
    (void)item(&r);

    child = fork();
    if (child == 0) {
        int32_t x = 1;
        rp_value value = {0, "x", {RP_INT32, SCALAR, &x}};
        rp_error err = {0};
        bool as_told = rp_trajectory_writer_append(r.writer, &value, 1, 0, NULL, &err) ==
                           RP_PRECONDITION &&
                       flush(&r, 0, 1000) == RP_PRECONDITION &&
                       strstr(err.text, "fork") != NULL;
        rp_trajectory_writer_free(r.writer);
        _exit(as_told ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    append(&r, 1);
    (void)item(&r);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    assert_int_equal(r.sink->count, 2);
    rp_test_client_deinit(&r);
}

typedef struct questions {
    int count;
    int64_t taken_ns, end_ns, pause_ns; /* of the first one, and the pause after it */
    int64_t waited_ns;                  /* as the last one says */
} questions;

/* As with a server that does not respond. */
static void ask_slowly(void *ctx, const char *table, int64_t waited_ns, char *text, size_t size)
{
    questions *q = ctx;
    const int64_t begun_ns = rp_now_ns();

    q->waited_ns = waited_ns;
    if (q->count++ == 1) q->pause_ns = begun_ns - q->end_ns;
    (void)usleep(400000);
    if (q->count == 1) {
        q->end_ns = rp_now_ns();
        q->taken_ns = q->end_ns - begun_ns;
    }
    (void)snprintf(text, size, "table '%s' does not respond", table);
}

static void say_nothing(rp_sink *sink, char *text, size_t size)
{
    (void)sink;
    (void)size;
    text[0] = '\0';
}

/* A caller that waits in slices would otherwise see each of them end late. */
static void slow_questions_are_seldom_asked(void **state)
{
    const rp_trajectory_writer_options options = {.column = {.history = 1, .chunk_length = 1},
                                                  .unchecked = true};
    questions q = {0};
    rp_test_client_rig r;
    rp_writer_parts parts;
    rp_sink_class class;

    (void)state;
    rp_test_client_open_store(&r);
    parts = rp_test_client_parts(&r);
    parts.why = ask_slowly;
    parts.find_ctx = &q;
    assert_ok_err(rp_trajectory_writer_open(&parts, &options, &r.writer, &r.err), &r.err);
    rp_trajectory_writer_attach(r.writer, rp_test_client_sink(&r, false));
    class = *r.sink->sink.class;
    class.why = say_nothing;
    r.sink->sink.class = &class;
    append(&r, 1);
    (void)item(&r);
    while (q.count < 2) assert_fails(flush(&r, 0, 20), RP_DEADLINE, &r.err, "does not respond");
    assert_true(q.pause_ns >= 3 * q.taken_ns);
    /* Slices that follow each other at once are one wait. */
    while (q.waited_ns < 10 * 20000000LL)
        assert_fails(flush(&r, 0, 20), RP_DEADLINE, &r.err, "does not respond");
    assert_true(q.waited_ns < RP_FOREVER);
    rp_test_client_deinit(&r);
}

RP_TESTS(trajectory_writer_send)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_sent_in_the_order_of_their_creation),
        cmocka_unit_test(plain_items_are_sent_by_the_caller),
        cmocka_unit_test(slow_questions_are_seldom_asked),
        cmocka_unit_test(values_that_do_not_become_smaller_are_stored),
        cmocka_unit_test(chunks_that_do_not_become_smaller_are_stored),
        cmocka_unit_test(item_waits_for_its_chunk_to_fill_or_for_a_flush),
        cmocka_unit_test(flush_leaves_the_latest_items_alone),
        cmocka_unit_test(items_continue_after_a_flush_timeout),
        cmocka_unit_test(token_ends_waits_now_and_later),
        cmocka_unit_test(bound_on_items_blocks_creation),
        cmocka_unit_test(rejected_items_are_not_confirmed),
        cmocka_unit_test(bound_on_bytes_blocks_creation),
        cmocka_unit_test(rows_count_once_for_all_items),
        cmocka_unit_test(limit_on_items_in_flight_does_not_cut_chunks),
        cmocka_unit_test(many_items_are_settled_at_once),
        cmocka_unit_test(refused_items_are_reported_by_the_next_flush),
        cmocka_unit_test(refused_items_are_named_while_others_wait),
        cmocka_unit_test(sink_without_memory_gets_items_again),
        cmocka_unit_test(keys_follow_from_the_seed),
        cmocka_unit_test(writer_stays_with_the_parent_of_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
