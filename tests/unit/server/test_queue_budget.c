/* SPDX-License-Identifier: Apache-2.0 */
/* The server keeps the limit queued_bytes, whatever peers request and do not read. Many
 * connections over two loops request as much as they can. The server's own count stays within
 * the bound of server/core/queue_budget.h, and a bystander always gets responses. */
#include <stdio.h>

#include "server/rpc/sample_array.h"
#include "support/fixture.h"
#include "support/full_queue.h"
#include "wire/fields.h"

enum {
    MIB = 1 << 20,
    LIMIT = RP_TEST_QUEUE_BYTES,
    PEERS = 24,
    LOOPS = 2,
    STEP = 3 * MIB, /* that one loop may add past the limit: an answer, or a step of one */
    EACH = 8 << 10, /* that each connection may */
    BOUND = LIMIT + LOOPS * STEP + (PEERS + 1) * EACH,
    BEGUN = 4 * MIB, /* a message that does not end */
    /* Three quarters of a side, a message that was added then, and all loans (loans.h). */
    MESSAGES_BOUND = LIMIT / 8 * 3 + BEGUN + LIMIT / 16 * 17 + (PEERS + 1) * EACH,
};

/* Calls of each peer, and rounds in which every peer sends what it can. */
static int call_count(void)
{
    return (int)rp_test_part(40, rp_test_length(20, 10));
}

static int round_count(void)
{
    return (int)rp_test_part(20, 5);
}

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
        /* On a busy machine a client may send its first frames late. */
        .limits = {.queued_bytes = LIMIT,
                   .stall_ms = 600000,
                   .message_grace_ms = 600000,
                   .handshake_ms = 600000,
                   .ping_ms = 600000}};

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

static uint64_t refusals(stage *s)
{
    rp_loop_metrics sums = metrics(s);

    return rp_counter_get(&sums.refusals[RP_REFUSED_QUEUED]);
}

/* All peers send what they can, once. */
static void run_round(stage *s)
{
    for (int i = 0; i < PEERS; i++) {
        rp_loop_metrics sums;
        (void)rp_test_client_step(s->peers[i], 0);
        sums = metrics(s);
        if (rp_counter_get(&sums.queued_bytes) > s->most)
            s->most = rp_counter_get(&sums.queued_bytes);
    }
    expect_bystander(s);
}

/* The peers send for some rounds, and until a good part of the limit is in use and as many
 * answers as that were refused. Then less than `bound` was in use all the while. */
static void expect_bounded_by(stage *s, uint64_t least_refusals, uint64_t bound)
{
    for (int round = 0; round < RP_TEST_STEPS; round++) {
        if (round >= round_count() && s->most >= LIMIT / 8 && refusals(s) >= least_refusals)
            break;
        run_round(s);
    }
    assert_in_range(s->most, LIMIT / 8, bound);
    assert_true(refusals(s) >= least_refusals);
}

static void expect_bounded(stage *s, uint64_t least_refusals)
{
    expect_bounded_by(s, least_refusals, BOUND);
}

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
        for (int j = 0; j < call_count(); j++)
            (void)rp_test_client_open(s.peers[i], RP_TEST_REVERB "ServerInfo");
    for (int round = 0; round < round_count(); round++) run_round(&s);
    for (int i = 0; i < PEERS; i++)
        for (rp_test_stream *call = s.peers[i]->calls; call != NULL; call = call->next) {
            rp_test_stream_send(call, "", 0);
            rp_test_stream_end(call);
        }

    expect_bounded(&s, 1);
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
        for (int j = 0; j < call_count(); j++) {
            rp_test_stream *call = rp_test_client_open(s.peers[i], RP_TEST_REPLAY "Sample");
            rp_test_stream_send(call, request.data, request.size);
            rp_test_stream_end(call);
        }
    rp_buf_deinit(&request);

    expect_bounded(&s, 0);
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
        for (int j = 0; j < call_count(); j++) {
            rp_test_put_sample(&request, "replay", 1000, -2);
            rp_test_stream_put(rp_test_client_open(s.peers[i], RP_TEST_REVERB "SampleStream"),
                               &request);
        }
    rp_buf_deinit(&request);
    for (int i = 0; i < PEERS; i++) (void)rp_test_client_step(s.peers[i], 0);
    assert_true(rp_test_live_await(&s.live, "replay", 0, PEERS * call_count()));
    rp_test_insert_items(s.bystander, "replay", 1, 1, MIB);

    expect_bounded(&s, 0);
    close_stage(&s);
}

