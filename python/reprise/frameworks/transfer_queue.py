# SPDX-License-Identifier: Apache-2.0
"""A storage backend for TransferQueue. Imports transfer_queue, torch and tensordict.

    import transfer_queue as tq
    from omegaconf import OmegaConf
    import reprise.frameworks.transfer_queue      # registers the backend "Reprise"

    tq.init(OmegaConf.create({"backend": {"storage_backend": "Reprise", "Reprise": {
        "servers": ["replay-1:8000", "replay-2:8000"], "rollouts": "run 7"}}}))

TransferQueue's controller keeps the metadata as before. The samples are in rollouts (docs/llm.md) of
these servers: a group for each sample, with its global index as the name, and a column for each field.
A sample is on the server number index % servers.

Each process that uses TransferQueue must register the backend. Ray calls `register` in all of its
workers after `ray.init(runtime_env={"worker_process_setup_hook":
"reprise.frameworks.transfer_queue.register"})`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, TypeVar

import numpy as np
import torch
from tensordict import NonTensorData, NonTensorStack, TensorDict, is_tensor_collection
from transfer_queue.metadata import BatchMeta, extract_field_schema
from transfer_queue.storage import StorageKeyNotFoundError, StorageManager, StorageManagerFactory
from transfer_queue.storage.bootstrap import StorageBootstrapProvider
from transfer_queue.utils import serial_utils

from reprise import errors
from reprise.client import Client

__all__ = ["NAME", "RepriseStorageManager", "register"]

NAME = "Reprise"  # of the backend

_T = TypeVar("_T")

_DEFAULTS: Dict[str, Any] = {
    "rollouts": "transfer_queue", "timeout": 60.0, "threads": 4, "max_groups": 2**20,
    "max_bytes": 4 * 2**30, "client": {}}
_RESERVATION_S = 600.0  # ends with the put that follows
_LEAST_PART = 16  # samples for which a thread is worth its while

# Tensors of these dtypes are columns as they are.
_DIRECT = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
           torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128}
# All else is encoded to bytes in a column of this dtype, which no tensor has in a column: first the
# number of bytes, then the bytes, padded.
_ENCODED = np.dtype(np.uint32)


def _encoded(value: Any) -> np.ndarray:
    frames = serial_utils.encode(value)
    size = serial_utils.calc_packed_size(frames)
    words = np.zeros(1 + -(-size // 4), _ENCODED)
    words[0] = size
    serial_utils.pack_into(words[1:].view(np.uint8).data, frames)
    return words


def _decoded(words: np.ndarray) -> Any:
    size = int(words[0])
    data = bytearray(words[1:].view(np.uint8)[:size])  # a copy, since decoded arrays refer to it
    return serial_utils.decode(serial_utils.unpack_from(data))


def _column(value: Any) -> Any:
    """Returns a value of one sample as a column: an array, or a tensor if that is of bfloat16."""
    if not isinstance(value, torch.Tensor):
        return _encoded(value)
    if value.is_nested or value.layout != torch.strided or value.dtype not in _DIRECT:
        return _encoded(value.detach().cpu())
    value = value.detach().cpu().resolve_conj().resolve_neg()
    return value if value.dtype == torch.bfloat16 else value.numpy()


def _length(value: Any) -> Optional[int]:
    return None if isinstance(value, np.ndarray) and not value.ndim else len(value)


def _field_columns(name: str, value: Any, count: int) -> List[Any]:
    """Returns the columns of a field, one for each sample."""
    if isinstance(value, NonTensorData):
        value = value.data
        if not isinstance(value, (np.ndarray, list, tuple)) or _length(value) != count:
            return [_encoded(value)] * count  # one value for the whole batch
    if isinstance(value, torch.Tensor):
        rows: Sequence[Any] = value.detach().cpu().unbind()
    elif isinstance(value, NonTensorStack):
        rows = value.tolist()
    elif is_tensor_collection(value):
        raise TypeError(f"field {name!r} must be a tensor or a NonTensorStack, not a TensorDict")
    else:
        rows = list(value)
    return [_column(row) for row in rows]


def _tensor(array: np.ndarray) -> torch.Tensor:
    """Returns a tensor with the memory of an array. Columns of bfloat16 are arrays of ml_dtypes if that
    is installed, else of uint16."""
    if array.dtype.name in ("bfloat16", "uint16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _jagged(columns: Sequence[np.ndarray]) -> torch.Tensor:
    """Returns a nested tensor of columns that differ in length alone, or a tensor of scalars."""
    if columns[0].ndim == 0:
        return _tensor(np.stack(columns))
    lengths = torch.tensor([len(each) for each in columns])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return torch.nested.nested_tensor_from_jagged(
        _tensor(np.concatenate(columns)), offsets, min_seqlen=int(lengths.min()),
        max_seqlen=int(lengths.max()))


def _joined(columns: Sequence[np.ndarray]) -> Any:
    """Returns the columns of a field as TransferQueue's own storage returns them: scalars as a tensor,
    tensors as a nested tensor if that is possible, and all else as a NonTensorStack."""
    kinds = {(each.dtype, each.ndim, each.shape[1:]) for each in columns}
    if len(kinds) == 1 and columns[0].dtype != _ENCODED:
        return _jagged(columns)
    values = [_decoded(each) if each.dtype == _ENCODED else _tensor(each.copy()) for each in columns]
    if not all(isinstance(each, torch.Tensor) for each in values):
        return NonTensorStack(*values)
    if all(each.dim() == 0 for each in values):
        return torch.stack(values)
    for layout in (torch.jagged, torch.strided):
        try:
            return torch.nested.as_nested_tensor(values, layout=layout)
        except (RuntimeError, TypeError):
            pass  # the shapes or the dtypes do not allow it
    return NonTensorStack(*values)


class _Calls:
    """Makes calls until a time. A call is repeated while its server cannot be reached."""

    def __init__(self, seconds: float, stop: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self._stop = stop

    def __call__(self, call: Callable[[float], _T]) -> _T:
        pause = 0.02
        while True:
            left = self._end - time.monotonic()
            try:
                return call(max(left, 0.001))
            except errors.StatusError as e:
                if e.code != "UNAVAILABLE" or left <= pause or self._stop.wait(pause):
                    raise
            pause = min(2 * pause, 1.0)


class _Shard:
    """The rollouts of one server."""

    def __init__(self, address: str, settings: Mapping[str, Any]) -> None:
        self.address = address
        self._settings = settings
        self._are_used_again = False  # indexes
        self._known: Set[int] = set()  # samples that were put here and not cleared here
        self._rollouts = Client(address, **settings["client"]).rollouts(settings["rollouts"])

    def open(self, calls: _Calls) -> None:
        """Makes the rollouts, if there are none. Only that needs the role admin."""
        try:
            info = calls(lambda left: self._rollouts.info(timeout=left))
        except errors.NotFoundError:
            options = {name: self._settings[name] for name in ("max_groups", "max_bytes")}
            calls(lambda left: self._rollouts.create(exist_ok=True, timeout=left, **options))
            info = calls(lambda left: self._rollouts.info(timeout=left))
        if info["options"]["group_size"] != 1:
            raise ValueError(f"{NAME}: rollouts {self._settings['rollouts']!r} of server {self.address} "
                             f"have groups of {info['options']['group_size']} items, not of 1; give "
                             f"another name in backend.{NAME}.rollouts")

    def put(self, index: int, columns: Mapping[str, Any], calls: _Calls) -> None:
        """Puts columns of a sample. Those that are there already are replaced."""
        name, rollouts = str(index), self._rollouts
        if self._are_used_again and index not in self._known:
            self._reserve(name, calls)  # the put alone would send the columns in vain
        while True:
            try:
                put = calls(lambda left: rollouts.put(name, 0, columns, version=0, timeout=left))
            except errors.StatusError as e:
                if e.code != "ALREADY_EXISTS":
                    raise
                put = calls(lambda left: rollouts.update(name, 0, columns, replace=True, timeout=left))
            if not put.gone:
                break
            self._are_used_again = True
            self._reserve(name, calls)
        self._known.add(index)

    def _reserve(self, name: str, calls: _Calls) -> None:
        """Begins a group anew that was removed: the controller uses indexes again that were cleared."""
        try:
            calls(lambda left: self._rollouts.reserve(name, ttl=_RESERVATION_S, timeout=left))
        except errors.StatusError as e:
            if e.code != "ALREADY_EXISTS":  # complete
                raise

    def get(self, index: int, fields: Sequence[str], calls: _Calls) -> List[np.ndarray]:
        """Returns columns of a sample."""
        name, rollouts = str(index), self._rollouts
        try:
            fate, group = calls(lambda left: rollouts.peek(name, timeout=left))
        except errors.NotFoundError as e:
            if not self._exists(calls):
                raise
            raise StorageKeyNotFoundError(f"there is no sample {index}") from e
        item = group.items[0] if group else None
        if item is None:
            raise StorageKeyNotFoundError(f"there is no sample {index}: {fate}")
        missing = [field for field in fields if field not in item.columns]
        if missing:
            raise StorageKeyNotFoundError(
                f"sample {index} has no field {missing[0]!r}; it has {', '.join(sorted(item.columns))}")
        return [item.columns[field] for field in fields]

    def _exists(self, calls: _Calls) -> bool:
        try:
            calls(lambda left: self._rollouts.info(timeout=left))
        except errors.NotFoundError:
            return False
        return True

    def remove(self, index: int, calls: _Calls) -> None:
        """Removes a sample, if it is there."""
        self._known.discard(index)
        try:
            calls(lambda left: self._rollouts.abort(str(index), timeout=left))
        except errors.NotFoundError:
            if not self._exists(calls):
                raise


def _settings(config: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Checks the configuration of the backend, and returns it with all defaults."""
    given = {str(name): value for name, value in dict(config or {}).items() if name != "client_name"}
    unknown = sorted(set(given) - {"servers", *_DEFAULTS})
    if unknown:
        raise ValueError(f"backend.{NAME} has no setting {unknown[0]!r}; there are servers, "
                         f"{', '.join(_DEFAULTS)}")
    servers = given.pop("servers", None)
    if isinstance(servers, str):
        servers = servers.split(",")
    if not servers:
        raise ValueError(f"backend.{NAME}.servers must have the addresses of servers, such as "
                         f"['localhost:8000'], got {servers!r}")
    found = {**_DEFAULTS, **{name: value for name, value in given.items() if value is not None}}
    found["servers"] = [str(server).strip() for server in servers]
    found["timeout"], found["client"] = float(found["timeout"]), dict(found["client"])
    for name in ("threads", "max_groups", "max_bytes"):
        found[name] = int(found[name])
    if found["timeout"] <= 0 or found["threads"] < 1:
        raise ValueError(f"backend.{NAME}: timeout must be > 0 and threads >= 1, got "
                         f"{found['timeout']} and {found['threads']}")
    return found


