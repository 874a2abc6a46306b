# SPDX-License-Identifier: Apache-2.0
"""Episodes of training, counted, and lines about them."""

import collections
import sys
import time
from typing import Deque, Dict

import numpy as np

BAR_S = 0.2  # between changes of the bar


class Episodes:
    """Returns and lengths of the last 100 episodes, which explore."""

    def __init__(self, copies: int) -> None:
        self.count = 0
        self.returns: Deque[float] = collections.deque(maxlen=100)
        self.lengths: Deque[int] = collections.deque(maxlen=100)
        self._sums, self._steps = np.zeros(copies), np.zeros(copies, np.int64)

    def begin(self) -> None:
        self._sums[:], self._steps[:] = 0, 0

    def add(self, rewards: np.ndarray, ended: np.ndarray) -> None:
        self._sums += rewards
        self._steps += 1
        if not ended.any():
            return
        for i in np.flatnonzero(ended):
            self.returns.append(float(self._sums[i]))
            self.lengths.append(int(self._steps[i]))
            self.count += 1
        self._sums[ended], self._steps[ended] = 0, 0

    @property
    def mean_return(self) -> float:
        return sum(self.returns) / len(self.returns) if self.returns else float("nan")

    @property
    def mean_length(self) -> float:
        return sum(self.lengths) / len(self.lengths) if self.lengths else float("nan")


def table(values: Dict[str, float]) -> str:
    """Returns the values as a table."""
    rows = [(name, f"{value:.3g}" if isinstance(value, float) else str(value))
            for name, value in values.items()]
    left, right = max(len(n) for n, _ in rows), max(len(v) for _, v in rows)
    line = "-" * (left + right + 7)
    return "\n".join([line, *(f"| {n:<{left}} | {v:<{right}} |" for n, v in rows), line])


class Bar:
    """One line of progress on the standard error stream, rewritten."""

    def __init__(self, total: int, shown: bool) -> None:
        self._total, self._shown = total, shown
        self._began = self._last = time.monotonic()
        self._width = 0

    def show(self, steps: int, episodes: Episodes, force: bool = False) -> None:
        if not self._shown:
            return
        now = time.monotonic()
        if now - self._last < BAR_S and not force:
            return
        self._last = now
        rate = steps / max(now - self._began, 1e-9)
        text = (f"{steps:,} of {self._total:,} steps  {rate:,.0f} steps/s  "
                f"{max(self._total - steps, 0) / max(rate, 1e-9):.0f} s left  "
                f"{episodes.count} episodes  return {episodes.mean_return:.4g}")
        end = "\n" if force else ""
        sys.stderr.write("\r" + text.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = len(text)
