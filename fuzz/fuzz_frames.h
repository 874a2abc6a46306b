/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the bytes that an HTTP/2 peer sends, without nghttp2: whole frames, and headers
 * without compression. */
#ifndef RP_FUZZ_FRAMES_H
#define RP_FUZZ_FRAMES_H

#include <stdbool.h>

#include "fuzz.h"

enum {
    FRAME_DATA,
    FRAME_HEADERS,
    FRAME_RESET = 3,
    FRAME_SETTINGS,
    FRAME_PING = 6,
    FRAME_GOAWAY,
    FRAME_WINDOW = 8
};
enum { FLAG_END_STREAM = 1, FLAG_ACK = 1, FLAG_END_HEADERS = 4 };

/* Bytes to be sent, in a buffer of fixed size. Bytes that do not fit are dropped. */
typedef struct fuzz_bytes {
    uint8_t data[1 << 17];
    size_t size;
} fuzz_bytes;

static inline void fuzz_put(fuzz_bytes *b, const void *data, size_t size)
{
    if (size == 0 || size > sizeof b->data - b->size) return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void fuzz_put_int(fuzz_bytes *b, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0) fuzz_put(b, &(uint8_t){(uint8_t)(value >> (8 * bytes))}, 1);
}

static inline void fuzz_put_head(fuzz_bytes *b, size_t size, unsigned type, unsigned flags,
                                 uint32_t stream)
{
    const uint8_t head[9] = {
        (uint8_t)(size >> 16),   (uint8_t)(size >> 8),   (uint8_t)size,
        (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream,
    };

    fuzz_put(b, head, sizeof head);
}

static inline void fuzz_put_frame(fuzz_bytes *b, unsigned type, unsigned flags, uint32_t stream,
                                  const void *data, size_t size)
{
    fuzz_put_head(b, size, type, flags, stream);
    fuzz_put(b, data, size);
}

/* Appends the preface of a client and empty settings. */
static inline void fuzz_put_greeting(fuzz_bytes *b)
{
    fuzz_put(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    fuzz_put_frame(b, FRAME_SETTINGS, 0, 0, NULL, 0);
}

static inline size_t fuzz_field(uint8_t *at, const char *name, const char *value)
{
    size_t name_size = strlen(name), value_size = strlen(value);

    fuzz_check(name_size < 127 && value_size < 127);
    at[0] = 0; /* literal, not indexed */
    at[1] = (uint8_t)name_size;
    memcpy(at + 2, name, name_size);
    at[2 + name_size] = (uint8_t)value_size;
    memcpy(at + 3 + name_size, value, value_size);
    return 3 + name_size + value_size;
}

/* Appends the headers of a gRPC request. `timeout` is the value of grpc-timeout, or NULL for no
 * such header. */
static inline void fuzz_put_request(fuzz_bytes *b, uint32_t stream, bool end,
                                    const char *method, const char *path, const char *timeout)
{
    uint8_t block[512];
    size_t size = fuzz_field(block, ":method", method);

    size += fuzz_field(block + size, ":scheme", "http");
    size += fuzz_field(block + size, ":path", path);
    size += fuzz_field(block + size, ":authority", "a");
    size += fuzz_field(block + size, "te", "trailers");
    size += fuzz_field(block + size, "content-type", "application/grpc");
    if (timeout != NULL) size += fuzz_field(block + size, "grpc-timeout", timeout);
    fuzz_put_frame(b, FRAME_HEADERS, FLAG_END_HEADERS | (end ? FLAG_END_STREAM : 0u), stream,
                   block, size);
}

/* Appends the gRPC prefix of a message. */
static inline void fuzz_put_prefix(fuzz_bytes *b, unsigned compressed, size_t size)
{
    fuzz_put_int(b, compressed, 1);
    fuzz_put_int(b, size, 4);
}

#endif
