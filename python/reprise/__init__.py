# SPDX-License-Identifier: Apache-2.0
"""Experience replay: tables of trajectories, written and sampled by many processes.

The names are those of DeepMind's Reverb, with their arguments and defaults, so that its users
change one line:

    import reprise as reverb

What is here beyond Reverb: `Dataset` and `Client.sampler` (batches of stacked NumPy arrays),
`ReplayBuffer` (everything in one process, three methods), `aio` (the client for asyncio), `specs`
and `tree`. NumPy is all that is needed; TensorFlow, torch and jax are imported only where they
are asked for by name.
"""

import importlib
from typing import Any, List

from reprise import errors, specs, tree
from reprise._alias import install_as_reverb, install_finder
from reprise._core import __version__
from reprise.errors import DeadlineExceededError, ReverbError, StatusError
from reprise.specs import BoundedTensorSpec, TensorSpec

install_finder()

# Names that are looked up when first asked for: where they are, and what they are called there.
# Modules themselves have no second part.
_LAZY = {
    "Dataset": ("dataset", "Dataset"),
    "PatternDataset": ("pattern_dataset", "PatternDataset"),
    "TFClient": ("tf_client", "TFClient"),
    "TimestepDataset": ("timestep_dataset", "TimestepDataset"),
    "TrajectoryDataset": ("trajectory_dataset", "TrajectoryDataset"),
    "aio": ("aio", None),
    "pybind": ("pybind", None),
}

_EAGER = {
    "Client": ("client", "Client"),
    "ReplayBuffer": ("replay_buffer", "ReplayBuffer"),
    "ReplaySample": ("replay_sample", "ReplaySample"),
    "SampleInfo": ("replay_sample", "SampleInfo"),
    "Server": ("server", "Server"),
    "Table": ("server", "Table"),
    "TableInfo": ("reverb_types", "TableInfo"),
    "TrajectoryColumn": ("trajectory_writer", "TrajectoryColumn"),
    "TrajectoryWriter": ("trajectory_writer", "TrajectoryWriter"),
    "Writer": ("client", "Writer"),
    "checkpointers": ("checkpointers", None),
    "item_selectors": ("item_selectors", None),
    "rate_limiters": ("rate_limiters", None),
    "replay_sample": ("replay_sample", None),
    "reverb_types": ("reverb_types", None),
    "selectors": ("selectors", None),
    "structured": ("structured", None),
    "structured_writer": ("structured_writer", None),
}

__all__ = [
    "BoundedTensorSpec",
    "DeadlineExceededError",
    "ReverbError",
    "StatusError",
    "TensorSpec",
    "errors",
    "install_as_reverb",
    "specs",
    "tree",
    *_LAZY,
    *_EAGER,
]


def _find(name: str, where: str, what: Any) -> Any:
    module = importlib.import_module(f"reprise.{where}")
    value = module if what is None else getattr(module, what)
    globals()[name] = value
    return value


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _find(name, *_LAZY[name])


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})


# While some of the modules are still being written.
for _name, (_where, _what) in _EAGER.items():
    try:
        _find(_name, _where, _what)
    except ModuleNotFoundError as _error:
        if _error.name != f"reprise.{_where}":
            raise
