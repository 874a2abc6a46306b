/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that start, change and end. */
#include "reprise/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/live_server.h"

static size_t descriptor_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL) count++;
    (void)closedir(folder);
    return count;
}

static int ask_health(rp_test_client *client)
{
    return rp_test_client_unary(client, "/grpc.health.v1.Health/Check", "", 0);
}

static void a_server_starts_and_stops_many_times(void **state)
{
    (void)state;
    size_t before = 0;
    rp_test_live live;

    rp_test_live_init(&live, NULL);
    for (int i = 0; i < 60; i += (int)rp_test_step(1, i < 6 ? 1 : 5)) {
        assert_ok_err(rp_test_live_try(&live, NULL), &live.err);
        assert_true(live.port > 0);
        if (i % 3 == 0) { /* with and without somebody there */
            rp_test_client *client = rp_test_live_connect(&live);
            assert_non_null(client);
            assert_int_equal(ask_health(client), RP_OK);
            if (i % 2 == 0) rp_test_live_end(&live);
            rp_test_client_free(client);
        }
        rp_test_live_end(&live);
        if (i == 5) before = descriptor_count();
    }
    assert_int_equal(descriptor_count(), before);
    rp_test_live_stop(&live);
}

static void a_server_answers_on_tcp_and_on_a_unix_socket(void **state)
{
    (void)state;
    rp_test_live live;
    rp_test_client *tcp, *local;

    rp_test_live_start(&live, NULL);
    tcp = rp_test_live_connect(&live);
    local = rp_test_live_connect_unix(&live);
    assert_int_equal(ask_health(tcp), RP_OK);
    assert_int_equal(ask_health(local), RP_OK);
    rp_test_insert_items(tcp, "replay", 1, 5, 100);
    rp_test_insert_items(local, "replay", 6, 5, 100);
    assert_int_equal(rp_test_live_info(&live, "replay").size, 10);
    rp_test_client_free(tcp);
    rp_test_client_free(local);
    rp_test_live_stop(&live);
    assert_int_equal(access(live.path, F_OK), -1); /* the socket goes with its server */
}

static void free_takes_nothing(void **state)
{
    (void)state;
    rp_server_free(NULL);
}

static void a_server_starts_with_default_options(void **state)
{
    (void)state;
    rp_store *store = NULL;
    rp_server *server = NULL;
    rp_error err;
    rp_status st;

    assert_ok(rp_store_new(NULL, &store, NULL));
    st = rp_server_start(store, NULL, &server, &err);
    if (st == RP_OK)
        assert_int_equal(rp_server_port(server), 8000);
    else
        assert_fails(st, RP_UNAVAILABLE, &err, "8000"); /* somebody else has it */
    rp_server_free(server);
    rp_store_free(store);
}

typedef struct refusal {
    rp_server_options options;
    const char *address;
    rp_status status;
    const char *part;
} refusal;

static void every_bad_option_is_named_and_leaves_nothing(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{0}, "nonsense", RP_INVALID, "nonsense"},
        {{0}, "127.0.0.1:70000", RP_INVALID, "70000"},
        {{0}, "127.0.0.1:-1", RP_INVALID, "-1"},
        {{0}, "unix:", RP_INVALID, "unix"},
        {{0}, "fd:99999", RP_INVALID, "99999"},
        {{0}, "unix:/nonexistent/folder/socket", RP_NOT_FOUND, "/nonexistent/folder"},
        {{0}, "0.0.0.0:0", RP_PRECONDITION, "0.0.0.0:0"},
        {{.limits.header_fields = 7}, "127.0.0.1:0", RP_INVALID, "header_fields"},
        {{.limits.message_bytes = SIZE_MAX}, "127.0.0.1:0", RP_INVALID, "message_bytes"},
        {{.limits.stall_ms = -1}, "127.0.0.1:0", RP_INVALID, "stall_ms"},
        {{.security.certificate_file = "/x"}, "127.0.0.1:0", RP_INVALID, "key"},
        {{.security.key_file = "/x"}, "127.0.0.1:0", RP_INVALID, "certificate"},
        {{.security.client_ca_file = "/x"}, "127.0.0.1:0", RP_INVALID, "TLS"},
        {{.security.require_client_certificate = true}, "127.0.0.1:0", RP_INVALID, "CA"},
        {{.security.tokens_file = "/nonexistent/tokens"},
         "127.0.0.1:0",
         RP_NOT_FOUND,
         "/nonexistent/tokens"},
        {{.security.certificate_file = "/nonexistent/a", .security.key_file = "/nonexistent/b"},
         "127.0.0.1:0",
         RP_NOT_FOUND,
         "/nonexistent/"},
        {{.security.certificate_file = "/dev/null", .security.key_file = "/dev/null"},
         "127.0.0.1:0",
         RP_INVALID,
         "/dev/null"},
    };
    rp_test_live live;
    size_t before;

    rp_test_live_init(&live, NULL);
    before = descriptor_count();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_server_options options = cases[i].options;
        size_t alive = live.oom.live;
        options.addresses = &cases[i].address;
        options.address_count = 1;
        live.server = NULL;
        assert_fails(rp_test_live_try(&live, &options), cases[i].status, &live.err,
                     cases[i].part);
        assert_null(live.server);
        assert_int_equal(live.oom.live, alive);
    }
    assert_int_equal(descriptor_count(), before);
    rp_test_live_stop(&live);
}

