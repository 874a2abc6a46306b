/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C by the CRC32C instruction of ARMv8. */
#include "disk/crc32c.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <string.h>

uint32_t rp_crc32c_armv8(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        state = __crc32cd(state, word);
    }
    for (; size > 0; data++, size--) state = __crc32cb(state, *data);
    return state;
}

#endif
