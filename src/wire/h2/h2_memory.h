/* SPDX-License-Identifier: Apache-2.0 */
/* Lets nghttp2 use an rp_allocator. nghttp2 does not pass the size of the memory that it frees,
 * so each allocation stores its size. */
#ifndef RP_WIRE_H2_H2_MEMORY_H
#define RP_WIRE_H2_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

#include "reprise/alloc.h"

/* Borrows `alloc`, which must outlive all memory that nghttp2 allocates with it. */
nghttp2_mem rp_h2_memory(rp_allocator *alloc);

#endif
