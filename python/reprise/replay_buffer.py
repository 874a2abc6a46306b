# SPDX-License-Identifier: Apache-2.0
"""A replay buffer in this process: no server, no tables, three methods.

    >>> import numpy as np
    >>> buffer = ReplayBuffer(100_000, {
    ...     "obs": ((4,), np.float32), "next_obs": ((4,), np.float32),
    ...     "action": ((), np.int64), "reward": ((), np.float32), "done": ((), bool)}, seed=1)
    >>> buffer.add(obs=np.zeros(4), next_obs=np.ones(4), action=1, reward=0.5, done=False)
    >>> len(buffer)
    1

`add` takes one transition, or many at once in arrays with one more dimension in front. `sample`
returns a dict of stacked arrays. `update_priorities` sets the priorities of sampled transitions:

    >>> batch = buffer.sample(32)
    >>> batch["obs"].shape, batch["weights"].shape
    ((32, 4), (32,))
    >>> buffer.update_priorities(batch["indices"], np.full(32, 0.7))
    32

A transition is drawn with a probability proportional to (priority + epsilon)^alpha (Schaul et al.,
2016); with alpha=0 all are equally likely, and there are no priorities.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import numpy as np

from reprise import _core, specs
from reprise._check import suggest_names, whole_number

__all__ = ["ReplayBuffer"]

_RESERVED = ("indices", "priorities", "weights")
_FORMAT = 1
_BLOCK_BYTES = 16 << 20


def _column(name: Any, spec: Any) -> Tuple[Tuple[int, ...], np.dtype]:
    """Returns the shape and the dtype of one row of a column."""
    if not isinstance(name, str):
        raise TypeError(f"columns are named by str, got {name!r}")
    if name in _RESERVED:
        raise ValueError(f"a column must not be called '{name}': sample() or add() uses that name")
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], type):
        raise TypeError(f"column '{name}': the shape comes before the dtype, got {spec!r}")
    if isinstance(spec, tuple) and len(spec) != 2 and all(type(size) is int for size in spec):
        raise TypeError(f"column '{name}': write (shape, dtype), such as ({spec!r}, np.float32), got "
                        f"{spec!r}")
    if isinstance(spec, tuple) and len(spec) == 2 and not isinstance(spec[0], (float, bool)):
        spec = specs.TensorSpec(*spec)
    elif isinstance(spec, (list, tuple)):
        spec = np.asarray(spec)
    if isinstance(spec, type):
        raise TypeError(f"column '{name}': write (shape, dtype), such as ((), np.{spec.__name__}), "
                        f"got {spec!r}")
    if not isinstance(spec, specs.TensorSpec):
        spec = specs.convert(spec)
    if not isinstance(spec, specs.TensorSpec):
        raise TypeError(f"column '{name}': a column is one array; give each part of a nest a "
                        "column of its own")
    if spec.shape is None or None in spec.shape:
        raise ValueError(f"column '{name}': rows have one shape, got {spec.shape}")
    return spec.shape, spec.dtype.newbyteorder("=")


def _row_bytes(columns: Mapping[str, Tuple[Tuple[int, ...], np.dtype]],
               frames: Mapping[str, int]) -> int:
    """Returns the bytes of a transition without its frames."""
    return sum(math.prod(shape) * dtype.itemsize for name, (shape, dtype) in columns.items()
               if name not in frames)


@suggest_names
class ReplayBuffer(_core.ReplayBuffer):
    """A ring of transitions, sampled by priority.

    Args:
      capacity: how many transitions the buffer holds. In a full buffer, each new one replaces the
        oldest. Memory is allocated as transitions are added, unless `preallocate` is set.
      spec: the columns of a transition: a mapping from names to `(shape, dtype)`, specs of any
        library that `reprise.specs.convert` accepts, or one transition as an example.
      alpha: how much priorities matter. 0: not at all.
      beta: the exponent of the importance weights, the default of `sample`.
      epsilon: added to every priority, so that every transition can be drawn.
      seed: the same seed and calls give the same samples. None: a random seed.
      frames: the columns whose values consist of frames along the first axis, and how many frames
        a value has: `{"obs": 4, "next_obs": 4}` for stacks of four images, 1 for observations that
        are not stacked. Each frame is then stored once, although it is in up to eight stacks, and
        parts that many frames have in common are stored once. Frames are found by comparing their
        bytes, so the order of environments and the ends of episodes do not matter. Samples are
        exactly the rows that were added.
      preallocate: whether to take the memory of all transitions now. This takes some tenths of a
        second for each GB, and `add` never waits for new pages while the buffer fills for the first
        time. Frames still take their memory when they are added. Raises MemoryError if the
        transitions need more than the memory that is available.

    Several threads may call the methods; a lock lets one call run at a time.

    >>> ReplayBuffer(10, {"obs": np.zeros((4, 84, 84), np.uint8), "reward": 0.0},
    ...              frames={"obs": 4})
    ReplayBuffer(10, {'obs': ((4, 84, 84), 'uint8'), 'reward': ((), 'float64')}, size=0)
    """

    def __init__(self, capacity: int, spec: Mapping[str, Any], *, alpha: float = 0.6,
                 beta: float = 0.4, epsilon: float = 1e-6, seed: Optional[int] = None,
                 frames: Optional[Mapping[str, int]] = None, preallocate: bool = False):
        capacity = whole_number("capacity", capacity)
        if capacity < 0:
            raise ValueError(f"capacity must be >= 1, got {capacity}")
        if not hasattr(spec, "items"):
            raise TypeError(f"spec must map names to columns, got {type(spec).__name__}")
        if frames is not None and not hasattr(frames, "items"):
            raise TypeError("frames maps columns to their number of frames, such as {'obs': 4}, got "
                            f"{frames!r}")
        frames = dict(frames or {})
        columns = {name: _column(name, value) for name, value in spec.items()}
        for name, count in frames.items():
            if name not in columns:
                raise ValueError(f"frames names '{name}', which is no column")
            shape = columns[name][0]
            if count < 1 or (count > 1 and (not shape or shape[0] % count)):
                raise ValueError(f"column '{name}': its shape {shape} is not {count} frames along "
                                 "the first axis")
        self._options = {"capacity": capacity, "alpha": float(alpha), "beta": float(beta),
                         "epsilon": float(epsilon), "frames": frames,
                         "spec": {n: (s, d.str) for n, (s, d) in columns.items()}}
        if preallocate:
            from reprise.free_memory import check_memory

            check_memory(f"preallocate=True with a capacity of {capacity:,}",
                         capacity * _row_bytes(columns, frames))
        seed = int.from_bytes(os.urandom(8), "little") if seed is None else int(seed) % 2**64
        super().__init__(capacity, tuple((n, d, s, frames.get(n, 0))
                                              for n, (s, d) in columns.items()),
                         float(alpha), float(beta), float(epsilon), seed, bool(preallocate))

    @classmethod
    def from_spaces(cls, capacity: int, observation_space: Any, action_space: Any, *,
                    alpha: float = 0.6, beta: float = 0.4, epsilon: float = 1e-6,
                    seed: Optional[int] = None, frames: Optional[Mapping[str, int]] = None,
                    preallocate: bool = False) -> "ReplayBuffer":
        """Returns a buffer for the spaces of a Gymnasium environment.

        Its columns are obs, next_obs, action, reward and done, in this order, so that the values of
        a step may be given by position:

            buffer = ReplayBuffer.from_spaces(100_000, env.observation_space, env.action_space)
            buffer.add(obs, next_obs, action, reward, terminated)

        Args:
          capacity: how many transitions the buffer holds.
          observation_space, action_space: spaces whose values are one array each, such as `Box`,
            `Discrete`, `MultiDiscrete` and `MultiBinary`.
          alpha, beta, epsilon, seed, frames, preallocate: as those of the class.

        Raises:
          TypeError: one of them is not a space, or its values are not single arrays.
        """
        for name, space in (("observation_space", observation_space),
                            ("action_space", action_space)):
            if not hasattr(space, "shape") and not hasattr(space, "spaces"):
                raise TypeError(f"{name} must be a space of Gymnasium, got {space!r}")
        options: Any = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "seed": seed,
                        "frames": frames, "preallocate": preallocate}
        return cls(capacity, {"obs": observation_space, "next_obs": observation_space,
                              "action": action_space, "reward": ((), np.float32),
                              "done": ((), np.bool_)}, **options)

    @property
    def columns(self) -> Dict[str, Tuple[Tuple[int, ...], np.dtype]]:
        """The shape and the dtype of each column, by name."""
        return {n: (tuple(s), np.dtype(d)) for n, (s, d) in self._options["spec"].items()}

    def __repr__(self) -> str:
        columns = {n: (s, d.name) for n, (s, d) in self.columns.items()}
        return f"{type(self).__name__}({self.capacity}, {columns}, size={len(self)})"

    def _blocks(self) -> Iterator[Tuple[Dict[str, np.ndarray], np.ndarray]]:
        """Yields all transitions, the oldest first, in blocks of some megabytes."""
        row = sum(int(np.prod(s, dtype=np.int64)) * d.itemsize for s, d in self.columns.values())
        step = max(1, _BLOCK_BYTES // row)
        first, end = self.added - len(self), self.added
        while first < end:
            yield self._read(first, min(step, end - first))
            first += step

    def _head(self) -> Dict[str, Any]:
        added, largest, rng = self._state()
        return {"format": _FORMAT, "options": self._options, "next": added - len(self),
                "largest_priority": largest, "rng": list(rng)}

    def _begin_load(self, head: Mapping[str, Any]) -> None:
        missing = [name for name in ("format", "options", "next", "largest_priority", "rng")
                   if name not in head]
        if missing:
            raise ValueError("the state must be one of ReplayBuffer.state_dict(), but it has no "
                             f"{missing[0]!r}")
        if head["format"] != _FORMAT:
            raise ValueError(f"the state has format {head['format']}, this is format {_FORMAT}")
        ours, theirs = self.columns, head["options"]["spec"]
        theirs = {n: (tuple(s), np.dtype(d)) for n, (s, d) in theirs.items()}
        if ours != theirs:
            raise ValueError(f"the state is of columns {theirs}, the buffer has {ours}")
        self._set_state(head["next"], head["largest_priority"], tuple(head["rng"]))

    def state_dict(self) -> Dict[str, Any]:
        """Returns the whole state as plain Python objects and arrays, for your own checkpoints.

        Frames that are shared in the buffer are repeated here. For large buffers see `save`.
        """
        blocks = list(self._blocks())
        rows = {name: np.concatenate([b[0][name] for b in blocks]) if blocks
                else np.empty((0, *shape), dtype) for name, (shape, dtype) in self.columns.items()}
        weights = np.concatenate([b[1] for b in blocks]) if blocks else np.empty(0)
        return {**self._head(), "rows": rows, "row_weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the state of a buffer with the same columns. If the capacity is less, only the
        newest transitions are kept. After that, this buffer gives the same samples as the other
        one would have."""
        self._begin_load(state)
        if len(state["row_weights"]):
            self._put_back(dict(state["rows"]), state["row_weights"])

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the buffer to a file: a compressed zip archive of .npy files with some megabytes
        of transitions each. The caller must not add transitions meanwhile. An existing file is
        replaced when the new one is complete."""
        import json
        import zipfile

        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "save() needs the name of a file, and this is a directory",
                                    os.fspath(path))
        part = f"{os.fspath(path)}.part"
        try:
            with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr("head.json", json.dumps(self._head()))
                for i, (rows, weights) in enumerate(self._blocks()):
                    for name, array in {**rows, "weights": weights}.items():
                        with archive.open(f"{i:06}/{name}.npy", "w", force_zip64=True) as file:
                            np.lib.format.write_array(file, array, allow_pickle=False)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(part)
            raise

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "ReplayBuffer":
        """Returns the buffer that `save` wrote; it continues as the saved one would have.

        Raises:
          FileNotFoundError: there is no such file.
          ValueError: the file is damaged, or `save` did not write it.
        """
        import zipfile
        import zlib

        if not zipfile.is_zipfile(path) and os.path.exists(path):
            raise ValueError(f"{os.fspath(path)!r} is not a file of ReplayBuffer.save()")
        try:
            return cls._from_archive(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise ValueError(f"{os.fspath(path)!r} is damaged, or not a file of "
                             f"ReplayBuffer.save(): {error}") from error

    @classmethod
    def _from_archive(cls, path: Union[str, "os.PathLike[str]"]) -> "ReplayBuffer":
        import json
        import zipfile

        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read("head.json"))
            spec = {n: (tuple(s), d) for n, (s, d) in head["options"]["spec"].items()}
            buffer = cls(**{**head["options"], "spec": spec})
            buffer._begin_load(head)
            for i in range(sum(n.endswith("/weights.npy") for n in archive.namelist())):
                block = {}
                for name in (*buffer.columns, "weights"):
                    with archive.open(f"{i:06}/{name}.npy") as file:
                        block[name] = np.lib.format.read_array(file, allow_pickle=False)
                buffer._put_back(block, block.pop("weights"))
        return buffer

    def __reduce__(self):
        return _rebuild, (type(self), self._options), self.state_dict()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.load_state_dict(state)


def _rebuild(cls: type, options: Mapping[str, Any]) -> ReplayBuffer:
    return cls(**options)
