/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/delta.h"

#include "support/chunks.h"
#include "tensor/tensor.h"

static const size_t widths[] = {1, 2, 4, 8};

static uint64_t load(const uint8_t *at, size_t width)
{
    uint64_t value = 0;
    memcpy(&value, at, width); /* little-endian, as everything here */
    return value;
}

static void encoding_leaves_the_first_row_and_subtracts_from_the_rest(void **state)
{
    uint8_t rows[] = {10, 200, 13, 190, 13, 250};
    const uint8_t expected[] = {10, 200, 3, 246, 0, 60};

    (void)state;
    rp_delta_encode(rows, 3, 2, 1);
    assert_memory_equal(rows, expected, sizeof rows);
    rp_delta_decode(rows, 3, 2, 1);
    assert_memory_equal(rows, ((uint8_t[]){10, 200, 13, 190, 13, 250}), sizeof rows);
}

static void differences_wrap_around(void **state)
{
    int16_t narrow[] = {INT16_MAX, INT16_MIN};
    int64_t wide[] = {INT64_MIN, INT64_MAX};

    (void)state;
    rp_delta_encode(narrow, 2, 2, 2);
    assert_int_equal(narrow[1], 1);
    rp_delta_encode(wide, 2, 8, 8);
    assert_int_equal(wide[1], -1);
    rp_delta_decode(narrow, 2, 2, 2);
    rp_delta_decode(wide, 2, 8, 8);
    assert_int_equal(narrow[1], INT16_MIN);
    assert_true(wide[1] == INT64_MAX);
}

static void carries_stay_within_their_element(void **state)
{
    uint8_t rows[4] = {0, 5, 1, 4};
    uint16_t both[2];

    (void)state;
    rp_delta_encode(rows, 2, 2, 1);
    assert_int_equal(rows[2], 1);
    assert_int_equal(rows[3], 255);
    memcpy(both, (uint8_t[]){0, 5, 1, 4}, 4);
    rp_delta_encode(both, 2, 2, 2);
    assert_int_equal(both[1], 0x0401 - 0x0500 + 0x10000);
}

static void every_width_agrees_with_the_definition(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 21);
    for (int round = 0; round < 300; round++) {
        size_t width = widths[rp_rng_below(&rng, 4)], rows = 1 + rp_rng_below(&rng, 6);
        size_t cols = 1 + rp_rng_below(&rng, 90), size = rows * cols * width;
        uint8_t *plain = malloc(size), *coded = malloc(size);
        assert_true(plain != NULL && coded != NULL);
        for (size_t i = 0; i < size; i++) plain[i] = (uint8_t)rp_rng_next(&rng);
        memcpy(coded, plain, size);
        rp_delta_encode(coded, rows, cols * width, width);
        for (size_t i = 0; i < rows * cols; i++) {
            uint64_t before = i < cols ? 0 : load(plain + (i - cols) * width, width);
            uint64_t mask = UINT64_MAX >> (64 - 8 * width);
            assert_true(load(coded + i * width, width) ==
                        ((load(plain + i * width, width) - before) & mask));
        }
        rp_delta_decode(coded, rows, cols * width, width);
        assert_memory_equal(coded, plain, size);
        free(plain);
        free(coded);
    }
}

static void the_first_rows_need_only_themselves(void **state)
{
    uint32_t plain[20], coded[20], prefix[12];

    (void)state;
    for (uint32_t i = 0; i < 20; i++) plain[i] = i * i * 2654435761u;
    memcpy(coded, plain, sizeof coded);
    rp_delta_encode(coded, 5, 16, 4);
    memcpy(prefix, coded, sizeof prefix);
    rp_delta_decode(prefix, 3, 16, 4);
    assert_memory_equal(prefix, plain, sizeof prefix);
}

static void unaligned_rows_are_fine(void **state)
{
    uint8_t memory[1 + 3 * 80], plain[3 * 80];

    (void)state;
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(i * 37);
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        memcpy(memory + 1, plain, sizeof plain);
        rp_delta_encode(memory + 1, 3, 80, widths[w]);
        rp_delta_decode(memory + 1, 3, 80, widths[w]);
        assert_memory_equal(memory + 1, plain, sizeof plain);
    }
}

static void one_row_and_empty_rows_stay_as_they_are(void **state)
{
    uint8_t row[] = {1, 2, 3};

    (void)state;
    rp_delta_encode(row, 1, 3, 1);
    assert_memory_equal(row, ((uint8_t[]){1, 2, 3}), 3);
    rp_delta_encode(NULL, 5, 0, 4);
    rp_delta_decode(NULL, 0, 0, 8);
}

static void delta_applies_to_integers_of_rank_two_and_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rp_test_dtypes); i++) {
        rp_dtype dtype = rp_test_dtypes[i];
        assert_int_equal(rp_delta_applies(dtype, &SHAPE(5, 2)), rp_dtype_is_integer(dtype));
        assert_false(rp_delta_applies(dtype, &SHAPE(5)));
    }
    assert_false(rp_delta_applies(RP_STRING, &SHAPE(5, 2)));
}

RP_TESTS(delta)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_leaves_the_first_row_and_subtracts_from_the_rest),
        cmocka_unit_test(differences_wrap_around),
        cmocka_unit_test(carries_stay_within_their_element),
        cmocka_unit_test(every_width_agrees_with_the_definition),
        cmocka_unit_test(the_first_rows_need_only_themselves),
        cmocka_unit_test(unaligned_rows_are_fine),
        cmocka_unit_test(one_row_and_empty_rows_stay_as_they_are),
        cmocka_unit_test(delta_applies_to_integers_of_rank_two_and_more),
    };
    return cmocka_run_group_tests_name("delta", tests, NULL, NULL);
}
