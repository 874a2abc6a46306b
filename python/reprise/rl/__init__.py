# SPDX-License-Identifier: Apache-2.0
"""Agents that learn from replay, over any Gymnasium environment.

    import reprise.rl

    agent = reprise.rl.DQN("CartPole-v1")
    agent.learn(50_000)
    action, _ = agent.predict(observation)

The names and arguments are those of Stable-Baselines3. Networks, replay and learning are in C; the
environments are in Python, in this process or in others (`workers=`). Gymnasium is imported only
when an environment is given by its name.
"""

try:
    import reprise._rl  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "reprise._rl":
        raise
    raise ImportError("reprise.rl is not part of this build of reprise, which was made with "
                      "-Drl=disabled") from None

from reprise.rl.dqn import DQN
from reprise.rl.evaluation import evaluate_policy
from reprise.rl.report import Report

__all__ = ["DQN", "Report", "evaluate_policy"]
