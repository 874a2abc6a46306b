/* SPDX-License-Identifier: Apache-2.0 */
/* Many calls for samples at the same moment: a turn of the loop makes some of their responses,
 * and another call is answered before the last of them. */
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "turn_fixture.h"

/* Has CALLS streams of the peer request `count` samples each of a table. */
static void request_samples(stage *s, const char *table, int64_t count)
{
    rp_buf out;

    rp_buf_init(&out, &s->bed.alloc);
    for (; s->call_count < CALLS; s->call_count++) {
        rp_test_stream *call = rp_test_client_open(s->peer, RP_TEST_REVERB "SampleStream");
        rp_test_put_sample(&out, table, count, -2);
        rp_test_stream_put(call, &out);
        rp_test_stream_end(call);
        s->calls[s->call_count] = call;
    }
    rp_buf_deinit(&out);
    s->drawn = rp_test_info_of(s->table).samples;
    s->most_drawn = 0;
}

static void expect_streams_ended(const stage *s, int64_t count)
{
    for (size_t i = 0; i < CALLS; i++) assert_int_equal(s->calls[i]->status, RP_OK);
    assert_int_equal(s->asked->status, RP_OK);
    assert_int_equal(rp_test_info_of(s->table).samples, CALLS * count);
}

static void small_samples_take_many_turns(void **state)
{
    enum { COUNT = 5000, FETCH = 512, SAMPLE_WORK = 4 };
    stage s;

    (void)state;
    open_stage(&s, NULL);
    request_samples(&s, "t", COUNT);
    ask(&s);
    run_until(&s, has_ended);

    expect_streams_ended(&s, COUNT);
    assert_true(s.open_when_answered > CALLS / 2); /* it did not wait for them */
    /* What a turn writes, and what the streams have drawn and not written. */
    assert_true(s.most_drawn <= A_TURN / SAMPLE_WORK + CALLS * FETCH);
    close_stage(&s);
}

enum { CROWD = 128 };
static rp_test_client *crowd[CROWD];
static rp_test_stream *crowd_calls[CROWD];

/* Half of the calls of the crowd have ended. */
static bool has_half_ended(stage *s)
{
    size_t ended = 0;

    (void)s;
    for (size_t i = 0; i < CROWD; i++) {
        (void)rp_test_client_step(crowd[i], 0);
        ended += crowd_calls[i]->is_over;
    }
    return ended >= CROWD / 2;
}

/* A stream that continues makes all the responses of its share before the next one does: while
 * half of the streams have not ended, few are between their first response and their last. */
static void a_deferred_stream_makes_more_than_one_response(void **state)
{
    enum { COUNT = 300 }; /* less than a socket holds */
    size_t begun = 0;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = connect_one(&s);
        crowd_calls[i] = rp_test_client_open(crowd[i], RP_TEST_REVERB "SampleStream");
        rp_test_put_sample(&out, "t", COUNT, -2);
        rp_test_stream_put(crowd_calls[i], &out);
        rp_test_stream_end(crowd_calls[i]);
        (void)rp_test_client_step(crowd[i], 0);
    }
    run_until(&s, has_half_ended);
    for (size_t i = 0; i < CROWD; i++)
        begun += !crowd_calls[i]->is_over && crowd_calls[i]->message_count > 1;

    assert_non_null(s.worker->deferring); /* more than a turn's work was asked for */
    assert_true(crowd_calls[0]->message_count > 4);
    assert_in_range(begun, 0, CROWD / 8);
    for (size_t i = 0; i < CROWD; i++) rp_test_client_free(crowd[i]);
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* Removes all items of the table, and adds one with `count` slices of one chunk. */
static void put_sliced(stage *s, size_t count)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 1, 1);
    rp_chunk_slice *slices = calloc(count, sizeof *slices);
    rp_slices column = {.slices = slices, .slice_count = count};
    rp_trajectory *trajectory = NULL;

    assert_non_null(slices);
    for (size_t i = 0; i < count; i++)
        slices[i] = (rp_chunk_slice){.chunk = chunk, .length = 1};
    assert_ok(rp_trajectory_new(&s->bed.alloc, &column, 1, &trajectory, NULL));
    assert_ok(rp_table_reset(s->table, NULL));
    rp_test_put(s->table, 1, 1.0, trajectory);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    free(slices);
}

