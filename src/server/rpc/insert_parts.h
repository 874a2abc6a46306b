/* SPDX-License-Identifier: Apache-2.0 */
/* Makes chunks and trajectories from the bytes of an InsertStreamRequest.
 *
 * Independent of tables and of the call. All functions belong to the worker's thread. */
#ifndef RP_SERVER_RPC_INSERT_PARTS_H
#define RP_SERVER_RPC_INSERT_PARTS_H

#include "chunk/template.h"
#include "chunk/trajectory.h"
#include "server/core/task.h"
#include "server/rpc/stream_chunks.h"
#include "wire/insert_request.h"

/* Parses a chunk and adds it to `chunks`, the chunks of the stream. `block` is the memory of
 * the message, or NULL. A large chunk refers to this memory; other chunks are copied.
 * `template` makes the parsing of similar chunks faster (chunk/template.h). It is updated when
 * a copied chunk does not match it. A peer may send a chunk again with the same bytes.
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_insert_parts_add_chunk(const rp_worker *worker,
                                                 rp_stream_chunks *chunks,
                                                 rp_chunk_template *template,
                                                 const uint8_t *data, size_t size,
                                                 rp_block *block, rp_error *err);

/* Makes the trajectory of `item`, the item that was last read into worker->item_room. The
 * trajectory refers to chunks of the stream. RP_INTERNAL: the item names a chunk that the
 * stream does not have; the error text is that of dm-reverb. RP_INVALID; RP_NO_RESOURCE, with
 * item->excess set if the item has too many chunks. */
RP_NODISCARD rp_status rp_insert_parts_trajectory(rp_worker *worker, rp_stream_chunks *chunks,
                                                  rp_wire_item *item, rp_trajectory **out,
                                                  rp_error *err);

#endif
