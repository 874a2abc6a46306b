/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/shell_completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "support/unit.h"

static const char *const builtins[] = {"connect", "exit", NULL};

static void add_tables(void *ctx, const char *prefix, rp_candidates *out)
{
    (void)ctx;
    rp_candidates_add_name(out, "replay", prefix);
    rp_candidates_add_name(out, "replay_eval", prefix);
    rp_candidates_add_name(out, "--server=evil:1", prefix);
    rp_candidates_add_name(out, "my table", prefix);
}

/* Completes a line and joins the candidates with '|'. */
static const char *complete(rp_arena *arena, const char *line, rp_candidates *found)
{
    const rp_completer completer = {.commands = rp_commands,
                                    .command_count = rp_command_count,
                                    .builtins = builtins,
                                    .add_tables = add_tables};
    char *text = "";

    rp_shell_complete(&completer, arena, line, strlen(line), found);
    for (size_t i = 0; i < found->count; i++)
        text = rp_arena_format(arena, "%s%s%s", text, i > 0 ? "|" : "", found->list[i]);
    return text;
}

static void each_word_has_its_candidates(void **state)
{
    static const struct {
        const char *line, *found;
        size_t from, common;
    } cases[] = {
        {"ta", "tables", 0, 6},
        {"e", "eval|exit|export", 0, 1},
        {"con", "connect", 0, 7},
        {"reprise ta", "tables", 8, 6},
        {"tables ", "alter|create|drop|list|pause|reset|resume", 7, 0},
        {"tables re", "reset|resume", 7, 3},
        {"tables drop ", "my table|replay|replay_eval", 12, 0},
        {"tables drop x replay_", "replay_eval", 14, 11},
        {"tables create re", "", 14, 0},
        {"info rep", "replay|replay_eval", 5, 6},
        {"info 'my", "my table", 5, 8},
        {"info replay ", "", 12, 0},
        {"sample --count 3 replay_", "replay_eval", 17, 11},
        {"sample --json re", "replay|replay_eval", 14, 6},
        {"sample --count ", "", 15, 0},
        {"sample --co", "--count", 7, 7},
        {"serve --policy ", "block|evict|reject", 15, 0},
        {"help sam", "sample", 5, 6},
        {"help con", "", 5, 0},
        {"nonsense ", "", 9, 0},
        {"nonsense", "", 0, 0},
        {"exit ", "", 5, 0},
    };
    static rp_candidates found;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_arena arena;

        rp_arena_init(&arena, NULL);
        if (strcmp(complete(&arena, cases[i].line, &found), cases[i].found) != 0 ||
            found.from != cases[i].from || found.common != cases[i].common)
            fail_msg("'%s': %s, from %zu, %zu in common", cases[i].line,
                     complete(&arena, cases[i].line, &found), found.from, found.common);
        rp_arena_deinit(&arena);
    }
}

static void files_are_found_in_their_folder(void **state)
{
    static rp_candidates found;
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    assert_string_equal(complete(&arena, "insert replay /proc/self/statu", &found),
                        "/proc/self/status");
    assert_string_equal(complete(&arena, "info --token-file /proc/sel", &found), "/proc/self/");
    assert_string_equal(complete(&arena, "insert replay /nowhere/x", &found), "");
    rp_arena_deinit(&arena);
}

static void a_common_beginning_ends_between_characters(void **state)
{
    static rp_candidates found;

    (void)state;
    found = (rp_candidates){0};
    rp_candidates_add(&found, "t\xc3\xa4", "t");
    rp_candidates_add(&found, "t\xc3\xb6", "t");
    rp_candidates_add(&found, "x", "t");
    rp_candidates_add(&found, "t\xc3\xa4", "t");
    assert_int_equal(found.count, 2);
    assert_int_equal(found.common, 1);
}

static void a_candidate_over_the_bound_counts_for_the_beginning(void **state)
{
    static rp_candidates found;
    static char names[RP_MOST_CANDIDATES][16];

    (void)state;
    found = (rp_candidates){0};
    for (size_t i = 0; i < RP_MOST_CANDIDATES; i++) {
        (void)snprintf(names[i], sizeof names[i], "table_%zu", i);
        rp_candidates_add(&found, names[i], "t");
    }
    assert_int_equal(found.common, 6);
    rp_candidates_add(&found, "tier", "t");
    assert_int_equal(found.count, RP_MOST_CANDIDATES);
    assert_int_equal(found.common, 1);
}

RP_TESTS(shell_completion)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_has_its_candidates),
        cmocka_unit_test(files_are_found_in_their_folder),
        cmocka_unit_test(a_common_beginning_ends_between_characters),
        cmocka_unit_test(a_candidate_over_the_bound_counts_for_the_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
