# SPDX-License-Identifier: Apache-2.0
"""Our client library and our command line with dm-reverb's server and ours, and together with
dm-reverb's own client: what one writes, the other reads.

The library is run by tests/conformance/client_driver.c, which documents its arguments.
"""

import json
import os
import random
import subprocess
import time

import numpy as np
import pytest

import conftest
import harness
from harness import table

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "complex64", "complex128", "bool", "string", "float32"]
NAMES = {"half": "float16", "float": "float32", "double": "float64"}  # TensorFlow's names for NumPy's
STRING = DTYPES.index("string")
SECONDS = 40.0


def run(program, *words, **options):
    hidden = ("REPRISE_SERVER", "REPRISE_TOKEN")
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True,
                          timeout=SECONDS, env=env, **options)


def reprise(server, *words, **options):
    """Runs the command with a server."""
    return run(harness.binary(), *words, "--server", server.address, **options)


def answer(server, *words, **options):
    """Runs the command, which must succeed without errors. Returns its output."""
    done = reprise(server, *words, **options)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def driver():
    return harness.binary().parents[2] / "tests" / "client_driver"


def drive(server, *words, status=0):
    """Runs the driver. Returns the lines that it prints."""
    done = run(driver(), server.address, *words)
    assert (done.returncode, done.stderr) == (status, ""), done
    return done.stdout.splitlines()


def row(column, step):
    """Returns the value that the driver appends to a column in a step."""
    if column == STRING:
        texts = [b""] + [f"{step}-{i}".encode() for i in range(1, 6)]
        return np.array(texts, object).reshape(2, 3)
    dtype = np.dtype(DTYPES[column])
    places = np.arange(6 * dtype.itemsize)
    data = ((step * 31 + column * 7 + places * 13) & 255).astype(np.uint8)
    if dtype == bool:
        data &= 1
    return np.frombuffer(data.tobytes(), dtype).reshape(2, 3)


def assert_same(got, expected):
    """Checks that type, shape and bytes are equal. Bytes are compared, since some values are
    NaN."""
    assert got.shape == expected.shape
    if expected.dtype == object:
        assert got.tolist() == expected.tolist()
    else:
        assert got.dtype == expected.dtype
        assert got.tobytes() == expected.tobytes()


def item_text(columns):
    """Formats an item for the driver. A column is a list of rows, or a squeezed row; a row is
    (column, step)."""
    return "/".join(f"{c[0]}.{c[1]}!" if isinstance(c, tuple) else
                    ",".join(f"{column}.{step}" for column, step in c) for c in columns)


def item_data(columns):
    """Returns the data that a reader of the item must get."""
    return [row(*c) if isinstance(c, tuple) else np.stack([row(*r) for r in c])
            for c in columns]


def take_all(client, name, count):
    """Returns the items of a fifo table, oldest first. Deletes each after it was read."""
    items = []
    for _ in range(count):
        [sample] = client.sample(name, 1, emit_timesteps=False)
        items.append(sample)
        client.mutate_priorities(name, deletes=[int(sample.info.key)])
    assert client.server_info()[name].current_size == 0
    return items


def batch_of(server, name, count):
    """Returns [(array, lengths)] of a batch that our sampler has stacked."""
    columns = []
    for line in drive(server, "batch", name, count):
        dtype, shape, lengths, data = line.split(" ", 3)
        shape = [int(size) for size in shape.strip("[]").split(",") if size]
        lengths = [int(n) for n in lengths.split(",") if n]
        if dtype == "string":
            array = np.array([t.encode() for t in data.split(",")[:-1]], object)
        else:
            array = np.frombuffer(bytes.fromhex(data), NAMES.get(dtype, dtype))
        columns.append((array.reshape(shape), lengths))
    return columns


ITEMS = {
    "rows in a row": [[(c, s) for s in range(5, 9)] for c in range(len(DTYPES))],
    "strided": [[(c, s) for s in range(1, 12, 3)] for c in range(len(DTYPES))],
    "reversed": [[(c, s) for s in reversed(range(12))] for c in range(len(DTYPES))],
    "repeated": [[(c, s) for s in (5, 5, 2, 5)] for c in range(len(DTYPES))],
    "squeezed": [(c, c % 12) for c in range(len(DTYPES))],
    "of different lengths": [[(0, s) for s in range(12)], (6, 3), [(STRING, 0)]],
    "of two columns": [[(1, 3), (15, 3), (1, 4), (15, 11)]],
}


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("chunk", [1, 4, 12])
def test_items_of_reprise_are_read_by_dm_reverb(server, client, fresh, kind, chunk):
    name = fresh("fifo")
    [key] = drive(server, "write", name, 12, chunk, item_text(ITEMS[kind]))
    [sample] = take_all(client, name, 1)
    assert int(sample.info.key) == int(key)
    assert sample.info.priority == 3.0
    expected = item_data(ITEMS[kind])
    assert len(sample.data) == len(expected)
    for got, wanted in zip(sample.data, expected):
        assert_same(got, wanted)


