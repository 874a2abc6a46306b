# SPDX-License-Identifier: Apache-2.0
"""Batches of a table as stacked NumPy arrays, prefetched by threads without the GIL.

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

Taking a batch costs one call into C: background threads have waited for its samples, decompressed
and stacked them, unless the reader is faster than the samples arrive. `Dataset.torch()`, `.jax()`
and `.tf()` make the same batches available to these libraries. Other libraries can take the arrays
through DLPack (`library.from_dlpack(batch["obs"])`) without a copy.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Optional, Sequence, TypedDict

import numpy as np

from reprise import _core, tree
from reprise._check import milliseconds, need, number, suggest_names, whole_number
from reprise.batch import Batch, BatchInfo, BatchIterator
from reprise.connection import Connection, core_client

if TYPE_CHECKING:
    from reprise.jax_dataset import JaxDataset
    from reprise.torch_dataset import TorchDataset

__all__ = ["Batch", "BatchInfo", "BatchIterator", "Dataset", "DatasetOptions"]


class DatasetOptions(TypedDict, total=False):
    """The options of `Dataset`, which explains them."""

    structure: Any
    ragged: str
    drop_remainder: bool
    prefetch: int
    reuse: int
    memory: Optional[Sequence[Sequence[np.ndarray]]]
    max_samples: int
    max_in_flight: Optional[int]
    streams: int
    max_per_stream: int
    rate_limiter_timeout: Optional[float]
    timeout: Optional[float]
    ordered: bool
    checked: bool
    beta: float
    decoders: int


@suggest_names
class Dataset:
    """An iterable of batches of `batch_size` items of `table`. It may be iterated over repeatedly.

    Each iterator has its own sampler, which draws items and prefetches batches.

    Args:
      client: a `Client`, or the address of a server.
      table: the name of the table.
      batch_size: the number of items in a batch.
      structure: a nest whose leaves are the columns; the data of a batch has this structure. None:
        the structure of the table's signature. The data is a list if the table has no signature,
        or if `structure` is False.
      ragged: what to do with items of different lengths. "refuse": ValueError. "pad": zeros up to
        the longest item; `Batch.lengths` has the lengths. "offsets": the items end to end;
        `Batch.lengths` has the row at which each begins.
      drop_remainder: leave out a last batch that is smaller.
      prefetch: how many batches a thread prefetches. 0: each batch is made when it is taken.
      reuse: 0: every batch has its own memory, which is reused once no array refers to it.
        n: the memory of a batch is overwritten once n more batches have been taken.
      memory: the caller's memory to be reused, such as pinned memory: a list of
        `prefetch + reuse` lists of arrays, one array for each column, in flattened order.
      max_samples: the iterator ends after this number of items; -1: never.
      max_in_flight: how many items each stream draws ahead. None: three batches, at least 100. With
        fewer, priorities are more recent; with more, there are fewer waits.
      streams: parallel calls to each server. Queues need 1 to keep their order.
      max_per_stream: the number of items after which a stream is replaced by a new one; -1: no
        limit.
      rate_limiter_timeout: the iterator ends after this number of seconds without an item; None:
        never. If no server can be reached for this long (at least one second for the first
        connection), the iterator raises an error.
      timeout: if a batch takes longer than this number of seconds, the iterator raises
        `DeadlineExceededError`. No item is lost then, and the caller may try again. None: never.
      ordered: with several streams or servers, keep an order that depends on the seed only.
      checked: compare every item with the table's signature.
      beta: exponent of the importance weights; 0: no weights.
      decoders: threads that decode a batch; 0: as many as the number of processors suggests.
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
        if whole_number("batch_size", batch_size, highest=2**31 - 1) < 1:
            raise ValueError(f"batch_size must be a positive integer, got {batch_size}")
        whole_number("prefetch", prefetch, 0)
        whole_number("reuse", reuse, 0)
        if max_in_flight is None:
            max_in_flight = max(100, 3 * batch_size)
        if ragged not in ("refuse", "pad", "offsets"):
            raise ValueError(f"ragged must be 'refuse', 'pad' or 'offsets', got {ragged!r}")
        if (reuse or memory is not None) and not prefetch:
            raise ValueError("reuse and memory need prefetch >= 1")
        if memory is not None and (not reuse or len(memory) != prefetch + reuse):
            raise ValueError(
                f"memory must have prefetch + reuse sets of arrays, and reuse be >= 1: got "
                f"{len(memory)} sets, prefetch {prefetch} and reuse {reuse}"
            )
        if not isinstance(client, (Connection, _core.Client)):
            client = Connection(client)
        self._client = client
        self._table = table
        self._batch_size = int(batch_size)
        self._structure = structure
        self._ragged = ragged
        self._plan = dict(ragged=ragged, whole=bool(drop_remainder))
        self._ahead = dict(depth=prefetch, reuse=reuse, memory=memory)
        self._options = dict(
            max_samples=max_samples,
            max_in_flight=max_in_flight,
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

    @property
    def table(self) -> str:
        """The name of the table."""
        return self._table

    @property
    def batch_size(self) -> int:
        """Items in a batch."""
        return self._batch_size

    @property
    def ragged(self) -> str:
        """What happens to items of different lengths."""
        return self._ragged

    def _check_options(self) -> None:
        """Raises errors about options when the dataset is made, not when it is iterated over."""
        o = self._options
        for name in ("max_samples", "max_per_stream"):
            if whole_number(name, o[name]) < 1 and o[name] != -1:
                raise ValueError(f"{name} must be a positive integer or -1, got {o[name]}")
        for name in ("max_in_flight", "streams"):
            if whole_number(name, o[name]) < 1:
                raise ValueError(f"{name} must be a positive integer, got {o[name]}")
        if not number("beta", o["beta"]) >= 0:
            raise ValueError(f"beta must be >= 0, got {o['beta']}")

    def signature(self, timeout: Optional[float] = None) -> Any:
        """Requests the table's signature from the server: a nest of `TensorSpec`, or None.

        Raises:
          NotFoundError: there is no such table.
        """
        if isinstance(self._client, _core.Client):
            return self._client.tables(timeout, self._table)[0]["signature"]
        if timeout is None:
            timeout = self._patience()
        return self._client.details(timeout, self._table)[self._table]["signature"]

    def _patience(self) -> Optional[float]:
        """Returns for how many seconds to wait for the signature. A short timeout of the rate limiter is
        for samples, so that it does not count for the first connection."""
        limiter_ms = self._options["rate_limiter_timeout_ms"]
        limits = [ms for ms in (self._timeout_ms, max(limiter_ms, 1000) if limiter_ms >= 0 else -1) if ms >= 0]
        return min(limits) / 1000 if limits else None

    def packer(self, timeout: Optional[float] = None) -> Optional[tree.Structure]:
        """The structure of the batches of the next iterator; None: a list. It may be requested from the
        server, for `timeout` seconds at most (None: that of the dataset)."""
        if not self._packer_known:
            structure = self._structure
            if structure is None and not isinstance(self._client, _core.Client):
                structure = self.signature(timeout)
            is_nest = structure is not None and structure is not False
            self._packer = tree.Structure(structure) if is_nest else None
            self._packer_known = True
        return self._packer

    def take_packer(self) -> Optional[tree.Structure]:
        """Returns `packer()`. The next iterator requests it again, since the table may be created anew
        meanwhile."""
        packer = self.packer()
        self._packer_known = False
        return packer

    def sampler(self, **changes: Any) -> _core.Sampler:
        """Makes a sampler of the C extension with these options, except for `changes`."""
        return _core.Sampler(
            core_client(self._client), self._table, **{**self._options, **changes}
        )

    def __iter__(self) -> BatchIterator:
        return BatchIterator(self)

    def part(self, index: int, count: int) -> Dataset:
        """Returns the dataset for process `index` of `count`, which has its own connection. Each
        process draws its share of `max_samples`."""
        if not 0 <= whole_number("index", index) < whole_number("count", count, 1):
            raise ValueError(f"index must be from 0 to {count - 1}, since there are {count} processes, got {index}")
        part = copy.copy(self)
        part._options = dict(self._options)
        total = self._options["max_samples"]
        if total != -1:
            part._options["max_samples"] = total // count + (index < total % count)
        part._client = copy.copy(self._client)
        return part

    def torch(self, *, device: Any = None, pin_memory: Optional[bool] = None) -> TorchDataset:
        """Returns a `torch.utils.data.IterableDataset` of the same batches, as tensors.

        Pass it to a `DataLoader` with `batch_size=None`, or iterate over it. Tensors share the
        memory of the arrays. With `pin_memory`, batches are stacked directly into pinned memory,
        which is overwritten after `reuse` more batches, at least one. None: pin if there is a CUDA
        device and this is not a worker of a DataLoader. With `device`, batches are copied to it,
        and their memory is overwritten only after the copy is done. Keys stay NumPy arrays.
        """
        need("torch", "torch()")
        from reprise import torch_dataset

        return torch_dataset.TorchDataset(self, device=device, pin_memory=pin_memory)

    def jax(self, *, device: Any = None) -> JaxDataset:
        """Returns an iterable of the same batches as `jax.Array`s. On CPU these share the memory of
        the arrays if `reuse` is 0. Keys stay NumPy arrays: without x64, jax would truncate them to
        32 bits."""
        need("jax", "jax()")
        from reprise import jax_dataset

        return jax_dataset.JaxDataset(self, device=device)

    def tf(self) -> Any:
        """Returns a `tf.data.Dataset` of the same batches."""
        need("tensorflow", "tf()")
        from reprise import tf_dataset

        return tf_dataset.of_batches(self)
