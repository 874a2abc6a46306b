/* SPDX-License-Identifier: Apache-2.0 */
/* The limit pinned_bytes: which streams wait, and which are refused. */
#include <unistd.h>

#include "server/core/pinned.h"
#include "server/core/server_state.h"
#include "support/live_server.h"

enum { MIB = 1 << 20, KIB = 1 << 10, STEPS = 4000, EXHAUSTED = 8 };

static rp_loop_metrics metrics(rp_test_live *live)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return sums;
}

static size_t pinned(rp_test_live *live)
{
    return rp_pinned_sum(live->server);
}

static uint64_t refusals(rp_test_live *live)
{
    rp_loop_metrics sums = metrics(live);

    return rp_counter_get(&sums.refusals[RP_REFUSED_PINNED]);
}

static void start_with(rp_test_live *live, size_t pinned_bytes, size_t loops)
{
    const rp_server_options options = {
        .loops = loops, .limits = {.pinned_bytes = pinned_bytes, .queued_bytes = 64 * MIB}};

    rp_test_live_start(live, &options);
}

static void start(rp_test_live *live, size_t pinned_bytes)
{
    start_with(live, pinned_bytes, 1);
}

/* A table with room for many inserts that wait: then only the limit can pause their stream. */
static void waiting_inserts_pause_their_writer(void **state)
{
    enum { ITEMS = 100 };
    const rp_table_options table = {.name = "held",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_queue(4),
                                    .max_times_sampled = 1,
                                    .max_size = 100000};
    rp_test_live live;
    rp_test_client *writer;
    rp_test_stream *call;
    rp_buf request;

    (void)state;
    start(&live, 16 * MIB);
    assert_ok(rp_store_add_table(live.store, &table, NULL, NULL));
    assert_non_null(writer = rp_test_live_connect(&live));
    call = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_buf_init(&request, rp_allocator_default());
    for (uint64_t key = 1; key <= ITEMS; key++) {
        rp_test_put_insert(&request, "held", key, 256 * KIB);
        rp_test_stream_put(call, &request);
    }
    for (int i = 0; i < STEPS && pinned(&live) < 8 * MIB && !call->is_over; i++)
        (void)rp_test_client_step(writer, 5);
    for (int i = 0; i < STEPS && rp_test_confirmed(call) < ITEMS && !call->is_over; i++) {
        (void)rp_test_client_step(writer, 5);
        if (rp_test_confirmed(call) > 0) (void)rp_test_live_take(&live, "held");
    }

    assert_int_equal(rp_test_confirmed(call), ITEMS);
    assert_int_equal(refusals(&live), 0);
    rp_buf_deinit(&request);
    rp_test_client_free(writer);
    rp_test_live_stop(&live);
}

static void send_chunks(rp_test_live *live, rp_test_client *client, rp_test_stream *call,
                        size_t count, size_t bytes)
{
    size_t before = pinned(live);
    rp_buf request;

    rp_buf_init(&request, rp_allocator_default());
    for (uint64_t key = 1; key <= count; key++) {
        rp_test_put_chunk(&request, key, bytes);
        rp_test_stream_put(call, &request);
    }
    rp_buf_deinit(&request);
    for (int i = 0; i < STEPS && pinned(live) < before + count * bytes && !call->is_over; i++)
        (void)rp_test_client_step(client, 5);
}

/* However much another one holds, or tries to. */
static void a_connection_within_its_share_is_not_refused(void **state)
{
    const size_t held[] = {11, 15};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        rp_test_live live;
        rp_test_client *clients[2];
        rp_test_stream *calls[2];

        start(&live, 16 * MIB);
        for (int j = 0; j < 2; j++) {
            assert_non_null(clients[j] = rp_test_live_connect(&live));
            calls[j] = rp_test_client_open(clients[j], RP_TEST_REVERB "InsertStream");
        }
        send_chunks(&live, clients[0], calls[0], held[i], MIB);
        send_chunks(&live, clients[1], calls[1], 6, 256 * KIB);

        assert_true(pinned(&live) >= 6 * 256 * KIB);
        assert_false(calls[1]->is_over);
        assert_int_equal(calls[1]->status, -1);
        for (int j = 0; j < 2; j++) rp_test_client_free(clients[j]);
        rp_test_live_stop(&live);
    }
}

/* Chunks that streams keep and items that wait. */

