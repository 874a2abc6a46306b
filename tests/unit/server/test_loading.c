/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose store is still being loaded: it listens, and reports that it loads. */
#include <stdio.h>

#include "support/live_server.h"
#include "wire/health_messages.h"

static int health_of(rp_test_client *client)
{
    rp_test_stream *call = rp_test_client_open(client, "/grpc.health.v1.Health/Check");
    const uint8_t *data;
    size_t size;

    rp_test_stream_send(call, "", 0);
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_OK);
    data = rp_test_stream_message(call, 0, &size);
    return size == 2 && data[0] == 8 ? data[1] : 0;
}

/* The body of a page, which is short. */
static int get_page(rp_test_client *client, const char *path, char *text, size_t room)
{
    rp_test_stream *call = rp_test_client_get(client, "GET", path);
    size_t size;

    assert_true(rp_test_stream_wait(call));
    size = call->in.size < room - 1 ? call->in.size : room - 1;
    if (size > 0) memcpy(text, call->in.data, size);
    text[size] = '\0';
    return call->http_status;
}

static void calls_are_refused_while_loading(void **state)
{
    (void)state;
    const rp_server_options options = {.loading = true};
    rp_test_client *client;
    rp_test_live live;

    rp_test_live_start(&live, &options);
    client = rp_test_live_connect(&live);
    rp_server_set_health(live.server, RP_HEALTH_LOADING, "42 % of 3 GiB, 7 s left");
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0),
                     RP_UNAVAILABLE);
    assert_non_null(strstr(client->calls->text, "loading its data: 42 %25 of 3 GiB, 7 s left"));
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REPLAY "Status", "", 0),
                     RP_UNAVAILABLE);
    assert_int_equal(health_of(client), RP_WIRE_NOT_SERVING);
    rp_server_set_health(live.server, RP_HEALTH_SERVING, NULL);
    assert_int_equal(health_of(client), RP_WIRE_SERVING);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    rp_test_insert_items(client, "replay", 1, 3, 10);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void pages_report_loading_without_reading_the_store(void **state)
{
    (void)state;
    static char text[1 << 16];
    const rp_server_options options = {.loading = true};
    rp_test_client *client;
    rp_test_live live;

    rp_test_live_start(&live, &options);
    client = rp_test_live_connect(&live);
    assert_int_equal(get_page(client, "/healthz", text, sizeof text), 503);
    assert_string_equal(text, "loading\n");
    rp_server_set_health(live.server, RP_HEALTH_LOADING, "redoing");
    assert_int_equal(get_page(client, "/healthz", text, sizeof text), 503);
    assert_string_equal(text, "loading: redoing\n");
    assert_int_equal(get_page(client, "/metrics", text, sizeof text), 200);
    assert_non_null(strstr(text, "reprise_health{state=\"loading\"} 1"));
    assert_null(strstr(text, "table=\"replay\""));
    assert_int_equal(get_page(client, "/v1/info", text, sizeof text), 200);
    assert_non_null(strstr(text, "\"durable\":null,\"rollouts\":[],\"tables\":[]"));
    rp_server_set_health(live.server, RP_HEALTH_SERVING, NULL);
    assert_int_equal(get_page(client, "/metrics", text, sizeof text), 200);
    assert_non_null(strstr(text, "table=\"replay\""));
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void a_server_that_drains_while_loading_stays_unavailable(void **state)
{
    (void)state;
    const rp_server_options options = {.loading = true};
    rp_test_client *client;
    rp_test_live live;

    rp_test_live_start(&live, &options);
    client = rp_test_live_connect(&live);
    rp_server_set_health(live.server, RP_HEALTH_DRAINING, "shutting down");
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0),
                     RP_UNAVAILABLE);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void a_durable_store_can_be_set_only_while_loading(void **state)
{
    (void)state;
    rp_test_live live;
    rp_error err;

    rp_test_live_start(&live, NULL);
    assert_int_equal(rp_server_set_durable(live.server, (rp_durable *)(void *)&live, &err),
                     RP_PRECONDITION);
    assert_int_equal(rp_server_set_durable(live.server, NULL, &err), RP_PRECONDITION);
    rp_test_live_stop(&live);
}

RP_TESTS(loading)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_refused_while_loading),
        cmocka_unit_test(pages_report_loading_without_reading_the_store),
        cmocka_unit_test(a_server_that_drains_while_loading_stays_unavailable),
        cmocka_unit_test(a_durable_store_can_be_set_only_while_loading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
