# SPDX-License-Identifier: Apache-2.0
"""A prioritized replay buffer for Tianshou. Imports tianshou.

    from reprise.frameworks.tianshou import PrioritizedVectorReplayBuffer

    buffer = PrioritizedVectorReplayBuffer(total_size=100_000, buffer_num=8, alpha=0.6, beta=0.4)

The class is a subclass of Tianshou's `PrioritizedVectorReplayBuffer`, with the same arguments and
methods. Algorithms of Tianshou read transitions by their places, so these stay where Tianshou keeps
them. Draws, weights and reads of batches are ours.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from tianshou import data
from tianshou.data import Batch

from reprise.frameworks._weights import Tree

__all__ = ["PrioritizedVectorReplayBuffer"]


class _Tree(Tree):
    """`Tree` with the operators of Tianshou's `SegmentTree`."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        places = np.atleast_1d(index)
        if len(places) and not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"the buffer has {len(self)} places, so there is no place "
                             f"{places.min()} or {places.max()}")
        if np.size(value) not in (1, len(places)):
            raise ValueError(f"got {len(places)} places and {np.size(value)} priorities")
        if not np.isfinite(value).all():
            raise ValueError("priorities must be finite; does the loss diverge?")
        self.set(places, value)


def _rows(value: Any, places: np.ndarray) -> Any:
    """Returns the rows of a part of the buffer."""
    if isinstance(value, np.ndarray):
        return value.take(places, axis=0)
    if isinstance(value, Batch) and not value.get_keys():
        return Batch()
    return value[places]


class PrioritizedVectorReplayBuffer(data.PrioritizedVectorReplayBuffer):
    """A buffer for several environments, drawn by priority (Schaul et al., 2016).

    The arguments and methods are those of Tianshou's `PrioritizedVectorReplayBuffer`, and samples
    have the same values, probabilities and weights. There are two differences: after `reset`, no
    transition from before is drawn, and `buffer.weight` has no `reduce` and `get_prefix_sum_idx`.

    Args:
      total_size: how many transitions the buffer holds, of all environments together.
      buffer_num: the number of environments.
      seed: the same seed and calls give the same samples. None: a seed that is drawn from
        numpy.random.
      kwargs: the other arguments of Tianshou's class: `alpha`, `beta`, `weight_norm`, `stack_num`
        and so on.
    """

    def __init__(self, total_size: int, buffer_num: int, *, seed: Optional[int] = None,
                 **kwargs: Any):
        super().__init__(total_size, buffer_num, **kwargs)
        if seed is None:
            seed = int(np.random.randint(0, 2**31))
        self.weight = _Tree(self.maxsize, seed)

    def reset(self, keep_statistics: bool = False) -> None:
        super().reset(keep_statistics)
        self.weight.clear()

    def sample_indices(self, batch_size: Optional[int]) -> np.ndarray:
        if batch_size is None or batch_size <= 0:
            return super().sample_indices(batch_size)
        if len(self) == 0:
            raise ValueError("the buffer is empty: add transitions before sample()")
        return self.weight.draw(batch_size)

    def __getitem__(self, index: Any) -> Any:
        plain = (isinstance(index, np.ndarray) and index.dtype.kind in "iu"
                 and self.stack_num == 1 and self._save_obs_next)
        if not plain:
            return super().__getitem__(index)
        batch = Batch()
        fields = batch.__dict__  # as Tianshou does it: the constructor converts each value
        for key, value in self._meta.__dict__.items():
            fields[key] = _rows(value, index)
        for key in ("obs_next", "info", "policy"):
            if key not in fields:
                fields[key] = Batch()
        weight = self.get_weight(index)
        fields["weight"] = weight / np.max(weight) if self._weight_norm else weight
        return batch
