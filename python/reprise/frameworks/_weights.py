# SPDX-License-Identifier: Apache-2.0
"""Weights of transitions, for the modules of this package: their minimum, and draws by weight.

A weight is a priority to the power of alpha. `reprise.ReplayBuffer` scales importance weights by the
smallest weight of a batch. Other frameworks scale by the smallest of the buffer, so their modules
keep the weights here as well.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from reprise import replay_buffer

__all__ = ["Tree", "Weights"]

_BLOCK = 64  # weights whose minimum is kept


class Weights:
    """An array of weights that knows its minimum. A place without a weight holds infinity.

    >>> weights = Weights(1000)
    >>> weights.set(np.array([3, 500]), np.array([2.0, 0.5]))
    >>> weights.minimum(), float(weights.values[3])
    (0.5, 2.0)
    >>> weights.set(np.array([500]), 4.0)
    >>> weights.minimum()
    2.0
    """

    def __init__(self, capacity: int):
        blocks = -(-capacity // _BLOCK)
        self._blocks = np.full((blocks, _BLOCK), np.inf)
        self._minima = np.full(blocks, np.inf)
        self._stale = np.zeros(blocks, np.bool_)
        self.values: np.ndarray = self._blocks.reshape(-1)[:capacity]

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "values": len(self.values)}  # `values` is a view of the blocks

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.values = self._blocks.reshape(-1)[:state["values"]]

    def set(self, places: np.ndarray, weights: Any) -> None:
        """Sets the weights of places. Of a place that is given twice, the last weight counts."""
        self.values[places] = weights
        self._stale[places // _BLOCK] = True

    def minimum(self) -> float:
        """Returns the smallest weight, infinity if there is none."""
        stale = np.flatnonzero(self._stale)
        if len(stale):
            self._minima[stale] = self._blocks[stale].min(axis=1)
            self._stale[stale] = False
        return float(self._minima.min())

    def clear(self) -> None:
        """Removes all weights."""
        self._blocks.fill(np.inf)
        self._minima.fill(np.inf)
        self._stale.fill(False)


class Tree:
    """Places that are drawn by weight, in a sum tree in C. A place without a weight holds 0.

    >>> tree = Tree(1000, seed=1)
    >>> tree.set(np.array([3, 500]), np.array([1.0, 3.0]))
    >>> np.bincount(tree.draw(4000)).nonzero()[0]
    array([  3, 500])
    >>> tree.set(np.array([3]), np.zeros(1))
    >>> set(tree.draw(10).tolist())
    {500}
    """

    def __init__(self, capacity: int, seed: Optional[int] = None):
        self.values = np.zeros(capacity)
        # The rows are placeholders, so that the tree has a leaf for each place. A row of priority 0
        # has a weight of 2^-1000, so it is not drawn as long as any place has a weight.
        self._rows = replay_buffer.ReplayBuffer(capacity, {"place": ((), np.uint8)}, alpha=1.0,
                                                epsilon=0.0, seed=seed)
        self._rows.add(np.zeros(capacity, np.uint8), priorities=self.values)

    def set(self, places: np.ndarray, weights: Any) -> None:
        """Sets the weights of places. Of a place that is given twice, the last weight counts.
        Raises an error and changes nothing if there is no such place, or a weight is not finite or
        negative."""
        weights = np.asarray(weights, np.float64)
        if not weights.ndim:
            weights = np.full(len(places), weights)
        self._rows.update_priorities(places, weights)
        self.values[places] = weights

    def clear(self) -> None:
        """Removes all weights."""
        self.set(np.flatnonzero(self.values), 0.0)

    def draw(self, count: int) -> np.ndarray:
        """Draws places, independently and with replacement. Some place must have a weight."""
        return self._rows.sample(count, 0.0)["indices"]
