/* SPDX-License-Identifier: Apache-2.0 */
/* Layout:
 *
 *   region, 2 MiB, aligned to its size     | region | slab 0 ... | slab 1 ... | ... | slab 31 |
 *   slab, 64 KiB, aligned to its size      | (region) | slab | block | block | ...
 *
 * The slab of a block, and the region of a slab, follow from the address. A block has no
 * header; a free block holds the link to the next.
 *
 * Invariants, whenever the lock that guards them is free:
 *   P1  a slab is in the list of its class exactly if it has a block that P2 does not count;
 *   P2  slab.taken counts the blocks in use, in a cache or in a full stack, and is not 0;
 *   P3  a region is in the list exactly if it has a free slab, empty regions last;
 *   P4  empty regions <= the larger of 1 and regions in use;
 *   P5  each full stack of a depot has as many blocks as a stack of a cache has room for.
 *
 * Locks: the lock of a class is acquired before the lock of the regions. They are plain mutexes
 * without a rank: a thread that allocates may hold any other lock, and under these two the pool
 * calls only the system. */
#include "util/mem_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    CLASSES = 32,
    REGION_BYTES = 2 << 20,
    SLAB_BYTES = 64 << 10,
    SLABS = REGION_BYTES / SLAB_BYTES,
    HEAD_BYTES = 128,        /* head of a slab: half is for a region, used in slab 0 only */
    STACK_BYTES = 128 << 10, /* of free blocks in one of the two stacks of a cache */
    LINE_BYTES = 64,
    PREFETCH_BYTES = 1024,
    FIRST_FILL = 16,  /* blocks that a cache fetches the first time, then twice as many */
    FULL_STACKS = 12, /* full stacks that a depot keeps */
};

typedef struct block {
    struct block *next;
} block;

typedef struct region {
    struct region *prev, *next;
    uint32_t free_slabs; /* a bit for each */
} region;

typedef struct slab {
    struct slab *prev, *next;
    block *free;
    uint32_t taken;     /* P2 */
    uint32_t untouched; /* offset of the first block that was never taken */
    unsigned class;
} slab;

/* The slabs of one size, and full stacks that one thread freed and another will allocate from:
 * a full stack moves as a whole, without touching its blocks. */
typedef struct depot {
    _Alignas(64) pthread_mutex_t mu;
    slab *slabs; /* P1 */
    unsigned full_count;
    block *full[FULL_STACKS]; /* P5 */
} depot;

/* 32 bytes. */
typedef struct bin {
    block *top;    /* the stack in use */
    block *spare;  /* the other one: a full stack, or NULL */
    uint32_t left; /* blocks for which the stack in use has room left */
    uint32_t room; /* blocks that a stack can hold */
    uint32_t fill; /* blocks to fetch next time */
} bin;

typedef struct cache {
    bin bins[CLASSES];
} cache;

static_assert(sizeof(region) <= HEAD_BYTES / 2 && sizeof(slab) <= HEAD_BYTES / 2,
              "both fit into the head");
static_assert(SLABS == 32, "free_slabs has a bit for each");

