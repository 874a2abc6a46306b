# SPDX-License-Identifier: Apache-2.0
"""Compares our environments with the installed Gymnasium, bit by bit.

    python -m pip install gymnasium==1.4.0 numpy==2.4.6
    python tests/rl/compare_gymnasium.py build/test/release [--steps 100000]

Each task runs `--steps` steps from forced states, and as many freely from each of four or five
seeds and policies: resets, time limits, custom resets, steps after the end of an episode, actions out
of range. Prints a line for each, and exits with 1 if a bit differs.
"""

import argparse
import pathlib
import subprocess
import sys

import numpy as np
from gymnasium_runs import SETTINGS, TASKS, forced, rows_of, runs


def drive(driver, arguments, data, width):
    done = subprocess.run([driver, *map(str, arguments)], input=np.array(data).tobytes(),
                          capture_output=True, check=True)
    return np.frombuffer(done.stdout).reshape(-1, width)


def compare(label, theirs, ours):
    """Prints how many rows differ in any bit; returns the number."""
    theirs = np.array(theirs, dtype=np.float64)
    if theirs.shape != ours.shape:
        print(f"{label}: {theirs.shape[0]} rows of theirs, {ours.shape[0]} of ours")
        return 1
    wrong = (theirs.view(np.uint64) != ours.view(np.uint64)).any(axis=1)
    ends = int((theirs[:, 3] != 0).sum()), int((theirs[:, 4] != 0).sum())
    print(f"{label}: {len(theirs)} rows, {ends[0]} terminated, {ends[1]} truncated, "
          f"{int(wrong.sum())} differ")
    if wrong.any():
        first = int(np.argmax(wrong))
        print(f"  row {first}:\n  theirs {theirs[first]}\n  ours   {ours[first]}")
    return int(wrong.sum())


def compare_forced(driver, task, steps):
    rows = list(forced(task, steps, 2))
    found = drive(driver, ["forced", task.name], [[*before, action] for before, action, *_ in rows],
                  5 + task.variables + len(task.weights))
    theirs = [[1, action, reward, terminated, 0, *after]
              for _, action, after, reward, terminated in rows]
    return compare(f"{task.name} forced", theirs, np.ascontiguousarray(found[:, :5 + task.variables]))


def compare_free(driver, task, run):
    rows = list(rows_of(task, run))
    settings = [f"{SETTINGS[k]}={v}" for k, v in task.bounds.items()] if run.custom else []
    found = drive(driver, ["free", task.name, run.seed, run.beyond, run.limit, *settings],
                  [row[1] for row in rows if row[0] == 1], len(rows[0]))
    return compare(f"{task.name} {run}", rows, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    driver = arguments.build / "tests" / "env_driver"
    wrong = 0
    for task in TASKS:
        wrong += compare_forced(driver, task, arguments.steps)
        for run in runs(task, arguments.steps):
            wrong += compare_free(driver, task, run)
    print(f"{wrong} rows differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
