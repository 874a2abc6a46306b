/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help/manual.h"

#include <string.h>

#include "support/unit.h"

static const rp_option own[] = {
    {"count", "N", "items (1)", false, NULL, NULL},
    {"kind", "WORD", "which [a] it's", false, "More", "one two"},
    {"out", "FILE", "where", true, NULL, NULL},
};
static const rp_option common[] = {{"json", NULL, "for programs", false, NULL, NULL}};
static const rp_options shared = {common, 1};
static const char *const examples[] = {"reprise try --count 2", NULL};
static const rp_command try_command = {
    .name = "try",
    .summary = "Tries something.",
    .usage = "[OPTION...] ACTION",
    .text = "It tries.\n\n.not a request\n  as it -is\n",
    .examples = examples,
    .actions = "start stop",
    .options = own,
    .option_count = COUNT_OF(own),
    .shared = &shared,
    .max_words = 1,
};
static const rp_command *const commands[] = {&try_command};
static const rp_program program = {commands, 1, "1.2.3"};
static rp_text_buffer buffer;

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static void assert_has(const char *part)
{
    if (strstr(rp_text_buffer_text(&buffer), part) == NULL)
        fail_msg("'%s' is not in:\n%s", part, rp_text_buffer_text(&buffer));
}

static void a_man_page_has_its_sections(void **state)
{
    (void)state;
    rp_man_page(&buffer, &program, &try_command);
    assert_has(".TH REPRISE\\-TRY 1 \"\" \"reprise 1.2.3\"");
    assert_has(".SH NAME\nreprise\\-try \\- tries something\n");
    assert_has(".SH SYNOPSIS\n.B reprise try\n[OPTION...] ACTION\n");
    assert_has("\\&.not a request\n");
    assert_has(".nf\n.RS 4\nas it \\-is\n.RE\n.fi\n");
    assert_has(".TP\n\\fB\\-\\-count\\fR \\fIN\\fR\nitems (1)\n");
    assert_has(".SS More\n");
    assert_has("where; may be given more than once\n");
    assert_has("\\fB\\-\\-json\\fR\nfor programs\n");
    assert_has(".SH EXAMPLES\n.nf\nreprise try \\-\\-count 2\n.fi\n");
    assert_has(".SH EXIT STATUS\n");
    assert_has(".SH SEE ALSO\n.BR reprise (1)\n");
}

static void the_program_lists_its_commands(void **state)
{
    (void)state;
    rp_man_page(&buffer, &program, NULL);
    assert_has(".TH REPRISE 1");
    assert_has(".TP\n.BR reprise\\-try (1)\nTries something.\n");
    assert_has("REPRISE_SERVER");
}

static void completions_know_options_words_and_files(void **state)
{
    (void)state;
    assert_true(rp_completion(&buffer, &program, "bash"));
    assert_has("words='--help --count --kind --out --json'");
    assert_has("[ \"$COMP_CWORD\" = 2 ] && words='start stop'");
    assert_has("--kind) words='one two'");
    assert_has("--out) words=; files=1 ;;");
    assert_has("--count) words=; files= ;;");
    rp_text_buffer_clear(&buffer);
    assert_true(rp_completion(&buffer, &program, "zsh"));
    assert_has("'--kind=[which \\[a\\] it'\\''s]:WORD:(one two)'");
    assert_has("'*--out=[where]:FILE:_files'");
    assert_has("'--json[for programs]'");
    rp_text_buffer_clear(&buffer);
    assert_true(rp_completion(&buffer, &program, "fish"));
    assert_has("-l kind -x -a 'one two' -d 'which [a] it'\\''s'");
    assert_has("-l out -r -F -d 'where'");
    rp_text_buffer_clear(&buffer);
    assert_false(rp_completion(&buffer, &program, "csh"));
}

RP_TESTS(manual)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_man_page_has_its_sections, empty_buffer),
        cmocka_unit_test_teardown(the_program_lists_its_commands, empty_buffer),
        cmocka_unit_test_teardown(completions_know_options_words_and_files, empty_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
