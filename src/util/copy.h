/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy() with non-temporal stores: the destination is not read into the caches and evicts no
 * other lines. On processors without such stores it is a plain memcpy(). Faster than memcpy()
 * only for copies of several kilobytes or more, in calls that together write more bytes than a
 * core's private cache holds. */
#ifndef RP_UTIL_COPY_H
#define RP_UTIL_COPY_H

#include <stddef.h>

void rp_copy_past_caches(void *dst, const void *src, size_t size);

#endif
