# SPDX-License-Identifier: Apache-2.0
"""reprise.Rollouts: groups over TCP and in process, waits, leases of trainers that die."""

import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from events import expect_reason, stop

import reprise
from reprise import errors


@pytest.fixture(scope="module", params=["process", "child"])
def server(request):
    """A server in this process, whose clients use its store, and one in another process."""
    return reprise.Server([reprise.Table.queue("queue", max_size=1)], where=request.param)


@pytest.fixture
def client(server):
    return reprise.Client(f"localhost:{server.port}")


@pytest.fixture
def rollouts(client):
    made = reprise.Rollouts(client, "train").create(
        group_size=2, max_staleness=3, consumers={"a": ["reward"], "b": []})
    yield made
    made.drop()


def put(rollouts, group, reward=True, version=0):
    for index in range(2):
        columns = {"tokens": np.arange(3 + index, dtype=np.int32)}
        if reward:
            columns["reward"] = np.float32(index)
        rollouts.put(group, index, columns, version=version)


def test_a_draw_that_waits_is_described(server, client, rollouts):
    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(rollouts.draw(2, consumer="a", timeout=240)))
    thread.start()
    deadline = time.monotonic() + 120
    calls = []
    while not calls and time.monotonic() < deadline:
        calls = client.why("train")
    (call,) = calls
    assert (call.table, call.side, call.wanted, call.done) == ("train", "sample", 4, 0)
    assert "0 groups are ready for consumer 'a', the draw needs 2" in call.why
    assert [c.table for c in client.why()] == ["train"]
    (seen,) = server.why()
    assert (seen.table, seen.side, seen.why) == ("train", "sample", call.why)
    put(rollouts, "first", reward=False)
    while "lack" not in client.why("train")[0].why:
        assert time.monotonic() < deadline
    assert client.why("train")[0].seconds >= call.seconds
    put(rollouts, "second")
    put(rollouts, "third")
    thread.join(120)
    assert len(drawn) == 1 and client.why() == client.why("train") == server.why() == []
    with pytest.raises(errors.StatusError, match="no-such-table"):
        client.why("no-such-table")


def test_a_draw_that_waits_is_described_over_several_servers():
    """Rollouts are on the first server; the others do not know the name."""
    servers = [reprise.Server([reprise.Table.queue("queue", max_size=1)]) for _ in range(2)]
    client = reprise.Client([f"localhost:{s.port}" for s in servers])
    rollouts = client.rollouts("train", create={"group_size": 1})
    thread = threading.Thread(target=lambda: rollouts.draw(1, timeout=240))
    thread.start()
    deadline = time.monotonic() + 120
    while not (calls := client.why("train")) and time.monotonic() < deadline:
        pass
    assert [call.table for call in calls] == ["train"]
    rollouts.put("group", 0, {"a": np.ones(1)}, version=0)
    thread.join(120)
    with pytest.raises(errors.StatusError, match="no-such-table"):
        client.why("no-such-table")
    for server in servers:
        server.stop()


def test_names_and_options(client, rollouts):
    assert "train" in reprise.rollouts.names(client)
    options = rollouts.info()["options"]
    assert options["consumers"] == {"a": ["reward"], "b": []}
    assert (options["group_size"], options["max_staleness"], options["staleness"]) == (2, 3, "drop")
    rollouts.configure(order="lifo", max_groups=9)
    options = rollouts.info()["options"]
    assert (options["order"], options["max_groups"], options["max_staleness"]) == ("lifo", 9, 3)
    assert client.rollouts("train", create=dict(group_size=5)).info()["options"]["group_size"] == 2
    with pytest.raises(errors.StatusError) as raised:
        rollouts.create(group_size=2)
    assert raised.value.code == "ALREADY_EXISTS"
    with pytest.raises(TypeError, match="no option 'group'"):
        rollouts.create(group=3)
    with pytest.raises(ValueError, match="order must be one of"):
        rollouts.create(order="best")
    with pytest.raises(ValueError, match="group_size"):
        reprise.Rollouts(client, "other").create(group_size=0)


