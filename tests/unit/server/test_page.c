/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/page.h"

#include "support/hosted.h"
#include "support/strict.h"

static rp_test_hosted hosted;
static rp_page_response answer;

static int set_up(void **state)
{
    (void)state;
    rp_test_hosted_init(&hosted, false);
    memset(&answer, 0, sizeof answer);
    rp_buf_init(&answer.body, rp_allocator_default());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_buf_deinit(&answer.body);
    rp_test_hosted_deinit(&hosted);
    return 0;
}

/* Asks, and returns the body, ended by a zero that it does not count. */
static const char *ask(const char *method, const char *path, const char *header)
{
    rp_page_request request = {.method = method, .path = path, .now_ns = 1};

    request.shown.authorization = header;
    request.shown.peer = "10.0.0.1:1";
    rp_test_render(&hosted, &request, &answer);
    assert_non_null(answer.content_type);
    assert_int_equal(answer.head_only, strcmp(method, "HEAD") == 0);
    assert_true(answer.body.size > 0 && !answer.body.bad);
    rp_buf_append(&answer.body, "", 1);
    answer.body.size--;
    return (const char *)answer.body.data;
}

static uint64_t refused(rp_refusal reason)
{
    return rp_counter_get(&hosted.host.counters->refusals[reason]);
}

static void health_is_200_or_503_and_open_to_all(void **state)
{
    rp_server_view *view = &hosted.observed.view;

    (void)state;
    view->health = RP_HEALTH_SERVING;
    view->why[0] = '\0';
    assert_string_equal(ask("GET", "/healthz", NULL), "serving\n");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.content_type, "text/plain; charset=utf-8");
    view->health = RP_HEALTH_DEGRADED;
    memcpy(view->why, "disk full", 10);
    assert_string_equal(ask("GET", "/healthz", "Bearer wrong"), "degraded: disk full\n");
    assert_int_equal(answer.status, 200);
    view->health = RP_HEALTH_LOADING;
    assert_string_equal(ask("GET", "/healthz?verbose", NULL), "loading: disk full\n");
    assert_int_equal(answer.status, 503);
    view->health = RP_HEALTH_DRAINING;
    view->why[0] = '\0';
    assert_string_equal(ask("HEAD", "/healthz", NULL), "draining\n");
    assert_int_equal(answer.status, 503);
}

static void metrics_and_info_need_the_role_read(void **state)
{
    static const char *const paths[] = {"/metrics", "/v1/info"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        (void)ask("GET", paths[i], NULL);
        assert_int_equal(answer.status, 401);
        assert_string_equal(answer.extra_name, "www-authenticate");
        assert_string_equal(answer.extra_value, "Bearer");
        assert_non_null(strstr((char *)answer.body.data, "this needs the role read"));
        (void)ask("GET", paths[i], "Bearer nothing");
        assert_int_equal(answer.status, 401);
        (void)ask("GET", paths[i], "Bearer reader");
        assert_int_equal(answer.status, 200);
        assert_null(answer.extra_name);
    }
    assert_int_equal(refused(RP_REFUSED_UNAUTHENTICATED), 4);
}

static void certificates_open_pages_too(void **state)
{
    rp_page_request request = {.method = "GET", .path = "/v1/info", .now_ns = 1};

    (void)state;
    request.shown.certificate = "dash";
    rp_test_render(&hosted, &request, &answer);
    assert_int_equal(answer.status, 200);
    request.shown.certificate = "somebody";
    rp_test_render(&hosted, &request, &answer);
    assert_int_equal(answer.status, 403);
    assert_int_equal(refused(RP_REFUSED_DENIED), 1);
}

static void guessing_tokens_at_pages_is_rate_limited(void **state)
{
    (void)state;
    for (int i = 0; i < RP_GATE_BURST; i++) {
        (void)ask("GET", "/metrics", "Bearer nothing");
        assert_int_equal(answer.status, 401);
    }
    (void)ask("GET", "/metrics", "Bearer reader");
    assert_int_equal(answer.status, 429);
    assert_string_equal(answer.extra_name, "retry-after");
    assert_string_equal(answer.extra_value, "6");
    assert_non_null(strstr((char *)answer.body.data, "try again in 6 seconds"));
    assert_int_equal(refused(RP_REFUSED_AUTH_BRAKE), 1);
    (void)ask("GET", "/healthz", "Bearer reader"); /* which is open */
    assert_int_equal(answer.status, 200);
}

