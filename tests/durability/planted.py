#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests find the bugs that are planted in a copy of the sources.

    tests/durability/planted.py BUILD [NUMBER...]

BUILD is a build of the copy that tests/durability/plant.py makes. With its bug, each test must fail
within a minute. Without a bug, all of them must pass, as in every other build.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

import plant

LIMIT_S = 60
SCALES = {"durability_power": "0.6", "durability_errors": "6", "durability_rollouts": "5"}
CASES = {22: ["sync"], 23: ["checkpoint"], 30: ["sync"], 31: ["interval"]}

# Number of a bug: what is wrong, and the test that finds it.
BUGS = {
    1: ("the journal acknowledges before it writes", "durability_power"),
    2: ("the directory of a new journal file is not synced", "durability_power"),
    3: ("the journal's file is not synced", "durability_power"),
    4: ("the checksum of a payload is not compared", "durability_damage"),
    5: ("the checksum of the record before is not compared", "durability_damage"),
    6: ("a manifest is renamed before it is synced", "durability_power"),
    7: ("CURRENT is written before the manifest's directory is synced", "durability_power"),
    8: ("files are removed before CURRENT is on stable storage", "durability_power"),
    9: ("the journal is trimmed one file too far", "durability_power"),
    10: ("damage in the middle of the journal is taken for a torn tail", "durability_damage"),
    11: ("what leaves a table during a cut is not kept", "unit_cut"),
    12: ("a block is not saved before it changes during a cut", "unit_cut"),
    13: ("a priority that is set does not mark its block as changed", "durability_exact"),
    14: ("the sequence of items is not restored", "durability_exact"),
    15: ("the state of the random generator is not restored", "durability_exact"),
    16: ("the samples that the limiter has counted are not restored", "durability_exact"),
    17: ("the turns of heaps are not restored", "durability_exact"),
    18: ("the order of a dense set is not restored", "durability_exact"),
    19: ("a chunk of a restored item is counted once too often", "durability_exact"),
    20: ("evictions because of bytes are not in the journal", "durability_exact"),
    21: ("samples are not in the journal", "durability_exact"),
    22: ("a sync that failed is tried again on the same file", "durability_errors"),
    23: ("places in a segment that was given up stay as they were", "durability_errors"),
    24: ("max_size is restored one too large", "durability_exact"),
    25: ("a priority that is no number is restored", "unit_restore"),
    26: ("a checkpoint does not sync its segments", "durability_power"),
    27: ("an older checkpoint is taken and nobody is told", "durability_damage"),
    28: ("a segment that a kept checkpoint needs is removed", "durability_damage"),
    29: ("the journal is kept for the newest checkpoint alone", "durability_damage"),
    30: ("operations that an image of rollouts has are redone", "durability_rollouts"),
    31: ("LSNs of operations that an image of rollouts has are used again", "durability_rollouts"),
}


def find(build, number):
    """Runs the test of a bug. Returns whether it failed, and its output."""
    what, test = BUGS[number]
    command = [build / "tests" / f"test_{test}", *CASES.get(number, [])]
    if test.startswith("unit_"):
        command = [build / "tests" / "test_unit_table", test.removeprefix("unit_")]
    folder = build / "planted" / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "RP_PLANT": str(number), "RP_TEST_SCALE": SCALES.get(test, "0.1"),
           "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    began = time.monotonic()
    try:
        ran = subprocess.run(command, cwd=folder, env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                             check=False)
        status, output = ran.returncode, ran.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        status, output = None, (late.stdout or b"").decode(errors="replace")
    seconds = time.monotonic() - began
    found = status not in (0, None) and ("not ok" in output or status < 0)
    how = next((line for line in output.splitlines() if line and not line.startswith(
        ("1..", "ok", "# ", "TAP"))), "") if found else f"status {status}: {output[-500:]}"
    return found, f"{number:2} {what}: {test} in {seconds:.1f} s: {how[:160]}"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    numbers = [int(n) for n in sys.argv[2:]] or sorted(BUGS)
    bad = 0
    if plant.numbers() != set(BUGS):
        print(f"not ok - the patches have {sorted(plant.numbers())}, the list {sorted(BUGS)}")
        bad += 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for found, text in pool.map(lambda n: find(build, n), numbers):
            print(f"{'ok' if found else 'not ok'} - {text}", flush=True)
            bad += not found
    print(f"{len(numbers)} bugs, {bad} not found")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
