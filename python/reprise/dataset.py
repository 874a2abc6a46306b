# SPDX-License-Identifier: Apache-2.0
"""Batches of a table as stacked NumPy arrays, made ahead by threads that never take the GIL.

    import numpy as np
    import reprise

    server = reprise.Server([reprise.Table.queue("replay", 1000)])
    client = server.localhost_client()
    for i in range(64):
        client.insert({"obs": np.full(4, i, np.float32)}, {"replay": 1.0})

    dataset = reprise.Dataset(client, "replay", 32, structure={"obs": None}, max_samples=64)
    for batch in dataset:
        batch["obs"]  # float32 [32, 1, 4]
        batch.keys, batch.weights

A batch costs one call into C: waiting, decompressing and stacking have been done by then,
unless the reader is faster than the samples come. `Dataset.torch()`, `.jax()` and `.tf()` give
the same batches to these libraries; everybody else takes the arrays through DLPack
(`somewhere.from_dlpack(batch["obs"])`), which copies nothing.
"""

from __future__ import annotations

import copy
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from reprise import _core, tree

__all__ = ["Batch", "BatchInfo", "BatchIterator", "Dataset"]


class BatchInfo(NamedTuple):
    """Of each item of a batch, in order: arrays of the batch's size.

    Fields:
      keys: uint64. `Client.mutate_priorities` and `update_priorities` take them.
      probabilities: float64, with which each was drawn.
      table_size: int64, items in the table then.
      priorities: float64.
      times_sampled: int32, this time included.
      weights: float64, importance weights `(table_size * probability) ** -beta`, divided by the
        largest of the batch; 1 without a `beta`.
    """

    keys: Any
    probabilities: Any
    table_size: Any
    priorities: Any
    times_sampled: Any
    weights: Any


class _Batch(NamedTuple):
    data: Any
    info: BatchInfo
    lengths: Any = None


class Batch(_Batch):
    """Items of a table: a named tuple, so that `jax.tree.map` and its like see into it.

    Fields:
      data: the columns, stacked, items first: a nest like the table's signature or like the
        `structure` that was given, else a list. `batch["obs"]` is short for
        `batch.data["obs"]`.
      info: a `BatchInfo`, whose fields can be had from the batch as well.
      lengths: None if all items have one length, else a nest like `data`: of a padded column
        the rows of each item, with `ragged="offsets"` where each item's rows begin, and the
        end; None for columns that are not ragged.
    """

    __slots__ = ()

    def __getitem__(self, key):
        return self.data[key] if isinstance(key, str) else tuple.__getitem__(self, key)

    size = property(lambda self: len(self.info.keys), doc="How many items there are.")
    keys = property(lambda self: self.info.keys)
    probabilities = property(lambda self: self.info.probabilities)
    table_size = property(lambda self: self.info.table_size)
    priorities = property(lambda self: self.info.priorities)
    times_sampled = property(lambda self: self.info.times_sampled)
    weights = property(lambda self: self.info.weights)


