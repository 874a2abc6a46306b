/* SPDX-License-Identifier: Apache-2.0 */
/* Two further interfaces of chunk builders. Appending in two steps: a caller with several
 * builders can reserve in all of them before it commits in any, so that it appends to all of
 * them or to none. Compressing with a compressor of the caller: the builder's rows stay as they
 * are, so other threads may read them meanwhile. */
#ifndef RP_CHUNK_BUILDER_H
#define RP_CHUNK_BUILDER_H

#include "chunk/codec.h"

/* Checks a row and makes room for it; the first half of rp_chunk_builder_append(), with its
 * statuses. Nothing is appended yet. */
RP_NODISCARD rp_status rp_chunk_builder_reserve(rp_chunk_builder *builder, const rp_tensor *row,
                                                rp_error *err);

/* Appends the row that was reserved last; no other call on the builder may come between. Cannot
 * fail. */
void rp_chunk_builder_commit(rp_chunk_builder *builder, const rp_tensor *row);

/* A compressor: codec state and scratch buffer, reused from chunk to chunk. One thread at a
 * time. Must not be moved. */
typedef struct rp_chunk_compressor {
    rp_codec_state codec;
    uint8_t *scratch;
    size_t used, capacity;
    bool is_off; /* set by the caller: chunks of the codec snappy are stored uncompressed, for
                    rows that are known not to become smaller */
} rp_chunk_compressor;

/* Cannot fail; allocates nothing. */
void rp_chunk_compressor_init(rp_chunk_compressor *press, const rp_allocator *alloc);
void rp_chunk_compressor_deinit(rp_chunk_compressor *press);

/* Like rp_chunk_builder_finish(), but the builder keeps its rows and does not write to them, so
 * that other threads may copy them out meanwhile. */
RP_NODISCARD rp_status rp_chunk_builder_compress(rp_chunk_builder *builder,
                                                 rp_chunk_compressor *press,
                                                 const rp_chunk_origin *origin, rp_chunk **out,
                                                 rp_error *err);

#endif
