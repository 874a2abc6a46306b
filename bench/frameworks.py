# SPDX-License-Identifier: Apache-2.0
"""Compares trainings in other frameworks that differ in nothing but the replay buffer.

For each framework one script trains DQN with the framework's own buffer and with the one of
reprise.frameworks. The two take turns; each turn is a new training of `--steps` steps, and the best
turn of each side counts, in processor time for 10,000 steps of the environment. All work is in one
thread of one process. After that, one more turn of each side measures which share of the time its
buffer takes: the time in the methods that add, sample and set priorities.

The tasks: `cartpole` is CartPole-v1, with 4 numbers in an observation. `wide` has observations of
376 float32, as many as those of Humanoid, random rewards, and episodes of 200 steps.
"""

import argparse
import functools
import logging
import os
import pathlib
import subprocess
import sys
import time
import warnings

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench-python"


class Clock:
    """Adds up the time in methods of objects."""

    def __init__(self):
        self.seconds, self.inside = 0.0, False

    def watch(self, owner, *names):
        for name in names:
            setattr(owner, name, self.timed(getattr(owner, name)))

    def timed(self, method):
        @functools.wraps(method)
        def call(*args, **kwargs):
            if self.inside:
                return method(*args, **kwargs)
            self.inside, began = True, time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - began
                self.inside = False
        return call


def make_wide():
    """Returns an environment with wide observations that costs almost nothing."""
    import gymnasium
    import numpy

    class Wide(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-10, 10, (376,), numpy.float32)
        action_space = gymnasium.spaces.Discrete(4)

        def __init__(self):
            self.seen = numpy.random.default_rng(0).normal(size=(1000, 376)).astype(numpy.float32)
            self.at = self.left = 0

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.left = 200
            return self.seen[self.at], {}

        def step(self, action):
            self.at = (self.at + 1) % 1000
            self.left -= 1
            return self.seen[self.at], float(self.at % 3), False, self.left == 0, {}

    return Wide()


def make_env(task):
    import gymnasium

    return gymnasium.make("CartPole-v1") if task == "cartpole" else make_wide()


#
# Each framework has train(task, kind, steps, clock), which returns the seconds of the training
# without its preparation. `kind` is "theirs", "ours" or "prioritized".

class StableBaselines3:
    """Uniform replay, which is all that Stable-Baselines3 has. `prioritized` is ours: the ratio
    shows what priorities cost."""

    name = "sb3"
    pairs = [("cartpole", "ours", ""), ("cartpole", "prioritized", ".prioritized"),
             ("wide", "ours", ".wide"), ("wide", "prioritized", ".wide.prioritized")]

    @staticmethod
    def train(task, kind, steps, clock=None):
        import stable_baselines3
        from reprise.frameworks import stable_baselines3 as ours

        options = {"replay_buffer_class": ours.ReplayBuffer} if kind == "ours" else {}
        algorithm = ours.PrioritizedDQN if kind == "prioritized" else stable_baselines3.DQN
        model = algorithm(
            "MlpPolicy", make_env(task), seed=1, device="cpu", learning_rate=1e-3,
            batch_size=64 if task == "cartpole" else 256, buffer_size=50_000, learning_starts=1000,
            train_freq=4, gradient_steps=2, target_update_interval=500,
            policy_kwargs={"net_arch": [64, 64]}, **options)
        if clock is not None:
            clock.watch(model.replay_buffer, "add", "sample", *[
                "update_priorities"] * (kind == "prioritized"))
        began = time.process_time()
        model.learn(steps)
        return time.process_time() - began


FRAMEWORKS = [StableBaselines3]


def share_of(framework, task, kind, steps):
    clock = Clock()
    seconds = framework.train(task, kind, steps, clock)
    return clock.seconds / seconds


def compare(framework, steps, rounds):
    best = {}
    kinds = sorted({(task, kind) for task, ours, _ in framework.pairs
                    for kind in ("theirs", ours)})
    for round_number in range(rounds):
        for task, kind in kinds if round_number % 2 == 0 else kinds[::-1]:
            seconds = framework.train(task, kind, steps) * 10_000 / steps
            best[task, kind] = min(seconds, best.get((task, kind), float("inf")))
    for task, ours, suffix in framework.pairs:
        theirs, mine = best[task, "theirs"], best[task, ours]
        shares = [share_of(framework, task, kind, steps) for kind in ("theirs", ours)]
        print(f"ratio pal.{framework.name}{suffix} {theirs / mine:.2f} (ours {mine:.2f} s vs theirs "
              f"{theirs:.2f} s for 10,000 steps)", flush=True)
        print(f"#   {task}: their buffer takes {shares[0]:.1%} of the time, ours {shares[1]:.1%}; "
              f"load {os.getloadavg()[0]:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", help="only these: " + ", ".join(
        f.name for f in FRAMEWORKS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int, help="steps of a turn; 10,000, or 4,000 with --quick")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        import torch

        torch.set_num_threads(1)
        for framework in FRAMEWORKS:
            if not options.frameworks or framework.name in options.frameworks:
                compare(framework, options.steps or (4_000 if options.quick else 10_000),
                        2 if options.quick else 5)
        sys.stdout.flush()
        os._exit(0)  # some of the frameworks take long to exit
    python = environment.interpreter("buffers", __file__)
    site = environment.build_package(python, BUILD)
    variables = {"PYTHONPATH": str(site), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
                 "PYTHONWARNINGS": "ignore", "RAY_DEDUP_LOGS": "0"}
    sys.exit(subprocess.call([python, __file__, "--inside", *sys.argv[1:]],
                             env={**os.environ, **variables}))


if __name__ == "__main__":
    main()
