/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame_meter.h"

#include "support/unit.h"

static void check(const rp_frame_meter *meter)
{
    assert_int_equal(meter->frames, 5);
    assert_int_equal(meter->data.frames, 4);
    assert_int_equal(meter->data.empty, 1);
    assert_int_equal(meter->data.cost, 256 + 256 + 300);
}

static void frames_are_counted_however_their_bytes_come(void **state)
{
    static const uint8_t bytes[] = "xyz"                                 /* before them */
                                   "\0\0\2\0\0\0\0\0\1ab"                /* DATA */
                                   "\0\0\0\0\0\0\0\0\1"                  /* empty */
                                   "\0\0\10\6\0\0\0\0\0\0\0\0\0\0\0\0\0" /* PING */
                                   "\0\0\0\0\1\0\0\0\1"                  /* the end */
                                   "\0\1\54\0\0\0\0\0\1";                /* 300 bytes */
    static uint8_t all[sizeof bytes - 1 + 300];
    const size_t size = sizeof all;

    (void)state;
    memcpy(all, bytes, sizeof bytes - 1);
    for (size_t part = 1; part <= size; part++) {
        rp_frame_meter meter = {.skip = 3};
        for (size_t at = 0; at < size; at += part)
            rp_frame_meter_feed(&meter, all + at, size - at < part ? size - at : part);
        check(&meter);
        assert_int_equal(meter.skip, 0);
        assert_int_equal(meter.head_bytes, 0);
    }
}

static void a_head_counts_when_its_last_byte_has_come(void **state)
{
    static const uint8_t head[9] = {0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1};
    rp_frame_meter meter = {0};

    (void)state;
    rp_frame_meter_feed(&meter, head, 8);
    assert_int_equal(meter.frames, 0);
    rp_frame_meter_feed(&meter, head + 8, 1);
    assert_int_equal(meter.frames, 1);
    assert_int_equal(meter.data.cost, 0xffffff);
    assert_int_equal(meter.skip, 0xffffff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_counted_however_their_bytes_come),
        cmocka_unit_test(a_head_counts_when_its_last_byte_has_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
