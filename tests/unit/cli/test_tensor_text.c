/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/tensor_text.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

static rp_arena arena;
static rp_text_buffer buffer;
static rp_problem problem;

static int begin(void **state)
{
    (void)state;
    rp_arena_init(&arena, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rp_arena_deinit(&arena);
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static void assert_buffer(const char *expected)
{
    assert_false(buffer.failed);
    assert_string_equal(rp_text_buffer_text(&buffer), expected);
    rp_text_buffer_clear(&buffer);
}

static rp_status read_text(const char *text, rp_dtype dtype, rp_tensor *out)
{
    rp_json_error error;
    rp_json *root;

    assert_ok(rp_json_parse(&arena, text, strlen(text), &root, &error));
    return rp_tensor_from_json(&arena, "obs", root, dtype, out, &problem);
}

static void tensors_are_printed_nested(void **state)
{
    const float floats[] = {1, 0.1f, -2.5e10f, INFINITY, NAN, 3};
    const int16_t numbers[] = {-1, 2};
    const bool flags[] = {true, false};
    const rp_string strings[] = {{"a\"b", 3}, {"", 0}};
    const float complex[] = {1, -2};

    (void)state;
    rp_tensor_print(&buffer, &(rp_tensor){RP_FLOAT32, {2, {2, 3}}, floats}, 0);
    assert_buffer("[[1 0.1 -2.5e+10] [inf nan 3]]");
    rp_tensor_print(&buffer, &(rp_tensor){RP_INT16, {0, {0}}, numbers}, 0);
    assert_buffer("-1");
    rp_tensor_print(&buffer, &(rp_tensor){RP_BOOL, {1, {2}}, flags}, 0);
    assert_buffer("[true false]");
    rp_tensor_print(&buffer, &(rp_tensor){RP_STRING, {1, {2}}, strings}, 0);
    assert_buffer("[\"a\\\"b\" \"\"]");
    rp_tensor_print(&buffer, &(rp_tensor){RP_COMPLEX64, {0, {0}}, complex}, 0);
    assert_buffer("1-2j");
    rp_tensor_print(&buffer, &(rp_tensor){RP_FLOAT32, {2, {2, 0}}, floats}, 0);
    assert_buffer("[[] []]");
}

static void large_tensors_are_cut(void **state)
{
    uint8_t bytes[100];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    rp_tensor_print(&buffer, &(rp_tensor){RP_UINT8, {1, {100}}, bytes}, 24);
    assert_buffer("[0 1 2 ... 97 98 99]");
    rp_tensor_print(&buffer, &(rp_tensor){RP_UINT8, {2, {2, 50}}, bytes}, 24);
    assert_buffer("[[0 1 2 ... 47 48 49] [50 51 52 ... 97 98 99]]");
    rp_tensor_print(&buffer, &(rp_tensor){RP_UINT8, {1, {7}}, bytes}, 24);
    assert_buffer("[0 1 2 3 4 5 6]");
}

static void json_is_nested_and_strict(void **state)
{
    const double doubles[] = {0.1, INFINITY};
    const uint64_t large[] = {UINT64_MAX};

    (void)state;
    rp_tensor_json(&buffer, &(rp_tensor){RP_FLOAT64, {2, {1, 2}}, doubles});
    assert_buffer("[[0.1,\"Infinity\"]]");
    rp_tensor_json(&buffer, &(rp_tensor){RP_UINT64, {0, {0}}, large});
    assert_buffer("18446744073709551615");
    rp_tensor_json(&buffer, &(rp_tensor){RP_COMPLEX128, {0, {0}}, doubles});
    assert_buffer("[0.1,\"Infinity\"]");
}

static void small_floats_are_read_exactly(void **state)
{
    static const struct {
        rp_dtype dtype;
        uint16_t bits;
        double value;
    } known[] = {
        {RP_FLOAT16, 0x3c00, 1},          {RP_FLOAT16, 0xc000, -2},
        {RP_FLOAT16, 0x0001, 0x1p-24},    {RP_FLOAT16, 0x7bff, 65504},
        {RP_FLOAT16, 0x7c00, INFINITY},   {RP_BFLOAT16, 0x3f80, 1},
        {RP_BFLOAT16, 0x4049, 3.140625},  {RP_FLOAT8_E5M2, 0x3c, 1},
        {RP_FLOAT8_E4M3FN, 0x38, 1},      {RP_FLOAT8_E4M3FN, 0x7e, 448},
        {RP_FLOAT8_E4M3FN, 0x01, 0x1p-9}, {RP_FLOAT16, 0x8000, -0.0},
    };
    static const rp_dtype all[] = {RP_FLOAT16, RP_BFLOAT16, RP_FLOAT8_E5M2, RP_FLOAT8_E4M3FN};
    uint16_t bits;
    rp_tensor t;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_true(rp_element_number(known[i].dtype, &known[i].bits) == known[i].value);
    assert_true(isnan(rp_element_number(RP_FLOAT8_E4M3FN, &(uint8_t){0x7f})));
    /* Every one of them, as text, comes back as it was; of those of two bytes, one in seven in
     * the short runs. */
    for (size_t d = 0; d < COUNT_OF(all); d++)
        for (uint32_t b = 0; b < 1U << (8 * rp_dtype_size(all[d])); b++) {
            if (rp_dtype_size(all[d]) == 2 && !rp_test_chosen(b, 7)) continue;
            bits = (uint16_t)b;
            if (isnan(rp_element_number(all[d], &bits))) continue;
            rp_tensor_json(&buffer, &(rp_tensor){all[d], {0, {0}}, &bits});
            assert_ok(read_text(rp_text_buffer_text(&buffer), all[d], &t));
            assert_memory_equal(t.data, &bits, rp_dtype_size(all[d]));
            rp_text_buffer_clear(&buffer);
            rp_arena_deinit(&arena);
            rp_arena_init(&arena, NULL);
        }
}

static void the_dtype_of_values_is_inferred(void **state)
{
    static const struct {
        const char *text;
        rp_dtype dtype;
    } known[] = {
        {"1", RP_INT64},
        {"[1, 2]", RP_INT64},
        {"[1, 2.5]", RP_FLOAT64},
        {"[[], [1]]", RP_INT64},
        {"true", RP_BOOL},
        {"[\"a\"]", RP_STRING},
        {"\"NaN\"", RP_FLOAT64},
        {"[1, \"NaN\"]", RP_FLOAT64},
        {"[true, 1]", RP_INVALID_DTYPE},
        {"[]", RP_INVALID_DTYPE},
        {"null", RP_INVALID_DTYPE},
        {"[1, null]", RP_INVALID_DTYPE},
        {"18446744073709551615", RP_UINT64},
        {"{}", RP_INVALID_DTYPE},
    };
    rp_json_error error;
    rp_json *root;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        assert_ok(rp_json_parse(&arena, known[i].text, strlen(known[i].text), &root, &error));
        if (rp_json_dtype(root) != known[i].dtype) fail_msg("%s", known[i].text);
    }
}

static void json_becomes_tensors(void **state)
{
    static const int32_t expected[] = {1, 2, 3, 4, 5, 6};
    rp_tensor t;

    (void)state;
    assert_ok(read_text("[[1, 2, 3], [4, 5, 6]]", RP_INT32, &t));
    assert_int_equal(t.shape.rank, 2);
    assert_int_equal(t.shape.dims[1], 3);
    assert_memory_equal(t.data, expected, sizeof expected);
    assert_ok(read_text("[-128, 127]", RP_INT8, &t));
    assert_ok(read_text("255", RP_UINT8, &t));
    assert_ok(read_text("9223372036854775807", RP_INT64, &t));
    assert_ok(read_text("18446744073709551615", RP_UINT64, &t));
    assert_ok(read_text("[\"NaN\", 1, 2.5]", RP_FLOAT32, &t));
    assert_ok(read_text("\"text\"", RP_STRING, &t));
    assert_int_equal(((const rp_string *)t.data)->size, 4);
    assert_ok(read_text("[[], []]", RP_FLOAT32, &t));
    assert_int_equal(t.shape.dims[1], 0);
}

static void values_that_do_not_fit_are_named(void **state)
{
    static const struct {
        const char *text;
        rp_dtype dtype;
        const char *part;
    } bad[] = {
        {"128", RP_INT8, "does not fit int8"},
        {"-129", RP_INT8, "does not fit int8"},
        {"256", RP_UINT8, "the number 256 at byte 1 does not fit uint8"},
        {"-1", RP_UINT64, "does not fit uint64"},
        {"18446744073709551615", RP_INT64, "the number 18446744073709551615 at byte 1"},
        {"1e300", RP_FLOAT32, "does not fit float32"},
        {"1.5", RP_INT32, "expected int32, got a number 1.5 at byte 1"},
        {"true", RP_INT32, "expected int32, got true"},
        {"[1, \"x\"]", RP_FLOAT32, "expected float32, got a string 'x' at byte 5"},
        {"1", RP_BOOL, "expected bool"},
        {"1", RP_STRING, "expected string"},
        {"[[1], [2, 3]]", RP_INT32, "different lengths"},
        {"[[1, 2], [3]]", RP_INT32, "different lengths"},
        {"[[1, 2], 3, 4]", RP_INT32, "different lengths, or depths"},
        {"[[1], 2, 3]", RP_INT32, "expected an array of 1 at byte 7"},
        {"[1, [2]]", RP_INT32, "different depth"},
        {"[[[[[[[[[1]]]]]]]]]", RP_INT32, "more than 8 dimensions"},
        {"1", RP_COMPLEX64, "complex"},
        {"null", RP_FLOAT32, "got null"},
    };
    rp_tensor t;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(read_text(bad[i].text, bad[i].dtype, &t), RP_INVALID);
        if (strstr(problem.text, bad[i].part) == NULL)
            fail_msg("%s: %s", bad[i].text, problem.text);
    }
}

RP_TESTS(tensor_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tensors_are_printed_nested, begin, end),
        cmocka_unit_test_setup_teardown(large_tensors_are_cut, begin, end),
        cmocka_unit_test_setup_teardown(json_is_nested_and_strict, begin, end),
        cmocka_unit_test_setup_teardown(small_floats_are_read_exactly, begin, end),
        cmocka_unit_test_setup_teardown(the_dtype_of_values_is_inferred, begin, end),
        cmocka_unit_test_setup_teardown(json_becomes_tensors, begin, end),
        cmocka_unit_test_setup_teardown(values_that_do_not_fit_are_named, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
