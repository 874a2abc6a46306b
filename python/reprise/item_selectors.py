# SPDX-License-Identifier: Apache-2.0
"""How a table picks items to sample, and items to remove.

The same selectors serve both ends of a table:

- `Fifo()`, `Lifo()`: the oldest, the newest;
- `Uniform()`: any, with equal probability;
- `Prioritized(priority_exponent)`: with a probability proportional to priority ** exponent;
- `MinHeap()`, `MaxHeap()`: the lowest, the highest priority.

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
