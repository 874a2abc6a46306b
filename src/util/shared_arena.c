/* SPDX-License-Identifier: Apache-2.0 */
/* Free runs are kept in segregated lists: one list for each length below 16 pages, then eight
 * lists for each power of two. A block takes one of the first runs in the list of its length if
 * that is long enough; otherwise the first run of the first list in which every run is long
 * enough. The rest of the run stays free, and a freed run is merged with its free neighbours.
 */
#include "util/shared_arena.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/refcount.h"
#include "util/verify.h"

enum {
    EXACT = 16, /* lengths below this have a list of their own */
    PARTS = 8,  /* lists per power of two */
    LISTS = EXACT + 28 * PARTS,
    WORDS = (LISTS + 63) / 64,
    STEP_BYTES = 16 << 20,
    LOOKS = 8, /* runs of the own list to try, which may be too short */
    /* A part is at least a step, and an eighth of the parts before it: with steps of 16 MiB,
     * 64 GiB take 56 parts. Each part costs a descriptor. */
    GROWTH = 8,
    MAX_PARTS = 128,
};

#define NO_PAGE UINT32_MAX

static const size_t most_bytes = (size_t)64 << 30;

/* A page. All fields are valid for the first page of a run; for the last one, `pages` and
 * `is_free`. */
typedef struct page {
    uint32_t pages;      /* of the run */
    uint32_t next, prev; /* in its list, if it is free */
    bool is_free;
    bool is_first;
} page;

struct rp_shared_arena {
    rp_refcount refs; /* the owner's, and one for each block */
    rp_allocator alloc;
    uint8_t *base; /* of the reserve: parts, then addresses that nothing is mapped to */
    size_t reserve_bytes, page_bytes, page_shift, step_pages, max_pages;
    page *pages; /* one for each page of the reserve; mapped lazily */
    rp_mutex lock;
    bool is_retired RP_GUARDED_BY(lock);
    uint32_t file_pages RP_GUARDED_BY(lock);
    uint32_t used_pages RP_GUARDED_BY(lock);
    uint32_t lists[LISTS] RP_GUARDED_BY(lock);
    uint64_t filled[WORDS] RP_GUARDED_BY(lock);
    /* Written under the lock. A part never changes once part_count includes it. part_count is
     * stored with release, so a reader that loads it with acquire needs no lock. */
    rp_shared_part parts[MAX_PARTS];
    atomic_size_t part_count;
};

/* The list of free runs of that length. */
static uint32_t list_of(uint32_t pages)
{
    uint32_t log2;

    if (pages < EXACT) return pages;
    log2 = 31 - (uint32_t)__builtin_clz(pages);
    return EXACT + (log2 - 4) * PARTS + ((pages >> (log2 - 3)) & (PARTS - 1));
}

/* The first list of which every run has at least that length. */
static uint32_t first_list(uint32_t pages)
{
    uint32_t log2;

    if (pages < EXACT) return pages;
    log2 = 31 - (uint32_t)__builtin_clz(pages);
    return list_of(pages + (1u << (log2 - 3)) - 1);
}

static void put_free_locked(rp_shared_arena *a, uint32_t at, uint32_t pages)
    RP_REQUIRES(a->lock)
{
    uint32_t list = list_of(pages), next = a->lists[list];

    assert(pages > 0 && at + pages <= a->file_pages && list < LISTS);
    a->pages[at] = (page){.pages = pages, .next = next, .prev = NO_PAGE, .is_free = true};
    a->pages[at].is_first = true;
    if (pages > 1) a->pages[at + pages - 1] = (page){.pages = pages, .is_free = true};
    if (next != NO_PAGE) a->pages[next].prev = at;
    a->lists[list] = at;
    a->filled[list / 64] |= (uint64_t)1 << list % 64;
}

