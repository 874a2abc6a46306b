/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the hash XXH3-128 of a stream of bytes. Only one thread at a time may use a
 * state. */
#ifndef RP_DISK_HASH_H
#define RP_DISK_HASH_H

#include "reprise/alloc.h"

enum { RP_HASH_BYTES = 16 };

typedef struct rp_hash rp_hash;

/* Makes the state of a hash of an empty stream. The caller owns the result. Returns NULL if
 * there is no memory. */
rp_hash *rp_hash_new(const rp_allocator *alloc);
void rp_hash_free(rp_hash *hash); /* NULL is fine */

/* Starts again with an empty stream. */
void rp_hash_reset(rp_hash *hash);
/* Appends bytes to the stream. */
void rp_hash_update(rp_hash *hash, const void *data, size_t size);
/* Copies the state of `from` to `to`. */
void rp_hash_copy(rp_hash *to, const rp_hash *from);
/* Writes the hash of all bytes so far in the canonical form: high half first, big-endian. The
 * state does not change. */
void rp_hash_digest(const rp_hash *hash, uint8_t out[RP_HASH_BYTES]);

#endif
