/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/reverb_messages.h"

#include <float.h>

#include "support/chunks.h"
#include "support/echo.h"
#include "support/hex.h"
#include "util/rng.h"
#include "wire/fields.h"

#define INSERT_REQUEST                                                                         \
    "0a34 0801 1204 08071802 2a26 0a24 0809 1204 12020803 221a 185c"                           \
    "0000000000000000 0100000000000000 0200000000000000 3001 3818"                             \
    "1218 0802 120174 29000000000000f03f 4208 0a06 0a04 08011803"                              \
    "1a01 01"

static bool text_is(rp_string text, const char *expected)
{
    return text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
}

static void messages_made_by_protoc_round_trip(void **state)
{
    static const struct {
        const char *message, *hex;
    } vectors[] = {
        {"InsertStreamRequest", INSERT_REQUEST},
        {"InsertStreamResponse", "0a01 02"},
        {"SampleStreamRequest", "0a0174 1001 1a0b 08ffffffffffffffffff01"},
        {"SampleStreamRequest", "0a0174 1001 1a00"},
        {"SampleStreamRequest", "0a0174 1001"},
        {"MutatePrioritiesRequest", "0a0174 120b 0802 11000000000000e03f 1a01 03"},
        {"ResetRequest", "0a0174"},
        {"CheckpointResponse", "0a042f746d70"},
    };
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        rp_test_bytes b = rp_test_bytes_of(vectors[i].hex);
        rp_error err = {0};
        assert_ok_err(rp_test_echo(vectors[i].message, b.data, b.size, &out, &err), &err);
        assert_wrote(&out, vectors[i].hex);
    }
    rp_buf_deinit(&out);
}

static rp_wire_sample_request sample_request(const char *hex)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_wire_sample_request request;
    rp_error err = {0};

    assert_ok_err(rp_wire_read_sample_request(b.data, b.size, &request, &err), &err);
    request.table = (rp_string){"", request.table.size}; /* `b` is gone */
    return request;
}

static void a_timeout_of_zero_is_not_an_absent_one(void **state)
{
    rp_wire_sample_request request = sample_request("0a0174 1001 1a00");

    (void)state;
    assert_true(request.has_timeout && request.timeout_ms == 0 && request.num_samples == 1);
    request = sample_request("0a0174 1001 1a0b 08ffffffffffffffffff01");
    assert_true(request.has_timeout && request.timeout_ms == -1);
    request = sample_request("0a0174 1001 1a03 08ac02");
    assert_true(request.has_timeout && request.timeout_ms == 300);
    request = sample_request("0a0174 1001");
    assert_false(request.has_timeout);
}

static void any_number_of_samples_is_passed_on(void **state)
{
    (void)state;
    assert_int_equal(sample_request("0a0174").num_samples, 0);
    assert_int_equal(sample_request("10 ffffffffffffffffff01").num_samples, -1);
    assert_int_equal(sample_request("10 ffffffffffffffff7f").num_samples, INT64_MAX);
    assert_int_equal(sample_request("10 8080808008").num_samples, (int64_t)1 << 31);
    assert_int_equal(sample_request("10 8080808008").table.size, 0);
}

static void fields_may_come_twice_in_any_order_and_unknown(void **state)
{
    /* 4 is reserved; 100 unknown in each of the four types; 2 with the wrong type */
    rp_test_bytes b = rp_test_bytes_of("1005 2001 a00601 a10600000000 00000000 a20602aabb "
                                       "a50600000000 1203414243 0a0178 1007 0a0174");
    rp_wire_sample_request request;
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_sample_request(b.data, b.size, &request, &err), &err);
    assert_true(text_is(request.table, "t"));
    assert_int_equal(request.num_samples, 7);
    assert_false(request.has_timeout);
}

