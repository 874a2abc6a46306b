/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chunks.h"

static size_t elements_of(rp_shape shape)
{
    size_t elements = SIZE_MAX;
    assert_ok(rp_shape_elements(&shape, &elements));
    return elements;
}

static void a_scalar_has_one_element(void **state)
{
    (void)state;
    assert_int_equal(elements_of(SCALAR), 1);
}

static void elements_are_the_product_of_the_dimensions(void **state)
{
    (void)state;
    assert_int_equal(elements_of(SHAPE(7)), 7);
    assert_int_equal(elements_of(SHAPE(2, 3, 4)), 24);
    assert_int_equal(elements_of(SHAPE(1, 1, 1, 1, 1, 1, 5)), 5);
}

static void a_dimension_of_zero_empties_the_shape(void **state)
{
    (void)state;
    assert_int_equal(elements_of(SHAPE(0)), 0);
    assert_int_equal(elements_of(SHAPE(3, 0, 2)), 0);
}

static void elements_of_invalid_and_overflowing_shapes_are_refused(void **state)
{
    const rp_shape bad[] = {
        SHAPE(-1),
        SHAPE(2, -1),
        SHAPE(INT64_MIN),
        SHAPE(INT64_MAX, 3),
        SHAPE((int64_t)1 << 32, (int64_t)1 << 32),
        {.rank = -1},
        {.rank = RP_MAX_RANK + 1},
    };
    size_t elements = 77;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(rp_shape_elements(&bad[i], &elements), RP_INVALID);
        assert_int_equal(elements, 77);
    }
}

static void a_zero_hides_no_overflow_of_the_others(void **state)
{
    rp_shape shape = SHAPE(0, (int64_t)1 << 40, (int64_t)1 << 40);
    size_t elements;

    (void)state;
    assert_int_equal(rp_shape_elements(&shape, &elements), RP_INVALID);
}

static void the_largest_product_fits(void **state)
{
    (void)state;
    assert_true(elements_of(SHAPE(INT64_MAX, 2)) == SIZE_MAX - 1);
}

static void equal_compares_rank_and_dimensions(void **state)
{
    (void)state;
    assert_true(rp_shape_equal(&SHAPE(2, 3), &SHAPE(2, 3)));
    assert_true(rp_shape_equal(&SCALAR, &SCALAR));
    assert_false(rp_shape_equal(&SHAPE(2, 3), &SHAPE(3, 2)));
    assert_false(rp_shape_equal(&SHAPE(2, 3), &SHAPE(2)));
    assert_false(rp_shape_equal(&SHAPE(1), &SCALAR));
}

static void equal_ignores_dimensions_beyond_the_rank(void **state)
{
    rp_shape a = SHAPE(2), b = SHAPE(2);

    (void)state;
    b.dims[1] = 99;
    assert_true(rp_shape_equal(&a, &b));
}

static void minus_one_fits_any_size(void **state)
{
    (void)state;
    assert_true(rp_shape_fits(&SHAPE(5, 3), &SHAPE(-1, 3)));
    assert_true(rp_shape_fits(&SHAPE(0, 3), &SHAPE(-1, -1)));
    assert_false(rp_shape_fits(&SHAPE(5, 3), &SHAPE(-1, 4)));
    assert_false(rp_shape_fits(&SHAPE(5), &SHAPE(-1, -1)));
    assert_false(rp_shape_fits(&SHAPE(5, 3), &SHAPE(-1)));
}

static void an_unknown_rank_fits_any_shape(void **state)
{
    rp_shape any = {.rank = -1};

    (void)state;
    assert_true(rp_shape_fits(&SCALAR, &any));
    assert_true(rp_shape_fits(&SHAPE(1, 2, 3), &any));
}

static void text_shows_dimensions_and_unknowns(void **state)
{
    char text[64];
    rp_shape any = {.rank = -1};

    (void)state;
    assert_string_equal(rp_shape_text(&SHAPE(2, -1, 3), text, sizeof text), "[2,?,3]");
    assert_string_equal(rp_shape_text(&SCALAR, text, sizeof text), "[]");
    assert_string_equal(rp_shape_text(&SHAPE(-7), text, sizeof text), "[-7]");
    assert_string_equal(rp_shape_text(&any, text, sizeof text), "<unknown>");
}

static void text_is_cut_to_fit(void **state)
{
    char text[10];

    (void)state;
    for (size_t size = 1; size <= 8; size++) {
        memset(text, 'x', sizeof text);
        rp_shape_text(&SHAPE(12, 345), text, size);
        assert_int_equal(strlen(text), size - 1);
        assert_memory_equal(text, "[12,345]", size - 1);
        assert_int_equal(text[size], 'x');
    }
}

RP_TESTS(shape)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scalar_has_one_element),
        cmocka_unit_test(elements_are_the_product_of_the_dimensions),
        cmocka_unit_test(a_dimension_of_zero_empties_the_shape),
        cmocka_unit_test(elements_of_invalid_and_overflowing_shapes_are_refused),
        cmocka_unit_test(a_zero_hides_no_overflow_of_the_others),
        cmocka_unit_test(the_largest_product_fits),
        cmocka_unit_test(equal_compares_rank_and_dimensions),
        cmocka_unit_test(equal_ignores_dimensions_beyond_the_rank),
        cmocka_unit_test(minus_one_fits_any_size),
        cmocka_unit_test(an_unknown_rank_fits_any_shape),
        cmocka_unit_test(text_shows_dimensions_and_unknowns),
        cmocka_unit_test(text_is_cut_to_fit),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
