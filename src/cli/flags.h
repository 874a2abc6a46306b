/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and their options as declarations, from which the command line is parsed and help is
 * printed. */
#ifndef RP_CLI_FLAGS_H
#define RP_CLI_FLAGS_H

#include <stdio.h>

#include "cli/problem.h"

typedef struct rp_option {
    const char *name;     /* without the dashes */
    const char *argument; /* what follows, in capitals; NULL: a switch, true unless "=false" */
    const char *help;     /* one line, lower case, no full stop */
    bool repeatable;
    const char *group; /* the heading of the options from here on; NULL: no new one */
} rp_option;

typedef struct rp_flag {
    size_t option; /* its index */
    const char *value;
} rp_flag;

enum { RP_MAX_FLAGS = 512, RP_MAX_WORDS = 4 };

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
    const char *summary; /* one line */
    const char *usage;   /* what follows the name */
    const char *text;    /* what help says below the options; NULL: nothing */
    const rp_option *options;
    size_t option_count;
    size_t max_words;
    int (*run)(const rp_flags *flags); /* returns the exit status */
} rp_command;

/* Parses what follows the command's name: "--name value", "--name=value", switches, and "--"
 * before words that begin with a dash. RP_INVALID with the word and the nearest known one. */
RP_NODISCARD rp_status rp_flags_parse(const rp_command *command, int argc, char *const *argv,
                                      rp_flags *out, rp_problem *problem);

/* Prints the help of a command: usage, summary, options by group, text. */
void rp_command_help(FILE *out, const rp_command *command);

#endif
