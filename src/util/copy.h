/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy() with non-temporal stores: the destination is not read into the caches and evicts no
 * other lines. On processors without such stores it is a plain memcpy(). It is faster than
 * memcpy() only if each copy has several kilobytes or more, and if all copies together have
 * more bytes than the private cache of a core holds. */
#ifndef RP_UTIL_COPY_H
#define RP_UTIL_COPY_H

#include <stddef.h>

void rp_copy_past_caches(void *dst, const void *src, size_t size);

#endif
