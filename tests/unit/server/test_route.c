/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/route.h"

#include "support/unit.h"

static int nothing(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    (void)host, (void)ask, (void)answer;
    return 200;
}

static const rp_route routes[] = {
    {.method = "GET", .pattern = "/", .handle = nothing},
    {.method = "GET", .pattern = "/v1/info", .handle = nothing, .is_live = true},
    {.method = "GET", .pattern = "/v1/tables/{}", .handle = nothing},
    {.method = "GET", .pattern = "/v1/tables/{}/items/{}", .handle = nothing},
    {.method = "POST", .pattern = "/v1/tables/{}/pause", .handle = nothing},
    {.method = "GET", .pattern = "/v1/runs/{}.csv", .handle = nothing},
    {.method = "GET", .pattern = "/v1/runs/{}", .handle = nothing, .is_part = true},
    {.method = "POST", .pattern = "/v1/runs/{}", .handle = nothing},
};

static rp_page_ask ask;
static const char *allow;

static rp_route_found find(const char *method, const char *path)
{
    return rp_route_find(routes, COUNT_OF(routes), method, (rp_string){path, strlen(path)},
                         &ask, &allow);
}

/* Finds a route by its number in `routes`. */
static void expect(const char *method, const char *path, size_t number)
{
    assert_int_equal(find(method, path), RP_ROUTE_FOUND);
    assert_ptr_equal(ask.route, &routes[number]);
}

static void paths_find_their_routes(void **state)
{
    (void)state;
    expect("GET", "/", 0);
    expect("GET", "/?x", 0);
    expect("HEAD", "/v1/info#a", 1);
    expect("GET", "/v1/tables/replay", 2);
    assert_string_equal(ask.names[0].text, "replay");
    assert_int_equal(ask.names[1].size, 0);
    expect("GET", "/v1/tables/a%2Fb%20%3c/items/7", 3);
    assert_string_equal(ask.names[0].text, "a/b <");
    assert_string_equal(ask.names[1].text, "7");
    expect("POST", "/v1/tables/pause/pause", 4);
    assert_string_equal(ask.names[0].text, "pause");
}

static void a_suffix_is_not_part_of_the_name(void **state)
{
    (void)state;
    expect("GET", "/v1/runs/dqn.csv", 5);
    assert_string_equal(ask.names[0].text, "dqn");
    expect("GET", "/v1/runs/a.csv.csv", 5);
    assert_string_equal(ask.names[0].text, "a.csv");
    expect("GET", "/v1/runs/dqn.tsv", 6);
    assert_string_equal(ask.names[0].text, "dqn.tsv");
}