static void add_table(rp_test_live *live, const char *name, int64_t max_size,
                      rp_limiter_options limiter)
{
    const rp_table_options options = {.name = name,
                                      .sampler = {.kind = RP_FIFO},
                                      .remover = {.kind = RP_FIFO},
                                      .limiter = limiter,
                                      .max_size = max_size};

    assert_ok(rp_store_add_table(live->store, &options, NULL, NULL));
}

/* A chunk, an item of it if there is a table, and whether the stream keeps the chunk. */
static void send(rp_test_stream *call, const char *table, uint64_t key, size_t bytes, bool keep)
{
    rp_buf request;

    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_chunk(&request, key, bytes);
    if (table != NULL) rp_test_put_item(&request, table, key, 1, key, 0, 1);
    if (keep) rp_test_put_keep(&request, &key, 1);
    rp_test_stream_put(call, &request);
    rp_buf_deinit(&request);
}

static void send_item(rp_test_stream *call, const char *table, uint64_t key, uint64_t chunk)
{
    rp_buf request;

    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_item(&request, table, key, 1, chunk, 0, 1);
    rp_test_stream_put(call, &request);
    rp_buf_deinit(&request);
}

/* Steps until the sum is within the bounds; false after a long time. */
static bool await_pinned(rp_test_live *live, rp_test_client *client, size_t least, size_t most)
{
    for (int i = 0; i < STEPS; i++) {
        size_t now = pinned(live);
        if (now >= least && now <= most) return true;
        (void)rp_test_client_step(client, 5);
    }
    return false;
}

static rp_test_stream *open_stream(rp_test_client *client)
{
    return rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
}

static void stop(rp_test_live *live, rp_test_client *const *clients, size_t count)
{
    for (size_t i = 1; i < count; i++) rp_test_client_free(clients[i]);
    rp_test_client_free(clients[0]);
    for (int i = 0; i < STEPS && pinned(live) > 0; i++) (void)usleep(5000);
    assert_int_equal(pinned(live), 0);
    rp_test_live_stop(live);
}

static void a_kept_chunk_counts_while_no_table_holds_it(void **state)
{
    const uint64_t key = 7;
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *call;
    size_t found;

    (void)state;
    start(&live, 16 * MIB);
    assert_non_null(client = rp_test_live_connect(&live));
    call = open_stream(client);
    send(call, "replay", key, MIB, true);
    assert_true(rp_test_await_confirmed(call, 1));
    assert_true(await_pinned(&live, client, 0, 0)); /* the table has it */
    assert_ok(rp_table_delete(rp_test_table(live.store, "replay"), &key, 1, &found, NULL));
    assert_true(pinned(&live) >= MIB); /* at once, though the stream is silent */
    send_item(call, "replay", 8, key);
    assert_true(rp_test_await_confirmed(call, 2));
    assert_true(await_pinned(&live, client, 0, 0));
    assert_ok(rp_table_reset(rp_test_table(live.store, "replay"), NULL));
    assert_int_equal(pinned(&live), 0); /* the last message keeps nothing */
    stop(&live, &client, 1);
}

static size_t count_refused(rp_test_stream *const *calls, size_t count)
{
    size_t refused = 0;

    for (size_t i = 0; i < count; i++)
        refused += calls[i]->is_over && calls[i]->status == EXHAUSTED;
    return refused;
}

/* Each item evicts the one before it, whose stream has its chunk and says nothing. */
static void idle_streams_whose_items_are_evicted_are_refused(void **state)
{
    enum { MOST = 60 };
    const size_t streams = rp_test_part(MOST, 30);
    rp_test_live live;
    rp_test_client *clients[2];
    rp_test_stream *calls[MOST], *modest;
    size_t refused = 0;

    (void)state;
    start_with(&live, 16 * MIB, 2);
    add_table(&live, "one", 1, rp_limiter_min_size(1));
    for (int i = 0; i < 2; i++) assert_non_null(clients[i] = rp_test_live_connect(&live));
    modest = open_stream(clients[1]); /* within its share, 2 MiB */
    send(modest, "one", 1000, MIB, true);
    assert_true(rp_test_await_confirmed(modest, 1));
    for (uint64_t i = 0; i < streams; i++) {
        calls[i] = open_stream(clients[0]);
        send(calls[i], "one", i, MIB, true);
        assert_true(rp_test_await_confirmed(calls[i], 1));
        assert_true(await_pinned(&live, clients[0], 0, 16 * MIB));
    }
    /* The server has room for 16 of them, whichever these are. */
    for (int i = 0; i < STEPS; i++) {
        refused = count_refused(calls, streams);
        if (refused >= streams - 16 && refused == refusals(&live)) break;
        (void)rp_test_client_step(clients[0], 1);
    }
    assert_true(refused >= streams - 16);
    assert_int_equal(refusals(&live), refused);
    for (int i = 0; i < 3; i++) (void)rp_test_client_step(clients[1], 5);
    assert_false(modest->is_over);
    stop(&live, clients, 2);
}

