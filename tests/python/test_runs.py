# SPDX-License-Identifier: Apache-2.0
"""log_scalars() and Reporter: runs on a server, and servers that are not there."""

import csv
import gc
import io
import json
import math
import os
import threading
import urllib.request

import numpy as np
import pytest

import reprise
from reprise import runs


@pytest.fixture
def server():
    with_page = reprise.Server([reprise.Table.queue("queue", max_size=10)])
    yield with_page
    with_page.stop()


@pytest.fixture(params=[None, "tcp"])
def client(request, server):
    return reprise.Client(f"localhost:{server.port}", transport=request.param)


def get(server, path):
    with urllib.request.urlopen(f"http://localhost:{server.port}{path}", timeout=120) as response:
        return response.read()


def test_scalars_reach_the_server(server, client):
    for step in range(3):
        assert reprise.log_scalars(client, "my run/1", step, {"loss": step / 2, "q": np.float32(1)})
    assert runs.reporter(client).flush(10)
    run = json.loads(get(server, "/v1/runs/my%20run%2F1"))
    assert run["series"]["loss"]["step"] == [0, 1, 2]
    assert run["series"]["loss"]["value"] == [0, 0.5, 1]
    assert run["series"]["q"]["value"] == [1, 1, 1]
    assert runs.reporter(client).sent == 3 and runs.reporter(client).dropped == 0


def test_extreme_steps_and_values_are_kept(server, client):
    steps = [-(2**63), 2**63 - 1]
    for step in steps:
        reprise.log_scalars(client, "r", step, {"x": math.nan, "y": -math.inf}, time=5)
    assert runs.reporter(client).flush(10)
    rows = list(csv.DictReader(io.StringIO(get(server, "/v1/runs/r.csv").decode())))
    assert [int(row["step"]) for row in rows if row["name"] == "x"] == steps
    assert {row["value"] for row in rows} == {"nan", "-inf"}
    assert {row["time"] for row in rows} == {"5.000"}


