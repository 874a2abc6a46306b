/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-128 of the bytes of a file, as they come. One thread at a time. */
#ifndef RP_DISK_HASH_H
#define RP_DISK_HASH_H

#include "reprise/alloc.h"

enum { RP_HASH_BYTES = 16 };

typedef struct rp_hash rp_hash;

/* Of nothing so far. NULL if there is no memory. Returns owned. */
rp_hash *rp_hash_new(const rp_allocator *alloc);
void rp_hash_free(rp_hash *hash); /* NULL is fine */

/* Begins anew. */
void rp_hash_reset(rp_hash *hash);
void rp_hash_update(rp_hash *hash, const void *data, size_t size);
/* Lets `to` be of the same bytes as `from`. */
void rp_hash_copy(rp_hash *to, const rp_hash *from);
/* Of everything so far, in the canonical form: the high half first, big-endian. Changes
 * nothing. */
void rp_hash_digest(const rp_hash *hash, uint8_t out[RP_HASH_BYTES]);

#endif
