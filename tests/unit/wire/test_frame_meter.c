/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/h2/frame_meter.h"

#include "support/unit.h"

static void check(const rp_frame_meter *meter)
{
    assert_int_equal(meter->frames, 5);
    assert_int_equal(meter->data.frames, 4);
    assert_int_equal(meter->data.empty, 1);
    assert_int_equal(meter->data.cost, 256 + 256 + 300);
}

static void frames_are_counted_however_their_bytes_are_split(void **state)
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

static void a_frame_header_counts_once_complete(void **state)
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

/* Size updates in these bytes of frames beyond the two that a block may need. Fails unless it
 * is the same number however the bytes come. */
static uint64_t table_sizes_of(const char *bytes, size_t size)
{
    uint64_t found = 0;

    for (size_t part = 1; part <= size; part++) {
        rp_frame_meter meter = {0};
        for (size_t at = 0; at < size; at += part)
            rp_frame_meter_feed(&meter, (const uint8_t *)bytes + at,
                                size - at < part ? size - at : part);
        if (part > 1) assert_int_equal(meter.table_sizes, found);
        found = meter.table_sizes;
    }
    return found;
}

#define TABLE_SIZES(bytes) table_sizes_of((bytes), sizeof(bytes) - 1)

static void two_size_updates_of_each_header_block_are_free(void **state)
{
    (void)state;
    assert_int_equal(TABLE_SIZES("\0\0\3\1\4\0\0\0\1\x20\x20\x82"
                                 "\0\0\3\1\4\0\0\0\3\x20\x20\x82"),
                     0);
    assert_int_equal(TABLE_SIZES("\0\0\6\1\4\0\0\0\1\x20\x21\x3e\x20\x20\x82"
                                 "\0\0\3\1\4\0\0\0\3\x20\x20\x82"),
                     3);
}

static void a_size_update_of_several_bytes_counts_once(void **state)
{
    (void)state;
    assert_int_equal(TABLE_SIZES("\0\0\xd\1\4\0\0\0\1\x3f\xa0\x1f\x3f\xe1\x1f\x3f\xa0\x20"
                                 "\x20\x3f\0\x82"),
                     3);
}

static void bytes_of_fields_and_other_frames_do_not_count_as_size_updates(void **state)
{
    (void)state;
    assert_int_equal(TABLE_SIZES("\0\0\7\1\4\0\0\0\1\0\1x\3\x20\x20\x20"
                                 "\0\0\4\0\0\0\0\0\1\x20\x20\x20\x20"),
                     0);
    /* a block without a field, and then data */
    assert_int_equal(TABLE_SIZES("\0\0\2\1\4\0\0\0\1\x20\x20"
                                 "\0\0\4\0\0\0\0\0\1\x20\x20\x20\x20"),
                     0);
    /* a field that goes on in the next frame */
    assert_int_equal(TABLE_SIZES("\0\0\4\1\0\0\0\0\1\0\1x\4"
                                 "\0\0\4\11\4\0\0\0\1\x20\x20\x20\x20"),
                     0);
}

static void size_updates_count_behind_padding_and_priority(void **state)
{
    (void)state;
    assert_int_equal(TABLE_SIZES("\0\0\14\1\x2c\0\0\0\1\2\x20\x20\x20\x20\x20" /* before */
                                 "\x20\x20\x20\x82\x20\x20"),
                     1);
    /* padding that begins like a field, or like updates, and a block that goes on */
    assert_int_equal(TABLE_SIZES("\0\0\3\1\x8\0\0\0\1\2\0\0"
                                 "\0\0\5\11\4\0\0\0\1\x20\x20\x20\x20\x82"),
                     2);
    assert_int_equal(TABLE_SIZES("\0\0\5\1\xc\0\0\0\1\4\x20\x20\x20\x20"), 0);
}

static void size_updates_count_over_all_frames_of_a_block(void **state)
{
    (void)state;
    assert_int_equal(TABLE_SIZES("\0\0\2\1\0\0\0\0\1\x20\x3f" /* is cut here */
                                 "\0\0\0\11\0\0\0\0\1"
                                 "\0\0\4\11\4\0\0\0\1\xe1\x20\x20\x82"),
                     1);
}

RP_TESTS(frame_meter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_counted_however_their_bytes_are_split),
        cmocka_unit_test(a_frame_header_counts_once_complete),
        cmocka_unit_test(two_size_updates_of_each_header_block_are_free),
        cmocka_unit_test(a_size_update_of_several_bytes_counts_once),
        cmocka_unit_test(bytes_of_fields_and_other_frames_do_not_count_as_size_updates),
        cmocka_unit_test(size_updates_count_behind_padding_and_priority),
        cmocka_unit_test(size_updates_count_over_all_frames_of_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
