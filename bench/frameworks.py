# SPDX-License-Identifier: Apache-2.0
"""Compares trainings in other frameworks that differ in nothing but the replay buffer.

For each framework one script trains DQN with the framework's own buffer and with the one of
reprise.frameworks. The two take turns; each turn is a new training of `--steps` steps, and the best
turn of each side counts, in processor time for 10,000 steps of the environment. All work is in one
thread of one process. After that, one more turn of each side measures which share of the time its
buffer takes: the time in the methods that add, sample and set priorities.

The scripts are in framework_scripts.py. The tasks: `cartpole` is CartPole-v1, with 4 numbers in an
observation. `wide` has observations of 376 float32, as many as those of Humanoid, and episodes of 200
steps.
"""

import argparse
import logging
import os
import pathlib
import subprocess
import sys
import warnings

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench-python"
NAMES = ["sb3", "torchrl", "tianshou", "rllib"]
# The task, the kind of our buffer, and the end of the ratio's name.
BOTH = [("cartpole", "ours", ""), ("wide", "ours", ".wide")]
PAIRS = {"sb3": [*BOTH, ("cartpole", "prioritized", ".prioritized"),
                 ("wide", "prioritized", ".wide.prioritized")]}


def share_of(script, task, kind, steps):
    from framework_scripts import Clock

    clock = Clock()
    seconds = script(task, kind, steps, clock=clock).seconds
    return clock.seconds / seconds


def compare(name, script, steps, rounds):
    best = {}
    pairs = PAIRS.get(name, BOTH)
    kinds = sorted({(task, kind) for task, ours, _ in pairs for kind in ("theirs", ours)})
    for round_number in range(rounds):
        for task, kind in kinds if round_number % 2 == 0 else kinds[::-1]:
            seconds = script(task, kind, steps).seconds * 10_000 / steps
            best[task, kind] = min(seconds, best.get((task, kind), float("inf")))
    shares_of = {(task, kind): share_of(script, task, kind, steps) for task, kind in kinds}
    for task, ours, suffix in pairs:
        theirs, mine = best[task, "theirs"], best[task, ours]
        shares = [shares_of[task, kind] for kind in ("theirs", ours)]
        print(f"ratio pal.{name}{suffix} {theirs / mine:.2f} (ours {mine:.2f} s vs theirs "
              f"{theirs:.2f} s for 10,000 steps)", flush=True)
        print(f"#   {task}: their buffer takes {shares[0]:.1%} of the time, ours {shares[1]:.1%}; "
              f"load {os.getloadavg()[0]:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", help="only these of " + ", ".join(NAMES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int, help="steps of a turn; 10,000, or 4,000 with --quick")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        import torch

        torch.set_num_threads(1)
        from framework_scripts import SCRIPTS

        for name in options.frameworks or NAMES:
            compare(name, SCRIPTS[name], options.steps or (4_000 if options.quick else 10_000),
                    2 if options.quick else 5)
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
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
