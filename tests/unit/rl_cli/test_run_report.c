/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter of a training: it never waits, and counts what does not arrive. */
#include "cli/train/run_report.h"

#include <math.h>
#include <sched.h>
#include <unistd.h>

#include "reprise/runs.h"
#include "reprise/server.h"
#include "support/unit.h"

static rp_agent_settings settings;

static rp_run_reporter *make(const char *address)
{
    rp_run_reporter *reporter = NULL;
    rp_error err = {0};

    rp_dqn_settings_init(&settings.dqn, "cartpole");
    assert_ok_err(
        rp_run_reporter_new(&(rp_run_reporter_options){.address = address,
                                                       .run = "r",
                                                       .env_class = rp_env_find("cartpole"),
                                                       .kind = rp_agent_find("dqn"),
                                                       .settings = &settings,
                                                       .send_ms = 10000,
                                                       .episode_ms = 1000000},
                            &reporter, &err),
        &err);
    return reporter;
}

/* Parameters of zeroes: the first action is always the best. */
static rp_real *zeroes(void)
{
    rp_env *env = NULL;
    rp_net *net = NULL;
    rp_policy *policy = NULL;
    rp_real *params;

    assert_ok(
        rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = 1}, &env, NULL));
    assert_ok(rp_dqn_new_net(NULL, &settings.dqn, rp_env_get_spec(env), &net, NULL));
    assert_ok(rp_dqn_new_policy(NULL, net, rp_env_get_spec(env), 1, &policy, NULL));
    params = calloc(policy->parameter_count, sizeof *params);
    assert_non_null(params);
    rp_policy_free(policy);
    rp_net_free(net);
    rp_env_free(env);
    return params;
}

static rp_run_progress progress(int64_t steps)
{
    return (rp_run_progress){.steps = steps,
                             .mean_return = 5,
                             .loss = (double)NAN,
                             .eval_return = steps == 3 ? 9 : (double)NAN,
                             .eval_steps = 2};
}

static void a_server_that_is_not_there_costs_nothing(void **state)
{
    rp_run_reporter *reporter = make("127.0.0.1:1");
    rp_real *params = zeroes();
    rp_run_reported done = {0};

    (void)state;
    for (int64_t i = 0; i < 500; i++) {
        rp_run_progress p = progress(i);
        rp_run_reporter_add(reporter, &p, params);
    }
    rp_run_reporter_free(reporter, &done);
    free(params);
    assert_int_equal(done.sent, 0);
    assert_int_equal(done.dropped, 500); /* none is forgotten */
    assert_int_equal(done.episodes, 0);
    assert_non_null(strstr(done.why, "Connection refused")); /* not its own cancellation */
}

/* The reports that are left when the first was refused are cancelled at the end. */
static void the_end_does_not_hide_why_a_server_was_not_reached(void **state)
{
    rp_run_reporter *reporter = make("127.0.0.1:1");
    rp_real *params = zeroes();
    rp_run_reported done = {0};
    rp_run_progress p = progress(1);

    (void)state;
    for (int i = 0; i < 200; i++) {
        rp_run_reporter_add(reporter, &p, params);
        sched_yield();
    }
    rp_run_reporter_free(reporter, &done);
    free(params);
    assert_int_equal(done.dropped, 200);
    assert_non_null(strstr(done.why, "Connection refused"));
}

static void reports_that_fail_for_long_are_said_meanwhile(void **state)
{
    rp_run_reporter *reporter = make("127.0.0.1:1");
    rp_real *params = zeroes();
    rp_run_progress p = progress(1);
    char why[RP_ERROR_TEXT_BYTES] = "";
    bool is_due = false;

    (void)state;
    assert_false(rp_run_reporter_take_trouble(reporter, why));
    for (int64_t until_ns = rp_now_ns() + INT64_C(120000000000);
         !is_due && rp_now_ns() < until_ns;) {
        rp_run_reporter_add(reporter, &p, params);
        (void)usleep(10000);
        is_due = rp_run_reporter_take_trouble(reporter, why);
    }
    rp_run_reporter_free(reporter, NULL);
    free(params);
    assert_true(is_due);
    assert_non_null(strstr(why, "Connection refused"));
}

static bool keep(void *ctx, const void *data, size_t size)
{
    char *text = ctx;

    if (strlen(text) + size < 4096) (void)strncat(text, data, size);
    return true;
}

static void reports_reach_a_server(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:0"};
    rp_server_options options = {.addresses = addresses, .address_count = 1, .loops = 1};
    rp_run_reporter *reporter;
    rp_run_reported done = {0};
    rp_store *store = NULL;
    rp_server *server = NULL;
    rp_client *client = NULL;
    rp_real *params;
    rp_error err = {0};
    char text[4096] = "", address[64];

    (void)state;
    assert_ok_err(rp_store_new(NULL, &store, &err), &err);
    assert_ok_err(rp_server_start(store, &options, &server, &err), &err);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", rp_server_port(server));
    reporter = make(address);
    params = zeroes();
    for (int64_t i = 1; i <= 5; i++) {
        rp_run_progress p = progress(i);
        rp_run_reporter_add(reporter, &p, params);
    }
    rp_run_reporter_free(reporter, &done);
    free(params);
    assert_int_equal(done.sent, 5);
    assert_int_equal(done.dropped, 0);
    assert_ok_err(rp_client_local(store, NULL, &client, &err), &err);
    assert_ok_err(rp_client_runs(
                      client,
                      &(rp_runs_call){
                          .action = RP_RUNS_CSV, .run = {"r", 1}, .on_data = keep, .ctx = text},
                      rp_wait_forever(), &err),
                  &err);
    assert_non_null(strstr(text, "\"mean_return\",5,"));
    assert_non_null(strstr(text, "\"eval_return\",2,")); /* at its own step */
    assert_null(strstr(text, "\"loss\""));               /* it is not known */
    rp_client_free(client);
    rp_server_free(server);
    rp_store_free(store);
}

static void what_the_server_has_no_room_for_is_counted(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:0"};
    /* For a run with two series, and not for the twelve of a report. */
    rp_server_options options = {
        .addresses = addresses, .address_count = 1, .loops = 1, .limits = {.run_bytes = 5000}};
    rp_run_progress p = progress(1);
    rp_run_reporter *reporter;
    rp_run_reported done = {0};
    rp_store *store = NULL;
    rp_server *server = NULL;
    rp_real *params;
    rp_error err = {0};
    char address[64];

    (void)state;
    assert_ok_err(rp_store_new(NULL, &store, &err), &err);
    assert_ok_err(rp_server_start(store, &options, &server, &err), &err);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", rp_server_port(server));
    reporter = make(address);
    params = zeroes();
    rp_run_reporter_add(reporter, &p, params);
    rp_run_reporter_free(reporter, &done);
    free(params);
    assert_int_equal(done.sent, 1);
    assert_int_equal(done.dropped, 0);
    assert_true(done.left_out > 0);
    rp_server_free(server);
    rp_store_free(store);
}

RP_TESTS(run_report)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_not_there_costs_nothing),
        cmocka_unit_test(reports_that_fail_for_long_are_said_meanwhile),
        cmocka_unit_test(the_end_does_not_hide_why_a_server_was_not_reached),
        cmocka_unit_test(reports_reach_a_server),
        cmocka_unit_test(what_the_server_has_no_room_for_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
