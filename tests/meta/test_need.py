# SPDX-License-Identifier: Apache-2.0
"""tools/need.sh finds everything that a build and the tests need, and installs it or prints how to
install it. The tests run the script with fake programs: nothing is installed, and no network is
used."""

import os
import re
import shutil
import subprocess

import pytest

from tree import ROOT, expect_none

SCRIPT = ROOT / "tools" / "need.sh"
COMMANDS = {"Debian": "apt-get install --no-install-recommends", "Fedora": "dnf install",
            "Arch": "pacman -Syu --needed", "Alpine": "apk add"}
REAL = ["cat", "cut", "env", "grep", "mv", "sed", "sort", "tr", "uname"]  # programs that the script uses


def table():
    """Returns the rows of the script: kind, how, names, what, and packages by system."""
    text = re.search(r'^needs="\n(.*?)^"', SCRIPT.read_text(), re.DOTALL | re.MULTILINE).group(1)
    rows = []
    for line in text.splitlines():
        kind, look, what, *packages = (field.strip() for field in line.split("|"))
        assert len(packages) == 4, line
        how, *names = look.split()
        rows.append((kind, how, names, what, dict(zip(COMMANDS, map(str.split, packages)))))
    assert rows
    return rows


def packages(system, *kinds):
    return sorted({p for kind, _, _, _, columns in table() if kind in kinds
                   for p in columns[system] if p != "-"})


