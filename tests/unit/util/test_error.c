/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/error.h"

static void failure_writes_code_and_sentence_and_returns_the_code(void **state)
{
    (void)state;
    rp_error err = {0};

    assert_int_equal(rp_fail(&err, RP_INVALID, "table '%s': %d is over %d", "a", 7, 5),
                     RP_INVALID);

    assert_int_equal(err.code, RP_INVALID);
    assert_string_equal(err.text, "table 'a': 7 is over 5");
}

static void failure_without_an_error_struct_returns_the_code(void **state)
{
    (void)state;
    assert_int_equal(rp_fail(NULL, RP_CORRUPT, "nobody reads %s", "this"), RP_CORRUPT);
    assert_int_equal(rp_fail_memory(NULL, 5), RP_NO_RESOURCE);
}

static void long_sentence_is_cut_to_fit(void **state)
{
    (void)state;
    char text[1000];
    rp_error err;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    (void)rp_fail(&err, RP_INTERNAL, "%s", text);

    assert_int_equal(strlen(err.text), RP_ERROR_TEXT_BYTES - 1);
    assert_memory_equal(err.text, text, RP_ERROR_TEXT_BYTES - 1);
}

/* Names and texts of peers go into sentences, and those to terminals and exceptions. */
static void sentence_is_printable_whatever_goes_into_it(void **state)
{
    (void)state;
    char text[RP_ERROR_TEXT_BYTES];
    rp_error err;

    (void)rp_fail(&err, RP_NOT_FOUND, "no table '%s'",
                  "\033]0;x\a\r\n\xe2\x80\xae\xff\xc2\x9b");
    assert_string_equal(err.text, "no table '\\x1b]0;x\\x07\\r\\n\\u202e\\xff\\u009b'");
    memcpy(text, err.text, sizeof text);
    (void)rp_fail(&err, RP_INVALID, "table: %s", text);
    assert_non_null(strstr(err.text, "'\\x1b]0;x")); /* not once more */
}

static void long_sentence_is_cut_between_characters(void **state)
{
    (void)state;
    char text[300];
    rp_error err;

    for (size_t lead = 0; lead < 3; lead++) {
        memset(text, 'x', lead);
        for (size_t i = lead; i + 3 <= sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 3);
        text[297] = '\0';
        (void)rp_fail(&err, RP_INTERNAL, "%s", text);
        assert_null(strchr(err.text, '\\'));
        assert_int_equal((strlen(err.text) - lead) % 3, 0);
    }
}

static void memory_failure_names_the_bytes(void **state)
{
    (void)state;
    rp_error err;

    assert_fails(rp_fail_memory(&err, 12345), RP_NO_RESOURCE, &err, "12345 bytes");
}

static void every_status_has_its_name_and_its_grpc_number(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *name;
    } all[] = {
        {0, "RP_OK"},
        {1, "RP_CANCELLED"},
        {3, "RP_INVALID"},
        {4, "RP_DEADLINE"},
        {5, "RP_NOT_FOUND"},
        {6, "RP_EXISTS"},
        {8, "RP_NO_RESOURCE"},
        {9, "RP_PRECONDITION"},
        {13, "RP_INTERNAL"},
        {14, "RP_UNAVAILABLE"},
        {15, "RP_CORRUPT"},
        {7, "RP_DENIED"},
        {12, "RP_UNIMPLEMENTED"},
        {16, "RP_UNAUTHENTICATED"},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_string_equal(rp_status_name((rp_status)all[i].number), all[i].name);
    assert_string_equal(rp_status_name((rp_status)2), "RP_UNKNOWN");
}

RP_TESTS(error)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_writes_code_and_sentence_and_returns_the_code),
        cmocka_unit_test(failure_without_an_error_struct_returns_the_code),
        cmocka_unit_test(long_sentence_is_cut_to_fit),
        cmocka_unit_test(sentence_is_printable_whatever_goes_into_it),
        cmocka_unit_test(long_sentence_is_cut_between_characters),
        cmocka_unit_test(memory_failure_names_the_bytes),
        cmocka_unit_test(every_status_has_its_name_and_its_grpc_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
