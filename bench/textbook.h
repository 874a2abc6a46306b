/* SPDX-License-Identifier: Apache-2.0 */
/* The textbook sum tree: binary, with float64 sums, in one array, whose second half has the
 * leaves.
 *
 *   nodes   [ - | 1 | 2 3 | 4 5 6 7 | leaf 0, leaf 1, ... ]     children of n: 2n and 2n + 1
 *
 * It is the baseline of the benchmarks. Its memory comes from calloc(). */
#ifndef BENCH_TEXTBOOK_H
#define BENCH_TEXTBOOK_H

#include "bench.h"

typedef struct textbook_tree {
    size_t capacity; /* a power of two */
    double *nodes;
} textbook_tree;

static inline textbook_tree textbook_new(size_t leaf_count)
{
    textbook_tree tree = {.capacity = 1};

    while (tree.capacity < leaf_count) tree.capacity *= 2;
    tree.nodes = bench_array(2 * tree.capacity, sizeof *tree.nodes);
    return tree;
}

static inline void textbook_free(textbook_tree *tree)
{
    free(tree->nodes);
}

static inline double textbook_total(const textbook_tree *tree)
{
    return tree->nodes[1];
}

/* Recomputes all sums after the leaves were written directly. */
static inline void textbook_fill(textbook_tree *tree)
{
    for (size_t node = tree->capacity - 1; node >= 1; node--)
        tree->nodes[node] = tree->nodes[2 * node] + tree->nodes[2 * node + 1];
}

/* Sets a weight and recomputes every sum above the leaf from its two children, as the sum tree
 * of Reprise does, so that rounding errors do not accumulate. */
static inline void textbook_set(textbook_tree *tree, size_t leaf, double weight)
{
    double *nodes = tree->nodes;
    size_t node = tree->capacity + leaf;

    nodes[node] = weight;
    for (node /= 2; node >= 1; node /= 2) nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
}

/* Sets a weight and adds the difference to every sum above the leaf. This is faster, but
 * rounding errors accumulate in the sums. */
static inline void textbook_set_by_difference(textbook_tree *tree, size_t leaf, double weight)
{
    double *nodes = tree->nodes;
    size_t node = tree->capacity + leaf;
    double difference = weight - nodes[node];

    nodes[node] = weight;
    for (node /= 2; node >= 1; node /= 2) nodes[node] += difference;
}

static inline size_t textbook_find(const textbook_tree *tree, double target)
{
    const double *nodes = tree->nodes;
    size_t node = 1;

    while (node < tree->capacity) {
        node *= 2;
        if (target >= nodes[node]) {
            target -= nodes[node];
            node++;
        }
    }
    return node - tree->capacity;
}

#endif