def test_each_consumer_draws_a_group_once_its_columns_are_there(rollouts):
    put(rollouts, "g", reward=False)
    with pytest.raises(errors.DeadlineExceededError, match="ready"):
        rollouts.draw(1, consumer="a", timeout=0)
    with rollouts.draw(1, consumer="b") as batch:
        assert [group.name for group in batch] == ["g"]
    for index in range(2):
        rollouts.update("g", index, {"reward": np.float32(index)})
    with rollouts.draw(1, consumer="a") as batch:
        assert batch[0].items[1]["reward"] == 1
    assert rollouts.peek("g") == ("acknowledged", None)
    assert rollouts.info()["acknowledged"] == 1


def test_ragged_and_packed(rollouts):
    for g in range(3):
        put(rollouts, f"g{g}")
    batch = rollouts.draw(3, consumer="a")
    values, offsets = batch.ragged("tokens")
    assert offsets.tolist() == [0, 3, 7, 10, 14, 17, 21] and values.dtype == np.int32
    assert values[:7].tolist() == [0, 1, 2, 0, 1, 2, 3]
    parts = batch.pack("tokens", 10)
    assert [part.item_count for part in parts] == [3, 2, 1]
    assert parts[1].ragged("tokens").offsets.tolist() == [0, 4, 7]
    assert [item["reward"] for item in parts[1].items] == [1, 0]
    assert [part.item_count for part in parts[0].pack("tokens", 3)] == [1, 1, 1]
    for call in (batch.ragged, lambda name: batch.pack(name, 10)):
        with pytest.raises(errors.NotFoundError, match="item 0 of the batch has no column 'nothing'"):
            call("nothing")
    array = batch[0].items[0]["tokens"]
    assert not array.flags.writeable
    batch.release()
    del batch
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("array", [
    np.zeros((0, 3), np.float16), np.array(5, np.int64), np.arange(6.0).reshape(2, 3)[:, ::2],
    np.array([True, False]), np.arange(70000, dtype=np.uint8), np.array([1 + 2j])])
