/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy() with non-temporal stores: the destination is neither read into the caches nor does
 * it evict other lines. A plain memcpy() on processors without such stores. Faster than
 * memcpy() for copies of several kilobytes or more, if all that is written together, in any
 * number of calls, is larger than a core's private cache. */
#ifndef RP_UTIL_COPY_H
#define RP_UTIL_COPY_H

#include <stddef.h>

void rp_copy_past_caches(void *dst, const void *src, size_t size);

#endif
