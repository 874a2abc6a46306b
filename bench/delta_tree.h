/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree of Zhang et al. (2021), built as in their paper and program, for comparison with
 * ours. The tree is K-ary and stored in one array of float32 sums, without pointers. The number
 * of leaves is a power of K.
 *
 *   nodes   [ root | K children of the root | K children of each of these | ... | leaves ]
 *
 * The children of node n are K n + 1 .. K n + K. K - 1 unused entries precede the root. If K
 * float32 fill a cache line, each group of siblings therefore starts at a cache line. An update
 * adds the difference of the weights to every ancestor, so rounding errors stay in the sums
 * (Algorithm 2 of the paper). There are no batches: each function writes or draws a single
 * leaf. */
#ifndef BENCH_DELTA_TREE_H
#define BENCH_DELTA_TREE_H

#include "bench.h"

typedef struct delta_tree {
    unsigned shift;    /* K = 1 << shift */
    size_t leaf_count; /* number of leaves in use; the others have weight 0 */
    size_t first_leaf; /* the number of nodes above the leaves */
    float *nodes;
    void *memory;
} delta_tree;

/* Makes a tree whose leaves have weight 0. All nodes are stored `offset` float32 entries after
 * the cache-aligned position. An offset of 0 is the layout of the paper. */
static inline delta_tree delta_tree_new(unsigned shift, size_t leaf_count, size_t offset)
{
    delta_tree tree = {.shift = shift, .leaf_count = leaf_count};
    size_t leaves = 1, line = 64 / sizeof(float), skipped;

    for (; leaves < leaf_count; leaves <<= shift) tree.first_leaf += leaves;
    /* calloc() gives memory that no program has touched: unused leaves take none. */
    tree.memory = bench_array(tree.first_leaf + leaves + ((size_t)1 << shift) + offset + line,
                              sizeof(float));
    skipped = (64 - (uintptr_t)tree.memory % 64) % 64 / sizeof(float);
    tree.nodes = (float *)tree.memory + skipped + ((size_t)1 << shift) - 1 + offset;
    return tree;
}

static inline void delta_tree_free(delta_tree *tree)
{
    free(tree->memory);
}

static inline float delta_tree_total(const delta_tree *tree)
{
    return tree->nodes[0];
}

static inline float *delta_tree_leaf(const delta_tree *tree, size_t leaf)
{
    return tree->nodes + tree->first_leaf + leaf;
}

/* Recomputes all sums after the leaves were written directly. */
static inline void delta_tree_fill(delta_tree *tree)
{
    size_t begin = tree->first_leaf, used = tree->leaf_count, k = (size_t)1 << tree->shift;

    while (begin > 0) {
        size_t above = (begin - 1) >> tree->shift;

        used = (used + k - 1) >> tree->shift;
        for (size_t i = 0; i < used; i++) {
            double sum = 0;

            for (size_t j = 0; j < k; j++) sum += (double)tree->nodes[begin + i * k + j];
            tree->nodes[above + i] = (float)sum;
        }
        begin = above;
    }
}

/* Writes a leaf. Returns the difference of the weights, which the caller must add to all nodes
 * above the leaf. */
static inline float delta_tree_set_leaf(delta_tree *tree, size_t leaf, float weight)
{
    float *at = delta_tree_leaf(tree, leaf), difference = weight - *at;

    *at += difference;
    return difference;
}

/* Adds a difference to all nodes above a leaf. */
static inline void delta_tree_add_above(delta_tree *tree, size_t leaf, float difference)
{
    for (size_t node = tree->first_leaf + leaf; node != 0;) {
        node = (node - 1) >> tree->shift;
        tree->nodes[node] += difference;
    }
}

static inline void delta_tree_set(delta_tree *tree, size_t leaf, float weight)
{
    delta_tree_add_above(tree, leaf, delta_tree_set_leaf(tree, leaf, weight));
}

/* Returns the first leaf at which the sum of the weights, from leaf 0 up to and including this
 * leaf, is at least `target`. If rounding errors make the sum too small for every child of a
 * node, the search continues in the last child. */
static inline size_t delta_tree_find(const delta_tree *tree, float target)
{
    size_t node = 0, last = ((size_t)1 << tree->shift) - 1, leaf;

    while (node < tree->first_leaf) {
        float left = 0;

        node = (node << tree->shift) + 1;
        for (size_t i = 0; i < last; i++, node++) {
            float sum = left + tree->nodes[node];

            if (sum >= target) break;
            left = sum;
        }
        target -= left;
    }
    leaf = node - tree->first_leaf;
    return leaf < tree->leaf_count ? leaf : tree->leaf_count - 1;
}

#endif
