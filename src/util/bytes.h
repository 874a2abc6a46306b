/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed bytes: a pointer and a size. */
#ifndef RP_UTIL_BYTES_H
#define RP_UTIL_BYTES_H

#include <stddef.h>

typedef struct rp_bytes {
    const void *data;
    size_t size;
} rp_bytes;

#endif
