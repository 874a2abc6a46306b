/* SPDX-License-Identifier: Apache-2.0 */
/* The pages about a table, an item and the connections, and requests that change something. */
#include "server/http/pages.h"

#include "support/hosted.h"
#include "support/strict.h"

static rp_test_hosted hosted;
static rp_page_response answer;
static rp_action acted; /* the last one */
static size_t acts;
static rp_status act_status;
static bool act_is_late;

static rp_status act(void *ctx, rp_action *action, rp_error *err)
{
    (void)ctx;
    acts++;
    acted = *action;
    action->is_late = act_is_late;
    if (act_status != RP_OK) (void)snprintf(err->text, sizeof err->text, "no luck");
    return act_status;
}

static int set_up(void **state)
{
    (void)state;
    rp_test_hosted_init(&hosted, false);
    hosted.host.act = act;
    acts = 0;
    act_status = RP_OK;
    act_is_late = false;
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

/* Makes a request and returns the body of its response. */
static const char *request(const char *method, const char *path, const char *header,
                           const char *confirm, const char *body)
{
    rp_page_request r = {.method = method, .path = path, .now_ns = 1};
    rp_page_ask ask;

    r.shown.authorization = header;
    if (confirm != NULL) r.confirm = (rp_string){confirm, strlen(confirm)};
    rp_buf_init(&ask.body, rp_allocator_default());
    if (!rp_page_respond_now(&hosted.host, &r, &answer, &ask)) {
        if (body != NULL) rp_buf_text(&ask.body, body);
        rp_page_make(&hosted.host, &ask, &answer);
    }
    rp_buf_deinit(&ask.body);
    assert_true(answer.body.size > 0 && !answer.body.bad);
    rp_buf_append(&answer.body, "", 1);
    answer.body.size--;
    if (strcmp(answer.content_type, "application/json") == 0)
        assert_null(rp_test_json_mistake((const char *)answer.body.data, answer.body.size));
    return (const char *)answer.body.data;
}

static const char *get(const char *path)
{
    return request("GET", path, "Bearer reader", NULL, NULL);
}

static const char *post(const char *path, const char *confirm, const char *body)
{
    return request("POST", path, "Bearer boss", confirm, body);
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("there is no %s in %s", part, text);
}

static void a_table_is_described_with_its_items(void **state)
{
    const char *text = get("/v1/tables/replay");

    (void)state;
    assert_int_equal(answer.status, 200);
    expect(text, "\"name\":\"replay\",\"path\":\"/v1/tables/replay\"");
    expect(text, "\"sampled_items\":5");
    expect(text, "\"priorities\":{\"bounds\":[1,1],\"counts\":[5]}");
    expect(text, "\"times_sampled\":{\"bounds\":[0,1,2],\"counts\":[4,1]}");
    expect(text, "\"recent\":[{\"key\":\"5\",\"priority\":1,\"probability\":0.2,");
    text = get("/v1/tables/empty");
    expect(
        text,
        "\"calls\":[{\"client\":\"this process\",\"kind\":\"sample\",\"wanted\":2,\"done\":0");
    expect(text, "\"recent\":[]");
}

/* The path in /v1/info leads to the table, whatever its name is. */
static void odd_names_have_paths(void **state)
{
    const char *text = get("/v1/tables/a%20%22b%22%5C%0A%FF%C3%A4");

    (void)state;
    assert_int_equal(answer.status, 200);
    expect(text, "\"path\":\"/v1/tables/a%20%22b%22%5C%0A%FF%C3%A4\"");
    (void)get("/v1/tables/a%20b");
    assert_int_equal(answer.status, 404);
    (void)get("/v1/tables/%3Cscript%3E");
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.content_type, "text/plain; charset=utf-8");
    (void)get("/v1/tables/%zz");
    assert_int_equal(answer.status, 400);
}

static void an_item_is_shown_with_its_data(void **state)
{
    const char *text = get("/v1/tables/replay/items/3");

    (void)state;
    assert_int_equal(answer.status, 200);
    expect(text, "\"table\":\"replay\",\"key\":\"3\",\"priority\":1");
    expect(text, "\"column_count\":1,\"columns\":[{\"name\":null,\"dtype\":");
    expect(text, "\"slices\":\"1 row in 1 slice of 1 chunk\",\"data\":\"");
    expect(text, "\"truncated\":false");
    (void)get("/v1/tables/replay/items/99");
    assert_int_equal(answer.status, 404);
    (void)get("/v1/tables/none/items/3");
    assert_int_equal(answer.status, 404);
    (void)get("/v1/tables/replay/items/18446744073709551616");
    assert_int_equal(answer.status, 400);
    (void)get("/v1/tables/replay/items/-1");
    assert_int_equal(answer.status, 400);
}