static void take_free_locked(rp_shared_arena *a, uint32_t at) RP_REQUIRES(a->lock)
{
    page *run = &a->pages[at];
    uint32_t list = list_of(run->pages);

    assert(run->is_free && run->is_first); /* I4 */
    assert(run->prev == NO_PAGE ? a->lists[list] == at : a->pages[run->prev].next == at);
    if (run->next != NO_PAGE) a->pages[run->next].prev = run->prev;
    if (run->prev != NO_PAGE) {
        a->pages[run->prev].next = run->next;
    } else {
        a->lists[list] = run->next;
        if (run->next == NO_PAGE) a->filled[list / 64] &= ~((uint64_t)1 << list % 64);
    }
}

static void mark_used_locked(rp_shared_arena *a, uint32_t at, uint32_t pages)
    RP_REQUIRES(a->lock)
{
    a->pages[at] = (page){.pages = pages, .is_first = true};
    if (pages > 1) a->pages[at + pages - 1] = (page){.pages = pages};
}

/* Frees pages and merges them with free neighbours (I3). */
static void join_locked(rp_shared_arena *a, uint32_t at, uint32_t pages) RP_REQUIRES(a->lock)
{
    uint32_t end = at + pages;

    if (at > 0 && a->pages[at - 1].is_free) {
        uint32_t before = at - a->pages[at - 1].pages;
        take_free_locked(a, before);
        at = before;
    }
    if (end < a->file_pages && a->pages[end].is_free) {
        take_free_locked(a, end);
        end += a->pages[end].pages;
    }
    put_free_locked(a, at, end - at);
}

/* Makes a memfd of that length, maps it writable at `at` and seals it. Returns a read-only
 * descriptor for other processes, or -1.
 *
 * F_SEAL_GROW and F_SEAL_SHRINK fix the length. F_SEAL_FUTURE_WRITE makes our mapping the only
 * writable one. Seals bind every user. The mode keeps other users from opening the file again
 * through /proc, and from setting extended attributes. */
static int make_file(uint8_t *at, size_t bytes)
{
    const int seals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    int fd = memfd_create("reprise", MFD_CLOEXEC | MFD_ALLOW_SEALING), read_fd = -1;
    char path[64];

    if (fd < 0) return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ftruncate(fd, (off_t)bytes) == 0) read_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (read_fd >= 0 && (fchmod(fd, 0) != 0 ||
                         mmap(at, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED ||
                         fcntl(fd, F_ADD_SEALS, seals) != 0)) {
        (void)close(read_fd);
        read_fd = -1;
    }
    (void)close(fd);
    return read_fd;
}

/* Adds a part that has room for a run of `pages`. */
static bool grow_locked(rp_shared_arena *a, uint32_t pages) RP_REQUIRES(a->lock)
{
    size_t count = atomic_load_explicit(&a->part_count, memory_order_relaxed);
    size_t more = pages > a->step_pages ? pages : a->step_pages, left;
    uint32_t at = a->file_pages;
    rp_shared_part *part;

    if (count == MAX_PARTS) return false;
    if (more < at / GROWTH) more = at / GROWTH;
    /* find_free_locked() may look in the next list only, so the run must be that long. */
    more += more / PARTS + 1;
    left = a->max_pages - at;
    if (more > left) more = left;
    if (more < pages) return false;
    part = &a->parts[count];
    part->offset = (uint64_t)at << a->page_shift;
    part->bytes = (uint64_t)more << a->page_shift;
    part->fd = make_file(a->base + part->offset, (size_t)part->bytes);
    if (part->fd < 0) return false;
    atomic_store_explicit(&a->part_count, count + 1, memory_order_release);
    a->file_pages += (uint32_t)more;
    join_locked(a, at, (uint32_t)more);
    return true;
}

