/* SPDX-License-Identifier: Apache-2.0 */
/* The limit queued_bytes holds, whatever peers ask for and do not read. Many connections over
 * two loops ask for as much as they can; the server's own count stays within the bound of
 * server/queue_budget.h, and a bystander is answered all the while. */
#include <stdio.h>

#include "server/inside.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "wire/fields.h"

enum {
    MIB = 1 << 20,
    LIMIT = 16 * MIB,
    PEERS = 24,
    CALLS = 40,  /* of each peer */
    ROUNDS = 20, /* in which every peer sends what it can */
    LOOPS = 2,
    STEP = 3 * MIB, /* that one loop may add past the limit: an answer, or a step of one */
    EACH = 8 << 10, /* that each connection may */
    BOUND = LIMIT + LOOPS * STEP + (PEERS + 1) * EACH,
};

typedef struct stage {
    rp_test_live live;
    rp_test_client *peers[PEERS];
    rp_test_client *bystander;
    uint64_t most; /* queued bytes that were seen */
} stage;

static void open_stage(stage *s)
{
    /* What arrives is not acknowledged: the server's windows close at once. */
    const rp_test_client_options deaf = {
        .window = 1, .hold_windows = true, .keep_nothing = true};
    const rp_server_options options = {
        .loops = LOOPS,
        .limits = {.queued_bytes = LIMIT, .stall_ms = 600000, .message_grace_ms = 600000}};

    s->most = 0;
    rp_test_live_start(&s->live, &options);
    for (int i = 0; i < PEERS; i++)
        assert_non_null(s->peers[i] = rp_test_live_connect_with(&s->live, &deaf));
    assert_non_null(s->bystander = rp_test_live_connect(&s->live));
}

static void close_stage(stage *s)
{
    for (int i = 0; i < PEERS; i++) rp_test_client_free(s->peers[i]);
    rp_test_client_free(s->bystander);
    rp_test_live_stop(&s->live);
}

static rp_loop_metrics metrics(stage *s)
{
    rp_loop_metrics sums;

    rp_metrics_sum(s->live.server->metrics, &sums);
    return sums;
}

static void expect_bystander(stage *s)
{
    assert_int_equal(rp_test_client_unary(s->bystander, "/grpc.health.v1.Health/Check", "", 0),
                     RP_OK);
}

/* Lets everybody send and the server do its worst. */
static void run(stage *s)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PEERS; i++) {
            rp_loop_metrics sums;
            (void)rp_test_client_step(s->peers[i], 0);
            sums = metrics(s);
            if (rp_counter_get(&sums.queued_bytes) > s->most)
                s->most = rp_counter_get(&sums.queued_bytes);
        }
        expect_bystander(s);
    }
}

static void expect_bounded(stage *s)
{
    assert_in_range(s->most, LIMIT / 8, BOUND);
}

static uint64_t refusals(stage *s)
{
    rp_loop_metrics sums = metrics(s);

    return rp_counter_get(&sums.refusals[RP_REFUSED_QUEUED]);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void server_infos_that_are_not_read_are_bounded(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (int i = 0; i < 300; i++) {
        char name[200];
        const rp_table_options table = {.name = name,
                                        .sampler = {.kind = RP_UNIFORM},
                                        .limiter = rp_limiter_min_size(1),
                                        .max_size = 10};
        (void)snprintf(name, sizeof name, "%0150d", i);
        assert_ok(rp_store_add_table(s.live.store, &table, NULL, NULL));
    }
    /* All calls are open before the first one has its message. */
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < CALLS; j++)
            (void)rp_test_client_open(s.peers[i], RP_TEST_REVERB "ServerInfo");
    run(&s);
    for (int i = 0; i < PEERS; i++)
        for (rp_test_stream *call = s.peers[i]->calls; call != NULL; call = call->next) {
            rp_test_stream_send(call, "", 0);
            rp_test_stream_end(call);
        }
    run(&s);

    expect_bounded(&s);
    assert_true(refusals(&s) > 0);
    close_stage(&s);
}

static void put_draw(rp_buf *out, int64_t count)
{
    rp_wire_put_text(out, 1, "replay");
    rp_wire_put_int(out, 2, count);
}

