/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C by the CRC32 instruction of SSE4.2. It has a latency of three cycles and a throughput
 * of one per cycle, so three stretches are processed in parallel; carry-less multiplication
 * combines their checksums (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using
 * CRC32 Instruction", 2011). */
#include "disk/crc32c.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>
#include <string.h>

static inline uint64_t load(const uint8_t *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof word);
    return word;
}

/* Returns the state after n more zero bytes; `power` is x^(8n - 33) modulo the polynomial. The
 * CRC32 instruction reduces the product and multiplies it by x^32. The missing factor x comes
 * from the product of two reflected numbers. */
static inline uint32_t shift(uint32_t state, uint32_t power)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state), _mm_cvtsi32_si128((int)power), 0);

    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Processes three stretches of `length` bytes each, a multiple of 8. */
static inline uint32_t three(uint32_t state, const uint8_t *data, size_t length, uint32_t once,
                             uint32_t twice)
{
    uint64_t a = state, b = 0, c = 0;

    assert(length % 8 == 0);
    for (const uint8_t *end = data + length; data < end; data += 8) {
        a = _mm_crc32_u64(a, load(data));
        b = _mm_crc32_u64(b, load(data + length));
        c = _mm_crc32_u64(c, load(data + 2 * length));
    }
    return shift((uint32_t)a, twice) ^ shift((uint32_t)b, once) ^ (uint32_t)c;
}

enum { LONG = 1024, SHORT = 128 };

uint32_t rp_crc32c_sse42(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 3 * LONG; data += 3 * LONG, size -= 3 * LONG)
        state = three(state, data, LONG, 0x170076fa, 0xa51b6135);
    for (; size >= 3 * SHORT; data += 3 * SHORT, size -= 3 * SHORT)
        state = three(state, data, SHORT, 0x0d3b6092, 0xb9e02b86);
    for (; size >= 8; data += 8, size -= 8) state = (uint32_t)_mm_crc32_u64(state, load(data));
    for (; size > 0; data++, size--) state = _mm_crc32_u8(state, *data);
    return state;
}

#endif
