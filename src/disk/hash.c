/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/hash.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/mem.h"

struct rp_hash {
    XXH3_state_t state; /* first: needs the alignment of a cache line */
    rp_allocator alloc;
};

rp_hash *rp_hash_new(const rp_allocator *alloc)
{
    rp_hash *hash = rp_alloc_aligned(alloc, sizeof *hash);

    if (hash == NULL) return NULL;
    assert((uintptr_t)hash % 64 == 0);
    hash->alloc = *alloc;
    rp_hash_reset(hash);
    return hash;
}

void rp_hash_free(rp_hash *hash)
{
    rp_allocator alloc;

    if (hash == NULL) return;
    alloc = hash->alloc;
    rp_release_aligned(&alloc, hash, sizeof *hash);
}

void rp_hash_reset(rp_hash *hash)
{
    (void)XXH3_128bits_reset(&hash->state);
}

void rp_hash_update(rp_hash *hash, const void *data, size_t size)
{
    if (size > 0) (void)XXH3_128bits_update(&hash->state, data, size);
}

void rp_hash_copy(rp_hash *to, const rp_hash *from)
{
    XXH3_copyState(&to->state, &from->state);
}

void rp_hash_digest(const rp_hash *hash, uint8_t out[RP_HASH_BYTES])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&hash->state));
    memcpy(out, canonical.digest, RP_HASH_BYTES);
}
