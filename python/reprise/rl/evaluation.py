# SPDX-License-Identifier: Apache-2.0
"""Episodes of a policy that does not learn."""

from typing import Any, List, Tuple, Union

import numpy as np
from reprise.rl.group import Group, seeds_of
from reprise.rl.source import EnvSource

MOST_COPIES = 16


def evaluate_policy(model: Any, env: Any, n_eval_episodes: int = 10, deterministic: bool = True,
                    return_episode_rewards: bool = False, seed: int = 1 << 32,
                    ) -> Union[Tuple[float, float], Tuple[List[float], List[int]]]:
    """Runs episodes from fresh resets. Returns the mean and the standard deviation of their
    returns, or all returns and lengths.

    `model` has predict(). `env` is a name, a callable or an environment, as for DQN; the first two
    are stepped in groups. Each copy runs its share of the episodes, so long ones are not left out.
    """
    if n_eval_episodes < 1:
        raise ValueError(f"n_eval_episodes must be >= 1, got {n_eval_episodes}")
    source = EnvSource(env)
    copies = 1 if source.single is not None else min(n_eval_episodes, MOST_COPIES)
    left = np.full(copies, n_eval_episodes // copies)
    left[:n_eval_episodes % copies] += 1
    group = Group(source, copies)
    arrays = group.arrays
    returns: List[float] = []
    lengths: List[int] = []
    sums, steps = np.zeros(copies), np.zeros(copies, np.int64)
    try:
        group.reset(seeds_of(seed, copies))
        while left.any():
            arrays.actions[:] = _act(model, source, arrays.observations, deterministic)
            group.step()
            sums += arrays.rewards
            steps += 1
            for i in np.flatnonzero(arrays.terminated | arrays.truncated):
                if left[i]:
                    returns.append(float(sums[i]))
                    lengths.append(int(steps[i]))
                    left[i] -= 1
                sums[i], steps[i] = 0, 0
    finally:
        group.close()
    if return_episode_rewards:
        return returns, lengths
    return float(np.mean(returns)), float(np.std(returns))


def _act(model: Any, source: EnvSource, rows: np.ndarray, deterministic: bool) -> np.ndarray:
    """Returns actions from 0 on. The model sees observations as the environment gives them."""
    observations = source.observations
    if observations.channels_last:
        rows = rows.transpose(0, 2, 3, 1)
    elif observations.one_hot:
        rows = rows.argmax(1)
    else:
        rows = rows.reshape(len(rows), *observations.given)
    return np.asarray(model.predict(rows, deterministic=deterministic)[0]) - source.first_action
