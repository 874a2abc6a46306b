/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of command lines and the printer of help.
 *
 * Invariants of declared commands, which command_is_valid() checks in debug builds:
 *   F1  every option has a name without '=' and a help text, and names are unique;
 *   F2  only an option with an argument lists allowed words;
 *   F3  min_words <= max_words <= RP_MAX_WORDS.
 * Invariants of parsed flags:
 *   F4  count <= RP_MAX_FLAGS, word_count <= max_words, and no value is NULL. */
#include "cli/help/flags.h"

#include <assert.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "cli/text/units.h"

enum { HELP_COLUMN = 30, MAX_ACTIONS = 16, ACTION_BYTES = 24 };

size_t rp_command_option_count(const rp_command *c)
{
    return c->option_count + (c->shared != NULL ? c->shared->count : 0);
}

const rp_option *rp_command_option(const rp_command *c, size_t index)
{
    assert(index < rp_command_option_count(c));
    return index < c->option_count ? &c->options[index]
                                   : &c->shared->list[index - c->option_count];
}

#ifndef NDEBUG
/* Returns true if F1 to F3 hold. */
static bool command_is_valid(const rp_command *c)
{
    size_t count = rp_command_option_count(c);

    if (c->name == NULL || c->summary == NULL || c->usage == NULL) return false;
    if (c->min_words > c->max_words || c->max_words > RP_MAX_WORDS) return false; /* F3 */
    for (size_t i = 0; i < count; i++) {
        const rp_option *o = rp_command_option(c, i);

        if (o->name == NULL || o->help == NULL || strchr(o->name, '=') != NULL) return false;
        if (o->words != NULL && o->argument == NULL) return false; /* F2 */
        for (size_t k = 0; k < i; k++)
            if (strcmp(rp_command_option(c, k)->name, o->name) == 0) return false; /* F1 */
    }
    return true;
}
#endif

const char *rp_flags_get(const rp_flags *f, size_t option)
{
    assert(f->count <= RP_MAX_FLAGS); /* F4 */
    for (size_t i = f->count; i > 0; i--)
        if (f->list[i - 1].option == option) return f->list[i - 1].value;
    return NULL;
}

const char *rp_next_word(const char **list, size_t *length)
{
    const char *word = *list + strspn(*list, " ");

    *length = strcspn(word, " ");
    *list = word + *length;
    return *length > 0 ? word : NULL;
}

