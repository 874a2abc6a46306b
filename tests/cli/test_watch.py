# SPDX-License-Identifier: Apache-2.0
"""`reprise watch` and `reprise clients`."""

import json
import signal
import subprocess
import time

import pytest
from conftest import REPRISE, SECONDS, answer, ask, clean_environment


@pytest.fixture
def server(serve):
    return serve("--port", "0", "--table", "replay:uniform:1000,min_size=2")


class Watch:
    """`reprise watch --json` of a table, whose lines are read one by one."""

    def __init__(self, server, table):
        self.process = subprocess.Popen(
            [REPRISE, "watch", table, "--json", "--interval", "0.05"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"))

    def wait_for(self, event):
        """The next event of this name. The fixture ends the process if it does not come."""
        for line in self.process.stdout:
            found = json.loads(line)
            if found["event"] == event:
                return found
        pytest.fail(f"it ended without the event '{event}': {self.process.stderr.read()}")


@pytest.fixture
def watch():
    started = []

    def start(*arguments):
        started.append(Watch(*arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def waiting_sample(server):
    """A command that waits for items of the table."""
    process = subprocess.Popen([REPRISE, "sample", "replay", "--timeout", "0"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"))
    deadline = time.monotonic() + SECONDS
    while not json.loads(answer(server, "info", "replay", "--json"))[0]["waiting_samples"]:
        assert time.monotonic() < deadline
    return process


def test_watch_prints_what_happens(server, watch):
    seen = watch(server, "replay")
    assert seen.wait_for("rates")["items"] == 0
    sample = waiting_sample(server)
    try:
        assert "samples wait: sample waits for inserts" in seen.wait_for("blocked")["text"]
        answer(server, "insert", "replay", "-", input='{"data": [1]}\n' * 2)
        assert seen.wait_for("filled")["text"] == "min_size is reached: 2 items"
        assert sample.wait(SECONDS) == 0
    finally:
        sample.kill()
        sample.communicate()
    answer(server, "tables", "pause", "replay", "--inserts")
    assert seen.wait_for("paused")["text"] == "inserts are paused"
    answer(server, "tables", "alter", "replay", "--max-size", 2)
    assert seen.wait_for("altered")["text"] == "max_size 1000 -> 2"
    answer(server, "tables", "reset", "replay")
    seen.wait_for("reset")
    answer(server, "tables", "drop", "replay")
    seen.wait_for("dropped")
    answer(server, "tables", "create", "replay:fifo:5")
    seen.wait_for("created")
    seen.process.send_signal(signal.SIGINT)
    assert seen.process.wait(SECONDS) == 130


def test_watch_goes_on_after_an_outage(serve, watch):
    server = serve("--port", "0")
    seen = watch(server, "replay")
    seen.wait_for("rates")
    server.kill()
    assert f"localhost:{server.port}" in seen.wait_for("away")["text"]
    serve("--port", str(server.port))
    seen.wait_for("back")


def test_watch_of_an_idle_table_prints_its_state_once(server):
    text = answer(server, "watch", "replay", "--count", 3, "--interval", "0.05")
    assert text.count("\n") == 1
    assert text.endswith("  replay  0 items, 0 B; 0 inserts/s, 0 samples/s\n")
    done = ask(server, "watch", "replya", "--count", 1)
    assert done.returncode == 1 and "did you mean 'replay'?" in done.stderr


def test_clients_lists_connections_and_what_they_wait_for(server):
    sample = waiting_sample(server)
    try:
        own, other = json.loads(answer(server, "clients", "--json"))
        assert own["is_this_command"] and own["waits"] == []
        assert not other["is_this_command"] and other["calls"] >= 1 and other["bytes_in"] > 0
        [wait] = other["waits"]
        assert (wait["table"], wait["side"], wait["calls"]) == ("replay", "sample", 1)
        lines = answer(server, "clients").splitlines()
        assert lines[0].split() == ["CLIENT", "PROTOCOL", "ROLE", "OPEN", "CALLS", "IN", "OUT",
                                    "WAITS", "FOR"]
        assert len(lines) == 3 and " *  HTTP/2 " in lines[1]
        assert other["address"] in lines[2] and lines[2].endswith("replay: 1 sample")
    finally:
        sample.kill()
        sample.communicate()
