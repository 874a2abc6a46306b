# SPDX-License-Identifier: Apache-2.0
"""A callback of learn() that reports to a server."""

import math
import time
from typing import Any, Dict, Optional, Set, Union

from reprise.client import Client
from reprise.runs import Actor, Reporter, reporter


class Report:
    """Reports what `agent.metrics()` returns, without waiting for the server (docs/runs.md).

    Args:
      client: a `Client`, or the address of a server.
      run: the name of the run.
      every_s: seconds between reports.
    """

    def __init__(self, client: Union[Client, str], run: str, every_s: float = 0.5) -> None:
        self.reporter: Reporter = reporter(client)
        self._run, self._every_s = run, every_s
        self._agent: Any = None
        self._next_s = 0.0
        self._last: Optional[int] = None
        self._known: Set[str] = set()  # names that have had a finite value

    def init_callback(self, agent: Any) -> None:
        self._agent = agent

    def on_step(self) -> bool:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + self._every_s
            self._send()
        return True

    def on_training_end(self) -> None:
        if self._last != self._agent.num_timesteps:
            self._send()

    def _send(self) -> None:
        self._last = self._agent.num_timesteps
        values: Dict[str, float] = self._agent.metrics()
        # A value that has not been measured yet is not finite; one that was measured has diverged.
        self._known.update(name for name, value in values.items() if math.isfinite(value))
        known = {name: value for name, value in values.items() if name in self._known}
        actor = Actor("actors", values.get("rollout/exploration_rate", math.nan),
                      values.get("rollout/ep_rew_mean", math.nan),
                      int(values.get("train/n_updates", 0)))
        self.reporter.log(self._run, self._agent.num_timesteps, known, actors=[actor])
