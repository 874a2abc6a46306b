/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy() with non-temporal stores: the destination is not read into the caches and evicts no
 * other lines. On processors without such stores it is a plain memcpy(). Faster than memcpy()
 * for copies of several kilobytes or more, if one call or a series of calls writes more than
 * the size of a core's private cache. */
#ifndef RP_UTIL_COPY_H
#define RP_UTIL_COPY_H

#include <stddef.h>

void rp_copy_past_caches(void *dst, const void *src, size_t size);

#endif
