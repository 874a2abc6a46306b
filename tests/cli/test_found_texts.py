# SPDX-License-Identifier: Apache-2.0
"""Texts and checks of commands that a new user found wrong."""

import json
import re
import urllib.request

import pytest
from conftest import answer, ask, ask_why, reprise, save_npy


def insert(server, table, *lines):
    done = ask(server, "insert", table, "-", input="\n".join(lines) + "\n")
    assert done.returncode == 0, done


def test_why_names_the_empty_tables_of_several_servers(serve):
    both = [serve("--port", "0", "--table", "e:uniform:9") for _ in range(2)]
    names = [f"localhost:{s.port}" for s in both]
    got = reprise("why", "e", "--server", ",".join(names))
    assert got.returncode == 0, got
    assert [line.split(" has")[0] for line in got.stdout.splitlines()] == [
        "no call waits on e", f"{names[0]}: e", f"{names[1]}: e"]
    got = reprise("sample", "e", "--timeout", "5", "--server", ",".join(names))
    assert got.returncode == 1
    assert "no shard is known to have items of 'e', the first insert into it lets samples" in got.stderr


def test_the_bar_of_a_limiter_with_one_bound_is_not_free(serve):
    server = serve("--port", "0", "--table", "t:uniform:100")
    insert(server, "t", *['{"data": {"x": [1]}}'] * 4)
    assert " free " in ask(server, "info", "t").stdout
    assert ask(server, "tables", "alter", "t", "--max-diff", "4").returncode == 0
    assert "at max_diff" in ask(server, "info", "t").stdout
    assert ask(server, "tables", "alter", "t", "--max-diff", "100").returncode == 0
    assert " open " in ask(server, "info", "t").stdout


def test_a_limiter_that_waits_for_ever_says_one_thing(serve):
    server = serve("--port", "0", "--table", "scratch:fifo:2")
    for arguments in (["alter", "scratch", "--min-size", "1000000"], ["pause", "scratch"],
                      ["resume", "scratch"]):
        got = ask(server, "tables", *arguments)
        assert got.returncode == 0, got
        assert "more inserts would release" not in got.stdout, got
    assert "samples wait for ever: max_size 2 is below min_size 1000000" in got.stdout
    got = ask_why(server, "for ever", "sample", "scratch")
    assert "it will wait for ever; reprise tables alter changes --max-size or --min-size" in got.stderr


def test_an_alteration_that_changes_nothing_says_only_that(serve):
    server = serve("--port", "0", "--table", "slow:uniform:100")
    got = ask(server, "tables", "alter", "slow", "--min-size", "1")
    assert (got.returncode, got.stdout) == (0, ""), got
    assert got.stderr == "reprise tables: warning: nothing has changed: min_size was 1 already\n"


