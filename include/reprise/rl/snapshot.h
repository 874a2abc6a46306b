/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a run: the state of agent, loop and environments, in the same store as the
 * replay.
 *
 * The state is one item of a table of its own, whose bytes are a safetensors file. The table is
 * in a store of this process or on a server. A checkpoint of the store (durable.h) holds all
 * tables as of one instant, so a snapshot and the replay that belongs to it are saved together
 * or not at all, whenever the process is killed. */
#ifndef REPRISE_RL_SNAPSHOT_H
#define REPRISE_RL_SNAPSHOT_H

#include "reprise/client.h"
#include "reprise/rl/agent.h"

RP_BEGIN_DECLS

enum { RP_SNAPSHOT_MAX_PARTS = 64 };

/* Writes the parts as the one item of table "snapshot", which is created if need be. It is on
 * disk after the next checkpoint of the store. RP_INVALID (too many parts, a part without
 * bytes), RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_snapshot_put(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

/* True if the store has a snapshot. */
RP_API bool rp_snapshot_exists(rp_store *store);

/* Reads the item back into the bytes of the parts. Parts of a snapshot that are not asked for
 * are ignored. On failure no part has been written. A snapshot of more than twice the bytes of
 * the parts and 1 MiB is not decoded.
 * RP_NOT_FOUND (no snapshot), RP_INVALID (it is too large; a part is missing or of another
 * size: the settings are not those of the run; or the format is that of another version of this
 * library; the text names it), RP_CORRUPT, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_snapshot_get(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
