# SPDX-License-Identifier: Apache-2.0
"""Copies of an environment, stepped as one group over arrays.

A copy whose episode ended is reset within the same step: its row of `observations` is then the
first of the next episode, and its row of `last` is the last of the one that ended. Termination and
truncation are apart.
"""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from reprise.rl.source import EnvSource
from reprise.rl.spaces import Observations


class Arrays(NamedTuple):
    """What a group reads and writes, one row or entry a copy."""

    observations: np.ndarray
    last: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    actions: np.ndarray  # from 0 on, whatever the first action of the environment is


def new_arrays(copies: int, observations: Observations,
               make: Callable[[int], Any] = bytearray) -> Arrays:
    """Lays the arrays out in one buffer, which `make` makes of a number of bytes."""
    row = (copies, *observations.shape)
    parts: List[Tuple[Tuple[int, ...], Any]] = [
        (row, observations.dtype), (row, observations.dtype), ((copies,), np.float64),
        ((copies,), np.bool_), ((copies,), np.bool_), ((copies,), np.int32)]
    starts, end = [], 0
    for shape, dtype in parts:
        starts.append(end)
        end += -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // 64) * 64
    buffer = make(end)
    return Arrays(*(np.ndarray(shape, dtype, buffer, start)
                    for (shape, dtype), start in zip(parts, starts)))


def seeds_of(seed: int, copies: int) -> List[int]:
    """Returns a seed for each copy: those of the C library's loop for the same seed."""
    words = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    high, low = np.random.SeedSequence([*words, 2]).generate_state(2)
    return [int(np.random.SeedSequence([int(low), int(high), i]).generate_state(1)[0])
            for i in range(copies)]


class Copies:
    """Some copies of a group, in this process: those from `first` on."""

    def __init__(self, source: EnvSource, arrays: Arrays, first: int, count: int) -> None:
        self._name, self._write = source.name, source.observations.write
        self._arrays, self._first = arrays, first
        self._first_action = source.first_action
        self._owns = source.single is None
        self._envs = [source.make() for _ in range(count)]

    def _fail(self, copy: int, what: str) -> RuntimeError:
        return RuntimeError(f"environment {self._name!r}, copy {copy}: {what}")

    def _reset(self, copy: int, seed: Optional[int]) -> None:
        env = self._envs[copy - self._first]
        try:
            made = env.reset() if seed is None else env.reset(seed=seed)
        except Exception as error:
            raise self._fail(copy, f"reset() raised {type(error).__name__}: {error}") from error
        if not isinstance(made, tuple) or len(made) != 2:
            raise self._fail(copy, "reset() returned no pair of an observation and a dict")
        try:
            self._write(self._arrays.observations[copy], made[0])
        except (TypeError, ValueError) as error:
            raise self._fail(copy, f"reset() returned {error}") from None

    def reset(self, seeds: Optional[Sequence[int]]) -> None:
        """Begins an episode in every copy; None goes on with their random streams."""
        for i in range(len(self._envs)):
            self._reset(self._first + i, None if seeds is None else int(seeds[self._first + i]))

    def step(self) -> None:
        """Steps every copy by its action."""
        arrays = self._arrays
        for copy, env in enumerate(self._envs, self._first):
            try:
                made = env.step(self._first_action + int(arrays.actions[copy]))
            except Exception as error:
                raise self._fail(copy, f"step() raised {type(error).__name__}: {error}") from error
            if not isinstance(made, tuple) or len(made) != 5:
                raise self._fail(copy, "step() returned no 5 values: observation, reward, "
                                       "terminated, truncated, info")
            observation, reward, terminated, truncated, _ = made
            ended = bool(terminated) or bool(truncated)
            rows = arrays.last if ended else arrays.observations
            try:
                self._write(rows[copy], observation)
                arrays.rewards[copy] = reward
            except (TypeError, ValueError) as error:
                what = error if "observation" in str(error) else f"the reward {reward!r}"
                raise self._fail(copy, f"step() returned {what}") from None
            arrays.terminated[copy] = bool(terminated)
            arrays.truncated[copy] = bool(truncated)
            if ended:
                self._reset(copy, None)

    def close(self) -> None:
        """Closes the environments, unless they are the user's."""
        for env in self._envs if self._owns else ():
            if hasattr(env, "close"):
                env.close()
        self._envs = []


class Group:
    """All copies, stepped one after the other in this process."""

    def __init__(self, source: EnvSource, copies: int) -> None:
        self.arrays = new_arrays(copies, source.observations)
        self._copies = Copies(source, self.arrays, 0, copies)

    def reset(self, seeds: Optional[Sequence[int]]) -> None:
        self._copies.reset(seeds)

    def step(self) -> None:
        self._copies.step()

    def close(self) -> None:
        self._copies.close()
