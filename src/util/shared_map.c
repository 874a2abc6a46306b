/* SPDX-License-Identifier: Apache-2.0 */
#include "util/shared_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/error.h"

/* No more than a server can ask us to map. */
static const uint64_t most_bytes = (uint64_t)1 << 40;

rp_status rp_shared_map_init(rp_shared_map *map, int fd, uint64_t reserve_bytes, rp_error *err)
{
    int seals = fcntl(fd, F_GET_SEALS);
    void *base;

    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return rp_fail(err, RP_CORRUPT, "shared memory that is not sealed");
    if (reserve_bytes == 0 || reserve_bytes > most_bytes)
        return rp_fail(err, RP_CORRUPT, "shared memory of %llu bytes",
                       (unsigned long long)reserve_bytes);
    base = mmap(NULL, (size_t)reserve_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) return rp_fail_memory(err, (size_t)reserve_bytes);
    map->fd = fd;
    map->base = base;
    map->reserve_bytes = (size_t)reserve_bytes;
    atomic_init(&map->known_bytes, 0);
    return RP_OK;
}

void rp_shared_map_deinit(rp_shared_map *map)
{
    (void)munmap((void *)(uintptr_t)map->base, map->reserve_bytes);
    (void)close(map->fd);
}

const uint8_t *rp_shared_map_find(rp_shared_map *map, uint64_t offset, uint64_t size)
{
    /* Relaxed: the file only grows, and an old number only makes us look again. */
    size_t known = atomic_load_explicit(&map->known_bytes, memory_order_relaxed);

    if (offset > map->reserve_bytes || size > map->reserve_bytes - offset) return NULL;
    if (offset + size > known) {
        off_t end = lseek(map->fd, 0, SEEK_END);
        if (end < 0 || (uint64_t)end < offset + size) return NULL;
        atomic_store_explicit(&map->known_bytes, (size_t)end, memory_order_relaxed);
    }
    return map->base + offset;
}
