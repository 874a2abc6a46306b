/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/admin_messages.h"

#include <float.h>

#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/echo.h"
#include "support/hex.h"

static rp_wire_table_options options_of(const char *hex)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_wire_table_options options;
    rp_error err = {0};

    assert_ok_err(rp_wire_read_create_table(b.data, b.size, &options, &err), &err);
    return options; /* what it borrows is gone */
}

static void absent_options_have_their_defaults(void **state)
{
    rp_wire_table_options o = options_of("0a00");

    (void)state;
    assert_int_equal(o.name.size, 0);
    assert_int_equal(o.sampler.kind, RP_UNIFORM);
    assert_int_equal(o.remover.kind, RP_FIFO);
    assert_true(o.limiter.samples_per_insert == 1.0 && o.limiter.min_size == 1);
    assert_true(o.limiter.min_diff == -DBL_MAX && o.limiter.max_diff == DBL_MAX);
    assert_true(o.max_size == 0 && o.max_bytes == 0 && o.max_times_sampled == 0);
    assert_false(o.soft_limit);
    assert_null(o.signature);
}

static void every_option_is_read(void **state)
{
    rp_wire_table_options o =
        options_of("0a47 0a0174 120b 1a09 09000000000000e03f 1a04 2202 0801"
                   "2064 28c801 3003 3801"
                   "421d 090000000000000040 100a 19000000000000f0bf"
                   "21000000000000f03f 4a07 8a020412001801");

    (void)state;
    assert_int_equal(o.name.size, 1);
    assert_true(o.sampler.kind == RP_PRIORITIZED && o.sampler.exponent == 0.5);
    assert_int_equal(o.remover.kind, RP_MIN_HEAP);
    assert_true(o.max_size == 100 && o.max_bytes == 200 && o.max_times_sampled == 3);
    assert_true(o.soft_limit);
    assert_true(o.limiter.samples_per_insert == 2.0 && o.limiter.min_size == 10);
    assert_true(o.limiter.min_diff == -1.0 && o.limiter.max_diff == 1.0);
    assert_non_null(o.signature);
    assert_int_equal(o.signature_size, 7);
}

static void every_distribution_is_known(void **state)
{
    (void)state;
    assert_int_equal(options_of("0a04 1202 0801").sampler.kind, RP_FIFO);
    assert_int_equal(options_of("0a04 1202 0800").sampler.kind, RP_FIFO); /* set, if false */
    assert_int_equal(options_of("0a04 1202 1001").sampler.kind, RP_UNIFORM);
    assert_int_equal(options_of("0a04 1202 1a00").sampler.kind, RP_PRIORITIZED);
    assert_int_equal(options_of("0a04 1202 2200").sampler.kind, RP_MAX_HEAP);
    assert_int_equal(options_of("0a04 1202 3001").sampler.kind, RP_LIFO);
    /* the last of a oneof counts, messages are merged, other members are forgotten */
    assert_int_equal(options_of("0a06 1204 0801 3001").sampler.kind, RP_LIFO);
    assert_int_equal(options_of("0a08 1206 2202 0801 2200").sampler.kind, RP_MIN_HEAP);
    assert_int_equal(options_of("0a0a 1208 2202 0801 0801 2200").sampler.kind, RP_MAX_HEAP);
}

static void parts_of_options_are_merged(void **state)
{
    /* twice options; in them twice a limiter */
    rp_wire_table_options o =
        options_of("0a06 2064 4202 1005 0a0d 420b 09000000000000e03f 1006");

    (void)state;
    assert_int_equal(o.max_size, 100);
    assert_true(o.limiter.samples_per_insert == 0.5 && o.limiter.min_size == 6);
}

static void invalid_tables_are_refused(void **state)
{
    static const struct {
        const char *hex, *part;
    } wrong[] = {
        {"", "no options"},
        {"0a02 1200", "the sampler names no distribution"},
        {"0a02 1a00", "the remover names no distribution"},
        {"0a04 1202 2801", "the sampler names no distribution"}, /* 5 is reserved */
        {"0a04 1202 3801", "the sampler names no distribution"}, /* 7 is not one of them */
        {"0a03 1201 08", "CreateTableRequest"},
        {"0a05 1203 2201 08", "CreateTableRequest"},
        {"0a03 4201 09", "CreateTableRequest"},
        {"0a01 08", "CreateTableRequest"},
        {"0a", "CreateTableRequest"},
        {"0a03 0a01ff", "the table's name is not UTF-8"},
        {"0a04 4a00 4a00", "more than one signature"},
    };
    rp_error err = {0};
    rp_wire_table_options o;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rp_test_bytes b = rp_test_bytes_of(wrong[i].hex);
        assert_fails(rp_wire_read_create_table(b.data, b.size, &o, &err), RP_INVALID, &err,
                     wrong[i].part);
    }
}

