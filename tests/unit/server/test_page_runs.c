/* SPDX-License-Identifier: Apache-2.0 */
/* The pages about runs, and the JSON of reports. */
#include "runs/runs.h"
#include "server/http/pages.h"
#include "server/http/run_body.h"
#include "store/store.h"
#include "support/hosted.h"

static rp_test_hosted hosted;
static rp_page_response answer;

static int set_up(void **state)
{
    (void)state;
    rp_test_hosted_init(&hosted, true);
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

static const char *finish(const rp_page_request *request, const char *body)
{
    rp_page_ask ask = {.route = NULL};

    rp_buf_init(&ask.body, rp_allocator_default());
    if (!rp_page_respond_now(&hosted.host, request, &answer, &ask)) {
        rp_buf_text(&ask.body, body);
        rp_page_make(&hosted.host, &ask, &answer);
    }
    rp_buf_deinit(&ask.body);
    rp_buf_append(&answer.body, "", 1);
    answer.body.size--;
    return (const char *)answer.body.data;
}

static const char *get(const char *path)
{
    return finish(&(rp_page_request){.method = "GET", .path = path}, "");
}

/* Reports to a run whose name needs no escapes. */
static const char *post(const char *run, const char *body)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/runs/%s", run);
    return finish(
        &(rp_page_request){.method = "POST", .path = path, .confirm = {run, strlen(run)}},
        body);
}

static void assert_status(int status, const char *body, const char *part)
{
    if (answer.status != status || strstr(body, part) == NULL)
        fail_msg("%d %s, not %d %s", answer.status, body, status, part);
}

static void reports_are_read_back(void **state)
{
    (void)state;
    assert_status(200,
                  post("a", "{\"scalars\":[{\"name\":\"loss\",\"step\":3,\"value\":0.5,"
                            "\"time\":7},{\"name\":\"q\",\"value\":null,\"more\":[{}]}],"
                            "\"actors\":[{\"name\":\"w\",\"return\":5,\"version\":-1}],"
                            "\"episode\":{\"env\":\"catch\",\"states\":[[1,2],[3,null]]},"
                            "\"other\":true}"),
                  "{\"dropped\":0}");
    assert_status(200, get("/v1/runs"), "{\"name\":\"a\",");
    assert_status(
        200, get("/v1/runs/a"),
        "\"loss\":{\"step\":[3],\"time\":[7.000],\"value\":[0.5]},\"q\":{\"step\":[0],");
    assert_status(200, get("/v1/runs/a?after=2"),
                  "\"series\":{},\"actors\":[{\"name\":\"w\","
                  "\"epsilon\":null,\"return\":5,");
    assert_status(200, get("/v1/runs/a?after=2"),
                  "\"episode\":{\"number\":3,\"env\":\"catch\",\"states\":[[1,2],[3,null]]}}");
    assert_null(strstr(get("/v1/runs/a?after=3"), "episode"));
    assert_status(200, get("/v1/runs/a.csv"), "name,step,time,value\n\"loss\",3,7.000,0.5\n");
    assert_string_equal(answer.content_type, "text/csv; charset=utf-8");
    assert_int_equal(get("/v1/runs/a.tfevents") != NULL, 1);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.content_type, "application/octet-stream");
    assert_true(answer.body.size > 60);
}

static void a_dot_of_a_name_is_escaped(void **state)
{
    (void)state;
    assert_status(200, post("x", "{\"scalars\":[{\"name\":\"v\"}]}"), "dropped");
    (void)finish(&(rp_page_request){.method = "POST",
                                    .path = "/v1/runs/x%2Ecsv",
                                    .confirm = {"x.csv", 5}},
                 "{}");
    assert_int_equal(answer.status, 200);
    assert_status(200, get("/v1/runs/x.csv"), "\"v\",0,");
    assert_status(200, get("/v1/runs/x%2Ecsv"), "{\"name\":\"x.csv\"");
}

