# SPDX-License-Identifier: Apache-2.0
"""The commands that speak to a server: info, sample, insert, tables, checkpoint."""

import hashlib
import json
import re
import signal
import struct
import subprocess
import time

import pytest
from conftest import (REPRISE, SECONDS, answer, ask, clean_environment, load_npy, reprise,
                      save_npy, without_notices)

TABLES = ["--table", "replay:prioritized:1000", "--table", "queue:queue:4"]


@pytest.fixture
def server(serve):
    return serve("--port", "0", *TABLES)


def fails(done, status, message):
    """It failed with one line on standard error."""
    assert (done.returncode, done.stdout) == (status, "")
    text = without_notices(done.stderr)
    assert text.count("\n") == 1 and message in text, done.stderr


def insert(server, table, *items):
    """Inserts items as JSON lines."""
    lines = "".join(json.dumps(item) + "\n" for item in items)
    return answer(server, "insert", table, "-", input=lines)


def test_info_of_a_fresh_server(server, golden):
    golden("info.txt", answer(server, "info"))
    golden("info_replay.txt", answer(server, "info", "replay"))
    text = answer(server, "info", "--json").replace(str(server.port), "PORT")
    golden("info.json", text)
    assert [t["table"] for t in json.loads(text)] == ["replay", "queue"]


def test_info_suggests_the_nearest_table_name(server):
    fails(ask(server, "info", "replya"), 1, "no table 'replya', did you mean 'replay'?")
    fails(ask(server, "info", "zzzzzz"), 1, "no table 'zzzzzz'; the server has 'replay', 'queue'")


def test_tables_are_counted_if_no_name_fits(serve):
    server = serve("--port", "0", "--table", f"{'x' * 250}:uniform:1000")
    fails(ask(server, "info", "zzzzzz"), 1, "no table 'zzzzzz'; the server has 1 table\n")


def test_an_address_without_a_server_fails():
    done = reprise("info", "--server", "localhost:1", "--timeout", "5")
    fails(done, 1, "reprise serve starts a server")
    assert "localhost:1" in done.stderr


@pytest.mark.parametrize("arguments, message", [
    (["--server", "nonsense"], "nonsense"),
    (["--timeout", "soon"], "--timeout"),
    (["--cert", "x"], "--cert and --key"),
    (["--token", "a", "--token-file", "b"], "only one of them"),
    (["--token-file", "/nowhere"], "/nowhere: No such file"),
    (["--token", ""], "--token is empty: write a token after it, or leave --token out"),
    (["--token="], "--token is empty"),
])
def test_invalid_options_are_misuse(arguments, message):
    fails(reprise("info", *arguments), 2, message)


def test_a_token_can_come_from_a_file_an_option_and_the_environment(serve, tmp_path):
    secret = "s3cret-s3cret-s3cret"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin me sha256:{hashlib.sha256(secret.encode()).hexdigest()}\n")
    tokens.chmod(0o600)
    server = serve("--port", "0", "--tokens", str(tokens))
    (tmp_path / "token").write_text(secret + "\n")
    fails(ask(server, "info"), 1, "this needs the role read: ")
    fails(ask(server, "info"), 1, "give a token with --token-file FILE")
    fails(ask(server, "insert", "replay", "-", input=""), 1, "this needs the role write: ")
    assert "replay" in answer(server, "info", "--token", secret)
    assert "replay" in answer(server, "info", "--token-file", tmp_path / "token")
    done = subprocess.run([REPRISE, "info", "--server", f"localhost:{server.port}"], text=True,
                          capture_output=True, env=clean_environment(REPRISE_TOKEN=secret))
    assert done.returncode == 0, done.stderr