static void altering_distinguishes_zero_from_absent(void **state)
{
    rp_test_bytes b =
        rp_test_bytes_of("0a0174 1000 2005 4001 2a0b 1003 190000000000000000 3001");
    rp_limiter_options limiter = {7.0, 8, 9.0, 10.0};
    rp_wire_alter_table alter, bytes_only;
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_alter_table(b.data, b.size, &alter, &err), &err);
    assert_true(alter.has_max_size && alter.max_size == 0);
    assert_false(alter.has_max_bytes);
    assert_true(alter.recenter);
    b = rp_test_bytes_of("18ffffffffffffffffff01");
    assert_ok_err(rp_wire_read_alter_table(b.data, b.size, &bytes_only, &err), &err);
    assert_true(bytes_only.has_max_bytes && bytes_only.max_bytes == UINT64_MAX);
    assert_false(bytes_only.has_max_size || bytes_only.recenter);
    assert_true(alter.has_max_times_sampled && alter.max_times_sampled == 5);
    rp_wire_limiter_apply(&alter.limiter, &limiter);
    assert_true(limiter.samples_per_insert == 7.0 && limiter.min_size == 3 &&
                limiter.min_diff == 0.0 && limiter.max_diff == 10.0);
}

static void sides_are_inserts_samples_or_both(void **state)
{
    static const struct {
        const char *hex;
        bool inserts, samples;
    } sides[] = {{"0a0174", true, true},
                 {"0a0174 1000", true, true},
                 {"0a0174 1001", true, false},
                 {"0a0174 1002", false, true}};
    rp_test_bytes b = rp_test_bytes_of("0a0174 1003");
    rp_wire_pause_table pause;
    rp_error err = {0};

    (void)state;
    assert_fails(rp_wire_read_pause_table(b.data, b.size, &pause, &err), RP_INVALID, &err,
                 "side must be in [0, 2], got 3");
    b = rp_test_bytes_of("10 ffffffffffffffffff01");
    assert_fails(rp_wire_read_pause_table(b.data, b.size, &pause, &err), RP_INVALID, &err,
                 "got -1");
    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        b = rp_test_bytes_of(sides[i].hex);
        assert_ok(rp_wire_read_pause_table(b.data, b.size, &pause, &err));
        assert_true(pause.inserts == sides[i].inserts && pause.samples == sides[i].samples);
    }
}

static void the_number_of_calls_described_is_bounded(void **state)
{
    static const struct {
        const char *hex;
        size_t calls;
    } asked[] = {{"", 100},
                 {"1001", 1},
                 {"10e807", 1000},
                 {"10e907", 1000},
                 {"10ffffffffffffffff7f", 1000}};
    rp_test_bytes b = rp_test_bytes_of("10ffffffffffffffffff01");
    rp_string table;
    size_t calls;
    rp_error err = {0};

    (void)state;
    assert_fails(rp_wire_read_why_blocked(b.data, b.size, &table, &calls, &err), RP_INVALID,
                 &err, "max_calls must be >= 0, got -1");
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        b = rp_test_bytes_of(asked[i].hex);
        assert_ok(rp_wire_read_why_blocked(b.data, b.size, &table, &calls, &err));
        assert_int_equal(calls, asked[i].calls);
        assert_int_equal(table.size, 0);
    }
}

static void waiting_calls_are_described(void **state)
{
    rp_waiting waiting = {.is_insert = true, .wanted = 5, .done = 2, .waiting_ns = 7999999};
    const rp_wire_caller nobody = {NULL, 0}, caller = {"a:1", 300};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    waiting.until_ns = RP_FOREVER;
    memcpy(waiting.why, "why", 4);
    rp_wire_write_waiting_call(&out, "t", &waiting, &nobody, 1000000);
    waiting.is_insert = false;
    waiting.until_ns = 3500000; /* 2.5 ms from now */
    rp_wire_write_waiting_call(&out, "t", &waiting, &nobody, 1000000);
    waiting.until_ns = 10; /* over already */
    rp_wire_write_waiting_call(&out, "t", &waiting, &caller, 1000000);
    rp_wire_write_waiting_total(&out, 9);
    assert_wrote(&out, "0a10 0a0174 1001 1805 2002 2807 3a03776879"
                       "0a12 0a0174 1002 1805 2002 2807 3002 3a03776879"
                       "0a1a 0a0174 1002 1805 2002 2807 3000 3a03776879 4203613a31 48ac02"
                       "1009");
    rp_buf_deinit(&out);
}

static void keys_are_counted_against_their_limit(void **state)
{
    rp_test_bytes keys = rp_test_bytes_of("0a0174 1202 0102 1003 1801 2001");
    rp_test_bytes updates = rp_test_bytes_of("0a0174 120b 0802 11000000000000e03f 1200");
    rp_wire_keys_request request;
    uint64_t copied[3];
    rp_update updated[2];
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_peek(keys.data, keys.size, 3, &request, &err), &err);
    assert_true(request.count == 3 && request.with_data && request.cut_rows);
    rp_wire_request_keys(&request, copied);
    assert_true(copied[0] == 1 && copied[1] == 2 && copied[2] == 3);
    assert_fails(rp_wire_read_peek(keys.data, keys.size, 2, &request, &err), RP_NO_RESOURCE,
                 &err, "more than 2 keys");
    assert_ok_err(rp_wire_read_delete(keys.data, keys.size, 3, &request, &err), &err);
    assert_int_equal(request.count, 3);
    assert_fails(rp_wire_read_delete(keys.data, keys.size, 2, &request, &err), RP_NO_RESOURCE,
                 &err, "more than 2 keys");

    assert_ok_err(rp_wire_read_update_request(updates.data, updates.size, 2, &request, &err),
                  &err);
    rp_wire_request_updates(&request, updated);
    assert_true(updated[0].key == 2 && updated[0].priority == 0.5);
    assert_true(updated[1].key == 0 && updated[1].priority == 0.0);
    assert_fails(rp_wire_read_update_request(updates.data, updates.size, 1, &request, &err),
                 RP_NO_RESOURCE, &err, "more than 1 keys");
}