/* Streams wait for a table that hands out each item once, and do not read what they get. An
 * item that was drawn is counted, whether it has been written or not. */
static void items_that_leave_their_table_are_bounded(void **state)
{
    enum { BYTES = 256 << 10 };
    const uint64_t items = rp_test_length(200, 100); /* more than fit */
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
        for (int j = 0; j < call_count(); j++) {
            rp_test_put_sample(&request, "once", 1000, -2);
            rp_test_stream_put(rp_test_client_open(s.peers[i], RP_TEST_REVERB "SampleStream"),
                               &request);
        }
    rp_buf_deinit(&request);
    for (int i = 0; i < PEERS; i++) (void)rp_test_client_step(s.peers[i], 0);
    assert_true(rp_test_live_await(&s.live, "once", 0, PEERS * call_count()));
    for (uint64_t key = 1; key <= items; key++) {
        rp_trajectory *item = rp_test_blob_trajectory(rp_allocator_default(), key, 1, BYTES);

        rp_test_put(rp_test_table(s.live.store, "once"), key, 1.0, item);
        rp_trajectory_unref(item);
    }

    expect_bounded(&s, 0);
    assert_in_range(rp_test_live_info(&s.live, "once").samples * BYTES, LIMIT / 8, BOUND);
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
        for (size_t j = 0; j < rp_test_part(4, 2); j++) {
            rp_test_stream *call =
                rp_test_client_open(s.peers[i], RP_TEST_REVERB "InsertStream");
            rp_test_stream_send_raw(call, "\0\0\x40\0\0", 5); /* 4 MiB follow, it says */
            rp_test_stream_send_raw(call, zeros, sizeof zeros);
        }

    expect_bounded_by(&s, 0, MESSAGES_BOUND);
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
        for (int j = 0; j < call_count(); j++)
            (void)rp_test_client_get(s.peers[i], "GET", "/metrics");

    expect_bounded(&s, 1);
    close_stage(&s);
}

enum { HALVES = 8 };

/* Peers that begin a message of 4 MiB, send 2 MiB of it, and stop. */
static void begin_halves(stage *s, rp_test_client **peers)
{
    static const uint8_t zeros[2 * MIB];

    for (int i = 0; i < HALVES; i++) {
        assert_non_null(peers[i] = rp_test_live_connect(&s->live));
        rp_test_stream *call = rp_test_client_open(peers[i], RP_TEST_REVERB "InsertStream");
        rp_test_stream_send_raw(call, "\0\0\x40\0\0", 5);
        rp_test_stream_send_raw(call, zeros, sizeof zeros);
    }
}

/* They are ended because they do not go on, not because the time of a message is over; and the
 * message that waits for their room then comes in. */
