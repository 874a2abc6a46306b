# SPDX-License-Identifier: Apache-2.0
"""The tests of Debian's packages, of the wheel that pip builds, and of the files of other packages."""

import os
import re
import shutil
import sys
import zipfile

from runner.process import BUILD, ROOT, Result, parse_tap, pytest_job, run

UNOPTIMIZED = ["--config-settings=setup-args=-Doptimization=0", "--config-settings=setup-args=-Db_lto=false",
               "--config-settings=setup-args=-Djoin=12"]


def files_job():
    """hadolint and others on the files of the image, the hosted CI and CITATION.cff."""
    status, output = run([sys.executable, ROOT / "tools" / "peers.py", "linters"], 3600)
    if status != 0:
        return Result(0, 1, output)
    return pytest_job(ROOT / "build" / "peers" / "linters" / "bin" / "python", "tests/packages",
                      {"RP_BUILD": str(BUILD / "release")})


def deb_job():
    """Builds the Debian packages, and runs the service in a clean Debian."""
    status, output = run([ROOT / "tools" / "need.sh", "build", "deb"], 1800)
    if status == 0:
        status, output = run([sys.executable, ROOT / "tools" / "deb.py", "--quick"], 3600)
    if status != 0:
        return Result(0, 1, output)
    if os.geteuid() != 0:
        return Result(1, 0, "the packages are not installed: that needs root", 9)
    status, output = run([sys.executable, ROOT / "tests" / "packages" / "deb.py"], 3600)
    return parse_tap(status, output, 3600)


def names_in(wheel):
    """Returns the files of a wheel, without those that depend on what built it."""
    with zipfile.ZipFile(wheel) as archive:
        names = {re.sub(r"^[^/]*\.data/", "DATA/", name) for name in archive.namelist()}
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        head = archive.read(metadata).decode().partition("\n\n")[0]
    facts = set(re.findall(r"^(?:Name|Version|Requires-Dist|Requires-Python|Summary): .*", head, re.MULTILINE))
    return {name for name in names if ".dist-info/" not in name and not name.endswith("/")} | facts


def pip_job(wheel_made):
    """Builds a wheel with `pip wheel .`. It has the same files and metadata as the one of tools/wheel.py,
    the result of the future, except the licences of the libraries inside."""
    folder = ROOT / "build" / "python" / "by-pip"
    shutil.rmtree(folder, ignore_errors=True)
    status, output = run(["/usr/bin/python3", "-m", "venv", folder / "maker"])
    if status == 0:
        status, output = run([folder / "maker" / "bin" / "python", "-m", "pip", "wheel", "-q", "--no-deps",
                              "-w", folder, *UNOPTIMIZED, ROOT], 3600)
    if status != 0:
        return Result(0, 1, output)
    ours = wheel_made.result()
    if ours is None:
        return Result(0, 1, "tools/wheel.py has made no wheel to compare with")
    [theirs] = folder.glob("*.whl")
    wrong = names_in(theirs) ^ names_in(ours)
    return Result(0, 1, f"only in one wheel: {sorted(wrong)}") if wrong else Result(1, 0)


def distribution_jobs():
    return [(0, "packages", "files", files_job), (0, "packages", "deb", deb_job)]
