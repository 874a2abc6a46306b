# SPDX-License-Identifier: Apache-2.0
"""Commands for several servers of which one cannot be reached: they say so (issue 26)."""

import json
import signal

import pytest
from conftest import reprise


@pytest.fixture
def shards(serve, stop):
    """Runs a command for two servers with two tables each, of which the second has stopped."""
    tables = ["--table", "t:uniform:100", "--table", "u:uniform:100"]
    alive, dead = serve("--port", "0", *tables), serve("--port", "0", *tables)
    stop(dead)

    def ask(*arguments):
        return reprise(*arguments, "--server", f"localhost:{alive.port},localhost:{dead.port}")

    ask.alive, ask.dead = f"localhost:{alive.port}", f"localhost:{dead.port}"
    return ask


@pytest.mark.parametrize("command", [
    ["info"], ["info", "t"], ["info", "--storage"], ["info", "--json"], ["tables", "list"],
    ["clients"], ["clients", "--json"], ["top", "--count", "2", "--interval", "0.1"]])
def test_26_a_warning_names_the_server_once(shards, command):
    done = shards(*command)
    assert done.returncode == 0 and done.stdout, done
    assert done.stderr == (f"reprise {command[0]}: warning: {shards.dead}: Connection refused; "
                           "the command goes on without it\n")


@pytest.mark.parametrize("command", [["info"], ["sample", "t"], ["tables", "list"], ["checkpoint"], ["clients"]])
def test_all_servers_that_cannot_be_reached_are_named(command):
    done = reprise(*command, "--server", "localhost:1,localhost:2")
    assert done.returncode == 1
    assert done.stderr == (f"reprise {command[0]}: localhost:1: Connection refused; localhost:2: Connection refused; "
                           "reprise serve starts a server, --server names another\n")


def test_26_json_has_the_servers_that_cannot_be_reached(shards):
    gone = [{"address": shards.dead, "error": "Connection refused"}]
    assert [t["unreachable"] for t in json.loads(shards("info", "--json").stdout)] == [gone, gone]
    top = json.loads(shards("top", "--json", "--count", "1").stdout)
    assert top["unreachable"] == gone and len(top["tables"]) == 2


def test_26_the_second_line_of_top_names_the_server(shards):
    second = shards("top", "--count", "1").stdout.splitlines()[1]
    assert second.startswith(f"without {shards.dead} (Connection refused): 2 tables, 0 items"), second


@pytest.mark.parametrize("arguments, done", [
    (["create", "v:fifo:5"], "v is created"), (["drop", "t"], "t is dropped"),
    (["reset", "t"], "t is reset"), (["alter", "t", "--max-size", "5"], "t is altered"),
    (["pause", "t"], "t is paused"), (["resume", "t"], "t is resumed")])
def test_26_a_change_of_some_servers_fails(shards, arguments, done):
    for json_given in ([], ["--json"])[:2 if arguments[0] in ("reset", "pause", "resume") else 1]:
        got = shards("tables", *arguments, *json_given)
        assert got.returncode == 1, got
        assert got.stderr == (
            f"reprise tables: {done} on {shards.alive}, but not on {shards.dead} (Connection "
            f"refused); repeat it with --server {shards.dead} when it can be reached\n")
        if json_given:
            assert json.loads(got.stdout)["unreachable"] == [
                {"address": shards.dead, "error": "Connection refused"}]


def test_26_a_change_goes_on_with_the_next_table(shards):
    got = shards("tables", "drop", "t", "u")
    assert got.returncode == 1 and got.stdout == "dropped t\ndropped u\n"
    assert [line.split(" is ")[0] for line in got.stderr.splitlines()] == [
        "reprise tables: t", "reprise tables: u"]
    assert shards("tables", "list").stdout == ""


@pytest.mark.parametrize("json_given", [[], ["--json"]])
def test_a_checkpoint_of_some_servers_fails(serve, stop, tmp_path, json_given):
    alive, dead = (serve("--port=0", f"--data={tmp_path / name}") for name in ("a", "b"))
    stop(dead)
    addresses = [f"localhost:{server.port}" for server in (alive, dead)]
    got = reprise("checkpoint", *json_given, "--server", ",".join(addresses))
    assert got.returncode == 1 and str(tmp_path / "a") in got.stdout, got
    assert got.stderr == (
        f"reprise checkpoint: a checkpoint is written on {addresses[0]}, but not on {addresses[1]} "
        f"(Connection refused); repeat it with --server {addresses[1]} when it can be reached\n")
    if json_given:
        assert json.loads(got.stdout)["unreachable"] == [
            {"address": addresses[1], "error": "Connection refused"}]


def test_a_checkpoint_names_the_server_without_a_directory(serve, tmp_path):
    kept, without = serve("--port=0", f"--data={tmp_path / 'a'}"), serve("--port=0")
    got = reprise("checkpoint", "--server", f"localhost:{without.port},localhost:{kept.port}")
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr.startswith(f"reprise checkpoint: localhost:{without.port}: no checkpointer is configured")
    assert got.stderr.endswith(f"; written on localhost:{kept.port}\n"), got.stderr


def test_a_checkpoint_that_is_spaced_says_so(serve, tmp_path):
    server = serve("--port=0", f"--data={tmp_path / 'a'}", "--limit=checkpoint_spacing_ms=1000000")
    for _ in range(6):
        assert reprise("checkpoint", "--server", f"localhost:{server.port}").returncode == 0
    got = reprise("checkpoint", "--server", f"localhost:{server.port}", "--timeout", "3")
    first, last = got.stderr.splitlines()
    assert got.returncode == 1 and "its limit checkpoint_spacing_ms" in first, got
    assert f"localhost:{server.port}: no checkpoint in time: requested checkpoints" in last, got
    assert "checkpoint_spacing_ms; --timeout SECONDS waits longer" in last


def test_a_checkpoint_of_a_stopped_server_is_not_said_to_be_spaced(serve, tmp_path):
    server = serve("--port=0", f"--data={tmp_path / 'a'}")
    server.signal(signal.SIGSTOP)
    try:
        got = reprise("checkpoint", "--server", f"localhost:{server.port}", "--timeout", "1")
    finally:
        server.signal(signal.SIGCONT)
    assert got.returncode == 1 and f"localhost:{server.port}" in got.stderr, got
    assert "checkpoint_spacing_ms" not in got.stderr, got
