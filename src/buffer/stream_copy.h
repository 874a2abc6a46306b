/* SPDX-License-Identifier: Apache-2.0 */
/* Copies memory that will not be read soon, with non-temporal stores. Such stores bypass the
 * CPU's caches: the destination is not read into the caches, and nothing is evicted from
 * them. */
#ifndef RP_BUFFER_STREAM_COPY_H
#define RP_BUFFER_STREAM_COPY_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>

enum { RP_CAN_STREAM = 1 };

/* Copies `bytes` bytes. `bytes` must be a multiple of 64, and both pointers must be aligned to
 * 64 bytes. */
static inline void rp_stream_copy(char *to, const char *from, size_t bytes)
{
    assert(bytes % 64 == 0 && (uintptr_t)to % 64 == 0 && (uintptr_t)from % 64 == 0);
    for (size_t at = 0; at < bytes; at += 64) {
        __m128i *line = (__m128i *)(void *)(to + at);
        const __m128i *source = (const __m128i *)(const void *)(from + at);
        __m128i a = _mm_load_si128(source), b = _mm_load_si128(source + 1);
        __m128i c = _mm_load_si128(source + 2), d = _mm_load_si128(source + 3);

        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
}

/* Orders the stores of rp_stream_copy() before all later stores. Must be called before another
 * thread can read the copies. */
static inline void rp_stream_end(void)
{
    _mm_sfence();
}
#else
enum { RP_CAN_STREAM = 0 };

static inline void rp_stream_copy(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void rp_stream_end(void)
{
}
#endif

#endif