/* An item with 1 MiB: 64 KiB of it are shown, in base64. */
static void large_data_is_cut(void **state)
{
    rp_table *t = rp_store_find_table(hosted.observed.bed.store, (rp_string){"replay", 6});
    rp_trajectory *large =
        rp_test_blob_trajectory(&hosted.observed.bed.alloc, 77, 77, (size_t)1 << 20);
    const char *text, *data;

    (void)state;
    rp_test_put(t, 77, 1, large);
    rp_trajectory_unref(large);
    rp_table_unref(t);
    text = get("/v1/tables/replay/items/77");
    expect(text, "\"truncated\":true");
    data = strstr(text, "\"data\":\"");
    assert_non_null(data);
    /* one row: it does not fit, so nothing of it is shown; or rows of bytes up to the bound */
    assert_true(strcspn(data + 8, "\"") <= 4 * ((64 << 10) + 2) / 3);
    assert_true(answer.body.size < 100000);
}

static void without_a_store_tables_are_unavailable(void **state)
{
    (void)state;
    hosted.observed.view.store = NULL;
    (void)get("/v1/tables/replay");
    assert_int_equal(answer.status, 503);
    (void)get("/v1/tables/replay/items/1");
    assert_int_equal(answer.status, 503);
    (void)get("/v1/clients");
    assert_int_equal(answer.status, 200);
}

static void connections_are_listed_with_what_they_wait_for(void **state)
{
    rp_client client = {.id = 0};
    rp_clients clients;
    const char *text;

    (void)state;
    rp_clients_init(&clients);
    rp_clients_enter(&clients, &client, "10.0.0.1:7", RP_CLIENT_H2, 0);
    hosted.host.clients = &clients;
    hosted.observed.parked.client = client.id; /* the sample that waits for 'empty' */
    rp_client_count_call(&client, RP_ROLE_WRITE);
    text = get("/v1/clients");
    expect(text, "{\"connections\":1,\"clients\":[{\"id\":1,\"address\":\"10.0.0.1:7\","
                 "\"role\":\"write\",\"protocol\":\"HTTP/2\",\"since_s\":");
    expect(text, "\"calls\":1,\"bytes_in\":0,\"bytes_out\":0,"
                 "\"waits_for\":\"to sample 'empty'\"}");
    expect(get("/v1/tables/empty"), "\"calls\":[{\"client\":\"10.0.0.1:7\"");
    expect(get("/v1/info"), "\"calls\":[{\"client\":\"10.0.0.1:7\"");
    rp_clients_leave(&clients, &client);
    expect(get("/v1/clients"), "{\"connections\":0,\"clients\":[]}");
    rp_clients_deinit(&clients);
}

static void changes_are_made_and_reported(void **state)
{
    (void)state;
    assert_string_equal(post("/v1/tables/replay/pause", "replay", NULL),
                        "{\"done\":\"table 'replay' is paused: inserts and samples\"}\n");
    assert_true(acted.kind == RP_ACTION_PAUSE && acted.sides == 3 && acted.table.size == 6);
    assert_string_equal(post("/v1/tables/a%2Fb/resume", "a%2Fb", "{\"inserts\":false}"),
                        "{\"done\":\"table 'a/b' is resumed: samples\"}\n");
    assert_true(acted.kind == RP_ACTION_RESUME && acted.sides == RP_SIDE_SAMPLES);
    (void)post("/v1/tables/replay/reset", "replay", "{}");
    assert_int_equal(acted.kind, RP_ACTION_RESET);
    (void)post("/v1/tables/replay/alter", "replay",
               "{\"max_size\":7,\"min_diff\":null,\"samples_per_insert\":0.5}");
    assert_true(acted.kind == RP_ACTION_ALTER && acted.alter.has_max_size &&
                acted.alter.max_size == 7 && acted.alter.limiter.has_min_diff &&
                acted.alter.limiter.value.samples_per_insert == 0.5 &&
                !acted.alter.limiter.has_max_diff && !acted.alter.has_max_bytes);
    assert_string_equal(post("/v1/checkpoint", "checkpoint", NULL),
                        "{\"done\":\"a checkpoint is written\"}\n");
    act_is_late = true;
    assert_string_equal(post("/v1/checkpoint", "checkpoint", NULL),
                        "{\"done\":\"a checkpoint is being written\"}\n");
    assert_int_equal(acts, 6);
    assert_int_equal(answer.status, 200);
}

