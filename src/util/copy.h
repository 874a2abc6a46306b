/* SPDX-License-Identifier: Apache-2.0 */
/* memcpy() for more than the caches hold: it writes past them, so that memory is not read only
 * to be written over, and what lies in the caches stays. Where the processor cannot, a plain
 * memcpy(). It pays from some kilobytes on; and if what is written together, however many calls
 * that takes, is more than a core's own cache. */
#ifndef RP_UTIL_COPY_H
#define RP_UTIL_COPY_H

#include <stddef.h>

void rp_copy_past_caches(void *dst, const void *src, size_t size);

#endif
