/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes zlib-compressed data over byte streams, with bounded memory: a few hundred
 * KiB for each direction.
 *
 * The input is allowed to be uncompressed, as in the oldest checkpoints of dm-reverb: the
 * caller's function is_plain decides from the first bytes whether it is. A compressed file is
 * one zlib stream. Bytes after the end of the stream, or a missing end, are damage. The
 * Adler-32 checksum of zlib is checked.
 *
 * As a protection against decompression bombs, reading fails when there are more than max_bytes
 * of output. Zlib decompresses its input to at most 1,032 times its size, and only one buffer
 * of output is in memory. */
#ifndef RP_DURABLE_REVERB_ZLIB_STREAM_H
#define RP_DURABLE_REVERB_ZLIB_STREAM_H

#include "durable/reverb/byte_stream.h"

typedef struct rp_inflater rp_inflater;

enum { RP_INFLATE_PEEK_BYTES = 16 };

typedef struct rp_inflate_options {
    rp_byte_source source; /* borrowed */
    uint64_t max_bytes;    /* largest output; 0: no limit */
    /* Returns true if the source is not compressed. `first` has the first RP_INFLATE_PEEK_BYTES
     * bytes of the source, or all bytes of a shorter source. NULL: the source is compressed. */
    bool (*is_plain)(const uint8_t *first, size_t size);
} rp_inflate_options;

/* Makes an inflater, which the caller owns. Does not read from the source yet. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_inflater_new(const rp_allocator *alloc,
                                       const rp_inflate_options *options, rp_inflater **out,
                                       rp_error *err);
void rp_inflater_free(rp_inflater *z); /* NULL is fine */

/* An rp_read_bytes whose ctx is the inflater. An empty source gives an empty stream. Errors:
 * RP_CORRUPT, RP_NO_RESOURCE (over the limit; memory), and the errors of the source. */
rp_status rp_inflater_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);

/* Returns true if the source is compressed. Valid after the first read. */
bool rp_inflater_is_compressed(const rp_inflater *z);
/* Returns the number of bytes consumed from the source, for progress reports. */
uint64_t rp_inflater_consumed(const rp_inflater *z);

typedef struct rp_deflater rp_deflater;

/* Makes a deflater, which the caller owns. It compresses at zlib's default level with the
 * largest window (32 KiB). Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_deflater_new(const rp_allocator *alloc, rp_byte_sink sink,
                                       rp_deflater **out, rp_error *err);
void rp_deflater_free(rp_deflater *z); /* NULL is fine */

/* An rp_write_bytes whose ctx is the deflater. Returns the statuses of the sink. */
rp_status rp_deflater_write(void *ctx, const void *data, size_t size, rp_error *err);
/* Ends the stream and writes the rest of it to the sink. */
RP_NODISCARD rp_status rp_deflater_finish(rp_deflater *z, rp_error *err);

#endif
