#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_ray.py with the interpreter of build/peers/ray, for which it builds the package."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import environment  # noqa: E402


def main():
    python = environment.interpreter("ray", __file__)
    site = environment.build_package(python, ROOT / "build" / "python" / "ray")
    # Away from the sources, so that nothing but the built package can be imported, also on the nodes.
    sys.exit(subprocess.call(
        [python, "-m", "pytest", "-v", "-p", "no:cacheprovider", ROOT / "tests" / "cluster" / "test_ray.py",
         *sys.argv[1:]], cwd=site, env={**os.environ, "PYTHONPATH": str(site), "RAY_DEDUP_LOGS": "0"}))


if __name__ == "__main__":
    main()