class Machine:
    """A folder with all programs that the script can find. A program that would change the system
    writes its arguments to a log instead."""

    def __init__(self, folder):
        self.bin, self.later, self.log = folder / "bin", folder / "later", folder / "log"
        self.bin.mkdir()
        self.later.mkdir()
        self.log.touch()
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("chmod", "dpkg", "rm"):
            self.add(name)
        self.add("tee", 'while read -r line; do :; done')
        self.be(1000)
        protos = folder / "include" / "google" / "protobuf"
        protos.mkdir(parents=True)
        (protos / "timestamp.proto").touch()

    def add(self, name, script="", folder=None):
        program = (folder or self.bin) / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.log}"\n{script}\n')
        program.chmod(0o755)

    def be(self, user):
        self.add("id", f"echo {user}")

    def add_needs_of_build(self, folder=None):
        for kind, how, names, _, _ in table():
            if kind == "build" and how == "program":
                self.add(names[0], folder=folder)
        self.add("cc", folder=folder)

    def add_apt(self):
        """Adds an apt-get that installs by moving the programs in `later` to the folder."""
        self.add("apt-get", f'case " $* " in *" install "*) mv "{self.later}"/* "{self.bin}" ;; esac')

    def run(self, *kinds):
        done = subprocess.run(["/bin/sh", SCRIPT, *kinds], env={"PATH": str(self.bin)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def logged(self, *names):
        return [line for line in self.log.read_text().splitlines() if line.split()[0] in names]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def expect_message(message, *kinds):
    """Checks that the message names each need that must be missing, and each system's packages."""
    for kind, how, _, what, columns in table():
        if kind in kinds and how in ("program", "library", "header") and "$" not in what:
            assert what in message.splitlines()[0]
            for system, command in COMMANDS.items():
                if columns[system] != ["-"]:
                    [line] = [x for x in message.splitlines() if x.split()[:1] == [system]]
                    assert command in line
                    assert set(columns[system]) <= set(line.split(command)[1].split()), line


def test_an_unknown_system_gets_the_commands_of_all_systems(machine):
    status, out, message = machine.run("build")
    assert (status, out) == (1, "")
    assert "no apt-get" in message
    expect_message(message, "build")


def test_needs_of_the_tests_are_named(machine):
    status, _, message = machine.run("build", "test", "cross", "python")
    assert status == 1
    expect_message(message, "build", "test", "python")
    assert "Only Debian has packages for: debug build of Python" in message


def test_a_user_without_sudo_gets_the_commands(machine):
    machine.add_apt()
    status, _, message = machine.run("build")
    assert status == 1
    assert "not root" in message
    expect_message(message, "build")
    assert not machine.logged("apt-get", "dpkg", "tee")


def test_sudo_asks_for_no_password_without_a_terminal(machine):
    machine.add_apt()
    machine.add("sudo", "exit 1")
    status, _, message = machine.run("build")
    assert status == 1
    expect_message(message, "build")
    assert machine.logged("sudo", "apt-get") == ["sudo -n true"]


def test_root_installs_what_is_missing(machine):
    machine.add_apt()
    machine.be(0)
    machine.add_needs_of_build(machine.later)
    status, out, message = machine.run("build")
    assert (status, message) == (0, "")
    assert "meson" in out
    update, install = machine.logged("apt-get")
    assert update.endswith(" update")
    assert install.split(" install ")[1].split() == packages("Debian", "build")
    assert not machine.logged("dpkg")


def test_sudo_without_a_password_installs_what_is_missing(machine):
    machine.add_apt()
    machine.add("sudo", 'shift; exec "$@"')
    (machine.bin / "true").symlink_to(shutil.which("true"))
    machine.add_needs_of_build(machine.later)
    status, _, message = machine.run("build")
    assert (status, message) == (0, "")
    assert len(machine.logged("apt-get")) == 2
    expect_none(x for x in machine.logged("sudo") if not x.startswith("sudo -n "))


def test_a_package_that_does_not_help_is_reported(machine):
    machine.add_apt()
    machine.be(0)
    machine.add("meson", folder=machine.later)
    status, _, message = machine.run("build")
    assert status == 1
    assert "still not found" in message
    assert "ninja" in message.splitlines()[0] and "meson" not in message.splitlines()[0]


def test_only_what_is_missing_is_named(machine):
    machine.add_needs_of_build()
    (machine.bin / "ninja").unlink()
    status, _, message = machine.run("build")
    assert status == 1
    assert message.splitlines()[0] == "Missing: ninja."
    assert "apk add samurai\n" in message


def test_a_complete_machine_is_left_alone(machine):
    machine.add_apt()
    machine.add_needs_of_build()
    assert machine.run("build") == (0, "", "")
    assert not machine.logged("apt-get", "dpkg", "tee", "id", "sudo")


def test_an_unknown_kind_is_refused(machine):
    assert machine.run("biuld")[0] == 2
    assert machine.run()[0] == 2


def test_all_dependencies_of_the_build_are_in_the_table():
    text = "".join((ROOT / name).read_text() for name in ("meson.build", "src/wire/meson.build"))
    found = {(kind, how, name) for kind, how, names, _, _ in table() for name in names}
    libraries = set(re.findall(r"dependency\(\s*'([\w.-]+)'", text)) - {"threads"}
    assert {"libzstd", "cmocka", "snappy"} <= libraries
    for name in libraries:
        kind = "test" if name == "cmocka" else "build"
        how = ("header", "snappy-c.h") if name == "snappy" else ("library", name)
        assert (kind, *how) in found, name
        assert ("cross", "foreign", name) in found, name
    for name in re.findall(r"find_program\('([^']+)'", text):
        assert ("build", "program", name) in found, name


def test_every_system_has_packages_for_all_but_debian_s_own_and_two_parts_of_the_tests():
    for kind, _, _, what, columns in table():
        assert columns["Debian"] != ["-"], what
        others = [columns[s] == ["-"] for s in COMMANDS if s != "Debian"]
        assert others == [kind in ("cross", "python", "wheel", "deb")] * 3, what


def test_there_is_one_list_of_packages():
    lists = [".ci/install", ".ci/run", "Makefile", "README.md", "CONTRIBUTING.md"]
    expect_none(name for name in lists if re.search(r"apt-get install|-dev\b", (ROOT / name).read_text()))
    assert "tools/need.sh" in (ROOT / ".ci" / "install").read_text()
    assert os.access(SCRIPT, os.X_OK)