def _milliseconds(name: str, seconds: Optional[float]) -> int:
    """-1 for None; at least 1 for what is not 0."""
    if seconds is None:
        return -1
    if not seconds >= 0:
        raise ValueError(f"{name} must be None or >= 0 seconds, got {seconds}")
    return int(min(-(-seconds * 1000 // 1), 2**53))


def core_client(client: Any) -> _core.Client:
    """The client of the extension inside a `reprise.Client`, or itself."""
    return client if isinstance(client, _core.Client) else client._client


class Dataset:
    """Batches of `batch_size` items of `table`: iterate over it, as often as you like.

    Every iterator is a sampler of its own, which draws ahead and makes batches ahead.

    Args:
      client: a `Client`, or the address of a server.
      table: its name.
      batch_size: items in a batch.
      structure: a nest whose leaves are the columns: batches come in its form. None: that of
        the table's signature; without one, and with False, a list.
      ragged: what to do with items of different lengths: "refuse" (ValueError), "pad" (zeros up
        to the longest; `Batch.lengths` tells) or "offsets" (one behind the other;
        `Batch.lengths` says where each begins).
      drop_remainder: leave out a last batch that is smaller.
      prefetch: batches made ahead, by a thread; 0: each is made when it is asked for.
      reuse: 0: every batch has memory of its own (which is recycled once nobody refers to it).
        n: the memory of a batch is written again once n more have been taken from the iterator.
      memory: memory of your own to be reused, such as pinned memory: a list of
        `prefetch + reuse` lists of arrays, one a column, in flattened order.
      max_samples: after so many items it ends; -1: never.
      max_in_flight: items drawn ahead on each stream. None: three batches, at least 100. Fewer
        means fresher priorities, more means fewer waits.
      streams: parallel calls to each server. Queues need 1 to keep their order.
      max_per_stream: items after which a stream is made anew; -1: no limit.
      rate_limiter_timeout: seconds without an item after which it ends, as if there were no
        more; None: never.
      timeout: seconds after which waiting for a batch raises `DeadlineExceededError` (nothing
        is lost then: ask again); None: never.
      ordered: with several streams or servers, keep an order that depends on the seed alone.
      checked: compare every item with the table's signature.
      beta: exponent of the importance weights, 0 for none.
      decoders: threads that decode a batch; 0: by processors.
    """

    def __init__(
        self,
        client: Any,
        table: str,
        batch_size: int,
        *,
        structure: Any = None,
        ragged: str = "refuse",
        drop_remainder: bool = False,
        prefetch: int = 2,
        reuse: int = 0,
        memory: Optional[Sequence[Sequence[np.ndarray]]] = None,
        max_samples: int = -1,
        max_in_flight: Optional[int] = None,
        streams: int = 1,
        max_per_stream: int = -1,
        rate_limiter_timeout: Optional[float] = None,
        timeout: Optional[float] = None,
        ordered: bool = False,
        checked: bool = False,
        beta: float = 0.0,
        decoders: int = 0,
    ):
        if batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size}")
        if prefetch < 0:
            raise ValueError(f"prefetch must be >= 0, got {prefetch}")
        if reuse < 0:
            raise ValueError(f"reuse must be >= 0, got {reuse}")
        if ragged not in ("refuse", "pad", "offsets"):
            raise ValueError(f"ragged must be 'refuse', 'pad' or 'offsets', got {ragged!r}")
        if (reuse or memory is not None) and not prefetch:
            raise ValueError("reuse and memory need prefetch >= 1")
        if memory is not None and (not reuse or len(memory) != prefetch + reuse):
            raise ValueError(
                f"memory must have prefetch + reuse sets of arrays, and reuse be >= 1: got "
                f"{len(memory)} sets, prefetch {prefetch} and reuse {reuse}"
            )
        if isinstance(client, str):
            from reprise.client import Client

            client = Client(client)
        self._client = client
        self._table = table
        self._batch_size = int(batch_size)
        self._structure = structure
        self._plan = dict(ragged=ragged, whole=bool(drop_remainder))
        self._ahead = dict(depth=prefetch, reuse=reuse, memory=memory)
        self._options = dict(
            max_samples=max_samples,
            max_in_flight=max(100, 3 * batch_size) if max_in_flight is None else max_in_flight,
            streams=streams,
            max_per_stream=max_per_stream,
            rate_limiter_timeout_ms=_milliseconds("rate_limiter_timeout", rate_limiter_timeout),
            ordered=ordered,
            checked=checked,
            beta=beta,
            decoders=decoders,
        )
        self._timeout_ms = _milliseconds("timeout", timeout)
        self._packer: Optional[tree.Structure] = None
        self._packer_known = False
        self._check_options()

    table = property(lambda self: self._table, doc="The name of the table.")
    batch_size = property(lambda self: self._batch_size, doc="Items in a batch.")
    ragged = property(lambda self: self._plan["ragged"])

    def _check_options(self) -> None:
        """What a sampler would refuse, said when the dataset is made."""
        o = self._options
        for name in ("max_samples", "max_per_stream"):
            if o[name] < 1 and o[name] != -1:
                raise ValueError(f"{name} must be a positive integer or -1, got {o[name]}")
        for name in ("max_in_flight", "streams"):
            if o[name] < 1:
                raise ValueError(f"{name} must be a positive integer, got {o[name]}")

    def signature(self) -> Any:
        """The table's signature, a nest of `TensorSpec`, or None. Asks the server."""
        info = self._client.server_info()
        if self._table not in info:
            raise ValueError(
                f"no table '{self._table}': the server has {', '.join(sorted(info)) or 'none'}"
            )
        return info[self._table].signature

    def packer(self) -> Optional[tree.Structure]:
        """The form of a batch; None: a list. Found once, when the first iterator is made."""
        if not self._packer_known:
            structure = self._structure
            if structure is None and not isinstance(self._client, _core.Client):
                structure = self.signature()
            if structure is not None and structure is not False:
                self._packer = tree.Structure(structure)
            self._packer_known = True
        return self._packer

    def sampler(self, **changes: Any) -> _core.Sampler:
        """A sampler of the extension with these options."""
        return _core.Sampler(
            core_client(self._client), self._table, **{**self._options, **changes}
        )

    def __iter__(self) -> BatchIterator:
        return BatchIterator(self)

    def part(self, index: int, count: int) -> Dataset:
        """The dataset for one of `count` processes, over a connection of its own: with
        `max_samples` each of them draws its share."""
        part = copy.copy(self)
        part._options = dict(self._options)
        total = self._options["max_samples"]
        if total != -1:
            part._options["max_samples"] = total // count + (index < total % count)
        part._client = copy.copy(self._client)
        return part

    def torch(self, *, device: Any = None, pin_memory: Optional[bool] = None) -> Any:
        """A `torch.utils.data.IterableDataset` of the same batches, as tensors.

        Hand it to a `DataLoader` with `batch_size=None`, or iterate over it. Tensors share the
        memory of the arrays. With `pin_memory` (None: if there is a CUDA device, and not in a
        worker of a DataLoader) batches are stacked right into pinned memory, which is written
        again after `reuse` more batches, at least one; with `device` they are sent there, and
        nothing is written before that has been done. Keys stay NumPy arrays.
        """
        from reprise import torch_dataset

        return torch_dataset.TorchDataset(self, device=device, pin_memory=pin_memory)

    def jax(self, *, device: Any = None) -> Any:
        """The same batches as `jax.Array`s; on CPU they share the memory of the arrays where
        that is not reused. Keys stay NumPy arrays: without x64, jax would cut them in half."""
        from reprise import jax_dataset

        return jax_dataset.JaxDataset(self, device=device)

    def tf(self) -> Any:
        """A `tf.data.Dataset` of the same batches."""
        from reprise import tf_dataset

        return tf_dataset.of_batches(self)


class BatchIterator:
    """An iterator over batches. `close()` it, or use it in a `with`, to end its threads before
    it is collected."""

    def __init__(self, dataset: Dataset, *, depth: Optional[int] = None):
        self._packer = dataset.packer()
        self._size = dataset.batch_size
        self._plan = dataset._plan
        self._timeout_ms = dataset._timeout_ms
        self._sampler = dataset.sampler()
        self._take: Any = None
        if depth is None:
            depth = dataset._ahead["depth"]
        if depth:
            self.start(depth, dataset._ahead["reuse"], dataset._ahead["memory"])

    def start(self, depth: int, reuse: int, memory: Any) -> None:
        """Makes batches ahead from now on."""
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
        """The next batch, or None at the end. `timeout`: seconds, for this call."""
        ms = self._timeout_ms if timeout is False else _milliseconds("timeout", timeout)
        if self._take is not None:
            core = self._take(ms)
        else:
            core = self._sampler.batch(self._size, timeout_ms=ms, **self._plan)
        return None if core is None else pack(core, self._packer)

    def why(self) -> str:
        """What it waits for, as a sentence."""
        return self._sampler.why()

    def close(self) -> None:
        """Ends it; a wait in another thread ends with an error."""
        self._sampler.close()

    def __enter__(self) -> BatchIterator:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def pack(core: _core.Batch, packer: Optional[tree.Structure]) -> Batch:
    """A batch of the extension in the form that its readers expect."""
    data, lengths = core.columns, core.lengths
    if all(column is None for column in lengths):
        lengths = None
    if packer is not None:
        if packer.leaf_count != len(data):
            raise ValueError(
                f"items have {len(data)} columns, but the structure has "
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


def map_batch(function: Any, batch: Batch, kind: type = np.ndarray) -> Batch:
    """`function` of everything of this kind in a batch, but not of keys and strings."""

    def convert(leaf: Any) -> Any:
        return function(leaf) if isinstance(leaf, kind) and leaf.dtype != object else leaf

    info = batch.info
    return Batch(
        tree.map_structure(convert, batch.data),
        BatchInfo(info.keys, *(convert(leaf) for leaf in info[1:])),
        None if batch.lengths is None else tree.map_structure(convert, batch.lengths),
    )


def iterate(take: Any) -> Iterator[Any]:
    """What `take` gives until it gives None."""
    while True:
        item = take()
        if item is None:
            return
        yield item


def columns_of(batch: Batch) -> List[np.ndarray]:
    """The columns in flattened order."""
    return batch.data if type(batch.data) is list else tree.flatten(batch.data)
