# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark in one of the environments that tools/peers.py makes."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def interpreter(name, script):
    """Returns the interpreter of an environment. If the environment cannot be made, prints the
    reason and ends with status 0: not every machine can have dm-reverb or reach the package index.
    """
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


def build_package(python, where):
    """Builds the Python package for an interpreter. Returns the folder from which it is imported.
    """
    probe = subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False)
    if probe.returncode != 0:
        sys.exit(f"{python} has no NumPy: the package cannot be built for it")
    site = where / "site"
    path = f"{pathlib.Path(python).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    meson = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
    commands = [[meson, "install", "-C", where, "--tags", "python-runtime"]]
    if not (where / "build.ninja").exists():
        commands.insert(0, [meson, "setup", where, ROOT, "-Dpython=enabled", "-Dtests=disabled",
                            "-Dprograms=false", "-Ddefault_library=static",
                            f"-Dpython.platlibdir={site}", f"-Dpython.purelibdir={site}"])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": path})
        if done.returncode != 0:
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    return site
