/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether a table and its items belong to an agent, and words the errors if they do
 * not. Another program can have a table of the same name on a server. An agent therefore
 * deletes items only from a table that rp_check_tables() has found to be its own. */
#ifndef RP_ERROR_UNFIT_H
#define RP_ERROR_UNFIT_H

#include "reprise/client.h"
#include "reprise/rl/env.h"
#include "reprise/trajectory.h"

/* Compares the signature of the table named `table`, on each shard (server of the client) that
 * can be reached, with `wanted`. Sets `*is_own` to true if at least one shard has the table and
 * each of these tables has the columns of `wanted`, with the same names. A table without a
 * signature can have any items, so it counts as not the agent's. `agent` is a text for the
 * error, for example "apex-dqn with catch".
 * Errors: RP_PRECONDITION (a table has another signature; or a table has no signature and a
 * limit max_times_sampled, so that sampling would remove items of another program), or a status
 * of rp_client_get_tables(). */
RP_NODISCARD rp_status rp_check_tables(rp_client *client, const char *table,
                                       const rp_signature *wanted, const char *agent,
                                       rp_wait wait, bool *is_own, rp_error *err);

/* If the columns of an item have other types or shapes than `wanted`, writes the first
 * difference to `text`, cut to `size` bytes, and returns true. Otherwise returns false. */
bool rp_item_differs(const rp_trajectory *item, const rp_signature *wanted, char *text,
                     size_t size);

/* Writes the names of the built-in environments whose actions are of this kind to `text`, for
 * example "; these have: a, b", cut to `size` bytes. Returns `text`. */
const char *rp_envs_text(rp_action_kind kind, char *text, size_t size);

#endif
