/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree. docs/sumtree.md explains the layout and has measurements.
 *
 * Level 0 holds the leaves; entry i of level l + 1 is the sum of entries 8i .. 8i + 7 of level
 * l, one cache line. The top level is one line, whose sum is the total.
 *
 *   level 2   [ s0 s1 -- -- -- -- -- -- ]                          one line: the root
 *               |   \_____________________
 *   level 1   [ s0 s1 s2 s3 s4 s5 s6 s7 ][ s8 ... ]
 *               |   \____________________
 *   level 0   [ w0 w1 w2 w3 w4 w5 w6 w7 ][ w8 ... ][ ...           one leaf a slot
 *
 * A write stores the leaf and adds its line to the stale list. refresh() then goes up level by
 * level: it sums the stale lines into their parents and lists the lines of those, each once.
 *
 * Invariants between calls:
 *   S1  a line of level 0 whose sum differs from its parent entry is in the stale list;
 *   S2  if the list is empty, every entry above level 0 is exactly the sum of its line;
 *   S3  stale_count < MAX_STALE, and every listed line is below line_counts[0].
 *
 * Cost: a draw reads one line per level. Eight descents share a vector and 64 are in flight, so
 * that the lines of the next level are loaded while this one is searched. */

#include <assert.h>

#include "table/selector/sumtree.h"
#include "table/selector/sumtree_kernel.h"
#include "util/cpu.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    K = RP_SUMTREE_K,
    MAX_LEVELS = 12, /* 8^11 > 2^31 leaves */
    MAX_STALE = 2048,
    MIN_LEAVES = K * K,  /* so that there are always two levels */
    PREFETCH_AHEAD = 24, /* writes */
};

#define NO_LINE UINT32_MAX

struct rp_sumtree {
    const rp_sumtree_kernel_ops *kernel;
    rp_allocator alloc;
    size_t capacity; /* leaves, a multiple of K */
    int level_count;
    double *levels[MAX_LEVELS];
    size_t line_counts[MAX_LEVELS];
    double *entries; /* one allocation for all levels */
    size_t entries_bytes;
    uint8_t *seen; /* a byte per line of level 1, for list_lines() */
    size_t seen_bytes;
    uint8_t seen_mark; /* the value that marks lines in the present call */
    double total;      /* the sum of the top line; valid if stale_count is 0 */
    size_t stale_count;
    uint32_t last_stale; /* the line listed last, or NO_LINE after a refresh */
    uint32_t stale[MAX_STALE + 1];
    uint32_t next_stale[MAX_STALE + 1];
};

static const rp_sumtree_kernel_ops *const kernels[] = {
#if defined(__x86_64__)
    &rp_sumtree_avx512,
    &rp_sumtree_avx2,
#elif defined(__aarch64__)
    &rp_sumtree_neon,
#endif
    &rp_sumtree_plain,
};
enum { KERNEL_COUNT = sizeof kernels / sizeof kernels[0] };

static bool can_run(const rp_sumtree_kernel_ops *kernel)
{
#if defined(__x86_64__)
    if (kernel == &rp_sumtree_avx512) return rp_cpu_has_avx512();
    if (kernel == &rp_sumtree_avx2) return rp_cpu_has_avx2();
#endif
    (void)kernel;
    return true;
}

rp_status rp_sumtree_new(const rp_allocator *alloc, rp_sumtree **out)
{
    rp_sumtree *tree;
    int k = 0;

    if (alloc == NULL) alloc = rp_allocator_default();
    tree = rp_alloc_zero(alloc, sizeof *tree);
    if (tree == NULL) return RP_NO_RESOURCE;
    while (k + 1 < KERNEL_COUNT && !can_run(kernels[k])) k++; /* plain C always can */
    tree->kernel = kernels[k];
    tree->alloc = *alloc;
    tree->last_stale = NO_LINE;
    *out = tree;
    return RP_OK;
}

void rp_sumtree_free(rp_sumtree *tree)
{
    if (tree == NULL) return;
    rp_release_aligned(&tree->alloc, tree->entries, tree->entries_bytes);
    rp_release_aligned(&tree->alloc, tree->seen, tree->seen_bytes);
    rp_release(&tree->alloc, tree, sizeof *tree);
}

const char *rp_sumtree_kernel(const rp_sumtree *tree)
{
    return tree->kernel->name;
}

