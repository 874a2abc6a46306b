/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of the words of a command line, for completions. Pure. */
#ifndef RP_CLI_HELP_WORD_KINDS_H
#define RP_CLI_HELP_WORD_KINDS_H

#include "cli/help/flags.h"

typedef enum rp_word_kind {
    RP_WORD_NONE,
    RP_WORD_ACTION,  /* one of command->actions */
    RP_WORD_TABLE,   /* a table of the server */
    RP_WORD_FILE,    /* a file, a folder, or any other text */
    RP_WORD_COMMAND, /* the name of a command, as in `reprise help NAME` */
} rp_word_kind;

/* Returns the kind of word number `place`, counted from 1, without options and their values.
 * `first` is word number 1, or NULL if `place` is 1. */
rp_word_kind rp_word_kind_of(const rp_command *command, size_t place, const char *first);

/* Returns true if the value of an option is a file or a folder. */
bool rp_option_takes_file(const rp_option *option);

#endif