static void samples_of_many_slices_take_many_turns(void **state)
{
    enum { COUNT = 4, SLICES = 40000, UNIT_SLICES = 2 };
    stage s;

    (void)state;
    open_stage(&s, NULL);
    put_sliced(&s, SLICES);
    request_samples(&s, "t", COUNT);
    ask(&s);
    run_until(&s, has_ended);

    expect_streams_ended(&s, COUNT);
    assert_true(s.open_when_answered > CALLS / 2);
    /* Small requests may begin until a turn has done twice its work. */
    assert_true(s.most_drawn <= COUNT * (2 * A_TURN / (SLICES / UNIT_SLICES) + 2));
    close_stage(&s);
}

static void a_stream_that_was_deferred_can_be_cancelled(void **state)
{
    enum { COUNT = 5000 };
    stage s;

    (void)state;
    open_stage(&s, NULL);
    request_samples(&s, "t", COUNT);
    ask(&s);
    run_until(&s, has_greeted); /* turns in which some of the work is done */
    run_until(&s, has_greeted);
    assert_non_null(s.worker->deferring);
    assert_true(rp_test_info_of(s.table).samples < CALLS * COUNT);
    for (size_t i = 0; i < CALLS; i++) rp_test_stream_reset(s.calls[i], NGHTTP2_CANCEL);
    run_until(&s, has_ended);

    assert_int_equal(s.asked->status, RP_OK);
    assert_true(rp_test_info_of(s.table).samples < CALLS * COUNT);
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    close_stage(&s);
}

enum { CUT_ROWS = 64, CUT_ROW_BYTES = 128 << 10 };

/* Adds an item of the last row of a chunk. To cut that row, the chunk has to be decompressed:
 * 8 MiB, half of the work of a turn. */
static void put_cut(stage *s, uint64_t key)
{
    rp_chunk_options options = {.codec = RP_CODEC_ZSTD};
    rp_spec spec = {"x", RP_UINT8, SHAPE(CUT_ROW_BYTES)};
    uint8_t *zeros = calloc(CUT_ROWS, CUT_ROW_BYTES);
    rp_chunk *chunk = rp_test_chunk(key, &options, &spec, CUT_ROWS, zeros);
    rp_chunk_slice slice = {.chunk = chunk, .offset = CUT_ROWS - 1, .length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};
    rp_trajectory *trajectory = NULL;

    assert_ok(rp_trajectory_new(&s->bed.alloc, &column, 1, &trajectory, NULL));
    rp_test_put(s->table, key, 1.0, trajectory);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    free(zeros);
}

/* Each call of another connection cuts two chunks, in a step each. */
static void cuts_of_many_connections_take_many_turns(void **state)
{
    static const uint64_t keys[] = {1, 2};
    rp_test_client *clients[CALLS];
    uint64_t turns;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    assert_ok(rp_table_reset(s.table, NULL));
    put_cut(&s, keys[0]);
    put_cut(&s, keys[1]);
    for (size_t i = 0; i < CALLS; i++) {
        clients[i] = connect_one(&s);
        rp_wire_put_text(&out, 1, "t");
        rp_wire_put_packed(&out, 2, keys, 2);
        rp_wire_put_number(&out, 3, 1); /* with_data */
        rp_wire_put_number(&out, 4, 1); /* cut_rows */
        s.calls[i] = rp_test_client_open(clients[i], RP_TEST_REPLAY "Peek");
        rp_test_stream_put(s.calls[i], &out);
        rp_test_stream_end(s.calls[i]);
        (void)rp_test_client_step(clients[i], 0);
    }
    s.call_count = CALLS;
    turns = rp_counter_get(&s.worker->metrics->turns);
    run_until(&s, has_arrived);
    ask(&s);
    run_until(&s, has_ended);

    for (size_t i = 0; i < CALLS; i++) {
        while (!s.calls[i]->is_over) assert_true(rp_test_client_step(clients[i], 1000));
        assert_int_equal(s.calls[i]->status, RP_OK);
        rp_test_client_free(clients[i]);
    }
    assert_true(s.open_when_answered > CALLS / 2);
    turns = rp_counter_get(&s.worker->metrics->turns) - turns;
    assert_true(turns >=
                2 * CALLS / 2 - 4); /* but for the first, each cuts two chunks at most */
    rp_buf_deinit(&out);
    close_stage(&s);
}

static bool all_wait(stage *s)
{
    return rp_test_info_of(s->table).waiting_samples == CALLS;
}

