# SPDX-License-Identifier: Apache-2.0
"""`reprise.item_selectors`, by the name it has in `import reprise`."""

from reprise.item_selectors import Fifo, Lifo, MaxHeap, MinHeap, Prioritized, Uniform

__all__ = ["Fifo", "Lifo", "MaxHeap", "MinHeap", "Prioritized", "Uniform"]
