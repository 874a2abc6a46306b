/* SPDX-License-Identifier: Apache-2.0 */
/* Two further interfaces of chunk builders (chunk_api.h), which collect rows for a chunk. The
 * first interface appends a row in two steps, reserve and commit. A caller with several
 * builders first reserves in all of them and then commits in all of them, so the row is
 * appended to all builders or to none. The second interface compresses the rows with a
 * compressor that the caller provides. It does not change the builder's rows, so other threads
 * may read the rows during the compression. */
#ifndef RP_CHUNK_BUILDER_H
#define RP_CHUNK_BUILDER_H

#include "chunk/codec.h"

/* The first half of rp_chunk_builder_append(): checks a row and makes room for it, but does not
 * append it yet. Returns the same statuses as rp_chunk_builder_append(). */
RP_NODISCARD rp_status rp_chunk_builder_reserve(rp_chunk_builder *builder, const rp_tensor *row,
                                                rp_error *err);

/* The second half: appends `row`, which must be the row of the last rp_chunk_builder_reserve().
 * The caller must not call another function of the builder in between. Cannot fail. */
void rp_chunk_builder_commit(rp_chunk_builder *builder, const rp_tensor *row);

/* A compressor: codec state and a scratch buffer, which are reused for many chunks. Only one
 * thread at a time may use a compressor. It must not be moved in memory. */
typedef struct rp_chunk_compressor {
    rp_codec_state codec;
    uint8_t *scratch;
    size_t used, capacity;
    bool is_off; /* set by the caller if the rows are known to be incompressible: chunks with
                    the codec snappy are then stored uncompressed */
} rp_chunk_compressor;

/* Cannot fail; allocates nothing. */
void rp_chunk_compressor_init(rp_chunk_compressor *press, const rp_allocator *alloc);
void rp_chunk_compressor_deinit(rp_chunk_compressor *press);

/* Like rp_chunk_builder_finish(), but the builder keeps its rows and does not write to them, so
 * that other threads may copy the rows during the call. */
RP_NODISCARD rp_status rp_chunk_builder_compress(rp_chunk_builder *builder,
                                                 rp_chunk_compressor *press,
                                                 const rp_chunk_origin *origin, rp_chunk **out,
                                                 rp_error *err);

#endif
