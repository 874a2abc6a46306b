/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/text.h"

#include <float.h>
#include <math.h>

#include "support/unit.h"
#include "util/rng.h"

static void expect_number(double number, const char *expected)
{
    char text[RP_NUMBER_TEXT_BYTES];

    assert_string_equal(rp_number_text(number, text), expected);
}

static void numbers_are_short_where_they_can_be(void **state)
{
    (void)state;
    expect_number(0, "0");
    expect_number(1, "1");
    expect_number(-2.5, "-2.5");
    expect_number(0.1, "0.1");
    expect_number(-0.0, "0");
    expect_number(-7, "-7");
    expect_number(999999999999999, "999999999999999");
    expect_number(-1e15, "-1e+15");
    expect_number(1e300, "1e+300");
    expect_number(9007199254740993.0, "9007199254740992");
    expect_number(0.1 + 0.2, "0.30000000000000004");
    expect_number(-DBL_MAX, "-1.7976931348623157e+308"); /* the longest there is */
    expect_number(-DBL_TRUE_MIN, "-4.94065645841247e-324");
}

static void numbers_read_back_as_they_were(void **state)
{
    (void)state;
    char text[RP_NUMBER_TEXT_BYTES];
    rp_rng rng;

    rp_rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rp_rng_next(&rng);
        double number;

        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) continue;
        assert_true(strtod(rp_number_text(number, text), NULL) == number);
    }
}

static void whole_numbers_have_all_their_digits(void **state)
{
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_put_whole(&out, 0);
    rp_buf_text(&out, " ");
    rp_put_whole(&out, UINT64_MAX);
    rp_buf_append(&out, "", 1);
    assert_string_equal((char *)out.data, "0 18446744073709551615");
    rp_buf_deinit(&out);
}

RP_TESTS(text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_short_where_they_can_be),
        cmocka_unit_test(numbers_read_back_as_they_were),
        cmocka_unit_test(whole_numbers_have_all_their_digits),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
