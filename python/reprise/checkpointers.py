# SPDX-License-Identifier: Apache-2.0
"""Checkpointers, which say where a server keeps its checkpoints.

See `reprise.platform.checkpointers_lib`.
"""

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
    """Returns a `TempDirCheckpointer`. `group` has no effect."""
    del group
    return TempDirCheckpointer()
