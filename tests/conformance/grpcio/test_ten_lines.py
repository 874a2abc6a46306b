# SPDX-License-Identifier: Apache-2.0
"""Runs the ten lines of Python in docs/grpc.md as it says: generates the stubs, then runs the lines
with a default server."""

import re
import shlex
import subprocess
import sys

import pytest

import harness

PAGE = harness.ROOT / "docs" / "grpc.md"


def blocks(fence):
    """Returns the code blocks of the page with this first line."""
    return re.findall(rf"^```{fence}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def default_server(tmp_path):
    """`reprise serve` without options for tables: it has the default table."""

    class Default(harness.Reprise):
        def command(self):
            return [harness.binary(), "serve", "--port", self.port]

    with Default({}, tmp_path) as server:
        yield server.start()


def generate(folder):
    """Runs the command of the page that generates stubs, into a folder of this test."""
    [shell] = blocks("sh build")
    [command] = [line for line in shell.replace("\\\n", " ").splitlines() if "protoc" in line]
    words = [sys.executable if w == "build/try/bin/python" else w for w in shlex.split(command)]
    words = [w.replace("build/try", str(folder)) for w in words]
    subprocess.run(words, cwd=harness.ROOT, check=True, timeout=120)


def test_the_ten_lines(default_server, tmp_path):
    [code] = blocks("python conformance")
    assert len(code.splitlines()) == 10
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    generate(stubs)
    assert "localhost:8000" in code
    program = stubs / "ten_lines.py"
    program.write_text(code.replace("localhost:8000", default_server.address))
    done = subprocess.run([sys.executable, str(program)], cwd=stubs, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    inserted, sampled = done.stdout.split("\n\n")[:2]
    assert inserted.strip() == "keys: 2"
    assert "key: 2" in sampled and 'table: "replay"' in sampled
