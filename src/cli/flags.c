/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <string.h>

#include "cli/nearest.h"

enum { HELP_COLUMN = 30 };

static rp_status unknown_option(const rp_command *c, const char *word, size_t length,
                                rp_problem *problem)
{
    rp_nearest nearest;
    char name[65] = "";

    if (length < sizeof name) memcpy(name, word, length);
    rp_nearest_init(&nearest, name);
    rp_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < c->option_count; i++) rp_nearest_offer(&nearest, c->options[i].name);
    if (rp_nearest_get(&nearest) != NULL)
        return rp_problem_set(problem, NULL, "unknown option --%.*s, did you mean --%s?",
                              (int)(length < 100 ? length : 100), word,
                              rp_nearest_get(&nearest));
    return rp_problem_set(problem, NULL, "unknown option --%.*s; reprise %s --help lists them",
                          (int)(length < 100 ? length : 100), word, c->name);
}

/* The index of the option whose name is the first `length` bytes, or option_count. */
static size_t find_option(const rp_command *c, const char *word, size_t length)
{
    size_t i = 0;

    while (i < c->option_count && (strlen(c->options[i].name) != length ||
                                   strncmp(c->options[i].name, word, length) != 0))
        i++;
    return i;
}

static rp_status add_flag(const rp_command *c, rp_flags *f, size_t option, const char *value,
                          rp_problem *problem)
{
    const rp_option *o = &c->options[option];

    if (f->count == RP_MAX_FLAGS)
        return rp_problem_set(problem, NULL, "more than %d options", RP_MAX_FLAGS);
    for (size_t i = 0; i < f->count && !o->repeatable; i++)
        if (f->list[i].option == option)
            return rp_problem_set(problem, NULL, "--%s: given twice", o->name);
    f->list[f->count++] = (rp_flag){option, value};
    return RP_OK;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

rp_status rp_flags_parse(const rp_command *c, int argc, char *const *argv, rp_flags *out,
                         rp_problem *problem)
{
    bool words_only = false;
    rp_status st = RP_OK;

    *out = (rp_flags){0};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) break;
        if (is_help(argv[i])) out->help = true;
    }
    for (int i = 0; i < argc && st == RP_OK && !out->help; i++) {
        const char *word = argv[i], *equals, *value;
        size_t length, option;

        if (!words_only && strcmp(word, "--") == 0) {
            words_only = true;
            continue;
        }
        if (words_only || word[0] != '-' || word[1] == '\0') {
            if (out->word_count == c->max_words || out->word_count == RP_MAX_WORDS)
                return rp_problem_set(problem, NULL, "'%.100s' is not expected here", word);
            out->words[out->word_count++] = word;
            continue;
        }
        if (word[1] != '-')
            return rp_problem_set(problem, NULL, "unknown option %.100s: options are long",
                                  word);
        word += 2;
        equals = strchr(word, '=');
        length = equals != NULL ? (size_t)(equals - word) : strlen(word);
        option = find_option(c, word, length);
        if (option == c->option_count) return unknown_option(c, word, length, problem);
        value = equals != NULL ? equals + 1 : NULL;
        if (value == NULL && c->options[option].argument == NULL) value = "true";
        if (value == NULL && i + 1 < argc) value = argv[++i];
        if (value == NULL)
            return rp_problem_set(problem, NULL, "--%s: needs %s", c->options[option].name,
                                  c->options[option].argument);
        st = add_flag(c, out, option, value, problem);
    }
    return st;
}

static void print_option(FILE *out, const char *name, const char *argument, const char *help)
{
    char left[64];

    (void)snprintf(left, sizeof left, "  --%s%s%s", name, argument != NULL ? " " : "",
                   argument != NULL ? argument : "");
    if (strlen(left) < HELP_COLUMN - 1)
        (void)fprintf(out, "%-*s%s\n", HELP_COLUMN, left, help);
    else
        (void)fprintf(out, "%s\n%*s%s\n", left, HELP_COLUMN, "", help);
}

void rp_command_help(FILE *out, const rp_command *c)
{
    (void)fprintf(out, "usage: reprise %s%s%s\n\n%s\n", c->name, c->usage[0] != '\0' ? " " : "",
                  c->usage, c->summary);
    for (size_t i = 0; i < c->option_count; i++) {
        if (c->options[i].group != NULL) (void)fprintf(out, "\n%s\n", c->options[i].group);
        print_option(out, c->options[i].name, c->options[i].argument, c->options[i].help);
    }
    if (c->text != NULL) (void)fprintf(out, "\n%s", c->text);
}
