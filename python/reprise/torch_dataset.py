# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors: `Dataset.torch()`. Imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional

import numpy as np
import torch

from reprise.batch import BatchIterator, TensorBatch, columns_of, iterate, map_batch

if TYPE_CHECKING:
    from reprise.dataset import Dataset

__all__ = ["TorchDataset"]


class TorchDataset(torch.utils.data.IterableDataset):
    """See `Dataset.torch`. Each worker of a `DataLoader` draws over its own connection, and draws
    its share of `max_samples`."""

    def __init__(self, dataset: Dataset, *, device: Any, pin_memory: Optional[bool]):
        super().__init__()
        self._dataset = dataset
        self._device = None if device is None else torch.device(device)
        self._pin_memory = pin_memory

    def __iter__(self) -> Iterator[TensorBatch]:
        worker = torch.utils.data.get_worker_info()
        dataset = self._dataset
        if worker is not None:
            dataset = dataset.part(worker.id, worker.num_workers)
            if dataset._options["max_samples"] == 0:
                return iter(())
        pin = self._pin_memory
        if pin is None:
            pin = worker is None and torch.cuda.is_available()
        batches = _pinned(dataset) if pin else (map_batch(torch.from_numpy, b) for b in dataset)
        return batches if self._device is None else _sent(batches, self._device)


def _pin(array: np.ndarray) -> torch.Tensor:
    """Returns a copy in pinned memory."""
    return torch.from_numpy(array).pin_memory()


def _memory_like(columns: List[np.ndarray], sets: int) -> List[List[np.ndarray]]:
    """Returns sets of arrays like `columns` in pinned memory. Arrays of strings are not pinned."""

    def like(column: np.ndarray) -> np.ndarray:
        return np.empty_like(column) if column.dtype == object else _pin(column).numpy()

    return [[like(column) for column in columns] for _ in range(sets)]


def _pinned(dataset: Dataset) -> Iterator[TensorBatch]:
    """Yields batches in pinned memory. The first batch determines the shapes."""
    if dataset.ragged != "refuse":  # batches may differ in shape
        for batch in dataset:
            yield map_batch(_pin, batch)
        return
    depth, reuse = max(dataset._ahead["depth"], 1), max(dataset._ahead["reuse"], 1)
    iterator = BatchIterator(dataset, depth=0)
    with iterator:
        first = iterator.take()
        if first is None:
            return
        yield map_batch(_pin, first)
        iterator.start(depth, reuse, _memory_like(columns_of(first), depth + reuse))
        for batch in iterate(iterator.take):
            yield map_batch(torch.from_numpy, batch)


def _sent(batches: Iterator[TensorBatch], device: torch.device) -> Iterator[TensorBatch]:
    """Yields batches on `device`. Waits until a copy is done before it takes the next batch, which
    may reuse the memory."""
    for batch in batches:
        sent = map_batch(lambda t: t.to(device, non_blocking=True), batch, torch.Tensor)
        event = None
        if device.type == "cuda":
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
        yield sent
        if event is not None:
            event.synchronize()