static void stalled_partial_messages_are_ended_for_a_waiting_one(void **state)
{
    rp_test_client *halves[HALVES], *writer;
    rp_test_stream *call;
    rp_buf request;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 4000, 600000);
    begin_halves(&s, halves);
    for (int i = 0; i < RP_TEST_STEPS && rp_test_queued(&s.live) < LIMIT / 2; i++)
        rp_test_step_all(halves, HALVES);
    rp_test_step_all(halves, HALVES);
    assert_non_null(writer = rp_test_live_connect(&s.live));
    call = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_insert(&request, "replay", 1, 5 * MIB);
    rp_test_stream_put(call, &request);
    for (int i = 0; i < RP_TEST_STEPS && rp_test_confirmed(call) == 0 && !writer->is_closed;
         i++) {
        (void)rp_test_client_step(writer, 5);
        rp_test_step_all(halves, HALVES);
    }

    assert_int_equal(rp_test_confirmed(call), 1);
    assert_true(rp_test_refused(&s.live, RP_REFUSED_SLOW_MESSAGE) > 0);
    assert_int_equal(rp_test_refused(&s.live, RP_REFUSED_QUEUED), 0);
    rp_buf_deinit(&request);
    for (int i = 0; i < HALVES; i++) rp_test_client_free(halves[i]);
    rp_test_client_free(writer);
    rp_test_live_stop(&s.live);
}

/* Messages of which some bytes wait in the server do not keep one out that is as large as a
 * message may be. */
static void the_largest_message_does_not_need_an_empty_queue(void **state)
{
    static const uint8_t zeros[64 << 10];
    rp_test_client *halves[HALVES], *writer;
    rp_test_stream *call;
    rp_buf request;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 600000, 600000);
    for (int i = 0; i < HALVES; i++) { /* small messages that do not end */
        assert_non_null(halves[i] = rp_test_live_connect(&s.live));
        call = rp_test_client_open(halves[i], RP_TEST_REVERB "InsertStream");
        rp_test_stream_send_raw(call, "\0\0\1\0\0", 5); /* 64 KiB follow, it says */
        rp_test_stream_send_raw(call, zeros, sizeof zeros - 1);
    }
    rp_test_await_queued(&s.live, halves, HALVES, HALVES * sizeof zeros);
    assert_non_null(writer = rp_test_live_connect(&s.live));
    call = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_insert(&request, "replay", 1, LIMIT / 2 - 1000);
    rp_test_stream_put(call, &request);

    assert_true(rp_test_await_confirmed(call, 1));
    rp_buf_deinit(&request);
    rp_test_free_all(halves, HALVES);
    rp_test_client_free(writer);
    rp_test_live_stop(&s.live);
}

static void unread_responses_leave_budget_for_messages(void **state)
{
    rp_test_client *readers[PEERS], *writer;
    rp_test_stream *calls[PEERS], *call;
    rp_buf request;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 600000, 600000);
    assert_non_null(writer = rp_test_live_connect(&s.live));
    rp_test_insert_items(writer, "replay", 1, 1, MIB);
    rp_test_fill_with_answers(&s.live, readers, calls, PEERS, 1, RP_TEST_FULL_SIDE);
    call = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_insert(&request, "replay", 2, 4 * MIB);
    rp_test_stream_put(call, &request);

    assert_true(rp_test_await_confirmed(call, 1));
    rp_buf_deinit(&request);
    rp_test_free_all(readers, PEERS);
    rp_test_client_free(writer);
    rp_test_live_stop(&s.live);
}

/* Samples that are not read are over the budget, which has become smaller. A reader that goes
 * on says so with window updates: they are read although its connection has no room. */
