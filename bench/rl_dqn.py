# SPDX-License-Identifier: Apache-2.0
"""Compares DQN with Stable-Baselines3's: seconds until CartPole-v1 is solved, and steps a second.

    rl.dqn.cartpole   the median of ten seeds of `reprise train dqn --env cartpole`, process start and
                      confirmation by 300 fresh episodes included, against learn() with the settings of
                      RL Baselines3 Zoo: 50,000 steps, the budget after which the zoo's policy is there.
                      Different algorithms: a comparison of what a user waits for
    rl.dqn.worst      the same with our slowest seed
    rl.dqn.steps      steps a second with the same network (64-64), batch (64) and steps per update (4),
                      on one thread each; ours with prioritized replay, dueling, double and n-step

Stable-Baselines3 is installed into a scratch environment, or only our figures are printed.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_rl_dqn"
COMMAND = ROOT / "build" / "release" / "src" / "cli" / "reprise"
BUDGET = 50_000  # steps of the zoo
ZOO = {"learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000,
       "gamma": 0.99, "target_update_interval": 10, "train_freq": 256, "gradient_steps": 128,
       "exploration_fraction": 0.16, "exploration_final_eps": 0.04, "policy_kwargs": {"net_arch": [256, 256]}}
SAME = {"learning_rate": 1e-3, "batch_size": 64, "buffer_size": 10_000, "learning_starts": 1000,
        "train_freq": 4, "gradient_steps": 1, "target_update_interval": 400,
        "policy_kwargs": {"net_arch": [64, 64]}}


def ours_solved(seeds):
    """Returns the seconds of the whole command for each seed; ends if one does not solve it."""
    times = []
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            done = subprocess.run([COMMAND, "train", "dqn", "--env", "cartpole", "--seed", str(seed),
                                   "--dir", f"{folder}/run", "--json"], capture_output=True, text=True,
                                  check=True)
            times.append(time.monotonic() - started)
        if not json.loads(done.stdout)["solved"]:
            sys.exit(f"seed {seed} is not solved")
    return times


def ours_steps(steps):
    """Returns steps a second, the best of five."""
    runs = [float(subprocess.run([PROGRAM, "--train", str(steps)], capture_output=True, text=True,
                                 check=True).stdout) for _ in range(5)]
    return steps / min(runs)


def theirs(settings, steps, budget):
    """Returns the seconds of learn() for some steps of a budget, over which epsilon falls."""
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    fraction = settings.get("exploration_fraction", 0.1) * budget / steps
    model = stable_baselines3.DQN("MlpPolicy", "CartPole-v1", seed=1, device="cpu",
                                  **{**settings, "exploration_fraction": min(1, fraction)})
    started = time.monotonic()
    model.learn(steps)
    return time.monotonic() - started


def inside(quick):
    steps = 5000 if quick else BUDGET
    zoo = theirs(ZOO, steps, BUDGET) * BUDGET / steps
    print(f"# stable-baselines3: {zoo:.0f} s for {BUDGET} steps with the zoo's settings")
    times = ours_solved(3 if quick else 10)
    for name, value in (("cartpole", statistics.median(times)), ("worst", max(times))):
        print(f"ratio rl.dqn.{name} {zoo / value:.1f} (ours {value:.2f} s vs stable-baselines3 "
              f"{zoo:.1f} s)", flush=True)
    count = 5000 if quick else 20_000
    a, b = ours_steps(100_000), count / theirs(SAME, count, count)
    print(f"ratio rl.dqn.steps {a / b:.1f} (ours {a:.0f} steps/s vs stable-baselines3 {b:.0f} steps/s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.quick)
        return
    subprocess.run([PROGRAM, *["--quick"] * options.quick], check=True)
    environment.run_inside("buffers", __file__, ["--quick"] * options.quick, None)


if __name__ == "__main__":
    main()
