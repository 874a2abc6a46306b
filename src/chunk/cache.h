/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder's cache of decoded columns of chunks (chunk_api.h). It keeps at most max_bytes,
 * except that a single entry may be larger. The key of an entry is the chunk and the index of
 * the column. An entry has the first `rows` rows of its column: as many as were decoded.
 *
 * The cache is an open-addressing hash table with linear probing, at most half full. Entries
 * are evicted by the CLOCK algorithm: a hand walks over the table and evicts the entries that
 * were not used since the hand's last visit. An entry owns a reference to its chunk, so the
 * address of the chunk cannot be reused.
 *
 *   table   | entry | free | entry | entry | free | ...      2^n
 *                              ^ hand
 *
 * Invariants:
 *   H1  2 * count <= capacity, and `count` is the number of entries with a chunk;
 *   H2  `bytes` is the sum of the bytes of all entries;
 *   H3  the search for an entry begins at an index that is computed from its hash; no entry of
 *       the table from that index up to the entry itself is free.
 *
 * Only one thread at a time may use a cache. */
#ifndef RP_CHUNK_CACHE_H
#define RP_CHUNK_CACHE_H

#include "chunk/chunk.h"

typedef struct rp_cached {
    rp_chunk *chunk; /* a reference; NULL: the entry is free */
    uint8_t *data;   /* the decoded rows, `bytes` bytes */
    size_t bytes;    /* >= 1 */
    size_t rows;
    uint32_t column;
    bool recent; /* used since the last visit of the hand */
} rp_cached;

typedef struct rp_cache {
    rp_allocator alloc;
    size_t max_bytes;
    size_t bytes; /* sum over all entries */
    size_t count;
    size_t hand;
    size_t capacity; /* number of entries of the table: 0 or a power of two */
    rp_cached *table;
} rp_cache;

/* Cannot fail; allocates nothing. */
void rp_cache_init(rp_cache *cache, const rp_allocator *alloc, size_t max_bytes);
void rp_cache_deinit(rp_cache *cache);

/* Drops all entries. */
void rp_cache_clear(rp_cache *cache);

/* Returns the entry of a column, or NULL if the cache has none. The entry is valid until the
 * cache is changed. */
rp_cached *rp_cache_find(rp_cache *cache, const rp_chunk *chunk, size_t column);

/* Drops an entry that rp_cache_find() returned. */
void rp_cache_drop(rp_cache *cache, rp_cached *entry);

/* Makes room for a new entry of `bytes` (>= 1) bytes: evicts other entries until the new one
 * fits within max_bytes or no other entry is left. Returns uninitialised memory for the data,
 * which the caller owns and must pass to rp_cache_put() or release. Returns NULL if there is no
 * memory. */
uint8_t *rp_cache_reserve(rp_cache *cache, size_t bytes);

/* Adds an entry. The entry must not be in the cache, and rp_cache_reserve() must have made room
 * for it. Takes ownership of `data`. Cannot fail. */
rp_cached *rp_cache_put(rp_cache *cache, const rp_chunk *chunk, size_t column, uint8_t *data,
                        size_t bytes, size_t rows);

#endif
