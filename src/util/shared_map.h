/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of a shared_arena.h: its file, mapped by a process that reads.
 *
 * Nothing is believed: the file must be sealed against shrinking, and a place is handed out
 * only if the file reaches that far by now. What stands there is another process's to write: it
 * may change while it is read, if that process does not keep its word. Whoever reads must
 * therefore check what it has read, not what it could read again. */
#ifndef RP_UTIL_SHARED_MAP_H
#define RP_UTIL_SHARED_MAP_H

#include <stdatomic.h>

#include "reprise/status.h"

/* A plain value. */
typedef struct rp_shared_map {
    int fd;
    const uint8_t *base;
    size_t reserve_bytes;      /* that are mapped */
    atomic_size_t known_bytes; /* that the file is known to have */
} rp_shared_map;

/* Maps `reserve_bytes` of the file; takes the descriptor on RP_OK. RP_CORRUPT (not such a file,
 * or not sealed), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_map_init(rp_shared_map *map, int fd, uint64_t reserve_bytes,
                                          rp_error *err);
void rp_shared_map_deinit(rp_shared_map *map);

/* The bytes at `offset`, or NULL if they are not all in the file. Any thread. */
const uint8_t *rp_shared_map_find(rp_shared_map *map, uint64_t offset, uint64_t size);

#endif
