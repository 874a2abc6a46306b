/* SPDX-License-Identifier: Apache-2.0 */
/* zstd allocates with our allocator but does not pass the size when it frees, so each of its
 * blocks has a header with the size:
 *
 *   | size, padded to 16 bytes | block of zstd | */
#define ZSTD_STATIC_LINKING_ONLY /* for its custom allocators */

#include "chunk/codec.h"

#include <assert.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "chunk/lz4_decode.h"
#include "chunk/protobuf.h"
#include "chunk/snappy_decode.h"
#include "util/mem.h"

static_assert(RP_CODEC_MAX_RAW_BYTES < LZ4_MAX_INPUT_SIZE, "a block fits each codec");

const char *rp_codec_name(rp_codec codec)
{
    switch (codec) {
    case RP_CODEC_SNAPPY: return "snappy";
    case RP_CODEC_NONE: return "none";
    case RP_CODEC_ZSTD: return "zstd";
    case RP_CODEC_LZ4: return "lz4";
    }
    return NULL;
}

typedef union block_head {
    size_t size;
    max_align_t align;
} block_head;

static void *zstd_alloc(void *opaque, size_t size)
{
    block_head *head;
    size_t total;

    if (!rp_size_add(size, sizeof *head, &total)) return NULL;
    head = rp_alloc(opaque, total);
    if (head == NULL) return NULL;
    head->size = total;
    return head + 1;
}

static void zstd_free(void *opaque, void *ptr)
{
    block_head *head = ptr;

    if (ptr == NULL) return;
    head--;
    assert(head->size > sizeof *head);
    rp_release(opaque, head, head->size);
}

static rp_status zstd_status(size_t result)
{
    if (!ZSTD_isError(result)) return RP_OK;
    return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? RP_NO_RESOURCE
                                                                     : RP_CORRUPT;
}

static rp_status zstd_compress(rp_codec_state *state, int level, const uint8_t *src,
                               size_t raw_bytes, uint8_t *dst, size_t *stored_bytes)
{
    ZSTD_CCtx *ctx = state->zstd_compressor;
    size_t result;

    if (ctx == NULL) {
        ctx = ZSTD_createCCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, &state->alloc});
        if (ctx == NULL) return RP_NO_RESOURCE;
        state->zstd_compressor = ctx;
    }
    result = ZSTD_CCtx_reset(ctx, ZSTD_reset_session_and_parameters);
    if (!ZSTD_isError(result))
        result = ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
    if (!ZSTD_isError(result))
        result = ZSTD_compress2(ctx, dst, ZSTD_compressBound(raw_bytes), src, raw_bytes);
    if (!ZSTD_isError(result)) {
        *stored_bytes = result;
        return RP_OK;
    }
    return zstd_status(result) == RP_NO_RESOURCE ? RP_NO_RESOURCE : RP_INTERNAL;
}

/* Accepts plain frames only: the magic number excludes skippable frames and the formats before
 * 2016, which some builds of the library still read. */
static bool zstd_check_head(const uint8_t *src, size_t size, size_t raw_bytes)
{
    static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

    if (size < sizeof magic || memcmp(src, magic, sizeof magic) != 0) return false;
    return ZSTD_getFrameContentSize(src, size) == raw_bytes;
}

/* The smallest window limit that covers a whole frame of this size. */
static int window_log(size_t raw_bytes)
{
    int log = ZSTD_WINDOWLOG_MIN;
    while (log < 31 && (size_t)1 << log < raw_bytes) log++;
    return log;
}

static rp_status zstd_prefix(ZSTD_DCtx *ctx, const uint8_t *src, size_t size, size_t raw_bytes,
                             uint8_t *dst, size_t want)
{
    ZSTD_inBuffer in = {src, size, 0};
    ZSTD_outBuffer out = {dst, want, 0};
    size_t result = ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, window_log(raw_bytes));

    if (ZSTD_isError(result)) return RP_INTERNAL;
    while (out.pos < want) {
        size_t before = in.pos + out.pos;
        result = ZSTD_decompressStream(ctx, &out, &in);
        if (ZSTD_isError(result)) return zstd_status(result);
        /* The frame has ended or makes no progress: it holds too few bytes. */
        if (out.pos < want && (result == 0 || in.pos + out.pos == before)) return RP_CORRUPT;
    }
    return RP_OK;
}

