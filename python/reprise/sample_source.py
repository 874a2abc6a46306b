# SPDX-License-Identifier: Apache-2.0
"""The source of the samples of a dataset: its checked arguments, and its samplers."""

from __future__ import annotations

import atexit
import itertools
import weakref
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from reprise import _core, _log, errors, specs, tree
from reprise.connection import Connection, core_client
from reprise.replay_sample import ReplaySample, SampleInfo

__all__ = ["INFO_DTYPES", "Drawing", "Source", "lists_to_tuples"]

INFO_DTYPES = SampleInfo(np.uint64, np.float64, np.int64, np.float64, np.int32)

# The open samplers. They are closed at exit: a TensorFlow thread that waits for a sample would keep
# the process from ending.
_samplers: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _close_samplers() -> None:
    for holder in list(_samplers):
        holder.close()


def lists_to_tuples(nest: Any) -> Any:
    """Returns the nest with tuples in place of lists, as tf.data requires."""
    if isinstance(nest, dict):
        return type(nest)((key, lists_to_tuples(value)) for key, value in nest.items())
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*map(lists_to_tuples, nest))
    if isinstance(nest, (list, tuple)):
        return tuple(map(lists_to_tuples, nest))
    return nest


def _is_shape(leaf: Any) -> bool:
    if leaf is None or hasattr(leaf, "as_list"):
        return True
    if not isinstance(leaf, (tuple, list)):
        return False
    return all(d is None or isinstance(d, (int, np.integer)) for d in leaf)


def specs_of(dtypes: Any, shapes: Any) -> Any:
    """Returns a nest of `TensorSpec`. ValueError if both nests do not have the same structure."""
    flat_shapes = tree.flatten_up_to(dtypes, shapes) if tree.is_nested(dtypes) else [shapes]
    for shape in flat_shapes:
        if not _is_shape(shape):
            raise ValueError(
                f"dtypes and shapes must have the same structure: {shape!r} is no "
                f"shape, in {shapes!r} for {dtypes!r}"
            )
    flat = [specs.TensorSpec(s, d) for d, s in zip(tree.flatten(dtypes), flat_shapes)]
    return tree.unflatten_as(dtypes, flat)


_DTYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half", "object": "string"}


def _dtype_text(dtype: np.dtype) -> str:
    return _DTYPE_NAMES.get(dtype.name, dtype.name)


def _shape_text(shape: Optional[Sequence[Optional[int]]]) -> str:
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def _text(spec: Any) -> str:
    return f"({_dtype_text(spec.dtype)}, {_shape_text(spec.shape)})"


def _list_text(named: Iterable[Tuple[str, Any]]) -> str:
    return ", ".join(
        f"{i}: Tensor<name: '{name}', dtype: {_dtype_text(s.dtype)}, "
        f"shape: {_shape_text(s.shape)}>"
        for i, (name, s) in enumerate(named)
    )


def check_signature(table: str, expected: List[specs.TensorSpec], signature: Any) -> None:
    """ValueError if the requested specs do not match the table's signature."""
    names = ["/".join(map(str, path)) for path, _ in tree.flatten_with_path(signature)]
    flat = tree.flatten(signature)
    text = _list_text(zip(names, flat))
    if len(flat) != len(expected):
        raise ValueError(
            f"Inconsistent number of tensors requested from table '{table}'.  Requested "
            f"{len(expected)} tensors, but table signature shows {len(flat)} tensors.  Table "
            f"signature: {text}"
        )
    for i, (want, have) in enumerate(zip(expected, flat)):
        if not want.is_compatible_with(have):
            raise ValueError(
                f"Requested incompatible tensor at flattened index {i} from table '{table}'.  "
                f"Requested (dtype, shape): {_text(want)}.  Signature (dtype, shape): "
                f"{_text(have)}.  Table signature: {text}"
            )


