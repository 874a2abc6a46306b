# SPDX-License-Identifier: Apache-2.0
"""The types of samples."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence, Union

__all__ = ["ReplaySample", "SampleInfo"]


class SampleInfo(NamedTuple):
    """The item a sample was drawn from, and how it was drawn.

    Of one sample the fields are Python numbers, of a batch arrays, in a TensorFlow dataset
    tensors.

    Fields:
      key: of the item; `Client.mutate_priorities` takes it.
      probability: with which this item was drawn at that moment.
      table_size: how many items the table held.
      priority: of the item.
      times_sampled: how often the item has been sampled, this time included.
    """

    key: Any
    probability: Any
    table_size: Any
    priority: Any
    times_sampled: Any

    @classmethod
    def tf_dtypes(cls) -> SampleInfo:
        """The dtypes of the fields, as TensorFlow has them. Imports TensorFlow."""
        import tensorflow as tf

        return cls(tf.uint64, tf.double, tf.int64, tf.double, tf.int32)

    @classmethod
    def tf_shapes(cls) -> SampleInfo:
        """The shapes of the fields: scalars. Imports TensorFlow."""
        import tensorflow as tf

        return cls(*(tf.TensorShape([]) for _ in cls._fields))

    @classmethod
    def zeros(cls) -> SampleInfo:
        """One with all fields zero.

        >>> SampleInfo.zeros()
        SampleInfo(key=0, probability=0.0, table_size=0, priority=0.0, times_sampled=0)
        """
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    """A sample.

    Fields:
      info: a `SampleInfo`.
      data: the columns: a nest like the table's signature where that is known, else a list.
    """

    info: SampleInfo
    data: Union[Sequence[Any], Any]