def test_an_empty_token_in_the_environment_is_no_token(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin me sha256:{hashlib.sha256(b'secret').hexdigest()}\n")
    tokens.chmod(0o600)
    server = serve("--port", "0", "--tokens", str(tokens))
    done = subprocess.run([REPRISE, "info", "--server", f"localhost:{server.port}"], text=True,
                          capture_output=True, env=clean_environment(REPRISE_TOKEN=""))
    fails(done, 1, "give a token with --token-file FILE")


def test_refused_tokens_are_followed_by_advice_that_helps(serve, tmp_path):
    """With a token that the server does not know, the advice is not to give one. After too many of
    them the server refuses the right one as well, and the advice is to wait."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin me sha256:{hashlib.sha256(b'secret').hexdigest()}\n")
    tokens.chmod(0o600)
    server = serve("--port", "0", "--tokens", str(tokens))
    for _ in range(10):
        fails(ask(server, "info", "--token", "wrong"), 1, "the token is not known; check")
    done = ask(server, "info", "--token", "wrong")
    fails(done, 1, "too many wrong tokens came from this address: try again in 6 seconds; check")
    assert "give a token" not in done.stderr


def test_a_unix_socket(serve, tmp_path):
    serve("--listen", f"unix:{tmp_path}/socket", *TABLES)
    done = reprise("info", "--server", f"unix:{tmp_path}/socket", "--json")
    assert [t["table"] for t in json.loads(done.stdout)] == ["replay", "queue"]


def test_info_lists_the_tables_of_each_shard(serve):
    servers = [serve("--port", "0", *TABLES) for _ in range(2)]
    addresses = [f"localhost:{s.port}" for s in servers]
    done = reprise("info", "--server", ",".join(addresses), "--json")
    assert sorted((t["shard"], t["table"]) for t in json.loads(done.stdout)) == sorted(
        (a, t) for a in addresses for t in ("replay", "queue"))
    assert reprise("tables", "list", "--server", ",".join(addresses)).stdout == "replay\nqueue\n"


def test_inserted_items_are_sampled(server):
    item = {"data": {"obs": [[1, 2], [3, 4.5]], "flag": True, "name": "text"}, "priority": 2}
    assert insert(server, "replay", item) == "inserted 1 item into replay\n"
    [line] = map(json.loads, answer(server, "sample", "replay", "--json").splitlines())
    assert line["priority"] == 2 and line["probability"] == 1 and line["times_sampled"] == 1
    # The table has no signature, so its columns have no names.
    assert line["data"] == {
        "0": {"dtype": "float64", "shape": [2, 2], "data": [[1, 2], [3, 4.5]]},
        "1": {"dtype": "bool", "shape": [], "data": True},
        "2": {"dtype": "string", "shape": [], "data": "text"},
    }


def test_sample_prints_items_as_text(server, golden):
    insert(server, "replay", {"data": [[0.5, -1.5], 3]})
    text = answer(server, "sample", "replay")
    golden("sample.txt", re.sub(r"key \d+", "key KEY", text))


def test_npy_files_round_trip(server, tmp_path):
    floats, integers = struct.pack("<12f", *range(12)), struct.pack("<3h", 7, 8, 9)
    save_npy(tmp_path / "obs.npy", "<f4", (3, 2, 2), floats)
    save_npy(tmp_path / "action.npy", "<i2", (3,), integers)
    answer(server, "tables", "create", "typed:fifo:100,max_times_sampled=1", "--column",
           "action=int16 []", "--column", "obs=float32 [2, 2]")
    # In the order of the signature, whatever that of the files is.
    assert answer(server, "insert", "typed", "obs.npy", "action.npy", cwd=tmp_path,
                  ) == "inserted 3 items into typed\n"
    out = answer(server, "sample", "typed", "--count", 3, "--npy", tmp_path / "out")
    assert out == f"wrote 3 items of 2 columns to {tmp_path}/out\n"
    assert load_npy(tmp_path / "out" / "obs.npy") == ("<f4", (3, 2, 2), floats)
    assert load_npy(tmp_path / "out" / "action.npy") == ("<i2", (3,), integers)
    assert load_npy(tmp_path / "out" / "_priority.npy")[2] == struct.pack("<3d", 1, 1, 1)
    files = sorted(str(p) for p in (tmp_path / "out").iterdir())
    assert len(files) == 5
    done = json.loads(answer(server, "insert", "typed", *files, "--json"))
    assert done == {"table": "typed", "inserted": 3, "keys": done["keys"]}
    sampled = answer(server, "sample", "typed", "--json", "--count", 3).splitlines()
    assert [json.loads(line)["key"] for line in sampled] == done["keys"]  # a queue


def test_priorities_of_a_file(server, tmp_path):
    save_npy(tmp_path / "x.npy", "<f4", (2,), struct.pack("<2f", 0, 1))
    save_npy(tmp_path / "_priority.npy", "<f4", (2,), struct.pack("<2f", 3, 3))
    answer(server, "insert", "replay", tmp_path / "x.npy", tmp_path / "_priority.npy")
    line = json.loads(answer(server, "sample", "replay", "--json"))
    assert line["priority"] == 3
    answer(server, "tables", "reset", "replay")
    answer(server, "insert", "replay", f"x={tmp_path}/x.npy", "--priority", "7")
    assert json.loads(answer(server, "sample", "replay", "--json"))["priority"] == 7


@pytest.mark.parametrize("line, message", [
    ('{"data": {"obs": [1, 2]', "standard input:1:24: expected ',' or '}'"),
    ('{"dato": {"obs": [1, 2]}}', "standard input:1:1: the key \"data\" is missing: expected"),
    ('{"data": [1]}\n{"data": [1, 2]}', "standard input:2:10: data: expected 1 column, got 2"),
    ('{"data": [1]}\n{"data": ["x"]}', "standard input:2:11: 0: expected int64, got a string"),
])
def test_lines_that_are_wrong(server, line, message):
    fails(ask(server, "insert", "replay", "-", input=line), 1, message)


def test_insert_checks_the_signature(server):
    answer(server, "tables", "create", "typed:uniform:10", "--column", "obs=float32 [2]")
    done = ask(server, "insert", "typed", "-", input='{"data": {"obs": [1, 2, 3]}}\n')
    fails(done, 1, "standard input:1:1: ")
    assert "obs" in done.stderr and "[3]" in done.stderr and "[2]" in done.stderr


def test_files_that_are_wrong(server, tmp_path):
    save_npy(tmp_path / "two.npy", "<f4", (2,), bytes(8))
    save_npy(tmp_path / "three.npy", "<f4", (3,), bytes(12))
    save_npy(tmp_path / "scalar.npy", "<f4", (), bytes(4))
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    (tmp_path / "empty.npy").write_bytes(b"")
    for files, status, message in [
            (["two.npy", "three.npy"], 1, "three.npy has 3 items, the files before it 2"),
            (["scalar.npy"], 1, "expected an array with a row for each item"),
            (["bad.npy"], 1, "bad.npy: not a .npy file"),
            (["empty.npy"], 1, "empty.npy: not a .npy file"),
            (["missing.npy"], 1, "missing.npy: No such file"),
            (["missing.jsonl"], 1, "missing.jsonl: No such file"),
            (["two.npy", "items.jsonl"], 2, "cannot be mixed"),
            (["all.npz"], 2, "all.npz: .npz files cannot be inserted; extract the .npy files"),
            (["a=two.npy", "a=two.npy"], 1, "a=two.npy: the column 'a' is given twice, first as two.npy")]:
        fails(ask(server, "insert", "replay", *files, cwd=tmp_path), status, message)


def test_items_of_different_shapes_do_not_stack(server, tmp_path):
    insert(server, "queue", {"data": [[1, 2]]}, {"data": [[1, 2, 3]]})
    done = ask(server, "sample", "queue", "--count", 2, "--npy", tmp_path / "out")
    assert done.returncode == 1 and "item 2 is int64 [3], the first int64 [2]; the 2 items drawn" in done.stderr, done
    assert [json.loads(line)["data"]["0"]["data"] for line in done.stdout.splitlines()] == [[1, 2], [1, 2, 3]]
    assert not (tmp_path / "out").exists()


def test_strings_that_do_not_fit_files_are_printed(server, tmp_path):
    insert(server, "queue", {"data": ["a"]})
    done = ask(server, "sample", "queue", "--npy", tmp_path / "out")
    assert done.returncode == 1 and ".npy files have no strings; the 1 item drawn" in done.stderr, done
    assert json.loads(done.stdout)["data"]["0"]["data"] == "a"


@pytest.mark.parametrize("folder, why", [("missing/x", "No such file or directory"), ("file", "Not a directory")])
def test_a_folder_that_cannot_be_written_costs_no_items(server, tmp_path, folder, why):
    (tmp_path / "file").write_text("")
    insert(server, "queue", {"data": [1]})
    fails(ask(server, "sample", "queue", "--npy", tmp_path / folder), 1, f"{folder}: {why}; no item was drawn")
    assert json.loads(answer(server, "sample", "queue", "--json"))["data"]["0"]["data"] == 1


def test_items_before_a_timeout_are_written(server, tmp_path):
    insert(server, "queue", {"data": [1]})
    done = ask(server, "sample", "queue", "--count", 2, "--npy", tmp_path / "out", "--timeout", "4")
    assert done.returncode == 1 and "after 1 of 2 items: " in done.stderr, done
    assert "wrote 1 item of 1 column" in done.stdout
    assert load_npy(tmp_path / "out" / "0.npy")[2] == struct.pack("<q", 1)
    fails(ask(server, "sample", "queue", "--npy", tmp_path / "none", "--timeout", "0.1"), 1, "waits longer")
    assert not (tmp_path / "none").exists()


def test_items_of_thousands_of_shapes(server):
    """More than a writer has columns."""
    shapes = [[0, n] for n in range(1, 4200)]
    items = [{"data": [{"dtype": "int8", "shape": shape, "data": []}, 1]} for shape in shapes]
    answer(server, "tables", "create", "many:fifo:5000,max_times_sampled=1")
    assert insert(server, "many", *items) == "inserted 4199 items into many\n"
    lines = answer(server, "sample", "many", "--count", 4199, "--json").splitlines()
    assert [json.loads(line)["data"]["0"]["shape"] for line in lines] == shapes


def test_a_sample_without_items_times_out(server):
    begin = time.monotonic()
    fails(ask(server, "sample", "queue", "--timeout", "0.3"), 1, "--timeout SECONDS waits longer")
    assert time.monotonic() - begin < 10


def test_waits_say_what_they_wait_for(server):
    """A limiter, a paused table, a full queue: after some two seconds, and at the end."""
    answer(server, "tables", "create", "slow:uniform:100,min_size=50")
    answer(server, "tables", "pause", "replay", "--samples")
    env = clean_environment(REPRISE_SERVER=f"localhost:{server.port}")
    calls = [(["sample", "slow"], "the table has 0 items, min_size is 50", "waits longer"),
             (["sample", "replay"], "samples are paused", "reprise tables resume replay"),
             (["insert", "queue", "-"], "is over max_diff 4", "waits longer")]
    started = [subprocess.Popen([REPRISE, *call, "--timeout", "5"], env=env, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for call, _, _ in calls]
    outputs = [p.communicate('{"data": [1]}\n' * 6, timeout=SECONDS) for p in started]
    for (call, reason, hint), process, (_, text) in zip(calls, started, outputs):
        first, last = text.splitlines()
        assert process.returncode == 1, text
        assert re.match(f"reprise {call[0]}: waiting for [2-5][.0-9]* s, gives up in ", first), text
        assert reason in first and reason in last and hint in last, text
    assert "reprise insert: 4 items are inserted: the deadline passed: " in outputs[2][1]


def test_a_server_that_does_not_respond_is_named(server):
    """Its connection is never greeted."""
    server.signal(signal.SIGSTOP)
    try:
        done = ask(server, "info", "--timeout", "5")
    finally:
        server.signal(signal.SIGCONT)
    first, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match("reprise info: waiting for [2-5][.0-9]* s, gives up in ", first), first
    assert all(f"localhost:{server.port}" in line for line in (first, last)), done.stderr


def test_a_timeout_prints_the_samples_received_so_far(server):
    insert(server, "queue", {"data": [1]}, {"data": [2]})
    done = ask(server, "sample", "queue", "--count", 3, "--timeout", "4", "--json")
    assert done.returncode == 1 and done.stdout.count("\n") == 2
    assert "after 2 of 3 items" in done.stderr


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("arguments", [["sample", "queue", "--timeout", "0"],
                                       ["insert", "queue", "-"]])
def test_a_signal_ends_a_wait(server, number, status, arguments):
    env = clean_environment(REPRISE_SERVER=f"localhost:{server.port}")
    process = subprocess.Popen([REPRISE, *arguments], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if arguments[0] == "sample":  # until it waits
        deadline = time.monotonic() + SECONDS
        while not json.loads(answer(server, "info", "queue", "--json"))[0]["waiting_samples"]:
            assert time.monotonic() < deadline
    else:  # one item goes in, and more are awaited: signals are heeded from before that
        process.stdin.write('{"data": [1]}\n')
        process.stdin.flush()
    process.send_signal(number) if arguments[0] == "sample" else signal_when_ready(process, number)
    process.wait(timeout=SECONDS)  # with its input still open: that must not end it first
    _, complaint = process.communicate(timeout=SECONDS)
    assert (process.returncode, without_notices(complaint)) == (status, "")


def signal_when_ready(process, number):
    """Signals once the process has blocked the signal, which it does before it connects."""
    deadline = time.monotonic() + SECONDS
    while True:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            blocked = int(re.search(r"SigBlk:\s*(\w+)", status.read()).group(1), 16)
        if blocked >> (number - 1) & 1:
            break
        assert time.monotonic() < deadline
    process.send_signal(number)


def test_standard_output_that_is_full(server):
    insert(server, "replay", {"data": [1]})
    env = clean_environment(REPRISE_SERVER=f"localhost:{server.port}")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([REPRISE, "info"], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=env)
    assert done.returncode == 1 and "standard output" in done.stderr


def table(server, name):
    [found] = json.loads(answer(server, "info", name, "--json"))
    return found


def test_create_makes_no_table_if_one_exists(server):
    got = ask(server, "tables", "create", "made:fifo:5", "replay:fifo:10")
    assert (got.returncode, got.stdout) == (1, "")
    assert got.stderr == ("reprise tables: nothing is created: there is a table 'replay' already; "
                          "reprise tables alter changes it, reprise tables drop removes it\n")
    assert "made" not in answer(server, "tables", "list")
    got = ask(server, "tables", "create", "made:fifo:5", "made:lifo:5")
    assert (got.returncode, got.stderr) == (2, "reprise tables: create: 'made' is given twice\n")
    assert "made" not in answer(server, "tables", "list")


def test_tables_are_created_altered_and_dropped(server):
    assert answer(server, "tables", "create", "t:uniform:10,samples_per_insert=4,error_buffer=20",
                  "u:fifo:5") == "created t\ncreated u\n"
    assert answer(server, "tables", "list") == "replay\nqueue\nt\nu\n"
    assert table(server, "t")["limiter"]["min_diff"] == -16
    assert answer(server, "tables", "alter", "t", "--max-size", 7) == (
        "altered t\n  max_size 10 -> 7\n")
    assert table(server, "t")["max_size"] == 7
    answer(server, "tables", "alter", "t", "--min-size", 3, "--max-times-sampled", 2,
           "--max-bytes", "1MiB")
    now = table(server, "t")
    assert now["limiter"]["min_size"] == 3 and now["limiter"]["samples_per_insert"] == 4
    assert now["max_times_sampled"] == 2 and now["max_bytes"] == 1 << 20
    assert answer(server, "tables", "pause", "t", "--inserts") == "paused t\n"
    assert table(server, "t")["paused_inserts"] and not table(server, "t")["paused_samples"]
    assert answer(server, "tables", "pause", "t", "--inserts") == "paused t already\n"
    assert answer(server, "tables", "resume", "t", "--json") == '{"table":"t","done":"resumed","unreachable":[]}\n'
    assert answer(server, "tables", "resume", "t").startswith("resumed t, which was not paused\n")
    assert not table(server, "t")["paused_inserts"]
    insert(server, "t", {"data": [1]})
    assert answer(server, "tables", "reset", "t") == "reset t\n"
    assert table(server, "t")["items"] == 0
    assert answer(server, "tables", "drop", "t", "u") == "dropped t\ndropped u\n"
    assert json.loads(answer(server, "tables", "list", "--json")) == ["replay", "queue"]


@pytest.mark.parametrize("arguments, status, message", [
    (["create", "replay:fifo:10"], 1, "replay"),
    (["create", "x:fiffo:10"], 2, "fiffo"),
    (["create"], 2, "create: needs NAME:SAMPLER:MAX_SIZE"),
    (["create", "x:fifo:1", "--column", "obs"], 2, "--column obs: expected NAME=SPEC"),
    (["create", "x:fifo:1", "--column", "obs=flaot32"], 2, "--column obs=flaot32"),
    (["create", "x:fifo:1", "--max-size", "3"], 2, "--max-size has no effect on create"),
    (["drop", "nothing"], 1, "no table 'nothing'; the server has 'replay', 'queue'"),
    (["drop"], 2, "drop: needs a table"),
    (["drop", "replay", "queue", "replay"], 2, "drop: 'replay' is given twice"),
    (["alter", "replay"], 2, "nothing to change"),
    (["alter", "replay", "--max-size", "0"], 2, "--max-size: expected a whole number"),
    (["alter", "nothing", "--max-size", "1"], 1, "no table 'nothing'"),
    (["list", "x"], 2, "'x' is not expected here"),
    (["reset", "replai"], 1, "no table 'replai', did you mean 'replay'?"),
    (["pause", "nothing"], 1, "nothing"),
])
def test_invalid_table_commands_fail(server, arguments, status, message):
    fails(ask(server, "tables", *arguments), status, message)


def test_alter_warns_if_it_has_no_effect(server):
    """The texts are in tests/unit/cli/test_alter_report.c."""
    done = ask(server, "tables", "alter", "replay", "--samples-per-insert", 4)
    assert done.returncode == 0 and done.stdout.startswith("altered replay\n")
    [warning] = done.stderr.splitlines()
    assert warning.startswith("reprise tables: warning: --samples-per-insert has no effect")
    command = warning[warning.index("reprise tables alter"):].split()[1:]
    assert "min_diff no bound -> -4" in answer(server, *command)
    line = json.loads(answer(server, "tables", "alter", "queue", "--max-size", 4, "--json"))
    assert line["changes"] == [] and line["warnings"] == [
        "nothing has changed: max_size was 4 already"]


def wait_for_call(server, name, waiting, side):
    """Returns when a command that was started waits in the table."""
    deadline = time.monotonic() + SECONDS
    while not table(server, name)[f"waiting_{side}"]:
        assert time.monotonic() < deadline and waiting.poll() is None


def test_a_queue_that_stays_full_has_the_command_that_releases_its_inserts(server):
    answer(server, "tables", "create", "full:queue:2")
    waiting = subprocess.Popen([REPRISE, "insert", "full", "-", "--timeout", str(SECONDS)], text=True,
                               env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    waiting.stdin.write(3 * '{"data": [1]}\n')
    waiting.stdin.close()
    waiting.stdin = None  # for communicate()
    wait_for_call(server, "full", waiting, "inserts")
    done = ask(server, "tables", "alter", "full", "--max-size", 50)
    [command] = re.findall(r"max_diff 2; reprise (tables alter .*) would let them fill the table", done.stderr)
    assert table(server, "full")["waiting_inserts"] == 1
    answer(server, *command.split())
    _, complaint = waiting.communicate(timeout=SECONDS)
    assert (waiting.returncode, without_notices(complaint)) == (0, "")


@pytest.mark.parametrize("side, inserts, samples, ratio", [("samples", 3, 12, 1), ("inserts", 4, 0, 10)])
def test_the_command_that_alter_offers_lets_a_waiting_call_proceed(server, side, inserts, samples, ratio):
    """Executed literally, as it is printed."""
    item = '{"data": [1]}\n'
    answer(server, "tables", "create", "m:uniform:1000,samples_per_insert=4,min_size=2,error_buffer=8")
    answer(server, "insert", "m", "-", input=inserts * item)
    if samples:
        answer(server, "sample", "m", "--count", samples)
    call = [REPRISE, *(["sample", "m"] if samples else ["insert", "m", "-"]), "--timeout", str(SECONDS)]
    waiting = subprocess.Popen(call, env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waiting.stdin.write(item)
    waiting.stdin.close()
    waiting.stdin = None  # for communicate()
    wait_for_call(server, "m", waiting, side)
    done = ask(server, "tables", "alter", "m", "--samples-per-insert", ratio)
    [command] = re.findall("reprise (tables alter .*) would let them proceed", done.stderr)
    assert command.endswith(" --recenter") and table(server, "m")[f"waiting_{side}"] == 1
    answer(server, *command.split())
    _, complaint = waiting.communicate(timeout=SECONDS)
    assert (waiting.returncode, without_notices(complaint)) == (0, "")


def test_a_checkpoint_needs_a_checkpointer(server):
    fails(ask(server, "checkpoint"), 1, "checkpoint")