rp_status rp_sumtree_use_kernel(rp_sumtree *tree, const char *name)
{
    for (int k = 0; k < KERNEL_COUNT; k++) {
        if (strcmp(kernels[k]->name, name) != 0 || !can_run(kernels[k])) continue;
        tree->kernel = kernels[k];
        return RP_OK;
    }
    return RP_NOT_FOUND;
}

size_t rp_sumtree_capacity(const rp_sumtree *tree)
{
    return tree->capacity;
}

double rp_sumtree_get(const rp_sumtree *tree, uint32_t leaf)
{
    assert(leaf < tree->capacity);
    return tree->levels[0][leaf];
}

/* Lists the lines that contain `count` entries, each once. Avoids a branch on whether a line is
 * new, which would be unpredictable. The mark changes with each call, so that `seen` need not
 * be cleared. */
static size_t list_lines(rp_sumtree *tree, const uint32_t *entries, size_t count,
                         uint32_t *lines)
{
    uint8_t *seen = tree->seen, mark;
    size_t line_count = 0;

    if (++tree->seen_mark == 0) {
        memset(seen, 0, tree->seen_bytes);
        tree->seen_mark = 1;
    }
    mark = tree->seen_mark;
    for (size_t i = 0; i < count; i++) {
        uint32_t line = entries[i] / K;
        lines[line_count] = line;
        line_count += seen[line] != mark;
        seen[line] = mark;
    }
    assert(line_count <= count);
    return line_count;
}

static double sum8(const double *x)
{
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Recomputes every stale sum once (S2). From the level on which many lines are stale, sums
 * whole levels, which are small and contiguous. */
static void refresh(rp_sumtree *tree)
{
    uint32_t *lines = tree->stale, *parents = tree->next_stale, *swap;
    size_t count = tree->stale_count;
    int level = 0, top = tree->level_count - 1;

    for (; level < top && count == 1; level++, lines[0] /= K)
        tree->levels[level + 1][lines[0]] = sum8(tree->levels[level] + (size_t)lines[0] * K);
    for (; level < top && count * 3 < tree->line_counts[level]; level++) {
        tree->kernel->sum(tree->levels[level], lines, count, tree->levels[level + 1]);
        count = list_lines(tree, lines, count, parents);
        swap = lines, lines = parents, parents = swap;
    }
    for (; level < top; level++)
        tree->kernel->sum(tree->levels[level], NULL, tree->line_counts[level],
                          tree->levels[level + 1]);
    tree->total = sum8(tree->levels[top]);
    tree->stale_count = 0;
    tree->last_stale = NO_LINE;
    RP_VERIFY(tree->capacity, rp_sumtree_check(tree));
}

static inline void prefetch_leaf(const rp_sumtree *tree, uint32_t leaf)
{
    __builtin_prefetch(tree->levels[0] + leaf, 1);
    __builtin_prefetch(tree->levels[1] + leaf / K, 1);
}

void rp_sumtree_prefetch(const rp_sumtree *tree, const uint32_t *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++) prefetch_leaf(tree, leaves[i]);
}

/* As rp_sumtree_set(), for as many leaves as fit the stale list. Prefetches `ahead` leaves
 * ahead. */
static void set_some(rp_sumtree *tree, const uint32_t *leaves, const double *weights,
                     size_t count, size_t ahead)
{
    double *level0 = tree->levels[0];
    uint32_t *stale = tree->stale + tree->stale_count;
    uint32_t last = tree->last_stale;

    for (size_t i = 0; i < count; i++) {
        uint32_t leaf = leaves[i], line = leaf / K;
        assert(leaf < tree->capacity && weights[i] >= 0);
        if (ahead > 0) prefetch_leaf(tree, leaves[i + ahead]);
        level0[leaf] = weights[i];
        *stale = line;
        stale += line != last; /* neighbours share a line */
        last = line;
    }
    tree->stale_count = (size_t)(stale - tree->stale);
    assert(tree->stale_count <= MAX_STALE);
    tree->last_stale = last;
}

void rp_sumtree_set_one(rp_sumtree *tree, uint32_t leaf, double weight)
{
    uint32_t line = leaf / K;

    assert(leaf < tree->capacity && weight >= 0);
    tree->levels[0][leaf] = weight;
    if (line == tree->last_stale) return;
    assert(tree->stale_count < MAX_STALE); /* S3 */
    tree->last_stale = line;
    tree->stale[tree->stale_count++] = line;
    if (tree->stale_count == MAX_STALE) refresh(tree);
}

