# SPDX-License-Identifier: Apache-2.0
"""A prioritized replay buffer for Tianshou. Imports tianshou.

    from reprise.frameworks.tianshou import PrioritizedVectorReplayBuffer

    buffer = PrioritizedVectorReplayBuffer(total_size=100_000, buffer_num=8, alpha=0.6, beta=0.4)

The class is a subclass of Tianshou's `PrioritizedVectorReplayBuffer`, with the same arguments and
methods. Algorithms of Tianshou read transitions by their places, so these stay where Tianshou keeps
them. Draws, weights and reads of batches are ours.
"""

from __future__ import annotations

import copyreg
import functools
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np
import torch
from tianshou import data
from tianshou.data import Batch

from reprise.frameworks._weights import Tree

__all__ = ["PrioritizedVectorReplayBuffer"]

_SOURCE = "(source)"  # key of what an _Unread has not read; no field has this name


class _Tree(Tree):
    """`Tree` with the operators of Tianshou's `SegmentTree`."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        places = np.atleast_1d(index)
        try:
            self.set(places, value)
        except (ValueError, OverflowError):
            if len(places) and not 0 <= places.min() <= places.max() < len(self):
                raise IndexError(f"the buffer has {len(self)} places, so there is no place "
                                 f"{places.min()} or {places.max()}") from None
            if np.size(value) not in (1, len(places)):
                raise ValueError(f"got {len(places)} places and {np.size(value)} "
                                 "priorities") from None
            if not np.isfinite(value).all():
                raise ValueError("priorities must be finite; does the loss diverge?") from None
            raise


def _rows(value: Any, places: np.ndarray) -> Any:
    """Returns the rows of a part of the buffer."""
    if isinstance(value, np.ndarray):
        return value.take(places, axis=0)
    if isinstance(value, Batch) and not value.get_keys():
        return Batch()
    return value[places]


def _fits(stored: Any, given: Any, count: int) -> bool:
    """True if `given` has `count` rows of the same keys, shapes and dtypes as `stored`."""
    if isinstance(stored, np.ndarray):
        return (isinstance(given, np.ndarray) and given.dtype == stored.dtype
                and given.shape == (count, *stored.shape[1:]))
    if not (type(stored) is Batch and isinstance(given, Batch)):
        return False
    inner, given_inner = stored.__dict__, given.__dict__
    return inner.keys() == given_inner.keys() and all(
        _fits(value, given_inner[key], count) for key, value in inner.items())


def _write(stored: Any, places: np.ndarray, given: Any) -> None:
    """Writes rows that fit."""
    if isinstance(stored, np.ndarray):
        stored[places] = given
        return
    for key, value in stored.__dict__.items():
        _write(value, places, given.__dict__[key])


# Returns the dict of an object, also if the class has a property of this name.
_dict_of: Callable[[Any], Dict[str, Any]] = next(
    c.__dict__["__dict__"] for c in Batch.__mro__ if "__dict__" in c.__dict__).__get__


class _Unread(Batch):
    """Rows of a buffer whose fields are read when they are first used.

    An algorithm uses few of the fields: one batch for `obs`, another one of the same rows for
    `obs_next`. Attributes are read one by one. All methods of `Batch` use `__dict__`, which reads
    the fields that are left; after that, the object is a plain `Batch`. The buffer reads them too
    before the rows change.
    """

    @staticmethod
    def of(buffer: "PrioritizedVectorReplayBuffer", places: np.ndarray) -> "_Unread":
        made = _Unread.__new__(_Unread)
        names = dict.fromkeys((*buffer._meta.__dict__, "obs_next", "info", "policy", "weight"))
        _dict_of(made)[_SOURCE] = (buffer, places.copy(), names)
        return made

    @property
    def __dict__(self) -> Dict[str, Any]:  # type: ignore[override]
        self.read_all()
        return _dict_of(self)

    def read(self, name: str) -> None:
        """Reads a field, if it is not read yet."""
        fields = _dict_of(self)
        if _SOURCE not in fields:
            return
        buffer, places, names = fields[_SOURCE]
        if name in names:
            fields[name] = buffer._field(name, places)
            del names[name]

    def read_all(self) -> None:
        """Reads the fields that are left."""
        fields = _dict_of(self)
        if _SOURCE in fields:
            for name in list(fields[_SOURCE][2]):
                self.read(name)
            fields.pop(_SOURCE, None)
            object.__setattr__(self, "__class__", Batch)

    def __getattr__(self, name: str) -> Any:
        source = _dict_of(self).get(_SOURCE)
        if source is not None and name in source[2]:
            self.read(name)
            return _dict_of(self)[name]
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = _dict_of(self)
        if _SOURCE not in fields:
            return super().__setattr__(name, value)
        if type(value) is not torch.Tensor:
            plain = Batch()
            setattr(plain, name, value)  # converts the value
            value = plain.__dict__[name]
        fields[_SOURCE][2].pop(name, None)
        fields[name] = value
        return None

    def pop(self, key: str, default: Any = None) -> Any:
        self.read(key)
        return _dict_of(self).pop(key, default)

    def __len__(self) -> int:
        source = _dict_of(self).get(_SOURCE)
        return super().__len__() if source is None else len(source[1])

    def __eq__(self, other: object) -> bool:
        self.read_all()
        return self == other

    __hash__ = None  # type: ignore[assignment]  # as in Batch

    def __reduce__(self) -> Any:
        self.read_all()
        return copyreg.__newobj__, (Batch,), self.__getstate__()  # type: ignore[attr-defined]


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
        self._unread: Dict[int, "weakref.ref[_Unread]"] = {}

    def _read_pending(self, name: Optional[str] = None) -> None:
        """Reads the fields that batches have not read yet, or the field of this name. Called before
        the rows change."""
        for ref in list(self._unread.values()):
            batch = ref()
            if isinstance(batch, _Unread):
                batch.read_all() if name is None else batch.read(name)
        if name is None:
            self._unread.clear()

    def __getstate__(self) -> Dict[str, Any]:
        self._read_pending()
        return self.__dict__.copy()

    def save_hdf5(self, path: str, compression: Optional[str] = None) -> None:
        self._read_pending()
        super().save_hdf5(path, compression)

    def add(self, batch: Any, buffer_ids: Any = None) -> Tuple[np.ndarray, ...]:
        self._read_pending()
        ids = np.arange(self.buffer_num) if buffer_ids is None else np.asarray(buffer_ids)
        fields = self._fields_to_add(batch, len(ids))
        if fields is None:
            return super().add(batch, buffer_ids)
        inner = self.buffers[ids]
        found = [b._update_state_pre_add(rew, done)
                 for b, rew, done in zip(inner, fields["rew"], fields["done"])]
        at, returns, lengths, starts = (np.array(values) for values in zip(*found))
        offset = self._offset[ids]
        places = at + offset
        self.last_index[ids] = places
        self._lengths[ids] = [b._size for b in inner]
        stored = self._meta.__dict__
        for name, value in fields.items():
            _write(stored[name], places, value)
        self.init_weight(places)
        return places, returns, lengths, starts + offset

    def _fields_to_add(self, batch: Any, count: int) -> Optional[Dict[str, Any]]:
        """Returns the fields of a batch, if they are like those in the buffer, and the options are
        the usual ones; else None. Tianshou adds all other batches."""
        if self._save_only_last_obs or not self._save_obs_next or not count:
            return None
        given, stored = batch.__dict__, self._meta.__dict__
        fields = {name: given[name] for name in self._input_keys if name in given}
        if "terminated" not in fields or "truncated" not in fields:
            return None
        fields["done"] = np.logical_or(fields["terminated"], fields["truncated"])
        same = fields.keys() == stored.keys() and all(
            _fits(stored[name], value, count) for name, value in fields.items())
        return fields if same else None

    def unfinished_index(self) -> np.ndarray:
        last = self.last_index[self._lengths > 0]
        return last[~self._meta.__dict__["done"][last]] if len(last) else last

    def set_batch(self, batch: Any) -> None:
        self._read_pending()
        super().set_batch(batch)

    def set_array_at_key(self, *args: Any, **kwargs: Any) -> None:
        self._read_pending()
        super().set_array_at_key(*args, **kwargs)

    def dropnull(self) -> None:
        self._read_pending()
        super().dropnull()

    def set_beta(self, beta: float) -> None:
        self._read_pending("weight")
        super().set_beta(beta)

    def update_weight(self, index: np.ndarray, new_weight: Any) -> None:
        self._read_pending("weight")
        super().update_weight(index, new_weight)

    def sample(self, batch_size: Optional[int]) -> Tuple[Any, np.ndarray]:
        places = self.sample_indices(batch_size)
        return (self._unread_at(places) if self._is_plain else self[places]), places

    def reset(self, keep_statistics: bool = False) -> None:
        self._read_pending()
        super().reset(keep_statistics)
        self.weight.clear()

    def sample_indices(self, batch_size: Optional[int]) -> np.ndarray:
        if batch_size is None or batch_size <= 0:
            return super().sample_indices(batch_size)
        if len(self) == 0:
            raise ValueError("the buffer is empty: add transitions before sample()")
        return self.weight.draw(batch_size)

    def _field(self, name: str, places: np.ndarray) -> Any:
        """Returns a field of a batch."""
        if name == "weight":
            weight = self.get_weight(places)
            return weight / np.max(weight) if self._weight_norm else weight
        value = self._meta.__dict__.get(name)
        return Batch() if value is None else _rows(value, places)

    @property
    def _is_plain(self) -> bool:
        """True if a field of a batch is the rows at its places."""
        return bool(self.stack_num == 1 and self._save_obs_next)

    def _unread_at(self, places: np.ndarray) -> _Unread:
        batch = _Unread.of(self, places)
        key = id(batch)
        self._unread[key] = weakref.ref(batch, functools.partial(self._unread.pop, key))
        return batch

    def __getitem__(self, index: Any) -> Any:
        if not (isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim == 1
                and self._is_plain):
            return super().__getitem__(index)
        if len(index) and not -self.maxsize <= index.min() <= index.max() < self.maxsize:
            raise IndexError(f"the buffer has {self.maxsize} places, so there is no place "
                             f"{index.min()} or {index.max()}")
        return self._unread_at(index)
