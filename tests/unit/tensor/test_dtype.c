/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chunks.h"
#include "tensor/tensor.h"

static void every_dtype_has_a_name_and_a_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rp_test_dtypes); i++) {
        assert_non_null(rp_dtype_name(rp_test_dtypes[i]));
        assert_in_range(rp_dtype_size(rp_test_dtypes[i]), 1, 16);
    }
    assert_int_equal(rp_dtype_size(RP_STRING), sizeof(rp_string));
}

static void no_two_dtypes_share_a_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rp_test_dtypes); i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rp_dtype_name(rp_test_dtypes[i]),
                                    rp_dtype_name(rp_test_dtypes[k]));
}

static void there_are_twenty_five_dtypes(void **state)
{
    int known = 0;

    (void)state;
    for (int i = -3; i < 200; i++) known += rp_dtype_name((rp_dtype)i) != NULL;
    assert_int_equal(known, 25);
    assert_int_equal(known, COUNT_OF(rp_test_dtypes) + 1);
}

static void unknown_dtypes_have_neither_name_nor_size(void **state)
{
    static const int none[] = {-1, 0, 20, 21, 26, 27, 28, 31, 32, 101, 1000, INT32_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        assert_null(rp_dtype_name((rp_dtype)none[i]));
        assert_int_equal(rp_dtype_size((rp_dtype)none[i]), 0);
        assert_false(rp_dtype_is_integer((rp_dtype)none[i]));
    }
}

static void eight_dtypes_are_plain_integers(void **state)
{
    static const rp_dtype plain[] = {RP_INT8,  RP_INT16,  RP_INT32,  RP_INT64,
                                     RP_UINT8, RP_UINT16, RP_UINT32, RP_UINT64};
    int integers = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(plain); i++) assert_true(rp_dtype_is_integer(plain[i]));
    for (size_t i = 0; i < COUNT_OF(rp_test_dtypes); i++)
        integers += rp_dtype_is_integer(rp_test_dtypes[i]);
    assert_int_equal(integers, 8);
}

static void names_are_those_tensorflow_prints(void **state)
{
    (void)state;
    assert_string_equal(rp_dtype_name(RP_FLOAT32), "float");
    assert_string_equal(rp_dtype_name(RP_FLOAT64), "double");
    assert_string_equal(rp_dtype_name(RP_FLOAT16), "half");
    assert_string_equal(rp_dtype_name(RP_INT64), "int64");
    assert_string_equal(rp_dtype_name(RP_STRING), "string");
}

static void sizes_are_those_of_the_wire(void **state)
{
    (void)state;
    assert_int_equal(rp_dtype_size(RP_INT4), 1);
    assert_int_equal(rp_dtype_size(RP_BOOL), 1);
    assert_int_equal(rp_dtype_size(RP_BFLOAT16), 2);
    assert_int_equal(rp_dtype_size(RP_QINT32), 4);
    assert_int_equal(rp_dtype_size(RP_COMPLEX64), 8);
    assert_int_equal(rp_dtype_size(RP_COMPLEX128), 16);
}

RP_TESTS(dtype)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_has_a_name_and_a_size),
        cmocka_unit_test(no_two_dtypes_share_a_name),
        cmocka_unit_test(there_are_twenty_five_dtypes),
        cmocka_unit_test(unknown_dtypes_have_neither_name_nor_size),
        cmocka_unit_test(eight_dtypes_are_plain_integers),
        cmocka_unit_test(names_are_those_tensorflow_prints),
        cmocka_unit_test(sizes_are_those_of_the_wire),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
