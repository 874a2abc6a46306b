# SPDX-License-Identifier: Apache-2.0
"""Commands for several servers of which one cannot be reached: they say so (issue 26)."""

import json

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