/* One insert lets all calls go on that waited for it: their messages came long before. */
static void calls_that_one_insert_releases_take_many_turns(void **state)
{
    enum { SLICES = 40000 };
    static const struct {
        const char *path;
        size_t work; /* the least of one response */
    } methods[] = {{RP_TEST_REVERB "SampleStream", SLICES / 2},
                   {RP_TEST_REPLAY "Sample", SLICES / 6}};

    (void)state;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        rp_buf out;
        stage s;

        open_stage(&s, NULL);
        rp_buf_init(&out, &s.bed.alloc);
        assert_ok(rp_table_reset(s.table, NULL));
        for (; s.call_count < CALLS; s.call_count++) {
            s.calls[s.call_count] = rp_test_client_open(s.peer, methods[m].path);
            rp_test_put_sample(&out, "t", 1, -2);
            rp_test_stream_put(s.calls[s.call_count], &out);
            rp_test_stream_end(s.calls[s.call_count]);
        }
        run_until(&s, all_wait);
        s.written = rp_counter_get(&s.worker->metrics->messages_written);
        s.most_written = 0;
        put_sliced(&s, SLICES);
        ask(&s);
        run_until(&s, has_ended);

        for (size_t i = 0; i < CALLS; i++) {
            assert_int_equal(s.calls[i]->status, RP_OK);
            assert_int_equal(s.calls[i]->message_count, 1);
        }
        assert_true(s.most_written <= 2 * A_TURN / methods[m].work + 2);
        rp_buf_deinit(&out);
        close_stage(&s);
    }
}

static bool sample_waits(stage *s)
{
    return rp_test_info_of(s->table).waiting_samples == 1;
}

static bool is_busy(stage *s)
{
    return s->worker->deferring != NULL;
}

/* The second message of a call comes while others are deferred. It waits its turn and is
 * refused then; the draw that has begun is not begun again. */
static void a_second_message_in_a_busy_turn_is_refused(void **state)
{
    enum { COUNT = 20000 };
    static const uint8_t junk[8192] = {0};
    const rp_table_options busy = rp_test_options("busy", RP_FIFO, RP_FIFO, 10);
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    assert_ok(rp_table_reset(s.table, NULL));
    call = rp_test_client_open(s.bystander, RP_TEST_REPLAY "Sample");
    rp_test_put_sample(&out, "t", 1, -2);
    rp_test_stream_put(call, &out);
    run_until(&s, sample_waits);
    rp_test_put(rp_test_bed_table(&s.bed, &busy), 1, 1.0, s.bed.plain);
    request_samples(&s, "busy", COUNT);
    run_until(&s, is_busy);
    rp_test_stream_send(call, junk, sizeof junk);
    run_until(&s, has_greeted);
    run_until(&s, has_greeted);
    assert_true(is_busy(&s));
    assert_in_range(rp_test_info_of(s.table).waiting_samples, 0, 1); /* not two */
    s.asked = call;
    run_until(&s, has_ended);

    assert_int_equal(call->status, RP_INVALID);
    assert_int_equal(rp_test_info_of(s.table).waiting_samples, 0);
    rp_test_put(s.table, 1, 1.0, s.bed.plain); /* has no draw left to serve */
    assert_int_equal(rp_test_info_of(s.table).samples, 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* Short messages with long responses: what a turn sends is bounded, not only what it reads. */
static void responses_count_as_work(void **state)
{
    enum { REQUESTS = 400, LEAST_BYTES = 7000 };
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    for (; s.call_count < CALLS; s.call_count++) {
        s.calls[s.call_count] = rp_test_client_open(
            s.peer, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
        for (int i = 0; i < REQUESTS; i++) {
            rp_wire_put_text(&out, 4, "deepmind.reverb.ReverbService");
            rp_test_stream_put(s.calls[s.call_count], &out);
        }
        rp_test_stream_end(s.calls[s.call_count]);
    }
    ask(&s);
    run_until(&s, has_ended);

    for (size_t i = 0; i < CALLS; i++) {
        assert_int_equal(s.calls[i]->status, RP_OK);
        assert_int_equal(s.calls[i]->message_count, REQUESTS);
    }
    assert_true(s.open_when_answered > CALLS / 2);
    assert_true(s.most_written <= 2 * A_TURN / (LEAST_BYTES / UNIT_BYTES) + 2);
    rp_buf_deinit(&out);
    close_stage(&s);
}

RP_TESTS(turn_sample)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_samples_take_many_turns),
        cmocka_unit_test(a_deferred_stream_makes_more_than_one_response),
        cmocka_unit_test(samples_of_many_slices_take_many_turns),
        cmocka_unit_test(a_stream_that_was_deferred_can_be_cancelled),
        cmocka_unit_test(cuts_of_many_connections_take_many_turns),
        cmocka_unit_test(calls_that_one_insert_releases_take_many_turns),
        cmocka_unit_test(a_second_message_in_a_busy_turn_is_refused),
        cmocka_unit_test(responses_count_as_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
