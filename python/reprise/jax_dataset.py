# SPDX-License-Identifier: Apache-2.0
"""Batches as jax arrays: `Dataset.jax()`. Imports jax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

import jax
import numpy as np

from reprise.batch import TensorBatch, map_batch

if TYPE_CHECKING:
    from reprise.dataset import Dataset

__all__ = ["JaxDataset"]


class JaxDataset:
    """See `Dataset.jax`."""

    def __init__(self, dataset: Dataset, *, device: Any):
        self._dataset = dataset
        self._device = device

    def __iter__(self) -> Iterator[TensorBatch]:
        # jax may read the memory of an array later, so the array must not change until then.
        copy = self._dataset._ahead["reuse"] > 0

        def put(array: np.ndarray) -> Any:
            return jax.device_put(array.copy() if copy else array, self._device)

        return (map_batch(put, batch) for batch in self._dataset)
