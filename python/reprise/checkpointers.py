# SPDX-License-Identifier: Apache-2.0
"""Checkpointers: where a server's checkpoints are. See `reprise.platform.checkpointers_lib`."""

from typing import Optional

from reprise.platform.checkpointers_lib import (
    CheckpointerBase,
    DefaultCheckpointer,
    TempDirCheckpointer,
)

__all__ = [
    "CheckpointerBase",
    "DefaultCheckpointer",
    "TempDirCheckpointer",
    "default_checkpointer",
]


def default_checkpointer(group: Optional[str] = None) -> CheckpointerBase:
    """A `TempDirCheckpointer`. `group` has no effect."""
    del group
    return TempDirCheckpointer()
