# SPDX-License-Identifier: Apache-2.0
"""Compares Ape-X DQN with the same agent written with PyTorch and TorchRL (apex_torchrl.py).

    apex.cartpole      environment steps a second that are acted, written to the replay and learned from:
                       CartPole, 64-64, 16 samples an insert
    apex.frames        the same with frames of 84 x 84 x 4, the network of Atari, 8 samples an insert.
                       Ours plays bricks; the peer's frames are random and cost nothing
    apex.cartpole.cpu, apex.frames.cpu
                       the same, for a second of processor time: it depends less on other programs
    apex.replay.share  0.15 over the replay's share of the processor time, CartPole; .frames: the frames
    apex.scaling       steps a second of as many actors as there are cores, over as many times one actor's;
                       no learner, which would have a core of its own. Lines "# actors" have the others, and
                       how many processors they had: other programs have the rest. .cpu: the same for a
                       second of processor time, which shows what the actors cost each other

The programs take turns, and the best of the rounds counts. The peer runs with the settings below that
were fastest for it. PyTorch and TorchRL are installed into a scratch environment, or only our figures are
printed.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_apex"
PEER = ROOT / "bench" / "apex_torchrl.py"
PAPER_IN, PAPER_OUT = 12_500, 9_700  # transitions a second, Horgan et al. 2018, 376 cores and a GPU
SAMPLES = {"cartpole": 16, "frames": 8}  # of an insert
OURS = {"cartpole": ["cartpole", "2", "16"], "frames": ["bricks", "1", "8"]}
# The fastest of those that were tried; docs/benchmarks.md has the others.
THEIRS = {"cartpole": ["cartpole", "1", "64", "--compile", "--draws", "4", "--block", "128"],
          "frames": ["frames", "1", "8"]}
MOST_SHARE = 0.15


class Rate:
    """Steps a second, of wall and of processor time, and processors in use; the best of several runs."""

    def __init__(self):
        self.wall = self.cpu = self.processors = 0.0

    def add(self, line):
        steps, _, wall, cpu = map(float, line.split()[:4])
        if steps / wall > self.wall:
            self.wall, self.processors = steps / wall, cpu / wall
        self.cpu = max(self.cpu, steps / cpu)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                               "TORCHINDUCTOR_COMPILE_THREADS": "1"})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def ours(task, seconds, *more):
    return run([PROGRAM, *OURS[task], str(seconds), *more])


def compare(python, task, rounds, seconds):
    """Prints the ratios of a task."""
    us, peer = Rate(), Rate()
    for _ in range(rounds):
        us.add(ours(task, seconds))
        if python is not None:
            peer.add(run([python, PEER, *THEIRS[task][:3], str(seconds), *THEIRS[task][3:]]))
    print(f"# apex.{task}: ours {us.wall:.0f} in and {SAMPLES[task] * us.wall:.0f} out a second; the paper, on "
          f"376 cores: {PAPER_IN} in and {PAPER_OUT} out", flush=True)
    if python is None:
        return
    for name, a, b in ((f"apex.{task}", us.wall, peer.wall), (f"apex.{task}.cpu", us.cpu, peer.cpu)):
        print(f"ratio {name} {a / b:.1f} (ours {a:.0f} steps/s vs torchrl {b:.0f} steps/s)", flush=True)


def share(seconds):
    """Prints the ratios of the replay's share."""
    for task, name in (("cartpole", "apex.replay.share"), ("frames", "apex.replay.share.frames")):
        value = float(ours(task, seconds, "--share").split()[4])
        print(f"ratio {name} {MOST_SHARE / value:.2f} (ours {value:.3f} of the processor time vs bound "
              f"{MOST_SHARE})", flush=True)


def scaling(rounds, seconds):
    cores = len(os.sched_getaffinity(0))
    rates = {}
    for _ in range(rounds):
        for actors in (1, 2, 4, 8):
            rates.setdefault(actors, Rate()).add(run([PROGRAM, "act-cartpole", str(actors), "16", str(seconds)]))
    for actors, rate in rates.items():
        ideal = min(actors, cores) * rates[1].wall
        print(f"# actors {actors}: {rate.wall:.0f} steps/s, {rate.wall / ideal:.2f} of ideal on {cores} cores; "
              f"they had {rate.processors:.2f} processors")
    most = max(n for n in rates if n <= cores)
    a, b = rates[most].wall, most * rates[1].wall
    print(f"ratio apex.scaling {a / b:.2f} (ours {a:.0f} steps/s with {most} actors vs ideal {b:.0f} steps/s)",
          flush=True)
    a, b = rates[most].cpu, rates[1].cpu
    print(f"ratio apex.scaling.cpu {a / b:.2f} (ours {a:.0f} steps/s of processor time with {most} actors vs one "
          f"actor {b:.0f} steps/s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["cartpole", "frames", "share", "scaling"])
    options = parser.parse_args()
    rounds, seconds = (1, 5) if options.quick else (5, 10)
    wanted = [options.only] if options.only else ["scaling", "share", "cartpole", "frames"]
    load = os.getloadavg()[0]
    print(f"# load average {load:.1f} on {len(os.sched_getaffinity(0))} cores", flush=True)
    if "scaling" in wanted:
        scaling(rounds, seconds / 2)
    if "share" in wanted:
        share(2 * seconds)
    tasks = [t for t in ("cartpole", "frames") if t in wanted]
    if tasks:
        python = environment.interpreter("buffers", __file__)
        for task in tasks:
            compare(python, task, rounds, seconds if task == "cartpole" else 2 * seconds)


if __name__ == "__main__":
    main()
