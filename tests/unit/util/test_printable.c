/* SPDX-License-Identifier: Apache-2.0 */
#include "util/printable.h"

#include "support/unit.h"
#include "util/rng.h"

static void valid_utf8_is_recognised(void **state)
{
    static const struct {
        const char *text;
        uint32_t character;
        size_t bytes;
    } cases[] = {
        {"a", 'a', 1},
        {"\x7f", 0x7f, 1},
        {"\x01", 1, 1},
        {"\xc2\x80", 0x80, 2},
        {"\xdf\xbf", 0x7ff, 2},
        {"\xe0\xa0\x80", 0x800, 3},
        {"\xed\x9f\xbf", 0xd7ff, 3},
        {"\xef\xbf\xbf", 0xffff, 3},
        {"\xf0\x90\x80\x80", 0x10000, 4},
        {"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
        {"\x80", RP_NO_CHARACTER, 1}, /* begins in the middle */
        {"\xbf", RP_NO_CHARACTER, 1},
        {"\xc0\x80", RP_NO_CHARACTER, 1}, /* overlong */
        {"\xc1\xbf", RP_NO_CHARACTER, 1},
        {"\xe0\x9f\xbf", RP_NO_CHARACTER, 1},
        {"\xf0\x8f\xbf\xbf", RP_NO_CHARACTER, 1},
        {"\xed\xa0\x80", RP_NO_CHARACTER, 1},     /* a surrogate */
        {"\xf4\x90\x80\x80", RP_NO_CHARACTER, 1}, /* too large */
        {"\xf5\x80\x80\x80", RP_NO_CHARACTER, 1},
        {"\xff", RP_NO_CHARACTER, 1},
        {"\xc2", RP_NO_CHARACTER, 1}, /* cut short */
        {"\xe0\xa0", RP_NO_CHARACTER, 1},
        {"\xf0\x90\x80", RP_NO_CHARACTER, 1},
        {"\xc2x", RP_NO_CHARACTER, 1},
        {"\xe0\xa0x", RP_NO_CHARACTER, 1},
    };
    uint32_t character;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t bytes = rp_utf8_next(cases[i].text, strlen(cases[i].text), &character);

        assert_int_equal(bytes, cases[i].bytes);
        assert_int_equal(character, cases[i].character);
    }
    assert_int_equal(rp_utf8_next("\0", 1, &character), 1);
    assert_int_equal(character, 0);
}

static size_t encode(uint32_t character, char *out)
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xc0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xe0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}

/* What a terminal obeys, or what makes a person read something else than there is. */
static bool is_dangerous(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

static void every_character_is_printed_or_escaped(void **state)
{
    char text[4], out[RP_SPELT_BYTES];
    size_t spelt;
    (void)state;

    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        size_t bytes = encode(c, text);

        if (c >= 0xd800 && c < 0xe000) continue;
        assert_int_equal(rp_spell(text, bytes, RP_SPELL_SHOWN, out, &spelt), bytes);
        if (is_dangerous(c)) {
            assert_true(spelt > 1 && out[0] == '\\');
            for (size_t i = 0; i < spelt; i++) assert_true(out[i] > ' ' && out[i] < 0x7f);
        } else if (out[0] != '\\' || c == '\\') {
            assert_int_equal(spelt, bytes);
            assert_memory_equal(out, text, bytes);
        }
    }
}

static void collect(void *all, const char *part, size_t size)
{
    assert_true(size > 0);
    (void)strncat(all, part, size);
}

static const char *spelt_as(rp_spelling how, const char *text, size_t size)
{
    static char all[256];

    all[0] = '\0';
    rp_spell_text(text, size, how, collect, all);
    return all;
}

static void text_without_escapes_is_one_part(void **state)
{
    (void)state;
    assert_string_equal(spelt_as(RP_SPELL_JSON, "", 0), "");
    assert_string_equal(spelt_as(RP_SPELL_JSON, " ~a", 3), " ~a");
    assert_string_equal(spelt_as(RP_SPELL_JSON, "ab\"c", 4), "ab\\\"c");
}

static void incomplete_character_at_the_end_is_cut_off(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(whole); i++)
        assert_int_equal(rp_utf8_whole(text, i), whole[i]);
}

