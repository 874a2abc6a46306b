# SPDX-License-Identifier: Apache-2.0
"""The logger of the package. `logging` is slow to import, so it is imported at its first use."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Iterator

if TYPE_CHECKING:
    import logging

__all__ = ["CLOSED_EARLY", "Patience", "logger", "say_dropped", "say_left_out", "say_waiting", "saying"]

CLOSED_EARLY = "closed without flush()"  # why a writer drops items
_FIRST_S = 2.0  # the first warning about a wait
_LOOK_S = 0.25


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("reprise")


def say_dropped(writer: str, items: int,
                cause: str = "an exception ended its `with`") -> None:
    """Logs how many items a writer drops because an exception ended its `with` block, or because it
    was closed without a flush."""
    if items > 0:
        logger().warning(
            "%s: %s: %d item%s not confirmed and dropped",
            writer,
            cause,
            items,
            " was" if items == 1 else "s were",
        )


def say_waiting(seconds: float, reason: str) -> None:
    """Logs what a call has been waiting for. The C extension calls it after 2 seconds, and then each
    time that the wait has taken three times as long."""
    for late in ("the deadline passed: ", "no connection in time: "):  # of an attempt, not of the call
        if reason.startswith(late):
            reason = reason[len(late) :]
    reason = _explain(reason)
    logger().warning("still waiting after %.0f s: %s", seconds, reason)


def _explain(reason: str) -> str:
    from reprise import local_servers  # which imports the C extension

    return local_servers.explain(reason)


def say_left_out(calls: int, reason: str, call: str, table: str | None) -> None:
    """Logs that calls to all shards have left one out. The C extension calls it after the last one."""
    last = f"{call}({'' if table is None else repr(table)})"
    text = last if calls == 1 else f"{calls} calls, the last of them {last},"
    logger().warning("%s left out a shard: %s", text, _explain(reason))


class Patience:
    """A wait in slices. It is logged as those of the C extension are."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._since = time.monotonic()
        self._warn = _FIRST_S

    def slice(self, most: float) -> float:
        """Returns `most` seconds, or less so that a warning is not late."""
        return min(most, max(0.001, self._warn - (time.monotonic() - self._since)))

    def check(self, reason: object) -> None:
        waited = time.monotonic() - self._since
        if waited >= self._warn:
            self._warn = 3 * waited
            say_waiting(waited, str(reason))


@contextlib.contextmanager
def saying(reason: str) -> Iterator[None]:
    """Logs what a block does if it takes long, from another thread."""
    over = threading.Event()

    def watch() -> None:
        patience = Patience()
        while not over.wait(min(_LOOK_S, _FIRST_S)):
            patience.check(reason)

    thread = threading.Thread(target=watch, name="reprise-saying", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is ending
        yield
        return
    try:
        yield
    finally:
        over.set()
        thread.join()
