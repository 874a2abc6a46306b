# SPDX-License-Identifier: Apache-2.0
"""Threads that call functions with the events of tables."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from reprise import _core, _log

__all__ = ["CallbackThread", "Event", "KINDS"]

KINDS = ("insert", "update", "sample", "delete", "reset")  # in the order of the bits in the C extension
_STOP_S = 10.0


class Event(NamedTuple):
    """Something that happened to an item of a table.

    Fields:
      kind: "insert"; "update", its priority was set; "sample"; "delete", it was evicted, sampled
        `max_times_sampled` times, or deleted by its key; "reset", all items were removed, and the
        other fields are 0.
      key: the key of the item, for `Client.mutate_priorities`.
      priority: the priority at the time of the event.
      times_sampled: how often the item had been sampled at that time.
    """

    kind: str
    key: int
    priority: float
    times_sampled: int


class CallbackThread(_core.TableExtension):
    """The extension of one table that calls `function` with lists of `Event`, on its own thread."""

    def __new__(
        cls,
        table: str,
        function: Callable[[List[Event]], Any],
        events: Sequence[str],
        max_waiting: int,
    ) -> CallbackThread:
        kinds = sum(1 << KINDS.index(kind) for kind in set(events))
        self = super().__new__(cls, "events", max_waiting=max_waiting, kinds=kinds)  # type: ignore[call-arg]
        self._table = table
        self._function = function
        self._errors = 0
        self._thread: Optional[threading.Thread] = None
        return self

    def start(self) -> None:
        """Starts the thread, once the table exists."""
        name = f"reprise-callback-{self._table}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def read(self) -> Dict[str, Any]:
        """Returns counts of events: `waiting`; `taken` by the thread; `dropped`, as too many were
        waiting; and `errors`, calls of the function that raised an exception."""
        return dict(super().read(), errors=self._errors)

    def stop(self, timeout: float = _STOP_S) -> bool:
        """Ends the callback: the function is called with the events that wait, and not again.

        If that takes more than `timeout` seconds, the other events are dropped, and the thread ends
        when the function returns.

        Returns:
          True if the thread has ended. It cannot end during a call from the function itself.
        """
        self.close()
        thread = self._thread
        if thread is None:
            return True
        if thread is threading.current_thread():
            self.close(discard=True)
            return False
        thread.join(timeout)
        if thread.is_alive():
            self.close(discard=True)
        return not thread.is_alive()

    def _run(self) -> None:
        warned = 0
        try:
            while True:
                events = self.take()
                if events is None:
                    return
                if events:
                    self._call(events)
                warned = self._warn(warned)
        except SystemExit:  # of the function
            pass
        finally:
            self.close(discard=True)

    def _call(self, events: List[Tuple[str, int, float, int]]) -> None:
        try:
            self._function([Event(*event) for event in events])
        except SystemExit:
            raise
        except BaseException:  # asyncio.CancelledError, too
            self._errors += 1
            if self._errors & (self._errors - 1) == 0:  # the first, second, fourth, eighth, ...
                _log.logger().exception(
                    "table '%s': the callback of an extension raised an exception, for the %d. time",
                    self._table,
                    self._errors,
                )

    def _warn(self, warned: int) -> int:
        """Logs how many events were dropped, each time that there are twice as many. Returns their
        number at the last warning."""
        dropped = super().read()["dropped"]
        if dropped == 0 or dropped < 2 * warned:
            return warned
        _log.logger().warning(
            "table '%s': %d events were dropped, as the callback of an extension is too slow",
            self._table,
            dropped,
        )
        return dropped


def stop_all(extensions: Sequence[_core.TableExtension]) -> None:
    """Stops the callbacks of a server's tables, all within `_STOP_S` seconds."""
    threads = [extension for extension in extensions if isinstance(extension, CallbackThread)]
    for thread in threads:
        thread.close()
    until = time.monotonic() + _STOP_S
    for thread in threads:
        ended = thread.stop(max(0.0, until - time.monotonic()))
        if not ended and thread._thread is not threading.current_thread():
            _log.logger().warning("table '%s': a callback is still running", thread._table)