/* A free run of `pages` or more, or NO_PAGE. */
static uint32_t find_free_locked(const rp_shared_arena *a, uint32_t pages) RP_REQUIRES(a->lock)
{
    uint32_t list = first_list(pages), word = list / 64;
    uint64_t bits;

    /* Blocks of one length recur, so the list of that length mostly has a run that fits. */
    for (uint32_t at = a->lists[list_of(pages)], i = 0; at != NO_PAGE && i < LOOKS; i++) {
        if (a->pages[at].pages >= pages) return at;
        at = a->pages[at].next;
    }
    if (list >= LISTS) return NO_PAGE;
    bits = a->filled[word] & (~(uint64_t)0 << list % 64);
    while (bits == 0 && ++word < WORDS) bits = a->filled[word];
    return bits != 0 ? a->lists[word * 64 + (uint32_t)__builtin_ctzll(bits)] : NO_PAGE;
}

static bool is_inside(const rp_shared_arena *a, const void *data)
{
    uintptr_t at = (uintptr_t)data, base = (uintptr_t)a->base;

    return at >= base && at - base < a->reserve_bytes;
}

static uint32_t pages_of(const rp_shared_arena *a, size_t size)
{
    return (uint32_t)((size + a->page_bytes - 1) >> a->page_shift);
}

#ifndef NDEBUG
static const char *check_runs_locked(const rp_shared_arena *a) RP_REQUIRES(a->lock);
#endif

/* Allocates a run. NULL if there is no room, or the arena is retired. */
static void *take(rp_shared_arena *a, size_t size)
{
    uint32_t pages, at = NO_PAGE;

    if (size < RP_SHARED_MIN_BYTES || size > a->reserve_bytes) return NULL;
    pages = pages_of(a, size);
    rp_mutex_lock(&a->lock);
    if (!a->is_retired) {
        at = find_free_locked(a, pages);
        if (at == NO_PAGE && grow_locked(a, pages)) at = find_free_locked(a, pages);
    }
    if (at != NO_PAGE) {
        uint32_t length = a->pages[at].pages;
        take_free_locked(a, at);
        if (length > pages) put_free_locked(a, at + pages, length - pages);
        mark_used_locked(a, at, pages);
        a->used_pages += pages;
    }
    RP_VERIFY(a->file_pages + LISTS, check_runs_locked(a) == NULL);
    rp_mutex_unlock(&a->lock);
    return at != NO_PAGE ? a->base + ((size_t)at << a->page_shift) : NULL;
}

static void give_back(rp_shared_arena *a, const void *block, size_t size)
{
    uint32_t at = (uint32_t)((size_t)((const uint8_t *)block - a->base) >> a->page_shift);
    uint32_t pages = pages_of(a, size);

    rp_mutex_lock(&a->lock);
    assert(a->used_pages >= pages && a->pages[at].is_first && a->pages[at].pages == pages);
    a->used_pages -= pages;
    join_locked(a, at, pages);
    RP_VERIFY(a->file_pages + LISTS, check_runs_locked(a) == NULL);
    rp_mutex_unlock(&a->lock);
}

/* Shrinks a block in place, or grows it if the pages after it are free. */
static bool stretch(rp_shared_arena *a, const void *block, size_t old_size, size_t new_size)
{
    uint32_t at = (uint32_t)((size_t)((const uint8_t *)block - a->base) >> a->page_shift);
    uint32_t old_pages = pages_of(a, old_size), pages = pages_of(a, new_size), end, room;

    if (new_size < RP_SHARED_MIN_BYTES || new_size > a->reserve_bytes) return false;
    if (pages == old_pages) return true;
    rp_mutex_lock(&a->lock);
    end = at + old_pages;
    room = old_pages;
    if (end < a->file_pages && a->pages[end].is_free) room += a->pages[end].pages;
    if (room >= pages && !a->is_retired) {
        if (room > old_pages) take_free_locked(a, end);
        mark_used_locked(a, at, pages);
        if (room > pages) put_free_locked(a, at + pages, room - pages);
        a->used_pages += pages - old_pages;
    } else {
        room = 0;
    }
    RP_VERIFY(a->file_pages + LISTS, check_runs_locked(a) == NULL);
    rp_mutex_unlock(&a->lock);
    return room > 0;
}

static void *give_new(rp_shared_arena *a, size_t size)
{
    void *block = take(a, size);

    if (block == NULL) block = rp_alloc(&a->alloc, size);
    if (block != NULL) rp_refcount_inc(&a->refs);
    return block;
}

