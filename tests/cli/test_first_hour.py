# SPDX-License-Identifier: Apache-2.0
"""What a new user types, and what the command says to it (issue 26)."""

import json
import re
import subprocess
import time

import pytest
from conftest import REPRISE, SECONDS, answer, ask, ask_why, clean_environment, fields_of, reprise


@pytest.mark.parametrize("words, hint", [
    (["resume", "t"], "did you mean 'tables resume'?"),
    (["drop", "t"], "did you mean 'tables drop'?"),
    (["salvage", "a", "b"], "did you mean 'data salvage'?"),
    (["tables", "delete", "t"], "did you mean 'drop'?"),
    (["--server", "x", "info"], "options come after it, as in reprise info --server")])
def test_26_words_that_are_not_commands(words, hint):
    done = reprise(*words)
    assert done.returncode == 2 and hint in done.stderr, done


def test_26_why_lists_what_waits(serve, stop):
    server = serve("--port", "0", "--table", "t:fifo:10", "--table", "u:fifo:10")
    assert answer(server, "why") == "no call waits\n"
    assert answer(server, "why", "t") == "no call waits on t\n"
    assert "no table 'tt', did you mean 't'?" in ask(server, "why", "tt").stderr
    reader = subprocess.Popen([REPRISE, "sample", "t"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env=clean_environment(REPRISE_SERVER=f"localhost:{server.port}"))
    deadline = time.monotonic() + SECONDS
    while "no call waits" in (text := answer(server, "why")) and time.monotonic() < deadline:
        pass
    assert text.startswith("t  1 sample  sample waits for inserts: "), text
    assert "1 call   for " in text.splitlines()[1]
    found = json.loads(answer(server, "why", "t", "--json"))
    assert found["waiting_total"] == 1 and "waits for inserts" in found["waiting"][0]["why"]
    assert answer(server, "why", "u") == "no call waits on u\n"
    reader.terminate()
    reader.wait()


def issue(folder, extra):
    """A certificate that signs itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    *extra, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
                   check=True, capture_output=True, timeout=SECONDS)


def test_26_errors_of_tls_say_what_helps(serve, tmp_path):
    issue(tmp_path, ["-addext", "subjectAltName=DNS:localhost"])
    plain = serve("--port", "0")
    tls = serve("--listen", "127.0.0.1:0", "--tls-cert", tmp_path / "cert.pem", "--tls-key",
                tmp_path / "key.pem")
    trust = ["--ca", str(tmp_path / "cert.pem")]
    (other := tmp_path / "other").mkdir()
    issue(other, [])
    path = str(other / "cert.pem")
    shown = path if len(path) < 80 else "..." + path[-76:]  # the end of a long one
    for server, words, hint in [
            (f"localhost:{plain.port}", ["--tls"], "leave out --tls, --ca and --cert"),
            (f"localhost:{tls.port}", ["--tls"], "--ca FILE trusts the certificate in FILE"),
            (f"localhost:{tls.port}", [], "--ca FILE trusts"),
            (f"localhost:{tls.port}", ["--ca", str(other / "cert.pem")],
             f"is not signed by what '{shown}' holds: self-signed certificate; --ca FILE has to be the file of"),
            (f"127.0.0.1:{tls.port}", trust, "--server has to be a name or address for which")]:
        done = reprise("info", "--server", server, *words)
        assert done.returncode == 1 and hint in done.stderr, done
        assert "reprise serve starts" not in done.stderr
    assert reprise("info", "--server", f"localhost:{tls.port}", *trust).returncode == 0
    assert "reprise serve starts a server" in reprise("info", "--server", "localhost:1").stderr


@pytest.mark.parametrize("table, lines, errors", [
    ("t", ['{"data":{"obs":[1,2]}}', "", '{"data":{"obs":[1,2]},"priority":-1}', '{"data":{"obs":[1,3]}}'],
     ["standard input:3: 2 items are inserted: 1 item was refused: table 't': key ", "got -1"]),
    ("t", ['{"data":{"obs":[1,2]}}', '{"data":{"obs":[1,2]}}', '{"data":{"obs":[1,3.5]}}'],
     ["standard input:3:16: obs: expected int64, got a number 3.5 at byte 19; the types are those of line "
      "1; the 2 items before it are inserted"]),
    ("s", ['{"data":{"obs":[1,2],"act":1}}', '{"data":{"obs":[1,2],"action":3}}'],
     ["data: column 'act' is missing, 'action' is not a column; the 1 item before it is inserted"]),
    ("s", ['{"data":{"obs":[1,2]}}'], ["data: expected 2 columns, got 1; column 'act' is missing\n"]),
    ("s", ['{"data":{"obs":[1,2],"act":1,"x":1}}'], ["expected 2 columns, got 3; 'x' is not a column\n"]),
    ("s", ['{"obs":[1,2]}'], ['the key "data" is missing: expected {"data": {"obs": [1, 2]}}'])])
def test_26_errors_of_insert_name_the_item(serve, table, lines, errors):
    server = serve("--port", "0", "--table", "t:prioritized:100")
    answer(server, "tables", "create", "s:fifo:100", "--column", "obs=float32 [2]", "--column", "act=int32")
    done = ask(server, "insert", table, "-", input="\n".join(lines))
    assert done.returncode == 1 and all(e in done.stderr for e in errors), done.stderr


def test_26_names_are_kept_by_a_signature_only(serve):
    server = serve("--port", "0", "--table", "t:fifo:100")
    answer(server, "tables", "create", "s:fifo:100", "--column", "obs=int64")
    item = '{"data":{"obs":1}}'
    assert "note: table 't' has no signature" in ask(server, "insert", "t", "-", input=item).stderr
    for table, line, more in (("s", item, []), ("t", '{"data":[1]}', []), ("t", item, ["--json"])):
        assert ask(server, "insert", table, "-", *more, input=line).stderr == ""


@pytest.fixture
def journalled(serve, tmp_path):
    """A directory with two items that are in the journal only."""
    server = serve("--port", "0", "--data", tmp_path / "data", "--durability", "sync", "--table", "t:fifo:9")
    ask(server, "insert", "t", "-", input='{"data":[1]}\n{"data":[2]}')
    server.kill()
    return tmp_path / "data"


def test_26_data_that_is_in_the_journal_only(serve, journalled, tmp_path):
    listed = reprise("data", "list", journalled).stdout
    assert "changes in the journal may need it" in listed and "unused" not in listed, listed
    dumped = reprise("data", "dump", journalled)
    assert re.fullmatch(r"reprise data: [12] records? of the journal (is|are) not in checkpoint 1, which this is; "
                        r"reprise data salvage DIR NEW applies (it|them)\n", dumped.stderr), dumped.stderr
    done = reprise("data", "salvage", journalled, tmp_path / "new", "--quiet")
    assert done.stdout.startswith(f"{tmp_path}/new: 2 items in 1 table, "), done
    assert reprise("data", "dump", tmp_path / "new").stderr == ""
    server = serve("--port", "0", "--data", journalled, "--table", "t:fifo:9", "--log-level", "debug")
    loaded = [fields_of(line) for line in server.lines if "event=loaded" in line]
    assert [f["items"] for f in loaded] == ["2"]
    fields = fields_of(reprise("serve", "--port", "0", "--data", journalled).stderr.splitlines()[-1])
    assert fields["event"] == "start_failed" and "stop that process" in fields["try"]


def test_26_salvage_moves_nothing(journalled, tmp_path):
    manifest = next((journalled / "manifest").iterdir())
    manifest.write_bytes(manifest.read_bytes()[:100] + b"\xff" + manifest.read_bytes()[101:])
    done = reprise("data", "salvage", journalled, tmp_path / "new", "--quiet")
    assert "manifest" in done.stderr and "moved" not in done.stderr, done


@pytest.mark.parametrize("arguments, hint", [
    (["data", "list", "nope"], "give the directory of reprise serve --data"),
    (["data", "dump", "data", "--table", "nope"], "; reprise data salvage DIR NEW applies"),
    (["serve", "--port", "0", "--data", "a/b/c"], "mkdir -p"),
    (["serve", "--port", "0", "--data", "data", "--table", "t:lifo:9"], "--accept-changes")])
def test_26_errors_about_directories_say_what_helps(journalled, tmp_path, arguments, hint):
    done = reprise(*arguments, cwd=tmp_path)
    assert done.returncode == 1 and hint in done.stderr.splitlines()[-1], done


def test_26_a_paused_table_and_sizes(serve):
    server = serve("--port", "0", "--table", "t:fifo:9")
    ask(server, "insert", "t", "-", input='{"data":[1]}')
    ask(server, "tables", "pause", "t")
    assert "[" + "paused".center(38) + "]" in answer(server, "top", "--count", "1")
    done = ask_why(server, "resume t", "sample", "t")
    assert "reprise tables resume t lets them continue" in done.stderr
    done = ask(server, "insert", "t", "-", "--timeout", "0.3", input='{"data":[1]}')
    assert "1 item is unconfirmed: " in done.stderr and "of them" not in done.stderr, done
    done = reprise("serve", "--max-memory", "4Gb", "--data", "x")
    assert done.stderr.endswith("got '4Gb'; units are KiB, MiB, GiB, TiB, or kB, MB, GB, TB\n"), done
    assert reprise("tables", "--quux").stderr.startswith("reprise tables: unknown option --quux")


def test_26_npy_files_of_items_with_different_columns(serve, tmp_path):
    server = serve("--port", "0", "--table", "t:fifo:9,max_times_sampled=1")
    for data in ("[1]", "[1, 2]"):
        ask(server, "insert", "t", "-", input=f'{{"data":{data}}}')
    done = ask(server, "sample", "t", "--count", "2", "--npy", "out", cwd=tmp_path)
    assert "item 2 has 2 columns, the first 1; the 2 items drawn" in done.stderr, done