/* The state of the pool, except for the caches of threads. */
static struct {
    depot depots[CLASSES];
    pthread_mutex_t mu;   /* guards the next two lines */
    region *first, *last; /* P3 */
    size_t used_regions, empty_regions;
    pthread_once_t once;
    pthread_key_t key; /* its destructor returns the cache of a thread */
    bool has_key;
} pool = {.once = PTHREAD_ONCE_INIT, .mu = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local cache *mine __attribute__((tls_model("initial-exec")));

/* 16 .. 256 by 16, .. 1024 by 64, .. 2048 by 256. */
static inline unsigned class_of(size_t size)
{
    if (size <= 256) return (unsigned)((size - 1) / 16);
    if (size <= 1024) return 16 + (unsigned)((size - 257) / 64);
    return 28 + (unsigned)((size - 1025) / 256);
}

static uint32_t bytes_of(unsigned class)
{
    if (class < 16) return 16 * (class + 1);
    if (class < 28) return 256 + 64 * (class - 15);
    return 1024 + 256 * (class - 27);
}

static region *region_of(const void *ptr)
{
    return (region *)((uintptr_t)ptr & ~(uintptr_t)(REGION_BYTES - 1));
}

/* Inserts a region at the front or at the end of the list. */
static void link_region(region *r, bool at_end)
{
    region *next = at_end ? NULL : pool.first, *prev = at_end ? pool.last : NULL;

    assert(r->free_slabs != 0 && region_of(r) == r); /* P3 */
    r->prev = prev;
    r->next = next;
    *(prev == NULL ? &pool.first : &prev->next) = r;
    *(next == NULL ? &pool.last : &next->prev) = r;
}

static void unlink_region(region *r)
{
    assert(r->prev == NULL ? pool.first == r : r->prev->next == r);
    assert(r->next == NULL ? pool.last == r : r->next->prev == r);
    *(r->prev == NULL ? &pool.first : &r->prev->next) = r->next;
    *(r->next == NULL ? &pool.last : &r->next->prev) = r->prev;
}

/* Maps a region, or returns NULL. Maps twice the size and unmaps all but an aligned part. The
 * first region of a process uses small pages, as it may never be full. */
static region *map_region(bool huge)
{
    char *raw = mmap(NULL, 2 * (size_t)REGION_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (raw == MAP_FAILED) return NULL;
    before = (size_t)(-(uintptr_t)raw & (REGION_BYTES - 1));
    if (before > 0) (void)munmap(raw, before);
    (void)munmap(raw + before + REGION_BYTES, REGION_BYTES - before);
#ifdef MADV_HUGEPAGE
    if (huge) (void)madvise(raw + before, REGION_BYTES, MADV_HUGEPAGE);
#else
    (void)huge;
#endif
    return (region *)(void *)(raw + before);
}

static slab *take_slab(unsigned class)
{
    region *r;
    unsigned i;
    slab *s;

    (void)pthread_mutex_lock(&pool.mu);
    r = pool.first;
    if (r == NULL) {
        r = map_region(pool.used_regions > 0);
        if (r == NULL) {
            (void)pthread_mutex_unlock(&pool.mu);
            return NULL;
        }
        r->free_slabs = UINT32_MAX;
        link_region(r, true);
        pool.empty_regions++;
    }
    if (r->free_slabs == UINT32_MAX) {
        assert(pool.empty_regions > 0);
        pool.empty_regions--;
        pool.used_regions++;
    }
    assert(r->free_slabs != 0); /* P3 */
    i = (unsigned)__builtin_ctz(r->free_slabs);
    r->free_slabs &= r->free_slabs - 1;
    if (r->free_slabs == 0) unlink_region(r);
    (void)pthread_mutex_unlock(&pool.mu);
    s = (slab *)(void *)((char *)r + (size_t)i * SLAB_BYTES + HEAD_BYTES / 2);
    *s = (slab){.untouched = HEAD_BYTES, .class = class};
    return s;
}

/* Removes empty regions from the list until `most` are left, and returns them as a chain. */
static region *take_unneeded(size_t most)
{
    region *unneeded = NULL;

    while (pool.empty_regions > most) {
        region *r = pool.last;

        assert(r != NULL && r->free_slabs == UINT32_MAX); /* P3: empty regions are last */
        unlink_region(r);
        pool.empty_regions--;
        r->next = unneeded;
        unneeded = r;
    }
    return unneeded;
}

static void unmap(region *unneeded)
{
    while (unneeded != NULL) {
        region *r = unneeded;

        unneeded = r->next;
        (void)munmap(r, REGION_BYTES);
    }
}

static void free_slab(slab *s)
{
    region *r = region_of(s), *unneeded = NULL;
    unsigned i = (unsigned)(((uintptr_t)s - (uintptr_t)r) / SLAB_BYTES);

    assert(s->taken == 0);
    (void)pthread_mutex_lock(&pool.mu);
    assert((r->free_slabs >> i & 1) == 0);
    r->free_slabs |= (uint32_t)1 << i;
    if (r->free_slabs == (uint32_t)1 << i) link_region(r, false);
    if (r->free_slabs == UINT32_MAX) {
        assert(pool.used_regions > 0);
        unlink_region(r);
        link_region(r, true);
        pool.used_regions--;
        pool.empty_regions++;
        unneeded = take_unneeded(pool.used_regions > 1 ? pool.used_regions : 1); /* P4 */
    }
    (void)pthread_mutex_unlock(&pool.mu);
    unmap(unneeded);
}

/* Returns the pages of the free slabs of a region to the system, except for the first slab,
 * which holds the header of the region. */
static void trim_region(region *r)
{
    for (unsigned from = 1, end; from < SLABS; from = end + 1) {
        for (end = from; end < SLABS && (r->free_slabs >> end & 1) != 0;) end++;
        if (end > from)
            (void)madvise((char *)r + (size_t)from * SLAB_BYTES,
                          (size_t)(end - from) * SLAB_BYTES, MADV_DONTNEED);
    }
}

void rp_pool_get_info(rp_pool_info *out)
{
    (void)pthread_mutex_lock(&pool.mu);
    out->used_bytes = pool.used_regions * REGION_BYTES;
    out->held_bytes = out->used_bytes + pool.empty_regions * REGION_BYTES;
    (void)pthread_mutex_unlock(&pool.mu);
}

static slab *slab_of(const void *ptr)
{
    uintptr_t start = (uintptr_t)ptr & ~(uintptr_t)(SLAB_BYTES - 1);
    return (slab *)(start + HEAD_BYTES / 2);
}

static bool is_used_up(const slab *s)
{
    return s->free == NULL && s->untouched + bytes_of(s->class) > SLAB_BYTES;
}

static void link_slab(depot *d, slab *s)
{
    assert(!is_used_up(s)); /* P1 */
    s->prev = NULL;
    s->next = d->slabs;
    if (s->next != NULL) s->next->prev = s;
    d->slabs = s;
}

static void unlink_slab(depot *d, slab *s)
{
    assert(s->prev == NULL ? d->slabs == s : s->prev->next == s);
    assert(s->next == NULL || s->next->prev == s);
    *(s->prev == NULL ? &d->slabs : &s->prev->next) = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
}

static block *take_block(slab *s)
{
    block *b = s->free;

    assert(!is_used_up(s));
    s->taken++;
    if (b != NULL) {
        s->free = b->next;
        return b;
    }
    b = (block *)(void *)((char *)s - HEAD_BYTES / 2 + s->untouched);
    s->untouched += bytes_of(s->class);
    return b;
}

/* A chain of up to `want` blocks, new ones in the order of their addresses. Fewer, or NULL, if
 * there is no memory. */
static block *fetch(unsigned class, uint32_t want, uint32_t *got)
{
    depot *d = &pool.depots[class];
    block *first = NULL, **end = &first;
    uint32_t n = 0;

    (void)pthread_mutex_lock(&d->mu);
    for (; n < want; n++) {
        slab *s = d->slabs;

        if (s == NULL) {
            s = take_slab(class);
            if (s == NULL) break;
            link_slab(d, s);
        }
        *end = take_block(s);
        end = &(*end)->next;
        if (is_used_up(s)) unlink_slab(d, s);
    }
    *end = NULL;
    (void)pthread_mutex_unlock(&d->mu);
    *got = n;
    return first;
}

/* Returns a chain of blocks to their slabs. */
static void return_blocks(unsigned class, block *b)
{
    depot *d = &pool.depots[class];

    if (b == NULL) return;
    (void)pthread_mutex_lock(&d->mu);
    for (block *next; b != NULL; b = next) {
        slab *s = slab_of(b);
        bool was_used_up = is_used_up(s);

        next = b->next;
        assert(s->class == class && s->taken > 0); /* else it was freed with another size */
        b->next = s->free;
        s->free = b;
        if (was_used_up) link_slab(d, s);
        if (--s->taken > 0) continue;
        unlink_slab(d, s);
        free_slab(s);
    }
    (void)pthread_mutex_unlock(&d->mu);
}

/* Takes a full stack from the depot, or returns NULL. */
static block *take_full(unsigned class)
{
    depot *d = &pool.depots[class];
    block *b = NULL;

    (void)pthread_mutex_lock(&d->mu);
    if (d->full_count > 0) b = d->full[--d->full_count];
    (void)pthread_mutex_unlock(&d->mu);
    return b;
}

/* Returns a full stack to the depot. */
static void return_stack(unsigned class, block *b)
{
    depot *d = &pool.depots[class];

    if (b == NULL) return;
    (void)pthread_mutex_lock(&d->mu);
    if (d->full_count < FULL_STACKS) {
        d->full[d->full_count++] = b;
        b = NULL;
    }
    (void)pthread_mutex_unlock(&d->mu);
    return_blocks(class, b);
}

void rp_pool_trim(void)
{
    region *unneeded;

    for (unsigned i = 0; i < CLASSES; i++)
        for (block *b; (b = take_full(i)) != NULL;) return_blocks(i, b);
    (void)pthread_mutex_lock(&pool.mu);
    unneeded = take_unneeded(0);
    for (region *r = pool.first; r != NULL; r = r->next) trim_region(r);
    (void)pthread_mutex_unlock(&pool.mu);
    unmap(unneeded);
}

static void return_cache(void *ptr)
{
    cache *k = ptr;

    mine = NULL; /* a later destructor may make a new cache; then this runs again */
    for (unsigned i = 0; i < CLASSES; i++) {
        return_blocks(i, k->bins[i].top);
        return_blocks(i, k->bins[i].spare);
        /* This may have been the last thread to use blocks of this size. */
        for (block *b; (b = take_full(i)) != NULL;) return_blocks(i, b);
    }
    free(k);
}

/* Holds all locks during a fork, so that no lock is held by a thread that the child lacks. */
static void lock_all(void)
{
    for (unsigned i = 0; i < CLASSES; i++) (void)pthread_mutex_lock(&pool.depots[i].mu);
    (void)pthread_mutex_lock(&pool.mu);
}

static void unlock_all(void)
{
    (void)pthread_mutex_unlock(&pool.mu);
    for (unsigned i = 0; i < CLASSES; i++) (void)pthread_mutex_unlock(&pool.depots[i].mu);
}

static void start(void)
{
    for (unsigned i = 0; i < CLASSES; i++) (void)pthread_mutex_init(&pool.depots[i].mu, NULL);
    pool.has_key = pthread_key_create(&pool.key, return_cache) == 0;
    (void)pthread_atfork(lock_all, unlock_all, unlock_all);
}

/* Makes the cache of this thread. NULL if there is no memory: the thread works without one. */
static cache *make_cache(void)
{
    cache *k;

    (void)pthread_once(&pool.once, start);
    k = pool.has_key ? calloc(1, sizeof *k) : NULL;
    if (k == NULL) return NULL;
    if (pthread_setspecific(pool.key, k) != 0) {
        free(k);
        return NULL;
    }
    for (unsigned i = 0; i < CLASSES; i++)
        k->bins[i] = (bin){.left = STACK_BYTES / bytes_of(i),
                           .room = STACK_BYTES / bytes_of(i),
                           .fill = FIRST_FILL};
    mine = k;
    return k;
}

/* The slow paths. Not inlined, so that the fast paths need no stack frame. */
__attribute__((noinline)) static void *alloc_slow(unsigned class)
{
    cache *k = mine != NULL ? mine : make_cache();
    uint32_t got;
    bin *s;
    block *b;

    if (k == NULL) return fetch(class, 1, &got);
    s = &k->bins[class];
    s->top = s->spare != NULL ? s->spare : take_full(class);
    s->left = 0;
    s->spare = NULL;
    if (s->top == NULL) {
        s->top = fetch(class, s->fill, &got);
        s->left = s->room - got;
        s->fill = 2 * s->fill < s->room ? 2 * s->fill : s->room;
    }
    b = s->top;
    if (b == NULL) return NULL;
    s->top = b->next;
    s->left++;
    return b;
}

__attribute__((noinline)) static void free_slow(block *b, unsigned class)
{
    cache *k = mine != NULL ? mine : make_cache();
    block *before;
    bin *s;

    b->next = NULL;
    if (k == NULL) {
        return_blocks(class, b);
        return;
    }
    s = &k->bins[class];
    if (s->left > 0) { /* the cache is new */
        s->top = b;
        s->left--;
        return;
    }
    assert(s->left == 0);
    before = s->spare; /* the current stack is full and becomes the spare one */
    s->spare = s->top;
    s->top = b;
    s->left = s->room - 1;
    return_stack(class, before);
}

/* Prefetches the next block, which will probably be allocated soon and with the same size: the
 * cache misses of its first writes would cost more than the allocation. */
static inline void fetch_ahead(const block *b, size_t size)
{
    const char *at = (const char *)b;
    const char *end = at + (size < PREFETCH_BYTES ? size : PREFETCH_BYTES);

    for (; at < end; at += LINE_BYTES) __builtin_prefetch(at, 1);
}

void *rp_pool_alloc(size_t size)
{
    unsigned class = class_of(size);
    cache *k = mine;
    block *b;

    assert(size >= 1 && size <= RP_POOL_MAX_BYTES);
    if (k == NULL || k->bins[class].top == NULL) return alloc_slow(class);
    b = k->bins[class].top;
    k->bins[class].top = b->next;
    k->bins[class].left++;
    if (b->next != NULL) fetch_ahead(b->next, size);
    return b;
}

void rp_pool_free(void *ptr, size_t size)
{
    unsigned class = class_of(size);
    cache *k = mine;
    block *b = ptr;

    assert(size >= 1 && size <= RP_POOL_MAX_BYTES);
    assert(slab_of(ptr)->class == class); /* else `size` is wrong, or it is no block */
    if (k == NULL || k->bins[class].left == 0) {
        free_slow(b, class);
        return;
    }
    b->next = k->bins[class].top;
    k->bins[class].top = b;
    k->bins[class].left--;
}

static bool check_depot(depot *d, unsigned class)
{
    bool ok = true;

    (void)pthread_mutex_lock(&d->mu);
    for (unsigned i = 0; i < d->full_count; i++) { /* P5 */
        uint32_t blocks = 0;

        for (block *b = d->full[i]; b != NULL; b = b->next) blocks++;
        ok &= blocks == STACK_BYTES / bytes_of(class);
    }
    for (slab *s = d->slabs; s != NULL; s = s->next) {
        uint32_t free_blocks = 0, bytes = bytes_of(class);

        for (block *b = s->free; b != NULL; b = b->next, free_blocks++) ok &= slab_of(b) == s;
        ok &= s->class == class && s->taken > 0 && !is_used_up(s);           /* P1, P2 */
        ok &= s->taken + free_blocks == (s->untouched - HEAD_BYTES) / bytes; /* P2 */
        ok &= s->next == NULL || s->next->prev == s;
    }
    (void)pthread_mutex_unlock(&d->mu);
    return ok;
}

bool rp_pool_check(void)
{
    size_t empty = 0;
    bool ok = true;

    (void)pthread_once(&pool.once, start);
    for (unsigned i = 0; i < CLASSES; i++) ok &= check_depot(&pool.depots[i], i);
    (void)pthread_mutex_lock(&pool.mu);
    for (region *r = pool.first; r != NULL; r = r->next) { /* P3 */
        bool is_empty = r->free_slabs == UINT32_MAX;

        ok &= r->free_slabs != 0 && (is_empty || empty == 0);
        ok &= r->next == NULL ? r == pool.last : r->next->prev == r;
        empty += is_empty;
    }
    ok &= empty == pool.empty_regions; /* P4 */
    ok &= empty <= (pool.used_regions > 1 ? pool.used_regions : 1);
    (void)pthread_mutex_unlock(&pool.mu);
    return ok;
}
