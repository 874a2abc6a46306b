# SPDX-License-Identifier: Apache-2.0
"""The trajectory writer, which appends steps and makes items of any recent rows.

    with client.trajectory_writer(num_keep_alive_refs=3) as writer:
        for step in episode:
            writer.append({"observation": step.observation, "reward": step.reward})
            if writer.episode_steps >= 3:
                writer.create_item("replay", priority=1.0, trajectory={
                    "observation": writer.history["observation"][-3:],  # three rows
                    "reward": writer.history["reward"][-1],  # one, without a row dimension
                })
        writer.end_episode()

Every leaf of a step is a row of a column. Rows are collected into chunks, and all items that use a
row share it. `writer.history` has the structure of the steps. Indexing one of its leaves by an int,
a slice or a list of ints gives a `TrajectoryColumn`, and an item is any nest of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union, overload

from reprise import _core, tree
from reprise._log import CLOSED_EARLY, say_dropped

__all__ = ["TrajectoryColumn", "TrajectoryWriter"]

TrajectoryColumn = _core.TrajectoryColumn
_ColumnHistory = _core.ColumnHistory

Path = Tuple[Union[int, str], ...]

if TYPE_CHECKING:

    class _History(_core.ColumnHistory):
        """The nest of histories, or a part of it, which may be a history."""

        @overload
        def __getitem__(self, key: str, /) -> _History: ...
        @overload
        def __getitem__(self, key: Any, /) -> TrajectoryColumn: ...
        def __getattr__(self, name: str) -> Any: ...


class TrajectoryWriter(_core.TrajectoryWriter):
    """Writes steps, and items made of them. Made by `Client.trajectory_writer`.

    If several threads use a writer, one call runs at a time. As a context manager, the writer
    flushes at the end. If an exception ends the block or the flush, the writer is closed without
    waiting: items that are not confirmed are dropped, and their number is logged. `close()` does the
    same, and garbage collection drops such items without a log.
    """

    def __init__(self, client: _core.Client, num_keep_alive_refs: int, *, validate: bool = True,
                 max_items: int = 0, max_bytes: int = 0,
                 timeout: Optional[float] = None) -> None:
        """Makes a writer. Its items may refer to the last `num_keep_alive_refs` rows of a column.

        Args:
          client: the extension's client.
          num_keep_alive_refs: see above; `configure` changes it for one column.
          validate: compare each item with the signature of its table when it is created. The
            constructor then waits for the signatures, at most `timeout` seconds.
          max_items: how many items may be unconfirmed before `create_item` waits; 0: 100,000.
          max_bytes: how many bytes unconfirmed items may have before `create_item` waits; 0: 1 GiB.
        """
        super().__init__(client, num_keep_alive_refs, validate=validate, max_items=max_items,
                         max_bytes=max_bytes, timeout=timeout)
        self._paths: Dict[Path, _core.ColumnHistory] = {}
        self._configs: Dict[Path, tuple] = {}
        self._nest: Any = None
        self._closed = False

    if TYPE_CHECKING:

        @property
        def history(self) -> _History: ...

    def __enter__(self) -> "TrajectoryWriter":
        return self

    def __exit__(self, exc_type, exc_value, exc_traceback) -> None:
        try:
            if exc_type is None:
                if not self._closed:
                    self.flush()
                return
        except BaseException:  # Ctrl-C is one
            self._drop("an exception ended its `with`")
            raise
        self._drop("an exception ended its `with`")

    def close(self) -> None:
        """Closes the writer without waiting. Items that are not confirmed are dropped, as in Reverb, and
        their number is logged: call `flush` before."""
        self._drop(CLOSED_EARLY)

    def _drop(self, cause: str) -> None:
        """Closes the writer without waiting, and logs the number of dropped items."""
        if self._closed:
            return
        items = self.pending
        self._closed = True
        super().close()
        say_dropped("TrajectoryWriter", items, cause)

    def configure(self, path: Path, *, num_keep_alive_refs: int,
                  max_chunk_length: Optional[int], codec: Optional[str] = None,
                  delta: bool = False) -> None:
        """Sets the options of one column, which need not exist yet.

        Args:
          path: the keys and indices that lead to the leaf, such as `("observation", 0)`.
          num_keep_alive_refs: how many of the column's latest rows items may refer to.
          max_chunk_length: the number of rows in a chunk; None: tuned to the data.
          codec: "snappy", "none", "zstd" or "lz4"; Reverb's clients cannot read the last two.
            None: "none" for rows under 1 KiB, "snappy" for others.
          delta: store integers as differences between rows.

        Raises:
          ValueError: `num_keep_alive_refs` < 1, `max_chunk_length` not in
            [1, num_keep_alive_refs], an unknown codec.
          StatusError: the column already has rows.
        """
        if num_keep_alive_refs < 1:
            raise ValueError(f"num_keep_alive_refs ({num_keep_alive_refs}) must be a positive "
                             "integer")
        if max_chunk_length is not None and not 1 <= max_chunk_length <= num_keep_alive_refs:
            raise ValueError(f"max_chunk_length ({max_chunk_length}) must be None or a "
                             "positive integer <= num_keep_alive_refs "
                             f"({num_keep_alive_refs})")
        if codec not in (None, "snappy", "none", "zstd", "lz4"):
            raise ValueError("codec must be None, 'snappy', 'none', 'zstd' or 'lz4', got "
                             f"{codec!r}")
        path = (path,) if isinstance(path, (str, int)) else tuple(path)
        config = (num_keep_alive_refs, max_chunk_length or 0, codec, delta)
        if path in self._paths:
            self._configure(self._paths[path], *config)
        else:
            self._configs[path] = config

    def _learn(self, data: Any) -> Tuple[Any, List[int]]:
        """Called by the C extension for a step of a new structure. Returns the new nest of
        histories (None: unchanged), and the column of each leaf (-1: the leaf must be None)."""
        leaves = tree.flatten_with_path(data)
        nest = self._merge(self._nest, data, ()) if leaves or self._nest is None else self._nest
        changed = None
        if any(path not in self._paths for path, _ in leaves) or self._nest is None:
            self._nest = changed = self._create(nest, ())
        columns = [self._paths.get(path) for path, _ in leaves]
        return changed, [-1 if column is None else column._number for column in columns]

    def _create(self, nest: Any, path: Path) -> Any:
        """Returns the nest with a column for each leaf."""
        if tree.is_nested(nest):
            return _rebuild(nest, [(key, self._create(child, path + (key,)))
                                   for key, child in _children(nest)])
        if path not in self._paths:
            self._paths[path] = self._add_column(path, *self._configs.get(path, ()))
            self._configs.pop(path, None)
        return self._paths[path]

    def _merge(self, known: Any, data: Any, path: Path) -> Any:
        """Returns the union of both structures: `known` with the new parts of `data`."""
        if known is None or data is None:
            return data if known is None else known
        was_nest, is_nest = tree.is_nested(known), tree.is_nested(data)
        if not was_nest and not is_nest:
            return known
        if was_nest != is_nest:
            was, now = ("structure", "value") if was_nest else ("value", "structure")
            raise ValueError(f"Field {path} was a {was} in an earlier step but is a {now} now: "
                             f"{data}")
        if isinstance(known, Mapping) != isinstance(data, Mapping) and not _fields(known):
            raise ValueError(f"Field {path} was a {type(known).__name__} in an earlier step but "
                             f"is a {type(data).__name__} with other keys now: {data}")
        merged = dict(_children(known))
        for key, child in _children(data):
            merged[key] = self._merge(merged.get(key), child, path + (key,))
        return _rebuild(known, list(merged.items()))


def _fields(nest: Any) -> Optional[Tuple[str, ...]]:
    """Returns the fields of a named tuple; None for other objects."""
    return getattr(type(nest), "_fields", None) if isinstance(nest, tuple) else None


def _children(nest: Any) -> List[Tuple[Any, Any]]:
    """Returns the parts of a nest in their own order, each with its key."""
    if isinstance(nest, Mapping):
        return list(nest.items())
    fields = _fields(nest)
    return list(enumerate(nest)) if fields is None else list(zip(fields, nest))


def _rebuild(nest: Any, children: List[Tuple[Any, Any]]) -> Any:
    """Returns a nest of the same type with these children, which may be more than it had."""
    if isinstance(nest, Mapping):
        made: Any = dict(children)
        if type(nest) is dict:
            return made
        try:
            return type(nest)(made)
        except TypeError:
            return made
    values = [child for _, child in children]
    fields = _fields(nest)
    if fields is None:
        return tuple(values) if isinstance(nest, tuple) else values
    if len(values) > len(fields):
        raise ValueError(f"a {type(nest).__name__} has no field {children[len(fields)][0]!r}")
    return type(nest)(*values)
