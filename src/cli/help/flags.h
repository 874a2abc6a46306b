/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, options, arguments and examples as declarations, from which the command line is
 * parsed, help printed, and man pages and completions made. */
#ifndef RP_CLI_HELP_FLAGS_H
#define RP_CLI_HELP_FLAGS_H

#include <stdio.h>

#include "cli/text/problem.h"

typedef struct rp_option {
    const char *name;     /* without the dashes */
    const char *argument; /* what follows, in capitals; NULL: a switch, true unless "=false" */
    const char *help;     /* one line, lower case, no full stop */
    bool repeatable;
    const char *group; /* the heading of the options from here on; NULL: no new one */
    const char *words; /* the values it takes, separated by spaces; NULL: any */
} rp_option;

/* A list of options. */
typedef struct rp_options {
    const rp_option *list;
    size_t count;
} rp_options;

typedef struct rp_flag {
    size_t option; /* its index */
    const char *value;
} rp_flag;

enum { RP_MAX_FLAGS = 512, RP_MAX_WORDS = 256 };

/* A command line, parsed. Borrows from argv. */
typedef struct rp_flags {
    rp_flag list[RP_MAX_FLAGS]; /* in the order given */
    size_t count;
    const char *words[RP_MAX_WORDS]; /* what is no option */
    size_t word_count;
    bool help; /* --help or -h: nothing else is checked then */
} rp_flags;

/* One subcommand. */
typedef struct rp_command {
    const char *name;
    const char *summary;         /* one line */
    const char *usage;           /* what follows the name */
    const char *text;            /* what help says below the options; NULL: nothing */
    const char *const *examples; /* whole command lines, NULL behind the last */
    const char *notes;           /* below the examples; NULL: nothing */
    const char *actions;         /* what the first word may be; NULL: anything */
    const rp_option *options;    /* its own */
    size_t option_count;
    const rp_options *shared; /* those that it has in common with others; NULL: none */
    size_t min_words, max_words;
    int (*run)(const rp_flags *flags); /* returns the exit status */
} rp_command;

/* All options of a command: its own first, then the shared ones. */
size_t rp_command_option_count(const rp_command *command);
const rp_option *rp_command_option(const rp_command *command, size_t index);

/* Parses what follows the command's name: "--name value", "--name=value", switches, and "--"
 * before words that begin with a dash. RP_INVALID with the word and the nearest known one. */
RP_NODISCARD rp_status rp_flags_parse(const rp_command *command, int argc, char *const *argv,
                                      rp_flags *out, rp_problem *problem);

/* The last value of an option, or NULL. */
const char *rp_flags_get(const rp_flags *flags, size_t option);

/* Takes the next of the words in `list`, separated by spaces: where it begins, and its length;
 * NULL at the end. `*list` moves on. */
const char *rp_next_word(const char **list, size_t *length);

/* Prints the help of a command: usage, summary, options by group, text, examples, notes. */
void rp_command_help(FILE *out, const rp_command *command);

#endif
