#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fits simulated machines to what `reprise tune` measures here, and compares picks on 64 of their cores with
the best of all splits. `make test-split-machine` runs it.

    split_machine.py BUILD

Measured are the curves of 1 and 2 actors and of 1 and 2 learners, and one actor beside one learner. The
machine of tests/support/split_machine.h has a time for each part of a step and of an update. Fitted are

  insert     from two actors, which are slower than twice one since they wait for the lock
  gradient   from two learners, who share it; a meeting is taken as 1 us
  draw       from the actor and the learner beside each other, which wait for the lock
  step, serial   the rest of the time of one actor and of one learner

The rows that it prints are those of tests/unit/rl_pal/test_split_machine.c, which simulates them.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

MEETING = 1e-6
AGENTS = [("apex-dqn", "cartpole", []), ("apex-dqn", "cartpole", ["--hidden", "256", "--batch", "128"]),
          ("apex-dqn", "acrobot", []), ("apex-dpg", "pendulum", [])]


def root(function, low, high):
    """Where a function that falls crosses 0, or the end that is nearest to that."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low


def together(step, insert, draw, rest, interval):
    """The steps a second of one actor and one learner, as split_machine_run() has them."""
    def spare(steps):
        busy = steps * insert + steps / interval * draw
        if busy >= 1:
            return -1
        slower = 1 / (1 - busy)
        return min(1 - steps * (step + insert * slower), 1 - steps / interval * (draw * slower + rest))
    return root(spare, 0, 1e9)


def measure(command, agent, env, settings):
    line = [command, "tune", "--agent", agent, "--env", env, "--cores", "3", "--all", "--seconds", "1", "--json", *settings]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def fit(found):
    (a1, a2), (l1, l2) = ([p["per_second"] for p in found[role]["rates"]] for role in ("acting", "learning"))
    both = next(s["measured_steps_per_second"] for s in found["splits"] if s["actors"] == s["learners"] == 1)
    interval, one = found["steps_per_update"], 1 / a1
    insert = root(lambda x: 2 / a2 - (one - x) - x / (1 - a2 * x), 0, min(one, 0.99 / a2))
    gradient = min(max(2 * (1 / l1 - 1 / l2 + MEETING), 0), 1 / l1)
    draw = root(lambda x: together(one - insert, insert, x, 1 / l1 - x, interval) - both, 0, 1 / l1 - gradient)
    return [one - insert, insert, draw, 1 / l1 - gradient - draw, gradient, MEETING, interval]


def main():
    build = pathlib.Path(sys.argv[1])
    rows = []
    for agent, env, settings in AGENTS:
        found = measure(build / "src/cli/reprise", agent, env, settings)
        rows.append(fit(found))
        name = " ".join([agent, env, *settings])
        rates = ", ".join(f"{p['per_second']:.0f}" for role in ("acting", "learning") for p in found[role]["rates"])
        print(f"    {{{', '.join(f'{x:.3g}' for x in rows[-1])}}}, /* {name}: {rates} */", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(" ".join(map(repr, row)) + "\n" for row in rows))
        file.flush()
        done = subprocess.run([build / "tests/test_unit_rl_pal", "split_machine"], env={**os.environ, "RP_SPLIT_MACHINES": file.name})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
