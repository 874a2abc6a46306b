# SPDX-License-Identifier: Apache-2.0
"""Selectors, which decide which items a table samples and which it removes.

Each may be the sampler or the remover of a table. They select:

- `Fifo()`, `Lifo()`: the oldest or the newest item;
- `Uniform()`: any item, with equal probability;
- `Prioritized(priority_exponent)`: an item with probability proportional to priority ** exponent;
- `MinHeap()`, `MaxHeap()`: the item with the lowest or the highest priority.

>>> Prioritized(0.8)
PrioritizedSelector(priority_exponent=0.8)
"""

import functools

from reprise import pybind

__all__ = ["Fifo", "Lifo", "MaxHeap", "MinHeap", "Prioritized", "Uniform"]

Fifo = pybind.FifoSelector
Lifo = pybind.LifoSelector
Uniform = pybind.UniformSelector
Prioritized = pybind.PrioritizedSelector
MinHeap = functools.partial(pybind.HeapSelector, True)
MaxHeap = functools.partial(pybind.HeapSelector, False)
