# SPDX-License-Identifier: Apache-2.0
"""Finds the headers of CPython and NumPy with which the extension modules of a wheel are compiled.

Headers of CPython are Debian's if a suite has that version, and otherwise those of an interpreter of
this machine: on Linux with 64 bits they are the same on x86-64 and aarch64. Headers of NumPy are
those of the wheel that pip would install for that CPython on that machine, as `pip wheel .` uses.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

from debian import WORK, fetch, run, triplet, unpack

VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
SUITES = {"3.9": "bullseye", "3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
NUMPY = "numpy>=2.0"  # as pyproject.toml requires for a build
QUESTION = """
import json, sys, sysconfig
paths = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
print(json.dumps([sys.implementation.name, "%d.%d" % sys.version_info[:2], paths]))
"""


def ask(python):
    """Returns the version of a CPython and the folders of its headers; None for other programs."""
    try:
        said = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, timeout=60)
        name, version, paths = json.loads(said.stdout)
    except (OSError, ValueError):
        return None
    return (version, sorted(set(paths))) if name == "cpython" else None


def interpreters():
    """Returns an interpreter of this machine for each version that it has headers for."""
    homes = sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    names = ["/usr/bin/python3", *(shutil.which(f"python{v}") for v in VERSIONS), *homes]
    found = {}
    for name in filter(None, names):
        answer = ask(str(name))
        if answer is not None and any((pathlib.Path(p) / "Python.h").exists() for p in answer[1]):
            found.setdefault(answer[0], str(name))
    return found


def python_headers(version, found):
    """Returns the folders of the headers of a CPython, or None if there are none here."""
    if version in SUITES:
        folder = WORK / f"python{version}-headers"
        usr = folder / "usr" / "include"
        if not (usr / triplet("aarch64")).exists():
            # Python.h of some versions includes crypt.h.
            packages = [f"libpython{version}-dev", "libcrypt-dev"]
            unpack(fetch(SUITES[version], "x86_64", packages), folder)
            (usr / triplet("aarch64")).symlink_to(triplet("x86_64"))
        return [usr / f"python{version}", usr]
    return ask(found[version])[1] if version in found else None


def numpy_headers(version, machine):
    """Returns the folder of NumPy's headers."""
    folder = WORK / f"numpy-{version}-{machine}"
    if not folder.exists():
        wheels = WORK / "numpy" / f"{version}-{machine}"
        platforms = [f"--platform={tag}_{machine}" for tag in
                     ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")]
        run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
             f"--python-version={version}", "--implementation=cp", *platforms, "-d", wheels, NUMPY])
        [wheel] = wheels.glob("numpy-*.whl")
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(partial, [n for n in archive.namelist() if "/include/" in n])
        partial.rename(folder)
    return folder / "numpy" / "_core" / "include"


def suffix(version, machine):
    """Returns the middle of the name of an extension module."""
    return f"cpython-{version.replace('.', '')}-{triplet(machine)}"


def targets(versions, machine):
    """Returns the values of meson's option python_headers."""
    found, values, missing = interpreters(), [], []
    for version in versions:
        folders = python_headers(version, found)
        if folders is None:
            missing.append(version)
        else:
            paths = [numpy_headers(version, machine), *folders]
            values.append(f"{suffix(version, machine)}={':'.join(map(str, paths))}")
    if missing:
        sys.exit(f"no headers of CPython {', '.join(missing)} were found on this machine: install it "
                 "(pyenv, or actions/setup-python), or name the versions to build: "
                 "tools/wheel.py " + " ".join(v for v in versions if v not in missing))
    return values
