# SPDX-License-Identifier: Apache-2.0
"""Compares our sum tree with the authors' of PAL and with cpprb's, in one run of bench_pal_tree.

cpprb's tree is a header of C++ in its source package. tools/peers.py fetches it, and this compiles it with
bench/cpprb_tree.cpp. Without it, or without a C++ compiler, the other peer is compared alone.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "peers" / "cpprb"
LIBRARY = ROOT / "build" / "peers" / "cpprb_tree.so"


def build_cpprb():
    """Returns the library with cpprb's tree; None, with the reason on standard output, if there is none."""
    made = subprocess.run([sys.executable, ROOT / "tools" / "peers.py", "cpprb"], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        print(f"# without cpprb: {made.stdout.strip()}", flush=True)
        return None
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        print("# without cpprb: there is no C++ compiler", flush=True)
        return None
    [header] = SOURCE.rglob("SegmentTree.hh")
    subprocess.run([compiler, "-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-fPIC", "-shared",
                    f"-I{header.parent}", ROOT / "bench" / "cpprb_tree.cpp", "-o", LIBRARY], check=True)
    return LIBRARY


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    library = build_cpprb()
    command = [ROOT / "build" / "release" / "bench" / "bench_pal_tree", *["--quick"] * options.quick]
    sys.exit(subprocess.call([str(c) for c in command + [library] * (library is not None)]))


if __name__ == "__main__":
    main()
