# SPDX-License-Identifier: Apache-2.0
"""`reprise train --program`: a program in one file, in every way to run it."""

import json
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import REPRISE, ROOT, clean_environment, reprise

pytestmark = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")
LONG = 300  # seconds for anything, on a busy machine
SAMPLE = ROOT / "docs" / "program.yaml"
CATCH = """\
agent: apex-dqn
env: catch
dir: run
replay: {{addresses: [{}]}}
actors: {{count: 2}}
evaluator: {{threshold: 0.9, confirm_episodes: 50}}
settings: {{hidden: 32, start: 200, copies: 4}}
"""


def free_ports(count):
    """Ports of localhost that were free just now."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def program(tmp_path):
    """A folder with program.yaml, whose replay has two shards."""
    addresses = ", ".join(f'"localhost:{port}"' for port in free_ports(2))
    (tmp_path / "program.yaml").write_text(CATCH.format(addresses))
    return tmp_path


def run(folder, *arguments):
    return subprocess.run([REPRISE, "train", *map(str, arguments)], cwd=folder, capture_output=True, text=True,
                          timeout=LONG, env=clean_environment())


def printed(folder, *arguments):
    done = run(folder, *arguments, "--print-program")
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def keys(tree, above=""):
    for name, value in tree.items():
        yield above + name
        if isinstance(value, dict):
            yield from keys(value, f"{name}.")


def test_the_sample_has_every_key(tmp_path):
    everything = ["apex-dqn", "--env", "catch", "--seed", 2, "--seconds", 9, "--dir", "d", "--report", "r:1",
                  "--report-name", "n", "--report-ca", "c", "--image", "i", "--shards", 2, "--serve", "s:1",
                  "--steps", 9, "--eval-episodes", 2, "--confirm-episodes", 3, "--threshold", 1, "--keep-going"]
    known = set(keys(json.loads(printed(tmp_path, *everything, "--json"))))
    known |= set(keys(json.loads(printed(tmp_path, "apex-dqn", "--env", "catch", "--replay", "a:1,b:1", "--json"))))
    known = {k for k in known if not k.startswith("settings.")}
    sample = SAMPLE.read_text()
    for text in (sample, re.sub(r"^( *)#(\w+: )", r"\1\2", sample, flags=re.MULTILINE)):  # and with all its comments
        (tmp_path / "all.yaml").write_text(text)
        assert run(tmp_path, "--program", "all.yaml", "--print-program").returncode == 0, text
    told = set(keys(json.loads(printed(tmp_path, "--program", "all.yaml", "--json"))))
    assert known - told == {"replay.shards"}  # follows from addresses
    assert "#shards:" in sample


def test_what_is_printed_describes_the_same_program(tmp_path):
    options = ["apex-dpg", "--env", "pendulum", "--actors", 3, "--n-step", 2, "--steps", "1_000"]
    text = printed(tmp_path, *options)
    (tmp_path / "p.yaml").write_text(text)
    assert printed(tmp_path, "--program", "p.yaml") == text
    (tmp_path / "p.json").write_text(printed(tmp_path, *options, "--json"))
    assert printed(tmp_path, "--program", "p.json") == text
    changed = json.loads(printed(tmp_path, "--program", "p.yaml", "--actors", 5, "--n-step", 1, "--json"))
    assert (changed["actors"]["count"], changed["settings"]["n_step"], changed["learner"]["steps"]) == (5, 1, 1000)


def test_exports_are_those_of_the_options(program):
    options = ["--env", "catch", "--actors", 2, "--threshold", 0.9, "--confirm-episodes", 50, "--hidden", 32,
               "--start", 200, "--copies", 4, "--shards", 2]
    for kind in ("slurm", "kubernetes"):
        ours = run(program, "--program", "program.yaml", "--export", kind)
        theirs = run(program, "apex-dqn", *options, "--export", kind)
        assert (ours.returncode, ours.stderr) == (0, "")
        assert sorted(re.findall(r"--[a-z-]+=[^'\" ]*", ours.stdout)) == \
            sorted(re.findall(r"--[a-z-]+=[^'\" ]*", theirs.stdout))
        assert len(ours.stdout) == len(theirs.stdout)


@pytest.mark.parametrize("how", [[], ["--processes"]])
def test_the_whole_program_in_threads_and_processes(program, how):
    done = run(program, "--program", "program.yaml", *how)
    assert done.returncode == 0, done
    assert "solved: the mean return of 50 fresh episodes" in done.stdout
    assert (program / "run" / "policy.safetensors").exists()
    shutil.rmtree(program / "run")


def test_a_role_needs_the_file_and_its_index(program):
    def start(*arguments):
        return subprocess.Popen([REPRISE, "train", "--program", "program.yaml", *arguments], cwd=program, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean_environment())

    parts = []
    try:
        for role, index in (("actor", 1), ("evaluator", 0), ("learner", 0), ("actor", 0), ("replay", 1), ("replay", 0)):
            parts.append(start("--role", role, "--index", str(index)))
        text, _ = parts[1].communicate(timeout=LONG)
        assert parts[1].returncode == 0 and "solved: the mean return of 50 fresh episodes" in text
        assert (program / "run" / "policy.safetensors").exists()
        folders = sorted(f for f in (program / "run").glob("replay*") if f.is_dir())
        assert [f.name for f in folders] == ["replay", "replay-1"] and all(any(f.iterdir()) for f in folders)
    finally:
        for p in parts:
            if p.poll() is None:
                p.send_signal(signal.SIGINT)
        for p in parts:
            p.communicate(timeout=LONG)
    assert [p.returncode for p in parts] == [130, 0, 130, 130, 0, 0]


@pytest.mark.parametrize("text, message", [
    ("agent: apex-dqn\nenv: catch\nsettings:\n  hiden: 2\n",
     "p.yaml:4:3: settings.hiden: unknown key, did you mean 'hidden'?"),
    ("agent: apex-dqn\nenv: catch\nactors: {count: 5000}\n",
     "p.yaml:3:17: actors.count: expected a whole number from 1 to 4096, got '5000'"),
    ("agent: apex-dqn\nactors: {count: 2}\n", "--env is missing: for example --env cartpole"),
    ("agent: apex-dqn\nenv: catch\nsettings: {start: 20_000}\n",
     "dqn: start must be <= capacity, 10000, got 20000"),
])
def test_errors_name_the_line(tmp_path, text, message):
    (tmp_path / "p.yaml").write_text(text)
    done = run(tmp_path, "--program", "p.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise train: {message}\n")
    assert [p.name for p in tmp_path.iterdir()] == ["p.yaml"]
