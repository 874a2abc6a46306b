/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of tables and items that are not those of an agent. Other programs may have a table of
 * the same name on a server, so nothing is deleted from a table that was not found to be the
 * agent's. */
#ifndef RP_ERROR_UNFIT_H
#define RP_ERROR_UNFIT_H

#include "reprise/client.h"
#include "reprise/rl/env.h"
#include "reprise/trajectory.h"

/* Compares the signature of the table on each shard that can be reached with `wanted`. The
 * error has `agent`, for instance "apex-dqn with catch". `*is_own`: each table has the columns
 * of `wanted`, with their names, and there is one. A table without a signature may have any
 * items: it is not the agent's.
 * RP_PRECONDITION (a table has another signature; or it has none and removes items that were
 * sampled often enough), or a status of rp_client_get_tables(). */
RP_NODISCARD rp_status rp_check_tables(rp_client *client, const char *table,
                                       const rp_signature *wanted, const char *agent,
                                       rp_wait wait, bool *is_own, rp_error *err);

/* Writes how an item differs from `wanted`, cut to `size` bytes. Returns false if the types and
 * shapes of its columns are those of `wanted`. */
bool rp_item_differs(const rp_trajectory *item, const rp_signature *wanted, char *text,
                     size_t size);

/* Writes the names of the environments with such actions as "; these have: a, b", cut to `size`
 * bytes. Returns `text`. */
const char *rp_envs_text(rp_action_kind kind, char *text, size_t size);

#endif
