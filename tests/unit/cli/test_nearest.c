/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/nearest.h"

#include <string.h>

#include "support/unit.h"

static void the_distance_counts_edits(void **state)
{
    char longest[66];

    (void)state;
    assert_int_equal(rp_edit_distance("", ""), 0);
    assert_int_equal(rp_edit_distance("", "abc"), 3);
    assert_int_equal(rp_edit_distance("abc", ""), 3);
    assert_int_equal(rp_edit_distance("abc", "abc"), 0);
    assert_int_equal(rp_edit_distance("abc", "abd"), 1);
    assert_int_equal(rp_edit_distance("abc", "ab"), 1);
    assert_int_equal(rp_edit_distance("abc", "xabc"), 1);
    assert_int_equal(rp_edit_distance("abcd", "abdc"), 1); /* a swap is one mistake */
    assert_int_equal(rp_edit_distance("tabel", "table"), 1);
    assert_int_equal(rp_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(rp_edit_distance("max-bytes", "max_bytes"), 0);
    memset(longest, 'a', sizeof longest);
    longest[65] = '\0';
    assert_int_equal(rp_edit_distance(longest, "a"), SIZE_MAX);
    assert_int_equal(rp_edit_distance(longest + 1, "a"), 63);
}

static const char *nearest_of(const char *word)
{
    static const char *const words[] = {"prioritized", "uniform", "max_heap", "max_size",
                                        "port"};
    rp_nearest nearest;

    rp_nearest_init(&nearest, word);
    for (size_t i = 0; i < COUNT_OF(words); i++) rp_nearest_offer(&nearest, words[i]);
    return rp_nearest_get(&nearest);
}

static void the_nearest_word_is_suggested_if_close_enough(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("prioritised"), "prioritized");
    assert_string_equal(nearest_of("priority"), "prioritized");
    assert_string_equal(nearest_of("unifrom"), "uniform");
    assert_string_equal(nearest_of("uni"), "uniform");
    assert_string_equal(nearest_of("maxsize"), "max_size");
    assert_string_equal(nearest_of("prt"), "port");
    assert_null(nearest_of("xyz"));
    assert_null(nearest_of(""));
    assert_null(nearest_of("newest"));
}

RP_TESTS(nearest)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_distance_counts_edits),
        cmocka_unit_test(the_nearest_word_is_suggested_if_close_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
