/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/health_messages.h"

#include "support/hex.h"

static void a_request_names_a_service_or_none(void **state)
{
    rp_test_bytes named = rp_test_bytes_of("0a0161"), bad = rp_test_bytes_of("0a0261");
    rp_string service;
    rp_error err = {0};

    (void)state;
    assert_ok(rp_wire_read_health_request(named.data, named.size, &service, &err));
    assert_true(service.size == 1 && service.data[0] == 'a');
    assert_ok(rp_wire_read_health_request(NULL, 0, &service, &err));
    assert_int_equal(service.size, 0);
    assert_fails(rp_wire_read_health_request(bad.data, bad.size, &service, &err), RP_INVALID,
                 &err, "HealthCheckRequest");
}

static void a_response_has_the_health_status(void **state)
{
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_health_response(&out, RP_WIRE_HEALTH_UNKNOWN);
    assert_wrote(&out, "");
    rp_wire_write_health_response(&out, RP_WIRE_SERVING);
    assert_wrote(&out, "0801");
    rp_wire_write_health_response(&out, RP_WIRE_NOT_SERVING);
    assert_wrote(&out, "0802");
    rp_wire_write_health_response(&out, RP_WIRE_SERVICE_UNKNOWN);
    assert_wrote(&out, "0803");
    rp_buf_deinit(&out);
}

RP_TESTS(health_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_names_a_service_or_none),
        cmocka_unit_test(a_response_has_the_health_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