static void window_updates_are_read_without_budget(void **state)
{
    enum { READERS = 8 };
    const rp_test_client_options deaf = {
        .window = 1 << 16, .hold_windows = true, .keep_nothing = true};
    const rp_server_limits smaller = {
        .queued_bytes = MIB, .stall_ms = 600000, .ping_ms = 600000};
    rp_test_client *readers[READERS];
    rp_test_stream *calls[READERS];
    rp_buf request;
    int one = 0;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 600000, 600000);
    rp_buf_init(&request, rp_allocator_default());
    assert_non_null(s.bystander = rp_test_live_connect(&s.live));
    rp_test_insert_items(s.bystander, "replay", 1, 1, MIB);
    for (int i = 0; i < READERS; i++) {
        assert_non_null(readers[i] = rp_test_live_connect_with(&s.live, &deaf));
        calls[i] = rp_test_client_open(readers[i], RP_TEST_REVERB "SampleStream");
        rp_test_put_sample(&request, "replay", 1000, -2);
        rp_test_stream_put(calls[i], &request);
    }
    rp_test_await_queued(&s.live, readers, READERS, 2 * MIB + 1);
    for (int i = 0; i < RP_TEST_STEPS && calls[one]->unread == 0;
         i++) { /* one that has begun */
        one = (one + 1) % READERS;
        (void)rp_test_client_step(readers[one], 5);
    }
    assert_ok(rp_server_reload(s.live.server, &smaller, NULL));
    expect_bystander(&s);
    for (int i = 0; i < RP_TEST_STEPS && calls[one]->message_count == 0; i++) {
        rp_test_stream_read(calls[one], calls[one]->unread);
        (void)rp_test_client_step(readers[one], 5);
    }

    assert_true(calls[one]->message_count > 0);
    rp_buf_deinit(&request);
    for (int i = 0; i < READERS; i++) rp_test_client_free(readers[i]);
    rp_test_client_free(s.bystander);
    rp_test_live_stop(&s.live);
}

/* Writers wait for a table that is full, and what they have sent behind that fills the side of
 * messages. A sample that makes room for them is served, however large the items are: each of
 * them comes through. */
static void messages_of_blocked_writers_leave_budget_for_samples(void **state)
{
#ifdef RP_TEST_NO_RACE
    static const size_t item_bytes[] = {MIB}; /* asan runs both sizes */
#else
    static const size_t item_bytes[] = {MIB, 3 * MIB};
#endif

    (void)state;
    for (size_t k = 0; k < COUNT_OF(item_bytes); k++) {
        rp_test_client *writers[RP_TEST_FILLERS], *learner;
        rp_test_stream *calls[RP_TEST_FILLERS], *samples;
        rp_buf request;
        stage s;

        const size_t all = RP_TEST_FILLERS * rp_test_fills();

        rp_test_start_queue(&s.live, 600000, 600000);
        rp_test_fill_with_messages(&s.live, writers, calls, item_bytes[k]);
        assert_non_null(learner = rp_test_live_connect(&s.live));
        samples = rp_test_client_open(learner, RP_TEST_REVERB "SampleStream");
        rp_buf_init(&request, rp_allocator_default());
        rp_test_put_sample(&request, "loans", (int64_t)all, -2);
        rp_test_stream_put(samples, &request);
        for (int i = 0;
             i < RP_TEST_STEPS && samples->message_count < all && !learner->is_closed; i++) {
            (void)rp_test_client_step(learner, 5);
            rp_test_step_all(writers, RP_TEST_FILLERS);
        }

        for (int i = 0; i < RP_TEST_FILLERS; i++)
            assert_true(rp_test_await_confirmed(calls[i], rp_test_fills()));
        rp_buf_deinit(&request);
        rp_test_free_all(writers, RP_TEST_FILLERS);
        rp_test_client_free(learner);
        rp_test_live_stop(&s.live);
    }
}

/* Calls that wait in an empty table take room for what they draw, not for what they ask for. */
static void calls_for_many_samples_leave_budget(void **state)
{
    enum { COUNT = 262144, WAITING = 8 }; /* 16 MiB of samples each */
    rp_test_client *waiters[WAITING], *client;
    rp_buf request;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 600000, 600000);
    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < WAITING; i++) {
        rp_test_stream *call;
        assert_non_null(waiters[i] = rp_test_live_connect(&s.live));
        call = rp_test_client_open(waiters[i], RP_TEST_REPLAY "Sample");
        put_draw(&request, COUNT);
        rp_test_stream_put(call, &request);
        rp_test_stream_end(call);
    }
    rp_test_step_all(waiters, WAITING);
    assert_true(rp_test_live_await(&s.live, "replay", 0, WAITING));

    assert_in_range(rp_test_queued(&s.live), 0, 64 << 10);
    assert_non_null(client = rp_test_live_connect(&s.live));
    rp_test_insert_items(client, "replay", 1, 1, MIB);
    rp_buf_deinit(&request);
    rp_test_free_all(waiters, WAITING);
    rp_test_client_free(client);
    rp_test_live_stop(&s.live);
}