def test_random_items_that_share_chunks(server, client, fresh):
    """Forty items over the same steps. Some of their chunks were sent with earlier items."""
    name, dice = fresh("fifo"), random.Random(5)

    def column():
        c = dice.randrange(len(DTYPES))
        rows = [(c, dice.randrange(20)) for _ in range(dice.randint(1, 6))]
        return rows[0] if len(rows) == 1 and dice.random() < 0.5 else rows

    items = [[column() for _ in range(dice.randint(1, 5))] for _ in range(40)]
    keys = drive(server, "write", name, 20, 3, *map(item_text, items))
    taken = take_all(client, name, len(items))
    assert [int(t.info.key) for t in taken] == [int(key) for key in keys]
    for sample, item in zip(taken, items):
        for got, wanted in zip(sample.data, item_data(item), strict=True):
            assert_same(got, wanted)


@pytest.mark.parametrize("writer", ["steps", "patterns"])
def test_items_of_other_writers_are_read_by_dm_reverb(server, client, fresh, writer):
    name = fresh("fifo")
    drive(server, writer, name, 7, 3)
    taken = take_all(client, name, 5)
    for first, sample in enumerate(taken):
        assert len(sample.data) == len(DTYPES)
        for c, got in enumerate(sample.data):
            assert_same(got, np.stack([row(c, first + i) for i in range(3)]))
    wanted = [1.5] * 5 if writer == "patterns" else [2.0, 3.0, 4.0, 5.0, 6.0]
    assert [t.info.priority for t in taken] == wanted


def test_lines_of_json_are_read_by_dm_reverb(server, client, fresh):
    name = fresh("fifo")
    lines = '{"priority": 2.5, "data": [[0.5, -1], 3, true]}\n{"data": [[1, 2], 4, false]}\n'
    assert "inserted 2 items" in answer(server, "insert", name, "-", input=lines)
    first, second = take_all(client, name, 2)
    assert (first.info.priority, second.info.priority) == (2.5, 1.0)
    assert first.data[0].tolist() == [0.5, -1.0] and first.data[0].dtype == np.float64
    assert (first.data[1], first.data[2]) == (3, True)
    assert (second.data[1], second.data[2]) == (4, False)


@pytest.mark.parametrize("column", range(len(DTYPES)))
def test_items_of_dm_reverb_are_read_by_reprise(server, client, fresh, column):
    name = fresh("fifo")
    with client.trajectory_writer(6) as writer:
        for step in range(6):
            writer.append({"x": row(column, step)})
        history = writer.history["x"]
        writer.create_item(name, 1.0, {"all": history[:], "last": history[-1],
                                       "few": history[1:4]})
    whole, few, last = [array for array, _ in batch_of(server, name, 2)]
    rows = np.stack([row(column, step) for step in range(6)])
    for i in range(2):  # the same item twice, since the table is a fifo
        assert_same(whole[i], rows)
        assert_same(few[i], rows[1:4])
        assert_same(last[i], rows[5])


def test_ragged_items_of_dm_reverb_are_padded(server, client, fresh):
    name = fresh("thrice")
    with client.trajectory_writer(5) as writer:
        for step in range(5):
            writer.append([np.int32(step)])
            if step in (0, 4):
                writer.create_item(name, 1.0, [writer.history[0][:]])
    [(stacked, lengths)] = batch_of(server, name, 6)
    assert lengths == [1, 1, 1, 5, 5, 5]
    assert stacked.tolist() == 3 * [[0, 0, 0, 0, 0]] + 3 * [[0, 1, 2, 3, 4]]


def test_delta_encoded_items_of_dm_reverb(server, client, fresh):
    name = fresh("fifo")
    with client.writer(max_sequence_length=4, delta_encoded=True, chunk_length=4) as writer:
        for step in range(4):
            writer.append([row(6, step)])
        writer.create_item(name, 4, 1.0)
    [(stacked, _)] = batch_of(server, name, 1)
    assert_same(stacked[0], np.stack([row(6, step) for step in range(4)]))


