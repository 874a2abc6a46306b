# SPDX-License-Identifier: Apache-2.0
"""A dataset of single steps, with Reverb's arguments."""

from __future__ import annotations

from reprise.sample_dataset import SampleDataset

__all__ = ["TimestepDataset"]


class TimestepDataset(SampleDataset):
    """The steps of items of a table, one an element: `ReplaySample(info, data)`.

    The steps of an item come one after the other, each with the item's `info`; nothing marks
    where an item ends. All columns of an item must have as many rows. `shapes` are those of one
    step.

    Everything else is as in `TrajectoryDataset`.
    """

    _timesteps = True
