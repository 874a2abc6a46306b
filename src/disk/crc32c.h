/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of rp_crc32c() (record.h): implementations for different processors, which all
 * compute the same result. A kernel gets and returns the raw state, which is the bitwise
 * complement of the checksum.
 *
 * The polynomial is Castagnoli's, 0x1edc6f41, with reflected bits, as in RFC 3720 (appendix
 * B.4). */
#ifndef RP_DISK_CRC32C_H
#define RP_DISK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t rp_crc32c_kernel(uint32_t state, const uint8_t *data, size_t size);

rp_crc32c_kernel rp_crc32c_plain; /* table look-ups, eight bytes per step */
#if defined(__x86_64__)
rp_crc32c_kernel rp_crc32c_sse42; /* needs SSE4.2 and PCLMULQDQ */
#elif defined(__aarch64__)
rp_crc32c_kernel rp_crc32c_armv8; /* needs the CRC32 extension */
#endif

/* Returns the fastest kernel that this processor can run. */
rp_crc32c_kernel *rp_crc32c_choose(void);

#endif