static void free_block(rp_shared_arena *a, void *block, size_t size)
{
    if (is_inside(a, block))
        give_back(a, block, size);
    else
        rp_release(&a->alloc, block, size);
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    rp_shared_arena *a = ctx;
    void *moved;

    if (ptr == NULL) return new_size > 0 ? give_new(a, new_size) : NULL;
    if (new_size == 0) {
        free_block(a, ptr, old_size);
        rp_shared_arena_unref(a);
        return NULL;
    }
    if (!is_inside(a, ptr)) return a->alloc.resize(a->alloc.ctx, ptr, old_size, new_size);
    if (stretch(a, ptr, old_size, new_size)) return ptr;
    moved = take(a, new_size);
    if (moved == NULL) moved = rp_alloc(&a->alloc, new_size);
    if (moved == NULL) return NULL;
    memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
    give_back(a, ptr, old_size);
    return moved;
}

rp_allocator rp_shared_arena_allocator(rp_shared_arena *arena)
{
    return (rp_allocator){resize, arena};
}

static void destroy(rp_shared_arena *a)
{
    rp_allocator alloc = a->alloc;

    if (a->pages != NULL) (void)munmap(a->pages, a->max_pages * sizeof *a->pages);
    if (a->base != NULL) (void)munmap(a->base, a->reserve_bytes);
    for (size_t i = 0; i < rp_shared_arena_parts(a); i++) (void)close(a->parts[i].fd);
    rp_mutex_deinit(&a->lock);
    rp_release(&alloc, a, sizeof *a);
}

void rp_shared_arena_unref(rp_shared_arena *arena)
{
    if (arena != NULL && rp_refcount_dec(&arena->refs)) destroy(arena);
}

static void *map(size_t bytes, int protection)
{
    void *at =
        mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at != MAP_FAILED ? at : NULL;
}

/* Reserves the addresses. Makes one file and discards it, to test whether the system supports
 * sealed memfds. */
static rp_status reserve(rp_shared_arena *a, rp_error *err)
{
    int fd;

    a->base = map(a->reserve_bytes, PROT_NONE);
    a->pages = map(a->max_pages * sizeof *a->pages, PROT_READ | PROT_WRITE);
    if (a->base == NULL || a->pages == NULL) return rp_fail_memory(err, a->reserve_bytes);
    fd = make_file(a->base, a->page_bytes);
    if (fd < 0) return rp_fail(err, RP_UNIMPLEMENTED, "no memfd can be made and sealed");
    (void)close(fd);
    return RP_OK;
}

static size_t default_reserve(void)
{
    size_t half = (size_t)(rp_machine_memory() / 2);

    if (half == 0) return (size_t)1 << 30;
    return half < most_bytes ? half : most_bytes;
}

rp_status rp_shared_arena_new(const rp_allocator *alloc, size_t reserve_bytes,
                              size_t step_bytes, rp_shared_arena **out, rp_error *err)
{
    rp_shared_arena *a = rp_alloc_zero(alloc, sizeof *a);
    rp_status st;

    if (a == NULL) return rp_fail_memory(err, sizeof *a);
    if (reserve_bytes == 0) reserve_bytes = default_reserve();
    if (reserve_bytes > most_bytes) reserve_bytes = most_bytes;
    if (step_bytes == 0) step_bytes = STEP_BYTES;
    a->alloc = *alloc;
    a->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    a->page_shift = (size_t)__builtin_ctzll((unsigned long long)a->page_bytes);
    a->max_pages = (reserve_bytes + a->page_bytes - 1) >> a->page_shift;
    a->reserve_bytes = a->max_pages << a->page_shift;
    a->step_pages = (step_bytes + a->page_bytes - 1) >> a->page_shift;
    rp_refcount_init(&a->refs);
    rp_mutex_init(&a->lock, RP_RANK_ARENA);
    rp_mutex_lock(&a->lock);
    for (size_t i = 0; i < LISTS; i++) a->lists[i] = NO_PAGE;
    rp_mutex_unlock(&a->lock);
    st = reserve(a, err);
    if (st == RP_OK)
        *out = a;
    else
        destroy(a);
    return st;
}

