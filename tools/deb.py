#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Debian packages of the server, the library and its headers, in build/deb.

    tools/deb.py            builds the packages in a copy of the tree
    tools/deb.py --quick    compiles with little optimization, for tests

`make deb` installs what the build needs, and calls this. packages/debian has the rules of the packages;
docs/packages.md says what is in them. The version is that of meson.build.
"""

import argparse
import email.utils
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEBS = ROOT / "build" / "deb"


def output_of(command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def version():
    text = (ROOT / "meson.build").read_text()
    return re.search(r"^    version: '([^']+)'", text, re.MULTILINE).group(1)


def time_of_sources():
    """Seconds since 1970: of SOURCE_DATE_EPOCH, or of the last commit, or of the file of changes."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said is None and (ROOT / ".git").exists():
        said = output_of(["git", "log", "-1", "--format=%ct"])
    return int(said) if said else int((ROOT / "CHANGELOG.md").stat().st_mtime)


def copy_tree(where):
    """Copies the sources, without what was built."""
    ignored = shutil.ignore_patterns("build", ".git", "__pycache__", "compile_commands.json")
    shutil.copytree(ROOT, where, ignore=ignored, symlinks=True)
    shutil.copytree(ROOT / "packages" / "debian", where / "debian")
    maintainer = re.search(r"^Maintainer: (.*)", (where / "debian" / "control").read_text(),
                           re.MULTILINE).group(1)
    date = email.utils.formatdate(time_of_sources())
    (where / "debian" / "changelog").write_text(
        f"reprise ({version()}-1) unstable; urgency=medium\n\n"
        "  * Build of the project's own packages: CHANGELOG.md lists what changed.\n\n"
        f" -- {maintainer}  {date}\n")


def main():
    parser = argparse.ArgumentParser(description="Builds Debian packages; see the top of the file.")
    parser.add_argument("--quick", action="store_true", help="compile with little optimization")
    args = parser.parse_args()
    shutil.rmtree(DEBS, ignore_errors=True)
    tree = DEBS / f"reprise-{version()}"
    DEBS.mkdir(parents=True)
    copy_tree(tree)
    env = {**os.environ, "DEB_BUILD_OPTIONS": f"noautodbgsym parallel={os.cpu_count() or 1}",
           "REPRISE_OPTIMIZATION": "1" if args.quick else "3",
           "SOURCE_DATE_EPOCH": str(time_of_sources())}
    with open(DEBS / "log", "w") as log:
        done = subprocess.run(["dpkg-buildpackage", "-b", "-us", "-uc"], cwd=tree, env=env, stdout=log,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        end = "\n".join((DEBS / "log").read_text(errors="replace").splitlines()[-40:])
        sys.exit(f"dpkg-buildpackage ended with {done.returncode}; the end of build/deb/log:\n{end}")
    shutil.rmtree(tree)
    for deb in sorted(DEBS.glob("*.deb")):
        print(f"{deb.relative_to(ROOT)}  {deb.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
