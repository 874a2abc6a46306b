/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for nghttp2, which does not pass the size of memory that it frees. */
#ifndef RP_WIRE_H2_H2_MEMORY_H
#define RP_WIRE_H2_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

#include "reprise/alloc.h"

/* Borrows `alloc`, which must outlive everything that is made with it. */
nghttp2_mem rp_h2_memory(rp_allocator *alloc);

#endif
