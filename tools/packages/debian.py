# SPDX-License-Identifier: Apache-2.0
"""Fetches Debian packages of any suite and machine, and unpacks them into a folder.

apt verifies the signatures. It has lists of its own in build/packages/apt, so the packages of this
machine stay as they are, and no rights of root are needed.
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "packages"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
# Suites without security updates, or, for bullseye, without those of all machines. No file of bullseye
# gets into what is built: wheels are linked with its C library, and tried with its programs.
WITHOUT_UPDATES = {"bullseye", "forky"}
NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's names of machines


def triplet(machine):
    return f"{machine}-linux-gnu"


def run(command, timeout=1800, **options):
    """Runs a command and returns its output. If it fails, prints the end of the output and ends."""
    try:
        done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              errors="replace", **options)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not installed")
    if done.returncode != 0:
        said = "\n".join(done.stdout.strip().splitlines()[-40:])
        sys.exit(f"{' '.join(str(c) for c in command)}\nended with {done.returncode}:\n{said}")
    return done.stdout


def apt(suite, machine):
    """Returns the words of an apt-get that knows the packages of a suite for a machine."""
    where = WORK / "apt" / f"{suite}-{machine}"
    for folder in ("lists/partial", "archives/partial"):
        (where / folder).mkdir(parents=True, exist_ok=True)
    lines = [f"deb [signed-by={KEYS}] {MIRROR} {suite} main",
             f"deb-src [signed-by={KEYS}] {MIRROR} {suite} main"]
    if suite not in WITHOUT_UPDATES:
        lines.append(f"deb [signed-by={KEYS}] {SECURITY} {suite}-security main")
    sources, fresh = where / "sources.list", where / "updated"
    if not sources.exists() or sources.read_text().splitlines() != lines:
        fresh.unlink(missing_ok=True)
        sources.write_text("\n".join(lines) + "\n")
    name = NAMES[machine]
    settings = {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-",
                "Dir::State": where, "Dir::State::lists": where / "lists",
                "Dir::State::status": "/dev/null", "Dir::Cache": where,
                "APT::Architecture": name, "APT::Architectures": name,
                "APT::Sandbox::User": "", "APT::Install-Recommends": "false",
                "Acquire::Languages": "none", "Acquire::Retries": "3", "Debug::NoLocking": "true"}
    words = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in settings.items())]
    if not fresh.exists():
        run([*words, "update"])
        fresh.touch()
    return words


def fetch(suite, machine, packages, closure=False):
    """Downloads packages; with `closure` all that they depend on as well. Returns their files."""
    words = apt(suite, machine)
    folder = WORK / "apt" / f"{suite}-{machine}" / "archives"
    if not closure:
        # The name of a file in `archives` has the version, so a second call downloads nothing.
        run([*words, "download", *packages], cwd=folder)
        return [newest(folder, package) for package in packages]
    for old in folder.glob("*.deb"):
        old.unlink()
    run([*words, "-y", "--download-only", "install", *packages], 3600)
    return sorted(folder.glob("*.deb"))


def newest(folder, package):
    return max(folder.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)


def unpack(debs, folder):
    """Unpacks packages into a folder. Absolute links become relative, so that they stay in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        run(["dpkg-deb", "-x", deb, folder])
    for path in folder.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            inside = folder / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(inside, path.parent))


def source(suite, machine, package, folder):
    """Downloads and unpacks the source of a package. Returns its folder."""
    words = apt(suite, machine)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run([*words, "--download-only", "source", package], cwd=folder)
    [description] = folder.glob("*.dsc")
    run(["dpkg-source", "--no-check", "-x", description, folder / "unpacked"])
    return folder / "unpacked"
