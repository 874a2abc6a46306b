# SPDX-License-Identifier: Apache-2.0
"""Experience replay: tables of trajectories, written and sampled by many processes.

The names are those of DeepMind's Reverb, with their arguments and defaults, so that its users
change one line:

    import reprise as reverb

Beyond Reverb there are `Dataset` and `Client.sampler` (batches of stacked NumPy arrays),
`ReplayBuffer` (a buffer in one process, without a server), `aio` (the client for asyncio),
`Storage` (data that survives the server), `rl` (agents), `ray` (programs of agents on a Ray cluster),
`log_scalars` (curves of a training on the server's page), `specs` and `tree`. Only NumPy is
required. TensorFlow, torch, jax and Ray are imported only when something that needs them is used.
"""

import importlib
from typing import TYPE_CHECKING

from reprise import (
    checkpointers,
    errors,
    item_selectors,
    rate_limiters,
    replay_sample,
    reverb_types,
    selectors,
    specs,
    structured,
    structured_writer,
    tree,
)
from reprise._alias import install_as_reverb, install_finder
from reprise._core import __version__
from reprise.client import Client, Writer
from reprise.errors import DeadlineExceededError, NotFoundError, ReverbError, StatusError
from reprise.replay_buffer import ReplayBuffer
from reprise.replay_sample import ReplaySample, SampleInfo
from reprise.reverb_types import TableInfo
from reprise.server import Server, Table
from reprise.specs import BoundedTensorSpec, TensorSpec
from reprise.storage import Storage
from reprise.trajectory_writer import TrajectoryColumn, TrajectoryWriter

if TYPE_CHECKING:
    # "as" exports a name that is not in __all__.
    from reprise import aio, cc as cc, extensions, pattern_dataset as pattern_dataset, pybind
    from reprise import ray as ray
    from reprise import rl as rl, rollouts, runs, tf_client as tf_client
    from reprise import timestep_dataset as timestep_dataset
    from reprise import trajectory_dataset as trajectory_dataset
    from reprise.dataset import Dataset
    from reprise.pattern_dataset import PatternDataset
    from reprise.rollouts import Rollouts
    from reprise.runs import log_scalars
    from reprise.tf_client import TFClient
    from reprise.timestep_dataset import TimestepDataset
    from reprise.trajectory_dataset import TrajectoryDataset

__all__ = [
    "BoundedTensorSpec",
    "Client",
    "Dataset",
    "DeadlineExceededError",
    "NotFoundError",
    "PatternDataset",
    "ReplayBuffer",
    "ReplaySample",
    "ReverbError",
    "Rollouts",
    "SampleInfo",
    "Server",
    "StatusError",
    "Storage",
    "TFClient",
    "Table",
    "TableInfo",
    "TensorSpec",
    "TimestepDataset",
    "TrajectoryColumn",
    "TrajectoryDataset",
    "TrajectoryWriter",
    "Writer",
    "aio",
    "checkpointers",
    "errors",
    "extensions",
    "install_as_reverb",
    "item_selectors",
    "log_scalars",
    "pybind",
    "rate_limiters",
    "replay_sample",
    "reverb_types",
    "rollouts",
    "runs",
    "selectors",
    "specs",
    "structured",
    "structured_writer",
    "tree",
]

# Names that are imported at their first use, and their modules.
_LAZY = {
    "Dataset": "dataset",
    "PatternDataset": "pattern_dataset",
    "Rollouts": "rollouts",
    "TFClient": "tf_client",
    "TimestepDataset": "timestep_dataset",
    "TrajectoryDataset": "trajectory_dataset",
    "aio": "aio",
    "cc": "cc",
    "extensions": "extensions",
    "log_scalars": "runs",
    "pattern_dataset": "pattern_dataset",
    "pybind": "pybind",
    "ray": "ray",
    "rl": "rl",
    "rollouts": "rollouts",
    "runs": "runs",
    "tf_client": "tf_client",
    "timestep_dataset": "timestep_dataset",
    "trajectory_dataset": "trajectory_dataset",
}

install_finder()


if not TYPE_CHECKING:  # with it, type checkers would accept every name

    def __getattr__(name):
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = importlib.import_module(f"reprise.{_LAZY[name]}")
        if _LAZY[name] != name:
            value = getattr(value, name)
        globals()[name] = value
        return value


def __dir__() -> "list[str]":
    return sorted({*__all__, *_LAZY, "__version__"})
