/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/crc32c.h"

#include <string.h>

#include "disk/record.h"
#include "util/cpu.h"

/* A CRC is linear, so the entry of a byte is the XOR of the entries of its bits. Table k has
 * the state after one byte and k zero bytes. */
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                       \
    (((i)&1 ? (a) : 0) ^ ((i)&2 ? (b) : 0) ^ ((i)&4 ? (c) : 0) ^ ((i)&8 ? (d) : 0) ^           \
     ((i)&16 ? (e) : 0) ^ ((i)&32 ? (f) : 0) ^ ((i)&64 ? (g) : 0) ^ ((i)&128 ? (h) : 0))
#define ENTRIES_4(i, ...)                                                                      \
    ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__),           \
        ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                                                     \
    ENTRIES_4(i, __VA_ARGS__), ENTRIES_4((i) + 4, __VA_ARGS__),                                \
        ENTRIES_4((i) + 8, __VA_ARGS__), ENTRIES_4((i) + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                                                     \
    ENTRIES_16(i, __VA_ARGS__), ENTRIES_16((i) + 16, __VA_ARGS__),                             \
        ENTRIES_16((i) + 32, __VA_ARGS__), ENTRIES_16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                             \
    ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__),     \
        ENTRIES_64(192, __VA_ARGS__)

static const uint32_t tables[8][256] = {
    {TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
           0x82f63b78)},
    {TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
           0xfbc3faf9)},
    {TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
           0x8b277743)},
    {TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
           0x52a0c93f)},
    {TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
           0x6ea2d55c)},
    {TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
           0x1c08b7d6)},
    {TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
           0xf56e0ef4)},
    {TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
           0x34019664)},
};

uint32_t rp_crc32c_plain(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8)
        state = tables[7][(state ^ data[0]) & 255] ^ tables[6][(state >> 8 ^ data[1]) & 255] ^
                tables[5][(state >> 16 ^ data[2]) & 255] ^ tables[4][state >> 24 ^ data[3]] ^
                tables[3][data[4]] ^ tables[2][data[5]] ^ tables[1][data[6]] ^
                tables[0][data[7]];
    for (; size > 0; data++, size--) state = state >> 8 ^ tables[0][(state ^ *data) & 255];
    return state;
}

rp_crc32c_kernel *rp_crc32c_choose(void)
{
#if defined(__x86_64__)
    if (rp_cpu_has_sse42_and_clmul()) return rp_crc32c_sse42;
#elif defined(__aarch64__)
    if (rp_cpu_has_arm_crc32()) return rp_crc32c_armv8;
#endif
    return rp_crc32c_plain;
}

uint32_t rp_crc32c(uint32_t crc, const void *data, size_t size)
{
    return ~rp_crc32c_choose()(~crc, data, size);
}
