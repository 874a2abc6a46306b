/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/fields.h"

#include "support/hex.h"

static rp_pb_field field_of(const rp_test_bytes *bytes)
{
    rp_pb_reader reader = rp_pb_open(bytes->data, bytes->size);
    rp_pb_field f;

    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    return f;
}

static void text_is_utf8_without_zeroes(void **state)
{
    static const char *const good[] = {
        "",       "61",     "7f",     "c280",     "dfbf",     "e0a080",
        "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf", "61 c3a9 e282ac f09f9880",
    };
    static const char *const bad[] = {
        "00", /* a zero */
        "80",
        "bf",          /* a continuation that continues nothing */
        "c0 80",       /* a zero in two bytes */
        "c1 bf",       /* overlong */
        "e0 9f bf",    /* overlong */
        "f0 8f bf bf", /* overlong */
        "ed a0 80",
        "ed bf bf",    /* halves of a pair */
        "f4 90 80 80", /* beyond the last code point */
        "f8 88 80 80 80",
        "ff",
        "c2",
        "e2 82",
        "f0 9f 98",
        "c2 61",
        "e2 82 61", /* cut off */
        "61 00 62",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        rp_test_bytes b = rp_test_bytes_of(good[i]);
        assert_true(rp_wire_is_text(b.data, b.size));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        rp_test_bytes b = rp_test_bytes_of(bad[i]);
        assert_false(rp_wire_is_text(b.data, b.size));
    }
}

static void names_are_borrowed_up_to_255_bytes(void **state)
{
    uint8_t bytes[1100];
    rp_pb_field f = {.number = 1, .type = RP_PB_BYTES, .data = bytes, .size = 255};
    rp_string name = {NULL, 7};
    rp_error err = {0};

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_ok(rp_wire_read_text(&f, "the name", &name, &err));
    assert_ptr_equal(name.data, bytes);
    assert_int_equal(name.size, 255);

    f.size = 256;
    name = (rp_string){NULL, 7};
    assert_fails(rp_wire_read_text(&f, "the name", &name, &err), RP_INVALID, &err,
                 "the name has 256 bytes, the limit is 255");
    f.size = 10;
    bytes[3] = 0x80;
    assert_fails(rp_wire_read_text(&f, "the name", &name, &err), RP_INVALID, &err, "UTF-8");
    assert_int_equal(name.size, 7);
}

static void numbers_are_read_packed_or_not(void **state)
{
    rp_test_bytes packed = rp_test_bytes_of("1a 0d 01 8001 ffffffffffffffffff 01");
    rp_test_bytes single = rp_test_bytes_of("18 07");
    rp_test_bytes fixed = rp_test_bytes_of("1d 01000000");
    rp_pb_field f = field_of(&packed);
    uint64_t values[8] = {0}, *end;
    size_t count = 0;

    (void)state;
    assert_true(rp_wire_count_numbers(&f, &count));
    assert_int_equal(count, 3);
    end = rp_wire_copy_numbers(&f, values);
    f = field_of(&single);
    assert_true(rp_wire_count_numbers(&f, &count));
    assert_int_equal(count, 4);
    end = rp_wire_copy_numbers(&f, end);
    f = field_of(&fixed); /* the wrong type: as if it were not there */
    assert_true(rp_wire_count_numbers(&f, &count));
    assert_int_equal(count, 4);
    assert_ptr_equal(rp_wire_copy_numbers(&f, end), end);
    assert_ptr_equal(end, values + 4);
    assert_true(values[0] == 1 && values[1] == 128 && values[2] == UINT64_MAX &&
                values[3] == 7);
}

static void packed_numbers_that_end_early_are_refused(void **state)
{
    rp_test_bytes cut = rp_test_bytes_of("1a 03 01 80 80");
    rp_test_bytes wide = rp_test_bytes_of("1a 0a ffffffffffffffffff 02");
    rp_pb_field f = field_of(&cut);
    size_t count = 0;

    (void)state;
    assert_false(rp_wire_count_numbers(&f, &count));
    f = field_of(&wide);
    assert_false(rp_wire_count_numbers(&f, &count));
}