/* All at once, and not by a thread of the server. */
static void streams_whose_table_is_reset_are_refused(void **state)
{
    enum { STREAMS = 30 };
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *call;

    (void)state;
    start_with(&live, 16 * MIB, 2);
    assert_non_null(client = rp_test_live_connect(&live));
    for (uint64_t i = 0; i < STREAMS; i++) {
        call = open_stream(client);
        send(call, "replay", i, MIB, true);
        assert_true(rp_test_await_confirmed(call, 1));
    }
    assert_int_equal(refusals(&live), 0);
    assert_ok(rp_table_reset(rp_test_table(live.store, "replay"), NULL));
    assert_true(pinned(&live) >= (STREAMS - 1) * (size_t)MIB);
    call = open_stream(client); /* any turn of a loop will do */
    send(call, "replay", STREAMS, 1, false);
    assert_true(await_pinned(&live, client, 0, 16 * MIB));
    assert_true(refusals(&live) >= STREAMS - 16);
    stop(&live, &client, 1);
}

static void chunks_of_waiting_inserts_count(void **state)
{
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *call;

    (void)state;
    for (int is_evicted = 0; is_evicted < 2; is_evicted++) {
        start(&live, 64 * MIB);
        add_table(&live, "one", 1, rp_limiter_min_size(1));
        add_table(&live, "shut", 100000, rp_limiter_queue(1));
        assert_non_null(client = rp_test_live_connect(&live));
        call = open_stream(client);
        send(call, "shut", 1, 1, false); /* now it is full */
        assert_true(rp_test_await_confirmed(call, 1));
        for (uint64_t key = 2; key <= 5; key++) {
            /* The message with the item is small, and the stream lets the chunk go. */
            send(call, is_evicted ? "one" : NULL, key, MIB, is_evicted);
            send_item(call, "shut", 100 + key, key);
        }
        for (int i = 0; i < STEPS && rp_test_live_info(&live, "shut").waiting_inserts < 4; i++)
            (void)rp_test_client_step(client, 5);
        assert_true(await_pinned(&live, client, (size_t)(4 - is_evicted) * MIB, 5 * MIB));
        assert_int_equal(refusals(&live), 0);
        stop(&live, &client, 1);
    }
}

/* By chunks that came before, and not by what its own messages have. */
static void waiting_inserts_with_kept_chunks_are_bounded(void **state)
{
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *call;
    uint64_t key = 2;

    (void)state;
    start(&live, 16 * MIB);
    add_table(&live, "one", 1, rp_limiter_min_size(1));
    add_table(&live, "shut", 100000, rp_limiter_queue(1));
    assert_non_null(client = rp_test_live_connect(&live));
    call = open_stream(client);
    send(call, "shut", 1, 1, false);
    assert_true(rp_test_await_confirmed(call, 1));
    for (; key < 60 && !call->is_over; key++) {
        send(call, "one", key, MIB, true);
        send_item(call, "shut", 100 + key, key);
        for (int i = 0; i < 10; i++) (void)rp_test_client_step(client, 1);
        assert_true(pinned(&live) <= 18 * MIB);
    }
    /* The stream is paused, or refused if it was faster than the server looked. */
    assert_true(rp_test_live_info(&live, "shut").waiting_inserts <= 17);
    stop(&live, &client, 1);
}

RP_TESTS(pinned)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_inserts_pause_their_writer),
        cmocka_unit_test(a_connection_within_its_share_is_not_refused),
        cmocka_unit_test(a_kept_chunk_counts_while_no_table_holds_it),
        cmocka_unit_test(idle_streams_whose_items_are_evicted_are_refused),
        cmocka_unit_test(streams_whose_table_is_reset_are_refused),
        cmocka_unit_test(chunks_of_waiting_inserts_count),
        cmocka_unit_test(waiting_inserts_with_kept_chunks_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
