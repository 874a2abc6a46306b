/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server by name: the fields of rp_server_limits. */
#ifndef RP_CLI_SERVE_LIMIT_NAMES_H
#define RP_CLI_SERVE_LIMIT_NAMES_H

#include "cli/text/problem.h"
#include "reprise/server.h"

/* How many there are, and their names. Static. */
size_t rp_limit_count(void);
const char *rp_limit_name(size_t index);

/* Its bounds, those of the server. */
void rp_limit_bounds(size_t index, int64_t *low, int64_t *high);

/* Sets the limit `name`; counts, sizes ("64MiB"; "5%" of `memory`) or times ("10s"; a plain
 * number is milliseconds), as it is. 0 is the default. RP_INVALID, for a
 * name that is none with the nearest one. */
RP_NODISCARD rp_status rp_limit_set(rp_server_limits *limits, const char *name,
                                    const rp_setting *value, uint64_t memory,
                                    rp_problem *problem);

/* The limits with defaults for what is 0. */
rp_server_limits rp_limits_filled(const rp_server_limits *limits);

/* Writes the value of a limit as it would stand in a file ("64MiB" if that is exact) and
 * returns `text`. `size` >= 32. */
char *rp_limit_text(const rp_server_limits *limits, size_t index, char *text, size_t size);

#endif
