/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/string_list.h"

#include "support/chunks.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void assert_string(const rp_string *s, const char *expected)
{
    assert_int_equal(s->size, strlen(expected));
    if (s->size > 0) assert_memory_equal(s->data, expected, s->size);
}

static void a_list_is_lengths_then_bytes(void **state)
{
    rp_string s[3];

    (void)state;
    assert_ok(rp_string_list_get(BYTES("\2\0\3hiyou"), 3, s));
    assert_string(&s[0], "hi");
    assert_string(&s[1], "");
    assert_string(&s[2], "you");
}

static void a_long_string_has_a_long_length(void **state)
{
    uint8_t list[2 + 300] = {0xac, 0x02};
    rp_string s;

    (void)state;
    memset(list + 2, 'x', 300);
    assert_ok(rp_string_list_get(list, sizeof list, 1, &s));
    assert_int_equal(s.size, 300);
    assert_ptr_equal(s.data, list + 2);
}

static void checking_alone_gives_the_same_status(void **state)
{
    (void)state;
    assert_ok(rp_string_list_get(BYTES("\2\1hiy"), 2, NULL));
    assert_int_equal(rp_string_list_get(BYTES("\2\1hi"), 2, NULL), RP_CORRUPT);
}

static void a_list_of_nothing_is_empty(void **state)
{
    (void)state;
    assert_ok(rp_string_list_get(NULL, 0, 0, NULL));
    assert_int_equal(rp_string_list_get(BYTES("\0"), 0, NULL), RP_CORRUPT);
}

static void every_truncation_and_every_excess_is_refused(void **state)
{
    static const char list[] = "\2\0\3hiyou";
    rp_string s[3];

    (void)state;
    for (size_t size = 0; size < sizeof list - 1; size++)
        assert_int_equal(rp_string_list_get((const uint8_t *)list, size, 3, s), RP_CORRUPT);
    assert_int_equal(rp_string_list_get((const uint8_t *)list, sizeof list, 3, s), RP_CORRUPT);
}

static void wrong_lengths_are_refused(void **state)
{
    (void)state;
    assert_int_equal(rp_string_list_get(BYTES("\xff\xff\xff\xff\x0f"), 1, NULL), RP_CORRUPT);
    assert_int_equal(rp_string_list_get(BYTES("\xff\xff\xff\xff\x1f"), 1, NULL), RP_CORRUPT);
    assert_int_equal(rp_string_list_get(BYTES("\x80\x80\x80\x80\x80\x00"), 1, NULL),
                     RP_CORRUPT);
    assert_int_equal(rp_string_list_get(BYTES("\5\5hello"), 2, NULL), RP_CORRUPT);
}

static void a_count_beyond_the_bytes_is_refused_at_once(void **state)
{
    (void)state;
    assert_int_equal(rp_string_list_get(BYTES("\0\0"), SIZE_MAX, NULL), RP_CORRUPT);
    assert_int_equal(rp_string_list_get(BYTES("\0\0"), 3, NULL), RP_CORRUPT);
    assert_ok(rp_string_list_get(BYTES("\0\0"), 2, NULL));
}

static void values_are_taken_in_order(void **state)
{
    rp_string s[2];

    (void)state;
    assert_ok(rp_string_values_get(BYTES("\x08\x07\x42\2hi\x42\3you"), 2, s));
    assert_string(&s[0], "hi");
    assert_string(&s[1], "you");
}

static void the_last_value_fills_the_rest(void **state)
{
    rp_string s[4];

    (void)state;
    assert_ok(rp_string_values_get(BYTES("\x42\1a\x42\1b"), 4, s));
    assert_string(&s[0], "a");
    for (int i = 1; i < 4; i++) assert_string(&s[i], "b");
}

static void without_values_all_are_empty(void **state)
{
    rp_string s[2];

    (void)state;
    assert_ok(rp_string_values_get(BYTES("\x08\x07"), 2, s));
    assert_string(&s[0], "");
    assert_string(&s[1], "");
}

static void values_beyond_the_count_are_ignored(void **state)
{
    rp_string s[1];

    (void)state;
    assert_ok(rp_string_values_get(BYTES("\x42\1a\x42\1b"), 1, s));
    assert_string(&s[0], "a");
}

static void a_repeated_value_is_counted_each_time(void **state)
{
    size_t bytes = 1;

    (void)state;
    assert_ok(rp_string_values_measure(BYTES("\x08\x07"), 2, &bytes));
    assert_int_equal(bytes, 0);
    assert_ok(rp_string_values_measure(BYTES("\x42\1a\x42\3you"), 2, &bytes));
    assert_int_equal(bytes, 4);
    assert_ok(rp_string_values_measure(BYTES("\x42\1a\x42\3you"), 1, &bytes));
    assert_int_equal(bytes, 1);
    assert_ok(rp_string_values_measure(BYTES("\x42\1a\x42\3you"), 1000, &bytes));
    assert_int_equal(bytes, 1 + 3 * 999);
    assert_int_equal(rp_string_values_measure(BYTES("\x42\3you"), SIZE_MAX / 2, &bytes),
                     RP_NO_RESOURCE);
    assert_int_equal(rp_string_values_measure(BYTES("\x42\5a"), 1, &bytes), RP_CORRUPT);
}

static void values_in_a_broken_message_are_refused(void **state)
{
    (void)state;
    assert_int_equal(rp_string_values_get(BYTES("\x42\5a"), 1, NULL), RP_CORRUPT);
    assert_ok(rp_string_values_get(BYTES("\x42\1a"), 1, NULL));
}

RP_TESTS(string_list)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_lengths_then_bytes),
        cmocka_unit_test(a_long_string_has_a_long_length),
        cmocka_unit_test(checking_alone_gives_the_same_status),
        cmocka_unit_test(a_list_of_nothing_is_empty),
        cmocka_unit_test(every_truncation_and_every_excess_is_refused),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(a_count_beyond_the_bytes_is_refused_at_once),
        cmocka_unit_test(values_are_taken_in_order),
        cmocka_unit_test(the_last_value_fills_the_rest),
        cmocka_unit_test(without_values_all_are_empty),
        cmocka_unit_test(values_beyond_the_count_are_ignored),
        cmocka_unit_test(a_repeated_value_is_counted_each_time),
        cmocka_unit_test(values_in_a_broken_message_are_refused),
    };
    return cmocka_run_group_tests_name("string_list", tests, NULL, NULL);
}
