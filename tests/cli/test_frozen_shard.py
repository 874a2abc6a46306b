# SPDX-License-Identifier: Apache-2.0
"""Commands for two servers of which one accepts connections and never answers."""

import json
import socket
import subprocess

import pytest
from conftest import REPRISE, clean_environment, reprise


@pytest.fixture
def shards(serve):
    """Runs a command for a server with a table and a listener that says nothing."""
    alive = serve("--port", "0", "--table", "t:uniform:100")
    address = f"localhost:{alive.port}"
    assert reprise("insert", "t", "-", "--server", address,
                   input='{"data": {"x": [1]}}\n').returncode == 0
    with socket.create_server(("127.0.0.1", 0), backlog=100) as mute:
        frozen = f"127.0.0.1:{mute.getsockname()[1]}"

        def ask(*arguments, **options):
            return reprise(*arguments, "--server", f"{address},{frozen}", **options)

        ask.alive, ask.frozen = address, frozen
        yield ask


@pytest.mark.parametrize("command", [
    ["info"], ["why"], ["sample", "t"], ["top", "--count", "2", "--interval", "0.1", "--json"]])
def test_the_others_answer_within_the_timeout(shards, command):
    done = shards(*command, "--timeout", "20")
    assert done.returncode == 0 and done.stdout, done
    assert f"warning: {shards.frozen}: " in done.stderr or command[0] in ("why", "sample"), done
    assert f"{shards.alive}: no connection" not in done.stderr


def test_an_insert_goes_to_the_others(shards):
    done = shards("insert", "t", "-", "--timeout", "20", input='{"data": {"x": [2]}}\n')
    assert done.returncode == 0, done
    listed = json.loads(shards("info", "--json", "--timeout", "20").stdout)
    assert [t["items"] for t in listed] == [2], listed


def test_a_change_names_the_frozen_server(shards):
    done = shards("tables", "reset", "t", "--timeout", "20")
    assert done.returncode == 1, done
    assert f"t is reset on {shards.alive}, but not on {shards.frozen}" in done.stderr


def test_the_timeout_of_rollouts_counts(shards):
    """It ends before a call that was made earlier and has a longer timeout, of less than 10 s."""
    longer = subprocess.Popen([REPRISE, "info", "--server", shards.frozen, "--timeout", "8"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=clean_environment())
    try:
        done = reprise("rollouts", "--server", shards.frozen, "--timeout", "1")
        assert longer.poll() is None
        assert done.returncode == 1 and shards.frozen in done.stderr, done
    finally:
        longer.kill()
        longer.wait()


def test_a_timeout_over_that_of_an_attempt_to_connect_counts():
    """10 s are the default of an attempt, whose end has another text than that of the timeout."""
    commands = [["sample", "t"], ["insert", "t", "-"], ["info"], ["tables", "list"], ["checkpoint"],
                ["why"], ["top", "--count", "1"], ["watch", "t"], ["clients"], ["rollouts"], ["runs", "list"]]
    with socket.create_server(("127.0.0.1", 0), backlog=100) as mute:
        line = ["--server", f"127.0.0.1:{mute.getsockname()[1]}", "--timeout", "11"]
        running = [subprocess.Popen([REPRISE, *command, *line], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, env=clean_environment())
                   for command in commands]
        for process, command in zip(running, commands, strict=True):
            _, said = process.communicate(timeout=120)
            last = said.splitlines()[-1]
            assert process.returncode == 1 and "does not respond" in last, (command, said)
            assert "within" not in last and last.endswith("--timeout SECONDS waits longer"), (command, said)
