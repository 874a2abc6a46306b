/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/connection_messages.h"

#include <string.h>

#include "support/hex.h"
#include "support/unit.h"

static const rp_wire_connection example = {
    .id = 300,
    .address = {"10.0.0.1:5", 10},
    .role = {"read", 4},
    .protocol = {"HTTP/2", 6},
    .open_ms = 7,
    .calls = 1,
    .bytes_in = 2,
    .bytes_out = 3,
    .is_caller = true,
};

static void a_connection_is_read_as_it_was_written(void **state)
{
    rp_wire_connection read[2];
    rp_wire_connections found = {.list = read, .capacity = 2};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_connection(&out, &example);
    rp_wire_write_connection(&out, &(rp_wire_connection){.id = 1});
    rp_wire_write_connection_total(&out, 9);
    assert_ok(rp_wire_read_connections(out.data, out.size, &found, NULL));
    assert_true(found.count == 2 && found.total == 9);
    assert_true(read[0].id == 300 && read[0].open_ms == 7 && read[0].is_caller);
    assert_true(read[0].calls == 1 && read[0].bytes_in == 2 && read[0].bytes_out == 3);
    assert_memory_equal(read[0].address.data, "10.0.0.1:5", 10);
    assert_memory_equal(read[0].role.data, "read", 4);
    assert_memory_equal(read[0].protocol.data, "HTTP/2", 6);
    assert_true(read[1].id == 1 && read[1].address.size == 0 && !read[1].is_caller);
    found.capacity = 1;
    assert_ok(rp_wire_read_connections(out.data, out.size, &found, NULL));
    assert_true(found.count == 1 && found.total == 9);
    rp_buf_deinit(&out);
}

static void bytes_that_are_no_connections_are_refused(void **state)
{
    rp_wire_connection read[2];
    rp_wire_connections found = {.list = read, .capacity = 2};
    rp_test_bytes bad = rp_test_bytes_of("0a03 1201ff 1001"); /* an address that is no UTF-8 */
    rp_test_bytes past = rp_test_bytes_of("0a0b 28ffffffffffffffffff01"); /* open for -1 ms */
    rp_error err;
    rp_buf out;

    (void)state;
    assert_int_equal(rp_wire_read_connections(bad.data, bad.size, &found, &err), RP_CORRUPT);
    assert_non_null(strstr(err.text, "a client's address"));
    assert_true(found.count == 0 && found.total == 0);
    assert_ok(rp_wire_read_connections(past.data, past.size, &found, &err));
    assert_int_equal(read[0].open_ms, 0);
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_connection(&out, &example);
    for (size_t size = 1; size < out.size; size++)
        assert_int_equal(rp_wire_read_connections(out.data, size, &found, &err), RP_CORRUPT);
    rp_buf_deinit(&out);
}

/* open_ms fits into nanoseconds, and there are no fewer connections than those in the list. */
static void numbers_of_a_hostile_server_are_clamped(void **state)
{
    rp_wire_connection read[2];
    rp_wire_connections found = {.list = read, .capacity = 2};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_connection(&out, &(rp_wire_connection){.open_ms = INT64_MAX});
    rp_wire_write_connection(&out, &(rp_wire_connection){.open_ms = 9000000000000});
    rp_wire_write_connection_total(&out, 1);
    assert_ok(rp_wire_read_connections(out.data, out.size, &found, NULL));
    assert_true(read[0].open_ms == INT64_MAX / 1000000);
    assert_true(read[1].open_ms == 9000000000000);
    assert_true(found.count == 2 && found.total == 2);
    rp_buf_deinit(&out);
}

RP_TESTS(connection_messages)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_read_as_it_was_written),
        cmocka_unit_test(bytes_that_are_no_connections_are_refused),
        cmocka_unit_test(numbers_of_a_hostile_server_are_clamped),
    };
    return cmocka_run_group_tests_name("connection_messages", tests, NULL, NULL);
}
