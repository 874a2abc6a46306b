# SPDX-License-Identifier: Apache-2.0
"""A prioritized replay buffer for TorchRL. Imports torch and tensordict.

    from reprise.frameworks.torchrl import TensorDictPrioritizedReplayBuffer

    buffer = TensorDictPrioritizedReplayBuffer(capacity=100_000, alpha=0.6, beta=0.4, batch_size=256)
    buffer.extend(collected.reshape(-1))
    batch = buffer.sample()
    loss(batch)                                 # sets batch["td_error"]
    buffer.update_tensordict_priority(batch)

It has the methods of TorchRL's `TensorDictPrioritizedReplayBuffer` that a training uses. Storage,
sampler and writer are one, so there are no arguments for them.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Tuple, Union

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase

from reprise import replay_buffer
from reprise.frameworks._weights import Weights

__all__ = ["TensorDictPrioritizedReplayBuffer"]

Key = Union[str, Tuple[str, ...]]

_ADDED = ("index", "priority_weight")  # keys that sample() sets


def _reduced(priority: torch.Tensor, count: int) -> np.ndarray:
    """Returns one priority for each row: the largest, if a row has several."""
    priority = priority.detach().reshape(count, -1)
    if priority.shape[1] > 1:
        priority = priority.amax(dim=1)
    return priority.reshape(count).to("cpu", torch.float64).numpy()


class TensorDictPrioritizedReplayBuffer:
    """A ring of tensordicts, drawn by priority (Schaul et al., 2016).

    A row is drawn with a probability proportional to (priority + eps)^alpha. A new row has the
    priority under `priority_key`, if it has this key, and otherwise the largest that was given so
    far. Samples have two keys more: `index`, the place in the ring, and `priority_weight`, the
    importance weight (weight / smallest weight of the buffer)^-beta.

    The keys, shapes and dtypes of the first tensordict are those of all others. Rows may be of any
    shape: with a tensordict of the batch size [8, 20], eight rows of 20 steps are added.

    Args:
      capacity: how many rows the buffer holds. In a full buffer, each new one replaces the oldest.
      alpha: how much priorities matter.
      beta: the exponent of the importance weights. It can be changed at any time.
      eps: added to every priority, so that every row can be drawn.
      priority_key: the key of priorities in tensordicts.
      batch_size: how many rows `sample` draws, if it is not told.
      transform: a function that is applied to each sample.
      device: where samples are put. None: they stay in the memory of the CPU.
      seed: the same seed and calls give the same samples. None: a random seed from torch.
    """

    def __init__(self, *, capacity: int, alpha: float, beta: float, eps: float = 1e-8,
                 priority_key: Key = "td_error", batch_size: Optional[int] = None,
                 transform: Optional[Callable[[TensorDictBase], TensorDictBase]] = None,
                 device: Union[torch.device, str, None] = None, seed: Optional[int] = None):
        if alpha < 0 or beta < 0:
            raise ValueError(f"alpha and beta must be >= 0, got alpha={alpha} and beta={beta}")
        self._capacity, self._alpha, self._eps = capacity, alpha, eps
        self._batch_size, self._transform = batch_size, transform
        self._device = None if device is None else torch.device(device)
        self._seed = int(torch.randint(2**62, ()).item()) if seed is None else seed
        self._rows: Optional[replay_buffer.ReplayBuffer] = None
        self._keys: Dict[str, Key] = {}  # by name of the column
        self._row_shape: Tuple[int, ...] = ()  # the batch size of one row
        self._weights = Weights(capacity)
        self._largest = 1.0
        self.beta, self.priority_key = beta, priority_key

    @property
    def alpha(self) -> float:
        """How much priorities matter."""
        return self._alpha

    @property
    def batch_size(self) -> Optional[int]:
        """How many rows `sample` draws, if it is not told."""
        return self._batch_size

    @property
    def write_count(self) -> int:
        """How many rows were ever added."""
        return 0 if self._rows is None else self._rows.added

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(capacity={self._capacity}, alpha={self._alpha}, "
                f"beta={self.beta}, size={len(self)}, keys={list(self._keys.values())})")

    def _make(self, data: TensorDictBase) -> replay_buffer.ReplayBuffer:
        """Makes the columns for tensordicts like this one."""
        spec: Dict[str, Any] = {}
        keys: Dict[str, Key] = {}
        for key in data.keys(include_nested=True, leaves_only=True):
            value = data.get(key)
            if key in _ADDED:
                continue
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"{key!r} is a {type(value).__name__}; rows consist of tensors")
            if value.dtype == torch.bfloat16:
                raise TypeError(f"{key!r} has the dtype bfloat16, which NumPy does not have; convert "
                                "it, for example to float32")
            keys[repr(key)] = key
            spec[repr(key)] = (tuple(value.shape[1:]), value[:0].detach().cpu().numpy().dtype)
        self._keys, self._row_shape = keys, tuple(data.batch_size[1:])
        # The weights are computed here, so the buffer takes them as they are.
        return replay_buffer.ReplayBuffer(self._capacity, spec, alpha=1.0, epsilon=0.0,
                                          seed=self._seed)

    def _powers(self, priorities: np.ndarray) -> np.ndarray:
        """Returns the weights of priorities."""
        if not (priorities >= 0).all() or not np.isfinite(priorities).all():
            raise ValueError(f"priorities must be finite and >= 0, got {priorities.min()} to "
                             f"{priorities.max()}; does the loss diverge?")
        return (priorities + self._eps) ** self._alpha

    def _columns(self, data: TensorDictBase) -> Dict[str, np.ndarray]:
        """Returns the rows of a tensordict by name of the column."""
        columns = {}
        for name, key in self._keys.items():
            value = data.get(key, None)
            if value is None:
                raise KeyError(f"the first rows had the key {key!r}, these have not")
            columns[name] = value.detach().cpu().numpy()
        return columns

    def _extend(self, data: TensorDictBase, first: int) -> None:
        """Adds at most as many rows as the buffer holds."""
        count = data.batch_size[0]
        priority = data.get(self.priority_key, None)
        largest = self._largest
        if priority is None:
            weights = np.full(count, (largest + self._eps) ** self._alpha)
        else:
            given = _reduced(priority, count)
            weights = self._powers(given)
            largest = max(largest, float(given.max()))
        assert self._rows is not None
        self._rows.add(self._columns(data), priorities=weights)
        self._weights.set(np.arange(first, first + count) % self._capacity, weights)
        self._largest = largest

    def extend(self, data: TensorDictBase, *,
               update_priority: Optional[bool] = None) -> torch.Tensor:
        """Adds the rows of a tensordict. Returns their places and sets them as its key `index`.
        `update_priority` has no effect: priorities are used if they are there."""
        if not isinstance(data, TensorDictBase) or data.ndim < 1:
            raise TypeError("extend() takes a TensorDict with at least one dimension; use add() for "
                            f"one row, got {type(data).__name__}")
        if self._rows is None:
            self._rows = self._make(data)
        first, count = self._rows.added, data.batch_size[0]
        for start in range(0, count, self._capacity):
            self._extend(data[start:start + self._capacity] if count > self._capacity else data,
                         first + start)
        places = torch.arange(first, first + count).remainder_(self._capacity)
        data.set("index", self._spread(places))
        return places

    def add(self, data: TensorDictBase) -> int:
        """Adds one row. Returns its place."""
        return int(self.extend(data.unsqueeze(0))[0])

    def _spread(self, values: torch.Tensor) -> torch.Tensor:
        """Repeats one value for each row over the shape of the row."""
        if not self._row_shape:
            return values
        return values.reshape(-1, *[1] * len(self._row_shape)).expand(-1, *self._row_shape)

    def sample(self, batch_size: Optional[int] = None, return_info: bool = False) -> Any:
        """Draws rows with replacement. With `return_info`, returns (sample, info)."""
        count = self._batch_size if batch_size is None else batch_size
        if count is None:
            raise RuntimeError("sample() must be told a batch_size, since the buffer has none")
        if self._rows is None or len(self._rows) == 0:
            raise RuntimeError("the buffer is empty")
        drawn = self._rows.sample(count, 0.0)
        places = drawn["indices"] % self._capacity
        weights = (self._weights.values[places] / self._weights.minimum()) ** -self.beta
        info = {"index": torch.from_numpy(places),
                "priority_weight": torch.from_numpy(weights.astype(np.float32))}
        batch = self._nest(drawn, count)
        for key, value in info.items():
            batch.set(key, self._spread(value))
        if self._device is not None:
            batch = batch.to(self._device)
        if self._transform is not None:
            batch = self._transform(batch)
        return (batch, info) if return_info else batch

    def _nest(self, drawn: Dict[str, np.ndarray], count: int) -> TensorDict:
        """Returns the columns of a sample as a tensordict."""
        root: Dict[str, Any] = {}
        for name, key in self._keys.items():
            part, path = root, (key,) if isinstance(key, str) else key
            for step in path[:-1]:
                part = part.setdefault(step, {})
            part[path[-1]] = torch.from_numpy(drawn[name])
        return TensorDict(root, batch_size=[count, *self._row_shape])

    def update_priority(self, index: Any, priority: Any) -> None:
        """Sets the priorities of rows by their places."""
        places = torch.as_tensor(index).reshape(-1).cpu().numpy()
        given = torch.as_tensor(priority)
        if given.numel() == 1:
            given = given.expand(len(places))
        elif len(places) == 0 or given.numel() % len(places):
            raise ValueError(f"got {len(places)} places and {given.numel()} priorities")
        self._update(places, _reduced(given, len(places)))

    def _update(self, places: np.ndarray, priorities: np.ndarray) -> None:
        if self._rows is None or not len(places):
            return
        if places.min() < 0 or places.max() >= self._capacity:
            raise IndexError(f"indices must be in 0 .. {self._capacity - 1}, got {places.min()} .. "
                             f"{places.max()}")
        newest = self._rows.added - 1
        numbers = newest - (newest - places) % self._capacity
        if numbers.min() <= newest - len(self._rows):
            raise IndexError(f"the buffer has {len(self)} rows, and none at some of these places")
        weights = self._powers(priorities)
        self._rows.update_priorities(numbers, weights)
        self._weights.set(places, weights)
        self._largest = max(self._largest, float(priorities.max()))

    def update_tensordict_priority(self, data: TensorDictBase) -> None:
        """Sets the priorities of the rows of a sample to those under `priority_key`."""
        count = data.batch_size[0]
        places = data.get("index").reshape(count, -1)[:, 0].cpu().numpy()
        self._update(places, _reduced(data.get(self.priority_key), count))

    def empty(self) -> None:
        """Removes all rows. Keys and shapes stay; new rows get the priority 1 again."""
        if self._rows is not None:
            self._rows.clear()
        self._weights.clear()
        self._largest = 1.0

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state, for a buffer with the same arguments."""
        return {"rows": None if self._rows is None else self._rows.state_dict(),
                "keys": dict(self._keys), "row_shape": self._row_shape, "beta": self.beta,
                "largest": self._largest}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores a state. After that, this buffer gives the same samples as the other one."""
        self._keys, self._row_shape = dict(state["keys"]), tuple(state["row_shape"])
        self.beta, self._largest = state["beta"], state["largest"]
        self._weights.clear()
        self._rows = None
        if state["rows"] is None:
            return
        spec = {n: (tuple(s), d) for n, (s, d) in state["rows"]["options"]["spec"].items()}
        self._rows = replay_buffer.ReplayBuffer(self._capacity, spec, alpha=1.0, epsilon=0.0)
        self._rows.load_state_dict(state["rows"])
        count = len(self._rows)
        numbers = np.arange(self._rows.added - count, self._rows.added)
        self._weights.set(numbers % self._capacity, state["rows"]["row_weights"][-count:])

    def dumps(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the state to a file."""
        torch.save(self.state_dict(), path)

    def loads(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Reads the state from a file that `dumps` wrote."""
        self.load_state_dict(torch.load(path, weights_only=False))
