/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the parts of a shared arena (shared_arena.h) read-only, in a process that reads the
 * arena of another process.
 *
 * The owner of the arena is not trusted. So rp_shared_map_add() requires that a part is sealed
 * against shrinking and has at least the announced length, and rp_shared_map_find() returns
 * only mapped bytes. The owner can still change the bytes while a reader reads them. A reader
 * must therefore copy each value before it checks the value, and must not read the value from
 * the arena again after the check.
 *
 * Invariant S1: mapped_bytes <= reserve_bytes and part_count <= RP_SHARED_MAX_PARTS. */
#ifndef RP_UTIL_SHARED_MAP_H
#define RP_UTIL_SHARED_MAP_H

#include <stdatomic.h>

#include "reprise/status.h"

enum { RP_SHARED_MAX_PARTS = 256 };

/* The mapped parts of an arena. */
typedef struct rp_shared_map {
    uint8_t *base;
    size_t reserve_bytes;       /* size of the reserved range of addresses */
    size_t part_count;          /* bounded, since a process has a limited number of mappings */
    atomic_size_t mapped_bytes; /* sum of the lengths of the parts */
} rp_shared_map;

/* Reserves addresses. Errors: RP_CORRUPT (an impossible size), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_map_init(rp_shared_map *map, uint64_t reserve_bytes,
                                          rp_error *err);
void rp_shared_map_deinit(rp_shared_map *map);

/* Maps the next part, directly after the parts mapped so far. The caller keeps the descriptor
 * and may close it at once. Only one thread at a time may call this. Errors: RP_CORRUPT (not a
 * memfd, not sealed, too short, beyond the reserved range, or too many parts),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_map_add(rp_shared_map *map, int fd, uint64_t bytes,
                                         rp_error *err);

/* Returns the address of the `size` bytes at `offset`, or NULL if not all of them are mapped.
 * Any thread may call this. */
const uint8_t *rp_shared_map_find(rp_shared_map *map, uint64_t offset, uint64_t size);

#endif
