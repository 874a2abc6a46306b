#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of reprise.frameworks beside the real frameworks; `make test-frameworks` calls it.

    tests/frameworks/run.py                      all
    tests/frameworks/run.py stable_baselines3    those of one framework
    tests/frameworks/run.py torchrl.Learning     one class of them

The frameworks are in build/peers/buffers (tools/peers.py), and the package is built for the
interpreter of that environment.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import environment  # noqa: E402


def main():
    python = environment.interpreter("buffers", __file__)
    site = environment.build_package(python, ROOT / "build" / "bench-python")
    here = pathlib.Path(__file__).resolve().parent
    names = [f"test_{name}" for name in sys.argv[1:]]
    names = names or sorted(path.stem for path in here.glob("test_*.py"))
    variables = {"PYTHONPATH": os.pathsep.join(
        [str(site), str(here), str(ROOT / "bench")]), "CUDA_VISIBLE_DEVICES": "",
                 "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "RAY_DEDUP_LOGS": "0"}
    failed = 0
    for name in names:  # one process each: the frameworks are large, and some leave threads behind
        print(f"# {name}", flush=True)
        failed |= subprocess.call([python, "-m", "unittest", "-v", name], cwd=site,
                                  env={**os.environ, **variables})
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
