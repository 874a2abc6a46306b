/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/limits.h"

#include <stddef.h>

#include "chunk/trajectory.h"
#include "support/unit.h"

/* What every limit may be, as docs and header have it. */
static const struct {
    const char *name;
    size_t at;
    uint64_t usual, lowest, highest;
} sizes[] = {
#define SIZE(field, usual, lowest, highest)                                                    \
    {                                                                                          \
#field, offsetof(rp_server_limits, field), usual, lowest, highest                      \
    }
    SIZE(connections, 10000, 1, 1000000),
    SIZE(streams, 1024, 1, 1 << 30),
    SIZE(calls, 65536, 1, 1 << 30),
    SIZE(message_bytes, 64 << 20, 4096, UINT32_MAX),
    SIZE(chunk_bytes, 32 << 20, 1, UINT32_MAX),
    SIZE(tensor_bytes, 256 << 20, 1, SIZE_MAX / 2),
    SIZE(item_bytes, 1 << 30, 1, SIZE_MAX / 2),
    SIZE(columns, 4096, 1, 4096),
    SIZE(chunks, 1 << 18, 1, RP_MAX_SLICES),
    SIZE(slices, 1 << 20, 1, 1 << 20),
    SIZE(items, 262144, 1, 1 << 24),
    SIZE(keys, 262144, 1, 1 << 28),
    SIZE(distinct_samples, 4096, 1, 1 << 20),
    SIZE(stream_pinned_bytes, 64 << 20, 1, SIZE_MAX / 2),
    SIZE(connection_pinned_bytes, 256 << 20, 1, SIZE_MAX / 2),
    SIZE(pinned_bytes, 0, 1, SIZE_MAX / 2), /* the default is of the machine */
    SIZE(stream_queued_bytes, 2 << 20, 1, SIZE_MAX / 2),
    SIZE(connection_queued_bytes, 16 << 20, 1, SIZE_MAX / 2),
    SIZE(queued_bytes, 0, 8192, SIZE_MAX / 2), /* the default is of the machine */
    SIZE(shared_held_bytes, 1 << 30, 1, SIZE_MAX / 2),
    SIZE(run_bytes, 64 << 20, 1, SIZE_MAX / 2),
    SIZE(header_bytes, 16384, 256, 1 << 20),
    SIZE(header_fields, 64, 8, 100000),
    SIZE(abuse_burst, 1000, 1, 1 << 30),
    SIZE(abuse_per_second, 33, 1, 1 << 30),
    SIZE(tables, 1024, 1, 1 << 20),
#undef SIZE
};

static const struct {
    const char *name;
    size_t at;
    int64_t usual;
} times[] = {
#define TIME(field, usual)                                                                     \
    {                                                                                          \
#field, offsetof(rp_server_limits, field), usual                                       \
    }
    TIME(handshake_ms, 10000), TIME(stall_ms, 60000),        TIME(message_grace_ms, 30000),
    TIME(ping_ms, 30000),      TIME(ping_timeout_ms, 20000), TIME(checkpoint_spacing_ms, 10000),
#undef TIME
};

static const int64_t longest_ms = INT64_C(1000) * 60 * 60 * 24 * 365;

static size_t *size_at(rp_server_limits *limits, size_t at)
{
    return (size_t *)(void *)((char *)limits + at);
}

static int64_t *time_at(rp_server_limits *limits, size_t at)
{
    return (int64_t *)(void *)((char *)limits + at);
}

static void every_limit_is_in_the_tables_of_this_test(void **state)
{
    (void)state;
    assert_int_equal(sizeof(rp_server_limits),
                     COUNT_OF(sizes) * sizeof(size_t) + COUNT_OF(times) * sizeof(int64_t));
}

static void zeros_become_the_defaults(void **state)
{
    (void)state;
    rp_server_limits limits = {0}, defaults = rp_server_limits_default();
    rp_error err;

    assert_ok_err(rp_server_limits_complete(&limits, &err), &err);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        assert_int_equal(*size_at(&limits, sizes[i].at), *size_at(&defaults, sizes[i].at));
        if (sizes[i].usual > 0)
            assert_int_equal(*size_at(&limits, sizes[i].at), sizes[i].usual);
    }
    for (size_t i = 0; i < COUNT_OF(times); i++)
        assert_int_equal(*time_at(&limits, times[i].at), times[i].usual);
    assert_true(limits.queued_bytes > 1 << 20);
}

static void given_limits_are_kept(void **state)
{
    (void)state;
    rp_server_limits limits = {.items = 7, .stall_ms = 9};

    assert_ok(rp_server_limits_complete(&limits, NULL));
    assert_int_equal(limits.items, 7);
    assert_int_equal(limits.stall_ms, 9);
}

static void a_message_fits_into_the_queue(void **state)
{
    (void)state;
    rp_server_limits limits = {.message_bytes = 10000, .queued_bytes = 10000},
                     default_message = {.queued_bytes = 8192};

    assert_ok(rp_server_limits_complete(&limits, NULL));
    assert_int_equal(limits.message_bytes, 5000);
    assert_int_equal(rp_server_limits_side_bytes(&limits), 5000);
    assert_ok(rp_server_limits_complete(&default_message, NULL));
    assert_int_equal(default_message.message_bytes, 4096);
}

static void every_size_has_a_lower_and_an_upper_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_server_limits limits = {0};
        rp_error err;
        size_t *field = size_at(&limits, sizes[i].at);

        *field = sizes[i].lowest;
        assert_ok_err(rp_server_limits_complete(&limits, &err), &err);
        *field = sizes[i].highest;
        assert_ok_err(rp_server_limits_complete(&limits, &err), &err);
        *field = sizes[i].highest + 1;
        assert_fails(rp_server_limits_complete(&limits, &err), RP_INVALID, &err, sizes[i].name);
        if (sizes[i].lowest > 1) {
            *field = sizes[i].lowest - 1;
            assert_fails(rp_server_limits_complete(&limits, &err), RP_INVALID, &err,
                         sizes[i].name);
        }
    }
}

static void every_time_has_a_lower_and_an_upper_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        rp_server_limits limits = {0};
        rp_error err;
        int64_t *field = time_at(&limits, times[i].at);

        *field = 1;
        assert_ok_err(rp_server_limits_complete(&limits, &err), &err);
        *field = longest_ms;
        assert_ok_err(rp_server_limits_complete(&limits, &err), &err);
        *field = longest_ms + 1;
        assert_fails(rp_server_limits_complete(&limits, &err), RP_INVALID, &err, times[i].name);
        *field = -1;
        assert_fails(rp_server_limits_complete(&limits, &err), RP_INVALID, &err, "-1");
    }
}

RP_TESTS(limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_limit_is_in_the_tables_of_this_test),
        cmocka_unit_test(zeros_become_the_defaults),
        cmocka_unit_test(given_limits_are_kept),
        cmocka_unit_test(a_message_fits_into_the_queue),
        cmocka_unit_test(every_size_has_a_lower_and_an_upper_bound),
        cmocka_unit_test(every_time_has_a_lower_and_an_upper_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