def post(server, page, body, table):
    request = urllib.request.Request(f"http://localhost:{server.port}{page}", json.dumps(body).encode(),
                                     {"x-reprise-confirm": table, "content-type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_an_alteration_over_http_has_the_same_warnings(serve):
    server = serve("--port", "0", "--table", "t:fifo:1000")
    for i in range(3):
        answer(server, "insert", "t", "-", input='{"data": {"x": [1, 2, 3]}}\n')

    blocked = post(server, "/v1/tables/t/alter", {"min_size": 5000}, "t")
    again = post(server, "/v1/tables/t/alter", {"min_size": 5000}, "t")
    emptied = post(server, "/v1/tables/t/alter", {"min_size": 1, "max_bytes": 100}, "t")

    assert blocked["done"] == "table 't' is altered" and blocked["evicted"] == 0, blocked
    assert blocked["warning"] == ("samples will wait for ever: max_size 1000 is below min_size 5000; raise max_size or "
                                  "lower min_size")
    assert again["done"] == "table 't' was so already: nothing has changed", again
    assert emptied["evicted"] == 3, emptied
    assert re.fullmatch(r"max_bytes 100 is less than an item takes, \d+ bytes: the table keeps none",
                        emptied["warning"]), emptied


def test_a_new_table_that_keeps_no_item_is_a_warning(serve):
    server = serve("--port", "0", "--table", "t:fifo:1000")

    small = ask(server, "tables", "create", "small:fifo:10,max_bytes=10")
    least = ask(server, "tables", "create", "least:fifo:10,max_bytes=1KiB")

    assert small.returncode == 0 and "max_bytes 10 B is less than the smallest item takes" in small.stderr, small
    assert (least.returncode, least.stderr) == (0, ""), least
    answer(server, "insert", "least", "-", input='{"data": {"x": true}}\n')
    assert json.loads(answer(server, "info", "least", "--json"))[0]["items"] == 1


@pytest.mark.parametrize("mode, count", [("sync", 1), ("interval", 0)])
def test_an_option_that_the_durability_does_not_use_is_logged(mode, count, serve, stop, tmp_path):
    server = serve("--port", "0", "--data", tmp_path / "data", "--durability", mode, "--sync-every", "50ms")
    stop(server)
    assert server.events().count("unused_option") == count


def test_an_alteration_that_keeps_no_item_is_a_warning(serve):
    server = serve("--port", "0", "--table", "t:fifo:9")
    insert(server, "t", '{"data": {"x": [1, 2, 3]}}')
    got = ask(server, "tables", "alter", "t", "--max-bytes", "10")
    assert "max_bytes 10 B is less than an item takes" in got.stderr, got


def test_npy_files_of_items_of_two_dtypes_are_refused_before_any_is_written(serve, tmp_path):
    server = serve("--port", "0", "--table", "u:fifo:9,max_times_sampled=1")
    insert(server, "u", '{"data": {"x": {"dtype": "int64", "data": 1}}}')
    insert(server, "u", '{"data": {"x": {"dtype": "float64", "data": 1}}}')
    folder = tmp_path / "out"
    got = ask(server, "sample", "u", "--count", "2", "--npy", folder)
    assert got.returncode == 1 and not folder.exists(), got
    assert re.search(r"item 2 is float64 \[\], the first int64 \[\]; the 2 items drawn", got.stderr), got


def test_a_file_of_another_dtype_is_refused_with_the_remedy(serve, tmp_path):
    server = serve("--port", "0")
    got = ask(server, "tables", "create", "t:fifo:9", "--column", "x=float32 []")
    assert got.returncode == 0, got
    save_npy(tmp_path / "x.npy", "<f8", "(1,)", bytes(8))
    got = ask(server, "insert", "t", tmp_path / "x.npy")
    assert got.returncode == 1, got
    assert "got dtype float64 but expected float32" in got.stderr
    assert "NumPy converts it: array.astype('float32')" in got.stderr


def test_priorities_of_the_command_line_are_those_of_the_input(serve):
    server = serve("--port", "0", "--table", "u:uniform:9", "--table", "p:prioritized:9")
    line = '{"data": {"x": 1}}\n'
    assert ask(server, "insert", "u", "-", "--priority", "-1", input=line).returncode == 0
    got = ask(server, "insert", "p", "-", "--priority", "-1", input=line)
    assert got.returncode == 1 and "priority" in got.stderr, got


def test_a_priority_that_is_not_a_number_is_named_by_its_row(serve, tmp_path):
    server = serve("--port", "0", "--table", "u:fifo:9")
    save_npy(tmp_path / "x.npy", "<i4", "(2,)", bytes(8))
    save_npy(tmp_path / "_priority.npy", "<f4", "(2,)", bytes(4) + b"\0\0\xc0\x7f")
    got = ask(server, "insert", "u", tmp_path / "x.npy", tmp_path / "_priority.npy")
    assert got.returncode == 1 and "_priority.npy: row 1 (the first is 0) is NaN" in got.stderr, got


@pytest.mark.parametrize("table, options, text", [
    ("u:fifo:9,max_bytes=1", [],
     "over max_bytes 1 of the whole table; insert smaller items, or raise it: reprise tables alter TABLE "
     "--max-bytes SIZE\n"),
    ("u:fifo:9", ["--max-bytes", "5000"],
     "over max_bytes 5000 of all tables together; insert smaller items, or start the server with a larger "
     "--max-bytes\n"),
    ("u:fifo:9", ["--max-bytes", "9000", "--policy", "reject"],
     "; delete items, or raise max_bytes of the server (--max-bytes)\n")])
def test_an_item_over_a_bound_on_bytes_says_which_to_raise(serve, table, options, text):
    server = serve("--port", "0", "--table", table, *options)
    line = '{"data": {"x": [' + ", ".join(str(i * i % 977) for i in range(4000)) + "]}}\n"
    got = ask(server, "insert", "u", "-", input=line * 2)
    assert got.returncode == 1 and got.stderr.endswith(text), got


@pytest.mark.parametrize("line, text", [
    ('{"data": {"x": [NaN]}}', 'JSON has no NaN and no Infinity: data may have them as texts, "NaN", a priority may not'),
    ("hello", 'expected a value: a line is {"data": {"obs": [1, 2]}}')])
def test_a_line_that_is_not_json_says_what_is_expected(serve, line, text):
    server = serve("--port", "0", "--table", "u:fifo:9")
    got = ask(server, "insert", "u", "-", input=line + "\n")
    assert got.returncode == 1 and text in got.stderr, got


def test_bench_checks_its_files_first_and_says_what_it_does(tmp_path):
    got = reprise("bench", "--quick", "--svg", tmp_path / "none" / "x.svg")
    assert got.returncode == 1 and got.stdout == "" and "No such file" in got.stderr, got
    got = reprise("bench", "--figure", "5", "--clients", "1", "--payloads", "400", "--seconds", "0.2",
                  "--fill", "1MiB", "--csv", tmp_path / "x.csv", "--svg", tmp_path / "x.svg")
    assert got.returncode == 0, got
    assert "note: measures 1 point of 0.2 s" in got.stderr and (tmp_path / "x.svg").exists()


def test_bench_drops_only_tables_that_it_made(serve):
    """Nor does it wait to drop tables of a server that has not responded."""
    server = serve("--port", "0", "--table", "reprise-bench-0:fifo:9")
    got = ask(server, "bench", "--quick", "--server", f"localhost:{server.port}")
    assert got.returncode == 1 and "there is a table 'reprise-bench-0' already" in got.stderr, got
    assert ask(server, "tables", "list").stdout == "reprise-bench-0\n"


def test_bench_refuses_times_in_which_nothing_can_be_measured():
    got = reprise("bench", "--figure", "6", "--seconds", "0.0001")
    assert got.returncode == 2 and "--seconds: expected at least 0.01, got '0.0001'" in got.stderr, got


def test_salvage_and_dump_name_what_is_wrong(serve, stop, tmp_path):
    data = tmp_path / "data"
    stop(serve("--port", "0", "--table", "t:fifo:9", f"--data={data}"))
    got = reprise("data", "salvage", data, data)
    assert got.returncode == 1 and "the directory is not empty" in got.stderr
    got = reprise("data", "dump", data, "--checkpoint", "99")
    assert got.returncode == 1 and re.search(r"there is no checkpoint 99, but [1-9]", got.stderr), got


@pytest.mark.parametrize("command, option, ours", [
    ("sample", "num_samples", "count"), ("sample", "batch-size", "count"), ("info", "host", "server"),
    ("info", "address", "server"), ("clients", "port", "server"), ("info", "listen", "server"),
    ("serve", "host", "listen"), ("serve", "address", "listen"), ("serve", "bind", "listen"),
    ("serve", "server", "listen"), ("train", "listen", "serve")])
def test_options_of_other_programs_have_ours_beside_them(command, option, ours):
    got = reprise(command, f"--{option}", "1")
    assert got.returncode == 2 and f"did you mean --{ours}?" in got.stderr, got


@pytest.mark.parametrize("option", ["host", "address", "server", "port"])
def test_an_address_of_train_is_asked_for_by_its_purpose(option):
    got = reprise("train", "dqn", "--env", "catch", f"--{option}", "1")
    assert got.returncode == 2 and all(f"--{o} ADDR" in got.stderr for o in ("serve", "replay", "report")), got


def test_a_call_on_a_paused_table_names_the_command(serve, tmp_path):
    server = serve("--port", "0", "--table", "t:fifo:9")
    insert(server, "t", '{"data": {"x": 1}}')
    assert ask(server, "tables", "pause", "t", "--samples").returncode == 0
    top = ask(server, "top", "--count", "1").stdout
    assert " samples paused" in top, top


def test_a_table_that_exists_and_an_unknown_environment_have_a_next_step(serve):
    server = serve("--port", "0", "--table", "t:fifo:9")
    got = ask(server, "tables", "create", "t:fifo:9")
    assert got.returncode == 1 and "already; reprise tables alter changes it" in got.stderr, got
    got = reprise("tune", "--env", "nope")
    assert "unknown 'nope'; there are " in got.stderr and "cartpole" in got.stderr, got


def test_bounds_of_options_are_those_of_the_server(serve):
    server = serve("--port", "0", "--table", "t:uniform:100,samples_per_insert=1")
    got = ask(server, "tables", "alter", "t", "--max-size", "0")
    assert "--max-size: expected a whole number from 1 to 1073741824, got '0'" in got.stderr, got
    got = ask(server, "tables", "alter", "t", "--max-size", "99999999999")
    assert "from 1 to 1073741824, got '99999999999'" in got.stderr, got
    got = ask(server, "top", "--interval", "-1")
    assert "a time from 0 to " in got.stderr and "got '-1'" in got.stderr, got
    assert "1 sample an insert" in ask(server, "info", "t").stdout


def test_the_option_of_a_data_directory_is_found():
    got = reprise("serve", "--checkpoint-path", "x")
    assert got.returncode == 2 and "did you mean --data?" in got.stderr, got
