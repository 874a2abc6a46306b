#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds libreprise-rl and the command with ThreadSanitizer, runs the unit tests of Ape-X and of parallel learners,
and trains for some seconds in threads and as processes. Any report of the sanitizer is a failure.
`make test-apex-tsan` runs it; of rl, `make test` runs only the tests of parallel learners with that sanitizer.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "durability")]

from runner.builds import BUILDS, build  # noqa: E402: it is beside the tests
from runner.process import BUILD, fixed_addresses  # noqa: E402

NAME = "apex-tsan"
TARGETS = ["tests/test_unit_rl_apex", "tests/test_unit_rl_loop", "tests/test_unit_rl_pal", "src/cli/reprise"]
UNITS = [("rl_apex", "apex"), ("rl_loop", "variables"), ("rl_loop", "trainer"), ("rl_pal", "team"),
         ("rl_pal", "crew"), ("rl_pal", "shared_params"), ("rl_pal", "dqn_learners"), ("rl_pal", "dqn_agents"),
         ("rl_pal", "box_learners")]
LIMIT = 1800  # seconds for a program: the sanitizer is slow, and so may the machine be
TRAININGS = [
    ["apex-dqn", "--env", "cartpole", "--actors", "4", "--serve", "localhost:0"],
    ["apex-dqn", "--env", "catch", "--actors", "3", "--then", "cartpole", "--capacity", "2000"],
    ["apex-dpg", "--env", "pendulum", "--actors", "2", "--serve", "localhost:0"],
    ["apex-dqn", "--env", "cartpole", "--actors", "2", "--processes", "--shards", "2"],
    ["apex-dqn", "--env", "cartpole", "--actors", "2", "--learners", "2"],
    ["apex-dqn", "--env", "cartpole", "--actors", "2", "--learners", "3", "--async-learners", "true"],
    ["apex-dpg", "--env", "pendulum", "--actors", "2", "--learners", "2"],
    ["apex-sac", "--env", "pendulum", "--actors", "2", "--learners", "2"],
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each training")
    options = parser.parse_args()
    tsan = BUILDS["tsan"]
    config = {"cc": tsan["cc"], "targets": TARGETS,
              "options": [*tsan["options"], "-Dpython=disabled"]}
    result = build(NAME, config)
    if result.failed:
        sys.exit(result.text)
    where, failed = BUILD / NAME, 0
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:exitcode=66", "RP_TEST_SCALE": "0.1"}
    commands = [[where / "tests" / f"test_unit_{module}", test] for module, test in UNITS]
    commands += [[where / "src" / "cli" / "reprise", "train", *line, "--keep-going", "--seconds",
                  str(options.seconds)] for line in TRAININGS]
    for command in commands:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*fixed_addresses(), *map(str, command)], cwd=folder, env=env, capture_output=True,
                                  text=True, timeout=LIMIT, check=False)
        output = done.stdout + done.stderr
        good = done.returncode == 0 and "ThreadSanitizer" not in output
        failed += not good
        print("passed" if good else "FAILED", " ".join(map(str, command[1:])), flush=True)
        if not good:
            print(f"status {done.returncode}\n{output[-6000:]}")
    print(f"{len(commands) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
