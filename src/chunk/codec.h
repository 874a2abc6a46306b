/* SPDX-License-Identifier: Apache-2.0 */
/* The compressors behind rp_codec, each as "whole block in" and "first bytes out".
 *
 *   snappy   a raw snappy block; incompressible data becomes a single literal
 *   none     a raw snappy block of one literal: a head of 2 to 10 bytes, then the data itself
 *   zstd     one frame that states its content size, with no dictionary
 *   lz4      varint32 decoded length | one lz4 block
 *
 * We compress with the libraries, and decode snappy and lz4 ourselves: to stop early, to refuse
 * what the libraries let pass, and, with snappy, to be faster.
 *
 * A block never says on its own how large it gets: the reader knows the size from the shape and
 * the block must agree, so nothing expands beyond what was accepted. Nor may it promise more
 * than its format can keep: a snappy block of n bytes never holds more than 64/3 n.
 *
 * libsnappy takes its hash table from C++'s new; all other memory comes from the allocator. */
#ifndef RP_CHUNK_CODEC_H
#define RP_CHUNK_CODEC_H

#include "chunk/chunk_api.h"

/* More bytes than this never go into one block, nor come out of one. */
enum { RP_CODEC_MAX_RAW_BYTES = 1 << 30 };

/* Contexts of zstd, made when first needed and kept. One thread at a time. Must not move: zstd
 * keeps a pointer to `alloc`. */
typedef struct rp_codec_state {
    rp_allocator alloc;
    void *zstd_compressor;   /* ZSTD_CCtx */
    void *zstd_decompressor; /* ZSTD_DCtx */
} rp_codec_state;

/* Cannot fail. */
void rp_codec_state_init(rp_codec_state *state, const rp_allocator *alloc);
void rp_codec_state_deinit(rp_codec_state *state);

/* True if `level` means something to `codec`: always, except for zstd. */
bool rp_codec_level_is_valid(rp_codec codec, int level);

/* Room that rp_codec_compress() may need for `raw_bytes` (<= RP_CODEC_MAX_RAW_BYTES). */
size_t rp_codec_max_bytes(rp_codec codec, size_t raw_bytes);

/* Compresses `raw_bytes` at `src` into `dst`, which has rp_codec_max_bytes() of room, and says
 * how many it took. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_codec_compress(rp_codec_state *state, rp_codec codec, int level,
                                         const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                                         size_t *stored_bytes);

/* True if the block begins as one of `raw_bytes` must, and is not too small to hold them. Looks
 * at the first bytes only. */
bool rp_codec_check_head(rp_codec codec, const uint8_t *src, size_t size, size_t raw_bytes);

/* If the block holds its data as it is, returns where the `raw_bytes` begin, else NULL. */
const uint8_t *rp_codec_stored(rp_codec codec, const uint8_t *src, size_t size,
                               size_t raw_bytes);

/* Writes the first `want` (<= raw_bytes) decoded bytes to `dst`, which has room for `want`.
 * Decodes little further than that; the rest of the block is then not checked. RP_CORRUPT or
 * RP_NO_RESOURCE, with `dst` in any state. */
RP_NODISCARD rp_status rp_codec_decompress(rp_codec_state *state, rp_codec codec,
                                           const uint8_t *src, size_t size, size_t raw_bytes,
                                           uint8_t *dst, size_t want);

#endif
