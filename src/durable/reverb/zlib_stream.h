/* SPDX-License-Identifier: Apache-2.0 */
/* zlib streams over byte streams, with bounded memory: a few hundred KiB each way whatever
 * passes through.
 *
 * What is read may also not be compressed at all, as the oldest checkpoints are not: the caller
 * says how to tell, from the first bytes. One zlib stream makes a file; bytes behind its end,
 * and a stream without one, are damage. zlib's own check of the contents (Adler-32) is made.
 *
 * Against bombs: a bound on what comes out, beyond which reading fails. A stream cannot grow
 * more than 1,032 times, and nothing is held of it here but one buffer. */
#ifndef RP_DURABLE_REVERB_ZLIB_STREAM_H
#define RP_DURABLE_REVERB_ZLIB_STREAM_H

#include "durable/reverb/byte_stream.h"

typedef struct rp_inflater rp_inflater;

enum { RP_INFLATE_PEEK_BYTES = 16 };

typedef struct rp_inflate_options {
    rp_byte_source source; /* borrowed */
    uint64_t max_bytes;    /* that come out; 0: no limit */
    /* True if the bytes that the source begins with, RP_INFLATE_PEEK_BYTES or all there are,
     * are those of a plain file. NULL: it is compressed. */
    bool (*is_plain)(const uint8_t *first, size_t size);
} rp_inflate_options;

/* Returns owned. RP_NO_RESOURCE. Nothing is read yet. */
RP_NODISCARD rp_status rp_inflater_new(const rp_allocator *alloc,
                                       const rp_inflate_options *options, rp_inflater **out,
                                       rp_error *err);
void rp_inflater_free(rp_inflater *z); /* NULL is fine */

/* An rp_read_bytes, whose ctx is the inflater. A source without any bytes is an empty stream.
 * RP_CORRUPT, RP_NO_RESOURCE (over the limit; memory), and what the source says. */
rp_status rp_inflater_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);

/* After the first read: whether it is compressed. */
bool rp_inflater_is_compressed(const rp_inflater *z);
/* Bytes taken from the source, for progress. */
uint64_t rp_inflater_consumed(const rp_inflater *z);

typedef struct rp_deflater rp_deflater;

/* Window 15, default level. Returns owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_deflater_new(const rp_allocator *alloc, rp_byte_sink sink,
                                       rp_deflater **out, rp_error *err);
void rp_deflater_free(rp_deflater *z); /* NULL is fine */

/* An rp_write_bytes, whose ctx is the deflater. What the sink says. */
rp_status rp_deflater_write(void *ctx, const void *data, size_t size, rp_error *err);
/* Ends the stream and hands the last of it to the sink. */
RP_NODISCARD rp_status rp_deflater_finish(rp_deflater *z, rp_error *err);

#endif
