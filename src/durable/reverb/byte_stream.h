/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential streams of bytes. The codecs of dm-reverb's checkpoint files read and write
 * streams instead of files, so that a test or a fuzzer can use memory. */
#ifndef RP_DURABLE_REVERB_BYTE_STREAM_H
#define RP_DURABLE_REVERB_BYTE_STREAM_H

#include "disk/files.h"

/* Reads `size` bytes into `dst`. `*got` is less than `size` only at the end of the stream. */
typedef rp_status rp_read_bytes(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);
/* Writes all bytes, or fails. */
typedef rp_status rp_write_bytes(void *ctx, const void *data, size_t size, rp_error *err);

typedef struct rp_byte_source {
    rp_read_bytes *read;
    void *ctx;
} rp_byte_source;

typedef struct rp_byte_sink {
    rp_write_bytes *write;
    void *ctx;
} rp_byte_sink;

/* A stream over bytes in memory, which it borrows: the ctx of rp_memory_stream_read(). */
typedef struct rp_memory_stream {
    const uint8_t *at, *end;
} rp_memory_stream;
rp_status rp_memory_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);

/* A stream over a file, for reading or writing: the ctx of the two functions below. */
typedef struct rp_file_stream {
    rp_file *file;     /* borrowed */
    uint64_t position; /* offset of the next byte */
} rp_file_stream;
rp_status rp_file_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);
rp_status rp_file_stream_write(void *ctx, const void *data, size_t size, rp_error *err);

#endif
