# SPDX-License-Identifier: Apache-2.0
"""Tests wheels: what their programs need, and whether they run where there is no compiler.

A wheel is installed and tried where there is its CPython: in a new environment of an interpreter of
this machine, and in the folder of a Debian system that has that CPython and little else, for the other
machine under qemu-user. tests/packages/smoke.py is the program that tries it.
"""

import os
import pathlib
import platform
import re
import shutil
import sys

from debian import ROOT, WORK, fetch, run, triplet, unpack
from headers import SUITES, interpreters

SMOKE = ROOT / "tests" / "packages" / "smoke.py"
CHROOT = 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"'
OF_NUMPY = ["libgcc-s1", "libstdc++6"]  # libraries that wheels of NumPy expect
AUDIT = "auditwheel==6.4.2"
# Libraries of every Linux with glibc; PEP 600 permits them.
COMMON = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def check_needs(path, glibc):
    """Ends the script if a program or module needs a library that is not everywhere, or a newer C library
    than `glibc`, or if a module exports more than its start."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-dW", path])))
    if needed - COMMON:
        sys.exit(f"{path.name} needs libraries that are not in the wheel: {sorted(needed - COMMON)}")
    newest = max((tuple(map(int, v.split("."))) for v in
                  re.findall(r"Name: GLIBC_([\d.]+)", run(["readelf", "-VW", path]))), default=(0,))
    if newest > glibc:
        sys.exit(f"{path.name} needs glibc {'.'.join(map(str, newest))}, newer than "
                 f"{'.'.join(map(str, glibc))}")
    missing = re.findall(r"GLOBAL +DEFAULT +UND (\w+)$", run(["readelf", "-sDW", path]), re.MULTILINE)
    missing = [n for n in missing if not re.match(r"_?Py|_ITM_|__gmon_start__|__cxa_finalize", n)]
    if missing:
        sys.exit(f"{path.name} needs {missing[:5]}, which is in no library that it names")
    exported = re.findall(r"FUNC +(?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", run(["readelf", "-sDW", path]))
    if path.suffix == ".so" and [n for n in exported if not n.startswith("PyInit_")]:
        sys.exit(f"{path.name} exports functions of its libraries: {exported[:5]}")


def audit(wheel):
    """Ends the script if auditwheel finds that the wheel does not keep what its name promises."""
    where = WORK / "audit"
    if not (where / AUDIT).exists():
        shutil.rmtree(where, ignore_errors=True)
        run([sys.executable, "-m", "venv", where])
        run([where / "bin" / "python", "-m", "pip", "install", "-q", AUDIT])
        (where / AUDIT).touch()
    said = run([where / "bin" / "auditwheel", "show", wheel])
    found = re.search(r"following platform tag:\s+\"manylinux_(\d+)_(\d+)_", said.replace("\n", " "))
    promised = re.search(r"-manylinux_(\d+)_(\d+)_", wheel.name)
    if found is None or tuple(map(int, found.groups())) > tuple(map(int, promised.groups())):
        sys.exit(f"{wheel.name}: auditwheel says\n{said}")


def install(wheel, version, machine, site):
    """Installs the wheel and its requirements into a folder, as pip does for that version and machine."""
    shutil.rmtree(site, ignore_errors=True)
    tags = re.search(r"manylinux_2_(\d+)_", wheel.name)
    platforms = [f"--platform=manylinux{tag}_{machine}" for tag in
                 ("2014", "_2_17", "_2_27", "_2_28", f"_2_{tags.group(1)}")]
    run([sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--no-compile",
         "--implementation=cp", f"--python-version={version}", *platforms, "--target", site, wheel])


def check_in_debian(wheel, version, machine):
    """Tries the wheel in the folder of a Debian system with the oldest fitting C library."""
    root = WORK / f"debian-{version}-{machine}"
    if not (root / "usr" / "bin" / f"python{version}").exists():
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        unpack(fetch(SUITES[version], machine, [f"python{version}", *OF_NUMPY], closure=True), partial)
        for name in ("bin", "lib", "lib64"):  # since Debian 12 these are links of usr
            if not (partial / name).exists():
                (partial / name).symlink_to(f"usr/{name}")
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)
    install(wheel, version, machine, root / "site")
    shutil.copy2(SMOKE, root / "smoke.py")
    for name in ("proc", "tmp"):
        (root / name).mkdir(exist_ok=True)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": "/site", "RP_SITE": "/site", "HOME": "/tmp",
           "PYTHONDONTWRITEBYTECODE": "1"}
    program = f"/usr/bin/python{version}"
    if machine == platform.machine():
        if os.geteuid() != 0:
            return None
        run(["unshare", "--mount", "--propagation=private", "sh", "-ec", CHROOT, root, program,
             "/smoke.py"], 300, env=env)
        return f"Debian's CPython {version}, {SUITES[version]}"
    # The emulator finds the loader of programs in the folder; other files have their path on this machine.
    libraries = ":".join(f"{root}/{folder}/{triplet(machine)}" for folder in ("lib", "usr/lib"))
    env |= {"PYTHONHOME": f"{root}/usr", "PYTHONPATH": f"{root}/site", "RP_SITE": f"{root}/site",
            "RP_EMULATED": "1", "PATH": f"{root}/usr/bin"}
    qemu = shutil.which(f"qemu-{machine}")
    if qemu is None:
        sys.exit(f"to try wheels for {machine}, qemu-{machine} is needed: run tools/need.sh build cross")
    run([qemu, "-L", root, "-E", f"LD_LIBRARY_PATH={libraries}", f"{root}{program}", root / "smoke.py"],
        900, env=env)
    return f"Debian's CPython {version} for {machine}, {SUITES[version]}"


def check_here(wheel, version, python):
    """Tries the wheel in a new environment of an interpreter, whose PATH has no other program."""
    where = WORK / f"installed{version}"
    shutil.rmtree(where, ignore_errors=True)
    run([python, "-m", "venv", where])
    run([where / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile", wheel])
    run([where / "bin" / "python", SMOKE], 300,
        env={"PATH": str(where / "bin"), "HOME": str(where), "PYTHONDONTWRITEBYTECODE": "1"}, cwd=where)
    return f"{pathlib.Path(python).name} of this machine"


def check(wheel, version, machine):
    """Tries a wheel wherever that is possible. Returns where, in words."""
    audit(wheel)
    places = []
    if machine == platform.machine():
        python = interpreters().get(version)
        if python is not None:
            places.append(check_here(wheel, version, python))
    if version in SUITES:
        places.append(check_in_debian(wheel, version, machine))
    return " and ".join(filter(None, places)) or "auditwheel alone"