def test_arrays_arrive_unchanged(rollouts, array):
    rollouts.put("g", 0, {"x": array}, version=0)
    fate, group = rollouts.peek("g")
    assert (fate, group.items[1]) == ("partial", None)
    found = group.items[0]["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)
    with pytest.raises(TypeError, match="text"):
        rollouts.put("g", 1, {"x": np.array(["a"])}, version=0)


def test_bfloat16_of_ml_dtypes(rollouts):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(5).astype(ml_dtypes.bfloat16)
    rollouts.put("g", 0, {"x": array}, version=0)
    found = rollouts.peek("g")[1].items[0]["x"]
    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_bfloat16_of_torch(rollouts):
    torch = pytest.importorskip("torch")
    for index in range(2):
        rollouts.put("g", index, {"x": torch.arange(5).to(torch.bfloat16), "reward": torch.ones(2)},
                     version=0)
    ragged = rollouts.draw(1, consumer="a").ragged("x")
    assert ragged.dtype == "bfloat16"
    ragged = ragged.torch()
    assert ragged.values.dtype == torch.bfloat16
    assert ragged.values.tolist() == [0, 1, 2, 3, 4] * 2
    assert ragged.offsets.tolist() == [0, 5, 10]


def test_versions(rollouts):
    put(rollouts, "old", version=(0, 1))
    put(rollouts, "new", version=2)
    assert rollouts.advance(4) == 1
    assert rollouts.peek("old")[0] == "stale"
    found = rollouts.put("old", 0, {"x": np.zeros(1)}, version=0)
    assert (found.fate, found.gone) == ("stale", True)
    with rollouts.draw(1, consumer="a") as batch:
        assert (batch.version, batch[0].first_version) == (4, 2)
    assert rollouts.info()["staleness"][2] == 1
    assert rollouts.advance(1) == 0  # it came late
    assert rollouts.info()["version"] == 4


def test_repeats_are_told(rollouts):
    assert rollouts.reserve("g", ttl=60) == ("reserved", False, False)
    assert rollouts.reserve("g", ttl=60).repeated
    column = {"x": np.arange(3)}
    assert not rollouts.put("g", 0, column, version=1).repeated
    assert rollouts.put("g", 0, column, version=1).repeated
    with pytest.raises(errors.StatusError) as raised:
        rollouts.update("g", 0, {"x": np.arange(4)})
    assert raised.value.code == "ALREADY_EXISTS"
    rollouts.update("g", 0, {"x": np.arange(4)}, replace=True)
    assert rollouts.abort("g").fate == "aborted"
    assert rollouts.abort("g").gone


def test_an_exception_releases_the_batch(rollouts):
    put(rollouts, "g")
    with pytest.raises(KeyError), rollouts.draw(1, consumer="a"):
        raise KeyError("trainer")
    assert rollouts.info()["consumers"]["a"]["ready"] == 1
    with rollouts.draw(1, consumer="a", timeout=120) as batch:
        batch.renew(100)
    with pytest.raises(errors.StatusError):
        batch.release()


def test_cursors(rollouts):
    assert rollouts.cursor("loader") is None
    rollouts.set_cursor("loader", b"epoch\0 1")
    assert rollouts.cursor("loader") == b"epoch\0 1"
    rollouts.set_cursor("loader", b"")
    assert rollouts.cursor("loader") is None


def test_a_draw_waits_and_says_why(rollouts, caplog):
    def later():
        while not caplog.records:
            time.sleep(0.05)
        put(rollouts, "g")

    thread = threading.Thread(target=later)
    with caplog.at_level(logging.WARNING, logger="reprise"):
        thread.start()
        with rollouts.draw(1, consumer="a", timeout=60) as batch:
            assert len(batch) == 1
    thread.join()
    assert any("ready" in record.getMessage() for record in caplog.records)


def test_by_tokens(rollouts):
    for g in range(4):
        put(rollouts, f"g{g}")
    with rollouts.draw(tokens=15, consumer="a") as batch:
        assert len(batch) == 2
    with pytest.raises(ValueError, match="give groups"):
        rollouts.draw(consumer="a")
    with pytest.raises(errors.StatusError) as raised:
        rollouts.draw(tokens=5, consumer="a", timeout=120)
    assert raised.value.code == "FAILED_PRECONDITION"


def run(script, server):
    text = textwrap.dedent(script).replace("PORT", str(server.port))
    return subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)


def test_a_killed_trainer_loses_no_group(server, rollouts):
    for g in range(6):
        put(rollouts, f"g{g}")
    trainer = run("""
        import reprise, time
        rollouts = reprise.Client("localhost:PORT").rollouts("train")
        batch = rollouts.draw(4, consumer="a", ttl=1.0)
        print("drawn", flush=True)
        time.sleep(600)
        """, server)
    assert trainer.stdout.readline() == "drawn\n"
    trainer.send_signal(signal.SIGKILL)
    trainer.wait()
    with rollouts.draw(6, consumer="a", timeout=60) as batch:
        assert sorted(group.name for group in batch) == [f"g{g}" for g in range(6)]
    info = rollouts.info()
    assert (info["expired_leases"], info["consumers"]["a"]["acknowledged"]) == (1, 6)


def test_ctrl_c_ends_a_wait(server, rollouts):
    waiting = run("""
        import reprise
        rollouts = reprise.Client("localhost:PORT").rollouts("train")
        try:
            print("begins", flush=True)
            rollouts.draw(1, consumer="a")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """, server)
    assert waiting.stdout.readline() == "begins\n"
    waiting.send_signal(signal.SIGINT)
    assert waiting.stdout.read().startswith("interrupted")
    put(rollouts, "g")
    assert len(rollouts.draw(1, consumer="a", timeout=120)) == 1


def test_no_rollouts(client):
    missing = client.rollouts("missing")
    for call in (missing.info, missing.drop, lambda: missing.advance(1),
                 lambda: missing.draw(1, timeout=1)):
        with pytest.raises(errors.NotFoundError, match="missing"):
            call()
    with pytest.raises(ValueError):
        missing.reserve("g", ttl=0)


