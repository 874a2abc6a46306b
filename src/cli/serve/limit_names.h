/* SPDX-License-Identifier: Apache-2.0 */
/* Gets and sets the limits of a server, the fields of rp_server_limits, by name. Limits are
 * numbered from 0 to rp_limit_count() - 1. */
#ifndef RP_CLI_SERVE_LIMIT_NAMES_H
#define RP_CLI_SERVE_LIMIT_NAMES_H

#include "cli/text/problem.h"
#include "reprise/server.h"

/* Return the number of limits, and the name of a limit, as a static string. */
size_t rp_limit_count(void);
const char *rp_limit_name(size_t index);

/* Writes the smallest and largest value of a limit that the server accepts. */
void rp_limit_bounds(size_t index, int64_t *low, int64_t *high);

/* Sets the limit `name`. Each limit is a count, a size or a time. A size is "64MiB", or a
 * percentage of `memory` bytes, such as "5%". A time is "10s"; without a unit, the number is in
 * milliseconds. 0 means the default. Returns RP_INVALID for a wrong value or an unknown name.
 * The error text for an unknown name contains the most similar known name. */
RP_NODISCARD rp_status rp_limit_set(rp_server_limits *limits, const char *name,
                                    const rp_setting *value, uint64_t memory,
                                    rp_problem *problem);

/* Returns the limits, with each 0 replaced by its default. */
rp_server_limits rp_limits_filled(const rp_server_limits *limits);

/* Writes the value of a limit as in a configuration file. A size has a unit ("64MiB") if it is
 * a multiple of the unit. `size` must be >= 32. Returns `text`. */
char *rp_limit_text(const rp_server_limits *limits, size_t index, char *text, size_t size);

#endif
