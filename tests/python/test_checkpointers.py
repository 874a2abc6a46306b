# SPDX-License-Identifier: Apache-2.0
"""Checkpointers and storage: a new server has the data of the one before."""

import os
import pathlib
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from events import expect_reason, stop, wait_until

import reprise
from reprise import checkpointers, pybind
from reprise.platform import checkpointers_lib
from reprise.platform.default import checkpointers as default_checkpointers

REVERB = pathlib.Path(__file__).resolve().parents[1] / "data" / "reverb"


def test_default_holds_its_arguments():
    checkpointer = checkpointers.DefaultCheckpointer("/some/where", "group", "/fall/back")
    assert checkpointer.path == "/some/where"
    assert checkpointer.group == "group"
    assert checkpointer.fallback_checkpoint_path == "/fall/back"


def test_default_has_defaults():
    checkpointer = checkpointers.DefaultCheckpointer(path="/some/where")
    assert checkpointer.group == ""
    assert checkpointer.fallback_checkpoint_path is None


def test_temporary_makes_a_directory():
    checkpointer = checkpointers.TempDirCheckpointer()
    assert os.path.isdir(checkpointer.path)
    os.rmdir(checkpointer.path)


@pytest.mark.parametrize("group", [None, "g"])
def test_default_checkpointer(group):
    checkpointer = reprise.checkpointers.default_checkpointer(group)
    assert isinstance(checkpointer, checkpointers.TempDirCheckpointer)
    os.rmdir(checkpointer.path)


def test_internal_checkpointer_is_a_pybind_class():
    internal = checkpointers.DefaultCheckpointer("/some/where").internal_checkpointer()
    assert isinstance(internal, pybind.Checkpointer)
    assert "/some/where" in repr(internal)


def test_base_is_abstract():
    with pytest.raises(TypeError):
        checkpointers.CheckpointerBase()


def test_modules_agree():
    assert checkpointers.DefaultCheckpointer is checkpointers_lib.DefaultCheckpointer
    assert default_checkpointers.default_checkpointer is checkpointers.default_checkpointer


WHERE = ["process", "child"]


def serve(where="process", **options):
    return reprise.Server([reprise.Table.queue("q", 100)], where=where, **options)


def insert(client, *values):
    for value in values:
        client.insert([np.float64(value)], {"q": 1.0})


def values(client):
    """Returns and removes all values of the queue."""
    count = client.server_info()["q"].current_size
    return [float(s.data[0][0]) for s in client.sample("q", count, emit_timesteps=False)] if count else []


def test_a_path_that_is_in_the_repr(tmp_path):
    checkpointer = checkpointers.DefaultCheckpointer(str(tmp_path))
    with serve(checkpointer=checkpointer) as server:
        assert str(tmp_path) in repr(server)


@pytest.mark.parametrize("where", WHERE)
def test_a_checkpoint_is_written_and_loaded(where, tmp_path):
    checkpointer = checkpointers.DefaultCheckpointer(str(tmp_path))
    with serve(where, checkpointer=checkpointer) as server:
        client = server.localhost_client()
        insert(client, 1.0, 2.0)
        path = client.checkpoint()
        insert(client, 3.0)
    assert path.startswith(str(tmp_path)) and os.path.isfile(path)
    with serve(where, checkpointer=checkpointer) as server:
        assert values(server.localhost_client()) == [1.0, 2.0]


def test_a_client_over_tcp_can_request_a_checkpoint(tmp_path):
    with serve(storage=tmp_path) as server:
        client = reprise.Client(server.address, transport="tcp")
        insert(client, 1.0)
        assert os.path.isfile(client.checkpoint())
        [told] = client.storage()
        assert told["shard"] == server.address and told["last_checkpoint"] >= 1


def test_checkpoint_without_a_checkpointer_fails():
    with serve() as server:
        with pytest.raises(ValueError, match="no checkpointer is configured"):
            server.localhost_client().checkpoint()
        assert server.localhost_client().storage() == [{"shard": "local"}]


