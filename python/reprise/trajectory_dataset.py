# SPDX-License-Identifier: Apache-2.0
"""A dataset of whole items, with Reverb's arguments."""

from __future__ import annotations

from typing import Any

from reprise.sample_dataset import Pipeline, SampleDataset

__all__ = ["TrajectoryDataset"]


class TrajectoryDataset(SampleDataset):
    """Items of a table. Each element is one item: `ReplaySample(info, data)`.

    `data` is a nest like `dtypes`, with tuples in place of lists. The first dimension of a column
    counts its rows, unless the column was made of a single cell (`history["x"][-1]`).

    With TensorFlow this is a `tf.data.Dataset`. Without TensorFlow it is an iterable of NumPy
    arrays with the methods of `reprise.sample_dataset.Pipeline`, and `.batch(n)` stacks in C.
    (`reprise.Dataset` makes batches faster, with or without TensorFlow.)

    The sequence ends after `max_samples` items, or when the rate limiter has admitted no sample
    for `rate_limiter_timeout_ms`.

    Args:
      server_address: the address of the server.
      table: the name of the table.
      dtypes: a nest of the dtypes of the columns.
      shapes: a nest of the shapes of the columns, with the same structure. None stands for a
        dimension that varies.
      max_in_flight_samples_per_worker: how many items each worker draws ahead. Two or three times
        the batch size is a good value.
      num_workers_per_iterator: parallel streams; -1: one. A queue needs one to keep its order.
      max_samples_per_stream: the number of items after which a stream is replaced by a new one; -1:
        no limit.
      rate_limiter_timeout_ms: see above; -1: for ever.
      max_samples: see above; -1: no end.

    Raises:
      ValueError: a number is out of range, or `dtypes` and `shapes` differ in structure. During
        iteration: the table's signature, or an item, does not match `dtypes` and `shapes` (with
        TensorFlow: `tf.errors.InvalidArgumentError`).
    """

    _timesteps = False

    def batch(self, batch_size: int, drop_remainder: bool = False, **unused: Any) -> Pipeline:
        if batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, got {batch_size}")
        spec = super().batch(batch_size, drop_remainder).element_spec
        whole = bool(drop_remainder)
        return Pipeline(lambda: self.source.open().batches(int(batch_size), whole), spec)
