/* SPDX-License-Identifier: Apache-2.0 */
/* A growable array of bytes.
 *
 * Appending returns no status. When an allocation fails, the buffer sets `bad`, keeps its
 * contents and ignores later appends, so that a caller checks `bad` once, at the end. The
 * buffer also becomes bad when an append would exceed `most`. A plain value, not thread-safe.
 *
 * Invariants:
 *   B1  size <= capacity;
 *   B2  data is NULL exactly if capacity is 0. */
#ifndef RP_UTIL_BUF_H
#define RP_UTIL_BUF_H

#include <assert.h>
#include <string.h>

#include "reprise/alloc.h"

typedef struct rp_buf {
    uint8_t *data;
    size_t size, capacity;
    size_t most; /* the largest size in bytes; 0: no bound */
    bool bad;    /* an allocation failed, or an append would have exceeded `most` */
    bool full;   /* an append would have exceeded `most` */
    const rp_allocator *alloc;
} rp_buf;

static inline void rp_buf_init(rp_buf *buf, const rp_allocator *alloc)
{
    *buf = (rp_buf){.alloc = alloc};
}
void rp_buf_deinit(rp_buf *buf);

/* Empties the buffer, keeps its memory and removes its bound. */
static inline void rp_buf_clear(rp_buf *buf)
{
    buf->size = buf->most = 0;
    buf->bad = buf->full = false;
}

/* Makes room for `more` bytes and returns the address of the first. Returns NULL if there is no
 * memory, or if the buffer is already bad. */
uint8_t *rp_buf_grow(rp_buf *buf, size_t more);
static inline uint8_t *rp_buf_reserve(rp_buf *buf, size_t more)
{
    assert(buf->size <= buf->capacity);
    if (__builtin_expect(buf->capacity - buf->size < more || buf->bad, 0))
        return rp_buf_grow(buf, more);
    return buf->data + buf->size;
}

void rp_buf_append(rp_buf *buf, const void *data, size_t size);
void rp_buf_text(rp_buf *buf, const char *text); /* without the terminating zero */
void rp_buf_format(rp_buf *buf, const char *format, ...) RP_PRINTF(2, 3);

#endif
