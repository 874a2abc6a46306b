/* SPDX-License-Identifier: Apache-2.0 */
/* A growable array of bytes.
 *
 * Appending never fails visibly: when there is no memory the buffer turns bad, keeps what it
 * had and ignores what follows, so that a writer of many parts checks once, at the end. The
 * same happens when it would take more memory than `most`. A plain value, not thread-safe. */
#ifndef RP_UTIL_BUF_H
#define RP_UTIL_BUF_H

#include <string.h>

#include "reprise/alloc.h"

typedef struct rp_buf {
    uint8_t *data;
    size_t size, capacity;
    size_t most; /* bytes that it may grow to; 0: no bound */
    bool bad;    /* an append found no memory, or more than `most` bytes */
    bool full;   /* bad because of `most` */
    const rp_allocator *alloc;
} rp_buf;

static inline void rp_buf_init(rp_buf *buf, const rp_allocator *alloc)
{
    *buf = (rp_buf){.alloc = alloc};
}
void rp_buf_deinit(rp_buf *buf);

/* Forgets the contents and the bound, and keeps the memory. */
static inline void rp_buf_clear(rp_buf *buf)
{
    buf->size = buf->most = 0;
    buf->bad = buf->full = false;
}

/* Makes room for `more` bytes and returns where they go, or NULL, with the buffer bad. */
uint8_t *rp_buf_grow(rp_buf *buf, size_t more);
static inline uint8_t *rp_buf_reserve(rp_buf *buf, size_t more)
{
    if (__builtin_expect(buf->capacity - buf->size < more || buf->bad, 0))
        return rp_buf_grow(buf, more);
    return buf->data + buf->size;
}

void rp_buf_append(rp_buf *buf, const void *data, size_t size);
void rp_buf_text(rp_buf *buf, const char *text); /* without its zero */
void rp_buf_format(rp_buf *buf, const char *format, ...) RP_PRINTF(2, 3);

#endif
