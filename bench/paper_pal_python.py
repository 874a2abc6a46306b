# SPDX-License-Identifier: Apache-2.0
"""Figure 8 of Zhang et al. (2021): buffer operations by capacity, called from Python. For paper_pal.py.

    paper_pal_python.py LIBRARY [--seconds X] [--capacities 1024,16384]

LIBRARY is libbench_pal_trees.so. A call has a batch of 128, as NumPy arrays, and its time includes what
the authors' script includes: the call and the random numbers. An "update" sets the priorities of random
leaves, which the paper calls insertion; a "sample" finds the leaves of random numbers. Prints CSV, in ms
a call: the mean of a group of 8 calls, of the best group.

The trees: ours, one built as the authors' and a binary one, all in C (pal_trees.c); Python lists, one leaf
after the other, as RLlib has it, and NumPy arrays, a level of all leaves at a time, both written for this;
those of Tianshou and RLlib, if they are here; and cpprb's whole buffer, which also computes importance
weights and copies rows.
"""

import argparse
import ctypes
import sys
import time

import numpy as np

BATCH = 128
GROUP = 8


class CTree:
    """A tree of pal_trees.c."""

    def __init__(self, functions, kind, capacity):
        self.functions, self.tree = functions, functions.bench_tree_new(kind, capacity)
        self.found = np.empty(BATCH, np.uint32)

    def free(self):
        self.functions.bench_tree_free(self.tree)

    def total(self):
        return self.functions.bench_tree_total(self.tree)

    def update(self, leaves, weights):
        leaves = leaves.astype(np.uint32)
        self.functions.bench_tree_set(self.tree, leaves.ctypes.data, weights.ctypes.data, len(leaves))

    def find(self, targets):
        self.functions.bench_tree_find(self.tree, targets.ctypes.data, len(targets), self.found.ctypes.data)
        return self.found


def open_library(path):
    library = ctypes.CDLL(path)
    library.bench_tree_new.restype = ctypes.c_void_p
    library.bench_tree_new.argtypes = [ctypes.c_int, ctypes.c_size_t]
    library.bench_tree_free.argtypes = [ctypes.c_void_p]
    library.bench_tree_total.restype = ctypes.c_double
    library.bench_tree_total.argtypes = [ctypes.c_void_p]
    library.bench_tree_set.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.bench_tree_find.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    return library


class ListTree:
    """Binary, in a list: node n has the children 2n and 2n + 1."""

    def __init__(self, capacity):
        self.leaves = 1 << (capacity - 1).bit_length()
        self.nodes = [0.0] * (2 * self.leaves)

    def total(self):
        return self.nodes[1]

    def update(self, leaves, weights):
        nodes = self.nodes
        for leaf, weight in zip(leaves, weights):
            node = int(leaf) + self.leaves
            nodes[node] = float(weight)
            while node > 1:
                node //= 2
                nodes[node] = nodes[2 * node] + nodes[2 * node + 1]

    def find(self, targets):
        return [self.find_one(float(target)) for target in targets]

    def find_one(self, target):
        nodes, node = self.nodes, 1
        while node < self.leaves:
            node *= 2
            if target >= nodes[node]:
                target -= nodes[node]
                node += 1
        return node - self.leaves


class NumPyTree:
    """The same in an array; all leaves of a batch go up, or down, one level together."""

    def __init__(self, capacity):
        self.depth = (capacity - 1).bit_length()
        self.leaves = 1 << self.depth
        self.nodes = np.zeros(2 * self.leaves)

    def total(self):
        return self.nodes[1]

    def update(self, leaves, weights):
        node = leaves + self.leaves
        self.nodes[node] = weights
        for _ in range(self.depth):
            node = node // 2
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def find(self, targets):
        node = np.ones(len(targets), np.int64)
        for _ in range(self.depth):
            node *= 2
            left = self.nodes[node]
            right = targets >= left
            targets = targets - left * right
            node += right
        return node - self.leaves