static void bytes_that_are_no_message_are_refused_with_a_sentence(void **state)
{
    static const struct {
        const char *message, *hex;
    } wrong[] = {
        {"SampleStreamRequest", "0a"},
        {"SampleStreamRequest", "0a0574"},
        {"SampleStreamRequest", "1a02 0880"},     /* within the timeout */
        {"SampleStreamRequest", "0b 0c"},         /* a group */
        {"SampleStreamRequest", "0a01ff"},        /* not UTF-8 */
        {"SampleStreamRequest", "0a0100"},        /* a zero */
        {"MutatePrioritiesRequest", "1202 0880"}, /* within an update */
        {"MutatePrioritiesRequest", "1a01 80"},   /* within the keys */
        {"MutatePrioritiesRequest", "0a0174 00"}, /* field 0 */
        {"MutatePrioritiesRequest", "0a0180"},
        {"ResetRequest", "0aff"},
        {"ResetRequest", "0a0180"},
        {"InitializeConnectionRequest", "08"},
        {"InitializeConnectionRequest", "120180"},
    };
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        rp_test_bytes b = rp_test_bytes_of(wrong[i].hex);
        rp_error err = {0};
        assert_int_equal(rp_test_echo(wrong[i].message, b.data, b.size, &out, &err),
                         RP_INVALID);
        assert_int_equal(err.code, RP_INVALID);
        assert_true(strstr(err.text, wrong[i].message) != NULL ||
                    strstr(err.text, "the table's name is not UTF-8 text") != NULL);
    }
    assert_int_equal(out.size, 0);
    rp_buf_deinit(&out);
}

static void updates_and_keys_are_counted_then_copied(void **state)
{
    rp_test_bytes b =
        rp_test_bytes_of("1804 120b 0802 11000000000000e03f 0a0174 1a02 0506 1200 "
                         "1a00 1202 0809");
    rp_wire_mutate_request request;
    rp_update updates[3];
    uint64_t keys[3];
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_mutate_request(b.data, b.size, 6, &request, &err), &err);
    assert_true(text_is(request.table, "t"));
    assert_int_equal(request.update_count, 3);
    assert_int_equal(request.delete_count, 3);
    rp_wire_mutate_updates(&request, updates);
    rp_wire_mutate_deletes(&request, keys);
    assert_true(updates[0].key == 2 && updates[0].priority == 0.5);
    assert_true(updates[1].key == 0 && updates[1].priority == 0.0);
    assert_true(updates[2].key == 9 && updates[2].priority == 0.0);
    assert_true(keys[0] == 4 && keys[1] == 5 && keys[2] == 6);
}

/* Reads a message of one update, and `behind` bytes of another field. */
static rp_status read_update(const uint8_t *content, size_t size, size_t behind,
                             rp_update *update)
{
    size_t bytes = 2 + size + behind;
    uint8_t *message = calloc(1, bytes); /* of its own, so that a sanitizer sees its end */
    rp_wire_mutate_request request;
    rp_status st;

    assert_non_null(message);
    message[0] = 0x12;
    message[1] = (uint8_t)size;
    memcpy(message + 2, content, size);
    if (behind >= 2) {
        message[2 + size] = 0x7a;
        message[3 + size] = (uint8_t)(behind - 2);
    }
    st = rp_wire_read_mutate_request(message, bytes, 1, &request, NULL);
    if (st == RP_OK) {
        assert_int_equal(request.update_count, 1);
        rp_wire_mutate_updates(&request, update);
    }
    free(message);
    return st;
}

/* The same field by field. */
static rp_status read_closely(const uint8_t *content, size_t size, rp_update *update)
{
    rp_pb_reader reader = rp_pb_open(content, size);
    rp_pb_step step;
    rp_pb_field f;

    *update = (rp_update){0, 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) update->key = f.value;
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) memcpy(&update->priority, &f.value, 8);
    }
    return step == RP_PB_END ? RP_OK : RP_INVALID;
}

