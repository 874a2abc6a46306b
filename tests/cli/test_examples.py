# SPDX-License-Identifier: Apache-2.0
"""Every example of every --help is run as it stands, against a server.

The environment says where that is; only what names a port, or would not end by itself, is seen
to here."""

import csv
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import xml.etree.ElementTree

import pytest
from conftest import (IS_SHORT, REPRISE, ROOT, SECONDS, Server, answer, clean_environment, reprise, save_npy,
                      without_notices)

COMMANDS = re.findall(r"^  ([a-z]+) +[A-Z]", reprise("help").stdout, re.MULTILINE) or []
LONG = 60  # seconds for a benchmark


def examples(command):
    lines = reprise("help", command).stdout.splitlines()
    return [line[2:] for line in lines if line.startswith("  reprise ")]


@pytest.fixture
def shell(serve, tmp_path):
    """Runs lines in a folder with what examples speak of, next to a server."""
    server = serve("--port", "0", "--table", "replay:prioritized:1000000")
    save_npy(tmp_path / "obs.npy", "<f4", (3, 2), struct.pack("<6f", *range(6)))
    save_npy(tmp_path / "action.npy", "<i4", (3,), struct.pack("<3i", *range(3)))
    (tmp_path / "items.jsonl").write_text('{"data": [[1.5, 2.5], 1]}\n{"data": [[0, 0], 2]}\n')
    shutil.copy(ROOT / "docs" / "reprise.yaml", tmp_path)
    address = f"localhost:{server.port}"
    env = clean_environment(REPRISE_SERVER=address)
    env["PATH"] = f"{REPRISE.resolve().parent}:{env['PATH']}"
    answer(server, "insert", "replay", "items.jsonl", cwd=tmp_path)

    def run(line):
        return subprocess.run(["bash", "-c", line.replace("localhost:8000", address)],
                              cwd=tmp_path, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LONG)

    run.folder = tmp_path
    return run


def test_every_command_has_examples():
    assert len(COMMANDS) >= 10
    assert [c for c in COMMANDS if not examples(c)] == []


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in (
    "serve", "top", "checkpoint", "data", "runs", "rollouts", "train", "eval", "play",
    "export")])  # test_data.py, test_runs.py, test_train.py
def test_examples_run(shell, command):
    for line in examples(command):
        # In a short run, less time is measured.
        if IS_SHORT and "--quick" in line:
            line += " --seconds 0.02 --fill 1MiB"
        elif IS_SHORT:
            line = re.sub("--seconds 0.[12]", "--seconds 0.02", line)
        done = shell(line)
        # In so little time, a busy machine may confirm no item.
        said = re.sub(r"^reprise bench: warning: figure .*\n", "", done.stderr, flags=re.MULTILINE)
        assert (done.returncode, without_notices(said)) == (0, ""), line
        if "--json" in line and "|" not in line:
            for text in done.stdout.splitlines():
                json.loads(text)
    if command == "bench":
        rows = list(csv.DictReader((shell.folder / "figures.csv").open()))
        assert {row["figure"] for row in rows} == {"5", "6", "7"}
        xml.etree.ElementTree.parse(shell.folder / "figures.svg")
    if command == "sample":
        assert (shell.folder / "batch" / "0.npy").exists()


def test_examples_of_top(shell):
    for line in examples("top"):
        counted = "--count" in line
        done = shell(line if counted else f"{line} --count 1")
        assert (done.returncode, without_notices(done.stderr)) == (0, ""), line


def test_examples_of_checkpoint(shell):
    """Servers have no checkpoints yet, and say so."""
    for line in examples("checkpoint"):
        done = shell(line)
        assert (done.returncode, done.stdout) == (1, "")
        assert "checkpoint" in done.stderr


def test_examples_of_serve(tmp_path):
    shutil.copy(ROOT / "docs" / "reprise.yaml", tmp_path)
    for line in examples("serve"):
        words = line.split()[1:]
        if "--check-config" in words:
            done = subprocess.run([REPRISE, *words], cwd=tmp_path, capture_output=True, text=True,
                                  env=clean_environment(), timeout=SECONDS)
            assert (done.returncode, done.stderr) == (0, "")
            continue
        if "--port" in words:
            at = words.index("--port")
            del words[at:at + 2]
        server = Server([REPRISE, *words, "--port", "0"], env=clean_environment(),
                        cwd=os.fspath(tmp_path))
        try:
            server.wait_for("serving")
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
        finally:
            server.kill()


def test_the_example_in_c_says_that_it_waits_for_its_server():
    program = REPRISE.parents[2] / "examples" / "actor_learner"
    if not program.exists():
        pytest.skip("the examples are not built")
    child = subprocess.Popen([program, "127.0.0.1:1"], stderr=subprocess.PIPE, text=True, env=clean_environment())
    try:
        line = child.stderr.readline()
    finally:
        child.kill()
        child.communicate()
    assert line == "actor_learner: waits for the server: 127.0.0.1:1: Connection refused\n"