static void an_insecure_server_may_listen_everywhere(void **state)
{
    (void)state;
    static const char *const address = "0.0.0.0:0";
    rp_server_options options = {.addresses = &address, .address_count = 1};
    rp_test_live live;
    rp_test_client *client;

    options.security.insecure = true;
    rp_test_live_start(&live, &options);
    client = rp_test_live_connect(&live);
    assert_int_equal(ask_health(client), RP_OK);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void too_many_addresses_are_refused(void **state)
{
    (void)state;
    const char *addresses[17];
    rp_server_options options = {.addresses = addresses, .address_count = 17};
    rp_test_live live;

    for (size_t i = 0; i < COUNT_OF(addresses); i++) addresses[i] = "127.0.0.1:0";
    rp_test_live_init(&live, NULL);
    assert_fails(rp_test_live_try(&live, &options), RP_INVALID, &live.err, "17");
    options.address_count = 16;
    assert_ok_err(rp_test_live_try(&live, &options), &live.err);
    rp_test_live_stop(&live);
}

static void an_address_in_use_is_unavailable(void **state)
{
    (void)state;
    rp_test_live live, second;
    char address[32];
    const char *addresses[] = {"127.0.0.1:0", address}; /* the first one is closed again */
    rp_server_options options = {.addresses = addresses, .address_count = 2};
    size_t before;

    rp_test_live_start(&live, NULL);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", live.port);
    rp_test_live_init(&second, NULL);
    before = descriptor_count();
    assert_fails(rp_test_live_try(&second, &options), RP_UNAVAILABLE, &second.err, address);
    assert_int_equal(descriptor_count(), before);
    rp_test_live_stop(&second);
    rp_test_live_stop(&live);
}

static void a_listening_socket_can_be_passed(void **state)
{
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char address[16];
    const char *addresses[] = {address};
    rp_server_options options = {.addresses = addresses, .address_count = 1};
    rp_test_live live;
    rp_test_client *client;

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
                listen(fd, 10) == 0);
    (void)snprintf(address, sizeof address, "fd:%d", fd);
    rp_test_live_start(&live, &options);
    assert_true(live.port > 0);
    client = rp_test_live_connect(&live);
    assert_int_equal(ask_health(client), RP_OK);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void reloads_back_to_back_do_not_hang(void **state)
{
    (void)state;
    rp_server_limits limits = {0};
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *stream;
    rp_buf message;

    rp_buf_init(&message, rp_allocator_default());
    rp_test_live_start(&live, NULL);
    client = rp_test_live_connect(&live);
    stream = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
    for (uint64_t i = 1; i <= 200; i++) {
        limits.items = i;
        assert_ok_err(rp_server_reload(live.server, &limits, &live.err), &live.err);
        assert_ok_err(rp_server_reload(live.server, NULL, &live.err), &live.err);
        if (i % 20 == 0) { /* streams that are open go on */
            rp_test_put_insert(&message, "replay", i, 10);
            rp_test_stream_put(stream, &message);
            assert_true(rp_test_await_confirmed(stream, i / 20));
        }
    }
    rp_test_client_free(client);
    rp_test_live_stop(&live);
    rp_buf_deinit(&message);
}

static void a_reload_takes_new_limits_and_a_bad_one_changes_nothing(void **state)
{
    (void)state;
    rp_server_limits limits = {.keys = 1};
    rp_test_live live;
    rp_test_client *client;
    rp_buf message;
    bool refused = false;

    rp_buf_init(&message, rp_allocator_default());
    rp_test_live_start(&live, NULL);
    client = rp_test_live_connect(&live);
    rp_test_put_update(&message, "replay", 1, 1.0);
    rp_test_put_update(&message, "replay", 2, 1.0);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "MutatePriorities",
                                          message.data, message.size),
                     RP_OK);
    assert_ok(rp_server_reload(live.server, &limits, NULL));
    for (int i = 0; i < 1000 && !refused; i++) /* a loop hears of it soon */
        refused = rp_test_client_unary(client, RP_TEST_REVERB "MutatePriorities", message.data,
                                       message.size) == RP_NO_RESOURCE;
    assert_true(refused);

    limits.keys = SIZE_MAX;
    assert_fails(rp_server_reload(live.server, &limits, &live.err), RP_INVALID, &live.err,
                 "keys");
    rp_test_client_idle(client, 20);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "MutatePriorities",
                                          message.data, message.size),
                     RP_NO_RESOURCE);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
    rp_buf_deinit(&message);
}

