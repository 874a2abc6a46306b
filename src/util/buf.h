/* SPDX-License-Identifier: Apache-2.0 */
/* A growable array of bytes.
 *
 * Appending returns no status. When an allocation fails, the buffer sets `bad`, keeps its
 * contents and ignores later appends, so that a caller checks `bad` once, at the end. The
 * buffer also becomes bad when its capacity would have to grow beyond the bound `most`. A
 * caller must set `most` before the first append, since the bound does not apply to capacity
 * that the buffer already has. Not thread-safe. A copy of the struct shares the memory, so only
 * one copy may be used.
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
    size_t most; /* the largest capacity in bytes; 0: no bound */
    bool bad;    /* an allocation failed, or the capacity would have grown beyond `most` */
    bool full;   /* the capacity would have grown beyond `most` */
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

/* Both functions make room for `more` (>= 1) bytes after the first `size` bytes, and return the
 * address of this room. They do not change `size`: the caller writes the bytes and adds their
 * number. They return NULL if the buffer is already bad, if memory runs out, or if `most` would
 * be exceeded; the buffer is then bad. Callers use rp_buf_reserve(), which calls rp_buf_grow()
 * if the capacity is too small. */
uint8_t *rp_buf_grow(rp_buf *buf, size_t more);
static inline uint8_t *rp_buf_reserve(rp_buf *buf, size_t more)
{
    assert(buf->size <= buf->capacity);
    if (__builtin_expect(buf->capacity - buf->size < more || buf->bad, 0))
        return rp_buf_grow(buf, more);
    return buf->data + buf->size;
}

void rp_buf_append(rp_buf *buf, const void *data, size_t size);
/* Appends `text` without the terminating zero. */
void rp_buf_text(rp_buf *buf, const char *text);
void rp_buf_format(rp_buf *buf, const char *format, ...) RP_PRINTF(2, 3);

#endif
