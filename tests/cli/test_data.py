# SPDX-License-Identifier: Apache-2.0
"""`reprise data`: directories without a server."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest
from conftest import IS_SHORT, REPRISE, ROOT, answer, ask, clean_environment, reprise

REVERB = ROOT / "tests" / "data" / "reverb"


def good(*arguments):
    """What a command prints that has nothing to complain about."""
    done = reprise("data", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def snapshot(folder):
    """Every file with its contents and times: to see that nothing was touched."""
    return {str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes())
            for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A data directory with 71 items in 12 tables."""
    folder = tmp_path_factory.mktemp("original") / "data"
    good("convert", "--from", "reverb", REVERB / "zlib", folder)
    return folder


@pytest.fixture
def data(original, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(original, tmp_path / "data")


def only(folder, pattern):
    [path] = [p for p in folder.glob(pattern) if p.stat().st_size > 1000]
    return path


def flip(path, at):
    """Flips a bit of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


def test_list_shows_every_file(data):
    text = good("list", data)
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["FILE", "KIND", "SIZE", "AGE", "STATE"]
    assert re.search(r"^CURRENT +current .* fine +checkpoint 1$", text, re.M)
    assert re.search(r"^manifest/0{15}1 +checkpoint .* fine +71 items in 12 tables, current$",
                     text, re.M)
    assert re.search(r"^seg/0{15}1 +segment .* \d+ % live$", text, re.M)
    assert text.splitlines()[-1].endswith("checkpoint 1: 71 items in 12 tables")


def test_list_as_json(data):
    told = json.loads(good("list", data, "--json"))
    assert told["checkpoint"] == 1 and told["items"] == 71 and told["tables"] == 12
    assert told["damaged"] == 0 and told["file_count"] == len(told["files"])
    files = {f["path"]: f for f in told["files"]}
    for path, file in files.items():
        assert file["bytes"] == (data / path).stat().st_size
    assert files["manifest/0000000000000001"]["current"] is True


def test_verify_finds_nothing_wrong_and_touches_nothing(data):
    before = snapshot(data)
    assert re.match(r"\d+ files, .* all fine; checkpoint 1: 71 items in 12 tables\n$",
                    good("verify", data))
    assert snapshot(data) == before


def test_verify_names_the_damaged_file(data):
    segment = only(data, "seg/*")
    flip(segment, segment.stat().st_size // 2)
    done = reprise("data", "verify", data)
    assert done.returncode == 1
    assert f"seg/{segment.name}" in done.stdout and "damaged" in done.stdout
    assert "reprise data salvage" in done.stdout
    told = reprise("data", "verify", data, "--json")
    assert told.returncode == 1
    problems = {f["path"]: f.get("problem") for f in json.loads(told.stdout)["files"]}
    assert re.search(r"offset|record", problems[f"seg/{segment.name}"])


@pytest.mark.parametrize("part", ["CURRENT", "manifest/0000000000000001"])
def test_verify_reads_the_whole_file(data, part):
    """Flips a bit at some places of a file. durability_damage flips each byte, in the library."""
    places = 15 if IS_SHORT else 60
    path = data / part
    content = path.read_bytes()
    for at in sorted({len(content) * i // places for i in range(places)} | {len(content) - 1}):
        flip(path, at)
        done = reprise("data", "verify", data)
        assert done.returncode == 1 and part in done.stdout, at
        path.write_bytes(content)


@pytest.mark.parametrize("is_newest", [False, True])
def test_verify_advises_no_salvage_if_a_server_starts_without_it(is_newest, serve, stop, tmp_path):
    arguments = ["--port", "0", "--data", tmp_path / "data", "--durability", "sync", "--table", "t:fifo:1000"]
    server = serve(*arguments)
    assert ask(server, "insert", "t", "-", input='{"data": [1]}').returncode == 0
    stop(server)  # which writes a checkpoint at its end
    newest = max((tmp_path / "data" / "manifest").glob("*"))
    damaged = newest if is_newest else tmp_path / "data" / "CURRENT"
    flip(damaged, 40)

    done = reprise("data", "verify", tmp_path / "data")

    assert done.returncode == 1 and damaged.name in done.stdout, done
    assert re.search(r"^reprise serve --data DIR loads checkpoint \d+ and the journal since then; --salvage is needed "
                     r"only if it refuses", done.stdout, re.M), done.stdout
    stop(serve(*arguments))


def test_verify_says_that_changes_are_lost_without_a_journal(serve, stop, tmp_path):
    arguments = ["--port", "0", "--data", tmp_path / "data", "--table", "t:fifo:1000"]
    for _ in range(2):  # each end writes a checkpoint
        server = serve(*arguments)
        assert ask(server, "insert", "t", "-", input='{"data": [1]}').returncode == 0
        stop(server)
    flip(max((tmp_path / "data" / "manifest").glob("*")), 40)

    done = reprise("data", "verify", tmp_path / "data")

    assert done.returncode == 1, done
    assert re.search(r"^reprise serve --data DIR loads checkpoint \d+, without the changes after it; reprise data "
                     r"salvage DIR NEW first", done.stdout, re.M), done.stdout


def test_a_missing_segment_is_damage(data):
    only(data, "seg/*").unlink()
    done = reprise("data", "verify", data)
    assert done.returncode == 1
    assert "manifest/0000000000000001" in done.stdout


def test_left_overs_are_listed(data):
    (data / "manifest" / "0000000000000002.tmp").write_bytes(b"half")
    (data / "note.txt").write_text("mine")
    text = good("list", data)
    assert re.search(r"^manifest/0{15}2\.tmp +other .* unused", text, re.M)
    assert re.search(r"^note\.txt +other .* unused", text, re.M)


@pytest.mark.parametrize("action", ["list", "verify", "dump"])
def test_a_directory_that_is_not_there_is_not_made(action, tmp_path):
    done = reprise("data", action, tmp_path / "nowhere")
    assert done.returncode == 1
    assert "there is no such directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_called_a_directory_that_is_missing(data):
    done = reprise("data", "verify", data / "CURRENT")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.endswith("CURRENT: this is not a directory; give the directory of reprise serve --data\n")


@pytest.mark.parametrize("action", ["list", "verify", "dump"])
def test_a_directory_without_data_says_so(action, tmp_path):
    done = reprise("data", action, tmp_path)
    assert done.returncode == 1
    assert re.search("no data of reprise|no checkpoint", done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["list", "verify", "dump"])
def test_a_directory_in_use_is_read_with_a_warning(action, data):
    with open(data / "LOCK", "w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        done = reprise("data", action, data)
    assert done.returncode == 0
    assert f"process {os.getpid()} is using this directory" in done.stderr


def test_dump_shows_tables_and_items(data):
    text = good("dump", data, "--table", "small")
    lines = text.splitlines()
    assert lines[0].startswith("small: 4 of 4 items, sampler fifo, remover fifo, 9 inserts")
    assert len(lines) == 5
    assert all("int32 [1], float64 [1, 2]" in line for line in lines[1:])


def test_dump_has_the_data_of_dm_reverb(data):
    expected = json.loads((REVERB / "expected.json").read_text())["tables"]
    lines = [json.loads(line) for line in good("dump", data, "--json").splitlines()]
    tables = {line["table"]: line for line in lines if "sampler" in line}
    items = [line for line in lines if "key" in line]
    assert tables.keys() == expected.keys()
    for name, table in expected.items():
        for member in ("max_size", "max_times_sampled", "inserts", "samples", "deletes",
                       "unique_samples", "deleted_episodes"):
            assert tables[name][member] == table[member], (name, member)
        got = {i["key"]: i for i in items if i["table"] == name}
        assert len(got) == tables[name]["size"] == len(table["items"])
        for item in table["items"]:
            mine = got[item["key"]]
            assert len(mine["columns"]) == item["columns"]
            for member in ("priority", "times_sampled", "inserted_at_ns"):
                assert mine[member] == item[member]


def test_dump_can_be_kept_short(data):
    assert len(good("dump", data, "--items", "0").splitlines()) == 12
    assert len(good("dump", data, "--items", "1").splitlines()) == 12 + 11  # one is empty
    assert good("dump", data, "--checkpoint", "1", "--items", "0") == good("dump", data, "--items",
                                                                          "0")


@pytest.mark.parametrize("arguments, message", [
    (["--table", "nope"], "has no table 'nope'"),
    (["--checkpoint", "9"], "there is no checkpoint 9, but 1"),
])
def test_dump_of_an_unknown_table_or_item_fails(data, arguments, message):
    done = reprise("data", "dump", data, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and re.search("reprise data (list|dump) DIR", done.stderr)


def test_dump_of_a_table_that_only_the_journal_has_says_where_it_may_be(serve, tmp_path):
    server = serve("--data", tmp_path / "data", "--durability", "interval", "--table", "t:fifo:100",
                   "--table", "u:fifo:9", "--port", "0")
    answer(server, "tables", "create", "bulk:fifo:10")
    server.process.kill()
    server.process.wait()
    done = reprise("data", "dump", tmp_path / "data", "--table", "bulk")
    assert (done.returncode, done.stdout) == (1, ""), done
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"reprise data: checkpoint \d+ has no table 'bulk'; it has 't', 'u'", first)
    assert re.fullmatch(r"reprise data: \d+ records? of the journal (is|are) not in checkpoint \d+, which this "
                        r"is; reprise data salvage DIR NEW applies (it|them)", second)


def test_dump_of_damaged_data_names_the_file(data):
    segment = only(data, "seg/*")
    flip(segment, segment.stat().st_size // 3)
    done = reprise("data", "dump", data)
    assert done.returncode == 1
    assert re.search(r"seg/[0-9a-f]{16}: offset \d+: .*; reprise data verify", done.stderr)


def test_convert_round_trip(data, tmp_path):
    before = snapshot(data)
    said = good("convert", "--to", "reverb", data, tmp_path / "root")
    assert re.match(rf"{tmp_path}/root/\d{{4}}-\d\d-\d\dT[0-9:.]+\+00:00: 71 items in 12 tables, ",
                    said)
    assert snapshot(data) == before
    [folder] = (tmp_path / "root").iterdir()
    assert {p.name for p in folder.iterdir()} == {"DONE", "tables.tfrecord", "items.tfrecord",
                                                 "chunks.tfrecord"}
    told = json.loads(good("convert", "--from", "reverb", tmp_path / "root", tmp_path / "again",
                           "--json"))
    assert (told["items"], told["tables"]) == (71, 12)

    def lines(folder):
        return sorted(good("dump", folder, "--json").splitlines())
    assert lines(tmp_path / "again") == lines(data)


@pytest.mark.parametrize("name, tables", [("plain", 12), ("old", 4)])
def test_old_formats_are_converted(name, tables, tmp_path):
    before = snapshot(REVERB / name)
    told = json.loads(good("convert", "--from", "reverb", REVERB / name, tmp_path / "data",
                           "--json"))
    assert told["tables"] == tables
    good("verify", tmp_path / "data")
    assert snapshot(REVERB / name) == before


def test_a_damaged_checkpoint_of_dm_reverb_is_refused(tmp_path):
    shutil.copytree(REVERB / "plain", tmp_path / "bad")
    flip(tmp_path / "bad" / "items.tfrecord", 500)
    done = reprise("data", "convert", "--from", "reverb", tmp_path / "bad", tmp_path / "data")
    assert done.returncode == 1
    assert re.search(r"items\.tfrecord: record \d+: the checksum", done.stderr)
    assert not (tmp_path / "data").exists()


def test_existing_directories_are_not_overwritten(data, tmp_path):
    before = snapshot(data)
    for arguments in (["convert", "--from", "reverb", REVERB / "zlib", data],
                      ["salvage", data, data]):
        done = reprise("data", *arguments)
        assert done.returncode == 1
        assert "the directory is not empty" in done.stderr
        assert "name a directory that is not there yet" in done.stderr
    assert snapshot(data) == before


def test_salvage_of_undamaged_data_is_a_copy(data, tmp_path):
    before = snapshot(data)
    assert ": 71 items in 12 tables, " in good("salvage", data, tmp_path / "new")
    assert snapshot(data) == before
    assert good("dump", tmp_path / "new") == good("dump", data)
    good("verify", tmp_path / "new")


def test_salvage_keeps_readable_items(data, tmp_path):
    segment = only(data, "seg/*")
    flip(segment, 2000)
    before = snapshot(data)
    done = reprise("data", "salvage", data, tmp_path / "new", "--json")
    assert done.returncode == 0, done
    assert done.stderr != ""
    kept = json.loads(done.stdout)["items"]
    assert 0 < kept < 71
    assert snapshot(data) == before
    good("verify", tmp_path / "new")


def test_acknowledged_items_of_a_killed_server_are_converted(serve, tmp_path):
    """Its journal has what no checkpoint has; while it lives, looking at it works, with a warning."""
    server = serve("--data", tmp_path / "data", "--durability", "interval", "--table", "t:fifo:100",
                   "--port", "0")
    lines = "".join(f'{{"data": {{"x": {{"dtype": "int32", "data": [{i}, 7]}}}}}}\n'
                    for i in range(30))
    answer(server, "insert", "t", "-", input=lines)
    done = reprise("data", "verify", tmp_path / "data")
    assert done.returncode == 0, done
    assert f"process {server.process.pid} is using this directory" in done.stderr
    server.process.kill()
    server.process.wait()

    assert re.search(r", and \d+ records? in the journal\n", good("verify", tmp_path / "data"))
    told = json.loads(good("salvage", tmp_path / "data", tmp_path / "new", "--json"))
    assert (told["items"], told["tables"]) == (30, 1) and told["records"] >= 1
    items = good("dump", tmp_path / "new").splitlines()[1:]
    assert len(items) == 30 and all("int32 [2]" in i or "int32 [1, 2]" in i for i in items)
    told = json.loads(good("convert", "--to", "reverb", tmp_path / "data", tmp_path / "root",
                           "--json"))
    assert told["items"] == 30


def test_mistakes_of_convert_name_the_path_what_is_there_and_the_next_step(data, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    reverb = REVERB / "zlib"
    serve, reverb_first = "give the directory of reprise serve --data", "give a checkpoint of dm-reverb, or the folder"
    for way, source, target, text in [
            ("--from", "none", "new", f"none: there is no such directory; {reverb_first}"),
            ("--from", "file", "new", f"file: this is not a directory; {reverb_first}"),
            ("--from", "empty", "new", f"empty: there is no checkpoint of dm-reverb: .*; {reverb_first}"),
            ("--from", data, "new", f"{data}: there is no checkpoint of dm-reverb: .*; it has data of reprise, which --to"),
            ("--from", reverb, "file", "file: this is not a directory; name a directory that is not there yet"),
            ("--from", reverb, "none/x", "none/x: there is no directory 'none/' to make it in; make that directory first"),
            ("--to", "none", "new", f"none: there is no such directory; {serve}"),
            ("--to", "file", "new", f"file: this is not a directory; {serve}"),
            ("--to", "empty", "new", f"empty: there is no data of reprise in it; {serve}"),
            ("--to", reverb, "new", "there is no data of reprise in it; .*; --from reverb converts a checkpoint"),
            ("--to", data, "file", "file: this is not a directory; name a directory"),
            ("--to", data, "none/x", "none/x: there is no directory 'none/' to make it in; make that directory first"),
            ("--to", data, data, f"{data}: this directory has data of reprise; name a directory")]:
        done = reprise("data", "convert", way, "reverb", source, target, cwd=tmp_path)
        assert done.returncode == 1 and re.search(text, done.stderr), (way, source, target, done)
        assert not (tmp_path / "new").exists(), (way, source)


def test_dump_of_an_empty_directory_names_it(tmp_path):
    (tmp_path / "empty").mkdir()
    done = reprise("data", "dump", "empty", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("reprise data: empty: there is no checkpoint in this directory; give the directory of "
                           "reprise serve --data\n")


@pytest.mark.parametrize("arguments, message", [
    (["frob", "x"], "unknown action 'frob'; there are list verify dump salvage convert"),
    (["verfy", "x"], "unknown action 'verfy', did you mean 'verify'? (list verify dump salvage convert)"),
    (["list"], "DIR is missing; usage: reprise data ACTION [OPTION...] DIR [PATH]; --help explains it"),
])
def test_misuse_of_the_command(arguments, message):
    done = reprise("data", *arguments)
    assert done.returncode == 2
    assert done.stdout == "" and message.split(";")[0] in done.stderr


@pytest.mark.parametrize("arguments, message", [
    (["list", "a", "b"], "list: takes DIR, got 2 arguments"),
    (["salvage", "a"], "salvage: takes DIR and NEW, a directory that is not there yet, got 1 argument"),
    (["convert", "a", "b"], "convert: give either --from reverb or --to reverb"),
    (["convert", "a", "b", "--from", "reverb", "--to", "reverb"],
     "convert: give either --from reverb or --to reverb"),
    (["convert", "a", "b", "--from", "tar"], "--from: expected reverb, got 'tar'"),
    (["list", "a", "--items", "3"], "list takes no --items"),
    (["dump", "a", "--items", "few"], "--items: expected a number, got 'few'"),
    (["dump", "a", "--checkpoint", "-1"], "--checkpoint: expected a number, got '-1'"),
])
def test_misuse_of_an_action(arguments, message, tmp_path):
    done = reprise("data", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"reprise data: {message}\n")
    assert list(tmp_path.iterdir()) == []


def read_all(terminal):
    """What was written to the other end, which is closed: it may come in parts."""
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # there is no more
            return shown.decode()


def test_a_terminal_shows_a_progress_bar(data):
    """Drawn over itself, and wiped away in the end."""
    primary, secondary = pty.openpty()
    done = subprocess.run([REPRISE, "data", "verify", data], stdout=subprocess.PIPE,
                          stderr=secondary, text=True, timeout=120, env=clean_environment())
    os.close(secondary)
    shown = read_all(primary)
    os.close(primary)
    assert done.returncode == 0 and "all fine" in done.stdout
    assert re.search(r"\rverifying  \[#{30}\]  100 %  \S+ \S+/s", shown)
    assert shown.endswith("\r\x1b[K")


def test_examples_run(data, tmp_path):
    """In their order: one makes what the next takes."""
    lines = re.findall(r"^  (reprise data .*)$", reprise("help", "data").stdout, re.M)
    assert len(lines) >= 6
    for line in lines:
        words = line.replace("--table replay", "--table uniform").split()[1:]
        done = reprise(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), line
        for told in done.stdout.splitlines() if "--json" in words else ():
            json.loads(told)
