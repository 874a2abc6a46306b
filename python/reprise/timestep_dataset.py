# SPDX-License-Identifier: Apache-2.0
"""A dataset of single steps, with Reverb's arguments."""

from __future__ import annotations

from reprise.sample_dataset import SampleDataset

__all__ = ["TimestepDataset"]


class TimestepDataset(SampleDataset):
    """The steps of items of a table. Each element is one step: `ReplaySample(info, data)`.

    The steps of an item follow one another, each with the item's `info`; the end of an item is not
    marked. All columns of an item must have the same number of rows. `shapes` are those of one
    step.

    Everything else is as in `TrajectoryDataset`.
    """

    _timesteps = True