/* Answers of 12 MiB, made in steps, all at once. */
static void batches_that_are_not_read_are_bounded(void **state)
{
    stage s;
    rp_buf request;

    (void)state;
    open_stage(&s);
    rp_test_insert_items(s.bystander, "replay", 1, 12, MIB);
    rp_buf_init(&request, rp_allocator_default());
    put_draw(&request, 12);
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < CALLS; j++) {
            rp_test_stream *call = rp_test_client_open(s.peers[i], RP_TEST_REPLAY "Sample");
            rp_test_stream_send(call, request.data, request.size);
            rp_test_stream_end(call);
        }
    rp_buf_deinit(&request);
    run(&s);

    expect_bounded(&s);
    close_stage(&s);
}

/* Streams wait in an empty table; then one item comes, and all have samples at once. */
static void samples_that_arrive_together_are_bounded(void **state)
{
    stage s;
    rp_buf request;

    (void)state;
    open_stage(&s);
    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < CALLS; j++) {
            rp_test_put_sample(&request, "replay", 1000, -2);
            rp_test_stream_put(rp_test_client_open(s.peers[i], RP_TEST_REVERB "SampleStream"),
                               &request);
        }
    rp_buf_deinit(&request);
    for (int i = 0; i < PEERS; i++) (void)rp_test_client_step(s.peers[i], 0);
    assert_true(rp_test_live_await(&s.live, "replay", 0, PEERS * CALLS));
    rp_test_insert_items(s.bystander, "replay", 1, 1, MIB);
    run(&s);

    expect_bounded(&s);
    close_stage(&s);
}

/* Streams wait for a table that hands out each item once, and do not read what they get. An
 * item that was drawn is counted, whether it has been written or not. */
static void items_that_leave_their_table_are_bounded(void **state)
{
    enum { ITEMS = 200, BYTES = 256 << 10 };
    const rp_table_options table = {.name = "once",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 1000,
                                    .max_times_sampled = 1};
    rp_buf request;
    stage s;

    (void)state;
    open_stage(&s);
    assert_ok(rp_store_add_table(s.live.store, &table, NULL, NULL));
    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < CALLS; j++) {
            rp_test_put_sample(&request, "once", 1000, -2);
            rp_test_stream_put(rp_test_client_open(s.peers[i], RP_TEST_REVERB "SampleStream"),
                               &request);
        }
    rp_buf_deinit(&request);
    for (int i = 0; i < PEERS; i++) (void)rp_test_client_step(s.peers[i], 0);
    assert_true(rp_test_live_await(&s.live, "once", 0, PEERS * CALLS));
    for (uint64_t key = 1; key <= ITEMS; key++) {
        rp_trajectory *item = rp_test_blob_trajectory(rp_allocator_default(), key, 1, BYTES);

        rp_test_put(rp_store_table(s.live.store, "once"), key, 1.0, item);
        rp_trajectory_unref(item);
    }
    run(&s);

    assert_in_range(rp_test_live_info(&s.live, "once").samples * BYTES, LIMIT / 8, BOUND);
    expect_bounded(&s);
    close_stage(&s);
}

/* Messages that are never whole. */
static void messages_that_do_not_end_are_bounded(void **state)
{
    static const uint8_t zeros[MIB];
    stage s;

    (void)state;
    open_stage(&s);
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < 4; j++) {
            rp_test_stream *call =
                rp_test_client_open(s.peers[i], RP_TEST_REVERB "InsertStream");
            rp_test_stream_send_raw(call, "\0\0\x40\0\0", 5); /* 4 MiB follow, it says */
            rp_test_stream_send_raw(call, zeros, sizeof zeros);
        }
    run(&s);

    expect_bounded(&s);
    close_stage(&s);
}

/* A page is an answer as well. */
static void pages_that_are_not_read_are_bounded(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (int i = 0; i < 80; i++) {
        char name[200];
        const rp_table_options table = {.name = name,
                                        .sampler = {.kind = RP_UNIFORM},
                                        .limiter = rp_limiter_min_size(1),
                                        .max_size = 10};
        (void)snprintf(name, sizeof name, "%0150d", i);
        assert_ok(rp_store_add_table(s.live.store, &table, NULL, NULL));
    }
    for (int i = 0; i < PEERS; i++)
        for (int j = 0; j < CALLS; j++) (void)rp_test_client_get(s.peers[i], "GET", "/metrics");
    run(&s);

    expect_bounded(&s);
    assert_true(refusals(&s) > 0);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_infos_that_are_not_read_are_bounded),
        cmocka_unit_test(batches_that_are_not_read_are_bounded),
        cmocka_unit_test(samples_that_arrive_together_are_bounded),
        cmocka_unit_test(items_that_leave_their_table_are_bounded),
        cmocka_unit_test(messages_that_do_not_end_are_bounded),
        cmocka_unit_test(pages_that_are_not_read_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
