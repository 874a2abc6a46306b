# SPDX-License-Identifier: Apache-2.0
"""The logger of the package. `logging` is slow to import, so it is imported at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["logger", "say_dropped"]


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("reprise")


def say_dropped(writer: str, items: int) -> None:
    """Logs how many items a writer drops because an exception ended its `with` block."""
    if items > 0:
        logger().warning(
            "%s: an exception ended its `with`: %d item%s not confirmed and dropped",
            writer,
            items,
            " was" if items == 1 else "s were",
        )
