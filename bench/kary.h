/* SPDX-License-Identifier: Apache-2.0 */
/* A K-ary sum tree in plain C for any K that is a power of two, as in section IV-C of Zhang et
 * al. (2021), with float64 sums. Siblings are adjacent. If K siblings fill a cache line, they
 * start at the beginning of a line. The benchmark uses it to compare values of K, as in figure
 * 9 of the paper. */
#ifndef BENCH_KARY_H
#define BENCH_KARY_H

#include "bench.h"

enum { KARY_MAX_LEVELS = 32 };

typedef struct kary_tree {
    unsigned shift;                  /* K = 1 << shift */
    int level_count;                 /* level 0 has the leaves; the last level has one group of
                                        K entries */
    double *levels[KARY_MAX_LEVELS]; /* each padded to whole groups of K entries */
    size_t group_counts[KARY_MAX_LEVELS];
} kary_tree;

static inline double *kary_level(size_t entries)
{
    size_t bytes = (entries * sizeof(double) + 63) / 64 * 64;
    double *level = bench_memory(aligned_alloc(64, bytes));

    memset(level, 0, bytes);
    return level;
}

static inline kary_tree kary_new(unsigned shift, size_t leaf_count)
{
    kary_tree tree = {.shift = shift};
    size_t k = (size_t)1 << shift, size = leaf_count;

    for (;;) {
        size_t groups = (size + k - 1) >> shift;
        tree.levels[tree.level_count] = kary_level(groups << shift);
        tree.group_counts[tree.level_count++] = groups;
        if (groups == 1) return tree;
        size = groups;
    }
}

static inline void kary_free(kary_tree *tree)
{
    for (int i = 0; i < tree->level_count; i++) free(tree->levels[i]);
}

static inline double kary_sum(const kary_tree *tree, int level, size_t group)
{
    const double *x = tree->levels[level] + (group << tree->shift);
    size_t k = (size_t)1 << tree->shift;
    double sum = 0;

    for (size_t i = 0; i < k; i++) sum += x[i];
    return sum;
}

static inline double kary_total(const kary_tree *tree)
{
    return kary_sum(tree, tree->level_count - 1, 0);
}

/* Recomputes all sums after the leaves were written directly. */
static inline void kary_fill(kary_tree *tree)
{
    for (int level = 1; level < tree->level_count; level++)
        for (size_t i = 0; i < tree->group_counts[level - 1]; i++)
            tree->levels[level][i] = kary_sum(tree, level - 1, i);
}

static inline void kary_set(kary_tree *tree, size_t leaf, double weight)
{
    size_t node = leaf;

    tree->levels[0][leaf] = weight;
    for (int level = 1; level < tree->level_count; level++) {
        node >>= tree->shift;
        tree->levels[level][node] = kary_sum(tree, level - 1, node);
    }
}

/* Sets a weight, and adds the difference to each sum above the leaf, as in Algorithm 2 of the
 * paper. */
static inline void kary_set_by_difference(kary_tree *tree, size_t leaf, double weight)
{
    double difference = weight - tree->levels[0][leaf];
    size_t node = leaf;

    for (int level = 0; level < tree->level_count; level++, node >>= tree->shift)
        tree->levels[level][node] += difference;
}

static inline size_t kary_find(const kary_tree *tree, double target)
{
    size_t node = 0, last = ((size_t)1 << tree->shift) - 1;

    for (int level = tree->level_count - 1; level >= 0; level--) {
        const double *x = tree->levels[level] + (node << tree->shift);
        size_t i = 0;

        for (; i < last && target >= x[i]; i++) target -= x[i];
        node = (node << tree->shift) + i;
    }
    return node;
}

#endif
