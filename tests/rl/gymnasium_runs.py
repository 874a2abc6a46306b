# SPDX-License-Identifier: Apache-2.0
"""Runs of Gymnasium's classic-control tasks, as rows of doubles.

Shared by make_golden_envs.py, which writes them down, and compare_gymnasium.py, which compares them
with ours. A row is [kind, action, reward, terminated, truncated, variables..., observation...]; kind
is 0 for a reset and 1 for a step.
"""

import dataclasses

import gymnasium
import numpy as np

GYMNASIUM, NUMPY = "1.4.0", "2.4"


@dataclasses.dataclass
class Task:
    """A task: its names, its actions, and a policy that reaches its goal or its limit.

    The policy takes the last action if the weighted sum of the observation is >= 0, else the first.
    """

    name: str
    gymnasium_id: str
    variables: int
    actions: int            # 0: a box
    most: float             # the largest action of the box
    weights: tuple
    low: tuple              # of the random states of forced steps
    high: tuple
    bounds: dict            # a custom reset, in Gymnasium's words


TASKS = [
    Task("cartpole", "CartPole-v1", 4, 2, 0, (0, 0, 1, 1), (-2.5, -3, -.25, -3), (2.5, 3, .25, 3),
         {"low": -.1, "high": .2}),
    Task("mountain_car", "MountainCar-v0", 2, 3, 0, (0, 1), (-1.2, -.07), (.6, .07),
         {"low": -.9, "high": .1}),
    Task("mountain_car_continuous", "MountainCarContinuous-v0", 2, 0, 1, (0, 1), (-1.2, -.07),
         (.6, .07), {"low": -.9, "high": .1}),
    Task("acrobot", "Acrobot-v1", 4, 3, 0, (0, 0, 0, 0, 0, 1), (-np.pi, -np.pi, -12, -28),
         (np.pi, np.pi, 12, 28), {"low": -1, "high": 1}),
    Task("pendulum", "Pendulum-v1", 2, 0, 2, (0, -2, -1), (-20, -8), (20, 8),
         {"x_init": 8.5, "y_init": .5}),
]

# Gymnasium's words for a custom reset, and ours.
SETTINGS = {"low": "reset_low", "high": "reset_high", "x_init": "reset_angle",
            "y_init": "reset_spin"}


@dataclasses.dataclass
class Run:
    """A run from one seed. `mix` is the share of random actions, `beyond` the number of steps that
    an episode goes on after its end, `limit` a time limit other than the task's own."""

    seed: int
    mix: float
    steps: int
    beyond: int = 0
    limit: int = 0
    custom: bool = False


def make(task, limit=0):
    more = {"max_episode_steps": limit} if limit else {}
    return gymnasium.make(task.gymnasium_id, disable_env_checker=True, **more)


def variables(task, env):
    return [float(x) for x in env.unwrapped.state]


def choose(task, rng, mix, observation):
    """Returns an action as a double. Draws one or two doubles."""
    if rng.random() < mix:
        if task.actions:
            return float(int(rng.random() * task.actions))
        return float(np.float32(rng.uniform(-1.25 * task.most, 1.25 * task.most)))
    total = 0.0
    for weight, value in zip(task.weights, observation):
        total += weight * float(value)
    if task.actions:
        return float(task.actions - 1 if total >= 0 else 0)
    return task.most if total >= 0 else -task.most


def act(task, action):
    return int(action) if task.actions else np.array([action], dtype=np.float32)


def rows_of(task, run):
    """Yields the rows of a run."""
    env = make(task, run.limit)
    rng = np.random.default_rng(run.seed + 1)
    options = task.bounds if run.custom else None
    seed, left = run.seed, None
    observation = None
    for _ in range(run.steps):
        if observation is None or left == 0:
            observation, _ = env.reset(seed=seed, options=options)
            seed, left = None, None
            yield [0, 0, 0, 0, 0, *variables(task, env), *map(float, observation)]
        action = choose(task, rng, run.mix, observation)
        observation, reward, terminated, truncated, _ = env.step(act(task, action))
        yield [1, action, float(reward), terminated, truncated, *variables(task, env),
               *map(float, observation)]
        if left is not None:
            left -= 1
        elif terminated or truncated:
            left = run.beyond


def forced(task, count, seed):
    """Yields (variables, action, next variables, reward, terminated) of steps from random states."""
    env = make(task)
    rng = np.random.default_rng(seed)
    for index in range(count):
        env.reset(seed=index)
        state = rng.uniform(task.low, task.high)
        if task.name == "mountain_car_continuous" and index % 5:
            state = state.astype(np.float32)
        before = [float(x) for x in state]
        env.unwrapped.state = state if task.name != "mountain_car" else tuple(state)
        action = choose(task, rng, 1, ())
        _, reward, terminated, _, _ = env.unwrapped.step(act(task, action))
        yield before, action, variables(task, env), float(reward), terminated


def both_flags_limit(task, run):
    """Returns the length of the first episode of a run that terminates: as a time limit, it makes
    both flags true at once. 0 if none terminates."""
    length = 0
    for row in rows_of(task, run):
        length = 0 if row[0] == 0 else length + 1
        if row[3]:
            return length
    return 0


def runs(task, steps):
    """The runs of a task, with `steps` steps each."""
    found = [Run(0, 1, steps), Run(2**32 + 5, .1, steps), Run(42, .3, steps, beyond=3),
             Run(123456789012, .5, steps, custom=True)]
    limit = both_flags_limit(task, Run(0, .1, 5000))
    return found + ([Run(0, .1, steps, limit=limit)] if limit else [])
