#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with one learner and with several for equally many steps, and compares what they learn.

Each way has ten seeds. The return of a run is the mean of its greedy evaluations in the last part of the steps. Ways
agree if the means over seeds differ by no more than the 99 % interval of their difference (Welch), and if each
seed has the same updates but for those of ended episodes: an end adds items with fewer rewards than the others, so runs
that act otherwise have other numbers of items. `make test-pal` runs it.
"""

import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = range(1, 11)


class Task(typing.NamedTuple):
    agent: str
    env: str
    steps: int
    every: int   # steps between evaluations
    since: int   # step of the first evaluation that counts
    none: float  # a difference that is none: 1 % of the range of returns


# Returns in CartPole differ by far more between seeds before all of them have learnt it, at about 25,000 steps.
TASKS = [Task("dqn", "cartpole", 40_000, 1000, 27_000, 5.0), Task("dpg", "pendulum", 10_000, 500, 5000, 16.0),
         Task("sac", "pendulum", 10_000, 500, 5000, 16.0)]
# Updates for an episode that ends: its n - 1 shorter items by the items for an update, with the default settings.
FOR_END = {"dqn": 4 / 4, "dpg": 2 / 1, "sac": 0}
WAYS = {"one learner": [], "2 learners": ["--learners", "2"], "3 learners": ["--learners", "3"],
        "2 asynchronous": ["--learners", "2", "--async-learners", "true"]}
ONLY_DQN = {"2 asynchronous"}
NOT_SAC = {"3 learners"}  # its updates take three times as long
# Of Student's distribution, two-sided, 99 %, by degrees of freedom; Welch's are from n - 1 to 2 (n - 1).
STUDENT = {1: 63.66, 2: 9.92, 3: 5.84, 4: 4.60, 5: 4.03, 6: 3.71, 7: 3.50, 8: 3.36, 9: 3.25, 10: 3.17, 11: 3.11,
           12: 3.05, 13: 3.01, 14: 2.98, 15: 2.95, 16: 2.92, 17: 2.90}


def student(freedom):
    """The factor of the interval; of the next lower number of degrees, so that it is not too small."""
    return STUDENT.get(int(freedom), 2.88 if freedom >= 18 else STUDENT[1])


def train(command, task, way, seed):
    """Runs one seed. Returns its updates without those for ended episodes, and the mean of its later evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        done = subprocess.run([command, "train", task.agent, "--env", task.env, "--seed", str(seed), "--steps",
                               str(task.steps), "--eval-every", str(task.every), "--one-thread", "--keep-going",
                               "--save-every", "0", "--dir", str(run), "--json", *WAYS[way]],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{task.agent} {task.env}, {way}, seed {seed}: {done.stderr}")
        rows = list(csv.DictReader((run / "progress.csv").open()))
        later = [float(r["eval_return"]) for r in rows if r["eval_return"] and float(r["eval_steps"]) >= task.since]
    result = json.loads(done.stdout)
    return result["updates"] - FOR_END[task.agent] * result["episodes"], statistics.mean(later)


def interval(a, b):
    """Half of the 99 % interval of the difference of two means."""
    u, v = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    if u + v == 0:
        return 0.0
    freedom = (u + v) ** 2 / (u * u / (len(a) - 1) + v * v / (len(b) - 1))
    return student(freedom) * math.sqrt(u + v)


def compare(command, task, seeds):
    """Runs all ways of one task. Returns how many do not agree with one learner."""
    failed, first = 0, None
    for way in WAYS:
        if (way in ONLY_DQN and task.agent != "dqn") or (way in NOT_SAC and task.agent == "sac"):
            continue
        runs = [train(command, task, way, seed) for seed in seeds]
        updates, returns = [u for u, _ in runs], [r for _, r in runs]
        mean = statistics.mean(returns)
        line = (f"{task.agent} {task.env}, {way}: return {mean:.1f}, deviation {statistics.stdev(returns):.1f}, "
                f"updates {min(updates):.0f} to {max(updates):.0f}")
        if first is None:
            first = (updates, returns)
            print(line, flush=True)
            continue
        bound = max(interval(first[1], returns), task.none)
        off = mean - statistics.mean(first[1])
        slack = 8 if way in ONLY_DQN else 0  # asynchronous learners may be at a batch each
        equal = all(abs(a - b) <= slack for a, b in zip(first[0], updates))
        good = abs(off) <= bound and equal
        failed += not good
        print(f"{line}; differs by {off:+.1f}, bound {bound:.1f}: {'agrees' if good else 'DOES NOT AGREE'}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="2 or more")
    parser.add_argument("command", help="the program reprise")
    options = parser.parse_args()
    failed = sum(compare(options.command, task, SEEDS[:options.seeds]) for task in TASKS)
    sys.exit(f"{failed} ways do not agree" if failed else 0)


if __name__ == "__main__":
    main()
