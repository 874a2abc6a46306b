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

    def join(self, columns: Sequence[np.ndarray], shapes: Any) -> Tuple[Any, ...]:
        """Joins samples of different shapes, from `Sampler.stack`. A column of known shape becomes one
        array. Any other column becomes three arrays: the values of all items end to end, the index
        at which each item begins, and the shape of each item. If only the number of rows varies, the
        values keep their other dimensions; otherwise they are flat."""
        return tuple(map(_join, self.flat_specs, columns, shapes))

    def open(self, server_address: Any = None, table: Any = None) -> Drawing:
        """Starts a sampler. ValueError if the table's signature does not match the specs."""
        return Drawing(self, server_address or self.server_address, table or self.table)

    def check(self, columns: List[np.ndarray], table: str) -> None:
        """ValueError if the columns of a sample do not match the specs."""
        self._check_count(columns, table)
        for i, (column, (dtype, shape)) in enumerate(zip(columns, self._checked)):
            if column.dtype != dtype or column.shape != shape:
                self._check_one(i, column.shape, column.dtype, table)

    def check_shapes(self, columns: Sequence[np.ndarray], shapes: Any, table: str) -> None:
        """ValueError if the columns of samples do not match the specs. `shapes` has an array with a
        row for each sample, for each column."""
        self._check_count(columns, table)
        for i, (column, rows) in enumerate(zip(columns, shapes)):
            shape = self._checked[i][1]
            sizes = [] if shape is None else [-1 if d is None else d for d in shape]
            wrong = (rows != sizes) & (np.array(sizes) >= 0) if rows.shape[1] == len(sizes) else None
            first = 0 if wrong is None or not wrong.any() else int(wrong.any(1).argmax())
            self._check_one(i, rows[first].tolist(), column.dtype, table)

    def _check_count(self, columns: Sequence[Any], table: str) -> None:
        if len(columns) != len(self._checked):
            raise ValueError(
                f"Inconsistent number of tensors received from table '{table}'.  Specification "
                f"has {len(self._checked)} tensors, but data coming from the table shows "
                f"{len(columns)} tensors."
            )

    def _check_one(self, i: int, shape: Sequence[int], dtype: np.dtype, table: str) -> None:
        have = specs.TensorSpec(shape, dtype)
        if not self.flat_specs[i].is_compatible_with(have):
            raise ValueError(
                f"Received incompatible tensor at flattened index {i} from table "
                f"'{table}'.  Specification has (dtype, shape): "
                f"{_text(self.flat_specs[i])}.  Tensor has (dtype, shape): {_text(have)}."
            )


def _shapes_of(column: np.ndarray, shapes: Optional[np.ndarray]) -> np.ndarray:
    """Returns the shape of each sample of a column, a row each."""
    if shapes is not None:
        return shapes
    return np.broadcast_to(np.array(column.shape[1:], np.int64), (len(column), column.ndim - 1))


def _join(spec: specs.TensorSpec, column: np.ndarray, shapes: Optional[np.ndarray]) -> Any:
    if None not in spec.shape:
        return column
    rank, rows = len(spec.shape), None not in spec.shape[1:]
    shapes = _shapes_of(column, shapes)
    begin = np.zeros((len(shapes), rank if rows else 1), np.int64)
    sizes = shapes[:, 0] if rows else shapes.prod(1)
    begin[1:, 0] = np.cumsum(sizes)[:-1]
    return column.reshape(sizes.sum(), *(spec.shape[1:] if rows else ())), begin, shapes


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
            limiter_ms = self.source.options["rate_limiter_timeout_ms"]
            info = self.client.details(30 if limiter_ms < 0 else min(30, max(1, limiter_ms / 1000)))
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
                stack = self.sampler.stack(self.chunk, patience_ms)
                if stack is None:
                    return
                yield from self._stacks(stack)
                patience.begin()
            except errors.DeadlineExceededError as e:
                patience.check(e)
                yield self.source.empty

    def pieces(self, patience_ms: int = -1) -> Iterator[Tuple[bool, SampleInfo, Tuple[Any, ...]]]:
        """Yields items of any shapes, several at a time: whether all have the same shape, their info,
        and their columns as `Source.join` returns them. After each `patience_ms` of waiting, yields
        no items."""
        source = self.source
        empty = source.empty
        columns = source.packer.flatten(empty.data)
        none = False, empty.info, source.join(columns, [None] * len(columns))
        patience = _log.Patience()
        while True:
            try:
                stack = self.sampler.stack(self.chunk, patience_ms)
                patience.begin()
            except errors.DeadlineExceededError as e:
                patience.check(e)
                yield none
                continue
            if stack is None:
                return
            *infos, columns, shapes = stack
            source.check_shapes(columns, list(map(_shapes_of, columns, shapes)), self.table)
            is_even = all(rows is None for rows in shapes)
            yield is_even, SampleInfo(*infos), source.join(columns, shapes)

    def _ready(self) -> Optional[_core.Batch]:
        """Returns a batch of `chunk` samples, stacked in C. None if fewer are ready, or at the end.
        """
        ragged = "offsets" if self.source.timesteps else "refuse"
        try:
            return self.sampler.batch(self.chunk, ragged=ragged, timeout_ms=0)
        except errors.DeadlineExceededError:
            return None

    def _stacks(self, stack: Tuple[Any, ...]) -> Iterator[ReplaySample]:
        """Yields the samples, or their steps, in stacks of consecutive ones with equal shapes."""
        *infos, columns, shapes = stack
        shapes = list(map(_shapes_of, columns, shapes))
        steps = int(self.source.timesteps)
        rows = np.ones(len(infos[0]), np.int64)
        if steps:
            if any(s.shape[1] == 0 or (s[:, 0] != shapes[0][:, 0]).any() for s in shapes):
                raise ValueError(_NOT_STEPS)
            rows = shapes[0][:, 0]
        inner = [s[:, steps:] for s in shapes]
        self.source.check_shapes(columns, inner, self.table)
        flat = [column.reshape(-1) for column in columns]
        begins = [np.append(0, np.cumsum(s.prod(1))) for s in shapes]
        form = np.concatenate(inner, 1)
        edges = np.flatnonzero((form[1:] != form[:-1]).any(1)) + 1
        for first, end in zip([0, *edges], [*edges, len(form)]):
            count = rows[first:end].sum()
            data = [values[begin[first] : begin[end]].reshape(count, *s[first])
                    for values, begin, s in zip(flat, begins, inner)]
            fields = [np.repeat(info[first:end], rows[first:end]) for info in infos]
            yield ReplaySample(SampleInfo(*fields), self.source.packer.pack(data))

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
