/* SPDX-License-Identifier: Apache-2.0 */
/* Generates man pages and shell completions from the declarations of the commands (flags.h).
 * Pure functions. */
#ifndef RP_CLI_HELP_MANUAL_H
#define RP_CLI_HELP_MANUAL_H

#include "cli/help/flags.h"
#include "cli/text/text_buffer.h"

/* All commands of the program `reprise`, borrowed. */
typedef struct rp_program {
    const rp_command *const *commands;
    size_t count;
    const char *version;
} rp_program;

/* Writes the man page reprise-NAME(1) of a command in roff, or the page reprise(1) if `command`
 * is NULL. */
void rp_man_page(rp_text_buffer *out, const rp_program *program, const rp_command *command);

/* Writes a completion script for "bash", "zsh" or "fish". Returns false for any other shell. */
bool rp_completion(rp_text_buffer *out, const rp_program *program, const char *shell);

#endif
