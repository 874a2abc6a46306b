/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/durability_wire.h"

#include "support/unit.h"
#include "wire/fields.h"

static rp_durable_info full_info(void)
{
    rp_durable_info info = {
        .mode = RP_DURABLE_SYNC,
        .degraded = true,
        .trouble = "no space left",
        .checkpoints = 4,
        .failed_checkpoints = 5,
        .last_checkpoint = 6,
        .last_checkpoint_age_ns = 7,
        .last_checkpoint_took_ns = 8,
        .last_pause_ns = 9,
        .last_checkpoint_bytes = 10,
        .lsn = 11,
        .safe_lsn = UINT64_MAX,
        .segments = 13,
        .disk_bytes = 14,
        .live_bytes = 15,
        .recovered_items = 16,
        .recovered_records = 17,
        .torn_bytes = 18,
        .resident_bytes = 19,
        .spilled_bytes = 20,
        .loads = 21,
        .load_bytes = 22,
        .load_hits = 26,
        .backlog_bytes = 24,
        .max_backlog_bytes = 25,
        .progress = {"checkpoint", 23, 24, 25, -1},
    };
    return info;
}

static int set_up(void **state)
{
    static rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    *state = &out;
    return 0;
}

static int tear_down(void **state)
{
    rp_buf_deinit(*state);
    return 0;
}

static void durability_info_round_trips(void **state)
{
    rp_buf *out = *state;
    rp_durable_info info = full_info(), back;
    bool is_there = false;
    rp_buf again;
    rp_error err;

    rp_wire_write_durability(out, &info);
    assert_ok_err(rp_wire_read_durability(out->data, out->size, &is_there, &back, &err), &err);
    assert_true(is_there);
    assert_string_equal(back.trouble, info.trouble);
    assert_string_equal(back.progress.what, "checkpoint");
    assert_int_equal(back.progress.left_ns, -1);
    assert_true(back.safe_lsn == UINT64_MAX && back.load_bytes == 22 && back.load_hits == 26 &&
                back.degraded);
    rp_buf_init(&again, rp_allocator_default());
    rp_wire_write_durability(&again, &back);
    assert_int_equal(again.size, out->size);
    assert_memory_equal(again.data, out->data, out->size);
    rp_buf_deinit(&again);
}

static void an_empty_response_has_no_durability(void **state)
{
    rp_buf *out = *state;
    rp_durable_info back;
    bool is_there = true;

    assert_ok(rp_wire_read_durability(out->data, out->size, &is_there, &back, NULL));
    assert_false(is_there);
}

static void an_idle_store_has_no_progress(void **state)
{
    rp_buf *out = *state;
    rp_durable_info info = {0}, back;
    bool is_there = false;

    rp_wire_write_durability(out, &info);
    assert_ok(rp_wire_read_durability(out->data, out->size, &is_there, &back, NULL));
    assert_true(is_there);
    assert_null(back.progress.what);
}

static void long_texts_are_cut_and_unknown_modes_read_as_the_strictest(void **state)
{
    rp_buf *out = *state;
    rp_durable_info back;
    bool is_there = false;
    char text[2 * RP_ERROR_TEXT_BYTES + 1];
    size_t mark = rp_wire_begin(out, 2), inner;

    for (size_t i = 0; i + 1 < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof text - 1] = '\0';
    rp_wire_put_number(out, 1, 9); /* a mode of tomorrow */
    rp_wire_put_text(out, 3, text);
    inner = rp_wire_begin(out, 23);
    rp_wire_put_text(out, 1, "dreaming");
    rp_wire_end(out, inner);
    rp_wire_end(out, mark);
    assert_ok(rp_wire_read_durability(out->data, out->size, &is_there, &back, NULL));
    assert_int_equal(back.mode, RP_DURABLE_SYNC);
    assert_string_equal(back.progress.what, "working");
    assert_true(rp_wire_is_text(back.trouble, strlen(back.trouble)));
    assert_true(strlen(back.trouble) >= RP_ERROR_TEXT_BYTES - 3);
}

static void malformed_bytes_are_corrupt(void **state)
{
    rp_buf *out = *state;
    rp_durable_info info = full_info(), back;
    bool is_there;
    rp_error err;

    rp_wire_write_durability(out, &info);
    for (size_t size = 1; size < out->size; size++)
        assert_int_equal(rp_wire_read_durability(out->data, size, &is_there, &back, &err),
                         RP_CORRUPT);
}

RP_TESTS(durability_wire)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(durability_info_round_trips, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_response_has_no_durability, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_store_has_no_progress, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            long_texts_are_cut_and_unknown_modes_read_as_the_strictest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(malformed_bytes_are_corrupt, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
