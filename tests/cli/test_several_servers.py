# SPDX-License-Identifier: Apache-2.0
"""`reprise tables` on several servers that do not have the same tables."""

import json

import pytest
from conftest import answer, ask, reprise


@pytest.fixture
def two(serve):
    """Two servers; only the second has the table `only`."""
    first = serve("--port", "0", "--table", "replay:uniform:100")
    second = serve("--port", "0", "--table", "replay:uniform:100", "--table", "only:uniform:100")
    names = [f"localhost:{s.port}" for s in (first, second)]

    def run(*arguments):
        return reprise("tables", *arguments, "--server", ",".join(names))

    run.first, run.second, run.names = first, second, names
    return run


@pytest.mark.parametrize("arguments", [
    ["alter", "only", "--max-size", "3"], ["pause", "only"], ["resume", "only"], ["reset", "only"],
    ["drop", "only"]])
def test_the_server_without_the_table_is_named(two, arguments):
    got = two(*arguments)
    assert got.returncode == 1, got
    assert got.stderr == (
        f"reprise tables: {arguments[0]} only: done on {two.names[1]}, but not on {two.names[0]} "
        "(Priority table only was not found; the tables are: replay)\n")
    left = answer(two.second, "tables", "list").split()
    assert ("only" in left) == (arguments[0] != "drop")
    if arguments[0] == "alter":
        assert "of 3" in answer(two.second, "info", "only")
        assert got.stdout == f"altered only on {two.names[1]}\n  max_size 100 -> 3\n"


@pytest.mark.parametrize("action", ["pause", "resume", "reset", "drop", "alter"])
def test_the_other_tables_are_changed_all_the_same(two, action):
    more = ["--max-size", 40] if action == "alter" else []
    got = two(action, "only", "replay", *more)
    assert got.returncode == 1 and got.stderr.count("\n") == 1, got
    assert got.stderr.startswith(f"reprise tables: {action} only: done on {two.names[1]}, but not on "), got
    done = {"pause": "paused", "drop": "dropped", "alter": "altered"}.get(action, action)
    for name in two.names if action in ("pause", "alter") else ():
        assert f"{done} replay on {name}\n" in got.stdout
    if action in ("pause", "alter"):
        assert f"{done} only on {two.names[1]}\n" in got.stdout
        assert f"only on {two.names[0]}" not in got.stdout
    for server in (two.first, two.second):
        left = {t["table"]: t for t in json.loads(answer(server, "info", "--json"))}
        assert ("replay" in left) == (action != "drop")
        if action == "pause":
            assert left["replay"]["paused_inserts"] and left["replay"]["paused_samples"]
        if action == "alter":
            assert left["replay"]["max_size"] == 40


def test_json_has_what_was_done(two):
    [line] = two("pause", "only", "--json").stdout.splitlines()
    line = json.loads(line)
    assert (line["table"], line["done"]) == ("only", "paused")
    assert line["error"].startswith(f"done on {two.names[1]}, but not on {two.names[0]} (")
    [line] = two("alter", "only", "--max-size", 40, "--json").stdout.splitlines()
    line = json.loads(line)
    assert (line["table"], line["shard"]) == ("only", two.names[1])
    assert line["changes"] == [{"option": "max_size", "before": "100", "after": "40"}]


def test_a_table_that_one_server_has_already(two):
    got = two("create", "only:uniform:5")
    assert got.returncode == 1, got
    assert f"create only: done on {two.names[0]}, but not on {two.names[1]} (" in got.stderr
    assert "only" in answer(two.first, "tables", "list").split()


def test_all_words_are_checked_before_the_first_change(two):
    got = two("create", "ok1:uniform:5", "bad")
    assert got.returncode == 2 and "bad" in got.stderr and got.stdout == "", got
    assert "ok1" not in answer(two.first, "tables", "list")
    got = two("drop", "replay", "nothing_like_it")
    assert got.returncode == 1 and got.stdout == "", got
    assert "no table 'nothing_like_it'; the server has 'replay', 'only'" in got.stderr
    assert "replay" in answer(two.first, "tables", "list")


def test_an_address_that_is_given_twice_is_refused(two):
    for command in (["tables", "list"], ["info"], ["sample", "replay"]):
        for more in ([], ["unix:/nowhere"]):
            got = reprise(*command, "--server", ",".join([two.names[0], *more, two.names[0]]))
            assert got.returncode == 2, got
            assert got.stderr == f"reprise {command[0]}: address '{two.names[0]}' is given twice\n"
    assert ask(two.first, "tables", "list").returncode == 0
