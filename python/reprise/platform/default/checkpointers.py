# SPDX-License-Identifier: Apache-2.0
"""`reprise.checkpointers`, by the name some programs import it by."""

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
