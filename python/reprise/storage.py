# SPDX-License-Identifier: Apache-2.0
"""The storage of a server: the directory of its data, and which data survives a crash.

>>> import tempfile
>>> import reprise
>>> folder = tempfile.mkdtemp()
>>> def serve():
...     return reprise.Server([reprise.Table.queue("q", 10)], storage=reprise.Storage(folder))
>>> with serve() as server:
...     server.localhost_client().insert([1.0], {"q": 1.0})
>>> with serve() as server:
...     server.localhost_client().server_info()["q"].current_size
1
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, Mapping, NamedTuple, Optional, Union

from reprise import _check, _core
from reprise._log import logger

if TYPE_CHECKING:
    from reprise.platform.checkpointers_lib import CheckpointerBase

__all__ = ["Storage"]

_DURABILITIES = ("checkpoint", "interval", "sync")


class _Fields(NamedTuple):
    path: Union[str, "os.PathLike[str]"]
    durability: str = "checkpoint"
    sync_every: float = 0.1
    checkpoint_every: Optional[float] = 300.0
    keep: int = 3
    max_memory: int = 0
    final_checkpoint: bool = True
    salvage: bool = False
    accept_changes: bool = False


class Storage(_Fields):
    """A data directory, for `Server(storage=...)`.

    A server that is stopped and started again has the same data. `durability` decides which
    confirmed data is lost if the process is killed, or if the machine loses power:

      "checkpoint"   in both cases, all data since the last checkpoint
      "interval"     if the process is killed, none; after a power loss, the data of the last
                     `sync_every` seconds
      "sync"         none in either case

    Fields:
      path: the directory; created if it does not exist. One server at a time may use it.
      durability: as above.
      sync_every: seconds between two syncs of the journal, with "interval".
      checkpoint_every: seconds between two checkpoints. None: only `Client.checkpoint` writes one.
      keep: how many checkpoints are kept.
      max_memory: how many bytes of chunks are kept in memory; other chunks are on disk until they
        are sampled. 0: all chunks are in memory.
      final_checkpoint: write a checkpoint when the server is stopped.
      salvage: load the readable part of damaged data.
      accept_changes: load tables although their selectors differ from the saved ones.

    Raises:
      TypeError, ValueError: a field has a value that no server accepts.
    """

    __slots__ = ()

    def __new__(
        cls,
        path: Union[str, "os.PathLike[str]"],
        durability: str = "checkpoint",
        sync_every: float = 0.1,
        checkpoint_every: Optional[float] = 300.0,
        keep: int = 3,
        max_memory: int = 0,
        final_checkpoint: bool = True,
        salvage: bool = False,
        accept_changes: bool = False,
    ) -> "Storage":
        made = super().__new__(
            cls, path, durability, sync_every, checkpoint_every, keep, max_memory,
            final_checkpoint, salvage, accept_changes
        )
        options_of(made)  # raises if a value is wrong
        return made


def _ms(name: str, seconds: Any) -> int:
    try:
        number = float(seconds)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number of seconds, got {seconds!r}") from None
    if not 0 < number < 1e9:
        raise ValueError(f"{name} must be > 0 seconds, got {seconds!r}")
    return max(1, round(1000 * number))


def options_of(storage: Storage) -> Dict[str, Any]:
    """Returns the arguments of `reprise._core.Durable`, as plain values."""
    if not isinstance(storage.path, (str, bytes, os.PathLike)):
        raise TypeError("storage must be a directory (str, bytes or os.PathLike) or a reprise.Storage of "
                        f"one, got {storage.path!r}")
    path = os.fspath(storage.path)
    if not path:
        raise ValueError("the path of the storage is empty: give a directory, such as './data'")
    if storage.durability not in _DURABILITIES:
        raise ValueError(
            f"durability must be 'checkpoint', 'interval' or 'sync', got {storage.durability!r}"
        )
    if not 1 <= _check.whole_number("keep", storage.keep) < 2**31:
        raise ValueError(f"keep must be >= 1, got {storage.keep!r}")
    if isinstance(storage.max_memory, str):
        raise TypeError("max_memory must be a number of bytes, such as 2**30, got "
                        f"{storage.max_memory!r}")
    _check.whole_number("max_memory", storage.max_memory, 0, 2**63 - 1)
    every = storage.checkpoint_every
    return {
        "path": os.path.abspath(path),
        "durability": storage.durability,
        "sync_ms": _ms("sync_every", storage.sync_every),
        "period_ms": -1 if every is None else _ms("checkpoint_every", every),
        "keep": storage.keep,
        "max_memory": storage.max_memory,
        "final_checkpoint": bool(storage.final_checkpoint),
        "salvage": bool(storage.salvage),
        "accept_changes": bool(storage.accept_changes),
    }


_LIMITER = ("samples_per_insert", "min_size_to_sample", "min_diff", "max_diff")
_NO_BOUND = 1e300  # Reverb's limiters have the largest double


def _settings(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the settings of a table that a server keeps with its data, by name."""
    return {"max_size": options["max_size"], "max_times_sampled": options["max_times_sampled"],
            **dict(zip(_LIMITER, options["limiter"]))}