static rp_status zstd_decompress(rp_codec_state *state, const uint8_t *src, size_t size,
                                 size_t raw_bytes, uint8_t *dst, size_t want)
{
    ZSTD_DCtx *ctx = state->zstd_decompressor;
    size_t result;

    if (!zstd_check_head(src, size, raw_bytes)) return RP_CORRUPT;
    if (ctx == NULL) {
        ctx = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, &state->alloc});
        if (ctx == NULL) return RP_NO_RESOURCE;
        state->zstd_decompressor = ctx;
    }
    result = ZSTD_DCtx_reset(ctx, ZSTD_reset_session_only);
    if (ZSTD_isError(result)) return RP_INTERNAL;
    if (want < raw_bytes) return zstd_prefix(ctx, src, size, raw_bytes, dst, want);
    if (ZSTD_findFrameCompressedSize(src, size) != size) return RP_CORRUPT;
    result = ZSTD_decompressDCtx(ctx, dst, want, src, size);
    if (ZSTD_isError(result)) return zstd_status(result);
    return result == want ? RP_OK : RP_CORRUPT;
}

static rp_status lz4_compress(const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                              size_t *stored_bytes)
{
    uint8_t *at = rp_pb_put_varint(dst, raw_bytes);
    int room = LZ4_compressBound((int)raw_bytes);
    int size = LZ4_compress_default((const char *)src, (char *)at, (int)raw_bytes, room);

    if (size <= 0) return RP_INTERNAL; /* impossible: `room` is the bound */
    *stored_bytes = (size_t)(at - dst) + (size_t)size;
    return RP_OK;
}

static rp_status lz4_decompress(const uint8_t *src, size_t size, size_t raw_bytes, uint8_t *dst,
                                size_t want)
{
    size_t declared, head;

    if (!rp_snappy_head(src, size, &declared, &head) || declared != raw_bytes)
        return RP_CORRUPT;
    return rp_lz4_decode(src + head, size - head, raw_bytes, dst, want);
}

void rp_codec_state_init(rp_codec_state *state, const rp_allocator *alloc)
{
    *state = (rp_codec_state){.alloc = *alloc};
}

void rp_codec_state_deinit(rp_codec_state *state)
{
    if (state == NULL) return;
    (void)ZSTD_freeCCtx(state->zstd_compressor);
    (void)ZSTD_freeDCtx(state->zstd_decompressor);
    state->zstd_compressor = NULL;
    state->zstd_decompressor = NULL;
}

bool rp_codec_level_is_valid(rp_codec codec, int level)
{
    return codec != RP_CODEC_ZSTD || (level >= ZSTD_minCLevel() && level <= ZSTD_maxCLevel());
}

size_t rp_codec_max_bytes(rp_codec codec, size_t raw_bytes)
{
    assert(raw_bytes <= RP_CODEC_MAX_RAW_BYTES);
    switch (codec) {
    case RP_CODEC_SNAPPY: return snappy_max_compressed_length(raw_bytes);
    case RP_CODEC_NONE: return rp_snappy_literal_head_size(raw_bytes) + raw_bytes;
    case RP_CODEC_ZSTD: return ZSTD_compressBound(raw_bytes);
    case RP_CODEC_LZ4:
        return rp_pb_varint_size(raw_bytes) + (size_t)LZ4_compressBound((int)raw_bytes);
    }
    return 0;
}

