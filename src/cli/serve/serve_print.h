/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the effective configuration as a configuration file, and compares two
 * configurations. */
#ifndef RP_CLI_SERVE_SERVE_PRINT_H
#define RP_CLI_SERVE_SERVE_PRINT_H

#include <stdio.h>

#include "cli/serve/serve_config.h"

/* Prints a configuration, after rp_config_finish(), as YAML. Parsing this text gives the same
 * configuration. Comments in the YAML explain when inserts and samples of a table wait. */
void rp_config_print(FILE *out, const rp_config *config);

/* Returns true if the two configurations differ in settings that can change only with a
 * restart: tables, addresses, paths, the memory budget. Writes the keys of the settings that
 * differ to `keys`, cut to fit. For example, the key of a table is "tables.replay", and the key
 * of the data directory is "storage.data". */
bool rp_config_needs_restart(const rp_config *now, const rp_config *then, char *keys,
                             size_t size);

#endif
