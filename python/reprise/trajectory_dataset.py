# SPDX-License-Identifier: Apache-2.0
"""A dataset of whole items, with Reverb's arguments."""

from __future__ import annotations

from typing import Any

from reprise.sample_dataset import Pipeline, SampleDataset

__all__ = ["TrajectoryDataset"]


class TrajectoryDataset(SampleDataset):
    """Items of a table, one an element: `ReplaySample(info, data)`.

    `data` is a nest like `dtypes`, in which a list has become a tuple. A column has its rows as
    the first dimension, unless the item was made of a single cell (`history["x"][-1]`).

    With TensorFlow it is a `tf.data.Dataset`. Without, it is iterated over as it is, elements
    are NumPy arrays, and it has the methods of `reprise.sample_dataset.Pipeline`; then
    `.batch(n)` stacks in C. (`reprise.Dataset` is the quicker way to batches, with or without
    TensorFlow.)

    The sequence ends after `max_samples` items, or when the rate limiter has let none through
    for `rate_limiter_timeout_ms`.

    Args:
      server_address: of the server.
      table: its name.
      dtypes: of the columns, a nest.
      shapes: of the columns, a nest built alike; None stands for a dimension that varies.
      max_in_flight_samples_per_worker: items that each worker draws ahead, two or three times
        the size of your batches.
      num_workers_per_iterator: parallel streams; -1: one. A queue needs one, to keep its order.
      max_samples_per_stream: items after which a stream is made anew; -1: no limit.
      rate_limiter_timeout_ms: see above; -1: for ever.
      max_samples: see above; -1: no end.

    Raises:
      ValueError: a number is out of range, or `dtypes` and `shapes` are not built alike. When
        it is iterated: the table's signature, or an item, is not what was asked for (with
        TensorFlow: `tf.errors.InvalidArgumentError`).
    """

    _timesteps = False

    def batch(self, batch_size: int, drop_remainder: bool = False, **unused: Any) -> Pipeline:
        if batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, got {batch_size}")
        spec = super().batch(batch_size, drop_remainder).element_spec
        whole = bool(drop_remainder)
        return Pipeline(lambda: self.source.open().batches(int(batch_size), whole), spec)
