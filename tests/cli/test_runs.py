# SPDX-License-Identifier: Apache-2.0
"""`reprise runs`, and `reprise train --report`."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import time
import urllib.request

import pytest
from conftest import REPRISE, SECONDS, answer, ask, clean_environment, reprise, without_notices
from test_examples import examples
from test_train import LONG, SMALL, events

has_rl = pytest.mark.skipif("  train " not in reprise("help").stdout, reason="built without rl")


def report(server, run, body):
    request = urllib.request.Request(
        f"http://localhost:{server.port}/v1/runs/{run}", json.dumps(body).encode(),
        {"x-reprise-confirm": run})
    with urllib.request.urlopen(request, timeout=120) as response:
        assert json.load(response) == {"dropped": 0}


@pytest.fixture
def server(serve):
    started = serve("--port", "0")
    report(started, "first", {"scalars": [{"name": f"s{i}", "step": i, "value": i / 2, "time": 5}
                                          for i in range(9)]})
    report(started, "second%1B", {"scalars": [{"name": "x", "value": None}]})
    return started


def test_a_server_without_runs_says_so(serve):
    started = serve("--port", "0")
    assert answer(started, "runs", "list").startswith("no runs")
    assert answer(started, "runs", "list", "--json") == "[]\n"


def test_list(server):
    lines = answer(server, "runs", "list").splitlines()
    assert lines[0].split() == ["run", "last", "report", "points", "scalars"]
    assert lines[1].startswith("first") and lines[1].endswith("s0, s1, s2, s3, s4, s5 and 3 more")
    assert re.match(r"second\\x1b +(now|\d+ s ago) +1  x$", lines[2])
    [first, second] = json.loads(answer(server, "runs", "list", "--json"))
    assert (first["name"], second["name"]) == ("first", "second\x1b")
    assert (first["points"], len(first["scalars"])) == (9, 9)


def test_export_csv(server):
    rows = list(csv.DictReader(io.StringIO(answer(server, "runs", "export", "first"))))
    assert [row["name"] for row in rows] == [f"s{i}" for i in range(9)]
    assert rows[3] == {"name": "s3", "step": "3", "time": "5.000", "value": "1.5"}


def test_a_terminal_gets_names_escaped(server):
    report(server, "odd", {"scalars": [{"name": "\x1b]0;title\x07\u202ex", "step": 1, "value": 1}]})
    primary, secondary = pty.openpty()
    done = subprocess.run([REPRISE, "runs", "export", "odd", "--server", f"localhost:{server.port}"],
                          stdout=secondary, env=clean_environment(), timeout=SECONDS)
    shown = os.read(primary, 4096)
    os.close(primary)
    os.close(secondary)
    assert done.returncode == 0 and b"]0;title" in shown
    assert all(byte in b"\r\n" or 0x20 <= byte < 0x7f for byte in shown), shown
    assert "\x1b]0;title" in answer(server, "runs", "export", "odd")  # a file gets them as they are


def test_export_tfevents(server, tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    assert answer(server, "runs", "export", "first", "--format", "tfevents", "--output", path) == ""
    first, *others = events(path)
    assert b"brain.Event:2" in first
    assert len(others) == 9 and b"s0" in others[0]


@pytest.mark.parametrize("words, status, text", [
    (["list", "x"], 2, "'x' is not expected here"),
    (["list", "--format", "csv"], 2, "--format has no effect on list"),
    (["export"], 2, "needs the name of a run"),
    (["export", "none"], 1, "there is no run 'none'; the runs are: "),
    (["export", "first", "--output", "/none/x"], 1, "/none/x: No such file or directory"),
    (["export", "first", "--format", "xml"], 2, "xml"),
])
def test_misuse_is_named(server, words, status, text):
    done = ask(server, "runs", *words)
    assert done.returncode == status and text in done.stderr


def test_examples_of_runs(server, tmp_path):
    report(server, "dqn-cartpole-1", {"scalars": [{"name": "loss"}]})
    (tmp_path / "logs").mkdir()
    env = clean_environment(REPRISE_SERVER=f"localhost:{server.port}")
    env["PATH"] = f"{REPRISE.resolve().parent}:{env['PATH']}"
    for line in examples("runs"):
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True,
                              text=True, timeout=SECONDS)
        assert (done.returncode, without_notices(done.stderr)) == (0, ""), line
    assert (tmp_path / "run.csv").read_text().startswith("name,step,time,value\n")
    assert len(list(events(tmp_path / "logs" / "events.out.tfevents.1"))) == 2


def test_runs_are_in_checkpoints(serve, stop, tmp_path):
    started = serve("--port", "0", "--data", tmp_path / "data")
    report(started, "kept", {"scalars": [{"name": "x", "step": 4, "value": 1}]})
    stop(started)
    assert (tmp_path / "data" / "RUNS").exists()
    again = serve("--port", "0", "--data", tmp_path / "data")
    assert answer(again, "runs", "export", "kept").splitlines()[1].startswith('"x",4,')


def train(folder, *arguments):
    return subprocess.run(
        [REPRISE, "train", "dqn", "--env", "cartpole", "--steps", "1500", "--eval-every", "500",
         *SMALL, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=LONG,
        env=clean_environment())


@has_rl
def test_a_training_is_reported(server, tmp_path):
    done = train(tmp_path, "--report", f"localhost:{server.port}")
    assert (done.returncode, done.stderr) == (0, "")
    with urllib.request.urlopen(f"http://localhost:{server.port}/v1/runs/dqn-cartpole-1",
                                timeout=120) as response:
        run = json.load(response)
    series = run["series"]
    for name in ("eval_return", "mean_return", "loss", "td_error", "q", "grad_norm", "epsilon",
                 "steps_per_second", "updates_per_second", "samples_per_insert", "replay_size"):
        assert series[name]["step"] and None not in series[name]["value"], name
    assert series["eval_return"]["step"][0] == 504  # a group of eight copies
    assert run["actors"][0]["name"] == "actors"
    assert run["episode"]["env"] == "cartpole" and len(run["episode"]["states"][0]) == 4


@has_rl
def test_a_training_without_its_server_is_the_same(tmp_path):
    """It is not slower than the queue is long: reports are dropped, counted, and the result is that
    of a training that reports nothing."""
    plain, lost = tmp_path / "plain", tmp_path / "lost"
    plain.mkdir()
    lost.mkdir()
    assert train(plain).returncode == 0
    done = train(lost, "--report", "localhost:1", "--report-name", "n")
    assert done.returncode == 0
    assert re.search(r"(\d+) of \1 reports did not reach localhost:1: .*refused", done.stderr)
    policy = "runs/dqn-cartpole-1/policy.safetensors"
    assert (plain / policy).read_bytes() == (lost / policy).read_bytes()


@has_rl
@pytest.mark.parametrize("agent", ["dqn", "apex-dqn"])
def test_a_training_says_meanwhile_that_its_reports_do_not_arrive(tmp_path, agent):
    """It said so only at its end."""
    more = ["--actors", "1"] if agent == "apex-dqn" else []
    process = subprocess.Popen(
        [REPRISE, "train", agent, "--env", "catch", "--steps", "1000000000", "--keep-going", "--quiet",
         "--report", "localhost:1", *more], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=clean_environment())
    try:
        line = process.stderr.readline()
        assert re.fullmatch("reprise train: warning: reports do not reach localhost:1: .*refused.*; the training "
                            "goes on\n", line)
        process.send_signal(signal.SIGINT)
        assert "reports did not reach localhost:1: " in process.communicate(timeout=LONG)[1]
    finally:
        process.kill()
        process.wait()


@has_rl
def test_a_wrong_address_is_refused_before_the_training(tmp_path):
    done = train(tmp_path, "--report", "no port")
    assert done.returncode == 1 and "no port" in done.stderr


@has_rl
def test_a_training_serves_its_own_page(tmp_path):
    process = subprocess.Popen(
        [REPRISE, "train", "dqn", "--env", "cartpole", "--steps", "10000000", "--dir", "d",
         "--serve", "localhost:0", *SMALL], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env=clean_environment())
    try:
        page = re.search(r"look at (http://localhost:\d+)/", process.stderr.readline())[1]
        until, series = time.monotonic() + LONG, {}
        while "loss" not in series and time.monotonic() < until:
            with urllib.request.urlopen(page + "/v1/runs", timeout=120) as response:
                names = [run["name"] for run in json.load(response)["runs"]]
            if names:
                with urllib.request.urlopen(page + "/v1/runs/d", timeout=120) as response:
                    series = json.load(response)["series"]
        assert names == ["d"] and series["loss"]["value"]
        with urllib.request.urlopen(page + "/v1/info", timeout=120) as response:
            assert "replay" in [table["name"] for table in json.load(response)["tables"]]
    finally:
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        process.stderr.close()
        assert process.wait(LONG) == 130
    assert (tmp_path / "d" / "replay" / "RUNS").exists()  # --resume goes on with the curves