@StorageManagerFactory.register(NAME)
class RepriseStorageManager(StorageManager):
    """Keeps samples in rollouts of servers.

    The configuration, which is `backend.Reprise` of TransferQueue's:

      servers: their addresses. The order is part of the placement: all processes need the same.
      rollouts: the name of the rollouts, "transfer_queue". They are made if there are none. Two
        controllers must not share them, since both count samples from 0.
      timeout: seconds for each put, get or clear of a batch, 60. While a server cannot be reached, calls
        are repeated.
      threads: how many calls run at a time for each server, 4.
      max_groups, max_bytes: how many samples of a server, and bytes, when the rollouts are made:
        2^20, and 4 GiB. A put waits while there is no room.
      client: arguments of `reprise.Client`, such as token and ca_file.
    """

    def __init__(self, controller_info: Any, config: Any, zmq_context: Any = None) -> None:
        del zmq_context  # for messages to the controller, the base class makes its own
        self._stop = threading.Event()
        settings = _settings(config)
        self._timeout, self._threads = settings["timeout"], settings["threads"]
        self._shards = [_Shard(address, settings) for address in settings["servers"]]
        self._pool = ThreadPoolExecutor(self._threads * len(self._shards), "reprise-transfer-queue")
        calls = _Calls(self._timeout, self._stop)
        for shard in self._shards:
            try:
                shard.open(calls)
            except (errors.ReverbError, errors.StatusError) as e:
                raise _named(e, f"{NAME}: server {shard.address}") from e
        super().__init__(controller_info, config)

    async def put_data(self, data: TensorDict, metadata: BatchMeta,
                       data_parser: Optional[Callable[[Any], Any]] = None) -> None:
        """Stores the fields of samples, and tells the controller. Fields that are there already are
        replaced, each sample at once."""
        if data_parser is not None:
            raise NotImplementedError(f"{NAME} has no data_parser; only SimpleStorage has")
        indexes = list(metadata.global_indexes)
        if not data.batch_size or data.batch_size[0] != len(indexes):
            raise ValueError(f"data has the batch size {list(data.batch_size)}, but the metadata have "
                             f"{len(indexes)} samples")
        if not indexes or not len(list(data.keys())):
            return
        schema = extract_field_schema(data)
        columns = {name: _field_columns(name, data.get(name), len(indexes)) for name in data.keys()}

        def put(shard: _Shard, at: int, calls: _Calls) -> None:
            shard.put(indexes[at], {name: rows[at] for name, rows in columns.items()}, calls)

        await self._each("put", indexes, put)
        await self.notify_data_update(metadata.partition_ids[0], indexes, schema)

    async def get_data(self, metadata: BatchMeta) -> TensorDict:
        """Returns the fields of samples, in the order of the metadata.

        Raises:
          StorageKeyNotFoundError: a sample, or a field of it, was not put or has been cleared.
        """
        indexes, fields = list(metadata.global_indexes), list(metadata.field_names)
        if not indexes or not fields:
            return TensorDict({}, batch_size=len(indexes))
        found: List[List[np.ndarray]] = [[]] * len(indexes)

        def get(shard: _Shard, at: int, calls: _Calls) -> None:
            found[at] = shard.get(indexes[at], fields, calls)

        await self._each("get", indexes, get)
        return TensorDict({field: _joined(column) for field, column in zip(fields, zip(*found))},
                          batch_size=len(indexes))

    async def clear_data(self, metadata: BatchMeta) -> None:
        """Removes samples with all of their fields. Those that are not there are no error."""
        indexes = list(metadata.global_indexes)
        await self._each("clear", indexes, lambda shard, at, calls: shard.remove(indexes[at], calls))

    async def _each(self, what: str, indexes: Sequence[int],
                    work: Callable[[_Shard, int, _Calls], None]) -> None:
        """Calls `work` for each sample, on the threads. Raises the first error, when all have ended."""
        calls = _Calls(self._timeout, self._stop)
        loop = asyncio.get_running_loop()
        running = []
        for number, shard in enumerate(self._shards):
            places = [at for at, index in enumerate(indexes) if index % len(self._shards) == number]
            parts = min(self._threads, -(-len(places) // _LEAST_PART))
            for part in range(parts):
                running.append(loop.run_in_executor(
                    self._pool, self._part, what, shard, indexes, places[part::parts], work, calls))
        for result in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    @staticmethod
    def _part(what: str, shard: _Shard, indexes: Sequence[int], places: Sequence[int],
              work: Callable[[_Shard, int, _Calls], None], calls: _Calls) -> None:
        for at in places:
            try:
                work(shard, at, calls)
            except Exception as e:
                raise _named(e, f"{NAME}: {what} of sample {indexes[at]}, server {shard.address}") from e

    def close(self) -> None:
        """Ends the connection to the controller, and calls that wait for a server."""
        self._stop.set()
        if hasattr(self, "_pool"):
            self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()


def _named(error: Exception, where: str) -> Exception:
    """Returns the error with the place in its text."""
    if isinstance(error, StorageKeyNotFoundError):  # a KeyError, whose str() has quotes
        return StorageKeyNotFoundError(f"{where}: {error.args[0]}")
    if isinstance(error, errors.DeadlineExceededError):
        return TimeoutError(f"{where}: {error}")
    if isinstance(error, (TypeError, ValueError)) and not isinstance(error, errors.StatusError):
        return ValueError(f"{where}: {error}")
    return RuntimeError(f"{where}: {error}")


def _check(conf: Any) -> Dict[str, Any]:
    """Checks the configuration before TransferQueue begins. The servers run already."""
    _settings(conf.backend[NAME])
    return {}


StorageBootstrapProvider.register_provider(NAME)(_check)


def register() -> None:
    """Registers the backend, as the import of this module does. It is a name for Ray to call."""
