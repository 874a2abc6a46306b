#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds wheels of the Python package that need no other library, and tests each wheel.

    tools/wheel.py                        for CPython 3.9 to 3.14, for the machine it runs on
    tools/wheel.py 3.11 3.12              for these versions only
    tools/wheel.py --machine aarch64      for another machine; `both` is x86_64 and aarch64
    tools/wheel.py --no-check ...         builds the wheels, but does not install and test them
    tools/wheel.py --quick ...            compiles with little optimization, for tests

The wheels are in build/wheels. docs/packages.md says what a wheel contains. The library is compiled
once for each machine, with Debian 12's gcc against the C library of Debian 11 and static libraries
(tools/packages/sysroot.py), and then the extension modules for each CPython, of which only the headers
are needed (tools/packages/headers.py). Of the other machine, qemu-user runs the command, which prints
the man pages, and the tests. The script needs Debian's packages and the package index.
"""

import argparse
import pathlib
import platform
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "packages"))
import check_wheel  # noqa: E402: it is in the folder added above
from debian import NAMES, WORK, run  # noqa: E402
from headers import VERSIONS, suffix, targets  # noqa: E402
from sysroot import GLIBC, Sysroot  # noqa: E402
from wheel_file import write_wheel  # noqa: E402

WHEELS = ROOT / "build" / "wheels"
OPTIONS = ["-Dpython=enabled", "-Dtests=disabled", "-Dprograms=false", "-Dbox2d=disabled",
           "-Dcblas=disabled", "-Ddefault_library=static", "-Dprefer_static=true", "-Db_lto=false"]
# With `join`, the compiler sees up to 40 sources at once, and compiles them once. Link-time optimization
# would compile the library again for each extension module.
FULL, QUICK = ["-Djoin=40", "-Doptimization=3"], ["-Djoin=40", "-Doptimization=1"]


def compile_all(sysroot, versions, is_quick):
    """Compiles the command, its manual, and the extension modules. Returns the build folder."""
    where = WORK / f"wheel-{sysroot.machine}"
    options = [f"--cross-file={sysroot.machine_file()}", *OPTIONS, *(QUICK if is_quick else FULL)]
    headers = "-Dpython_headers=" + ",".join(targets(versions, sysroot.machine))
    stamp, wanted = where / "options", "\n".join(options)
    if stamp.exists() and stamp.read_text() == wanted:
        run(["meson", "configure", where, headers])  # the library need not be compiled again
        run(["ninja", "-C", where, "build.ninja"])
    else:
        run(["meson", "setup", *(["--wipe"] if where.exists() else []), where, ROOT, *options, headers])
        stamp.write_text(wanted)
    known = run(["ninja", "-C", where, "-t", "targets", "all"])
    names = re.findall(r"^(python/_(?:core|rl)\.[^/]*\.so|python/reprise-command|src/cli/manual/[^/]*):",
                       known, re.MULTILINE)
    if not any("manual" in name for name in names):
        sys.exit(f"the man pages need qemu-{sysroot.machine}: run tools/need.sh build cross")
    run(["ninja", "-C", where, *names], 7200)
    return where


def stripped(sysroot, path):
    """Returns the bytes of a program or module without its symbols, after a look at what it needs."""
    copy = WORK / "stripped" / path.name
    copy.parent.mkdir(exist_ok=True)
    run([f"{sysroot.triplet}-strip", "-o", copy, path])
    check_wheel.check_needs(copy, GLIBC)
    return copy.read_bytes()


def shared_files(sysroot, where):
    """Returns the content of the files that are the same in the wheels of all versions."""
    files = {}
    for path in sorted((ROOT / "python" / "reprise").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[path.relative_to(ROOT / "python").as_posix()] = path.read_bytes()
    files["reprise/reprise-command"] = stripped(sysroot, where / "python" / "reprise-command")
    places = {"reprise": "bash-completion/completions", "_reprise": "zsh/site-functions",
              "reprise.fish": "fish/vendor_completions.d"}
    for path in sorted((where / "src" / "cli" / "manual").iterdir()):
        place = "man/man1" if path.suffix == ".1" else places.get(path.name)
        if place is not None and path.is_file():
            files[f"DATA/share/{place}/{path.name}"] = path.read_bytes()
    files["INFO/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for name, text in sysroot.notices().items():
        files[f"INFO/licenses/libraries/{name}"] = text
    return files


def build(machine, versions, is_quick):
    """Builds the wheels for a machine. Returns their paths by version."""
    sysroot = Sysroot(machine)
    where = compile_all(sysroot, versions, is_quick)
    shared, wheels = shared_files(sysroot, where), {}
    for version in versions:
        files = dict(shared)
        for module in ("_core", "_rl"):
            name = f"{module}.{suffix(version, machine)}.so"
            files[f"reprise/{name}"] = stripped(sysroot, where / "python" / name)
        tag = f"cp{version.replace('.', '')}"
        platform_tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
        wheels[version] = write_wheel(WHEELS, f"{tag}-{tag}-{platform_tag}", files)
    return wheels


def main():
    parser = argparse.ArgumentParser(description="Builds wheels; see the top of the file.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=" ".join(VERSIONS))
    parser.add_argument("--machine", choices=[*NAMES, "both"], default=platform.machine())
    parser.add_argument("--no-check", action="store_true", help="do not install the wheels")
    parser.add_argument("--quick", action="store_true", help="compile with little optimization")
    args = parser.parse_args()
    for version in args.versions:
        if version not in VERSIONS:
            parser.error(f"VERSION: expected one of {' '.join(VERSIONS)}, got {version!r}")
    for machine in NAMES if args.machine == "both" else [args.machine]:
        for version, wheel in build(machine, args.versions or VERSIONS, args.quick).items():
            tried = "" if args.no_check else ", tried with " + check_wheel.check(wheel, version, machine)
            print(f"{wheel.relative_to(ROOT)}  {wheel.stat().st_size / 1e6:.1f} MB{tried}", flush=True)


if __name__ == "__main__":
    main()
