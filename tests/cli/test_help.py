# SPDX-License-Identifier: Apache-2.0
"""What the command says of itself."""

import re
import subprocess

import pytest
from conftest import REPRISE, ROOT, reprise

COMMANDS = ["serve", "version", "help"]


def test_help_lists_the_commands(golden):
    done = reprise("help")
    assert (done.returncode, done.stderr) == (0, "")
    golden("help.txt", done.stdout)
    for same in (["--help"], ["-h"]):
        assert reprise(*same).stdout == done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, golden):
    done = reprise("help", command)
    assert (done.returncode, done.stderr) == (0, "")
    golden(f"help_{command}.txt", done.stdout)
    assert reprise(command, "--help").stdout == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 96


def test_version_is_that_of_the_project():
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
    for arguments in (["version"], ["--version"]):
        done = reprise(*arguments)
        assert (done.returncode, done.stdout) == (0, f"reprise {version}\n")


@pytest.mark.parametrize("arguments, message", [
    (["sevre"], "unknown command 'sevre', did you mean 'serve'?"),
    (["frobnicate"], "unknown command 'frobnicate'; reprise help lists them"),
    (["help", "sevre"], "unknown command 'sevre', did you mean 'serve'?"),
    (["version", "x"], "'x' is not expected here"),
    (["serve", "--tabel", "x"], "unknown option --tabel, did you mean --table?"),
    (["serve", "--port"], "--port: needs N"),
    (["serve", "-p", "1"], "unknown option -p: options are long"),
    (["serve", "--port", "1", "--port", "2"], "--port: given twice"),
])
def test_misuse_is_named(arguments, message):
    done = reprise(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise: {message}\n")


def test_without_a_command_there_is_help_and_status_2():
    done = reprise()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == reprise("help").stdout


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([REPRISE, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output" in done.stderr
