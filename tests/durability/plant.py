#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a copy of the project with planted bugs. The environment of a program selects one of them.

    tests/durability/plant.py TREE

The patches in tests/durability/planted plant the bugs. Files of the copy that are up to date are
not written, so that a build compiles only what has changed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = ROOT / "tests" / "durability" / "planted"
HEADER = PATCHES / "planted.h"
LEFT_OUT = {"build", ".git"}


def planted_files():
    """Returns the text of each patched source, with the bugs."""
    texts = {}
    for patch in sorted(PATCHES.glob("*.patch")):
        source = re.search(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE).group(1)
        ran = subprocess.run(["patch", "--quiet", "--output=-", "--reject-file=-",
                              str(ROOT / source), str(patch)],
                             capture_output=True, check=False)
        if ran.returncode != 0:
            raise ValueError(f"{patch.relative_to(ROOT)} does not apply to {source} any more: "
                             f"{ran.stdout[-300:].decode(errors='replace')}"
                             f"{ran.stderr.decode(errors='replace')}")
        texts[source] = ran.stdout
    return texts


def numbers():
    """Returns the numbers of the bugs that the patches plant."""
    return {int(n) for patch in PATCHES.glob("*.patch")
            for n in re.findall(r"^\+.*?rp_planted\((\d+)\)", patch.read_text(), re.MULTILINE)}


def make(tree):
    """Makes or updates the copy."""
    planted = planted_files()
    kept = set()
    for folder, folders, files in os.walk(ROOT):
        here = pathlib.Path(folder).relative_to(ROOT)
        if here == pathlib.Path("."):
            folders[:] = [f for f in folders if f not in LEFT_OUT]
        (tree / here).mkdir(parents=True, exist_ok=True)
        for name in files:
            path = here / name
            kept.add(path)
            text = planted.get(str(path))
            if text is None:
                copy(ROOT / path, tree / path)
            elif not (tree / path).exists() or (tree / path).read_bytes() != text:
                (tree / path).write_bytes(text)
    for path in [p for p in tree.rglob("*") if p.is_file() or p.is_symlink()]:
        if path.relative_to(tree) not in kept:
            path.unlink()


def copy(source, to):
    """Copies a file with its modification time, unless the copy is up to date."""
    old = source.lstat()
    if to.exists() and not source.is_symlink():
        new = to.lstat()
        if (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns):
            return
    to.unlink(missing_ok=True)
    shutil.copy2(source, to, follow_symlinks=False)


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]).resolve())
