/* SPDX-License-Identifier: Apache-2.0 */
/* The default allocator takes small blocks from a pool (mem_pool.h), those of 32 KiB to 4 MiB
 * from another one (large_pool.h), and all others from the C library. In a build with a
 * sanitizer it takes all blocks from the sanitizer's heap, which detects use after free and
 * knows the exact size of each block.
 *
 * An aligned block stores the pointer to its allocation in the word before it:
 *
 *   raw                       ptr (aligned)
 *   |..............| raw ptr  | size bytes | up to the end of the last huge page |
 */
#include "util/mem.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/large_pool.h"
#include "util/mem_pool.h"

#if RP_SANITIZED
static void *default_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    assert(ptr == NULL || malloc_usable_size(ptr) == old_size);
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}
#else
/* Where a block of a size comes from. */
typedef enum source { SMALL_POOL, LARGE_POOL, LIBRARY } source;

static source source_of(size_t size)
{
    if (size <= RP_POOL_MAX_BYTES) return SMALL_POOL;
    return rp_large_is_pooled(size) ? LARGE_POOL : LIBRARY;
}

static void *get(size_t size)
{
    switch (source_of(size)) {
    case SMALL_POOL: return rp_pool_alloc(size);
    case LARGE_POOL: return rp_large_alloc(size);
    case LIBRARY: break;
    }
    return malloc(size);
}

static void give_back(void *ptr, size_t size)
{
    switch (source_of(size)) {
    case SMALL_POOL: rp_pool_free(ptr, size); return;
    case LARGE_POOL: rp_large_free(ptr, size); return;
    case LIBRARY: break;
    }
    free(ptr);
}

/* Resizes a block, which may move between the pools and the heap. Not inlined, so that the
 * common paths need no stack frame. */
__attribute__((noinline)) static void *move(void *ptr, size_t old_size, size_t new_size)
{
    void *moved;

    if (source_of(old_size) == LIBRARY && source_of(new_size) == LIBRARY)
        return realloc(ptr, new_size);
    moved = get(new_size);
    if (moved == NULL) return NULL;
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    give_back(ptr, old_size);
    return moved;
}

static void *default_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (ptr == NULL) return new_size > 0 ? get(new_size) : NULL;
    if (new_size > 0) return move(ptr, old_size, new_size);
    give_back(ptr, old_size);
    return NULL;
}
#endif

const rp_allocator *rp_allocator_default(void)
{
    static const rp_allocator allocator = {default_resize, NULL};
    return &allocator;
}

/* True for blocks that default_resize() takes from the pool. */
static inline bool is_pooled(const rp_allocator *a, size_t size)
{
    return !RP_SANITIZED && a->resize == default_resize && size - 1 < RP_POOL_MAX_BYTES;
}

void *rp_alloc(const rp_allocator *a, size_t size)
{
    if (is_pooled(a, size)) return rp_pool_alloc(size);
    return a->resize(a->ctx, NULL, 0, size);
}

void *rp_alloc_zero(const rp_allocator *a, size_t size)
{
    void *ptr = rp_alloc(a, size);
    if (ptr != NULL) memset(ptr, 0, size);
    return ptr;
}

void *rp_alloc_array(const rp_allocator *a, size_t count, size_t element_size)
{
    size_t size;
    if (!rp_size_mul(count, element_size, &size) || size == 0) return NULL;
    return rp_alloc_zero(a, size);
}

void rp_release(const rp_allocator *a, void *ptr, size_t size)
{
    if (ptr == NULL) return;
    if (is_pooled(a, size))
        rp_pool_free(ptr, size);
    else
        a->resize(a->ctx, ptr, size, 0);
}

bool rp_grow_array(const rp_allocator *a, void *array, size_t old_count, size_t new_count,
                   size_t element_size)
{
    void *old, *resized;
    size_t size;

    memcpy(&old, array, sizeof old); /* `array` is a T** of any T */
    if (!rp_size_mul(new_count, element_size, &size) || size == 0) return false;
    assert((old == NULL) == (old_count == 0));
    resized = a->resize(a->ctx, old, old_count * element_size, size);
    if (resized == NULL) return false;
    memcpy(array, &resized, sizeof resized);
    return true;
}

bool rp_resize_array(const rp_allocator *a, void *array, size_t old_count, size_t new_count,
                     size_t element_size)
{
    char *resized;

    if (!rp_grow_array(a, array, old_count, new_count, element_size)) return false;
    memcpy(&resized, array, sizeof resized);
    if (new_count > old_count)
        memset(resized + old_count * element_size, 0, (new_count - old_count) * element_size);
    return true;
}

enum { HUGE_PAGE = 2 << 20 };

static size_t alignment_for(size_t size)
{
    return size >= HUGE_PAGE ? HUGE_PAGE : RP_CACHE_LINE;
}

/* Zeroes a new block. A large block of the default allocator is private memory of the process:
 * its pages are returned to the system, which provides zeroed ones when they are written to.
 * This takes no time in proportion to the size. */
static void zero_block(const rp_allocator *a, char *ptr, size_t size)
{
    size_t pages = size / HUGE_PAGE * HUGE_PAGE;

    if (RP_SANITIZED || a->resize != default_resize || pages == 0 ||
        madvise(ptr, pages, MADV_DONTNEED) != 0)
        pages = 0; /* madvise() fails if memory is locked */
    memset(ptr + pages, 0, size - pages);
}

void *rp_alloc_aligned(const rp_allocator *a, size_t size)
{
    size_t align = alignment_for(size), padded;
    char *raw, *ptr;

    if (!rp_size_add(size, 2 * align + sizeof(void *), &padded)) return NULL;
    raw = rp_alloc(a, padded);
    if (raw == NULL) return NULL;
    ptr = raw + sizeof(void *);
    ptr += (align - (uintptr_t)ptr % align) % align;
    memcpy(ptr - sizeof raw, &raw, sizeof raw);
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE) (void)madvise(ptr, size, MADV_HUGEPAGE);
#endif
    assert((uintptr_t)ptr % align == 0 && ptr + size <= raw + padded);
    zero_block(a, ptr, size);
    return ptr;
}

void rp_release_aligned(const rp_allocator *a, void *ptr, size_t size)
{
    char *raw;

    if (ptr == NULL) return;
    assert((uintptr_t)ptr % alignment_for(size) == 0); /* else `size` is wrong */
    memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
    rp_release(a, raw, size + 2 * alignment_for(size) + sizeof(void *));
}

void *rp_map_pages(size_t size)
{
    void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (ptr == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(ptr, size, MADV_NOHUGEPAGE);
#endif
    return ptr;
}

void rp_unmap_pages(void *ptr, size_t size)
{
    /* munmap() fails if it would split a mapping and the process has reached its limit. */
    if (munmap(ptr, size) != 0) (void)madvise(ptr, size, MADV_DONTNEED);
}

uint64_t rp_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

void rp_trim_memory(void)
{
    rp_pool_trim();
    rp_large_trim();
#if defined(__GLIBC__) && !RP_SANITIZED
    (void)malloc_trim(0);
#endif
}

void rp_touch(void *ptr, size_t size)
{
#ifdef MADV_POPULATE_WRITE
    enum { PAGE = 4096 };
    uintptr_t from = ((uintptr_t)ptr + PAGE - 1) / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)ptr + size) / PAGE * PAGE;

    if (from < to) (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
#else
    (void)ptr, (void)size;
#endif
}
