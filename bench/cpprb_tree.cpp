/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree of cpprb behind functions of C, for pal_tree.c. pal_tree.py compiles it against
 * cpprb's header SegmentTree.hh, which it fetches. A draw asks as cpprb's sampler does. */
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "SegmentTree.hh"

namespace {

struct tree {
    std::size_t leaf_count;
    ymd::SegmentTree<float> sums;
};

tree *of(void *pointer)
{
    return static_cast<tree *>(pointer);
}

} // namespace

extern "C" void *cpprb_tree_new(std::size_t leaf_count)
{
    return new tree{leaf_count,
                    ymd::SegmentTree<float>(ymd::PowerOf2(leaf_count),
                                            [](float a, float b) { return a + b; })};
}

extern "C" void cpprb_tree_free(void *pointer)
{
    delete of(pointer);
}

extern "C" float cpprb_tree_total(void *pointer)
{
    return of(pointer)->sums.reduce(0, of(pointer)->leaf_count);
}

extern "C" void cpprb_tree_set(void *pointer, const std::uint32_t *leaves, const float *weights,
                               std::size_t count)
{
    for (std::size_t i = 0; i < count; i++) of(pointer)->sums.set(leaves[i], weights[i]);
}

extern "C" void cpprb_tree_find(void *pointer, const float *targets, std::size_t count,
                                std::uint32_t *leaves)
{
    tree *t = of(pointer);

    for (std::size_t i = 0; i < count; i++) {
        float target = targets[i];

        leaves[i] = static_cast<std::uint32_t>(t->sums.largest_region_index(
            [=](float sum) { return sum <= target; }, t->leaf_count));
    }
}
