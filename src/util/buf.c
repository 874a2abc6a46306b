/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/mem.h"

enum { FIRST_CAPACITY = 256 };

void rp_buf_deinit(rp_buf *buf)
{
    rp_release(buf->alloc, buf->data, buf->capacity);
    *buf = (rp_buf){.alloc = buf->alloc};
}

uint8_t *rp_buf_grow(rp_buf *buf, size_t more)
{
    size_t needed;
    size_t capacity = buf->capacity > 0 ? buf->capacity : FIRST_CAPACITY;

    assert((buf->data == NULL) == (buf->capacity == 0));
    if (buf->bad) return NULL;
    if (!rp_size_add(buf->size, more, &needed) || needed > SIZE_MAX / 2) {
        buf->bad = true;
        return NULL;
    }
    if (buf->most > 0 && needed > buf->most) {
        buf->bad = buf->full = true;
        return NULL;
    }
    while (capacity < needed) capacity *= 2;
    if (buf->most > 0 && capacity > buf->most) capacity = buf->most;
    if (capacity > buf->capacity) {
        uint8_t *data = buf->alloc->resize(buf->alloc->ctx, buf->data, buf->capacity, capacity);
        if (data == NULL) {
            buf->bad = true;
            return NULL;
        }
        buf->data = data;
        buf->capacity = capacity;
    }
    assert(buf->capacity - buf->size >= more);
    return buf->data + buf->size;
}

void rp_buf_append(rp_buf *buf, const void *data, size_t size)
{
    uint8_t *at;

    if (size == 0) return; /* `data` may still be NULL */
    at = rp_buf_reserve(buf, size);
    if (at == NULL) return;
    memcpy(at, data, size);
    buf->size += size;
}

void rp_buf_text(rp_buf *buf, const char *text)
{
    rp_buf_append(buf, text, strlen(text));
}

void rp_buf_format(rp_buf *buf, const char *format, ...)
{
    size_t room = buf->bad ? 0 : buf->capacity - buf->size;
    va_list arguments;
    int length;
    uint8_t *at;

    va_start(arguments, format);
    length =
        vsnprintf(room > 0 ? (char *)buf->data + buf->size : NULL, room, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buf->bad = true;
        return;
    }
    at = rp_buf_reserve(buf, (size_t)length + 1);
    if (at == NULL) return;
    if ((size_t)length >= room) { /* it did not fit at first, which is rare */
        va_start(arguments, format);
        (void)vsnprintf((char *)at, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    buf->size += (size_t)length;
}
