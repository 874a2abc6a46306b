# SPDX-License-Identifier: Apache-2.0
"""Environments for the tests of reprise.rl. They need no Gymnasium."""

import os
import signal

import numpy as np


class Box:
    def __init__(self, shape, dtype=np.float32):
        self.shape, self.dtype = shape, np.dtype(dtype)

    def __str__(self):
        return f"Box{self.shape}"


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start = n, start

    def __str__(self):
        return f"Discrete({self.n})"


class Dict:
    def __str__(self):
        return "Dict()"


class Corridor:
    """Walk to the right end: action 1 goes there. An episode ends there, or after 20 steps."""

    def __init__(self, length=5, first_action=0):
        self.length, self.first = length, first_action
        self.observation_space = Box((length,))
        self.action_space = Discrete(2, first_action)
        self.closed = False
        self.seeds = []

    def observe(self):
        row = np.zeros(self.length)
        row[self.at] = 1
        return row

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.at = self.steps = 0
        return self.observe(), {}

    def step(self, action):
        assert type(action) is int and action - self.first in (0, 1)
        self.steps += 1
        self.at = max(self.at + (1 if action == self.first + 1 else -1), 0)
        done = self.at == self.length - 1
        return self.observe(), 1.0 if done else -0.01, done, self.steps >= 20, {}

    def close(self):
        self.closed = True


class Broken(Corridor):
    """Goes wrong at its 30th step, in the way that `how` says, once a process if `once`."""

    done = False

    def __init__(self, how, once=False):
        super().__init__()
        self.how, self.once, self.total = how, once, 0

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.total += 1
        if self.total != 30 or (self.once and Broken.done):
            return observation, reward, terminated, truncated, info
        Broken.done = True
        if self.how == "raise":
            raise ZeroDivisionError("a planted error")
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "exit":
            os._exit(3)
        if self.how == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        if self.how == "nan":
            observation[2] = np.nan
        if self.how == "shape":
            observation = observation[:1]
        if self.how == "dtype":
            observation = observation.astype(str)
        if self.how == "reward":
            reward = float("inf")
        if self.how == "words":
            reward = "much"
        if self.how == "four":
            return observation, reward, terminated, info
        return observation, reward, terminated, truncated, info


class Pictures(Corridor):
    """The corridor as images of bytes, channels last."""

    def __init__(self):
        super().__init__()
        self.observation_space = Box((40, 44, 3), np.uint8)

    def observe(self):
        image = np.zeros((40, 44, 3), np.uint8)
        image[:, 8 * self.at:8 * self.at + 8, self.at % 3] = 255
        return image


class Numbered(Corridor):
    """The corridor with Discrete observations."""

    def __init__(self):
        super().__init__()
        self.observation_space = Discrete(self.length)

    def observe(self):
        return self.at
