/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `reprise tables` share. */
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

enum { RP_TABLES_PARTLY = -1 }; /* the status of an action that only some servers have done */

/* Prints the error of an action. If some servers have done it, the error names them; with
 * `json`, a line says so too. Returns RP_TABLES_PARTLY or the exit status. */
int rp_tables_fail(rp_remote *r, const char *name, const char *done, bool json, rp_status st,
                   const rp_error *err);

/* Applies `alter` to a table. Sets `*table` to the name of the table whose result must still be
 * printed, or to NULL. Returns 0, or prints an error and returns RP_TABLES_PARTLY or the exit
 * status. */
int rp_tables_alter(rp_remote *r, const char *word, const char **table);

#endif