def test_the_command_prints_items_of_dm_reverb(server, client, fresh, tmp_path):
    name = fresh("signed-step")
    data = {"action": np.array([3, -4], np.int32),
            "observation": np.arange(6, dtype=np.float32).reshape(2, 3)}
    client.insert(data, {name: 2.0})
    item = json.loads(answer(server, "sample", name, "--json"))
    assert (item["priority"], item["table_size"], item["probability"]) == (2, 1, 1)
    assert set(item["data"]) == set(data)
    for column, array in data.items():
        [rows] = item["data"][column]["data"]  # of one step
        assert rows == array.tolist()
        assert item["data"][column]["dtype"] == array.dtype.name
    answer(server, "sample", name, "--count", 2, "--npy", tmp_path / "npy")
    stacked = np.load(tmp_path / "npy" / "observation.npy")
    assert_same(stacked, np.stack(2 * [data["observation"][None]]))


def test_info_agrees_with_server_info(server, client, fresh):
    fresh("uniform")
    client.insert([np.int64(1)], {"uniform": 1.0})
    tables = {t["table"]: t for t in json.loads(answer(server, "info", "--json"))}
    infos = client.server_info()
    assert set(tables) == set(infos) == {t["name"] for t in conftest.TABLES}
    for name, info in infos.items():
        assert tables[name]["max_size"] == info.max_size
        assert tables[name]["items"] == info.current_size
        assert tables[name]["max_times_sampled"] == info.max_times_sampled
    assert tables["uniform"]["total_weight"] == infos["uniform"].current_size == 1
    assert tables["softened"]["sampler"] == {"kind": "prioritized", "exponent": 0.5}
    assert tables["ratio"]["limiter"]["samples_per_insert"] == 2
    assert tables["signed"]["signature"] == [
        {"name": "a", "dtype": "float32", "shape": [-1, 2]},
        {"name": "b/0", "dtype": "int64", "shape": [-1]}]
    assert tables["uniform"]["signature"] is None


def test_priorities_are_set_and_items_deleted(server, client, fresh):
    name = fresh("prioritized")
    keys = drive(server, "write", name, 3, 1, "0.0", "0.1", "0.2")
    drive(server, "mutate", name, f"{keys[0]}=0", f"{keys[1]}=6", f"-{keys[2]}", "12345=9")
    assert client.server_info()[name].current_size == 2
    for line in drive(server, "sample", name, 20, 1000):
        key, priority, probability, size, _ = line.split()
        assert (key, priority, probability, size) == (keys[1], "6", "1", "2")
    drive(server, "mutate", name, f"{keys[0]}=2")
    for line in drive(server, "sample", name, 20, 1000):
        key, _, probability, _, _ = line.split()
        assert float(probability) == pytest.approx({keys[0]: 0.25, keys[1]: 0.75}[key])


def test_a_nan_priority_is_refused_before_sending(server, client, fresh):
    name = fresh("prioritized")
    [key] = drive(server, "write", name, 1, 1, "0.0")
    [said] = drive(server, "mutate", name, f"{key}=nan", status=1)
    assert said == f"RP_INVALID: table '{name}': the priority of item {key} is not a number"
    assert len(drive(server, "sample", name, 3, 1000)) == 3


def test_the_rate_limiter_ends_a_sampler(server, fresh):
    name = fresh("min-size")
    drive(server, "write", name, 2, 1, "0.0", "0.1")
    start = time.monotonic()
    [said] = drive(server, "sample", name, 1, 300, status=1)
    assert said.startswith("RP_DEADLINE: Rate Limiter: Timeout exceeded before the right to "
                           "insert was acquired.")
    assert 0.25 < time.monotonic() - start < 10
    drive(server, "write", name, 1, 1, "0.0")
    assert len(drive(server, "sample", name, 3, 300)) == 3


def test_a_sample_of_the_command_times_out(server, fresh):
    name = fresh("min-size")
    done = reprise(server, "sample", name, "--timeout", "300ms")
    assert done.returncode == 1
    assert "min-size" in done.stderr and "--timeout SECONDS waits longer" in done.stderr


def test_a_queue_is_filled_and_emptied(server, fresh):
    """A fifth item waits until the first sample, and is inserted while the others are read."""
    name = fresh("queue")
    words = [driver(), server.address, "write", name, "5", "1"]
    with subprocess.Popen([*words, *[f"6.{i}" for i in range(5)]], stdout=subprocess.PIPE,
                          text=True) as writer:
        drawn = drive(server, "sample", name, 5, 20000)
        keys, _ = writer.communicate(timeout=SECONDS)
    assert writer.returncode == 0
    assert [line.split()[0] for line in drawn] == keys.split()


