/* SPDX-License-Identifier: Apache-2.0 */
/* Appending in two steps, for whoever appends a row to several builders or to none of them; and
 * compressing with somebody else's scratch space, while others read the rows. */
#ifndef RP_CHUNK_BUILDER_H
#define RP_CHUNK_BUILDER_H

#include "chunk/codec.h"

/* Checks a row and makes room for it; the first half of rp_chunk_builder_append(), with its
 * statuses. Nothing is appended yet. */
RP_NODISCARD rp_status rp_chunk_builder_reserve(rp_chunk_builder *builder, const rp_tensor *row,
                                                rp_error *err);

/* Appends the row that was reserved last, since when nothing else happened to the builder.
 * Cannot fail. */
void rp_chunk_builder_commit(rp_chunk_builder *builder, const rp_tensor *row);

/* What compressing takes besides the rows, kept from chunk to chunk. One thread at a time. Must
 * not move. */
typedef struct rp_chunk_press {
    rp_codec_state codec;
    uint8_t *scratch;
    size_t used, capacity;
} rp_chunk_press;

/* Cannot fail; allocates nothing. */
void rp_chunk_press_init(rp_chunk_press *press, const rp_allocator *alloc);
void rp_chunk_press_deinit(rp_chunk_press *press);

/* Like rp_chunk_builder_finish(), but the rows stay, and are not written to: meanwhile other
 * threads may copy them out. */
RP_NODISCARD rp_status rp_chunk_builder_press(rp_chunk_builder *builder, rp_chunk_press *press,
                                              const rp_chunk_origin *origin, rp_chunk **out,
                                              rp_error *err);

#endif