class Tianshou:
    def __init__(self, capacity):
        from tianshou.data import SegmentTree

        self.tree = SegmentTree(capacity)

    def total(self):
        return self.tree.reduce()

    def update(self, leaves, weights):
        self.tree[leaves] = weights

    def find(self, targets):
        return self.tree.get_prefix_sum_idx(targets)


class RLlib:
    def __init__(self, capacity):
        from ray.rllib.execution.segment_tree import SumSegmentTree

        self.tree = SumSegmentTree(capacity)

    def total(self):
        return self.tree.sum()

    def update(self, leaves, weights):
        for leaf, weight in zip(leaves, weights):
            self.tree[leaf] = weight

    def find(self, targets):
        return [self.tree.find_prefixsum_idx(target) for target in targets]


class Cpprb:
    def __init__(self, capacity):
        import cpprb

        self.buffer = cpprb.PrioritizedReplayBuffer(capacity, {"reward": {}}, alpha=1.0)
        many = np.zeros(1 << 14, np.float32)
        for done in range(0, capacity, len(many)):
            self.buffer.add(reward=many[:capacity - done])

    def total(self):
        return 1.0

    def update(self, leaves, weights):
        self.buffer.update_priorities(leaves, weights)

    def find(self, targets):
        return self.buffer.sample(len(targets), beta=0.4)["indexes"]


def fill(tree, capacity):
    """Gives every leaf a weight, and a few hundred at a time to those that only Python can fill."""
    rng = np.random.default_rng(1)
    if isinstance(tree, ListTree):
        tree.nodes[tree.leaves:tree.leaves + capacity] = rng.random(capacity).tolist()
        for node in range(tree.leaves - 1, 0, -1):
            tree.nodes[node] = tree.nodes[2 * node] + tree.nodes[2 * node + 1]
    else:
        for done in range(0, capacity, 1 << 13):
            leaves = np.arange(done, min(capacity, done + (1 << 13)))
            tree.update(leaves, rng.random(len(leaves)))


def best_of(work, seconds):
    """Returns the ms of a call, the mean of a group of calls, of the best group."""
    best, end = float("inf"), time.perf_counter() + seconds
    work()  # compiles, in Tianshou
    while True:
        began = time.perf_counter()
        for _ in range(GROUP):
            work()
        now = time.perf_counter()
        best = min(best, (now - began) / GROUP)
        if now > end:
            return best * 1e3


def measure(tree, capacity, seconds):
    def update():
        tree.update(np.random.randint(capacity, size=BATCH), np.random.rand(BATCH))

    def sample():
        tree.find(np.random.rand(BATCH) * tree.total())

    return best_of(update, seconds), best_of(sample, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", help="the shared library of the trees in C")
    parser.add_argument("--seconds", type=float, default=0.6, help="for each figure")
    parser.add_argument("--capacities", default="1024,16384,131072,1048576")
    options = parser.parse_args()
    library = open_library(options.trees)
    kinds = {"ours": lambda n: CTree(library, 0, n), "as the authors'": lambda n: CTree(library, 1, n),
             "binary in C": lambda n: CTree(library, 2, n), "Python lists": ListTree, "NumPy": NumPyTree,
             "Tianshou": Tianshou, "RLlib": RLlib, "cpprb": Cpprb}
    print("capacity,batch,tree,update_ms,sample_ms")
    for name, kind in kinds.items():
        for capacity in map(int, options.capacities.split(",")):
            try:
                tree = kind(capacity)
            except ImportError as missing:
                print(f"{name} is not here: {missing}", file=sys.stderr)
                break
            fill(tree, capacity)
            update, sample = measure(tree, capacity, options.seconds)
            print(f"{capacity},{BATCH},{name},{update:.6f},{sample:.6f}", flush=True)
            if isinstance(tree, CTree):
                tree.free()


if __name__ == "__main__":
    main()
