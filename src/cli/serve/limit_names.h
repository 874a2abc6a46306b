/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server by name: the fields of rp_server_limits. */
#ifndef RP_CLI_SERVE_LIMIT_NAMES_H
#define RP_CLI_SERVE_LIMIT_NAMES_H

#include "cli/text/problem.h"
#include "reprise/server.h"

/* Return the number of limits, and the name of one. Static. */
size_t rp_limit_count(void);
const char *rp_limit_name(size_t index);

/* Gets the smallest and largest value that the server accepts. */
void rp_limit_bounds(size_t index, int64_t *low, int64_t *high);

/* Sets the limit `name`: a count, a size ("64MiB"; "5%" of `memory`) or a time ("10s"; a plain
 * number is milliseconds). 0 is the default. RP_INVALID; for an unknown name the error text
 * contains the nearest known name. */
RP_NODISCARD rp_status rp_limit_set(rp_server_limits *limits, const char *name,
                                    const rp_setting *value, uint64_t memory,
                                    rp_problem *problem);

/* Returns the limits with defaults in the place of 0. */
rp_server_limits rp_limits_filled(const rp_server_limits *limits);

/* Writes the value of a limit for a configuration file ("64MiB" if that is exact). Returns
 * `text`. `size` >= 32. */
char *rp_limit_text(const rp_server_limits *limits, size_t index, char *text, size_t size);

#endif
