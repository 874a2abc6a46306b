/* SPDX-License-Identifier: Apache-2.0 */
/* Makes chunks and trajectories from the bytes of an InsertStreamRequest.
 *
 * The functions access neither the tables nor the state of the call. They must be called on the
 * worker's thread. */
#ifndef RP_SERVER_RPC_INSERT_PARTS_H
#define RP_SERVER_RPC_INSERT_PARTS_H

#include "chunk/template.h"
#include "chunk/trajectory.h"
#include "server/core/task.h"
#include "server/rpc/stream_chunks.h"
#include "wire/insert_request.h"

/* Parses a chunk and adds it to `chunks`, the chunks of the stream. `block` is the memory of
 * the message, or NULL. A large chunk keeps a reference to this memory, and other chunks are
 * copied. `template` makes the parsing of similar chunks faster (chunk/template.h). The
 * template is updated when a copied chunk does not match it. A peer is allowed to send a chunk
 * again with the same key and bytes. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_insert_parts_add_chunk(const rp_worker *worker,
                                                 rp_stream_chunks *chunks,
                                                 rp_chunk_template *template,
                                                 const uint8_t *data, size_t size,
                                                 rp_block *block, rp_error *err);

/* Makes the trajectory of `item`, the item that was last read into worker->item_room, from
 * chunks of the stream. If the item names a chunk that the stream does not have, returns
 * RP_INTERNAL with the error text of dm-reverb. If the item has too many chunks, returns
 * RP_NO_RESOURCE and sets item->excess. Errors: RP_INVALID, RP_NO_RESOURCE (memory). */
RP_NODISCARD rp_status rp_insert_parts_trajectory(rp_worker *worker, rp_stream_chunks *chunks,
                                                  rp_wire_item *item, rp_trajectory **out,
                                                  rp_error *err);

#endif