class Source:
    """The checked arguments of a dataset. Starts its samplers."""

    def __init__(
        self,
        server_address: Any,
        table: Any,
        dtypes: Any,
        shapes: Any,
        timesteps: bool,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int,
        max_samples_per_stream: int,
        rate_limiter_timeout_ms: int,
        max_samples: int,
    ):
        for name, value, least in (
            ("max_in_flight_samples_per_worker", max_in_flight_samples_per_worker, None),
            ("num_workers_per_iterator", num_workers_per_iterator, -1),
            ("max_samples_per_stream", max_samples_per_stream, -1),
            ("max_samples", max_samples, -1),
        ):
            if value < 1 and value != least:
                also = "" if least is None else " or -1"
                raise ValueError(f"{name} ({value}) must be a positive integer{also}")
        if rate_limiter_timeout_ms < -1:
            raise ValueError(
                f"rate_limiter_timeout_ms ({rate_limiter_timeout_ms}) must be an integer >= -1"
            )
        self.server_address = server_address
        self.table = table
        self.timesteps = timesteps
        self.specs = lists_to_tuples(specs_of(dtypes, shapes))
        self.flat_specs: List[specs.TensorSpec] = tree.flatten(self.specs)
        self.packer = tree.Structure(self.specs)
        self.in_flight = int(max_in_flight_samples_per_worker)
        workers = 1 if num_workers_per_iterator == -1 else int(num_workers_per_iterator)
        if max_samples != -1:
            workers = min(workers, max(1, max_samples // self.in_flight))
        self.options = dict(
            max_samples=int(max_samples),
            streams=workers,
            max_per_stream=int(max_samples_per_stream),
            rate_limiter_timeout_ms=int(rate_limiter_timeout_ms),
        )
        self._checked = [(spec.dtype, spec.shape) for spec in self.flat_specs]
        self.is_ranked = all(spec.shape is not None for spec in self.flat_specs)
        self.is_static = self.is_ranked and not any(None in s.shape for s in self.flat_specs)

    @property
    def element_spec(self) -> ReplaySample:
        """The specs of one element: a nest of `reprise.TensorSpec`."""
        info = SampleInfo(*(specs.TensorSpec((), dtype) for dtype in INFO_DTYPES))
        return ReplaySample(info, self.specs)

    @property
    def empty(self) -> ReplaySample:
        """A stack of no elements."""
        info = SampleInfo(*(np.empty(0, dtype) for dtype in INFO_DTYPES))
        none = [
            np.empty((0, *(d or 0 for d in s.shape or ())), s.dtype) for s in self.flat_specs
        ]
        return ReplaySample(info, self.packer.pack(none))

    def join(self, samples: List[Tuple[Any, ...]]) -> ReplaySample:
        """Joins samples of different shapes. A column of known shape becomes one array. Any other
        column becomes three arrays: the values of all items end to end, the index at which each
        item begins, and the shape of each item. If only the number of rows varies, the values keep
        their other dimensions; otherwise they are flat."""
        *infos, columns = zip(*samples) if samples else [()] * 6
        info = SampleInfo(*(np.array(x, t) for t, x in zip(INFO_DTYPES, infos)))
        columns = zip(*columns) if samples else [()] * len(self.flat_specs)
        return ReplaySample(info, tuple(map(_join, self.flat_specs, columns)))

    def open(self, server_address: Any = None, table: Any = None) -> Drawing:
        """Starts a sampler. ValueError if the table's signature does not match the specs."""
        return Drawing(self, server_address or self.server_address, table or self.table)

    def check(self, columns: List[np.ndarray], table: str) -> None:
        """ValueError if the columns of a sample do not match the specs."""
        if len(columns) != len(self._checked):
            raise ValueError(
                f"Inconsistent number of tensors received from table '{table}'.  Specification "
                f"has {len(self._checked)} tensors, but data coming from the table shows "
                f"{len(columns)} tensors."
            )
        for i, (column, (dtype, shape)) in enumerate(zip(columns, self._checked)):
            if column.dtype == dtype and column.shape == shape:
                continue
            have = specs.TensorSpec(column.shape, column.dtype)
            if not self.flat_specs[i].is_compatible_with(have):
                raise ValueError(
                    f"Received incompatible tensor at flattened index {i} from table "
                    f"'{table}'.  Specification has (dtype, shape): "
                    f"{_text(self.flat_specs[i])}.  Tensor has (dtype, shape): {_text(have)}."
                )


def _join(spec: specs.TensorSpec, column: Sequence[np.ndarray]) -> Any:
    if None not in spec.shape:
        return np.stack(column) if column else np.empty((0, *spec.shape), spec.dtype)
    rank, rows = len(spec.shape), None not in spec.shape[1:]
    shapes = np.array([c.shape for c in column], np.int64).reshape(-1, rank)
    begin = np.zeros((len(column), rank if rows else 1), np.int64)
    begin[1:, 0] = np.cumsum(shapes[:, 0] if rows else shapes.prod(1))[:-1]
    values = column if rows else [c.ravel() for c in column]
    none = np.empty((0, *spec.shape[1:]) if rows else 0, spec.dtype)
    return np.concatenate(values) if column else none, begin, shapes


def _word(value: Any) -> str:
    """Converts a string that may be a tensor, an array or bytes."""
    value = value.numpy() if hasattr(value, "numpy") else value
    value = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    return value.decode() if isinstance(value, bytes) else value


_NOT_STEPS = "Can't split non timestep trajectory into timesteps."


def _info(batch: _core.Batch) -> SampleInfo:
    return SampleInfo(
        batch.keys,
        batch.probabilities,
        batch.table_sizes,
        batch.priorities,
        batch.times_sampled,
    )


class Drawing:
    """The sampler of one iterator."""

    def __init__(self, source: Source, server_address: Any, table: Any):
        self.source = source
        self.table = _word(table)
        self.client = Connection(_word(server_address))
        self._check_table()
        # Samples of the chunk in use count as drawn ahead, too.
        self.chunk = max(1, source.in_flight // 2)
        self.sampler = _core.Sampler(
            core_client(self.client),
            self.table,
            max_in_flight=max(1, source.in_flight - self.chunk + 1),
            **source.options,
        )
        _samplers.add(self)

    def _check_table(self) -> None:
        try:
            info = self.client.details(30)
        except errors.DeadlineExceededError:
            return
        signature = info[self.table]["signature"] if self.table in info else None
        if signature is not None:
            check_signature(self.table, self.source.flat_specs, signature)

    def close(self) -> None:
        self.sampler.close()

    def next(self) -> List[Tuple[Any, ...]]:
        """Returns 1 to `chunk` samples, or [] at the end."""
        return self.sampler.next(self.chunk)

    def rows(self, sample: Tuple[Any, ...]) -> int:
        """Returns the number of steps of a sample. ValueError if its columns differ in length."""
        columns = sample[5]
        rows = {column.shape[0] if column.ndim else None for column in columns}
        if len(rows) != 1 or None in rows:
            raise ValueError(_NOT_STEPS)
        return rows.pop()

    def elements(self) -> Iterator[ReplaySample]:
        """Yields every sample, or every step of every sample, in the structure of the specs."""
        source, pack, table = self.source, self.source.packer.pack, self.table
        for sample in itertools.chain.from_iterable(iter(self.next, [])):
            info = SampleInfo(*(t(x) for t, x in zip(INFO_DTYPES, sample)))
            columns = sample[5]
            if not source.timesteps:
                source.check(columns, table)
                yield ReplaySample(info, pack(columns))
                continue
            for i in range(self.rows(sample)):
                step = [np.asarray(column[i], column.dtype) for column in columns]
                if i == 0:
                    source.check(step, table)
                yield ReplaySample(info, pack(step))

    def chunks(self, patience_ms: int = -1) -> Iterator[ReplaySample]:
        """Yields the same elements, several stacked at a time. After each `patience_ms` of waiting,
        yields a stack of no elements, so that the reader may stop."""
        patience = _log.Patience()
        while True:
            try:
                kept = self.sampler.kept  # these come first
                batch = self._ready() if self.source.is_static and not kept else None
                if batch is not None:
                    steps = self.source.timesteps
                    yield self._batch_of_steps(batch) if steps else self._batch(batch)
                    continue
                samples = self.sampler.next(self.chunk, patience_ms)
                if not samples:
                    return
                yield from self._stacks(samples)
                patience.begin()
            except errors.DeadlineExceededError as e:
                patience.check(e)
                yield self.source.empty

    def pieces(self, patience_ms: int = -1) -> Iterator[Tuple[ReplaySample, ReplaySample]]:
        """Yields items of any shapes, several at a time, as pairs. If the items have the same
        shape, the first of the pair has them stacked, and the second is empty. Otherwise the second
        has them joined by `Source.join`, and the first is empty. After each `patience_ms` of
        waiting both are empty."""
        source = self.source
        none = source.empty, source.join([])
        patience = _log.Patience()
        while True:
            try:
                samples = self.sampler.next(self.chunk, patience_ms)
                patience.begin()
            except errors.DeadlineExceededError as e:
                patience.check(e)
                yield none
                continue
            if not samples:
                return
            for sample in samples:
                source.check(sample[5], self.table)
            shapes = {tuple([column.shape for column in sample[5]]) for sample in samples}
            if len(shapes) == 1:
                yield self._stack(samples), none[1]
            else:
                yield none[0], source.join(samples)

    def _ready(self) -> Optional[_core.Batch]:
        """Returns a batch of `chunk` samples, stacked in C. None if fewer are ready, or at the end.
        """
        ragged = "offsets" if self.source.timesteps else "refuse"
        try:
            return self.sampler.batch(self.chunk, ragged=ragged, timeout_ms=0)
        except errors.DeadlineExceededError:
            return None

    def _stacks(self, samples: List[Tuple[Any, ...]]) -> Iterator[ReplaySample]:
        """Yields the samples, or their steps, in stacks of consecutive ones with equal shapes."""
        timesteps = self.source.timesteps
        form, begin = None, 0
        for i, sample in enumerate(samples):
            if timesteps:
                self.rows(sample)
                now = [_Row(column) for column in sample[5]]
            else:
                now = sample[5]
            self.source.check(now, self.table)
            shapes = [column.shape for column in now]
            if begin < i and shapes != form:
                yield self._stack(samples[begin:i])
                begin = i
            form = shapes
        yield self._stack(samples[begin:])

    def _stack(self, samples: List[Tuple[Any, ...]]) -> ReplaySample:
        """Stacks samples whose shapes are the same."""
        *infos, columns = zip(*samples)
        fields = [np.array(x, t) for t, x in zip(INFO_DTYPES, infos)]
        join = np.stack
        if self.source.timesteps:
            join = np.concatenate
            rows = [sample[0].shape[0] for sample in columns]
            fields = [np.repeat(field, rows) for field in fields]
        data = [join(column) for column in zip(*columns)]
        return ReplaySample(SampleInfo(*fields), self.source.packer.pack(data))

    def _batch(self, batch: _core.Batch) -> ReplaySample:
        self.source.check([_Row(column) for column in batch.columns], self.table)
        return ReplaySample(_info(batch), self.source.packer.pack(batch.columns))

    def _batch_of_steps(self, batch: _core.Batch) -> ReplaySample:
        """Returns the steps of a batch whose items are end to end."""
        first, *others = batch.lengths or [None]
        if first is None or any(o is None or not np.array_equal(first, o) for o in others):
            raise ValueError(_NOT_STEPS)
        self.source.check([_Row(column) for column in batch.columns], self.table)
        rows = np.diff(first)
        info = SampleInfo(*(np.repeat(field, rows) for field in _info(batch)))
        return ReplaySample(info, self.source.packer.pack(batch.columns))

    def batches(self, size: int, whole: bool) -> Iterator[ReplaySample]:
        """Yields batches that are stacked in C. Each is made while the one before is in use."""
        self.sampler.start(size, whole=whole, depth=1)
        return map(self._batch, iter(self.sampler.take, None))


class _Row:
    """The dtype and shape of one item of a stacked column."""

    __slots__ = ("dtype", "shape")

    def __init__(self, column: np.ndarray):
        self.dtype, self.shape = column.dtype, column.shape[1:]
