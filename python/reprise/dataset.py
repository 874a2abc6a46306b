# SPDX-License-Identifier: Apache-2.0
"""Batches of a table as stacked NumPy arrays, made ahead by threads without the GIL.

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

A batch costs one call into C: waiting, decompressing and stacking are done ahead, unless the reader
is faster than the samples. `Dataset.torch()`, `.jax()` and `.tf()` give the same batches to these
libraries; others can take the arrays through DLPack (`library.from_dlpack(batch["obs"])`), which
copies nothing.
"""

from __future__ import annotations

import copy
from typing import Any, Optional, Sequence

import numpy as np

from reprise import _core, tree
from reprise.batch import Batch, BatchInfo, BatchIterator, milliseconds
from reprise.connection import Connection, core_client

__all__ = ["Batch", "BatchInfo", "BatchIterator", "Dataset"]


class Dataset:
    """Batches of `batch_size` items of `table`: iterate over it, as often as you like.

    Each iterator is a sampler of its own, which draws items and makes batches ahead.

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
      reuse: 0: every batch has memory of its own (which is reused once no array refers to it).
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
            client = Connection(client)
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
            rate_limiter_timeout_ms=milliseconds("rate_limiter_timeout", rate_limiter_timeout),
            ordered=ordered,
            checked=checked,
            beta=beta,
            decoders=decoders,
        )
        self._timeout_ms = milliseconds("timeout", timeout)
        self._packer: Optional[tree.Structure] = None
        self._packer_known = False
        self._check_options()

    table = property(lambda self: self._table, doc="The name of the table.")
    batch_size = property(lambda self: self._batch_size, doc="Items in a batch.")
    ragged = property(lambda self: self._plan["ragged"])

    def _check_options(self) -> None:
        """Raises the errors of a sampler early, when the dataset is made."""
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
