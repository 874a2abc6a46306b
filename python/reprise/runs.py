# SPDX-License-Identifier: Apache-2.0
"""Runs: numbers that a training program reports to a server, for people to look at.

>>> import reprise
>>> server = reprise.Server([reprise.Table.queue("queue", max_size=10)])
>>> client = reprise.Client(f"localhost:{server.port}")
>>> for step in range(3):
...     reprise.log_scalars(client, "my run", step, {"loss": 1 / (step + 1)})
True
True
True
>>> reprise.runs.reporter(client).flush(10)
True

The page of the server draws the curves, and `reprise runs export "my run"` writes them as CSV or as
an event file of TensorBoard. docs/runs.md describes runs and their bounds.

A report never slows or stops the program that makes it: a thread sends it. Reports that do not fit
into the queue of that thread, or do not reach the server, are dropped and counted. So are scalars,
actors and episodes that the server has no room for.
"""

from __future__ import annotations

import atexit
import collections
import math
import os
import threading
import time as clock
import weakref
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from reprise.client import Client
from reprise.connection import core_client

__all__ = ["Actor", "Reporter", "log_scalars", "reporter"]

# The bounds of the server, as in reprise/runs.h.
_MOST_SCALARS, _MOST_ACTORS = 1024, 256  # of one report
_NAME_BYTES = 255
_EPISODE_NUMBERS, _EPISODE_VARIABLES = 16384, 1024
_AT_EXIT_S = 2.0


class Actor(NamedTuple):
    """The latest state of an actor: a row of the page's table of actors."""

    name: str
    epsilon: float = float("nan")
    episode_return: float = float("nan")
    version: int = 0
    version_lag: int = 0


class _Report(NamedTuple):
    run: str
    scalars: List[Tuple[str, int, float, float]]
    actors: List[Tuple[str, float, float, int, int]]
    env: Optional[str]
    states: Any


def _name(what: str, name: Any) -> str:
    """Returns a name that the server accepts."""
    text = str(name)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= _NAME_BYTES:
        raise ValueError(f"the name of {what} must have 1 to {_NAME_BYTES} bytes of UTF-8, got {size}")
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(f"the name of {what} must be text without zero bytes, got {text!r}")
    return text


def _int64(what: str, value: Any) -> int:
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{what} must be an integer of 64 bits, got {number}")
    return number


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"the scalar {name!r} must be a number, got {value!r}") from None


def _scalars(step: int, values: Mapping[str, Any], time: Optional[float]
             ) -> List[Tuple[str, int, float, float]]:
    step = _int64("step", step)
    now = clock.time() if time is None else float(time)
    if not (math.isfinite(now) and now >= 0):
        raise ValueError(f"time must be >= 0 and finite, in seconds since 1970, got {now}")
    if len(values) > _MOST_SCALARS:
        raise ValueError(f"a report has at most {_MOST_SCALARS} scalars, got {len(values)}")
    return [
        (_name("a scalar", name), step, now, _number(name, value)) for name, value in values.items()
    ]


def _actors(actors: Sequence[Actor]) -> List[Tuple[str, float, float, int, int]]:
    if len(actors) > _MOST_ACTORS:
        raise ValueError(f"a report has at most {_MOST_ACTORS} actors, got {len(actors)}")
    return [(_name("an actor", a.name), float(a.epsilon), float(a.episode_return),
             _int64("version", a.version), _int64("version_lag", a.version_lag)) for a in actors]


def _states(states: Any) -> Any:
    """Returns a copy of the states of an episode, which the caller may change afterwards."""
    copy = np.array(states, dtype=np.float32)
    if copy.ndim != 2:
        raise ValueError(f"states must have two dimensions (steps x variables), got {copy.ndim}")
    if copy.size == 0 or copy.shape[1] > _EPISODE_VARIABLES or copy.size > _EPISODE_NUMBERS:
        raise ValueError(
            f"states must have 1 to {_EPISODE_NUMBERS} numbers, at most {_EPISODE_VARIABLES} in a "
            f"step, got {copy.shape[0]} x {copy.shape[1]}: report fewer steps")
    return copy