/* The system bounds how many mappings a process has: past a few thousand large arrays, the next
 * one is small. */
static void large_sample_arrays_are_bounded_in_number(void **state)
{
    enum { COUNT = 262144, LARGE = 4096, ALL = LARGE + 64 }; /* 16 MiB of samples each */
    static rp_sample_array rooms[ALL];
    rp_metrics *metrics = NULL;
    rp_server server = {.alloc = *rp_allocator_default()};
    rp_worker worker = {.server = &server, .limits = {.queued_bytes = LIMIT}};
    rp_refusal why;
    rp_error err;

    (void)state;
#ifdef RP_TEST_NO_RACE
    skip(); /* one thread, and mappings cost much under tsan: asan runs it */
#endif
    assert_ok(rp_metrics_new(&server.alloc, 1, &metrics));
    worker.metrics = rp_metrics_loop(metrics, 0);
    worker.queue = (rp_queue_part){&server.budget, &worker.metrics->queued_bytes, {0}};
    for (int i = 0; i < ALL; i++) {
        assert_ok(rp_sample_array_init(&rooms[i], &worker, COUNT, false, &why, &err));
        assert_int_equal(rooms[i].count, i < LARGE ? COUNT : 1024);
    }

    assert_int_equal(rp_queue_bytes(&worker.queue, RP_QUEUE_OUT), 0);
    for (int i = 0; i < ALL; i++) rp_sample_array_deinit(&rooms[i], &worker, 0);
    assert_int_equal(atomic_load(&server.mapped_arrays), 0);
    rp_metrics_free(metrics);
}

/* It is refused by its prefix, before a byte of it has come. */
static void a_message_that_never_fits_is_refused_at_once(void **state)
{
    rp_test_client *writer;
    rp_test_stream *call;
    stage s;

    (void)state;
    rp_test_start_queue(&s.live, 600000, 600000);
    assert_non_null(writer = rp_test_live_connect(&s.live));
    call = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_test_stream_send_raw(call, "\0\0\x80\0\1", 5); /* a byte more than half of 16 MiB */
    assert_true(rp_test_stream_wait(call));

    assert_int_equal(call->status, RP_NO_RESOURCE);
    assert_non_null(strstr(call->text, "8388609"));
    assert_non_null(strstr(call->text, "8388608"));
    assert_non_null(strstr(call->text, "queued_bytes"));
    assert_int_equal(rp_test_refused(&s.live, RP_REFUSED_QUEUED), 1);
    rp_test_client_free(writer);
    rp_test_live_stop(&s.live);
}

RP_TESTS(queue_budget)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_infos_that_are_not_read_are_bounded),
        cmocka_unit_test(batches_that_are_not_read_are_bounded),
        cmocka_unit_test(samples_that_arrive_together_are_bounded),
        cmocka_unit_test(items_that_leave_their_table_are_bounded),
        cmocka_unit_test(messages_that_do_not_end_are_bounded),
        cmocka_unit_test(pages_that_are_not_read_are_bounded),
        cmocka_unit_test(stalled_partial_messages_are_ended_for_a_waiting_one),
        cmocka_unit_test(the_largest_message_does_not_need_an_empty_queue),
        cmocka_unit_test(unread_responses_leave_budget_for_messages),
        cmocka_unit_test(window_updates_are_read_without_budget),
        cmocka_unit_test(messages_of_blocked_writers_leave_budget_for_samples),
        cmocka_unit_test(calls_for_many_samples_leave_budget),
        cmocka_unit_test(large_sample_arrays_are_bounded_in_number),
        cmocka_unit_test(a_message_that_never_fits_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
