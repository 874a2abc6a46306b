# SPDX-License-Identifier: Apache-2.0
"""Hindsight experience replay (Andrychowicz et al., 2017): bit flipping with 8 bits, with tabular values.

The reward comes only at the goal, which random play hardly reaches. After each episode the writer adds the same steps once more, with
the state that was reached in the place of the goal: so every episode has a reward.
"""

import numpy as np

import reprise

BITS = 8


def learn(hindsight: bool, episodes: int = 1500) -> float:
    random = np.random.default_rng(1)
    buffer = reprise.ReplayBuffer(50_000, {"state": ((), np.int64), "goal": ((), np.int64), "action": ((), np.int64),
                                           "next": ((), np.int64)}, alpha=0.0, seed=1)
    q = np.zeros((2**BITS, 2**BITS, BITS))
    solved = []
    for episode in range(episodes):
        goal, states = int(random.integers(2**BITS)), [int(random.integers(2**BITS))]
        actions: list[int] = []
        while states[-1] != goal and len(actions) < BITS:
            values = q[states[-1], goal] + 1e-9 * random.random(BITS)
            actions.append(int(random.integers(BITS) if random.random() < 0.2 else values.argmax()))
            states.append(states[-1] ^ (1 << actions[-1]))
        solved.append(states[-1] == goal)
        for target in {goal, states[-1]} if hindsight else {goal}:
            if actions:
                buffer.add(state=np.array(states[:-1]), goal=np.full(len(actions), target), action=np.array(actions),
                           next=np.array(states[1:]))
        for _ in range(8):
            batch = buffer.sample(64)
            reached = batch["next"] == batch["goal"]
            target = reached + 0.95 * q[batch["next"], batch["goal"]].max(1) * ~reached
            q[batch["state"], batch["goal"], batch["action"]] = target  # transitions are deterministic
    return float(np.mean(solved[-200:]))


without, with_hindsight = learn(False), learn(True)
print(f"episodes that reach their goal: {without:.0%} without hindsight, {with_hindsight:.0%} with it")
assert with_hindsight > without
