# SPDX-License-Identifier: Apache-2.0
"""Batches of items as stacked NumPy arrays, and the iterator over them."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    SupportsIndex,
    Tuple,
    TypeVar,
    overload,
)

import numpy as np

from reprise import _core, tree
from reprise._check import milliseconds, name_columns, unknown_column
from reprise.errors import NotFoundError

if TYPE_CHECKING:
    from reprise.dataset import Dataset

__all__ = ["Batch", "BatchInfo", "BatchIterator", "TensorBatch"]

_T = TypeVar("_T")


class BatchInfo(NamedTuple):
    """Information about the items of a batch: arrays with one value for each item, in order.

    Fields:
      keys: uint64, for `Client.mutate_priorities` and `update_priorities`.
      probabilities: float64, the probability with which each item was drawn.
      table_size: int64, the number of items in the table when each item was drawn.
      priorities: float64.
      times_sampled: int32, how often each item has been sampled, including this time.
      weights: float64, importance weights `(table_size * probability) ** -beta`, divided by the
        largest of the batch; all 1 if `beta` is 0.
    """

    keys: np.ndarray[Any, np.dtype[np.uint64]]
    probabilities: np.ndarray[Any, np.dtype[np.float64]]
    table_size: np.ndarray[Any, np.dtype[np.int64]]
    priorities: np.ndarray[Any, np.dtype[np.float64]]
    times_sampled: np.ndarray[Any, np.dtype[np.int32]]
    weights: np.ndarray[Any, np.dtype[np.float64]]


if TYPE_CHECKING:  # type checkers take batch["obs"] of a named tuple for one of its fields

    class _Batch(Tuple[Any, ...]):
        data: Any
        info: BatchInfo
        lengths: Any

        def __new__(cls, data: Any, info: BatchInfo, lengths: Any = None) -> Batch: ...

        def _replace(self, **fields: Any) -> Batch: ...

else:

    class _Batch(NamedTuple):
        data: Any
        info: BatchInfo
        lengths: Any = None


class Batch(_Batch):
    """Items of a table. It is a named tuple, so that functions like `jax.tree.map` can traverse it.

    Fields:
      data: the stacked columns; the first dimension counts items. A nest like the `structure` of
        the dataset or like the table's signature; a list if there is neither. `batch["obs"]` is
        short for `batch.data["obs"]`. Type checkers take it for an array; for a column that is
        itself a nest, use `batch.data`.
      info: a `BatchInfo`. Its fields are attributes of the batch too.
      lengths: None if all items have the same length. Otherwise a nest like `data`. With
        `ragged="pad"`, it has the number of rows of each item; with `ragged="offsets"`, the first
        row of each item, and the end of the last. None for columns that are not ragged.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> Tuple[Any, ...]: ...

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return tuple.__getitem__(self, key)
        if isinstance(self.data, list):
            raise TypeError(
                f"batch[{key!r}]: the columns of this batch have no names, since the table has no "
                f"signature: create the table with one, or the sampler with structure={{{key!r}: "
                "None, ...}, or use batch.data[0]"
            )
        try:
            return self.data[key]
        except KeyError:
            raise unknown_column("the batch", key, self.data) from None

    @property
    def size(self) -> int:
        """How many items there are."""
        return len(self.info.keys)

    @property
    def keys(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return self.info.keys

    @property
    def probabilities(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return self.info.probabilities

    @property
    def table_size(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self.info.table_size

    @property
    def priorities(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return self.info.priorities

    @property
    def times_sampled(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        return self.info.times_sampled

    @property
    def weights(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return self.info.weights


if TYPE_CHECKING:

    class TensorBatch(Batch):
        """A batch whose arrays, except for the keys, are those of another library."""

        def __getitem__(self, key: Any) -> Any: ...

        @property
        def probabilities(self) -> Any: ...
        @property
        def table_size(self) -> Any: ...
        @property
        def priorities(self) -> Any: ...
        @property
        def times_sampled(self) -> Any: ...
        @property
        def weights(self) -> Any: ...

else:
    TensorBatch = Batch


class BatchIterator:
    """An iterator over batches.

    `close()`, or the end of a `with` block, ends its threads. Otherwise they end when the iterator
    is garbage-collected.
    """

    def __init__(self, dataset: Dataset, *, depth: Optional[int] = None):
        self._client = dataset._client  # which may keep its server from being garbage-collected
        self._packer = dataset.take_packer()
        self._size = dataset.batch_size
        self._plan = dataset._plan
        self._timeout_ms = dataset._timeout_ms
        if dataset._options["checked"]:
            dataset.signature()  # waits for the server with a timeout and a warning
        self._sampler = dataset.sampler()
        self._take: Any = None
        if depth is None:
            depth = dataset._ahead["depth"]
        if depth:
            self.start(depth, dataset._ahead["reuse"], dataset._ahead["memory"])

    def start(self, depth: int, reuse: int, memory: Any) -> None:
        """Starts to prefetch batches."""
        self._sampler.start(self._size, depth=depth, reuse=reuse, memory=memory, **self._plan)
        self._take = self._sampler.take

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> Batch:
        batch = self.take()
        if batch is None:
            raise StopIteration
        return batch

    def take(self, timeout: Any = False) -> Optional[Batch]:
        """Returns the next batch, or None at the end. `timeout`: seconds, for this call only."""
        ms = self._timeout_ms if timeout is False else milliseconds("timeout", timeout)
        try:
            if self._take is not None:
                core = self._take(ms)
            else:
                core = self._sampler.batch(self._size, timeout_ms=ms, **self._plan)
        except ValueError as error:
            if self._packer is None or isinstance(error, NotFoundError):
                raise
            paths = enumerate(map(self._packer.path, range(self._packer.leaf_count)))
            raise name_columns(error, dict(paths)) from None
        return None if core is None else pack(core, self._packer)

    def why(self) -> str:
        """Returns a sentence that says why no batch is ready."""
        return self._sampler.why()

    def close(self) -> None:
        """Ends the iterator; a call that waits in another thread raises an error."""
        self._sampler.close()

    def __enter__(self) -> BatchIterator:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def pack(core: _core.Batch, packer: Optional[tree.Structure]) -> Batch:
    """Converts a batch of the C extension to a `Batch`."""
    data, lengths = core.columns, core.lengths
    if all(column is None for column in lengths):
        lengths = None
    if packer is not None:
        if packer.leaf_count != len(data):
            raise ValueError(
                f"items have {len(data)} column{'' if len(data) == 1 else 's'}, but the structure has "
                f"{packer.leaf_count}: {packer}"
            )
        data = packer.pack(data)
        lengths = lengths and packer.pack(lengths)
    info = BatchInfo(
        core.keys,
        core.probabilities,
        core.table_sizes,
        core.priorities,
        core.times_sampled,
        core.weights,
    )
    return Batch(data, info, lengths)


def map_batch(function: Any, batch: Batch, kind: type = np.ndarray) -> TensorBatch:
    """Applies `function` to all arrays of type `kind` in a batch, except keys and strings."""

    def convert(leaf: Any) -> Any:
        return function(leaf) if isinstance(leaf, kind) and leaf.dtype != object else leaf

    info = batch.info
    return TensorBatch(
        tree.map_structure(convert, batch.data),
        BatchInfo(info.keys, *(convert(leaf) for leaf in info[1:])),
        None if batch.lengths is None else tree.map_structure(convert, batch.lengths),
    )


def iterate(take: Callable[[], Optional[_T]]) -> Iterator[_T]:
    """Yields the results of `take()` until it returns None."""
    while True:
        item = take()
        if item is None:
            return
        yield item


def columns_of(batch: Batch) -> List[np.ndarray]:
    """Returns the columns in flattened order."""
    data: Any = batch.data
    return data if type(data) is list else tree.flatten(data)