static void an_alteration_without_effect_is_warned_of(void **state)
{
    (void)state;
    assert_string_equal(post("/v1/tables/empty/alter", "empty", "{\"samples_per_insert\":2}"),
                        "{\"done\":\"table 'empty' is altered\",\"evicted\":0,\"warning\":"
                        "\"samples_per_insert has no effect: the limiter has no bounds; to "
                        "keep 1 sample an insert, give min_diff and max_diff, with "
                        "recenter\"}\n"); /* 1: this act() has changed nothing */
    expect(post("/v1/tables/empty/alter", "empty", "{\"recenter\":true}"),
           "\"warning\":\"recenter has no effect: ");
    assert_true(acted.alter.recenter);
    assert_null(strstr(post("/v1/tables/empty/alter", "empty", "{\"max_size\":9}"), "warning"));
    assert_null(strstr(post("/v1/tables/replay/alter", "replay", /* it has bounds */
                            "{\"samples_per_insert\":1,\"recenter\":true}"),
                       "warning"));
    (void)post("/v1/tables/empty/alter", "empty", "{\"recenter\":false}");
    assert_int_equal(answer.status, 400); /* nothing to alter */
}

static void an_alteration_to_the_same_values_changes_nothing(void **state)
{
    (void)state;
    expect(post("/v1/tables/replay/alter", "replay", "{\"max_times_sampled\":0}"),
           "{\"done\":\"table 'replay' was so already: nothing has changed\",\"evicted\":0");
    expect(post("/v1/tables/replay/alter", "replay", "{\"max_times_sampled\":3}"),
           "\"done\":\"table 'replay' is altered\"");
}

/* act() of this test changes nothing, so the tables have these values before. */
static void an_alteration_that_blocks_or_empties_the_table_is_warned_of(void **state)
{
    rp_table *t = rp_store_find_table(hosted.observed.bed.store, (rp_string){"replay", 6});
    rp_table_alteration change = {.which = RP_ALTER_LIMITER,
                                  .limiter = {1, 5000, -1e308, 1e308}};
    const char *path = "/v1/tables/replay/alter";

    (void)state;
    assert_int_equal(rp_table_alter(t, &change, NULL), RP_OK);
    expect(post(path, "replay", "{\"min_size\":5000}"),
           "\"warning\":\"samples will wait for ever: max_size ");
    expect(post(path, "replay", "{\"min_size\":5000}"),
           " is below min_size 5000; raise max_size or lower min_size\"");
    rp_table_unref(t);
}

static void a_larger_table_whose_limiter_is_full_is_warned_of(void **state)
{
    rp_table *t = rp_store_find_table(hosted.observed.bed.store, (rp_string){"replay", 6});
    rp_table_alteration small = {.which = RP_ALTER_LIMITER, .limiter = {1, 1, -10, 2}};
    const char *path = "/v1/tables/replay/alter";

    (void)state;
    assert_int_equal(rp_table_alter(t, &small, NULL), RP_OK); /* it has 5 items */
    rp_table_unref(t);
    expect(post(path, "replay", "{\"max_size\":9}"),
           " has no effect on inserts, which wait because of max_diff 2; to change that, give "
           "max_diff\"");
    assert_null(strstr(post(path, "replay", "{\"max_size\":9,\"max_diff\":9}"), "warning"));
    assert_null(strstr(post(path, "replay", "{\"max_bytes\":9000}"), "warning"));
}

static void an_unknown_table_is_answered_with_those_that_there_are(void **state)
{
    (void)state;
    expect(get("/v1/tables/fre"), "Priority table fre was not found; the tables are: ");
    assert_int_equal(answer.status, 404);
    expect(get("/v1/tables/fre"), "replay");
}

static void failed_changes_say_why(void **state)
{
    static const struct {
        rp_status st;
        int http;
    } cases[] = {{RP_INVALID, 400},     {RP_DENIED, 403},      {RP_NOT_FOUND, 404},
                 {RP_CANCELLED, 409},   {RP_NO_RESOURCE, 429}, {RP_UNAVAILABLE, 503},
                 {RP_PRECONDITION, 409}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        act_status = cases[i].st;
        expect(post("/v1/tables/replay/reset", "replay", NULL),
               cases[i].st == RP_NOT_FOUND
                   ? "Priority table replay was not found; the tables are: "
                   : "{\"error\":\"no luck\"}\n");
        assert_int_equal(answer.status, cases[i].http);
        assert_string_equal(answer.content_type, "application/json");
    }
}

static void a_change_needs_a_confirmation(void **state)
{
    static const char *const wrong[] = {NULL,     "",  "other",    "replay ",
                                        "Replay", "%", "replay%00"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        expect(post("/v1/tables/replay/reset", wrong[i], NULL),
               "{\"error\":\"the header x-reprise-confirm must name what is changed: 'replay'");
        assert_int_equal(answer.status, 400);
    }
    (void)post("/v1/checkpoint", "replay", NULL);
    assert_int_equal(answer.status, 400);
    assert_int_equal(acts, 0);
}

