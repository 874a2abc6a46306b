/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of samplers and writers whose deadline passed: what they waited for, as their
 * server says it. A server that is slow may not have been asked in time, so each call is
 * repeated until the error has the reason. */
#include <string.h>

#include "client/client.h"
#include "client_fixture.h"
#include "reprise/sampler.h"
#include "reprise/step_writer.h"
#include "reprise/structured_writer.h"

enum { TRIES = 100, SHORT_MS = 200 };

static rp_test_live live;
static rp_client *client;
static rp_error err;

static int set_up(void **state)
{
    (void)state;
    rp_test_live_start(&live, NULL);
    client = client_of(&live, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_client_free(client);
    rp_test_live_stop(&live);
    return 0;
}

static bool is_late_for(rp_sampler *sampler, const char *reason)
{
    rp_sample sample;
    size_t count = 0;

    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(
            rp_sampler_next(sampler, &sample, 1, &count, rp_wait_ms(SHORT_MS), &err),
            RP_DEADLINE);
        assert_non_null(strstr(err.text, "'queue'"));
        if (strstr(err.text, reason) != NULL) return true;
    }
    return false;
}

static void a_late_sample_says_what_it_waited_for(void **state)
{
    const rp_sampler_options options = {.table = "queue", .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;

    (void)state;
    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    assert_true(is_late_for(sampler, "sample waits for inserts"));
    assert_ok_err(rp_client_pause_table(client, "queue", RP_SIDE_SAMPLES, soon(), &err), &err);
    assert_true(is_late_for(sampler, "paused"));
    rp_sampler_free(sampler);
}

static void a_poll_asks_nothing(void **state)
{
    const rp_sampler_options options = {.table = "queue", .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;
    rp_sample sample;
    size_t count = 0;

    (void)state;
    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(rp_sampler_next(sampler, &sample, 1, &count, rp_wait_none(), &err),
                         RP_DEADLINE);
        assert_null(strstr(err.text, "waits"));
    }
    rp_sampler_free(sampler);
}

static void a_late_flush_says_what_it_waited_for(void **state)
{
    const rp_step_writer_options options = {.max_sequence_length = 1};
    const float row = 1;
    const rp_tensor tensor = {.dtype = RP_FLOAT32, .data = &row};
    rp_step_writer *writer = NULL;
    bool is_explained = false;

    (void)state;
    assert_ok_err(rp_step_writer_new(client, &options, soon(), &writer, &err), &err);
    for (int i = 0; i < 5; i++) { /* 'queue' holds four */
        assert_ok_err(rp_step_writer_append(writer, &tensor, 1, &err), &err);
        assert_ok_err(rp_step_writer_create_item(writer, "queue", 1, 1.0, soon(), NULL, &err),
                      &err);
    }
    for (int i = 0; i < TRIES && !is_explained; i++) {
        assert_int_equal(rp_step_writer_flush(writer, rp_wait_ms(SHORT_MS), &err), RP_DEADLINE);
        is_explained = strstr(err.text, "table 'queue': insert waits for samples") != NULL;
    }
    assert_true(is_explained);
    rp_step_writer_free(writer);
}

/* The sink of a store delays reports of inserted items. */
static void a_late_flush_counts_the_items_that_pending_counts(void **state)
{
    const rp_table_options three = {.name = "three",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_queue(3),
                                    .max_times_sampled = 1,
                                    .max_size = 3};
    const rp_step_writer_options options = {.max_sequence_length = 1};
    const float row = 1;
    const rp_tensor tensor = {.dtype = RP_FLOAT32, .data = &row};
    rp_step_writer *writer = NULL;
    rp_store *store = NULL;
    rp_client *local = NULL;

    (void)state;
    assert_ok_err(rp_store_new(NULL, &store, &err), &err);
    assert_ok_err(rp_store_add_table(store, &three, NULL, &err), &err);
    assert_ok_err(rp_client_local(store, NULL, &local, &err), &err);
    assert_ok_err(rp_step_writer_new(local, &options, soon(), &writer, &err), &err);
    for (int i = 0; i < 5; i++) {
        assert_ok_err(rp_step_writer_append(writer, &tensor, 1, &err), &err);
        assert_ok_err(rp_step_writer_create_item(writer, "three", 1, 1.0, soon(), NULL, &err),
                      &err);
    }

    assert_fails(rp_step_writer_flush(writer, rp_wait_ms(SHORT_MS), &err), RP_DEADLINE, &err,
                 "2 items are unconfirmed");
    assert_int_equal(rp_step_writer_pending(writer), 2);
    rp_step_writer_free(writer);
    rp_client_free(local);
    rp_store_free(store);
}

/* A pattern without names of columns is not compared with a signature. */
static void flush_to_an_unknown_table_lists_the_tables(rp_client *c)
{
    const rp_pattern_node node = {.has_start = true, .start = -1};
    const rp_pattern pattern = {
        .table = "nope", .nodes = &node, .node_count = 1, .priority = {.value = 1}};
    const float row = 1;
    const rp_value value = {.tensor = {.dtype = RP_FLOAT32, .data = &row}};
    rp_structured_writer *writer = NULL;

    assert_ok_err(rp_structured_writer_new(c, &pattern, 1, NULL, &writer, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_ok_err(rp_structured_writer_append(writer, &value, 1, 0, soon(), &err), &err);
    assert_fails(rp_structured_writer_flush(writer, 0, soon(), &err), RP_NOT_FOUND, &err,
                 "refused, the first: Priority table nope was not found; the tables are: ");
    assert_non_null(strstr(err.text, "queue"));
    rp_structured_writer_free(writer);
}

static void refused_items_of_an_unknown_table_list_the_tables(void **state)
{
    rp_client *local = NULL;

    (void)state;
    flush_to_an_unknown_table_lists_the_tables(client);
    assert_ok_err(rp_client_local(live.store, NULL, &local, &err), &err);
    flush_to_an_unknown_table_lists_the_tables(local);
    rp_client_free(local);
}

/* A server may be stopped: then a call ends that much after its deadline. */
static void short_waits_ask_for_a_short_time(void **state)
{
    const int64_t ms = 1000000;

    (void)state;
    assert_int_equal(rp_client_ask_ms(20 * ms), 50);
    assert_int_equal(rp_client_ask_ms(100 * ms), 50);
    assert_int_equal(rp_client_ask_ms(1500 * ms), 150);
    assert_int_equal(rp_client_ask_ms(60000 * ms), 500);
    assert_int_equal(rp_client_ask_ms(RP_FOREVER), 500);
}

RP_TESTS(why)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_late_sample_says_what_it_waited_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refused_items_of_an_unknown_table_list_the_tables,
                                        set_up, tear_down),
        cmocka_unit_test(short_waits_ask_for_a_short_time),
        cmocka_unit_test(a_late_flush_counts_the_items_that_pending_counts),
        cmocka_unit_test_setup_teardown(a_poll_asks_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_flush_says_what_it_waited_for, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
