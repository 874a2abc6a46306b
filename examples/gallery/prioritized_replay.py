# SPDX-License-Identifier: Apache-2.0
"""Prioritized replay against uniform replay, on the blind cliffwalk of Schaul et al. (2016).

Of the two actions in each of N states, one is right; N right ones in a row give a reward, any other ends the episode. All
2^(N+1) - 2 transitions are in the buffer, and only one of them has a reward. With priorities, the learner finds
it, and passes its value back from state to state, in far fewer updates.
"""

import numpy as np

import reprise

N, DISCOUNT, ROUNDS = 9, 1 - 1 / 9, 4000


def transitions() -> list[tuple[int, int, float, int, bool]]:
    """Returns every transition of every episode, from each sequence of actions until it fails."""
    rows = []
    for length in range(1, N + 1):  # the last action of an episode with `length` steps
        copies = 2 ** (N - length)  # sequences that begin so
        rows += [(s, 1, 0.0, s + 1, False) for s in range(length - 1) for _ in range(copies)]
        rows += [(length - 1, 0, 0.0, 0, True)] * copies
    rows += [(s, 1, 0.0, s + 1, False) for s in range(N - 1)] + [(N - 1, 1, 1.0, 0, True)]
    return rows


def updates_until_learned(alpha: float, seed: int) -> int:
    buffer = reprise.ReplayBuffer(4096, {"state": ((), np.int64), "action": ((), np.int64), "reward": ((), np.float64),
                                         "next": ((), np.int64), "done": ((), bool)}, alpha=alpha, seed=seed)
    state, action, reward, following, done = map(np.array, zip(*transitions()))
    buffer.add(state=state, action=action, reward=reward, next=following, done=done)
    q = np.random.default_rng(seed).normal(0, 0.1, (N, 2))
    truth = DISCOUNT ** np.arange(N - 1, -1, -1)
    for update in range(1, ROUNDS + 1):
        batch = buffer.sample(16, beta=0.0)
        target = batch["reward"] + DISCOUNT * q[batch["next"]].max(1) * ~batch["done"]
        error = target - q[batch["state"], batch["action"]]
        np.add.at(q, (batch["state"], batch["action"]), 0.1 * error)
        if alpha > 0:
            buffer.update_priorities(batch["indices"], np.abs(error))
        if np.abs(q[:, 1] - truth).max() < 0.1:
            return update
    return ROUNDS


uniform = np.median([updates_until_learned(0.0, seed) for seed in range(5)])
prioritized = np.median([updates_until_learned(0.7, seed) for seed in range(5)])
print(f"updates until the values are right: uniform {uniform:.0f}, prioritized {prioritized:.0f}")
assert prioritized < uniform / 2