def _text(name: str, value: float) -> str:
    return f"{name}={'no bound' if abs(value) > _NO_BOUND else format(value, '.12g')}"


def warn_of_saved(table: str, given: Mapping[str, Any], used: Mapping[str, Any]) -> None:
    """Logs that saved settings of a table are used, if they differ from those that were given."""
    ours, saved = _settings(given), _settings(used)
    differ = [name for name in ours if ours[name] != saved[name]]
    if differ:
        logger().warning(
            "table %r: the saved %s %s used, not %s as given; client.alter_table(%r, ...) changes %s",
            table, ", ".join(_text(name, saved[name]) for name in differ), "is" if len(differ) == 1 else "are",
            ", ".join(_text(name, ours[name]) for name in differ), table, "it" if len(differ) == 1 else "them")


def begin_with(path: str, fallback: Optional[str]) -> None:
    """Fills the data directory `path` from `fallback`, if it has no checkpoint.

    `fallback` is a data directory, a checkpoint in a data directory, a checkpoint of dm-reverb, or
    a folder of checkpoints of dm-reverb.
    """
    if not fallback or os.path.exists(os.path.join(path, "CURRENT")):
        return
    source = os.path.abspath(fallback)
    if os.path.isfile(source):  # the path that Client.checkpoint() returns
        source = os.path.dirname(os.path.dirname(source))
    if os.path.exists(os.path.join(source, "CURRENT")):
        shutil.copytree(source, path, dirs_exist_ok=True)
    else:
        _core.data_from_reverb(source, path)


def choose(
    storage: Union[None, str, "os.PathLike[str]", Storage],
    checkpointer: Optional[CheckpointerBase],
) -> Optional[Dict[str, Any]]:
    """Returns the storage options of a server, from `storage` or from the checkpointer. None if
    there is neither."""
    if storage is not None and checkpointer is not None:
        raise ValueError("give storage or a checkpointer, not both")
    if isinstance(checkpointer, (str, os.PathLike)):
        raise TypeError(
            "checkpointer must be one of reprise.checkpointers, such as DefaultCheckpointer(path), "
            f"got {checkpointer!r}"
        )
    if checkpointer is not None:
        internal = checkpointer.internal_checkpointer()
        # As in Reverb, checkpoints are written on request only, and not at the end.
        made = Storage(internal.path, checkpoint_every=None, final_checkpoint=False)
        return dict(options_of(made), fallback=internal.fallback_checkpoint_path)
    if storage is None:
        return None
    if not isinstance(storage, Storage):
        storage = Storage(storage)
    return dict(options_of(storage), fallback=None)