def test_actors_and_an_episode(server, client):
    with runs.Reporter(client) as reporter:
        reporter.log("r", 1, {"x": 1}, actors=[runs.Actor("a", 0.5, 3, 7, 1), runs.Actor("b")],
                     episode=("cartpole", np.arange(8).reshape(2, 4)))
    assert (reporter.sent, reporter.dropped) == (1, 0)
    run = json.loads(get(server, "/v1/runs/r"))
    assert run["episode"]["env"] == "cartpole"
    assert run["episode"]["states"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    first, second = run["actors"]
    assert (first["name"], first["epsilon"], first["version_lag"]) == ("a", 0.5, 1)
    assert second["return"] is None


def test_wrong_arguments_raise_at_once(client):
    with pytest.raises(ValueError, match="64 bits"):
        reprise.log_scalars(client, "r", 2**63, {"x": 1})
    with pytest.raises((TypeError, ValueError)):
        reprise.log_scalars(client, "r", 1, {"x": "much"})
    with pytest.raises(ValueError, match="1024 scalars"):
        reprise.log_scalars(client, "r", 1, {str(i): 1 for i in range(1025)})


WRONG = {
    "an empty run": (dict(run=""), "the run must have 1 to 255"),
    "a long run": (dict(run="n" * 1_000_000), "got 1000000"),
    "a zero byte": (dict(run="a\0b"), "zero"),
    "half a character": (dict(run="\ud800"), "text"),
    "an empty scalar": (dict(scalars={"": 1}), "a scalar must have"),
    "a long scalar": (dict(scalars={"\u00e4" * 128: 1}), "got 256"),
    "no time": (dict(time=math.nan), "time must be"),
    "a time before 1970": (dict(time=-1.0), "time must be"),
    "an empty actor": (dict(actors=[runs.Actor("")]), "an actor must have"),
    "a large version": (dict(actors=[runs.Actor("a", version=2**63)]), "version must be"),
    "a large lag": (dict(actors=[runs.Actor("a", version_lag=-2**63 - 1)]), "version_lag must be"),
    "many actors": (dict(actors=[runs.Actor(str(i)) for i in range(257)]), "256 actors, got 257"),
    "no environment": (dict(episode=("", [[1.0]])), "the environment must have"),
    "flat states": (dict(episode=("e", [1.0, 2.0])), "two dimensions"),
    "no states": (dict(episode=("e", np.zeros((0, 4)))), "0 x 4"),
    "wide states": (dict(episode=("e", np.zeros((1, 1025)))), "1 x 1025"),
    "many states": (dict(episode=("e", np.zeros((4097, 4)))), "4097 x 4"),
}


@pytest.mark.parametrize("name", WRONG)
def test_reports_that_the_server_would_refuse_raise_at_once(server, client, name):
    """A report that was queued with others would take them with it."""
    wrong, why = WRONG[name]
    with runs.Reporter(client) as reporter:
        reporter.log("r", 1, {"x": 1})
        with pytest.raises(ValueError, match=why):
            reporter.log(**{"run": "r", "step": 2, "scalars": {"x": 2}, **wrong})
        reporter.log("r", 3, {"x": 3})
    assert (reporter.sent, reporter.dropped, reporter.error) == (2, 0, None)
    assert json.loads(get(server, "/v1/runs/r"))["series"]["x"]["step"] == [1, 3]


class Slow:
    """A client that keeps what it is asked to report, and reports when it may."""

    def __init__(self):
        self.may, self.reports = threading.Event(), []
        self._client = self

    def report(self, *arguments):
        assert self.may.wait(120)
        self.reports.append(arguments)
        return 3


def test_states_are_those_at_the_time_of_the_report(monkeypatch):
    monkeypatch.setattr(runs, "core_client", lambda client: client)
    slow, states = Slow(), np.ones((2, 2))
    with runs.Reporter(slow) as reporter:
        reporter.log("r", 1, {}, episode=("e", states))
        states[:] = 5
        slow.may.set()
    assert slow.reports[0][4].tolist() == [[1, 1], [1, 1]]
    assert reporter.left_out == 3


def test_actors_of_reports_that_wait_are_all_sent(monkeypatch):
    monkeypatch.setattr(runs, "core_client", lambda client: client)
    slow = Slow()
    with runs.Reporter(slow) as reporter:
        for i in range(600):
            reporter.log("r", i, {}, actors=[runs.Actor(str(i))])
        slow.may.set()
    sent = [row[0] for report in slow.reports for row in report[2]]
    assert sorted(sent, key=int) == [str(i) for i in range(600)]
    assert max(len(report[2]) for report in slow.reports) <= 256


def test_what_the_server_has_no_room_for_is_counted(server, client):
    with runs.Reporter(client) as reporter:
        reporter.log("r", 1, {str(i): i for i in range(130)})
    assert (reporter.sent, reporter.dropped, reporter.left_out) == (1, 0, 2)


def test_a_reporter_works_in_a_child_process(server):
    reporter = runs.Reporter(f"localhost:{server.port}")
    reporter.log("parent", 1, {"x": 1})
    assert reporter.flush(10)
    child = os.fork()
    if child == 0:
        ok = reporter.log("child", 1, {"x": 1}) and reporter.flush(10)
        os._exit(0 if ok and reporter.sent == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert {run["name"] for run in json.loads(get(server, "/v1/runs"))["runs"]} == {"parent", "child"}


def test_the_limit_of_the_server_holds_when_runs_are_loaded(tmp_path):
    """The data is loaded before the server is made."""
    def serve(run_bytes):
        return reprise.Server([reprise.Table.queue("queue", max_size=10)],
                              storage=reprise.Storage(tmp_path, checkpoint_every=None),
                              limits={"run_bytes": run_bytes})

    server = serve(1 << 20)
    for name in "ab":
        with runs.Reporter(f"localhost:{server.port}") as reporter:
            for step in range(300):
                reporter.log(name, step, {"x": 1.0})
    server.stop()
    server = serve(20_000)  # of one run
    names = [run["name"] for run in json.loads(get(server, "/v1/runs"))["runs"]]
    server.stop()
    assert names == ["a"] and (tmp_path / "quarantine" / "RUNS").exists()


def test_a_server_that_is_not_there_stops_nothing():
    reporter = runs.Reporter("localhost:1", queue=4, timeout=0.2)
    queued = [reporter.log("r", step, {"x": 1}) for step in range(100)]
    assert queued[0] and not all(queued)
    reporter.close(0.1)
    assert reporter.flush(10)
    assert reporter.sent == 0 and reporter.dropped >= queued.count(False)
    assert not reporter.log("r", 1, {"x": 1})


def test_reports_of_a_client_that_is_gone_are_sent(server):
    client = reprise.Client(f"localhost:{server.port}", transport="tcp")
    reprise.log_scalars(client, "r", 1, {"x": 1})
    reporter = runs.reporter(client)
    del client
    gc.collect()
    assert reporter.flush(10) and reporter.sent == 1
    reporter._thread.join(120)
    assert not reporter._thread.is_alive()


def test_many_threads_report(server, client):
    def report(name):
        for step in range(50):
            reprise.log_scalars(client, "r", step, {name: step})

    threads = [threading.Thread(target=report, args=(f"s{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs.reporter(client).flush(20)
    series = json.loads(get(server, "/v1/runs/r"))["series"]
    assert all(series[f"s{i}"]["step"] == list(range(50)) for i in range(8))


def test_an_address_will_do(server):
    address = f"localhost:{server.port}"
    assert reprise.log_scalars(address, "r", 1, {"x": 1})
    assert runs.reporter(address).flush(10)
    assert json.loads(get(server, "/v1/runs"))["runs"][0]["name"] == "r"


class Agent:
    """An agent with the part that callbacks use."""

    num_timesteps = 0

    def metrics(self):
        return {"train/loss": 0.5, "rollout/ep_rew_mean": math.nan, "train/n_updates": 7,
                "rollout/exploration_rate": 0.1}


def test_a_callback_reports_what_an_agent_measures(server, client):
    rl = pytest.importorskip("reprise.rl")
    callback, agent = rl.Report(client, "r", every_s=0), Agent()
    callback.init_callback(agent)
    for _ in range(3):
        agent.num_timesteps += 8
        assert callback.on_step()
    callback.on_training_end()  # nothing is new
    assert callback.reporter.flush(10)
    run = json.loads(get(server, "/v1/runs/r"))
    assert run["series"]["train/loss"]["step"] == [8, 16, 24]
    assert "rollout/ep_rew_mean" not in run["series"]
    assert run["actors"][0]["version"] == 7


def test_a_callback_reports_a_loss_that_diverged(server, client):
    rl = pytest.importorskip("reprise.rl")
    callback, agent, losses = rl.Report(client, "r", every_s=0), Agent(), [0.5, math.inf, math.nan]
    callback.init_callback(agent)
    for loss in losses:
        agent.num_timesteps += 8
        agent.metrics = lambda loss=loss: {"train/loss": loss, "rollout/ep_rew_mean": math.nan}
        callback.on_step()
    assert callback.reporter.flush(10)
    series = json.loads(get(server, "/v1/runs/r"))["series"]
    assert list(series) == ["train/loss"] and series["train/loss"]["value"] == [0.5, None, None]