static void the_fast_path_reads_updates_like_the_full_parser(void **state)
{
    enum { LONGEST = 20 };
    const size_t rounds = rp_test_length(200000, 20000);
    size_t plain = 0, refused = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 7);
    for (size_t i = 0; i < rounds; i++) {
        uint8_t content[LONGEST] = {0x08};
        rp_update closely = {1, 2}, at_a_glance = {3, 4};
        size_t key = 1 + rp_rng_below(&rng, 10), size = 1 + key + 9;
        size_t behind = 2 * rp_rng_below(&rng, 3);
        rp_status st;

        for (size_t k = 1; k < size; k++)
            content[k] = (uint8_t)(rp_rng_next(&rng) | (k < key ? 0x80 : 0));
        content[key] &= key == 10 ? 3 : 0x7f; /* above 1 the tenth byte is out of range */
        content[1 + key] = 0x11;
        for (uint64_t broken = rp_rng_below(&rng, 3); broken > 0; broken--)
            content[rp_rng_below(&rng, size)] = (uint8_t)rp_rng_next(&rng);
        size -= rp_rng_below(&rng, 8) == 0;
        st = read_closely(content, size, &closely);
        assert_int_equal(read_update(content, size, behind, &at_a_glance), st);
        refused += st != RP_OK;
        if (st != RP_OK) continue;
        plain++;
        assert_memory_equal(&closely, &at_a_glance, sizeof closely);
    }
    assert_true(plain > rounds / 10 && refused > rounds / 10);
}

static void one_key_more_than_allowed_is_refused(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("1202 0801 1a02 0506");
    rp_wire_mutate_request request;
    rp_error err = {0};

    (void)state;
    assert_ok(rp_wire_read_mutate_request(b.data, b.size, 3, &request, &err));
    assert_fails(rp_wire_read_mutate_request(b.data, b.size, 2, &request, &err), RP_NO_RESOURCE,
                 &err, "more than 2 keys");
}

static void initialize_requests_have_process_and_table(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("08969701 120175 1801");
    int64_t pid;
    rp_string table;
    rp_error err = {0};

    (void)state;
    assert_ok_err(rp_wire_read_initialize_request(b.data, b.size, &pid, &table, &err), &err);
    assert_int_equal(pid, 19350);
    assert_true(text_is(table, "u"));
}

static void confirmations_are_packed(void **state)
{
    const uint64_t keys[] = {2, 0, UINT64_MAX, 300};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_insert_response(&out, keys, 4);
    assert_wrote(&out, "0a0e 02 00 ffffffffffffffffff01 ac02");
    rp_wire_write_insert_response(&out, keys, 0);
    assert_wrote(&out, "");
    rp_buf_deinit(&out);
}

static void every_selector_says_whether_it_is_deterministic(void **state)
{
    static const struct {
        rp_selector_options options;
        const char *hex; /* of KeyDistributionOptions */
    } selectors[] = {
        {{RP_FIFO, 0}, "04 0801 3801"},
        {{RP_LIFO, 0}, "04 3001 3801"},
        {{RP_UNIFORM, 0}, "02 1001"},
        {{RP_PRIORITIZED, 0.6}, "0b 1a09 09333333333333e33f"},
        {{RP_PRIORITIZED, 0.0}, "02 1a00"},
        {{RP_MIN_HEAP, 0}, "06 2202 0801 3801"},
        {{RP_MAX_HEAP, 0}, "04 2200 3801"},
    };
    const uint64_t state_id[2] = {1, 2};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < COUNT_OF(selectors); i++) {
        rp_table_info info = {.sampler = selectors[i].options, .remover = {RP_FIFO, 0}};
        rp_test_bytes sampler = rp_test_bytes_of(selectors[i].hex);
        rp_wire_write_server_info(&out, state_id, &info, 1);
        assert_false(out.bad);
        /* 0a04 08011002, then 12 <length> 0a <sampler> */
        assert_memory_equal(out.data, "\x0a\x04\x08\x01\x10\x02\x12", 7);
        assert_int_equal(out.data[8], 0x0a);
        assert_memory_equal(out.data + 9, sampler.data, sampler.size);
        rp_buf_clear(&out);
    }
    rp_buf_deinit(&out);
}