void rp_shared_arena_retire(rp_shared_arena *arena)
{
    rp_mutex_lock(&arena->lock);
    arena->is_retired = true;
    rp_mutex_unlock(&arena->lock);
}

bool rp_shared_arena_find(const rp_shared_arena *arena, const void *data, size_t size,
                          uint64_t *offset)
{
    if (!is_inside(arena, data)) return false;
    *offset = (uint64_t)((const uint8_t *)data - arena->base);
    return size <= arena->reserve_bytes - *offset;
}

const uint8_t *rp_shared_arena_base(const rp_shared_arena *arena, size_t *reserve_bytes)
{
    *reserve_bytes = arena->reserve_bytes;
    return arena->base;
}

size_t rp_shared_arena_parts(const rp_shared_arena *arena)
{
    return atomic_load_explicit(&arena->part_count, memory_order_acquire);
}

const rp_shared_part *rp_shared_arena_part(const rp_shared_arena *arena, size_t index)
{
    assert(index < rp_shared_arena_parts(arena));
    return &arena->parts[index];
}

rp_shared_arena_info rp_shared_arena_look(rp_shared_arena *arena)
{
    rp_shared_arena_info info = {.reserve_bytes = arena->reserve_bytes};

    rp_mutex_lock(&arena->lock);
    info.file_bytes = (size_t)arena->file_pages << arena->page_shift;
    info.used_bytes = (size_t)arena->used_pages << arena->page_shift;
    rp_mutex_unlock(&arena->lock);
    return info;
}

/* Checks I4 and I5 for the lists. Returns the broken invariant, or NULL and the number of free
 * runs in the lists. */
static const char *check_lists_locked(const rp_shared_arena *a, size_t *found)
    RP_REQUIRES(a->lock)
{
    *found = 0;
    for (uint32_t list = 0; list < LISTS; list++) {
        bool filled = (a->filled[list / 64] >> list % 64 & 1) != 0;
        uint32_t prev = NO_PAGE;
        if (filled != (a->lists[list] != NO_PAGE)) return "I5";
        for (uint32_t at = a->lists[list]; at != NO_PAGE; at = a->pages[at].next) {
            const page *run = &a->pages[at];
            if (!run->is_free || !run->is_first || list_of(run->pages) != list) return "I4";
            if (run->prev != prev || ++*found > a->file_pages) return "I4";
            prev = at;
        }
    }
    return NULL;
}

static const char *check_runs_locked(const rp_shared_arena *a) RP_REQUIRES(a->lock)
{
    size_t used = 0, free_runs = 0, listed;
    bool was_free = false;
    uint32_t at = 0;
    const char *bad;

    while (at < a->file_pages) {
        const page *run = &a->pages[at];
        if (!run->is_first || run->pages == 0 || run->pages > a->file_pages - at) return "I1";
        if (a->pages[at + run->pages - 1].pages != run->pages) return "I2";
        if (a->pages[at + run->pages - 1].is_free != run->is_free) return "I2";
        if (was_free && run->is_free) return "I3";
        was_free = run->is_free;
        free_runs += run->is_free;
        if (!run->is_free) used += run->pages;
        at += run->pages;
    }
    bad = check_lists_locked(a, &listed);
    if (bad != NULL) return bad;
    if (listed != free_runs) return "I4";
    return used == a->used_pages ? NULL : "I6";
}

rp_status rp_shared_arena_check(rp_shared_arena *arena, rp_error *err)
{
    const char *bad;

    rp_mutex_lock(&arena->lock);
    bad = check_runs_locked(arena);
    rp_mutex_unlock(&arena->lock);
    return bad == NULL ? RP_OK : rp_fail(err, RP_CORRUPT, "shared arena: %s", bad);
}
