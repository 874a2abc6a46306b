/* SPDX-License-Identifier: Apache-2.0 */
#include "util/shared_map.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/error.h"

/* A server cannot make this process reserve more addresses than this. */
static const uint64_t most_bytes = (uint64_t)1 << 40;

rp_status rp_shared_map_init(rp_shared_map *map, uint64_t reserve_bytes, rp_error *err)
{
    void *base;

    if (reserve_bytes == 0 || reserve_bytes > most_bytes)
        return rp_fail(err, RP_CORRUPT, "shared memory of %llu bytes",
                       (unsigned long long)reserve_bytes);
    base = mmap(NULL, (size_t)reserve_bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return rp_fail_memory(err, (size_t)reserve_bytes);
    map->base = base;
    map->reserve_bytes = (size_t)reserve_bytes;
    map->part_count = 0;
    atomic_init(&map->mapped_bytes, 0);
    return RP_OK;
}

void rp_shared_map_deinit(rp_shared_map *map)
{
    (void)munmap(map->base, map->reserve_bytes);
}

rp_status rp_shared_map_add(rp_shared_map *map, int fd, uint64_t bytes, rp_error *err)
{
    size_t mapped = atomic_load_explicit(&map->mapped_bytes, memory_order_relaxed);
    int seals = fcntl(fd, F_GET_SEALS);
    off_t end;

    assert(mapped <= map->reserve_bytes && map->part_count <= RP_SHARED_MAX_PARTS); /* S1 */
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return rp_fail(err, RP_CORRUPT, "shared memory that is not sealed");
    if (map->part_count == RP_SHARED_MAX_PARTS)
        return rp_fail(err, RP_CORRUPT, "more than %d parts of shared memory",
                       RP_SHARED_MAX_PARTS);
    if (bytes == 0 || bytes > map->reserve_bytes - mapped ||
        bytes % (uint64_t)sysconf(_SC_PAGESIZE) != 0 || (end = lseek(fd, 0, SEEK_END)) < 0 ||
        (uint64_t)end < bytes)
        return rp_fail(err, RP_CORRUPT, "a part of shared memory of %llu bytes",
                       (unsigned long long)bytes);
    /* Not MAP_NORESERVE: a missing huge page would raise SIGBUS. */
    if (mmap(map->base + mapped, (size_t)bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) ==
        MAP_FAILED)
        return rp_fail_memory(err, (size_t)bytes);
    map->part_count++;
    /* Release: a thread that sees the new length sees the mapping. */
    atomic_store_explicit(&map->mapped_bytes, mapped + (size_t)bytes, memory_order_release);
    return RP_OK;
}

const uint8_t *rp_shared_map_find(rp_shared_map *map, uint64_t offset, uint64_t size)
{
    size_t mapped = atomic_load_explicit(&map->mapped_bytes, memory_order_acquire);

    if (offset > mapped || size > mapped - offset) return NULL;
    return map->base + offset;
}
