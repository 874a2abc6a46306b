# SPDX-License-Identifier: Apache-2.0
"""`reprise.item_selectors` under its public name, `reprise.selectors`."""

from reprise.item_selectors import Fifo, Lifo, MaxHeap, MinHeap, Prioritized, Uniform

__all__ = ["Fifo", "Lifo", "MaxHeap", "MinHeap", "Prioritized", "Uniform"]
