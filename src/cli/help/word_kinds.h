/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what kind of word a command expects at a position of its command line, for
 * completions. Pure functions. */
#ifndef RP_CLI_HELP_WORD_KINDS_H
#define RP_CLI_HELP_WORD_KINDS_H

#include "cli/help/flags.h"

typedef enum rp_word_kind {
    RP_WORD_NONE,    /* no further word, or a name that does not exist yet */
    RP_WORD_ACTION,  /* one of command->actions */
    RP_WORD_TABLE,   /* a table of the server */
    RP_WORD_FILE,    /* a file, a folder, or text that cannot be completed */
    RP_WORD_COMMAND, /* the name of a command, as in `reprise help NAME` */
} rp_word_kind;

/* Returns the kind of word number `place` of the command line. Words are counted from 1;
 * options and their values do not count. `first` is word number 1, on which the kind can
 * depend, or NULL if `place` is 1. */
rp_word_kind rp_word_kind_of(const rp_command *command, size_t place, const char *first);

/* Returns true if the value of the option is a path of a file or folder. */
bool rp_option_takes_file(const rp_option *option);

#endif