static rp_status store(const uint8_t *src, size_t raw_bytes, uint8_t *dst, size_t *stored_bytes)
{
    uint8_t *at = rp_snappy_put_literal_head(dst, raw_bytes);

    if (raw_bytes > 0) memcpy(at, src, raw_bytes);
    *stored_bytes = (size_t)(at - dst) + raw_bytes;
    return RP_OK;
}

/* Stores incompressible data as a literal, which is not larger and is read without decoding. */
static rp_status snappy_or_store(const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                                 size_t *stored_bytes)
{
    size_t size = snappy_max_compressed_length(raw_bytes);

    if (raw_bytes == 0) return store(src, raw_bytes, dst, stored_bytes);
    if (snappy_compress((const char *)src, raw_bytes, (char *)dst, &size) != SNAPPY_OK)
        return RP_INTERNAL;
    if (size >= rp_snappy_literal_head_size(raw_bytes) + raw_bytes)
        return store(src, raw_bytes, dst, stored_bytes);
    *stored_bytes = size;
    return RP_OK;
}

rp_status rp_codec_compress(rp_codec_state *state, rp_codec codec, int level,
                            const uint8_t *src, size_t raw_bytes, uint8_t *dst,
                            size_t *stored_bytes)
{
    assert(raw_bytes <= RP_CODEC_MAX_RAW_BYTES);
    switch (codec) {
    case RP_CODEC_SNAPPY: return snappy_or_store(src, raw_bytes, dst, stored_bytes);
    case RP_CODEC_NONE: return store(src, raw_bytes, dst, stored_bytes);
    case RP_CODEC_ZSTD: return zstd_compress(state, level, src, raw_bytes, dst, stored_bytes);
    case RP_CODEC_LZ4: return lz4_compress(src, raw_bytes, dst, stored_bytes);
    }
    return RP_INTERNAL;
}

/* A lower bound on the size of a block of `raw_bytes`: the size if it had only elements with
 * the highest compression ratio. */
static size_t least_bytes(rp_codec codec, size_t raw_bytes)
{
    switch (codec) {
    case RP_CODEC_SNAPPY:
    case RP_CODEC_NONE: return (3 * raw_bytes + 63) / 64; /* copies: 64 bytes for 3 */
    case RP_CODEC_ZSTD: return raw_bytes / (1 << 15);     /* run blocks: 128 KiB for 4 */
    case RP_CODEC_LZ4: return raw_bytes / 255;            /* bytes of a match's length */
    }
    return 0;
}

bool rp_codec_check_head(rp_codec codec, const uint8_t *src, size_t size, size_t raw_bytes)
{
    size_t declared, head;

    if (raw_bytes > RP_CODEC_MAX_RAW_BYTES || size < least_bytes(codec, raw_bytes))
        return false;
    if (codec == RP_CODEC_ZSTD) return zstd_check_head(src, size, raw_bytes);
    return rp_snappy_head(src, size, &declared, &head) && declared == raw_bytes;
}

const uint8_t *rp_codec_stored(rp_codec codec, const uint8_t *src, size_t size,
                               size_t raw_bytes)
{
    bool is_snappy = codec == RP_CODEC_SNAPPY || codec == RP_CODEC_NONE;
    return is_snappy ? rp_snappy_literal(src, size, raw_bytes) : NULL;
}

rp_status rp_codec_decompress(rp_codec_state *state, rp_codec codec, const uint8_t *src,
                              size_t size, size_t raw_bytes, uint8_t *dst, size_t want)
{
    assert(want <= raw_bytes);
    if (!rp_codec_check_head(codec, src, size, raw_bytes)) return RP_CORRUPT;
    if (want == 0) return RP_OK;
    switch (codec) {
    case RP_CODEC_SNAPPY:
    case RP_CODEC_NONE: return rp_snappy_decode(src, size, raw_bytes, dst, want);
    case RP_CODEC_ZSTD: return zstd_decompress(state, src, size, raw_bytes, dst, want);
    case RP_CODEC_LZ4: return lz4_decompress(src, size, raw_bytes, dst, want);
    }
    return RP_INVALID;
}
