/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of a shared_arena.h: its parts, mapped by a process that reads.
 *
 * Nothing is believed: a part must be a file that is sealed against shrinking and as long as
 * was said, and an offset is handed out only if the parts reach that far by now. What stands
 * there is another process's to write: it may change while it is read, if that process does not
 * keep its word. A reader must therefore check what it has read, not what it could read again.
 */
#ifndef RP_UTIL_SHARED_MAP_H
#define RP_UTIL_SHARED_MAP_H

#include <stdatomic.h>

#include "reprise/status.h"

enum { RP_SHARED_MAX_PARTS = 256 };

/* A plain value. */
typedef struct rp_shared_map {
    uint8_t *base;
    size_t reserve_bytes; /* of addresses */
    size_t part_count;    /* at most RP_SHARED_MAX_PARTS: each is a mapping of the system's */
    atomic_size_t mapped_bytes; /* of parts */
} rp_shared_map;

/* Reserves addresses. RP_CORRUPT (nonsense), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_map_init(rp_shared_map *map, uint64_t reserve_bytes,
                                          rp_error *err);
void rp_shared_map_deinit(rp_shared_map *map);

/* Maps the next part behind the others. The descriptor stays the caller's, who may close it at
 * once. One thread at a time. RP_CORRUPT (not such a file, not sealed, too short, more than
 * the reserve, or too many), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_map_add(rp_shared_map *map, int fd, uint64_t bytes,
                                         rp_error *err);

/* The bytes at `offset`, or NULL if they are not all in parts. Any thread. */
const uint8_t *rp_shared_map_find(rp_shared_map *map, uint64_t offset, uint64_t size);

#endif