static void metrics_are_prometheus_text(void **state)
{
    const char *text = ask("GET", "/metrics?x=y", "Bearer reader");

    (void)state;
    assert_string_equal(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_null(rp_test_prometheus_mistake(text, answer.body.size));
    assert_true(rp_test_prometheus_value(text, "reprise_table_size{table=\"replay\"}") == 5);
}

static void info_is_json(void **state)
{
    const char *text = ask("GET", "/v1/info", "Bearer reader");

    (void)state;
    assert_string_equal(answer.content_type, "application/json");
    assert_null(rp_test_json_mistake(text, answer.body.size));
    assert_non_null(strstr(text, "\"name\":\"replay\""));
}

static void a_browser_gets_the_files_of_the_page(void **state)
{
    static const char *const paths[] = {"/", "/app.css", "/app.js", "/uplot.js"};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        rp_page_request request = {.method = "GET", .path = paths[i], .now_ns = 1};

        rp_test_render(&hosted, &request, &answer);
        assert_int_equal(answer.status, 200);
        assert_true(answer.is_file && answer.file.size > 1000);
        assert_string_equal(answer.extra_name, "etag");
        assert_non_null(strstr(answer.content_type, "charset=utf-8"));

        request.if_none_match = (rp_string){answer.extra_value, strlen(answer.extra_value)};
        rp_test_render(&hosted, &request, &answer);
        assert_int_equal(answer.status, 304);
        assert_int_equal(answer.file.size, 0);
    }
    (void)ask("POST", "/app.js", NULL);
    assert_int_equal(answer.status, 405);
}

static void the_index_lists_the_pages(void **state)
{
    const char *text = ask("GET", "/v1", NULL);

    (void)state;
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(text, "reprise 1.2.3: degraded"));
    assert_non_null(strstr(text, "/healthz"));
    assert_non_null(strstr(text, "/metrics"));
    assert_non_null(strstr(text, "/v1/info"));
}

static void other_paths_are_not_found(void **state)
{
    static const char *const paths[] = {
        "",           "/healthz/",
        "/health",    "/healthzz",
        "//healthz",  "/metrics/..",
        "/v1/info/x", "/v1/",
        "/METRICS",   "/deepmind/%2e%2e/etc",
        "?",          "*",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        (void)ask("GET", paths[i], "Bearer reader");
        assert_int_equal(answer.status, 404);
    }
}

static void other_methods_are_not_allowed(void **state)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS",
                                          "get",  "",    "TRACE"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        (void)ask(methods[i], "/healthz", NULL);
        assert_int_equal(answer.status, 405);
        assert_string_equal(answer.extra_name, "allow");
        assert_string_equal(answer.extra_value, "GET, HEAD");
    }
}

static void a_response_keeps_nothing_of_the_previous_one(void **state)
{
    (void)state;
    (void)ask("HEAD", "/metrics", NULL);
    assert_int_equal(answer.status, 401);
    assert_string_equal(ask("GET", "/nothing", NULL),
                        "there is no such page; docs/http.md lists all pages\n");
    assert_null(answer.extra_name);
}

/* With less and less memory there is an answer all the same. */
static void a_page_without_memory_is_unavailable(void **state)
{
    static const char *const paths[] = {"/metrics", "/v1/info", "/healthz", "/v1", "/none"};
    size_t failures = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        for (size_t room = 0; room < 40; room++) {
            rp_test_oom o = RP_TEST_OOM_INIT(room);
            rp_allocator alloc = rp_test_oom_allocator(&o);
            rp_page_request request = {.method = "GET", .path = paths[i]};
            rp_page_response a = {.status = 0};

            request.shown.authorization = "Bearer reader";
            rp_buf_init(&a.body, &alloc);
            rp_test_render(&hosted, &request, &a);
            assert_true(a.status == 200 || a.status == 503 || a.status == 404);
            assert_non_null(a.content_type);
            if (a.status == 200) assert_true(a.body.size > 0 && !a.body.bad);
            failures += a.status == 503;
            rp_buf_deinit(&a.body);
            assert_int_equal(o.live, 0);
        }
    assert_true(failures > 10);
    assert_int_equal(refused(RP_REFUSED_MEMORY), failures);
}