static void server_info_has_all_that_reverb_asks_for(void **state)
{
    const uint64_t state_id[2] = {0xa366a45c1a59cc93u, 0x585374a4d9be2f39u};
    rp_table_info tables[2] = {
        {
            .name = "p",
            .sampler = {RP_PRIORITIZED, 0.6},
            .remover = {RP_FIFO, 0},
            .limiter = {1.0, 1, -DBL_MAX, DBL_MAX},
            .max_size = 1000,
            .max_times_sampled = 3,
            .size = 1,
            .inserts = 2,
            .samples = 3,
            .episodes = 1,
            .deleted_episodes = 5,
            .unique_samples = 1,
        },
        {
            .name = "q",
            .sampler = {RP_FIFO, 0},
            .remover = {RP_FIFO, 0},
            .limiter = {1.0, 1, 0.0, 10.0},
            .max_size = 10,
            .max_times_sampled = -1,
        },
    };
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, tables, 2);
    assert_wrote(&out,
                 "0a15 089399e7d2c18ba9b3a301 10b9def8cdcd94dda958"
                 "124c 0a0b 1a09 09333333333333e33f 1204 0801 3801 18e807 2003"
                 "2a25 09000000000000f03f 11ffffffffffffefff 19ffffffffffffef7f 2001 2a02 1002"
                 "3202 1003 3801 420170 4801 5005 5801 6200"
                 "1238 0a04 0801 3801 1204 0801 3801 180a 20ffffffffffffffffff01"
                 "2a18 09000000000000f03f 190000000000002440 2001 2a00 3200 420171 6200");
    rp_buf_deinit(&out);
}

static void server_info_without_tables_has_its_state_id(void **state)
{
    const uint64_t state_id[2] = {0, 0};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, NULL, 0);
    assert_wrote(&out, "0a00");
    rp_buf_deinit(&out);
}

static void server_info_carries_signatures(void **state)
{
    const uint64_t state_id[2] = {1, 1};
    rp_spec columns[] = {{"a", RP_FLOAT32, SHAPE(-1, 2)}, {"b", RP_INT64, SHAPE(-1)}};
    rp_table_info table = {.name = "sig", .max_size = 1};
    rp_buf out;

    (void)state;
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, 2, &table.signature, NULL));
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_write_server_info(&out, state_id, &table, 1);
    assert_wrote(&out,
                 "0a04 0801 1001 1260 0a04 0801 3801 1204 0801 3801 1801 2a04 2a00 3200"
                 "3243 aa0340"
                 "0a20 0a0161 121b 8a0218 0a0161 1211 120b08ffffffffffffffffff01 12020802 1801"
                 "0a1c 0a0162 1217 8a0214 0a0162 120d 120b08ffffffffffffffffff01 1809"
                 "4203736967 6200");
    rp_buf_deinit(&out);
    rp_signature_unref(table.signature);
}

RP_TESTS(reverb_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_made_by_protoc_round_trip),
        cmocka_unit_test(a_timeout_of_zero_is_not_an_absent_one),
        cmocka_unit_test(any_number_of_samples_is_passed_on),
        cmocka_unit_test(fields_may_come_twice_in_any_order_and_unknown),
        cmocka_unit_test(bytes_that_are_no_message_are_refused_with_a_sentence),
        cmocka_unit_test(updates_and_keys_are_counted_then_copied),
        cmocka_unit_test(the_fast_path_reads_updates_like_the_full_parser),
        cmocka_unit_test(one_key_more_than_allowed_is_refused),
        cmocka_unit_test(initialize_requests_have_process_and_table),
        cmocka_unit_test(confirmations_are_packed),
        cmocka_unit_test(every_selector_says_whether_it_is_deterministic),
        cmocka_unit_test(server_info_has_all_that_reverb_asks_for),
        cmocka_unit_test(server_info_without_tables_has_its_state_id),
        cmocka_unit_test(server_info_carries_signatures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
