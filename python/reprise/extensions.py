# SPDX-License-Identifier: Apache-2.0
"""Extensions of tables: counts, priorities that diffuse, copies of items, and callbacks.

>>> import reprise
>>> from reprise import extensions
>>> table = reprise.Table.queue("queue", 100, extensions=[extensions.Statistics()])
>>> server = reprise.Server([table])
>>> _ = server.localhost_client().insert([0], {"queue": 1.5})
>>> counts = table.extensions[0].read()
>>> counts["inserts"], counts["priority_mean"]
(1, 1.5)

The objects here are descriptions, which several tables may share. `table.extensions` has what was
made of them for one table, in their order; `read()` of each returns its counts. Extensions run in the
process of the server, so they need `Server(..., where="process")`, the default.

They see what happens while the server runs. They do not see the items that a checkpoint or a
`storage` brings back.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, List, Sequence

from reprise import _core
from reprise.callbacks import KINDS, CallbackThread, Event
from reprise.table import Table, TableExtensionBase

__all__ = [
    "Callback",
    "Diffusion",
    "Event",
    "InsertOnSample",
    "Statistics",
    "TableExtensionBase",
]


class Statistics(TableExtensionBase):
    """Counts the operations of a table.

    `read()` returns `inserts`, `updates`, `samples`, `deletes`, `resets`; `deleted_unsampled`, items
    that were deleted without having been sampled; `times_sampled_mean`, over deleted items; and
    `priority_mean`, `priority_min` and `priority_max`, over inserts and updates.
    """

    def build_internal_extensions(self, table_name: str) -> Sequence[_core.TableExtension]:
        return [_core.TableExtension("statistics")]


class Diffusion(TableExtensionBase):
    """Lets a new priority of an item diffuse to its neighbours in the same episode.

    The priority of the k-th neighbour on either side, in order of insertion, moves towards the new
    priority by the fraction `decay ** k` of the difference (Gruslys et al., 2017).

    Args:
      radius: how many neighbours on either side, from 1 to 64.
      decay: between 0 and 1, both excluded.
    """

    def __init__(self, radius: int, decay: float) -> None:
        self._radius = operator.index(radius)
        self._decay = float(decay)
        self.build_internal_extensions("")  # raises ValueError

    def build_internal_extensions(self, table_name: str) -> Sequence[_core.TableExtension]:
        return [_core.TableExtension("diffusion", radius=self._radius, decay=self._decay)]


class InsertOnSample(TableExtensionBase):
    """Copies an item into another table when it is sampled for the first time.

    The copy has the same key, priority and data. `read()` returns how many items were `copied`, and
    how many were `dropped`, because the target refused them or its rate limiter made them wait too
    long.

    Args:
      target: the name of a table of the same server, which comes before the table of the extension.
      timeout: seconds to wait for the rate limiter of the target. Samples of this table wait
        meanwhile.
    """

    def __init__(self, target: str, timeout: float = 0.0) -> None:
        self._target = target.name if isinstance(target, Table) else target
        self._timeout = float(timeout)
        self.build_internal_extensions("")  # raises ValueError

    def build_internal_extensions(self, table_name: str) -> Sequence[_core.TableExtension]:
        kind = "insert_on_sample"
        return [_core.TableExtension(kind, target=self._target, timeout=self._timeout)]


class Callback(TableExtensionBase):
    """Calls a Python function with the events of a table, on a thread of its own.

    >>> import reprise
    >>> seen = []
    >>> callback = Callback(seen.extend, events=["insert"])
    >>> table = reprise.Table.queue("queue", 100, extensions=[callback])
    >>> server = reprise.Server([table])
    >>> key = server.localhost_client().insert([0], {"queue": 1.0})
    >>> server.stop()
    >>> [event.kind for event in seen]
    ['insert']

    No call of the table waits for the function. So the table may have changed when it is called, and
    if it is slower than the events, at most `max_waiting` of them wait: later events are dropped. The
    logger `reprise` gets a warning then, and `read()` of the table's extension returns how many were
    `dropped`. The function may call the table; its own calls cause events, too.

    An exception of the function is logged, and the next events follow. `SystemExit` ends the
    callback. `Server.stop()` calls the function with the events that wait, for 10 seconds at most;
    `table.extensions[i].stop()` ends one callback earlier.

    Args:
      function: takes a list of `Event`, in their order, of up to 256.
      events: the kinds of events that are passed to the function; see `Event`.
      max_waiting: from 1 to 2^20. Each waiting event takes 24 bytes.
    """

    def __init__(
        self,
        function: Callable[[List[Event]], Any],
        events: Sequence[str] = KINDS,
        max_waiting: int = 1 << 16,
    ) -> None:
        if not callable(function):
            raise TypeError(f"a callback must be a function, got {function!r}")
        events = [events] if isinstance(events, str) else list(events)
        unknown = [kind for kind in events if kind not in KINDS]
        if unknown or not events:
            raise ValueError(f"events must be some of {', '.join(KINDS)}, got {events}")
        self._function = function
        self._events = events
        self._max_waiting = operator.index(max_waiting)
        self.build_internal_extensions("")  # raises ValueError

    def build_internal_extensions(self, table_name: str) -> Sequence[_core.TableExtension]:
        return [CallbackThread(table_name, self._function, self._events, self._max_waiting)]