static void bytes_that_are_no_request_are_refused(void **state)
{
    static const struct {
        const char *message, *hex;
    } wrong[] = {
        {"AlterTableRequest", "2a01 08"}, {"AlterTableRequest", "08"},
        {"AlterTableRequest", "0a01ff"},  {"DropTableRequest", "0a05"},
        {"PauseTableRequest", "0a01ff"},  {"PauseTableRequest", "10"},
        {"WhyBlockedRequest", "0a01ff"},  {"WhyBlockedRequest", "10"},
        {"PeekRequest", "120180"},        {"PeekRequest", "0a01ff"},
        {"DeleteRequest", "1205"},        {"UpdateRequest", "120180"},
        {"UpdateRequest", "0a"},          {"SampleRequest", "0a01ff"},
        {"SampleRequest", "31 00"},
    };
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rp_test_bytes b = rp_test_bytes_of(wrong[i].hex);
        rp_error err = {0};
        assert_int_equal(rp_test_echo(wrong[i].message, b.data, b.size, &out, &err),
                         RP_INVALID);
        assert_true(err.text[0] != '\0');
    }
    rp_buf_deinit(&out);
}

static void the_number_of_keys_found_is_written(void **state)
{
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_found(&out, 0);
    assert_wrote(&out, "");
    rp_wire_write_found(&out, 300);
    assert_wrote(&out, "08ac02");
    rp_buf_deinit(&out);
}

static void sample_requests_distinguish_zero_from_absent(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("0a0174 1005 1802 2000 2801 31000000000000e03f 3801");
    rp_wire_draw_request request;
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_draw(b.data, b.size, &request, &err), &err);
    assert_true(request.count == 5 && request.at_least == 2 && request.beta == 0.5);
    assert_true(request.has_timeout && request.timeout_ms == 0);
    assert_true(request.distinct && request.cut_rows);
    assert_ok(rp_wire_read_draw(NULL, 0, &request, &err));
    assert_false(request.has_timeout || request.distinct || request.cut_rows);
}

static rp_status write_sample(const rp_allocator *alloc)
{
    rp_chunk_slice slice = {.length = 2};
    rp_slices column = {&slice, 1, false};
    rp_sample sample = {.key = 5, .priority = 1.5, .weight = 0.25, .table_size = 3};
    rp_message_pool pool;
    rp_message *reply;
    rp_status st = rp_test_try_ints(alloc, 9, RP_CODEC_NONE, 2, 3000, &slice.chunk);

    if (st != RP_OK) return st;
    rp_message_pool_init(&pool, alloc);
    reply = rp_message_new(&pool);
    st = RP_NO_RESOURCE;
    if (reply != NULL) st = rp_trajectory_new(alloc, &column, 1, &sample.trajectory, NULL);
    if (st == RP_OK &&
        (!rp_wire_add_chunk(reply, slice.chunk) || !rp_wire_add_entry(reply, &sample, "t") ||
         !rp_wire_add_entry(reply, &sample, "t") || !rp_message_close(reply)))
        st = RP_NO_RESOURCE;
    if (st == RP_OK) { /* the chunk is borrowed: only heads and entries were copied */
        assert_int_equal(reply->piece_count, 1);
        assert_true(reply->bytes.size < 200);
    }
    rp_trajectory_unref(sample.trajectory);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    rp_chunk_unref(slice.chunk);
    return st;
}

static void samples_borrow_large_chunks_and_survive_no_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(write_sample);
}

RP_TESTS(replay_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_options_have_their_defaults),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(every_distribution_is_known),
        cmocka_unit_test(parts_of_options_are_merged),
        cmocka_unit_test(invalid_tables_are_refused),
        cmocka_unit_test(altering_distinguishes_zero_from_absent),
        cmocka_unit_test(sides_are_inserts_samples_or_both),
        cmocka_unit_test(the_number_of_calls_described_is_bounded),
        cmocka_unit_test(waiting_calls_are_described),
        cmocka_unit_test(keys_are_counted_against_their_limit),
        cmocka_unit_test(the_number_of_keys_found_is_written),
        cmocka_unit_test(bytes_that_are_no_request_are_refused),
        cmocka_unit_test(sample_requests_distinguish_zero_from_absent),
        cmocka_unit_test(samples_borrow_large_chunks_and_survive_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
