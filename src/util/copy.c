/* SPDX-License-Identifier: Apache-2.0 */
#include "util/copy.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

enum { LINE_BYTES = 64, AHEAD_BYTES = 512 };

/* Copies whole cache lines to an aligned destination. */
static void copy_lines(__m128i *dst, const __m128i *src, size_t lines)
{
    assert(lines == 0 || (uintptr_t)dst % LINE_BYTES == 0);
    for (; lines > 0; lines--, dst += 4, src += 4) {
        __m128i a = _mm_loadu_si128(src), b = _mm_loadu_si128(src + 1);
        __m128i c = _mm_loadu_si128(src + 2), d = _mm_loadu_si128(src + 3);

        __builtin_prefetch((const char *)src + AHEAD_BYTES);
        _mm_stream_si128(dst, a);
        _mm_stream_si128(dst + 1, b);
        _mm_stream_si128(dst + 2, c);
        _mm_stream_si128(dst + 3, d);
    }
    _mm_sfence(); /* non-temporal stores are not ordered */
}

void rp_copy_past_caches(void *dst, const void *src, size_t size)
{
    size_t head = (size_t)(-(uintptr_t)dst % LINE_BYTES), lines;
    const char *from = src;
    char *to = dst;

    if (head > size) head = size;
    memcpy(to, from, head);
    to += head;
    from += head;
    lines = (size - head) / LINE_BYTES;
    copy_lines((__m128i *)(void *)to, (const __m128i *)(const void *)from, lines);
    memcpy(to + lines * LINE_BYTES, from + lines * LINE_BYTES, (size - head) % LINE_BYTES);
}
#else
void rp_copy_past_caches(void *dst, const void *src, size_t size)
{
    memcpy(dst, src, size);
}
#endif
