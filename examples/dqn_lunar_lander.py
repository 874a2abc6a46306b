# SPDX-License-Identifier: Apache-2.0
"""Learns LunarLander-v3 with reprise.rl.DQN until it is solved, and saves the policy.

    pip install "gymnasium[box2d]"
    python examples/dqn_lunar_lander.py --seed 1 --workers 2

Solved means: parameters frozen, the mean return of 300 fresh greedy episodes is at least 200. Every
10,000 steps 20 episodes are tried; if their mean passes, 300 others decide.
"""

import argparse
import time
from typing import Any, Dict

from reprise.rl import DQN, evaluate_policy

ENV, THRESHOLD = "LunarLander-v3", 200.0
SETTINGS: Dict[str, Any] = dict(
    copies=16, hidden=64, batch=64, rate=1e-3, n_step=3, target_every=500,
    steps_per_update=4, start=5000, capacity=100_000, reward_scale=0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=500_000, help="the most steps")
    parser.add_argument("--workers", type=int, default=0, help="processes of environments")
    parser.add_argument("--every", type=int, default=10_000, help="steps between evaluations")
    parser.add_argument("--save", default="lunar_lander", help="file of the policy")
    parser.add_argument("--env", default=ENV)
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    options = parser.parse_args()

    agent = DQN(options.env, seed=options.seed, workers=options.workers, **SETTINGS)
    learning, solved = 0.0, False
    while not solved and agent.num_timesteps < options.steps:
        began = time.monotonic()
        agent.learn(options.every, reset_num_timesteps=False)
        learning += time.monotonic() - began
        mean, deviation = evaluate_policy(agent, options.env, 20, seed=agent.num_timesteps)
        now = agent.metrics()
        print(f"{agent.num_timesteps:>7} steps  {learning:6.1f} s of learning  return "
              f"{now['rollout/ep_rew_mean']:7.1f} exploring, {mean:7.1f} +- {deviation:.1f} greedy",
              flush=True)
        if mean >= options.threshold:
            mean, deviation = evaluate_policy(agent, options.env, 300, seed=10**9)
            solved = mean >= options.threshold
            print(f"300 other episodes: {mean:.1f} +- {deviation:.1f}", flush=True)
    agent.save(options.save)
    agent.close()
    print(f"{'solved' if solved else 'not solved'} after {agent.num_timesteps} steps, "
          f"{learning:.1f} s of learning")


if __name__ == "__main__":
    main()