static void each_output_format_has_its_escapes(void **state)
{
    static const char text[] = "a\"\\\n\t\r\x1b\x7f\0\xc2\x9b\xe2\x80\xae\xff\xc3\xa9";
    const size_t size = sizeof text - 1;
    (void)state;

    assert_string_equal(spelt_as(RP_SPELL_SHOWN, text, size),
                        "a\"\\\\n\\t\\r\\x1b\\x7f\\x00\\u009b\\u202e\\xff\xc3\xa9");
    assert_string_equal(spelt_as(RP_SPELL_QUOTED, text, size),
                        "a\\\"\\\\\\n\\t\\r\\x1b\\x7f\\x00\\u009b\\u202e\\xff\xc3\xa9");
    assert_string_equal(spelt_as(RP_SPELL_JSON, text, size),
                        "a\\\"\\\\\\n\\t\\r\\u001b\\u007f\\u0000\\u009b\\u202e\\ufffd\xc3\xa9");
    assert_string_equal(
        spelt_as(RP_SPELL_LABEL, text, size),
        "a\\\"\\\\\\\\\\n\\\\x09\\\\x0d\\\\x1b\\\\x7f\\\\x00\\\\u009b\\\\u202e\\\\xff\xc3\xa9");
}

/* Two tables must not become one in the metrics. */
static void labels_of_different_texts_differ(void **state)
{
    char escaped[64];
    (void)state;

    (void)strcpy(escaped, spelt_as(RP_SPELL_LABEL, "a\x1b", 2));
    assert_string_not_equal(escaped, spelt_as(RP_SPELL_LABEL, "a\\x1b", 5));
    assert_string_not_equal(escaped, spelt_as(RP_SPELL_LABEL, "a\\\\x1b", 6));
}

static void text_is_cut_between_characters_and_escapes(void **state)
{
    static const char text[] = "ab\xc3\xa9\x1b\xe2\x82\xac";
    char out[32];
    (void)state;

    for (size_t capacity = 1; capacity <= sizeof out; capacity++) {
        size_t length;
        uint32_t character;

        memset(out, '#', sizeof out);
        length = rp_printable(text, sizeof text - 1, out, capacity);
        assert_true(length < capacity && out[length] == '\0');
        assert_true(capacity == sizeof out || out[capacity] == '#');
        for (size_t i = 0; i < length;) {
            i += rp_utf8_next(out + i, length - i, &character);
            assert_true(character != RP_NO_CHARACTER);
        }
        assert_true(length == 0 || out[length - 1] != '\\');
    }
    assert_string_equal(out, "ab\xc3\xa9\\x1b\xe2\x82\xac");
}

static void printable_text_is_unchanged(void **state)
{
    char first[1024], second[1024];
    rp_rng rng;
    (void)state;
    rp_rng_init(&rng, 1);

    for (size_t round = 0; round < rp_test_length(20000, 3000); round++) {
        char text[64];
        size_t size = rp_rng_below(&rng, sizeof text), length;

        for (size_t i = 0; i < size; i++)
            text[i] = (char)(rp_rng_below(&rng, 2) == 0 ? 0x80 + rp_rng_below(&rng, 128)
                                                        : rp_rng_below(&rng, 256));
        length = rp_printable(text, size, first, sizeof first);
        for (size_t i = 0; i < length;) {
            uint32_t character;

            i += rp_utf8_next(first + i, length - i, &character);
            assert_true(character != RP_NO_CHARACTER && !is_dangerous(character));
        }
        assert_int_equal(rp_printable(first, length, second, sizeof second), length);
        assert_string_equal(first, second);
    }
}

RP_TESTS(printable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_utf8_is_recognised),
        cmocka_unit_test(every_character_is_printed_or_escaped),
        cmocka_unit_test(each_output_format_has_its_escapes),
        cmocka_unit_test(text_without_escapes_is_one_part),
        cmocka_unit_test(incomplete_character_at_the_end_is_cut_off),
        cmocka_unit_test(labels_of_different_texts_differ),
        cmocka_unit_test(text_is_cut_between_characters_and_escapes),
        cmocka_unit_test(printable_text_is_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
