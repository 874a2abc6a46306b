# SPDX-License-Identifier: Apache-2.0
"""The logger of the package. `logging` takes a while to import: it is, when there is something to
say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["logger"]


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("reprise")
