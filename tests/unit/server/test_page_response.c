/* SPDX-License-Identifier: Apache-2.0 */
/* Pages over HTTP/2: those about all tables are made by another thread. */
#include "server/core/page_response.h"

#include <stdio.h>

#include "support/live_server.h"
#include "support/strict.h"

enum { CALLS = 500, TABLES = 100 };

static uint64_t refused(const rp_test_live *live, rp_refusal reason)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return rp_counter_get(&sums.refusals[reason]);
}

/* A server with one loop, and a client that knows how many calls it may have open. */
static rp_test_client *start(rp_test_live *live, const rp_server_limits *limits)
{
    rp_server_options options = {.loops = 1};
    rp_test_client *client;

    if (limits != NULL) options.limits = *limits;
    rp_test_live_start(live, &options);
    client = rp_test_live_connect(live);
    assert_non_null(client);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    return client;
}

static void many_concurrent_requests_all_get_the_page(void **state)
{
    static const char *const paths[] = {"/metrics", "/v1/info"};
    rp_test_live live;
    rp_test_client *client = start(&live, NULL);

    (void)state;
    for (int i = 0; i < CALLS; i++) (void)rp_test_client_get(client, "GET", paths[i % 2]);
    for (rp_test_stream *call = client->calls; call->next != NULL; call = call->next) {
        assert_true(rp_test_stream_wait(call));
        assert_int_equal(call->http_status, 200);
        assert_true(call->in.size > 1000);
    }
    assert_null(strstr(client->calls->content_type, "grpc"));
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* Pages about connections and tables are made while loops count calls and change tables. */
static void pages_are_made_while_other_clients_work(void **state)
{
    static const char *const paths[] = {"/v1/clients", "/v1/tables/replay",
                                        "/v1/tables/replay/items/7", "/v1/info"};
    rp_test_live live;
    rp_test_client *client = start(&live, NULL), *other;

    (void)state;
    for (int round = 0; round < 20; round++) {
        other = rp_test_live_connect(&live);
        for (int i = 0; i < 4; i++) (void)rp_test_client_get(client, "GET", paths[i]);
        (void)rp_test_client_step(client, 0);
        for (int i = 0; i < 10; i++)
            assert_int_equal(rp_test_client_unary(other, RP_TEST_REVERB "ServerInfo", "", 0),
                             RP_OK);
        rp_test_client_free(other);
    }
    for (rp_test_stream *call = client->calls; call->next != NULL; call = call->next) {
        assert_true(rp_test_stream_wait(call));
        assert_true(call->http_status == 200 || call->http_status == 404);
    }
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void a_head_response_has_no_body(void **state)
{
    rp_test_live live;
    rp_test_client *client = start(&live, NULL);
    rp_test_stream *call = rp_test_client_get(client, "HEAD", "/metrics");

    (void)state;
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->http_status, 200);
    assert_int_equal(call->in.size, 0);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* curl -X POST ends the stream with its headers and sends no content-length. */
static void a_post_whose_headers_end_the_stream_needs_no_length(void **state)
{
    rp_test_live live;
    rp_test_client *client = start(&live, NULL);
    rp_test_stream *call = rp_test_client_post(client, "/v1/checkpoint", false);

    (void)state;
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->http_status,
                     409); /* it came to the server, which has no directory */
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void a_post_that_goes_on_needs_a_length(void **state)
{
    rp_test_live live;
    rp_test_client *client = start(&live, NULL);
    rp_test_stream *call = rp_test_client_post(client, "/v1/checkpoint", true);

    (void)state;
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->http_status, 411);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* Some are taken back, the others go with the connection. */
static void a_waiting_client_may_disconnect(void **state)
{
    rp_test_live live;
    rp_test_client *client = start(&live, NULL), *other = rp_test_live_connect(&live);

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        rp_test_stream *call = rp_test_client_get(client, "GET", "/metrics");

        if (i % 2 == 0) rp_test_stream_reset(call, NGHTTP2_CANCEL);
    }
    (void)rp_test_client_step(client, 0);
    rp_test_client_free(client);
    assert_int_equal(rp_test_client_unary(other, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    rp_test_client_free(other);
    rp_test_live_stop(&live);
}

static void the_server_may_stop_while_a_client_waits(void **state)
{
    rp_test_live live;
    rp_test_client *client = start(&live, NULL);

    (void)state;
    for (int i = 0; i < CALLS; i++) (void)rp_test_client_get(client, "GET", "/v1/info");
    (void)rp_test_client_step(client, 0);
    rp_test_live_end(&live);
    for (rp_test_stream *call = client->calls; call->next != NULL; call = call->next)
        if (call->is_over && call->http_status != 0)
            assert_true(call->http_status == 200 || call->http_status == 503);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void add_tables(rp_test_live *live)
{
    for (size_t i = 0; i < TABLES; i++) {
        char name[16];
        rp_table_options options = {.name = name,
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 10};

        (void)snprintf(name, sizeof name, "table %zu", i);
        assert_ok_err(rp_store_add_table(live->store, &options, NULL, &live->err), &live->err);
    }
}

/* The answers to one who does not read take the room of queued_bytes that there is, and share
 * the memory of one page. */
static void unread_pages_stay_within_the_queue_budget(void **state)
{
    const rp_server_limits limits = {.queued_bytes = 4 << 20, .message_bytes = 1 << 20};
    const rp_test_client_options deaf = {.window = 1000, .hold_windows = true};
    rp_test_live live;
    rp_test_client *client = start(&live, &limits);
    rp_test_client *slow = rp_test_live_connect_with(&live, &deaf);
    size_t before, after, ended = 0;

    (void)state;
    add_tables(&live);
    before = atomic_load(&live.oom.live_bytes);
    for (int i = 0; i < 64; i++) (void)rp_test_client_get(slow, "GET", "/metrics");
    while (ended == 0) { /* one has been refused; the others hold the room */
        (void)rp_test_client_step(slow, 100);
        for (rp_test_stream *call = slow->calls; call != NULL; call = call->next)
            ended += call->http_status == 503;
    }
    assert_true(refused(&live, RP_REFUSED_QUEUED) > 0);
    assert_true(rp_queue_published(&live.server->budget) <= (4 << 20));
    after = atomic_load(&live.oom.live_bytes);
    assert_true(after - before < 3 << 20); /* two pages at most, and no more */
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    rp_test_client_free(slow);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* All wait for the same page, and each of them looks at the limit of its connection when the
 * page is there. */
static void unread_pages_stay_within_the_limit_of_a_connection(void **state)
{
    const rp_server_limits limits = {.connection_queued_bytes = 1 << 20,
                                     .message_bytes = 1 << 20};
    const rp_test_client_options deaf = {.window = 1000, .hold_windows = true};
    rp_test_live live;
    rp_test_client *client = start(&live, &limits);
    rp_test_client *slow = rp_test_live_connect_with(&live, &deaf);
    size_t refusals = 0, answered = 0;

    (void)state;
    add_tables(&live); /* a page has half a MiB */
    for (int i = 0; i < 64; i++) (void)rp_test_client_get(slow, "GET", "/metrics");
    while (answered < 64) {
        (void)rp_test_client_step(slow, 100);
        answered = refusals = 0;
        for (rp_test_stream *call = slow->calls; call != NULL; call = call->next) {
            answered += call->http_status != 0;
            refusals += call->http_status == 503;
        }
    }
    assert_true(refusals > 50);
    assert_int_equal(refused(&live, RP_REFUSED_CONNECTION_QUEUED), refusals);
    assert_true(rp_queue_published(&live.server->budget) < 3 << 20);
    rp_test_client_free(slow);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

RP_TESTS(page_response)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_concurrent_requests_all_get_the_page),
        cmocka_unit_test(pages_are_made_while_other_clients_work),
        cmocka_unit_test(a_head_response_has_no_body),
        cmocka_unit_test(a_post_whose_headers_end_the_stream_needs_no_length),
        cmocka_unit_test(a_post_that_goes_on_needs_a_length),
        cmocka_unit_test(a_waiting_client_may_disconnect),
        cmocka_unit_test(the_server_may_stop_while_a_client_waits),
        cmocka_unit_test(unread_pages_stay_within_the_queue_budget),
        cmocka_unit_test(unread_pages_stay_within_the_limit_of_a_connection),
    };

    return cmocka_run_group_tests_name("page_response", tests, NULL, NULL);
}