def test_temporary_checkpointer_works():
    with serve(checkpointer=checkpointers.TempDirCheckpointer()) as server:
        path = server.localhost_client().checkpoint()
        assert os.path.isfile(path)
    shutil.rmtree(os.path.dirname(os.path.dirname(path)))


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("durability", ["checkpoint", "interval", "sync"])
def test_a_restarted_server_has_its_items_again(where, durability, tmp_path):
    storage = reprise.Storage(tmp_path / "data", durability=durability)
    with serve(where, storage=storage) as server:
        client = server.localhost_client()
        insert(client, 1.0, 2.0, 3.0)
        assert client.storage()[0]["durability"] == durability
    with serve(where, storage=storage) as server:
        assert values(server.localhost_client()) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("durability", ["interval", "sync"])
def test_a_child_that_is_killed_loses_nothing_that_was_confirmed(durability, tmp_path):
    storage = reprise.Storage(tmp_path, durability=durability)
    server = serve("child", storage=storage)
    client = server.localhost_client()
    insert(client, *range(20))
    server.kill()
    with serve("child", storage=storage) as server:
        assert values(server.localhost_client()) == list(range(20))


def test_without_a_final_checkpoint_later_items_are_lost(tmp_path):
    storage = reprise.Storage(tmp_path, final_checkpoint=False)
    with serve(storage=storage) as server:
        insert(server.localhost_client(), 1.0)
    with serve(storage=storage) as server:
        assert values(server.localhost_client()) == []


def test_checkpoints_are_written_periodically(tmp_path):
    with serve(storage=reprise.Storage(tmp_path, checkpoint_every=0.05)) as server:
        client = server.localhost_client()
        wait_until(lambda: client.storage()[0]["checkpoints"] >= 3, "the third checkpoint")


def test_a_directory_in_use_is_refused(tmp_path):
    with serve(storage=tmp_path):
        with pytest.raises(reprise.StatusError) as error:
            serve(storage=tmp_path)
        assert error.value.code == "FAILED_PRECONDITION"
    serve(storage=tmp_path).stop()


def test_a_client_of_a_stopped_server_does_not_use_its_storage(tmp_path):
    server = serve(storage=tmp_path)
    client = server.localhost_client()
    assert client.checkpoint()
    server.stop()
    with pytest.raises((reprise.StatusError, reprise.DeadlineExceededError)):
        client.checkpoint(timeout=0.2)


def test_only_a_server_says_that_it_spaces_checkpoints(tmp_path):
    limits = {"checkpoint_spacing_ms": 3600000}
    with serve(storage=str(tmp_path), where="child", limits=limits) as server:
        client = server.localhost_client()
        for _ in range(6):
            client.checkpoint()
        expect_reason(reprise.DeadlineExceededError, "at most every checkpoint_spacing_ms",
                      lambda timeout: client.checkpoint(timeout=timeout), (2, 20))
        stop(server.pid)
        try:
            expect_reason(reprise.DeadlineExceededError, "no response in time",
                          lambda timeout: client.checkpoint(timeout=timeout))
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_a_checkpoint_waits_for_its_deadline_on_a_quiet_connection(tmp_path):
    """The server has heard nothing for longer than the timeout."""
    limits = {"checkpoint_spacing_ms": 3600000}
    with serve(storage=str(tmp_path), where="child", limits=limits) as server:
        client = server.localhost_client()
        for _ in range(6):
            client.checkpoint()
        time.sleep(1)
        begin = time.monotonic()
        expect_reason(reprise.DeadlineExceededError, "checkpoint_spacing_ms",
                      lambda timeout: client.checkpoint(timeout=timeout), (0.8, 8, 40))
        assert time.monotonic() - begin > 0.5


def test_a_server_is_stopped_while_it_writes_a_checkpoint(tmp_path):
    server = serve(storage=tmp_path)
    client = server.localhost_client()
    insert(client, *range(50))
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            try:
                client.checkpoint(timeout=0.5)
            except (reprise.StatusError, reprise.DeadlineExceededError):
                return

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: client.storage()[0]["checkpoints"] > 0, "a checkpoint")
    server.stop()
    stop.set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    with serve(storage=tmp_path) as server:
        assert values(server.localhost_client()) == list(range(50))


