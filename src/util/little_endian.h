/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that read and write little-endian integers. The addresses need no alignment, and
 * the machine can have any byte order. */
#ifndef RP_UTIL_LITTLE_ENDIAN_H
#define RP_UTIL_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void rp_put_u16(uint8_t *to, uint16_t x)
{
    to[0] = (uint8_t)x;
    to[1] = (uint8_t)(x >> 8);
}

static inline void rp_put_u32(uint8_t *to, uint32_t x)
{
    rp_put_u16(to, (uint16_t)x);
    rp_put_u16(to + 2, (uint16_t)(x >> 16));
}

static inline void rp_put_u64(uint8_t *to, uint64_t x)
{
    rp_put_u32(to, (uint32_t)x);
    rp_put_u32(to + 4, (uint32_t)(x >> 32));
}

static inline uint16_t rp_get_u16(const uint8_t *from)
{
    return (uint16_t)(from[0] | from[1] << 8);
}

static inline uint32_t rp_get_u32(const uint8_t *from)
{
    return rp_get_u16(from) | (uint32_t)rp_get_u16(from + 2) << 16;
}

static inline uint64_t rp_get_u64(const uint8_t *from)
{
    return rp_get_u32(from) | (uint64_t)rp_get_u32(from + 4) << 32;
}

#endif
