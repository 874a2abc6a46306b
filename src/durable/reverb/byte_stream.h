/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes one after the other, from and to wherever: what the codecs of checkpoint files read and
 * write, so that a test or a fuzzer can give them memory in the location of a file. */
#ifndef RP_DURABLE_REVERB_BYTE_STREAM_H
#define RP_DURABLE_REVERB_BYTE_STREAM_H

#include "disk/files.h"

/* Reads up to `size` bytes into `dst`; `*got` is less only at the end. */
typedef rp_status rp_read_bytes(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);
/* Writes all of it, or fails. */
typedef rp_status rp_write_bytes(void *ctx, const void *data, size_t size, rp_error *err);

typedef struct rp_byte_source {
    rp_read_bytes *read;
    void *ctx;
} rp_byte_source;

typedef struct rp_byte_sink {
    rp_write_bytes *write;
    void *ctx;
} rp_byte_sink;

/* Bytes in memory; the read function takes one of these as its ctx. Borrows. */
typedef struct rp_memory_stream {
    const uint8_t *at, *end;
} rp_memory_stream;
rp_status rp_memory_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);

/* A file from its beginning on; likewise, for both directions. `position` is how far it is. */
typedef struct rp_file_stream {
    rp_file *file; /* borrowed */
    uint64_t position;
} rp_file_stream;
rp_status rp_file_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err);
rp_status rp_file_stream_write(void *ctx, const void *data, size_t size, rp_error *err);

#endif
