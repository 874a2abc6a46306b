/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of commands with their options, arguments and examples, and the parser of
 * command lines. --help, man pages and shell completions are generated from the same
 * declarations. */
#ifndef RP_CLI_HELP_FLAGS_H
#define RP_CLI_HELP_FLAGS_H

#include <stdio.h>

#include "cli/text/problem.h"

/* An option of a command. */
typedef struct rp_option {
    const char *name;     /* without the dashes */
    const char *argument; /* name of the value in the help text, in capitals; NULL: the option
                             is a switch */
    const char *help;     /* one line, lower case, no full stop */
    bool repeatable;      /* may be given more than once */
    const char *group;    /* heading in help, above this option; NULL: this option is under the
                             heading of the option before it */
    const char *words;    /* allowed values, separated by spaces; NULL: any value */
} rp_option;

/* A list of options. */
typedef struct rp_options {
    const rp_option *list;
    size_t count;
} rp_options;

/* An option in a command line, with its value. */
typedef struct rp_flag {
    size_t option; /* index for rp_command_option() */
    const char *value;
} rp_flag;

enum { RP_MAX_FLAGS = 512, RP_MAX_WORDS = 256 };

/* A parsed command line. Borrows from argv. */
typedef struct rp_flags {
    rp_flag list[RP_MAX_FLAGS]; /* in the order of the command line */
    size_t count;
    const char *words[RP_MAX_WORDS]; /* arguments that are not options */
    size_t word_count;
    bool help; /* --help or -h was given; the rest has not been checked */
} rp_flags;

/* A subcommand of reprise. */
typedef struct rp_command {
    const char *name;
    const char *summary;         /* one line */
    const char *usage;           /* the arguments, as help shows them after the name */
    const char *text;            /* text in help below the options; NULL: none */
    const char *const *examples; /* complete command lines; ends with NULL */
    const char *notes;           /* text in help below the examples; NULL: none */
    const char *actions;         /* allowed values of the first word, separated by spaces; NULL:
                                    any */
    const char *action;          /* what error texts call the first word; NULL: "action" */
    const rp_option *options;    /* options of this command only */
    size_t option_count;
    const rp_options *shared;          /* options shared with other commands; NULL: none */
    size_t min_words, max_words;       /* how many words the command takes */
    size_t first_table, last_table;    /* the words from number first_table to last_table
                                          (counted from 1) are names of tables; 0: none is */
    int (*run)(const rp_flags *flags); /* returns the exit status */
} rp_command;

/* Return the number of options of a command, and one of them. The command's own options come
 * first, then the shared ones. */
size_t rp_command_option_count(const rp_command *command);
const rp_option *rp_command_option(const rp_command *command, size_t index);

/* Parses the arguments after the command's name. An option is "--name value" or "--name=value".
 * A switch "--name" has the value true; "--name=false" turns it off. After "--", all arguments
 * are words, even if they begin with a dash. Returns RP_INVALID for a wrong argument; the
 * problem names it, and for an unknown option also the most similar one. */
RP_NODISCARD rp_status rp_flags_parse(const rp_command *command, int argc, char *const *argv,
                                      rp_flags *out, rp_problem *problem);

/* Returns true if `word` is one of command->actions. */
bool rp_has_action(const rp_command *command, const char *word);

/* Returns the last value that was given for an option, or NULL if it was not given. */
const char *rp_flags_get(const rp_flags *flags, size_t option);

/* Returns the next word of `*list`, a text of words separated by spaces. Sets `*length` to the
 * length of the word and advances `*list` past it. Returns NULL at the end. */
const char *rp_next_word(const char **list, size_t *length);

/* Prints the help of a command: usage, summary, options by group, text, examples, notes. */
void rp_command_help(FILE *out, const rp_command *command);

#endif
