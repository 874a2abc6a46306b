#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes decoders with libFuzzer; `make fuzz` calls it.

    tools/fuzz.py                         every target for a minute
    tools/fuzz.py --runs 10000000 chunk   one target, ten million inputs

Starts from fuzz/corpus/<target> and keeps what it finds in build/fuzz/corpus/<target>. An input
that fails is kept in build/fuzz/failures. Fix the bug, add the input to fuzz/corpus/<target>, and
write a test named after it.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"

# The largest inputs of targets whose input is a list of steps: longer ones take long and find
# little more.
MAX_LENGTHS = {"framing": 128, "h2_client": 128, "session": 64}
# Makes allocations cheaper: short stack traces, and a small quarantine of freed blocks.
SANITIZER = "malloc_context_size=4:quarantine_size_mb=8"


def build(targets):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(
            [MESON, "setup", BUILD, ROOT, "-Dfuzzing=true", "-Dprograms=false",
             "-Dbuildtype=debugoptimized", "-Db_lundef=false",
             "-Db_sanitize=address,undefined", "-Dc_args=-fno-sanitize-recover=all"],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": "clang"})
    subprocess.run([MESON, "compile", "-C", BUILD, *(f"fuzz_{t}" for t in targets)], check=True,
                   stdout=subprocess.DEVNULL)


def fuzz(target, limit):
    """Runs one target. Prints libFuzzer's summary, or the last lines of output if it failed."""
    found = BUILD / "corpus" / target
    failures = BUILD / "failures"
    found.mkdir(parents=True, exist_ok=True)
    failures.mkdir(exist_ok=True)
    command = [BUILD / "fuzz" / f"fuzz_{target}", limit, "-rss_limit_mb=4096", "-timeout=25",
               "-entropic=0", "-print_final_stats=1", f"-artifact_prefix={failures}/{target}-"]
    if target in MAX_LENGTHS:
        command.append(f"-max_len={MAX_LENGTHS[target]}")
    command.append(found)
    seeds = ROOT / "fuzz" / "corpus" / target
    if seeds.is_dir():
        command.append(seeds)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={"ASAN_OPTIONS": SANITIZER, **os.environ})
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode != 0:
        print("\n".join(lines[-80:]))
        print(f"FAIL {target}", flush=True)
        return False
    runs = next((x.split()[-1] for x in lines if "number_of_executed_units" in x), "?")
    print(f"ok   {target}: {runs} inputs", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description="Fuzzes decoders; see the top of the file.")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--runs", type=int, help="inputs for each target")
    limits.add_argument("--seconds", type=int, default=60, help="for each target (default 60)")
    args = parser.parse_args()
    known = sorted(p.stem.removeprefix("fuzz_") for p in (ROOT / "fuzz").glob("fuzz_*.c"))
    for target in args.targets:
        if target not in known:
            parser.error(f"no such target: {target} (there are {', '.join(known)})")

    targets = args.targets or known
    build(targets)
    limit = f"-runs={args.runs}" if args.runs else f"-max_total_time={args.seconds}"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = list(pool.map(lambda t: fuzz(t, limit), targets))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