static void defaults_are_left_out_unless_asked_for(void **state)
{
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_wire_put_number(&out, 1, 0);
    rp_wire_put_int(&out, 1, 0);
    rp_wire_put_double(&out, 1, 0.0);
    rp_wire_put_bytes(&out, 1, "x", 0);
    rp_wire_put_text(&out, 1, "");
    rp_wire_put_text(&out, 1, NULL);
    rp_wire_put_packed(&out, 1, NULL, 0);
    assert_wrote(&out, "");

    rp_wire_put_number_always(&out, 1, 0);
    rp_wire_put_bytes_always(&out, 2, NULL, 0);
    rp_wire_put_double(&out, 3, -0.0);
    rp_wire_put_int(&out, 4, -1);
    assert_wrote(&out, "0800 1200 19 0000000000000080 20 ffffffffffffffffff01");
    rp_buf_deinit(&out);
}

/* Reads the one field of a buffer, and of that again, `depth` times; what is left are zeroes.
 */
static void check_nested(const rp_buf *buf, size_t depth, const uint8_t *data, size_t size)
{
    rp_pb_reader reader = rp_pb_open(buf->data, buf->size);
    rp_pb_field f = {0};

    for (size_t i = 0; i < depth; i++) {
        assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
        assert_int_equal(f.number, 20 + i);
        assert_ptr_equal(reader.at, reader.end);
        reader = rp_pb_open(f.data, f.size);
    }
    assert_int_equal(f.size, size);
    assert_true(size == 0 || memcmp(f.data, data, size) == 0);
}

static void submessages_have_their_length_in_front(void **state)
{
    static const size_t sizes[] = {0, 1, 126, 127, 128, 129, 16383, 16384, 16385, 2097152};
    static uint8_t data[2097152];
    rp_buf out;

    (void)state;
    for (size_t k = 0; k < sizeof data; k++) data[k] = (uint8_t)k;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t depth = 1; depth <= 5; depth++) {
            size_t marks[5];
            rp_buf_clear(&out);
            for (size_t k = 0; k < depth; k++)
                marks[k] = rp_wire_begin(&out, (uint32_t)(20 + k));
            rp_buf_append(&out, data, sizes[i]);
            for (size_t k = depth; k-- > 0;) rp_wire_end(&out, marks[k]);
            assert_false(out.bad);
            check_nested(&out, depth, data, sizes[i]);
        }
    rp_buf_deinit(&out);
}

static rp_status write_much(const rp_allocator *alloc)
{
    uint64_t keys[100];
    rp_buf out;
    bool bad;

    memset(keys, 0xff, sizeof keys);
    rp_buf_init(&out, alloc);
    for (int i = 0; i < 3; i++) {
        size_t mark = rp_wire_begin(&out, 1), inner = rp_wire_begin(&out, 2);
        rp_wire_put_packed(&out, 3, keys, COUNT_OF(keys));
        rp_wire_end(&out, inner);
        rp_wire_put_text(&out, 4, "text");
        rp_wire_put_double(&out, 5, 1.5);
        rp_wire_put_bytes_always(&out, 6, keys, sizeof keys);
        rp_wire_end(&out, mark);
    }
    bad = out.bad;
    rp_buf_deinit(&out);
    return bad ? RP_NO_RESOURCE : RP_OK;
}

static void writing_without_memory_leaves_a_bad_buffer(void **state)
{
    (void)state;
    rp_test_survives_oom(write_much);
}

RP_TESTS(fields)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_utf8_without_zeroes),
        cmocka_unit_test(names_are_borrowed_up_to_255_bytes),
        cmocka_unit_test(numbers_are_read_packed_or_not),
        cmocka_unit_test(packed_numbers_that_end_early_are_refused),
        cmocka_unit_test(defaults_are_left_out_unless_asked_for),
        cmocka_unit_test(submessages_have_their_length_in_front),
        cmocka_unit_test(writing_without_memory_leaves_a_bad_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
