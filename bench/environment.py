# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark in one of the environments that tools/peers.py makes."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def interpreter(name, script):
    """The interpreter of an environment. Where that cannot be made, says so and ends well: not
    every machine has dm-reverb, or a way to the package index."""
    made = subprocess.run([sys.executable, ROOT / "tools" / "peers.py", name],
                          capture_output=True, text=True, check=False)
    if made.returncode != 0:
        print(f"skipped {pathlib.Path(script).name}: {made.stdout.strip()}")
        sys.exit(0)
    return ROOT / "build" / "peers" / name / "bin" / "python"


def run_inside(name, script, arguments, variables):
    """Runs the script with the environment's interpreter and ends with its status."""
    python = interpreter(name, script)
    sys.exit(subprocess.call([python, script, "--inside", *arguments], env=variables))