@pytest.mark.parametrize("wrong, text", [
    (dict(durability="always"), "durability"), (dict(keep=0), "keep"),
    (dict(checkpoint_every=0), "checkpoint_every"), (dict(sync_every=-1), "sync_every"),
    (dict(max_memory=-1), "max_memory")])
def test_wrong_values_are_named(wrong, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        serve(storage=reprise.Storage(tmp_path, **wrong))


def test_storage_or_a_checkpointer_but_not_both(tmp_path):
    with pytest.raises(ValueError, match="not both"):
        serve(storage=tmp_path, checkpointer=checkpointers.DefaultCheckpointer(str(tmp_path)))
    with serve() as server, pytest.raises(ValueError, match="its own storage"):
        serve(server.address, storage=tmp_path)


@pytest.mark.parametrize("what", ["folder", "checkpoint"])
def test_a_reprise_fallback_checkpoint_is_loaded(what, tmp_path):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with serve(checkpointer=checkpointers.DefaultCheckpointer(first)) as server:
        client = server.localhost_client()
        insert(client, 1.0)
        path = client.checkpoint()
    made = checkpointers.DefaultCheckpointer(
        second, fallback_checkpoint_path=path if what == "checkpoint" else first)
    with serve(checkpointer=made) as server:
        client = server.localhost_client()
        insert(client, 2.0)
        client.checkpoint()
    with serve(checkpointer=made) as server:  # now the directory has its own checkpoint
        assert values(server.localhost_client()) == [1.0, 2.0]


def test_a_damaged_newest_checkpoint_is_reported_until_the_next_start(tmp_path, caplog):
    def serve():
        return reprise.Server([reprise.Table.queue("q", 10)], storage=str(tmp_path))

    with serve() as server:
        client = server.localhost_client()
        client.insert([1.0], {"q": 1.0})
        path = pathlib.Path(client.checkpoint())
    newest = max(path.parent.iterdir())
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 255
    newest.write_bytes(content)
    with caplog.at_level("WARNING", "reprise"), serve() as server:
        state = server.localhost_client().storage()
        assert server.localhost_client().server_info()["q"].current_size in (0, 1)
    state = state[0] if isinstance(state, list) else state
    assert state["degraded"] and "could not be loaded, checkpoint" in state["trouble"], state
    assert [r.getMessage() for r in caplog.records] == [f"{tmp_path}: {state['trouble']}"]


def test_a_reverb_fallback_checkpoint_is_loaded(tmp_path):
    if not REVERB.exists():
        pytest.skip("no checkpoint of dm-reverb here")
    made = checkpointers.DefaultCheckpointer(
        str(tmp_path), fallback_checkpoint_path=str(REVERB))
    table = reprise.Table.queue("q", 100)
    with reprise.Server([table], checkpointer=made) as server:
        info = server.localhost_client().server_info()
    assert len(info) > 1 and sum(t.current_size for t in info.values()) > 0


def test_a_missing_fallback_checkpoint_is_refused(tmp_path):
    made = checkpointers.DefaultCheckpointer(
        str(tmp_path / "a"), fallback_checkpoint_path=str(tmp_path / "nowhere"))
    with pytest.raises(reprise.StatusError) as error:
        serve(checkpointer=made)
    assert error.value.code == "NOT_FOUND"


def test_the_error_of_damaged_data_names_the_directory_and_what_to_do(tmp_path):
    directory = tmp_path / "data"
    with serve(storage=directory) as server:
        server.localhost_client().insert([1.0], {"q": 1.0})
    for path in (directory / "manifest").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(reprise.StatusError) as raised:
        serve(storage=directory)
    text = str(raised.value)
    assert text.startswith(f"{directory}: ") and raised.value.code == "DATA_LOSS"
    assert "reprise data verify lists the damage, Storage(path, salvage=True) loads what" in text
