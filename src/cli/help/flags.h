/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of commands, options, arguments and examples. The parser of the command line,
 * help, man pages and completions are all driven by them. */
#ifndef RP_CLI_HELP_FLAGS_H
#define RP_CLI_HELP_FLAGS_H

#include <stdio.h>

#include "cli/text/problem.h"

typedef struct rp_option {
    const char *name;     /* without the dashes */
    const char *argument; /* name of the value, in capitals; NULL: a switch */
    const char *help;     /* one line, lower case, no full stop */
    bool repeatable;
    const char *group; /* heading of this and the following options; NULL: as the one before */
    const char *words; /* allowed values, separated by spaces; NULL: any */
} rp_option;

/* A list of options. */
typedef struct rp_options {
    const rp_option *list;
    size_t count;
} rp_options;

typedef struct rp_flag {
    size_t option; /* its index, as for rp_command_option() */
    const char *value;
} rp_flag;

enum { RP_MAX_FLAGS = 512, RP_MAX_WORDS = 256 };

/* A command line, parsed. Borrows from argv. */
typedef struct rp_flags {
    rp_flag list[RP_MAX_FLAGS]; /* in the order given */
    size_t count;
    const char *words[RP_MAX_WORDS]; /* arguments that are not options */
    size_t word_count;
    bool help; /* --help or -h: nothing else is checked then */
} rp_flags;

/* One subcommand. */
typedef struct rp_command {
    const char *name;
    const char *summary;         /* one line */
    const char *usage;           /* arguments, as help shows them after the name */
    const char *text;            /* of help, below the options; NULL: none */
    const char *const *examples; /* complete command lines, terminated by NULL */
    const char *notes;           /* of help, below the examples; NULL: none */
    const char *actions;         /* allowed first words; NULL: any */
    const char *action;          /* what errors call such a word; NULL: "action" */
    const rp_option *options;    /* of this command only */
    size_t option_count;
    const rp_options *shared; /* options shared with other commands; NULL: none */
    size_t min_words, max_words;
    size_t first_table, last_table;    /* words that name tables, from 1; 0: none does */
    int (*run)(const rp_flags *flags); /* returns the exit status */
} rp_command;

/* Count and get the options of a command: its own first, then the shared ones. */
size_t rp_command_option_count(const rp_command *command);
const rp_option *rp_command_option(const rp_command *command, size_t index);

/* Parses the arguments after the command's name: "--name value", "--name=value", switches (true
 * unless "--name=false"), words, and "--" before words that begin with a dash. RP_INVALID,
 * naming the word and the nearest known option. */
RP_NODISCARD rp_status rp_flags_parse(const rp_command *command, int argc, char *const *argv,
                                      rp_flags *out, rp_problem *problem);

/* Returns true if the word is an action of the command. */
bool rp_has_action(const rp_command *command, const char *word);

/* Returns the last value of an option, or NULL. */
const char *rp_flags_get(const rp_flags *flags, size_t option);

/* Returns the next word of `*list`, whose words are separated by spaces, and its length, and
 * advances `*list`. NULL at the end. */
const char *rp_next_word(const char **list, size_t *length);

/* Prints the help of a command: usage, summary, options by group, text, examples, notes. */
void rp_command_help(FILE *out, const rp_command *command);

#endif
