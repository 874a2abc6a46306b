#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the targets that `meson install` installs, as `meson compile` takes them: make install builds
these, without the examples and benchmarks.

    meson compile -C build/release $(tools/installed.py build/release)
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    listed = json.loads((pathlib.Path(sys.argv[1]) / "meson-info" / "intro-targets.json").read_text())
    for target in listed:
        if not target["installed"]:
            continue
        folder = pathlib.Path(target["defined_in"]).parent.relative_to(ROOT)
        print(f"{folder}/{target['name']}:{target['type'].replace(' ', '_')}")


if __name__ == "__main__":
    main()
