/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `reprise`, in one table. */
#ifndef RP_CLI_COMMANDS_H
#define RP_CLI_COMMANDS_H

#include "cli/flags.h"

extern const rp_command rp_commands[];
extern const size_t rp_command_count;

/* Runs a whole command line and returns the exit status: 0 done, 1 failed, 2 misuse. */
int rp_commands_main(int argc, char *const *argv);

#endif
