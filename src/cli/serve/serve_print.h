/* SPDX-License-Identifier: Apache-2.0 */
/* What would run: a configuration with everything filled in, as a file that says the same. */
#ifndef RP_CLI_SERVE_SERVE_PRINT_H
#define RP_CLI_SERVE_SERVE_PRINT_H

#include <stdio.h>

#include "cli/serve/serve_config.h"

/* Prints a finished configuration as YAML: reading it again gives the same one. Comments say
 * in words when a table's inserts and samples wait. */
void rp_config_print(FILE *out, const rp_config *config);

/* True if the two differ in something that is taken at the start only: tables, addresses,
 * paths, the budget. */
bool rp_config_needs_restart(const rp_config *now, const rp_config *then);

#endif
