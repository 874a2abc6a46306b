/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the subcommands of `reprise`. */
#ifndef RP_CLI_COMMANDS_COMMANDS_H
#define RP_CLI_COMMANDS_COMMANDS_H

#include "cli/help/flags.h"

extern const rp_command *const rp_commands[];
extern const size_t rp_command_count;

/* Each command is defined in its own file. */
extern const rp_command rp_bench_command;
extern const rp_command rp_checkpoint_command;
extern const rp_command rp_clients_command;
extern const rp_command rp_data_command;
extern const rp_command rp_eval_command;
extern const rp_command rp_export_command;
extern const rp_command rp_info_command;
extern const rp_command rp_insert_command;
extern const rp_command rp_play_command;
extern const rp_command rp_rollouts_command;
extern const rp_command rp_runs_command;
extern const rp_command rp_sample_command;
extern const rp_command rp_shell_command;
extern const rp_command rp_tables_command;
extern const rp_command rp_top_command;
extern const rp_command rp_train_command;
extern const rp_command rp_tune_command;
extern const rp_command rp_watch_command;
extern const rp_command rp_why_command;

/* Runs a whole command line. If the command line has no words, and the standard streams are a
 * terminal, runs the shell. Returns the exit status: 0 for success, 1 for a failure, 2 for a
 * wrong command line, 130 if Ctrl-C ended the command. */
int rp_commands_main(int argc, char *const *argv);

#endif
