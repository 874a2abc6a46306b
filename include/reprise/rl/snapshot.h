/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a run: the state of the agent, the loop and the environments, kept in the same
 * store as the replay.
 *
 * A snapshot is one item of the table "snapshot". The bytes of the item are a safetensors file.
 * The table is in a store of this process or on a server. A checkpoint of the store (durable.h)
 * holds all tables at one instant. A snapshot and the replay that belongs to it are therefore
 * saved together or not at all, whenever the process is killed. */
#ifndef REPRISE_RL_SNAPSHOT_H
#define REPRISE_RL_SNAPSHOT_H

#include "reprise/client.h"
#include "reprise/rl/agent.h"

RP_BEGIN_DECLS

enum { RP_SNAPSHOT_MAX_PARTS = 64 };

/* Writes a snapshot of the parts, which replaces the previous one. Creates the table "snapshot"
 * if it does not exist. The next checkpoint of the store writes the snapshot to disk.
 * RP_INVALID (too many parts, or a part without bytes), RP_NO_RESOURCE, or a status of the
 * client. */
RP_API RP_NODISCARD rp_status rp_snapshot_put(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

/* Returns true if the store has a snapshot. */
RP_API bool rp_snapshot_exists(rp_store *store);

/* Reads the snapshot into the bytes of `parts`. Other parts of the snapshot are ignored. On
 * failure no part has been written.
 * RP_NOT_FOUND (there is no snapshot), RP_INVALID (see below), RP_CORRUPT, RP_NO_RESOURCE, or a
 * status of the client.
 *
 * RP_INVALID has three causes, and the text of the error says which. A part may be missing or
 * have another size, because the settings are not those of the run. The format may be that of
 * another version of this library. Or the snapshot is larger than 1 MiB plus twice the bytes of
 * `parts`, and is therefore not decoded. */
RP_API RP_NODISCARD rp_status rp_snapshot_get(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
