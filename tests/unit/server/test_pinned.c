/* SPDX-License-Identifier: Apache-2.0 */
/* The limit pinned_bytes: who waits, who is refused, and who is not. */
#include "server/core/server_state.h"
#include "support/live_server.h"

enum { MIB = 1 << 20, KIB = 1 << 10, STEPS = 4000 };

static rp_loop_metrics metrics(rp_test_live *live)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return sums;
}

static size_t pinned(rp_test_live *live)
{
    rp_loop_metrics sums = metrics(live);

    return rp_counter_get(&sums.pinned_bytes);
}

static uint64_t refusals(rp_test_live *live)
{
    rp_loop_metrics sums = metrics(live);

    return rp_counter_get(&sums.refusals[RP_REFUSED_PINNED]);
}

static void start(rp_test_live *live, size_t pinned_bytes)
{
    const rp_server_options options = {
        .loops = 1, .limits = {.pinned_bytes = pinned_bytes, .queued_bytes = 64 * MIB}};

    rp_test_live_start(live, &options);
}

/* A table with room for many inserts that wait: then only the limit can pause their stream. */
static void inserts_that_wait_hold_up_their_writer(void **state)
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

RP_TESTS(pinned)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserts_that_wait_hold_up_their_writer),
        cmocka_unit_test(a_connection_within_its_share_is_not_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
