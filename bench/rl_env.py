# SPDX-License-Identifier: Apache-2.0
"""Compares steps of our environments with Gymnasium's own vector environments.

One thread each, 32 copies, random actions, automatic resets. Gymnasium steps its SyncVectorEnv and,
where a task has one, the vector environment of its own that make_vec() prefers (CartPole's, in
NumPy). The two sides take turns, round by round; the best round of each counts, in CPU time,
since both sides only compute. The named ratios are
against SyncVectorEnv, which every task has; the other ones are printed with the copies at which they
were measured, since NumPy's cost is by call, not by copy. Gymnasium is installed into a scratch
environment, or the benchmark is skipped.
"""

import argparse
import pathlib
import subprocess
import time

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_rl_env"
TASKS = {"cartpole": "CartPole-v1", "acrobot": "Acrobot-v1", "mountain_car": "MountainCar-v0",
         "mountain_car_continuous": "MountainCarContinuous-v0", "pendulum": "Pendulum-v1"}
COPIES, ACTION_SETS = 32, 61


class Theirs:
    """A vector environment of Gymnasium's with actions drawn beforehand."""

    def __init__(self, name, copies, mode):
        import gymnasium

        self.env = gymnasium.make_vec(name, num_envs=copies, vectorization_mode=mode)
        self.env.action_space.seed(1)
        self.actions = [self.env.action_space.sample() for _ in range(ACTION_SETS)]
        self.env.reset(seed=1)

    def seconds(self, steps):
        started = time.thread_time()
        for index in range(steps):
            self.env.step(self.actions[index % ACTION_SETS])
        return time.thread_time() - started


class Ours:
    """The program that steps our environments."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM, "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def seconds(self, name, copies, steps):
        print(name, copies, steps, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(ours, label, name, mode, copies, rounds):
    """Prints the ratio of steps a second."""
    theirs = Theirs(TASKS[name], copies, mode)
    steps = 2000 // copies + 1
    best_ours = best_theirs = float("inf")
    for _ in range(rounds):
        best_theirs = min(best_theirs, theirs.seconds(5) / 5)
        best_ours = min(best_ours, ours.seconds(name, copies, steps) / steps)
    a, b = copies / best_ours, copies / best_theirs
    print(f"ratio {label} {a / b:.1f} (ours {a / 1e6:.2f} M/s vs gymnasium {b / 1e3:.1f} k/s)",
          flush=True)


def inside(quick):
    rounds = 20 if quick else 100
    ours = Ours()
    print(f"# steps of {COPIES} copies against gymnasium's SyncVectorEnv")
    for name in TASKS:
        compare(ours, f"rl.env.{name}", name, "sync", COPIES, rounds)
    print("# against gymnasium's CartPoleVectorEnv, which computes all copies with NumPy")
    for copies in (1, 8, 32, 256):
        compare(ours, f"rl.env.cartpole.numpy.{copies}", "cartpole", "vector_entry_point", copies,
                rounds)
    ours.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.quick)
    else:
        environment.run_inside("gymnasium", __file__, ["--quick"] * options.quick, None)


if __name__ == "__main__":
    main()
