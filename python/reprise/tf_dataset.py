# SPDX-License-Identifier: Apache-2.0
"""Samples and batches as a `tf.data.Dataset`. Imports TensorFlow.

TensorFlow takes only some ten thousand elements a second from a Python generator. So the generators
here yield many samples at a time, stacked, which TensorFlow splits again. They wait without the
GIL.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Sequence, Tuple

import numpy as np
import tensorflow as tf

from reprise import _log, errors, pattern_items, specs, tree
from reprise.batch import Batch, BatchInfo, BatchIterator
from reprise.replay_sample import ReplaySample
from reprise.sample_source import Drawing, Source, lists_to_tuples

if TYPE_CHECKING:
    from reprise.dataset import Dataset

__all__ = ["of_batches", "of_source", "tensor_spec"]


def tensor_spec(spec: specs.TensorSpec, *first: Any) -> tf.TensorSpec:
    """Converts our spec to TensorFlow's. `first` are additional dimensions in front."""
    shape = None if spec.shape is None else (*first, *spec.shape)
    dtype = tf.string if spec.dtype == np.dtype(object) else tf.as_dtype(spec.dtype)
    return tf.TensorSpec(shape, dtype)


# TensorFlow cannot stop a generator that waits, so a generator waits at most this long.
PATIENCE_MS = 100

_classes: Dict[type, type] = {}


def _class_of(cls: type) -> type:
    """Returns a subclass of `tf.data.Dataset` with the name of `cls`, for which `isinstance` with
    `cls` is true."""
    if cls not in _classes:

        class Real(tf.data.Dataset):
            def __init__(self, source: Source, inner: tf.data.Dataset):
                self.source = source
                self._inner = inner
                super().__init__(inner._variant_tensor)

            def _inputs(self) -> list:
                return [self._inner]

            @property
            def element_spec(self) -> Any:
                return self._inner.element_spec

            if hasattr(cls, "from_table_signature"):
                from_table_signature = staticmethod(cls.from_table_signature)

        Real.__name__ = Real.__qualname__ = cls.__name__
        Real.__doc__ = cls.__doc__
        cls.register(Real)
        _classes[cls] = Real
    return _classes[cls]


def of_source(cls: type, source: Source) -> tf.data.Dataset:
    """Returns the samples of a source as a dataset that is an instance of `cls`."""
    if source.is_ranked and not source.is_static and not source.timesteps:
        return _class_of(cls)(source, _of_pieces(source))
    signature = tree.map_structure(lambda spec: tensor_spec(spec, None), source.element_spec)
    inner = _generate(source, signature, lambda drawing: drawing.chunks(PATIENCE_MS))
    return _class_of(cls)(source, inner.unbatch())


def _generate(
    source: Source, signature: Any, draw: Callable[[Drawing], Iterator[Any]]
) -> tf.data.Dataset:
    # Address and table may be tensors whose values are known only when the graph runs. So they are
    # arguments of the generator.
    def generate(address: Any, table: Any) -> Iterator[Any]:
        drawing = source.open(address, table)
        try:
            yield from draw(drawing)
        finally:
            drawing.close()

    return tf.data.Dataset.from_generator(
        generate, output_signature=signature, args=(source.server_address, source.table)
    )


def _of_pieces(source: Source) -> tf.data.Dataset:
    """Returns a dataset of items of different shapes. They are passed end to end in one array, several
    at a time. TensorFlow stacks them if all have the same shape, which is faster, and otherwise cuts
    each out."""

    def joined(spec: specs.TensorSpec) -> Any:
        if None not in spec.shape:
            return tensor_spec(spec, None)
        rank, rows = len(spec.shape), None not in spec.shape[1:]
        inner = specs.TensorSpec(spec.shape[1:] if rows else (), spec.dtype)
        begin, shapes = (tf.TensorSpec((None, n), tf.int64) for n in (rank if rows else 1, rank))
        return tensor_spec(inner, None), begin, shapes

    def stack(spec: specs.TensorSpec, column: Any) -> tf.Tensor:
        if None not in spec.shape:
            return column
        values, _, shapes = column
        count = tf.shape(shapes, tf.int64)[:1]
        return tf.ensure_shape(tf.reshape(values, tf.concat([count, shapes[0]], 0)), (None, *spec.shape))

    def cut(spec: specs.TensorSpec, values: Any, part: Any) -> tf.Tensor:
        if None not in spec.shape:
            return part
        begin, shape = part
        if None in spec.shape[1:]:
            flat = tf.slice(values, begin, tf.reduce_prod(shape, keepdims=True))
            part = tf.reshape(flat, shape)
        else:
            part = tf.slice(values, begin, shape)
        return tf.ensure_shape(part, spec.shape)

    slices = tf.data.Dataset.from_tensor_slices
    pack = source.packer.pack
    element = tree.map_structure(tensor_spec, source.element_spec)

    def items(is_even: tf.Tensor, info: Any, columns: Any) -> tf.data.Dataset:
        values = [c[0] if isinstance(c, tuple) else None for c in columns]
        each = tuple(c[1:] if isinstance(c, tuple) else c for c in columns)

        def one(info: Any, parts: Any) -> ReplaySample:
            return ReplaySample(info, pack([cut(*c) for c in zip(source.flat_specs, values, parts)]))

        def even() -> tf.Tensor:
            data = pack([stack(*column) for column in zip(source.flat_specs, columns)])
            return tf.data.experimental.to_variant(slices(ReplaySample(info, data)))

        def uneven() -> tf.Tensor:
            return tf.data.experimental.to_variant(slices((info, each)).map(one))

        # Only the dataset that is needed is made: each costs as much as many items.
        return tf.data.experimental.from_variant(tf.cond(is_even, even, uneven), element)

    info = tree.map_structure(lambda spec: tensor_spec(spec, None), source.element_spec.info)
    form = tf.TensorSpec((), tf.bool), info, tuple(map(joined, source.flat_specs))
    return _generate(source, form, lambda drawing: drawing.pieces(PATIENCE_MS)).flat_map(items)


