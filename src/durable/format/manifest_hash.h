/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a whole manifest: XXH3-128 over all records before the last one, END. For each
 * record, the checksum of its header and then its payload are hashed. The checksum of a header
 * covers kind, number, length, the checksum of the payload and the header checksum of the
 * previous record. */
#ifndef RP_DURABLE_FORMAT_MANIFEST_HASH_H
#define RP_DURABLE_FORMAT_MANIFEST_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "disk/hash.h"
#include "disk/record.h"
#include "util/little_endian.h"

/* Must be aligned to a cache line, so it must be allocated with rp_alloc_aligned(). */
typedef struct rp_manifest_hash {
    XXH3_state_t state;
} rp_manifest_hash;

static inline void rp_manifest_hash_init(rp_manifest_hash *h)
{
    (void)XXH3_128bits_reset(&h->state);
}

static inline void rp_manifest_hash_add(rp_manifest_hash *h, const rp_record *record)
{
    uint8_t crc[4];

    rp_put_u32(crc, record->crc);
    (void)XXH3_128bits_update(&h->state, crc, sizeof crc);
    (void)XXH3_128bits_update(&h->state, record->payload, record->size);
}

static inline void rp_manifest_hash_take(const rp_manifest_hash *h, uint8_t out[RP_HASH_BYTES])
{
    XXH128_hash_t hash = XXH3_128bits_digest(&h->state);

    rp_put_u64(out, hash.low64);
    rp_put_u64(out + 8, hash.high64);
}

#endif
