/* SPDX-License-Identifier: Apache-2.0 */
/* Three sum trees behind one set of functions, as a library that paper_pal_python.py calls
 * through ctypes, for figure 8 of Zhang et al. (2021): ours, one built as theirs is
 * (delta_tree.h, K = 16), and the textbook's (textbook.h). An update leaves all sums up to
 * date. */
#include "reprise/sumtree.h"

#include "bench.h"
#include "delta_tree.h"
#include "textbook.h"

enum { OURS, AUTHORS, BINARY, SHIFT = 4 };

typedef struct bench_tree {
    int kind;
    rp_sumtree *ours;
    delta_tree authors;
    textbook_tree binary;
} bench_tree;

RP_API bench_tree *bench_tree_new(int kind, size_t leaf_count);
RP_API void bench_tree_free(bench_tree *tree);
RP_API double bench_tree_total(bench_tree *tree);
RP_API void bench_tree_set(bench_tree *tree, const uint32_t *leaves, const double *weights,
                           size_t count);
RP_API void bench_tree_find(bench_tree *tree, const double *targets, size_t count,
                            uint32_t *leaves);

/* Makes a tree whose leaves have weight 0. */
bench_tree *bench_tree_new(int kind, size_t leaf_count)
{
    bench_tree *tree = bench_array(1, sizeof *tree);

    tree->kind = kind;
    if (kind == OURS) {
        bench_check(rp_sumtree_new(rp_allocator_default(), &tree->ours), NULL);
        bench_check(rp_sumtree_reserve(tree->ours, leaf_count), NULL);
    } else if (kind == AUTHORS) {
        tree->authors = delta_tree_new(SHIFT, leaf_count, 0);
    } else {
        tree->binary = textbook_new(leaf_count);
    }
    return tree;
}

void bench_tree_free(bench_tree *tree)
{
    rp_sumtree_free(tree->ours);
    if (tree->kind == AUTHORS) delta_tree_free(&tree->authors);
    if (tree->kind == BINARY) textbook_free(&tree->binary);
    free(tree);
}

double bench_tree_total(bench_tree *tree)
{
    if (tree->kind == OURS) return rp_sumtree_total(tree->ours);
    if (tree->kind == AUTHORS) return (double)delta_tree_total(&tree->authors);
    return textbook_total(&tree->binary);
}

void bench_tree_set(bench_tree *tree, const uint32_t *leaves, const double *weights,
                    size_t count)
{
    if (tree->kind == OURS) {
        rp_sumtree_set(tree->ours, leaves, weights, count);
        (void)rp_sumtree_total(tree->ours);
    } else if (tree->kind == AUTHORS) {
        for (size_t i = 0; i < count; i++)
            delta_tree_set(&tree->authors, leaves[i], (float)weights[i]);
    } else {
        for (size_t i = 0; i < count; i++) textbook_set(&tree->binary, leaves[i], weights[i]);
    }
}

void bench_tree_find(bench_tree *tree, const double *targets, size_t count, uint32_t *leaves)
{
    if (tree->kind == OURS) {
        rp_sumtree_find(tree->ours, targets, count, leaves);
    } else if (tree->kind == AUTHORS) {
        for (size_t i = 0; i < count; i++)
            leaves[i] = (uint32_t)delta_tree_find(&tree->authors, (float)targets[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            leaves[i] = (uint32_t)textbook_find(&tree->binary, targets[i]);
    }
}
