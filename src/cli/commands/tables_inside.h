/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the command `reprise tables` share. */
#ifndef RP_CLI_COMMANDS_TABLES_INSIDE_H
#define RP_CLI_COMMANDS_TABLES_INSIDE_H

#include "cli/commands/remote.h"

typedef enum rp_tables_option {
    RP_TABLES_COLUMN,
    RP_TABLES_MAX_SIZE,
    RP_TABLES_MAX_BYTES,
    RP_TABLES_MAX_TIMES_SAMPLED,
    RP_TABLES_SAMPLES_PER_INSERT,
    RP_TABLES_MIN_SIZE,
    RP_TABLES_ERROR_BUFFER,
    RP_TABLES_MIN_DIFF,
    RP_TABLES_MAX_DIFF,
    RP_TABLES_RECENTER,
    RP_TABLES_INSERTS,
    RP_TABLES_SAMPLES,
    RP_TABLES_OPTIONS,
} rp_tables_option;

enum { RP_TABLES_PARTLY = -1 }; /* result of an action that only some servers have done */

/* Prints the error of an action on the table `name`. If some servers have done the action, the
 * error names them; then, if `json` is true, the function also prints a line of JSON, in which
 * the text `done` says what these servers have done. Returns RP_TABLES_PARTLY if some servers
 * have done the action, otherwise the exit status. */
int rp_tables_fail(rp_remote *r, const char *name, const char *done, bool json, rp_status st,
                   const rp_error *err);

/* Carries out `reprise tables alter` for the table `word`, and prints the result. Sets `*table`
 * to NULL: the caller then prints nothing. (Other actions set `*table` to the table that the
 * caller must print.) Returns 0, or prints an error and returns RP_TABLES_PARTLY or the exit
 * status. */
int rp_tables_alter(rp_remote *r, const char *word, const char **table);

#endif
