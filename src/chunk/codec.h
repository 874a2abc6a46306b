/* SPDX-License-Identifier: Apache-2.0 */
/* Compression and decompression with each rp_codec. A block is compressed as a whole; any
 * number of its first bytes can be decompressed.
 *
 *   snappy   a raw snappy block; incompressible data becomes a single literal
 *   none     a raw snappy block of one literal: a head of 2 to 10 bytes, then the data itself
 *   zstd     one frame that states its content size, with no dictionary
 *   lz4      varint32 decoded length | one lz4 block
 *
 * Compression uses the libraries. Decompression of snappy and lz4 is our own: it can stop
 * early, is stricter than the libraries and, with snappy, faster.
 *
 * The size of a decompressed block is known from the shape of its column. A block that states
 * another size is refused, so that nothing expands beyond the accepted size. A block that is
 * too short for its format to hold that size is refused: a snappy block of n bytes never holds
 * more than 64/3 n.
 *
 * libsnappy allocates its hash table with C++'s new; all other memory comes from the
 * allocator. */
#ifndef RP_CHUNK_CODEC_H
#define RP_CHUNK_CODEC_H

#include "chunk/chunk_api.h"

/* The largest size of a decompressed block. */
enum { RP_CODEC_MAX_RAW_BYTES = 1 << 30 };

/* Contexts of zstd, made when first needed and reused. One thread at a time. Must not be moved:
 * zstd keeps a pointer to `alloc`. */
typedef struct rp_codec_state {
    rp_allocator alloc;
    void *zstd_compressor;   /* ZSTD_CCtx */
    void *zstd_decompressor; /* ZSTD_DCtx */
} rp_codec_state;

/* Cannot fail. */
void rp_codec_state_init(rp_codec_state *state, const rp_allocator *alloc);
void rp_codec_state_deinit(rp_codec_state *state);

/* True if `level` is valid for the codec. Only zstd has levels; other codecs accept any
 * number. */
bool rp_codec_level_is_valid(rp_codec codec, int level);

/* An upper bound on the compressed size of `raw_bytes` (<= RP_CODEC_MAX_RAW_BYTES). */
size_t rp_codec_max_bytes(rp_codec codec, size_t raw_bytes);

/* Compresses `raw_bytes` at `src` into `dst`, which has rp_codec_max_bytes() bytes, and writes
 * the compressed size. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_codec_compress(rp_codec_state *state, rp_codec codec, int level,
                                         const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                                         size_t *stored_bytes);

/* True if the header of the block is valid for `raw_bytes`, and the block is not too short to
 * hold them. Reads the first bytes only. */
bool rp_codec_check_head(rp_codec codec, const uint8_t *src, size_t size, size_t raw_bytes);

/* If the block is uncompressed, returns the address of the `raw_bytes`, else NULL. */
const uint8_t *rp_codec_stored(rp_codec codec, const uint8_t *src, size_t size,
                               size_t raw_bytes);

/* Writes the first `want` (<= raw_bytes) decoded bytes to `dst`, which has room for `want`. The
 * rest of the block is neither decoded nor checked. RP_CORRUPT, RP_NO_RESOURCE: the contents of
 * `dst` are undefined. */
RP_NODISCARD rp_status rp_codec_decompress(rp_codec_state *state, rp_codec codec,
                                           const uint8_t *src, size_t size, size_t raw_bytes,
                                           uint8_t *dst, size_t want);

#endif