static void a_change_needs_the_role_admin(void **state)
{
    (void)state;
    expect(request("POST", "/v1/tables/replay/reset", "Bearer reader", "replay", NULL),
           "{\"error\":");
    assert_int_equal(answer.status, 403);
    (void)request("POST", "/v1/tables/replay/reset", NULL, "replay", NULL);
    assert_int_equal(answer.status, 401);
    (void)request("POST", "/v1/tables/replay/reset", "Bearer nothing", "replay", NULL);
    assert_int_equal(answer.status, 401);
    assert_int_equal(acts, 0);
}

static void no_get_request_changes_anything(void **state)
{
    static const char *const paths[] = {"/v1/tables/replay/pause", "/v1/tables/replay/reset",
                                        "/v1/tables/replay/alter", "/v1/checkpoint"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        (void)request("GET", paths[i], "Bearer boss", "replay", NULL);
        assert_int_equal(answer.status, 405);
        assert_string_equal(answer.extra_value, "POST");
    }
    (void)request("POST", "/v1/info", "Bearer boss", NULL, NULL);
    assert_int_equal(answer.status, 405);
    assert_int_equal(acts, 0);
}

static void malformed_bodies_are_refused(void **state)
{
    static const char *const bodies[] = {
        "[",
        "1",
        "{\"max_size\":\"7\"}",
        "{\"max_size\":1.5}",
        "{\"max_sise\":1}",
        "{}",
        "{\"max_bytes\":-1}",
        "{\"max_times_sampled\":4294967296}",
        "{\"max_size\":1} x",
        "",
        "{\"max_size\":null}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        expect(post("/v1/tables/replay/alter", "replay", bodies[i]), "{\"error\":\"");
        assert_int_equal(answer.status, 400);
    }
    assert_non_null(
        strstr(post("/v1/tables/replay/alter", "replay", "{\"max_bytes\":-1}"), "at byte 15"));
    (void)post("/v1/tables/replay/pause", "replay", "{\"inserts\":false,\"samples\":false}");
    assert_int_equal(answer.status, 400);
    (void)post("/v1/tables/replay/pause", "replay", "{\"inserts\":1}");
    assert_int_equal(answer.status, 400);
    assert_int_equal(acts, 0);
}

/* With less and less memory there is a response all the same. */
static void pages_survive_without_memory(void **state)
{
    static const char *const paths[] = {"/v1/tables/replay", "/v1/tables/replay/items/3",
                                        "/v1/clients"};
    size_t failures = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        for (size_t room = 0; room < 12; room++) {
            rp_test_oom o = RP_TEST_OOM_INIT(room);
            rp_allocator alloc = rp_test_oom_allocator(&o);
            rp_page_request r = {.method = "GET", .path = paths[i]};
            rp_page_response a = {.status = 0};

            r.shown.authorization = "Bearer reader";
            rp_buf_init(&a.body, &alloc);
            rp_test_render(&hosted, &r, &a);
            assert_true(a.status == 200 || a.status == 503);
            failures += a.status == 503;
            rp_buf_deinit(&a.body);
            assert_int_equal(o.live, 0);
        }
    assert_true(failures > 3);
}

static void all_responses_have_the_security_headers(void **state)
{
    static const char *const paths[] = {"/v1", "/healthz", "/v1/info", "/none", "/v1/tables/x"};
    rp_http_header headers[RP_PAGE_HEADERS];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        (void)get(paths[i]);
        assert_true(rp_page_headers(&answer, headers) >= 5);
        assert_string_equal(headers[0].name, "content-type");
        assert_string_equal(headers[1].value, "no-store");
        assert_string_equal(headers[2].name, "content-security-policy");
        expect(headers[2].value, "default-src 'none'");
        expect(headers[2].value, "frame-ancestors 'none'");
        assert_string_equal(headers[3].value, "nosniff");
        assert_string_equal(headers[4].value, "no-referrer");
    }
}

RP_TESTS(pages)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_table_is_described_with_its_items),
        CASE(odd_names_have_paths),
        CASE(an_item_is_shown_with_its_data),
        CASE(large_data_is_cut),
        CASE(without_a_store_tables_are_unavailable),
        CASE(connections_are_listed_with_what_they_wait_for),
        CASE(changes_are_made_and_reported),
        CASE(failed_changes_say_why),
        CASE(an_alteration_without_effect_is_warned_of),
        CASE(an_alteration_to_the_same_values_changes_nothing),
        CASE(an_alteration_that_blocks_or_empties_the_table_is_warned_of),
        CASE(a_larger_table_whose_limiter_is_full_is_warned_of),
        CASE(an_unknown_table_is_answered_with_those_that_there_are),
        CASE(a_change_needs_a_confirmation),
        CASE(a_change_needs_the_role_admin),
        CASE(no_get_request_changes_anything),
        CASE(malformed_bodies_are_refused),
        CASE(pages_survive_without_memory),
        CASE(all_responses_have_the_security_headers),
    };

    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