static rp_string text(const char *host)
{
    return (rp_string){host, host != NULL ? strlen(host) : 0};
}

static void own_names_are_addresses_local_names_and_those_listed(void **state)
{
    static const char *const own[] = {
        "127.0.0.1",        "127.0.0.1:8000",     "[::1]",       "[::1]:8000",
        "localhost",        "LOCALHOST",          "replay:8000", "a.localhost",
        "A.LocalHost:80",   "replay.example.com", "b.example",   "B.EXAMPLE:1",
        "replay_1-a:65535",
    };
    static const char *const others[] = {
        "",
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "[evil.example]",
        "[::1",
        ".localhost",
        "localhost.",
        "example.com",
        "b.example.",
        "1.2.3",
        "[]",
        ":8000",
        "xlocalhost.evil",
        "b.exampl",
        "a@localhost",
        "evil@replay",
        "evil.example#.localhost",
        "evil.example/.localhost",
        "a..localhost",
        "..localhost",
        "a b",
        "replay%00",
        "replay,evil",
        "localhost:",
        "localhost:http",
        "localhost:80@evil.example",
        "localhost:65536",
        "localhost:000080",
        "localhost:-1",
        "localhost:1:2",
        "[::1]evil.example",
        "[::1]8000",
        "[::1]:",
        "[::1%lo]",
        "[127.0.0.1]",
        "::1",
        "caf\xc3\xa9",
    };
    static const rp_string zeros[] = {
        {"localhost\0", 10}, {"localhost\0.evil.example", 23}, {"127.0.0.1\0", 10},
        {"[::1\0]", 6},      {"localhost:80\0", 13},           {"\0", 1},
    };
    static const char listed[] = "replay.example.com,b.example";

    (void)state;
    assert_true(rp_page_is_own_name((rp_string){0}, NULL)); /* HTTP/1.0 */
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_true(rp_page_is_own_name(text(own[i]), listed));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(rp_page_is_own_name(text(others[i]), listed));
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        assert_false(rp_page_is_own_name(zeros[i], listed));
    assert_false(rp_page_is_own_name(text("b.example"), NULL));
    assert_false(rp_page_is_own_name(text("b.example"), ""));
}

static int status_under(const char *host, const char *path, const char *header)
{
    rp_page_request request = {.method = "GET", .path = path, .host = text(host), .now_ns = 1};

    request.shown.authorization = header;
    request.shown.peer = "10.0.0.1:1";
    rp_test_render(&hosted, &request, &answer);
    return answer.status;
}

static void without_credentials_pages_are_refused_under_other_host_names(void **state)
{
    (void)state;
    rp_test_hosted_deinit(&hosted);
    rp_test_hosted_init(&hosted, true);
    assert_int_equal(status_under("evil.example:8000", "/metrics", NULL), 421);
    assert_int_equal(status_under("evil.example", "/v1/info", NULL), 421);
    assert_int_equal(refused(RP_REFUSED_PAGE_HOST), 2);
    assert_int_equal(status_under("evil.example", "/healthz", NULL), 200);
    assert_int_equal(status_under("127.0.0.1:8000", "/metrics", NULL), 200);
    assert_int_equal(status_under(NULL, "/metrics", NULL), 200);
    hosted.host.names = "evil.example";
    assert_int_equal(status_under("evil.example:8000", "/metrics", NULL), 200);
    assert_int_equal(refused(RP_REFUSED_PAGE_HOST), 2);
}

static void with_credentials_the_host_name_does_not_matter(void **state)
{
    (void)state;
    assert_int_equal(status_under("evil.example", "/metrics", "Bearer reader"), 200);
    assert_int_equal(status_under("evil.example", "/metrics", NULL), 401);
}

RP_TESTS(page)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(health_is_200_or_503_and_open_to_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(metrics_and_info_need_the_role_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(certificates_open_pages_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(guessing_tokens_at_pages_is_rate_limited, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(metrics_are_prometheus_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(info_is_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_browser_gets_the_files_of_the_page, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_index_lists_the_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_paths_are_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_methods_are_not_allowed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_response_keeps_nothing_of_the_previous_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_page_without_memory_is_unavailable, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(own_names_are_addresses_local_names_and_those_listed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            without_credentials_pages_are_refused_under_other_host_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_credentials_the_host_name_does_not_matter, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