def test_numbers_and_consumers_are_checked(client, rollouts):
    put(rollouts, "g")
    cases = [
        (lambda: rollouts.configure(group_size=-1), ValueError, "group_size must be >= 1, got -1"),
        (lambda: rollouts.configure(max_groups=-1), ValueError, "max_groups must be >= 1, got -1"),
        (lambda: rollouts.configure(max_bytes="1GiB"), TypeError, "max_bytes must be an integer"),
        (lambda: rollouts.put("g", -1, {}, version=0), ValueError, "index must be >= 0, got -1"),
        (lambda: rollouts.update("g", -1, {}), ValueError, "index must be >= 0, got -1"),
        (lambda: rollouts.draw(groups=-1, consumer="a"), ValueError, "groups must be >= 1, got -1"),
        (lambda: rollouts.draw(1, min_groups=0, consumer="a"), ValueError, "min_groups must be >= 1"),
        (lambda: rollouts.draw(tokens=-1, consumer="a"), ValueError, "tokens must be >= 1, got -1"),
        (lambda: rollouts.create(consumers={"a": "tokens"}), TypeError, "must be a list, as in {'a': "),
        (lambda: rollouts.create(consumers=["a"]), TypeError, "must be a dict from the name"),
        (lambda: rollouts.set_cursor("c", "abc"), TypeError, r"data must be bytes, got 'abc': write data\.encode"),
        (lambda: rollouts.set_cursor("c", 5), TypeError, "data must be bytes, got 5"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
    assert rollouts.configure(max_bytes=1e9) is None
    with rollouts.draw(1, consumer="a", timeout=60) as batch:
        for budget in (-1, 0):
            with pytest.raises(ValueError, match=f"budget must be >= 1, got {budget}"):
                batch.pack("tokens", budget)


def test_errors_list_what_there_is(client, rollouts):
    with pytest.raises(errors.NotFoundError, match="no consumer ''; there are 'a', 'b'"):
        rollouts.draw(1, timeout=60)
    with pytest.raises(errors.NotFoundError, match="no rollouts 'nope'; there are 'train'"):
        client.rollouts("nope").advance(1, timeout=60)
    put(rollouts, "g")
    with pytest.raises(errors.StatusError, match="with other values; update with `replace` changes"):
        rollouts.update("g", 0, {"tokens": np.zeros(9, np.int32)})


def test_a_draw_says_what_the_groups_lack(rollouts):
    put(rollouts, "g", reward=False)

    def draw(timeout):
        rollouts.draw(1, consumer="a", timeout=timeout)

    expect_reason(errors.DeadlineExceededError,
                  r"the draw needs 1; groups that lack one of its columns: 1 \(it needs 'reward'\)", draw)
    rollouts.put("h", 0, {"reward": np.float32(1)}, version=0)
    expect_reason(errors.DeadlineExceededError,
                  "; groups without all items: 1; groups that lack one of its columns: 1 ", draw)


def test_options_of_existing_rollouts_that_differ_are_logged(client, rollouts, caplog):
    client.rollouts("train", create=dict(group_size=2, consumers={"a": ["reward"], "b": []}))
    assert not caplog.records
    client.rollouts("train", create=dict(group_size=4, order="lifo"))
    assert "rollouts 'train' exist with group_size=2 and not 4, order='fifo' and not 'lifo'" in caplog.text


def test_creating_waits_for_a_server_as_long_as_its_timeout():
    rollouts = reprise.Rollouts(reprise.Client("localhost:1"), "train")
    for call in (rollouts.create, rollouts.drop, rollouts.info):
        with pytest.raises(errors.DeadlineExceededError, match="localhost:1: "):
            call(timeout=0.3)


CALLS_OF_ROLLOUTS = {
    "reserve": lambda r, s: r.reserve("new", timeout=s),
    "put": lambda r, s: r.put("new", 0, {"a": np.ones(2)}, version=0, timeout=s),
    "update": lambda r, s: r.update("g", 0, {"b": np.ones(2)}, timeout=s),
    "advance": lambda r, s: r.advance(1, timeout=s),
    "abort": lambda r, s: r.abort("g", timeout=s),
    "draw": lambda r, s: r.draw(1, timeout=s),
    "ack": lambda r, s: r.ack(1, timeout=s),
    "release": lambda r, s: r.release(1, timeout=s),
    "renew": lambda r, s: r.renew(1, 60, timeout=s),
    "peek": lambda r, s: r.peek("g", timeout=s),
    "set_cursor": lambda r, s: r.set_cursor("c", b"1", timeout=s),
    "cursor": lambda r, s: r.cursor("c", timeout=s),
    "info": lambda r, s: r.info(timeout=s),
    "configure": lambda r, s: r.configure(max_staleness=1, timeout=s),
    "create": lambda r, s: r.create(timeout=s),
    "drop": lambda r, s: r.drop(timeout=s),
    "rollouts": lambda r, s: r.client.rollouts("x", create={}, timeout=s),
    "names": lambda r, s: reprise.rollouts.names(r.client, timeout=s),
}


@pytest.mark.parametrize("name", CALLS_OF_ROLLOUTS)
def test_calls_wait_for_a_server_that_is_away(name):
    rollouts = reprise.Client("localhost:1").rollouts("x")
    expect_reason(reprise.DeadlineExceededError, "localhost:1: Connection refused",
                  lambda timeout: CALLS_OF_ROLLOUTS[name](rollouts, timeout))


@pytest.mark.parametrize("name", ["reserve", "put", "draw", "advance", "ack", "info"])
@pytest.mark.parametrize("timeout", [0, 0.3])
def test_calls_end_with_their_timeout_on_a_silent_server(name, timeout):
    """An attempt to connect ends later, with another text."""
    arguments = {"reserve": ["g"], "put": ["g", 0, {"x": np.zeros(1)}], "draw": [1], "advance": [1], "ack": [1],
                 "info": []}[name]
    more = {"version": 0} if name == "put" else {}
    with socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        rollouts = reprise.Client(address, transport="tcp").rollouts("r")
        with pytest.raises(reprise.DeadlineExceededError, match="not respond: is it stopped|connection in time"):
            getattr(rollouts, name)(*arguments, timeout=timeout, **more)


def test_a_call_on_a_stopped_server_ends_with_its_timeout():
    """Pings end the connection later, with another error."""
    with reprise.Server([reprise.Table.queue("t", 1)], where="child") as server:
        rollouts = server.localhost_client().rollouts("r", create=dict(group_size=1))
        stop(server.pid)
        try:
            with pytest.raises(reprise.DeadlineExceededError, match="no response in time"):
                rollouts.draw(1, timeout=1.5)
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_calls_go_on_with_the_next_server(tmp_path):
    def serve(port):
        return reprise.Server([reprise.Table.queue("queue", max_size=1)], port=port, where="child",
                              storage=str(tmp_path / "data"))

    first = serve(None)
    port = first.port
    rollouts = reprise.Client(f"localhost:{port}").rollouts("x", create=dict(group_size=1))
    first.stop()
    done = {}
    threads = [threading.Thread(target=target) for target in (
        lambda: done.update(put=rollouts.put("g", 0, {"a": np.ones(2)}, version=0, timeout=240)),
        lambda: done.update(draw=rollouts.draw(1, timeout=240)))]
    for thread in threads:
        thread.start()
    second = serve(port)
    for thread in threads:
        thread.join()
    second.stop()
    assert done["put"].fate == "complete"
    assert [group.name for group in done["draw"]] == ["g"]


def test_the_columns_of_a_put_are_a_dict(rollouts):
    with pytest.raises(TypeError, match="columns must be a dict from name to array.*got ndarray"):
        rollouts.put("g", 0, np.ones(2), version=0)


def test_the_error_of_a_column_has_its_whole_name_and_no_more(rollouts):
    rollouts.put("g", 0, {"tokens": [1, 2]}, version=0)
    for name in ("x", "ab", "a longer name"):
        with pytest.raises(TypeError, match=f"leaf '{name}': "):
            rollouts.put("h", 0, {name: object()}, version=0)
