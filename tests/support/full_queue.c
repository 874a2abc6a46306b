/* SPDX-License-Identifier: Apache-2.0 */
#include "support/full_queue.h"

void rp_test_start_queue(rp_test_live *live, int64_t grace_ms, int64_t stall_ms)
{
    const rp_server_options options = {.loops = 2,
                                       .limits = {.queued_bytes = RP_TEST_QUEUE_BYTES,
                                                  .stall_ms = stall_ms,
                                                  .ping_ms = 600000,
                                                  .handshake_ms = 600000,
                                                  .message_grace_ms = grace_ms}};

    rp_test_live_start(live, &options);
}

uint64_t rp_test_queued(const rp_test_live *live)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return rp_counter_get(&sums.queued_bytes);
}

uint64_t rp_test_refused(const rp_test_live *live, rp_refusal why)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return rp_counter_get(&sums.refusals[why]);
}

void rp_test_step_all(rp_test_client **clients, int count)
{
    for (int i = 0; i < count; i++)
        if (clients[i] != NULL && !clients[i]->is_closed)
            (void)rp_test_client_step(clients[i], 0);
}

void rp_test_await_queued(const rp_test_live *live, rp_test_client **clients, int count,
                          uint64_t bytes)
{
    enum { LOOKS = 5 };
    int looks = 0;

    for (int i = 0; i < RP_TEST_STEPS && looks < LOOKS; i++) {
        (void)rp_test_client_step(clients[0], 1);
        rp_test_step_all(clients, count);
        looks = rp_test_queued(live) >= bytes ? looks + 1 : 0;
    }
    assert_int_equal(looks, LOOKS);
}

void rp_test_free_all(rp_test_client **clients, int count)
{
    for (int i = 0; i < count; i++) rp_test_client_free(clients[i]);
}

/* Sends an item to the table "loans" on each call. */
static void send_items(rp_test_stream **calls, uint64_t first_key, size_t item_bytes)
{
    rp_buf request;

    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < RP_TEST_FILLERS; i++) {
        rp_test_put_insert(&request, "loans", first_key + (uint64_t)i, item_bytes);
        rp_test_stream_put(calls[i], &request);
    }
    rp_buf_deinit(&request);
}

/* True if the first items have left the queue: one is in the table, the others wait for it. */
static bool are_blocked(rp_test_live *live)
{
    return rp_test_live_info(live, "loans").waiting_inserts == RP_TEST_FILLERS - 1;
}

size_t rp_test_fills(void)
{
    return rp_test_part(3, 2);
}

void rp_test_fill_with_messages(rp_test_live *live, rp_test_client **writers,
                                rp_test_stream **calls, size_t item_bytes)
{
    const rp_table_options queue = {.name = "loans",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_queue(1),
                                    .max_times_sampled = 1,
                                    .max_size = 1};

    assert_ok(rp_store_add_table(live->store, &queue, NULL, NULL));
    for (int i = 0; i < RP_TEST_FILLERS; i++) {
        assert_non_null(writers[i] = rp_test_live_connect(live));
        calls[i] = rp_test_client_open(writers[i], RP_TEST_REVERB "InsertStream");
    }
    send_items(calls, 1, item_bytes);
    for (int i = 0; i < RP_TEST_STEPS && !are_blocked(live); i++) {
        (void)rp_test_client_step(writers[0], 1);
        rp_test_step_all(writers, RP_TEST_FILLERS);
    }
    assert_true(are_blocked(live));
    for (size_t i = 1; i < rp_test_fills(); i++)
        send_items(calls, i * RP_TEST_FILLERS + 1, item_bytes);
    rp_test_await_queued(live, writers, RP_TEST_FILLERS, RP_TEST_FULL_SIDE);
}

rp_test_client *rp_test_connect_reader(rp_test_live *live, rp_test_stream **call,
                                       uint32_t window)
{
    const rp_test_client_options deaf = {
        .window = window, .hold_windows = true, .keep_nothing = true};
    rp_test_client *reader = rp_test_live_connect_with(live, &deaf);
    rp_buf request;

    assert_non_null(reader);
    *call = rp_test_client_open(reader, RP_TEST_REVERB "SampleStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_sample(&request, "replay", 1000, -2);
    rp_test_stream_put(*call, &request);
    rp_buf_deinit(&request);
    return reader;
}

void rp_test_fill_with_answers(rp_test_live *live, rp_test_client **readers,
                               rp_test_stream **calls, int count, uint32_t window,
                               uint64_t bytes)
{
    for (int i = 0; i < count; i++)
        readers[i] = rp_test_connect_reader(live, &calls[i], window);
    rp_test_await_queued(live, readers, count, bytes);
}
