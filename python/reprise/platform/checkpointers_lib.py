# SPDX-License-Identifier: Apache-2.0
"""Checkpointers, which say where a server keeps its checkpoints.

A server with a checkpointer loads the newest checkpoint in the checkpointer's directory, and writes
a new one when `Client.checkpoint` is called. `reprise.Storage` has more options: periodic
checkpoints, a journal, data that is larger than the memory.
"""

from __future__ import annotations

import abc
import os
from typing import Optional

from reprise import pybind

__all__ = ["CheckpointerBase", "DefaultCheckpointer", "TempDirCheckpointer"]


class CheckpointerBase(metaclass=abc.ABCMeta):
    """The interface of a checkpointer."""

    @abc.abstractmethod
    def internal_checkpointer(self) -> pybind.Checkpointer:
        """Returns the object that the server uses."""


class DefaultCheckpointer(CheckpointerBase):
    """Keeps checkpoints in a directory.

    Args:
      path: the directory, which no other server may use at the same time.
      group: stored, but without effect.
      fallback_checkpoint_path: a checkpoint to start from if the directory has none.
    """

    def __init__(
        self,
        path: str,
        group: str = "",
        fallback_checkpoint_path: Optional[str] = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be a str or a path, got {path!r}")
        if not os.fspath(path):
            raise ValueError("path is empty: give a directory, such as './checkpoints'")
        self.path = path
        self.group = group
        self.fallback_checkpoint_path = fallback_checkpoint_path

    def internal_checkpointer(self) -> pybind.Checkpointer:
        return pybind.create_default_checkpointer(
            self.path, self.group, self.fallback_checkpoint_path
        )


class TempDirCheckpointer(DefaultCheckpointer):
    """Keeps checkpoints in a new temporary directory."""

    def __init__(self) -> None:
        import tempfile

        super().__init__(tempfile.mkdtemp(prefix="reprise-"))
