#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the durability tests at full length; `make durability` calls it.

    tests/durability/long.py                     all campaigns that are not complete
    tests/durability/long.py --seconds 600       stops after ten minutes
    tests/durability/long.py power kill_sync     these only
    tests/durability/long.py --at-once 8 ...     more slices at a time: kills mostly wait

A campaign repeats a test until a number is reached, in slices of a few minutes with different
seeds. Two slices run at a time, or as many as --at-once says. After each slice the results are
written to build/durability/ledger.json, so the script may be stopped at any time and continues
there. A ledger is for one state of the sources; --anew begins a new one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
WHERE = ROOT / "build" / "durability"
# Each campaign: its program and arguments, the number to be reached, the pattern of that number in
# the output, the length of a slice (RP_TEST_SCALE), and the build.
CAMPAIGNS = {
    "power": ("power", [], 1_000_000, r"# (\d+) recoveries after", 2, "release"),
    "kill_sync": ("kill", ["sync"], 3_334, r"# \w+: (\d+) kills", 2, "release"),
    "kill_interval": ("kill", ["interval"], 3_333, r"# \w+: (\d+) kills", 2, "release"),
    "kill_checkpoint": ("kill", ["checkpoint"], 3_333, r"# \w+: (\d+) kills", 2, "release"),
    "errors": ("errors", [], 20_000, r"# (\d+) runs", 6, "release"),
    "damage": ("damage", [], 524_288, r"# (\d+) loads", 8, "release"),
    "exact": ("exact", [], 1, r"^(ok) 2", 50, "release"),
    "points": ("points", [], 1, r"^(ok) 1", 5, "kill_points"),
    "full": ("full", [], 1, r"^(ok) 1", 1, "release"),
}
OPTIONS = {"release": [], "kill_points": ["-Dkill_points=true", "-Dprograms=false"]}


class Ledger:
    def __init__(self, anew):
        self.path, self.lock = WHERE / "ledger.json", threading.Lock()
        self.done = {}
        if self.path.exists() and not anew:
            self.done = json.loads(self.path.read_text())

    def entry(self, name):
        return self.done.setdefault(name, {"count": 0, "slices": 0, "seconds": 0.0, "failed": []})

    def next_slice(self, name):
        with self.lock:
            entry = self.entry(name)
            if entry["count"] >= CAMPAIGNS[name][2]:
                return None
            entry["slices"] += 1
            return entry["slices"]

    def add(self, name, count, seconds, failed):
        with self.lock:
            entry = self.entry(name)
            entry["count"] += count
            entry["seconds"] = round(entry["seconds"] + seconds, 1)
            if failed:
                entry["failed"].append(failed)
            self.path.write_text(json.dumps(self.done, indent=1) + "\n")
            return entry["count"]


def build(kind):
    folder = WHERE / kind
    if not (folder / "build.ninja").exists():
        subprocess.run([MESON, "setup", folder, ROOT, "-Dtests=enabled", *OPTIONS[kind]],
                       check=True, stdout=subprocess.DEVNULL)
    names = sorted({f"test_durability_{c[0]}" for c in CAMPAIGNS.values()})
    subprocess.run([MESON, "compile", "-C", folder, *names,
                    "src/cli/reprise:executable"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def run_slice(ledger, name, number):
    program, arguments, target, pattern, scale, kind = CAMPAIGNS[name]
    # Seeds of slices are a million apart, so that no two slices have a seed in common.
    env = {**os.environ, "RP_TEST_SCALE": str(scale), "RP_TEST_SEED": str(1 + 1_000_000 * number),
           "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    began = time.monotonic()
    ran = subprocess.run([WHERE / kind / "tests" / f"test_durability_{program}", *arguments],
                         cwd=WHERE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace", check=False)
    seconds = time.monotonic() - began
    found = re.findall(pattern, ran.stdout, re.MULTILINE)
    count = sum(int(n) if n.isdigit() else 1 for n in found)
    failed = None
    if ran.returncode != 0:
        failed = f"slice {number}: {ran.stdout[-3000:]}"
    total = ledger.add(name, count, seconds, failed)
    print(f"{'FAIL' if failed else 'ok':4} {name:16} slice {number:4} {count:8} in {seconds:6.1f} "
          f"s, {total} of {target}", flush=True)
    if failed:
        print(failed, flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="*", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="begin no slice after this time")
    parser.add_argument("--anew", action="store_true", help="forget what was done")
    parser.add_argument("--at-once", type=int, default=2, help="slices at a time")
    options = parser.parse_args()
    for name in options.campaigns:
        if name not in CAMPAIGNS:
            parser.error(f"no such campaign: {name}")
    names = options.campaigns or list(CAMPAIGNS)
    WHERE.mkdir(parents=True, exist_ok=True)
    for kind in {CAMPAIGNS[name][5] for name in names}:
        build(kind)
    ledger = Ledger(options.anew)
    ends = time.monotonic() + options.seconds
    failed = threading.Event()

    def work():
        for name in names:
            while not failed.is_set() and time.monotonic() < ends:
                number = ledger.next_slice(name)
                if number is None:
                    break
                if not run_slice(ledger, name, number):
                    failed.set()

    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        for future in [pool.submit(work) for _ in range(options.at_once)]:
            future.result()
    print()
    missing = False
    for name in names:
        entry, target = ledger.entry(name), CAMPAIGNS[name][2]
        missing |= entry["count"] < target or bool(entry["failed"])
        print(f"{name:16} {entry['count']:9} of {target:9}  {entry['slices']:5} slices "
              f"{entry['seconds']:9.1f} s  {len(entry['failed'])} failed")
    return 1 if failed.is_set() or (missing and options.seconds == float("inf")) else 0


if __name__ == "__main__":
    sys.exit(main())
