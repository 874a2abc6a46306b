/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a run: the state of the agent, the environment loop (env_loop.h) and the
 * environments. A snapshot is kept in the same store as the replay, the table with the items
 * from which the agent learns.
 *
 * A snapshot is one item of the table "snapshot". The bytes of the item are a safetensors file.
 * The table is in a store of this process or on a server. A checkpoint (reprise/durable.h) is a
 * copy of the store on disk, with all tables as they are at one instant. A snapshot and the
 * replay that belongs to it are therefore saved together or not at all, even if the process is
 * killed. */
#ifndef REPRISE_RL_SNAPSHOT_H
#define REPRISE_RL_SNAPSHOT_H

#include "reprise/client.h"
#include "reprise/rl/agent.h"

RP_BEGIN_DECLS

enum { RP_SNAPSHOT_MAX_PARTS = 64 };

/* Writes a snapshot of the parts, which replaces the previous one. Creates the table "snapshot"
 * if it does not exist. The next checkpoint of the store writes the snapshot to disk.
 * Errors: RP_INVALID (too many parts), RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_snapshot_put(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

/* Returns true if the store has a snapshot. */
RP_API bool rp_snapshot_exists(rp_store *store);

/* Reads the snapshot: for each entry of `parts`, copies the part of the snapshot that has the
 * same name to the bytes of the entry. Ignores other parts of the snapshot. On failure no part
 * has been written.
 * Errors: RP_NOT_FOUND (there is no snapshot), RP_INVALID (see below), RP_CORRUPT,
 * RP_NO_RESOURCE, or a status of the client.
 *
 * RP_INVALID has three causes, and the text of the error says which. First, the snapshot lacks
 * a part or has the part with another size, because the settings are not those of the saved
 * run. Second, the snapshot has the format of another version of this library. Third, the
 * snapshot is larger than 1 MiB plus twice the bytes of `parts`; a snapshot of this size is not
 * decoded. */
RP_API RP_NODISCARD rp_status rp_snapshot_get(const rp_allocator *alloc, rp_client *client,
                                              const rp_state_part *parts, size_t count,
                                              rp_wait wait, rp_error *err);

RP_END_DECLS

#endif
