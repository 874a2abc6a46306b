/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help/flags.h"

#include <string.h>

#include "support/unit.h"

static const rp_option options[] = {
    {"port", "N", "where", false, NULL, NULL},
    {"table", "SPEC", "what", true, NULL, NULL},
    {"insecure", NULL, "how", false, NULL, NULL},
};

static const rp_command command = {
    .name = "try",
    .summary = "Tries.",
    .usage = "[OPTION...]",
    .options = options,
    .option_count = COUNT_OF(options),
    .max_words = 1,
};

static rp_flags flags;
static rp_problem problem;

/* Parses words separated by single spaces. */
static rp_status parse(const char *line)
{
    static char text[256];
    static char *words[600];
    int count = 0;

    (void)snprintf(text, sizeof text, "%s", line);
    for (char *p = strtok(text, " "); p != NULL; p = strtok(NULL, " ")) words[count++] = p;
    return rp_flags_parse(&command, count, words, &flags, &problem);
}

static void assert_refused(const char *line, const char *part)
{
    assert_int_equal(parse(line), RP_INVALID);
    if (strstr(problem.text, part) == NULL) fail_msg("%s: %s", line, problem.text);
}

static void both_forms_of_a_value_are_taken(void **state)
{
    (void)state;
    assert_ok(parse("--table a:b --port=7 --insecure --table=c=d word"));

    assert_int_equal(flags.count, 4);
    assert_int_equal(flags.list[0].option, 1);
    assert_string_equal(flags.list[0].value, "a:b");
    assert_int_equal(flags.list[1].option, 0);
    assert_string_equal(flags.list[1].value, "7");
    assert_int_equal(flags.list[2].option, 2);
    assert_string_equal(flags.list[2].value, "true");
    assert_string_equal(flags.list[3].value, "c=d");
    assert_int_equal(flags.word_count, 1);
    assert_string_equal(flags.words[0], "word");
    assert_false(flags.help);
}

static void a_switch_takes_no_word_but_can_be_turned_off(void **state)
{
    (void)state;
    assert_ok(parse("--insecure=false"));
    assert_string_equal(flags.list[0].value, "false");
    assert_ok(parse("--insecure word"));
    assert_string_equal(flags.list[0].value, "true");
    assert_int_equal(flags.word_count, 1);
}

static void help_wins_over_mistakes(void **state)
{
    (void)state;
    assert_ok(parse("--nonsense --help"));
    assert_true(flags.help);
    assert_ok(parse("-h"));
    assert_true(flags.help);
    assert_ok(parse("-- --help"));
    assert_false(flags.help);
    assert_string_equal(flags.words[0], "--help");
}

static void mistakes_are_named(void **state)
{
    static char *many[2 * (RP_MAX_FLAGS + 1)];
    static char word[] = "--table", value[] = "x";

    (void)state;
    assert_refused("--tabel x", "unknown option --tabel, did you mean --table?");
    assert_refused("--quux", "unknown option --quux; reprise try --help");
    assert_refused("--prot=1", "did you mean --port?");
    assert_refused("--port", "--port: needs N");
    assert_refused("--port 1 --port 2", "--port: given twice");
    assert_refused("--insecure=maybe", "--insecure: expected true or false, got 'maybe'");
    assert_refused("--insecure=", "--insecure: expected true or false, got ''");
    assert_refused("-p", "options are long");
    assert_refused("a b", "'b' is not expected here");
    for (size_t i = 0; i < COUNT_OF(many); i++) many[i] = i % 2 == 0 ? word : value;
    assert_ok(rp_flags_parse(&command, 2 * RP_MAX_FLAGS, many, &flags, &problem));
    assert_int_equal(rp_flags_parse(&command, COUNT_OF(many), many, &flags, &problem),
                     RP_INVALID);
    assert_string_equal(problem.text, "more than 512 options");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    static char word[] = "--\x1b[2J\n";
    char *words[] = {word};

    (void)state;
    assert_int_equal(rp_flags_parse(&command, 1, words, &flags, &problem), RP_INVALID);
    assert_non_null(strstr(problem.text, "--\\x1b[2J\\n"));
}

RP_TESTS(flags)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_of_a_value_are_taken),
        cmocka_unit_test(a_switch_takes_no_word_but_can_be_turned_off),
        cmocka_unit_test(help_wins_over_mistakes),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