/* Returns the option of the command that a name of other programs stands for, or NULL. */
static const char *option_synonym(const rp_command *c, const char *name)
{
    static const char *const words[][2] = {
        {"address", "server"},
        {"address", "listen"},
        {"bind", "listen"},
        {"batch-size", "batch"},
        {"batch-size", "count"},
        {"buffer-size", "capacity"},
        {"ca", "report-ca"},
        {"checkpoint-dir", "data"},
        {"checkpoint-path", "data"},
        {"env-id", "env"},
        {"environment", "env"},
        {"exploration-final-eps", "epsilon-last"},
        {"exploration-initial-eps", "epsilon-first"},
        {"gamma", "discount"},
        {"host", "server"},
        {"host", "listen"},
        {"learning-rate", "rate"},
        {"listen", "server"},
        {"listen", "serve"},
        {"learning-starts", "start"},
        {"lr", "rate"},
        {"max-grad-norm", "max-norm"},
        {"n-envs", "copies"},
        {"num-envs", "copies"},
        {"num-samples", "count"},
        {"port", "server"},
        {"replay-size", "capacity"},
        {"server", "listen"},
        {"server-address", "server"},
        {"server-address", "listen"},
        {"target-update-interval", "target-every"},
        {"tau", "target-rate"},
        {"tls", "report-ca"},
        {"total-timesteps", "steps"},
        {"train-freq", "steps-per-update"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (rp_edit_distance(name, words[i][0]) == 0)
            for (size_t k = 0; k < rp_command_option_count(c); k++)
                if (strcmp(rp_command_option(c, k)->name, words[i][1]) == 0) return words[i][1];
    return NULL;
}

/* An option that users expect and that the command cannot have. Sets the problem to the reason,
 * or returns false. `action`: NULL if the command line has none before the option. */
static bool is_impossible(const rp_command *c, const char *action, const char *name,
                          rp_problem *problem)
{
    /* The options, and how SPEC has them. */
    static const char *const options[][2] = {
        {"sampler", "NAME:SAMPLER:MAX_SIZE"},
        {"remover", "NAME:SAMPLER:MAX_SIZE,remover=KIND"},
        {"exponent", "NAME:SAMPLER:MAX_SIZE,exponent=X"},
        {"remover-exponent", "NAME:SAMPLER:MAX_SIZE,remover_exponent=X"},
        {"signature", NULL},
        {"soft-limit", "NAME:SAMPLER:MAX_SIZE,soft_limit=true"},
        {"seed", "NAME:SAMPLER:MAX_SIZE,seed=N"},
        /* `tables` has these. */
        {"max-size", "NAME:SAMPLER:MAX_SIZE"},
        {"max-times-sampled", "NAME:SAMPLER:MAX_SIZE,max_times_sampled=N"},
        {"samples-per-insert", "NAME:SAMPLER:MAX_SIZE,samples_per_insert=X"},
        {"min-size", "NAME:SAMPLER:MAX_SIZE,min_size=N"},
        {"error-buffer", "NAME:SAMPLER:MAX_SIZE,error_buffer=X"},
        {"min-diff", "NAME:SAMPLER:MAX_SIZE,min_diff=X"},
        {"max-diff", "NAME:SAMPLER:MAX_SIZE,max_diff=X"},
    };
    bool creates = action != NULL && strcmp(action, "create") == 0;
    bool serves = strcmp(c->name, "serve") == 0;
    size_t i = 0, count = sizeof options / sizeof options[0];

    if (strcmp(c->name, "tables") != 0 && !serves) return false;
    while (i < count && rp_edit_distance(name, options[i][0]) != 0) i++;
    if (i == count) return false;
    for (size_t k = 0; k < rp_command_option_count(c); k++) /* written with '_' */
        if (strcmp(rp_command_option(c, k)->name, options[i][0]) == 0) return false;
    if (serves && options[i][1] == NULL)
        (void)rp_problem_set(problem, NULL,
                             "unknown option --%s: the file of --config has it, as %s of a "
                             "table",
                             name, name);
    else if (serves)
        (void)rp_problem_set(problem, NULL,
                             "unknown option --%s: the argument of --table has it: %s (reprise "
                             "serve --help explains SPEC)",
                             name, options[i][1]);
    else if (creates && options[i][1] == NULL)
        (void)rp_problem_set(problem, NULL,
                             "unknown option --%s: --column NAME=SPEC gives a column, such as "
                             "--column 'obs=float32 [4]' --column done=bool",
                             name);
    else if (creates)
        (void)rp_problem_set(problem, NULL,
                             "unknown option --%s: the argument of create has it: %s "
                             "(reprise serve --help explains SPEC)",
                             name, options[i][1]);
    else
        (void)rp_problem_set(problem, NULL,
                             "unknown option --%s: the %s of a table cannot be altered: create "
                             "another table, whose SPEC has it (reprise serve --help explains "
                             "SPEC)",
                             name, name);
    return true;
}

/* An address, for which a command has several options. Sets the problem to what each is for, or
 * returns false. */
static bool is_ambiguous(const rp_command *c, const char *name, rp_problem *problem)
{
    static const char *const names[] = {"address", "host", "port", "server", "server-address"};
    size_t i = 0;

    if (strcmp(c->name, "train") != 0) return false;
    while (i < sizeof names / sizeof names[0] && strcmp(name, names[i]) != 0) i++;
    if (i == sizeof names / sizeof names[0]) return false;
    (void)rp_problem_set(problem, NULL,
                         "unknown option --%s: --serve ADDR shows the run to clients, --report "
                         "ADDR sends its reports to a server, and --replay ADDR is where a "
                         "--role finds the others",
                         name);
    return true;
}

/* An option for the token, which `train` lacks. Sets the problem to where `train` has the
 * token, or returns false. */
static bool is_token_of_train(const rp_command *c, const char *name, rp_problem *problem)
{
    if (strcmp(c->name, "train") != 0 ||
        (rp_edit_distance(name, "token") != 0 && rp_edit_distance(name, "token-file") != 0))
        return false;
    (void)rp_problem_set(problem, NULL,
                         "unknown option --%s: set the environment variable REPRISE_TOKEN to "
                         "the token for --replay and --report",
                         name);
    return true;
}

static rp_status unknown_option(const rp_command *c, const char *action, const char *word,
                                size_t length, rp_problem *problem)
{
    rp_nearest nearest;
    const char *best;
    char name[65] = "";

    if (length < sizeof name) memcpy(name, word, length);
    rp_nearest_init(&nearest, name);
    rp_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < rp_command_option_count(c); i++)
        rp_nearest_offer(&nearest, rp_command_option(c, i)->name);
    if (is_impossible(c, action, name, problem) || is_ambiguous(c, name, problem) ||
        is_token_of_train(c, name, problem))
        return RP_INVALID;
    best = option_synonym(c, name);
    if (best == NULL) best = rp_nearest_get(&nearest);
    if (best != NULL)
        return rp_problem_set(problem, NULL, "unknown option --%.*s, did you mean --%s?",
                              (int)(length < 100 ? length : 100), word, best);
    return rp_problem_set(problem, NULL, "unknown option --%.*s; reprise %s --help lists them",
                          (int)(length < 100 ? length : 100), word, c->name);
}

/* A short option of other programs. */
static rp_status unknown_letter(const rp_command *c, const char *word, rp_problem *problem)
{
    static const char *const words[][2] = {
        {"-n", "count"}, {"-p", "port"}, {"-c", "config"}, {"-t", "timeout"}, {"-s", "server"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        for (size_t k = 0; k < rp_command_option_count(c); k++)
            if (strcmp(word, words[i][0]) == 0 &&
                strcmp(rp_command_option(c, k)->name, words[i][1]) == 0)
                return rp_problem_set(problem, NULL,
                                      "unknown option %s: options are long, did you mean --%s?",
                                      word, words[i][1]);
    return rp_problem_set(problem, NULL, "unknown option %.100s: options are long", word);
}

/* A word beyond those that the command takes. */
static rp_status unexpected_word(const rp_command *c, const char *word, rp_problem *problem)
{
    bool is_port = strspn(word, "0123456789") == strlen(word) && strlen(word) <= 5;

    for (size_t k = 0; k < rp_command_option_count(c) && is_port; k++)
        if (strcmp(rp_command_option(c, k)->name, "port") == 0)
            return rp_problem_set(problem, NULL,
                                  "'%s' is not expected here, did you mean --port %s?", word,
                                  word);
    return rp_problem_set(problem, NULL,
                          "'%.100s' is not expected here%s%s%s; usage: reprise %s %s", word,
                          c->max_words == 0 ? ": " : "", c->max_words == 0 ? c->name : "",
                          c->max_words == 0 ? " takes options only" : "", c->name, c->usage);
}

/* Writes the name of the first argument that is missing: those in brackets may be. */
static void missing_word(const rp_command *c, size_t given, char *text, size_t size)
{
    const char *list = c->usage, *word;
    size_t length;

    (void)snprintf(text, size, "an argument");
    while ((word = rp_next_word(&list, &length)) != NULL) {
        if (word[0] == '[' || word[0] == '-') continue;
        (void)snprintf(text, size, "%.*s", (int)length, word);
        if (given-- == 0) return;
    }
}

/* Returns the index of the option whose name is the first `length` bytes of `word`, or the
 * number of options. */
static size_t find_option(const rp_command *c, const char *word, size_t length)
{
    size_t i = 0, count = rp_command_option_count(c);

    for (; i < count; i++) {
        const char *name = rp_command_option(c, i)->name;

        if (strlen(name) == length && strncmp(name, word, length) == 0) break;
    }
    return i;
}

static rp_status add_flag(const rp_command *c, rp_flags *f, size_t option, const char *value,
                          rp_problem *problem)
{
    const rp_option *o = rp_command_option(c, option);
    bool is_on;

    if (o->argument == NULL && !rp_parse_boolean(value, &is_on))
        return rp_problem_set(problem, NULL, "--%s: expected true or false, got '%.60s'",
                              o->name, value);
    if (f->count == RP_MAX_FLAGS)
        return rp_problem_set(problem, NULL, "more than %d options", RP_MAX_FLAGS);
    for (size_t i = 0; i < f->count && !o->repeatable; i++)
        if (f->list[i].option == option)
            return rp_problem_set(problem, NULL, "--%s: given twice", o->name);
    assert(value != NULL && f->count < RP_MAX_FLAGS); /* F4 */
    f->list[f->count++] = (rp_flag){option, value};
    return RP_OK;
}

/* Returns true if `word` is in `list`. */
static bool is_listed(const char *list, const char *word)
{
    size_t length;

    for (const char *w; (w = rp_next_word(&list, &length)) != NULL;)
        if (strlen(word) == length && strncmp(w, word, length) == 0) return true;
    return false;
}

bool rp_has_action(const rp_command *c, const char *word)
{
    return c->actions != NULL && is_listed(c->actions, word);
}

/* Returns the action that a word of other programs stands for, or NULL. */
static const char *synonym(const char *word)
{
    static const char *const words[][2] = {
        {"delete", "drop"}, {"remove", "drop"}, {"rm", "drop"},     {"add", "create"},
        {"new", "create"},  {"ls", "list"},     {"clear", "reset"}, {"check", "verify"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i][0]) == 0) return words[i][1];
    return NULL;
}

static rp_status unknown_action(const rp_command *c, const char *word, rp_problem *problem)
{
    const char *what = c->action != NULL ? c->action : "action";
    const char *list = c->actions, *w, *best;
    char names[MAX_ACTIONS][ACTION_BYTES];
    rp_nearest nearest;
    size_t length;

    assert(c->actions != NULL);
    rp_nearest_init(&nearest, word);
    for (size_t i = 0; i < MAX_ACTIONS && (w = rp_next_word(&list, &length)) != NULL; i++) {
        assert(length < sizeof names[i]);
        (void)snprintf(names[i], sizeof names[i], "%.*s", (int)length, w);
        rp_nearest_offer(&nearest, names[i]);
    }
    best = synonym(word);
    if (best == NULL || !is_listed(c->actions, best)) best = rp_nearest_get(&nearest);
    if (best != NULL)
        return rp_problem_set(problem, NULL, "unknown %s '%.100s', did you mean '%s'? (%s)",
                              what, word, best, c->actions);
    return rp_problem_set(problem, NULL, "unknown %s '%.100s'; there are %s", what, word,
                          c->actions);
}

/* Checks the number of words, and the first one against the actions. */
static rp_status check_words(const rp_command *c, const rp_flags *f, rp_problem *problem)
{
    char missing[40];

    assert(f->word_count <= c->max_words); /* F4 */
    if (f->help) return RP_OK;
    if (f->word_count < c->min_words) {
        missing_word(c, f->word_count, missing, sizeof missing);
        return rp_problem_set(problem, NULL,
                              "%s is missing; usage: reprise %s %s; --help explains it",
                              missing, c->name, c->usage);
    }
    if (c->actions != NULL && f->word_count > 0 && !is_listed(c->actions, f->words[0]))
        return unknown_action(c, f->words[0], problem);
    return RP_OK;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static rp_status needs_value(const rp_option *option, rp_problem *problem)
{
    if (option->words == NULL)
        return rp_problem_set(problem, NULL, "--%s: needs %s", option->name, option->argument);
    return rp_problem_set(problem, NULL, "--%s: needs %s, one of: %s", option->name,
                          option->argument, option->words);
}

rp_status rp_flags_parse(const rp_command *c, int argc, char *const *argv, rp_flags *out,
                         rp_problem *problem)
{
    bool words_only = false;
    rp_status st = RP_OK;

    assert(command_is_valid(c));
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
                return unexpected_word(c, word, problem);
            out->words[out->word_count++] = word;
            continue;
        }
        if (word[1] != '-') return unknown_letter(c, word, problem);
        word += 2;
        equals = strchr(word, '=');
        length = equals != NULL ? (size_t)(equals - word) : strlen(word);
        option = find_option(c, word, length);
        if (option == rp_command_option_count(c))
            return unknown_option(c, out->word_count > 0 ? out->words[0] : NULL, word, length,
                                  problem);
        value = equals != NULL ? equals + 1 : NULL;
        if (value == NULL && rp_command_option(c, option)->argument == NULL) value = "true";
        if (value == NULL && i + 1 < argc) value = argv[++i];
        if (value == NULL) return needs_value(rp_command_option(c, option), problem);
        st = add_flag(c, out, option, value, problem);
    }
    return st == RP_OK ? check_words(c, out, problem) : st;
}

static void print_option(FILE *out, const char *name, const char *argument, const char *help)
{
    char left[64];

    assert(name != NULL && help != NULL);
    (void)snprintf(left, sizeof left, "  --%s%s%s", name, argument != NULL ? " " : "",
                   argument != NULL ? argument : "");
    if (strlen(left) < HELP_COLUMN - 1)
        (void)fprintf(out, "%-*s%s\n", HELP_COLUMN, left, help);
    else
        (void)fprintf(out, "%s\n%*s%s\n", left, HELP_COLUMN, "", help);
}

void rp_command_help(FILE *out, const rp_command *c)
{
    size_t count = rp_command_option_count(c);

    assert(command_is_valid(c));
    (void)fprintf(out, "usage: reprise %s%s%s\n\n%s\n", c->name, c->usage[0] != '\0' ? " " : "",
                  c->usage, c->summary);
    for (size_t i = 0; i < count; i++) {
        const rp_option *o = rp_command_option(c, i);

        if (o->group != NULL)
            (void)fprintf(out, "\n%s\n", o->group);
        else if (i == 0)
            (void)fputc('\n', out);
        print_option(out, o->name, o->argument, o->help);
    }
    if (c->text != NULL) (void)fprintf(out, "\n%s", c->text);
    if (c->examples != NULL) (void)fputc('\n', out);
    for (size_t i = 0; c->examples != NULL && c->examples[i] != NULL; i++)
        (void)fprintf(out, "  %s\n", c->examples[i]);
    if (c->notes != NULL) (void)fprintf(out, "\n%s", c->notes);
}
