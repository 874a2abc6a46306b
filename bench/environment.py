# SPDX-License-Identifier: Apache-2.0
"""The scratch environment that the clients written in Python need: dm-reverb and grpcio."""

import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = ROOT / "build" / "peers" / "reverb" / "bin" / "python"
PACKAGES = ["dm-reverb==0.14.0", "tensorflow==2.14.0", "numpy<2", "setuptools<70"]


def run_inside(script, arguments, variables):
    """Runs the script with the environment's interpreter, which is made first if there is none,
    and ends with its status. Where it cannot be made, says so and ends well: not every machine
    has dm-reverb, or a way to the package index."""
    if not PYTHON.exists() and not make():
        print(f"skipped {pathlib.Path(script).name}: dm-reverb 0.14.0 cannot be installed here")
        sys.exit(0)
    sys.exit(subprocess.call([str(PYTHON), script, "--inside", *arguments], env=variables))


def make():
    if platform.machine() != "x86_64" or sys.version_info[:2] != (3, 11):
        return False  # there are no other packages of it
    print("# installing dm-reverb into build/peers, once; this takes minutes", flush=True)
    folder = PYTHON.parents[1]
    steps = [[sys.executable, "-m", "venv", str(folder)],
             [str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES]]
    for step in steps:
        if subprocess.call(step) != 0:
            subprocess.call(["rm", "-rf", str(folder)])
            return False
    return True