void rp_sumtree_set(rp_sumtree *tree, const uint32_t *leaves, const double *weights,
                    size_t count)
{
    while (count > 0) {
        size_t room = MAX_STALE - tree->stale_count;
        size_t n = count < room ? count : room;
        size_t ahead = n < 2 * PREFETCH_AHEAD ? 0 : PREFETCH_AHEAD;

        assert(room > 0); /* S3 */
        rp_sumtree_prefetch(tree, leaves, ahead);
        set_some(tree, leaves, weights, n - ahead, ahead);
        set_some(tree, leaves + n - ahead, weights + n - ahead, ahead, 0);
        if (tree->stale_count == MAX_STALE) refresh(tree);
        leaves += n, weights += n, count -= n;
    }
}

double rp_sumtree_total(rp_sumtree *tree)
{
    if (tree->stale_count > 0) refresh(tree);
    return tree->total;
}

void rp_sumtree_find(rp_sumtree *tree, const double *targets, size_t count, uint32_t *leaves)
{
    if (tree->stale_count > 0) refresh(tree);
    assert(count == 0 || tree->total > 0);
    while (count > 0) {
        size_t n = count < RP_SUMTREE_IN_FLIGHT ? count : RP_SUMTREE_IN_FLIGHT;

        tree->kernel->find(tree->levels, tree->level_count, targets, leaves, n);
        targets += n, leaves += n, count -= n;
    }
}

void rp_sumtree_clear(rp_sumtree *tree)
{
    if (tree->capacity == 0) return;
    memset(tree->entries, 0, tree->entries_bytes);
    tree->stale_count = 0;
    tree->last_stale = NO_LINE;
    tree->total = 0;
}

rp_status rp_sumtree_reserve(rp_sumtree *tree, size_t leaf_count)
{
    size_t sizes[MAX_LEVELS] = {0}, entries = 0, seen_bytes, old_lines;
    double *new_entries;
    uint8_t *new_seen;
    int count = 0;

    if (leaf_count <= tree->capacity) return RP_OK;
    if (leaf_count > (size_t)1 << 31) return RP_NO_RESOURCE;
    if (leaf_count < MIN_LEAVES) leaf_count = MIN_LEAVES;
    for (size_t size = leaf_count; count == 0 || sizes[count - 1] > K;
         size = sizes[count++] / K) {
        sizes[count] = (size + K - 1) / K * K;
        entries += sizes[count];
    }
    seen_bytes = sizes[1] / K + 1;
    new_entries = rp_alloc_aligned(&tree->alloc, entries * sizeof(double));
    new_seen = rp_alloc_aligned(&tree->alloc, seen_bytes);
    if (new_entries == NULL || new_seen == NULL) {
        rp_release_aligned(&tree->alloc, new_entries, entries * sizeof(double));
        rp_release_aligned(&tree->alloc, new_seen, seen_bytes);
        return RP_NO_RESOURCE;
    }
    if (tree->capacity > 0)
        memcpy(new_entries, tree->levels[0], tree->capacity * sizeof(double));
    rp_release_aligned(&tree->alloc, tree->entries, tree->entries_bytes);
    rp_release_aligned(&tree->alloc, tree->seen, tree->seen_bytes);

    old_lines = tree->capacity / K;
    tree->entries = new_entries;
    tree->entries_bytes = entries * sizeof(double);
    tree->seen = new_seen;
    tree->seen_bytes = seen_bytes;
    tree->capacity = sizes[0];
    tree->level_count = count;
    for (int level = 0; level < count; level++) {
        tree->levels[level] = new_entries;
        tree->line_counts[level] = sizes[level] / K;
        new_entries += sizes[level];
    }
    /* Sums the lines with old leaves; new leaves and their sums are 0. */
    for (int level = 0; level + 1 < count; level++, old_lines = (old_lines + K - 1) / K)
        tree->kernel->sum(tree->levels[level], NULL, old_lines, tree->levels[level + 1]);
    tree->total = sum8(tree->levels[count - 1]);
    tree->stale_count = 0;
    tree->last_stale = NO_LINE;
    RP_VERIFY(tree->capacity, rp_sumtree_check(tree));
    return RP_OK;
}

bool rp_sumtree_check(rp_sumtree *tree)
{
    if (tree->capacity == 0) return tree->total == 0 && tree->stale_count == 0;
    (void)rp_sumtree_total(tree);
    for (int level = 0; level + 1 < tree->level_count; level++) /* S2, which needs S1 */
        for (size_t line = 0; line < tree->line_counts[level]; line++)
            if (sum8(tree->levels[level] + line * K) != tree->levels[level + 1][line])
                return false;
    return true;
}
