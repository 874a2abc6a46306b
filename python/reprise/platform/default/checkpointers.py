# SPDX-License-Identifier: Apache-2.0
"""`reprise.checkpointers`, under another module name that it has in Reverb."""

from reprise.checkpointers import (
    CheckpointerBase,
    DefaultCheckpointer,
    TempDirCheckpointer,
    default_checkpointer,
)

__all__ = [
    "CheckpointerBase",
    "DefaultCheckpointer",
    "TempDirCheckpointer",
    "default_checkpointer",
]