typedef struct reloader {
    rp_server *server;
    size_t failures;
} reloader;

static void *reload_often(void *user)
{
    reloader *r = user;

    for (size_t i = 1; i <= 300; i++) {
        rp_server_limits limits = {.items = i};
        if (rp_server_reload(r->server, &limits, NULL) != RP_OK) r->failures++;
    }
    return NULL;
}

static void several_threads_may_reload_under_load(void **state)
{
    enum { THREADS = 3 };
    (void)state;
    rp_test_live live;
    rp_test_client *client;
    reloader reloaders[THREADS];
    pthread_t threads[THREADS];

    rp_test_live_start(&live, NULL);
    client = rp_test_live_connect(&live);
    for (int i = 0; i < THREADS; i++) {
        reloaders[i] = (reloader){.server = live.server};
        assert_int_equal(pthread_create(&threads[i], NULL, reload_often, &reloaders[i]), 0);
    }
    for (int i = 0; i < 100; i++) assert_int_equal(ask_health(client), RP_OK);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(reloaders[i].failures, 0);
    }
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void health_can_be_set(void **state)
{
    (void)state;
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *page;

    rp_test_live_start(&live, NULL);
    client = rp_test_live_connect(&live);
    rp_server_set_health(live.server, RP_HEALTH_LOADING, "reading a \"file\"");
    page = rp_test_client_get(client, "GET", "/healthz");
    assert_true(rp_test_stream_wait(page));
    assert_int_equal(page->http_status, 503);
    rp_server_set_health(live.server, RP_HEALTH_DEGRADED, NULL);
    page = rp_test_client_get(client, "GET", "/healthz");
    assert_true(rp_test_stream_wait(page));
    assert_int_equal(page->http_status, 200);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

static void count_lines(void *ctx, rp_log_level level, const char *event, const char *fields)
{
    (void)level, (void)event, (void)fields;
    atomic_fetch_add((atomic_size_t *)ctx, 1);
}

static void refusals_are_logged(void **state)
{
    (void)state;
    atomic_size_t lines = 0;
    rp_server_options options = {.log = {count_lines, &lines}};
    rp_test_live live;
    rp_test_client *client;

    rp_test_live_start(&live, &options);
    client = rp_test_live_connect(&live);
    assert_int_equal(rp_test_client_unary(client, "/no.Such/Method", "", 0), RP_UNIMPLEMENTED);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
    assert_true(atomic_load(&lines) >= 1);
}

RP_TESTS(server)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_starts_and_stops_many_times),
        cmocka_unit_test(a_server_answers_on_tcp_and_on_a_unix_socket),
        cmocka_unit_test(free_takes_nothing),
        cmocka_unit_test(a_server_starts_with_default_options),
        cmocka_unit_test(every_bad_option_is_named_and_leaves_nothing),
        cmocka_unit_test(an_insecure_server_may_listen_everywhere),
        cmocka_unit_test(too_many_addresses_are_refused),
        cmocka_unit_test(an_address_in_use_is_unavailable),
        cmocka_unit_test(a_listening_socket_can_be_passed),
        cmocka_unit_test(reloads_back_to_back_do_not_hang),
        cmocka_unit_test(a_reload_takes_new_limits_and_a_bad_one_changes_nothing),
        cmocka_unit_test(several_threads_may_reload_under_load),
        cmocka_unit_test(health_can_be_set),
        cmocka_unit_test(refusals_are_logged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