static void unknown_runs_and_wrong_methods_are_refused(void **state)
{
    (void)state;
    assert_status(404, get("/v1/runs/none"), "there is no run 'none'");
    assert_status(404, get("/v1/runs/none.csv"), "there is no run 'none'");
    assert_status(400, get("/v1/runs/none?after=x"), "after");
    (void)finish(&(rp_page_request){.method = "POST", .path = "/v1/runs/a"}, "{}");
    assert_int_equal(answer.status, 400); /* without the header x-reprise-confirm */
    hosted.observed.view.store = NULL;
    assert_status(503, get("/v1/runs"), "loading");
    assert_status(503, post("a", "{}"), "loading");
}

static void malformed_bodies_change_nothing(void **state)
{
    static const char *const bodies[][2] = {
        {"", "at byte 0"},
        {"[]", "at byte 0"},
        {"{", "at byte 1"},
        {"{\"scalars\":{}}", "at byte 11"},
        {"{\"scalars\":[{\"name\":\"\"}]}", "empty"},
        {"{\"scalars\":[{\"step\":1}]}", "the name of a scalar is empty"},
        {"{\"scalars\":[{\"name\":\"a\",\"step\":1.5}]}", "whole number"},
        {"{\"scalars\":[{\"name\":\"a\",\"step\":9223372036854775808}]}", "too large"},
        {"{\"scalars\":[{\"name\":\"a\",\"value\":1e999}]}", "too large"},
        {"{\"scalars\":[{\"name\":\"a\",\"value\":NaN}]}", "number"},
        {"{\"scalars\":[{\"name\":\"a\",\"time\":-1}]}", "time"},
        {"{\"scalars\":[{\"name\":\"a\\u0000b\"}]}", "zero byte"},
        {"{\"scalars\":[{\"name\":\"\xff\"}]}", "UTF-8"},
        {"{\"actors\":[{\"name\":7}]}", "string"},
        {"{\"episode\":{\"env\":\"e\",\"states\":[]}}", "0 numbers"},
        {"{\"episode\":{\"env\":\"e\",\"states\":[[]]}}", "0 numbers"},
        {"{\"episode\":{\"env\":\"e\",\"states\":[[1],[1,2]]}}", "different lengths"},
        {"{\"episode\":{\"states\":[[1]]}}", "environment"},
        {"{}x", "at byte 2"},
    };
    rp_runs_info info;

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_status(400, post("a", bodies[i][0]), bodies[i][1]);
    rp_runs_get_info(rp_store_runs(hosted.observed.view.store), &info);
    assert_int_equal(info.count, 0);
}

static void counts_of_a_body_are_bounded(void **state)
{
    static rp_run_body body;
    rp_body in;
    rp_buf text;

    (void)state;
    rp_buf_init(&text, rp_allocator_default());
    rp_buf_text(&text, "{\"scalars\":[{\"name\":\"a\"}");
    for (int i = 0; i < RP_REPORT_SCALARS; i++) rp_buf_text(&text, ",{\"name\":\"a\"}");
    rp_buf_text(&text, "]}");
    rp_body_init(&in, text.data, text.size);
    assert_false(rp_run_body_read(&in, (rp_string){"a", 1}, &body));
    assert_non_null(strstr(in.what, "1024 scalars"));

    rp_buf_clear(&text);
    rp_buf_text(&text, "{\"episode\":{\"env\":\"e\",\"states\":[[1");
    for (int i = 0; i < RP_EPISODE_NUMBERS; i++) rp_buf_text(&text, ",1");
    rp_buf_text(&text, "]]}}");
    rp_body_init(&in, text.data, text.size);
    assert_false(rp_run_body_read(&in, (rp_string){"a", 1}, &body));
    assert_non_null(strstr(in.what, "16384 numbers"));
    rp_buf_deinit(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(page_runs)
{
    const struct CMUnitTest tests[] = {
        TEST(reports_are_read_back),
        TEST(a_dot_of_a_name_is_escaped),
        TEST(unknown_runs_and_wrong_methods_are_refused),
        TEST(malformed_bodies_change_nothing),
        TEST(counts_of_a_body_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