static void other_paths_and_methods_are_told_apart(void **state)
{
    static const char *const none[] = {
        "",
        "x",
        "//",
        "/v1",
        "/v1/",
        "/v1/infox",
        "/v1/info/",
        "/v1/tables/a/b",
        "/v1/tables/a/",
        "/v1/tables/a/items/b/c",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(find("GET", none[i]), RP_ROUTE_NONE);
    assert_int_equal(find("POST", "/v1/info"), RP_ROUTE_NO_METHOD);
    assert_string_equal(allow, "GET, HEAD");
    assert_int_equal(find("GET", "/v1/tables/a/pause"), RP_ROUTE_NO_METHOD);
    assert_string_equal(allow, "POST");
    assert_int_equal(find("PUT", "/v1/runs/a"), RP_ROUTE_NO_METHOD);
    assert_string_equal(allow, "GET, HEAD, POST");
    assert_int_equal(find("get", "/v1/info"), RP_ROUTE_NO_METHOD);
}

static void malformed_names_are_refused(void **state)
{
    static const char *const bad[] = {
        "/v1/tables/",      "/v1/tables/%",    "/v1/tables/%4",       "/v1/tables/%4g",
        "/v1/tables/a%00b", "/v1/tables/%%41", "/v1/tables//items/7",
    };
    char path[1024] = "/v1/tables/";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(find("GET", bad[i]), RP_ROUTE_BAD_NAME);
    for (size_t i = 0; i < RP_ASK_NAME_BYTES; i++) strcat(path, "%41");
    assert_int_equal(find("GET", path), RP_ROUTE_FOUND);
    assert_int_equal(ask.names[0].size, RP_ASK_NAME_BYTES);
    strcat(path, "A");
    assert_int_equal(find("GET", path), RP_ROUTE_BAD_NAME);
}

static void after_is_a_whole_number(void **state)
{
    static const char *const bad[] = {
        "/v1/info?after=",   "/v1/info?after=-1",        "/v1/info?after=1.5",
        "/v1/info?after=x",  "/v1/info?after=1&after=2", "/v1/info?after=18446744073709551616",
        "/v1/info?after= 1",
    };

    (void)state;
    expect("GET", "/v1/info", 1);
    assert_false(ask.has_after);
    expect("GET", "/v1/info?x=1&after=12&y", 1);
    assert_true(ask.has_after && ask.after == 12);
    expect("GET", "/v1/info?after=18446744073709551615", 1);
    assert_true(ask.after == UINT64_MAX);
    expect("GET", "/v1/info?before=1&xafter=2", 1);
    assert_false(ask.has_after);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(find("GET", bad[i]), RP_ROUTE_BAD_NUMBER);
}

/* Whether requests for these two paths share a page. */
static bool is_same(const char *a, const char *b)
{
    rp_page_ask first;

    assert_int_equal(find("GET", a), RP_ROUTE_FOUND);
    first = ask;
    assert_int_equal(find("GET", b), RP_ROUTE_FOUND);
    return rp_route_is_same(&first, &ask);
}

static void the_same_page_is_known(void **state)
{
    (void)state;
    assert_true(is_same("/v1/tables/ab", "/v1/tables/%61b?x"));
    assert_false(is_same("/v1/tables/ab", "/v1/tables/a"));
    assert_false(is_same("/v1/tables/a", "/v1/runs/a"));
    assert_false(is_same("/v1/tables/a/items/1", "/v1/tables/a/items/2"));
    assert_false(is_same("/v1/runs/a?after=1", "/v1/runs/a?after=2"));
    assert_true(is_same("/v1/runs/a?after=0", "/v1/runs/a"));
    assert_true(is_same("/v1/tables/a?after=1", "/v1/tables/a?after=2")); /* it has no parts */
    assert_true(is_same("/v1/info?after=1", "/v1/info?after=2"));         /* it is live */
}

/* Each pattern has at most as many names as fit, a known method and a handler. */
static void all_routes_are_well_formed(void **state)
{
    size_t count;
    const rp_route *all = rp_routes(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        size_t names = 0;

        for (const char *p = all[i].pattern; (p = strstr(p, "{}")) != NULL; p++) names++;
        assert_true(names <= RP_ASK_NAMES);
        assert_true(all[i].pattern[0] == '/' && all[i].handle != NULL);
        assert_true(strcmp(all[i].method, "GET") == 0 || strcmp(all[i].method, "POST") == 0);
        if (strcmp(all[i].method, "GET") == 0) {
            assert_true(all[i].lane <= RP_ROUTE_RUN);
            /* The pages of the overview are few: they have no names and no parts. */
            assert_true(all[i].lane != RP_ROUTE_OVERVIEW || (names == 0 && !all[i].is_part));
            assert_true(all[i].role <= RP_ROLE_READ && !all[i].confirms);
        } else {
            assert_true(all[i].lane == RP_ROUTE_CHANGE || all[i].lane == RP_ROUTE_ACT);
            assert_true(all[i].role >= RP_ROLE_WRITE);
            assert_true(all[i].role == RP_ROLE_WRITE || all[i].confirms);
        }
    }
}

RP_TESTS(route)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_their_routes),
        cmocka_unit_test(a_suffix_is_not_part_of_the_name),
        cmocka_unit_test(other_paths_and_methods_are_told_apart),
        cmocka_unit_test(malformed_names_are_refused),
        cmocka_unit_test(after_is_a_whole_number),
        cmocka_unit_test(the_same_page_is_known),
        cmocka_unit_test(all_routes_are_well_formed),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
