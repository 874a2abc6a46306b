/* SPDX-License-Identifier: Apache-2.0 */
/* Man pages and shell completions, made from the declarations of the commands. Pure. */
#ifndef RP_CLI_HELP_MANUAL_H
#define RP_CLI_HELP_MANUAL_H

#include "cli/help/flags.h"
#include "cli/text/sheet.h"

/* All commands. Borrows them. */
typedef struct rp_program {
    const rp_command *const *commands;
    size_t count;
    const char *version;
} rp_program;

/* The page of a command, reprise-NAME(1), in roff; NULL: reprise(1). */
void rp_man_page(rp_sheet *out, const rp_program *program, const rp_command *command);

/* A script for "bash", "zsh" or "fish". False if there is no such shell. */
bool rp_completion(rp_sheet *out, const rp_program *program, const char *shell);

#endif
