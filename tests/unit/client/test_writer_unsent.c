/* SPDX-License-Identifier: Apache-2.0 */
/* What a writer says of items that its sink has and cannot send, for lack of a connection. */
#include "support/client_rig.h"

static void write_item(rp_test_client_rig *r)
{
    int32_t x = 7;
    rp_value value = {0, "x", {RP_INT32, SCALAR, &x}};
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};

    assert_ok_err(rp_trajectory_writer_append(r->writer, &value, 1, 0, &ref, &r->err), &r->err);
    assert_ok_err(rp_trajectory_writer_create_item(r->writer,
                                                   &(rp_new_item){"a", 1, &column, 1},
                                                   rp_wait_none(), NULL, &r->err),
                  &r->err);
}

static rp_status flush(rp_test_client_rig *r, int64_t ms)
{
    return rp_trajectory_writer_flush(r->writer, 0, rp_wait_ms(ms), &r->err);
}

static bool is_away;

static void say_refused(void *ctx, const char *table, int64_t waited_ns, char *text,
                        size_t size)
{
    (void)ctx;
    (void)table;
    (void)waited_ns;
    (void)snprintf(text, size, "Connection refused");
}

static void say_away(void *ctx, char *text, size_t size)
{
    (void)ctx;
    (void)snprintf(text, size, "%s", is_away ? "not connected yet" : "");
}

static void items_without_a_connection_do_not_count_as_sent(void **state)
{
    rp_trajectory_writer_options o = {.column = {.history = 10, .chunk_length = 1}};
    rp_test_client_rig r;
    rp_writer_parts parts;
    char why[300];

    (void)state;
    rp_test_client_open_store(&r);
    parts = rp_test_client_parts(&r);
    parts.why = say_refused;
    parts.away = say_away;
    assert_ok_err(rp_trajectory_writer_open(&parts, &o, &r.writer, &r.err), &r.err);
    rp_trajectory_writer_attach(r.writer, rp_test_client_sink(&r, false));
    r.sink->silent = true;
    for (int i = 0; i < 3; i++) write_item(&r);
    rp_test_sink_await(r.sink, 3);

    is_away = true;
    assert_fails(flush(&r, 5), RP_DEADLINE, &r.err, "3 items are unconfirmed: ");
    rp_trajectory_writer_why(r.writer, why, sizeof why);
    assert_non_null(strstr(why, "3 items are unconfirmed: "));
    assert_non_null(strstr(why, "Connection refused"));
    is_away = false;
    rp_trajectory_writer_why(r.writer, why, sizeof why);
    assert_non_null(strstr(why, "3 items are unconfirmed, 3 of them sent: "));
    rp_test_sink_settle(r.sink, 3, RP_OK, "");
    assert_ok_err(flush(&r, 0), &r.err);
    rp_test_client_deinit(&r);
}

RP_TESTS(writer_unsent)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_without_a_connection_do_not_count_as_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
