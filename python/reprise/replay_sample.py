# SPDX-License-Identifier: Apache-2.0
"""The types of samples."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ReplaySample", "SampleInfo"]


class SampleInfo(NamedTuple):
    """The item of which a sample was made, and how it was drawn.

    The fields of one sample are Python numbers, those of a batch are arrays, and those of an
    element of a TensorFlow dataset are tensors. Type checkers know the first case.

    Fields:
      key: the key of the item, for `Client.mutate_priorities`.
      probability: the probability with which the item was drawn.
      table_size: how many items the table had at that moment.
      priority: the priority of the item.
      times_sampled: how often the item has been sampled, this time included.
    """

    key: int
    probability: float
    table_size: int
    priority: float
    times_sampled: int

    @classmethod
    def tf_dtypes(cls) -> SampleInfo:
        """Returns the TensorFlow dtypes of the fields. Imports TensorFlow."""
        import tensorflow as tf

        return cls(tf.uint64, tf.double, tf.int64, tf.double, tf.int32)

    @classmethod
    def tf_shapes(cls) -> SampleInfo:
        """Returns the TensorFlow shapes of the fields, which are scalars. Imports TensorFlow."""
        import tensorflow as tf

        return cls(*(tf.TensorShape([]) for _ in cls._fields))

    @classmethod
    def zeros(cls) -> SampleInfo:
        """Returns an info with all fields zero.

        >>> SampleInfo.zeros()
        SampleInfo(key=0, probability=0.0, table_size=0, priority=0.0, times_sampled=0)
        """
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    """A sample.

    Fields:
      info: a `SampleInfo`.
      data: the columns: a nest like the table's signature if that is known, otherwise a list.
    """

    info: SampleInfo
    data: Any
