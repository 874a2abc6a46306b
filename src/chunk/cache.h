/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of decoded columns by chunk and column, bounded in bytes.
 *
 * An open-addressing hash table with linear probing, at most half full. Entries are evicted by
 * the CLOCK algorithm: a hand walks the table and skips, once, entries that were used since its
 * last visit. An entry owns a reference to its chunk, so the address of the chunk is not
 * reused.
 *
 *   table   | entry | free | entry | entry | free | ...      2^n
 *                              ^ hand
 *
 * Invariants:
 *   H1  2 * count <= capacity, and `count` is the number of entries with a chunk;
 *   H2  `bytes` is the sum of the bytes of all entries;
 *   H3  no free entry lies between the place where the search for an entry begins, which its
 *       hash gives, and the entry.
 *
 * One thread at a time. */
#ifndef RP_CHUNK_CACHE_H
#define RP_CHUNK_CACHE_H

#include "chunk/chunk.h"

typedef struct rp_cached {
    rp_chunk *chunk; /* one reference; NULL: free */
    uint8_t *data;   /* `bytes` bytes, the first rows of the column */
    size_t bytes;    /* >= 1 */
    size_t rows;
    uint32_t column;
    bool recent; /* used since the last visit of the hand */
} rp_cached;

typedef struct rp_cache {
    rp_allocator alloc;
    size_t max_bytes;
    size_t bytes; /* of all entries */
    size_t count;
    size_t hand;
    size_t capacity; /* of the table: 0 or a power of two */
    rp_cached *table;
} rp_cache;

/* Cannot fail; allocates nothing. */
void rp_cache_init(rp_cache *cache, const rp_allocator *alloc, size_t max_bytes);
void rp_cache_deinit(rp_cache *cache);

/* Drops all entries. */
void rp_cache_clear(rp_cache *cache);

/* Returns the entry of a column, or NULL. Valid until the cache is changed. */
rp_cached *rp_cache_find(rp_cache *cache, const rp_chunk *chunk, size_t column);

/* Drops an entry that rp_cache_find() returned. */
void rp_cache_drop(rp_cache *cache, rp_cached *entry);

/* Makes room for one more entry of `bytes` (>= 1) bytes: evicts others until the new one fits
 * within max_bytes or no other is left. Returns memory for its data: owned, uninitialised, to
 * be passed to rp_cache_put() or released. NULL if there is no memory. */
uint8_t *rp_cache_reserve(rp_cache *cache, size_t bytes);

/* Adds an entry that is not in the cache and for which room was reserved. Takes ownership of
 * `data`. Cannot fail. */
rp_cached *rp_cache_put(rp_cache *cache, const rp_chunk *chunk, size_t column, uint8_t *data,
                        size_t bytes, size_t rows);

#endif