def of_patterns(
    cls: type,
    input_dataset: tf.data.Dataset,
    configs: Sequence[Any],
    respect_episode_boundaries: bool,
    is_end_of_episode: Callable[[Any], Any],
) -> tf.data.Dataset:
    """Returns a dataset of items made by patterns, an instance of `cls`; see `PatternDataset`."""
    signature = pattern_items.signature_of(configs, input_dataset.element_spec)
    pack = tree.Structure(signature).pack
    # TensorFlow calls is_end_of_episode with tensors, as the authors of such functions expect.
    pairs = input_dataset.map(lambda *step: (_only(step), is_end_of_episode(*step)))
    end_spec = pairs.element_spec[1]
    if not (
        isinstance(end_spec, tf.TensorSpec)
        and end_spec.is_compatible_with(tf.TensorSpec([], tf.bool))
    ):
        raise ValueError(
            "Invalid `is_end_of_episode`. `is_end_of_episode` must return `bool`, but its "
            f"return type is {end_spec}."
        )

    def generate() -> Iterator[Any]:
        steps = pairs.as_numpy_iterator()
        for columns in pattern_items.apply_patterns(steps, configs, respect_episode_boundaries):
            yield pack(columns)

    inner = tf.data.Dataset.from_generator(
        generate, output_signature=tree.map_structure(tensor_spec, signature)
    )
    return _class_of(cls)(None, inner)


def _only(step: Tuple[Any, ...]) -> Any:
    return step[0] if len(step) == 1 else step


_INFO_DTYPES = (np.uint64, np.float64, np.int64, np.float64, np.int32, np.float64)


def _batch_specs(dataset: Dataset) -> Any:
    """Returns the specs of one item of a batch: from the table's signature, or from a first batch.
    """
    signature = dataset.signature() if dataset._structure is None else None
    if signature is not None:
        return lists_to_tuples(signature)
    with BatchIterator(dataset, depth=0) as iterator:
        first = iterator.take()
    if first is None:
        raise ValueError(f"table '{dataset.table}' has nothing to tell the shapes by")
    return tree.map_structure(
        lambda column: specs.TensorSpec(column.shape[1:], column.dtype),
        lists_to_tuples(first.data),
    )


def of_batches(dataset: Dataset) -> tf.data.Dataset:
    """See `Dataset.tf`. The shapes are those of the table's signature. Without a signature they are
    those of a first batch, which is drawn for this purpose."""
    if dataset.ragged != "refuse":
        raise ValueError("tf() needs items of one length: ragged='refuse'")
    spec = _batch_specs(dataset)
    info = BatchInfo(*(specs.TensorSpec((), dtype) for dtype in _INFO_DTYPES))
    item = Batch(spec, info, ())
    empty = tree.map_structure(
        lambda s: np.empty((0, *(d or 0 for d in s.shape)), s.dtype), item
    )

    def generate() -> Iterator[Batch]:
        with iter(dataset) as iterator:
            begun = time.monotonic()
            patience = _log.Patience()
            while True:
                try:
                    batch = iterator.take(PATIENCE_MS / 1000)
                except errors.DeadlineExceededError as e:
                    if 0 <= dataset._timeout_ms < 1000 * (time.monotonic() - begun):
                        raise
                    patience.check(e)
                    yield empty
                    continue
                if batch is None:
                    return
                yield Batch(lists_to_tuples(batch.data), batch.info, ())
                begun = time.monotonic()
                patience.begin()

    signature = tree.map_structure(lambda s: tensor_spec(s, None), item)
    result = tf.data.Dataset.from_generator(generate, output_signature=signature)
    result = result.filter(lambda batch: tf.size(batch.info.keys) > 0)
    if not dataset._plan["whole"]:
        return result
    size = dataset.batch_size

    def whole(leaf: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(leaf, [size, *leaf.shape[1:]])

    return result.map(lambda batch: tf.nest.map_structure(whole, batch))
