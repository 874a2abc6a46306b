/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an InsertStreamRequest: makes chunks and trajectories of the bytes of a message.
 *
 * Independent of tables and of the call. All functions belong to the worker's thread. */
#ifndef RP_SERVER_RPC_INSERT_PARTS_H
#define RP_SERVER_RPC_INSERT_PARTS_H

#include "chunk/template.h"
#include "chunk/trajectory.h"
#include "server/core/task.h"
#include "server/rpc/stream_chunks.h"
#include "wire/insert_request.h"

/* Parses a chunk and adds it to those of the stream. A large chunk refers to `block`, the
 * message that it arrived in, if there is one; others are copied. `template` is that of the
 * last small chunk. A chunk may be sent again with the same bytes. RP_INVALID, RP_NO_RESOURCE.
 */
RP_NODISCARD rp_status rp_insert_parts_add_chunk(const rp_worker *worker,
                                                 rp_stream_chunks *chunks,
                                                 rp_chunk_template *template,
                                                 const uint8_t *data, size_t size,
                                                 rp_block *block, rp_error *err);

/* Makes a trajectory over the stream's chunks of the item that was read last into the worker's
 * item_room. RP_INTERNAL: the stream has no such chunk, in dm-reverb's words. RP_INVALID;
 * RP_NO_RESOURCE, with item->excess set if the item has too many chunks. */
RP_NODISCARD rp_status rp_insert_parts_trajectory(rp_worker *worker, rp_stream_chunks *chunks,
                                                  rp_wire_item *item, rp_trajectory **out,
                                                  rp_error *err);

#endif
