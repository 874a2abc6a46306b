/* SPDX-License-Identifier: Apache-2.0 */
/* rp_client_runs(), on a server and on a store of this process. */
#include "reprise/runs.h"

#include "runs/runs.h"
#include "store/store.h"
#include "support/live_server.h"
#include "util/buf.h"

typedef struct stage {
    rp_test_live live;
    rp_client *client;
    rp_buf got;
    size_t pieces, most_pieces; /* on_data returns false after that many; 0: never */
    rp_error err;
} stage;

static void open_stage(stage *s, bool is_local)
{
    char address[64];

    *s = (stage){0};
    rp_test_live_start(&s->live, NULL);
    rp_buf_init(&s->got, rp_allocator_default());
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", s->live.port);
    if (is_local)
        assert_ok_err(rp_client_local(s->live.store, NULL, &s->client, &s->err), &s->err);
    else
        assert_ok_err(rp_client_new(address, NULL, &s->client, &s->err), &s->err);
}

static void close_stage(stage *s)
{
    rp_buf_deinit(&s->got);
    rp_client_free(s->client);
    rp_test_live_stop(&s->live);
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static rp_status report(stage *s, const char *run, int64_t first, size_t count)
{
    static rp_scalar scalars[RP_REPORT_SCALARS + 1];
    rp_run_report r = {.run = text(run), .scalars = scalars, .scalar_count = count};
    rp_runs_call call = {.report = &r};

    for (size_t i = 0; i < count; i++)
        scalars[i] = (rp_scalar){text(i % 2 == 0 ? "x" : "y"), first + (int64_t)i, 5, 0.5};
    s->err = (rp_error){0};
    return rp_client_runs(s->client, &call, rp_wait_ms(10000), &s->err);
}

static bool keep(void *ctx, const void *data, size_t size)
{
    stage *s = ctx;

    rp_buf_append(&s->got, data, size);
    return ++s->pieces != s->most_pieces;
}

static rp_status get(stage *s, rp_runs_action action, const char *run)
{
    rp_runs_call call = {.action = action, .run = text(run), .on_data = keep, .ctx = s};

    rp_buf_clear(&s->got);
    s->pieces = 0;
    s->err = (rp_error){0};
    return rp_client_runs(s->client, &call, rp_wait_ms(10000), &s->err);
}

static size_t lines(const stage *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->got.size; i++) count += s->got.data[i] == '\n';
    return count;
}

static void try_all(bool is_local)
{
    stage s;

    open_stage(&s, is_local);
    assert_int_equal(get(&s, RP_RUNS_LIST, ""), RP_OK);
    assert_int_equal(s.got.size, 0);
    for (int64_t i = 0; i < 3; i++) assert_ok_err(report(&s, "run", 1000 * i, 1000), &s.err);
    for (int i = 0; i < 20; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "r%d", i);
        assert_ok_err(report(&s, name, 0, 1), &s.err);
    }

    assert_int_equal(get(&s, RP_RUNS_LIST, ""), RP_OK);
    assert_int_equal(lines(&s), 21);
    assert_int_equal(get(&s, RP_RUNS_CSV, "run"), RP_OK);
    assert_int_equal(lines(&s), 3001);
    assert_true(s.pieces >= 3); /* page by page */
    assert_memory_equal(s.got.data, "name,step,time,value\n\"x\",0,5.000,0.5\n", 37);
    assert_int_equal(get(&s, RP_RUNS_EVENTS, "run"), RP_OK);
    assert_true(s.got.size > 3000 * 30);

    assert_int_equal(get(&s, RP_RUNS_CSV, "none"), RP_NOT_FOUND);
    assert_non_null(strstr(s.err.text, "no run 'none'"));
    s.most_pieces = 1;
    assert_int_equal(get(&s, RP_RUNS_CSV, "run"), RP_CANCELLED);
    assert_int_equal(s.pieces, 1);
    close_stage(&s);
}

static void reports_and_exports_over_tcp(void **state)
{
    (void)state;
    try_all(false);
}

static void reports_and_exports_on_a_store(void **state)
{
    (void)state;
    try_all(true);
}

static void wrong_calls_are_named(void **state)
{
    (void)state;
    rp_runs_call call = {.action = RP_RUNS_REPORT};
    stage s;

    open_stage(&s, false);
    assert_int_equal(rp_client_runs(s.client, &call, rp_wait_none(), &s.err), RP_INVALID);
    call.action = RP_RUNS_CSV;
    assert_int_equal(rp_client_runs(s.client, &call, rp_wait_none(), &s.err), RP_INVALID);
    call.action = (rp_runs_action)9;
    assert_int_equal(rp_client_runs(s.client, &call, rp_wait_none(), &s.err), RP_INVALID);
    assert_int_equal(report(&s, "", 0, 1), RP_INVALID);
    assert_int_equal(report(&s, "a", 0, RP_REPORT_SCALARS + 1), RP_INVALID);
    assert_non_null(strstr(s.err.text, "1025 scalars"));
    close_stage(&s);
}

static void the_limit_of_the_server_bounds_runs(void **state)
{
    (void)state;
    rp_server_options options = {.limits = {.run_bytes = 65536}};
    rp_runs_info info;
    stage s = {0};
    char address[64], name[8];

    rp_test_live_start(&s.live, &options);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", s.live.port);
    assert_ok_err(rp_client_new(address, NULL, &s.client, &s.err), &s.err);
    rp_buf_init(&s.got, rp_allocator_default());
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "r%d", i);
        assert_ok_err(report(&s, name, 0, 100), &s.err);
    }
    rp_runs_get_info(rp_store_runs(s.live.store), &info);
    assert_true(info.bytes <= 65536 && info.dropped_runs > 0 && info.count > 0);
    close_stage(&s);
}

static void missing_arguments_are_named(void **state)
{
    rp_run_episode episode = {.env = text("e"), .state_count = 1, .variable_count = 1};
    rp_run_report r = {.run = {NULL, 3}};
    rp_runs_call call = {.report = &r}, csv = {.action = RP_RUNS_CSV, .on_data = keep};
    stage s;

    (void)state;
    open_stage(&s, true);
#define FAILS(call, part)                                                                      \
    assert_fails(rp_client_runs(s.client, call, rp_wait_ms(10000), &s.err), RP_INVALID,        \
                 &s.err, part)
    FAILS(NULL, "no call is given");
    FAILS(&csv, "no run is given");
    FAILS(&call, "the name of the run is NULL");
    r = (rp_run_report){.run = text("r"), .scalar_count = 1};
    FAILS(&call, "the scalars of the report are NULL");
    r = (rp_run_report){.run = text("r"), .actor_count = 1};
    FAILS(&call, "the actors of the report are NULL");
    r = (rp_run_report){.run = text("r"), .episode = &episode};
    FAILS(&call, "the states of the episode are NULL");
#undef FAILS
    close_stage(&s);
}

RP_TESTS(runs_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_and_exports_over_tcp),
        cmocka_unit_test(reports_and_exports_on_a_store),
        cmocka_unit_test(wrong_calls_are_named),
        cmocka_unit_test(the_limit_of_the_server_bounds_runs),
        cmocka_unit_test(missing_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