def test_unknown_tables_are_not_found(server):
    [said] = drive(server, "sample", "nowhere", 1, 1000, status=1)
    assert said.startswith("RP_NOT_FOUND: ") and "nowhere" in said
    [said] = drive(server, "write", "nowhere", 1, 1, "0.0", status=1)
    assert said.startswith("RP_NOT_FOUND: Priority table nowhere was not found; the tables are: ")
    [said] = drive(server, "mutate", "nowhere", "1=1", status=1)
    assert said.startswith("RP_NOT_FOUND: ") and "nowhere" in said
    done = reprise(server, "sample", "unifrom")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no table 'unifrom', did you mean 'uniform'?" in done.stderr
    done = reprise(server, "tables", "reset", "nowhere")
    assert done.returncode == 1 and "nowhere" in done.stderr


def test_signatures_are_checked_before_sending(server, client, fresh):
    name = fresh("signed")
    [said] = drive(server, "write", name, 2, 1, item_text([[(1, 0)], [(6, 0)]]), status=1)
    assert said.startswith("RP_INVALID: ") and "got shape [2,3] but expected [?,2]" in said
    [said] = drive(server, "write", name, 2, 1, item_text([[(1, 0)]]), status=1)
    assert said.startswith("RP_INVALID: ") and "2" in said
    assert client.server_info()[name].current_size == 0
    answer(server, "insert", name, "-", input='{"data": {"a": [[1, 2]], "b/0": [3]}}\n')
    assert client.server_info()[name].current_size == 1


def test_tables_are_reset(server, client, fresh):
    name = fresh("uniform")
    client.insert([np.int64(1)], {name: 1.0})
    answer(server, "tables", "reset", name)
    assert client.server_info()[name].current_size == 0


def test_calls_of_reprise_alone_are_unimplemented_in_dm_reverb(server):
    if server.kind == "reprise":
        assert drive(server, "pause", "uniform") == []
        answer(server, "tables", "resume", "uniform")
        return
    [said] = drive(server, "pause", "uniform", status=1)
    assert said == f"RP_UNIMPLEMENTED: {server.address} has no call /reprise.v1.Replay/PauseTable"
    for words in (["create", "more:uniform:10"], ["drop", "uniform"],
                  ["alter", "uniform", "--max-size", "10"]):
        done = reprise(server, "tables", *words)
        assert done.returncode == 1
        assert "has no call /reprise.v1.Replay/" in done.stderr
        assert "only a reprise server can do that, not Reverb's" in done.stderr


def test_a_checkpoint_of_the_command(server):
    done = reprise(server, "checkpoint")
    if server.kind == "dm-reverb":
        assert done.returncode == 0 and os.path.isdir(done.stdout.strip())
    else:
        assert done.returncode == 1 and "heckpoint" in done.stderr


@pytest.fixture(params=conftest.KINDS)
def mortal(request, servers, tmp_path):
    """A new server for a test that restarts it."""
    if request.param not in servers:
        pytest.skip("only dm-reverb's server was asked for")
    with conftest.make(request.param, tmp_path, [table("fifo", sampler="fifo")]) as server:
        yield server.start()


def test_a_writer_survives_restarts(mortal):
    words = [driver(), mortal.address, "rounds", "fifo", "20"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as writer:
        for _ in range(3):
            writer.stdin.write("go\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "flushed\n"
            [info] = json.loads(answer(mortal, "info", "fifo", "--json"))
            assert info["items"] == 20
            mortal.restart()
        writer.stdin.close()
        assert writer.wait(SECONDS) == 0


def test_a_reverb_server_and_ours_are_shards(servers):
    """The servers have different numbers of items; each gives samples in proportion to its
    items."""
    if len(servers) < 2:
        pytest.skip("only dm-reverb's server was asked for")

    class Both:
        address = ",".join(s.ready().address for s in servers.values())

    answer(Both, "tables", "reset", "uniform")
    drive(Both, "write", "uniform", 8, 1, *[f"6.{i}" for i in range(8)])
    drive(servers["reprise"], "write", "uniform", 8, 1, *[f"6.{i}" for i in range(8)])
    counts = [t["items"] for t in json.loads(answer(Both, "info", "uniform", "--json"))]
    assert sum(counts) == 16 and sorted(counts) == [4, 12]
    drawn = {}
    for line in drive(Both, "sample", "uniform", 1600, 5000):
        key, _, probability, size, _ = line.split()
        drawn[key] = drawn.get(key, 0) + 1
        assert int(size) == 16
        assert float(probability) == pytest.approx(1 / 16)
    assert len(drawn) == 16
    chi_square = sum((n - 100) ** 2 / 100 for n in drawn.values())
    assert chi_square < 45  # 15 degrees of freedom: one in ten thousand
