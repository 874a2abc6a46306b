/* SPDX-License-Identifier: Apache-2.0 */
/* Compression and decompression with each rp_codec. A block is compressed as a whole; any
 * number of its first bytes can be decompressed.
 *
 *   snappy   a raw snappy block; this code writes one literal if snappy saves nothing
 *   none     a raw snappy block of one literal: a head of 2 to 10 bytes, then the plain data
 *   zstd     one frame that states its content size, with no dictionary
 *   lz4      varint32 decoded length | one lz4 block
 *
 * Compression uses the libraries of the codecs. For snappy and lz4, this project has its own
 * decoders (snappy_decode.h, lz4_decode.h), which can stop early and check more than the
 * libraries do. The snappy decoder is also faster.
 *
 * The size of a decompressed block is known from the shape of its column. A block that declares
 * another size is refused, so that no block expands beyond the accepted size. A block is also
 * refused if it is too short for the size of its column: for example, n bytes of snappy never
 * decompress to more than 64/3 n bytes.
 *
 * libsnappy allocates its hash table with C++'s operator new. All other memory comes from the
 * allocator. */
#ifndef RP_CHUNK_CODEC_H
#define RP_CHUNK_CODEC_H

#include "chunk/chunk_api.h"

/* The largest size of a decompressed block. */
enum { RP_CODEC_MAX_RAW_BYTES = 1 << 30 };

/* The contexts of zstd, which are made when first needed, and reused. Only one thread at a time
 * may use a state. A state must not be moved in memory, since zstd keeps a pointer to
 * `alloc`. */
typedef struct rp_codec_state {
    rp_allocator alloc;
    void *zstd_compressor;   /* ZSTD_CCtx */
    void *zstd_decompressor; /* ZSTD_DCtx */
} rp_codec_state;

/* Cannot fail, and allocates nothing. */
void rp_codec_state_init(rp_codec_state *state, const rp_allocator *alloc);
void rp_codec_state_deinit(rp_codec_state *state);

/* Returns true if `level` is valid for the codec. Only zstd has levels; for other codecs any
 * number is valid. */
bool rp_codec_level_is_valid(rp_codec codec, int level);

/* Returns an upper bound of the compressed size of `raw_bytes` (<= RP_CODEC_MAX_RAW_BYTES)
 * bytes. */
size_t rp_codec_max_bytes(rp_codec codec, size_t raw_bytes);

/* Compresses `raw_bytes` bytes at `src` into `dst`, which must have room for
 * rp_codec_max_bytes(). Sets `*stored_bytes` to the compressed size. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_codec_compress(rp_codec_state *state, rp_codec codec, int level,
                                         const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                                         size_t *stored_bytes);

/* Returns true if the header of the block is valid for `raw_bytes` decompressed bytes, and the
 * block is not too short for them. Reads only the first bytes of the block. */
bool rp_codec_check_head(rp_codec codec, const uint8_t *src, size_t size, size_t raw_bytes);

/* If the block is stored uncompressed, returns the address of its `raw_bytes` plain bytes.
 * Otherwise returns NULL. */
const uint8_t *rp_codec_stored(rp_codec codec, const uint8_t *src, size_t size,
                               size_t raw_bytes);

/* Writes the first `want` (<= raw_bytes) decoded bytes to `dst`, which must have room for them.
 * The rest of the block is neither decoded nor checked. Errors: RP_CORRUPT, RP_NO_RESOURCE.
 * After an error the contents of `dst` are undefined. */
RP_NODISCARD rp_status rp_codec_decompress(rp_codec_state *state, rp_codec codec,
                                           const uint8_t *src, size_t size, size_t raw_bytes,
                                           uint8_t *dst, size_t want);

#endif