class Reporter:
    """Sends reports to a server on a thread of its own.

    Args:
      client: a `Client`, or the address of a server.
      queue: the most reports that wait; further ones are dropped.
      timeout: seconds after which a report that has not arrived is dropped.
    """

    def __init__(self, client: Any, *, queue: int = 1024,
                 timeout: float = 5.0) -> None:
        self._client = Client(client) if isinstance(client, str) else client
        self._most, self._timeout = queue, timeout
        self._closed = False
        self.sent = 0  # reports that the server has
        self.dropped = 0  # reports that it has not
        self.left_out = 0  # scalars, actors and episodes of sent reports that it had no room for
        self.error: Optional[str] = None  # of the last report that did not arrive
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        """Begins without reports and without a thread, also in a child process after a fork: reports
        that waited then are those of the parent."""
        self._queue: Deque[_Report] = collections.deque()
        self._changed = threading.Condition()
        self._busy = self._ending = False
        self._thread: Optional[threading.Thread] = None

    def log(
        self,
        run: str,
        step: int,
        scalars: Mapping[str, Any],
        *,
        time: Optional[float] = None,
        actors: Sequence[Actor] = (),
        episode: Optional[Tuple[str, Any]] = None,
    ) -> bool:
        """Queues a report, and returns at once: False if it was dropped.

        Args:
          run: the name of the run, which is created if it does not exist.
          step: the step of all scalars.
          scalars: a mapping from the name of each series to its value, a number.
          time: seconds since 1970; None: now.
          actors: rows of the table of actors, which replace those of the same name.
          episode: the name of an environment, and its states (steps x variables), for a drawing.

        Raises:
          TypeError, ValueError: an argument is not what it has to be, or more than a bound of the
            server (docs/runs.md).
        """
        env, states = episode if episode is not None else (None, None)
        if episode is not None:
            env, states = _name("the environment", env), _states(states)
        report = _Report(_name("the run", run), _scalars(step, scalars, time), _actors(actors), env,
                         states)
        with self._changed:
            if self._closed or len(self._queue) >= self._most:
                self.dropped += 1
                return False
            self._queue.append(report)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reprise-runs",
                                                daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits until no report waits. False if `timeout` seconds have passed before."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    def close(self, timeout: Optional[float] = 5.0) -> None:
        """Sends the reports that wait, for at most `timeout` seconds, and ends the thread."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self.dropped += len(self._queue)
            self._queue.clear()
            self._changed.notify_all()

    def _end_when_empty(self) -> None:
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _take(self) -> List[_Report]:
        """Takes reports of one run that fit into one message; those before an episode."""
        batch = [self._queue.popleft()]
        count = len(batch[0].scalars)
        actors = {row[0] for row in batch[0].actors}
        while self._queue and batch[-1].states is None:
            following = self._queue[0]
            count += len(following.scalars)
            actors.update(row[0] for row in following.actors)
            if (following.run != batch[0].run or count > _MOST_SCALARS
                    or len(actors) > _MOST_ACTORS):
                break
            batch.append(self._queue.popleft())
        return batch

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._queue or self._closed or self._ending)
                if self._closed or not self._queue:
                    return
                batch = self._take()
                self._busy = True
            error, left_out = None, 0
            try:
                left_out = self._send(batch)
            except Exception as raised:  # noqa: BLE001 - a report never stops the program
                error = str(raised) or type(raised).__name__
            with self._changed:
                if error is None:
                    self.sent, self.left_out = self.sent + len(batch), self.left_out + left_out
                else:
                    self.dropped, self.error = self.dropped + len(batch), error

    def _send(self, batch: List[_Report]) -> int:
        """Sends reports, and returns for how many of their parts the server has no room."""
        actors = {row[0]: row for report in batch for row in report.actors}
        return core_client(self._client).report(
            batch[0].run,
            [scalar for report in batch for scalar in report.scalars],
            list(actors.values()),
            batch[-1].env,
            batch[-1].states,
            self._timeout,
        )


class _Weak:
    """Stands for a client that it does not keep alive. When the client is gone, the connection that
    the client had is used for the reports that still wait."""

    def __init__(self, client: Client) -> None:
        self._ref = weakref.ref(client)
        self._last = core_client(client)

    @property
    def _client(self) -> Any:
        client = self._ref()
        if client is not None:
            self._last = core_client(client)
        return self._last


_all: "weakref.WeakSet[Reporter]" = weakref.WeakSet()

# The reporters of log_scalars(). A child process after a fork has no threads: it makes new ones.
_by_client: "weakref.WeakKeyDictionary[Any, Reporter]" = weakref.WeakKeyDictionary()
_by_address: Dict[str, Reporter] = {}
_lock = threading.Lock()


def _forget() -> None:
    global _lock
    _by_client.clear()
    _by_address.clear()
    _lock = threading.Lock()
    for each in list(_all):
        each._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _at_exit() -> None:
    until = clock.monotonic() + _AT_EXIT_S
    for each in [*_by_client.values(), *_by_address.values()]:
        each.close(max(0.0, until - clock.monotonic()))


def reporter(client: Union[Client, str]) -> Reporter:
    """Returns the reporter that `log_scalars` uses for a client, or for an address."""
    with _lock:
        if isinstance(client, str):
            if client not in _by_address:
                _by_address[client] = Reporter(client)
            return _by_address[client]
        if client not in _by_client:
            made = _by_client[client] = Reporter(_Weak(client))
            weakref.finalize(client, made._end_when_empty)
        return _by_client[client]


def log_scalars(
    client: Union[Client, str],
    run: str,
    step: int,
    scalars: Mapping[str, Any],
    *,
    time: Optional[float] = None,
) -> bool:
    """Reports scalars of a run to a server, without waiting for it.

    Args:
      client: a `Client`, or the address of a server.
      run: the name of the run, which is created if it does not exist.
      step: the step of all scalars.
      scalars: a mapping from the name of each series to its value, a number.
      time: seconds since 1970; None: now.

    Returns:
      False if 1,024 reports wait already, so that this one was dropped. `reporter(client)` counts
      the reports that were dropped, and has the reason in `error`.

    Raises:
      TypeError, ValueError: an argument is not what it has to be, or more than a bound of the server
        (docs/runs.md).
    """
    return reporter(client).log(run, step, scalars, time=time)
