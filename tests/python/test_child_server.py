# SPDX-License-Identifier: Apache-2.0
"""Servers in a child process."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from test_server import TIMEOUT, connect, insert, refuses, sample, table, wait_for

import reprise
from reprise import _core, child_server, errors, local_path, local_servers, specs


def _runs(pid):
    """Returns whether the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestInAChild:
    def test_child_is_another_process(self):
        with reprise.Server([table()], where="child") as server:
            assert server.pid != os.getpid()
            assert os.path.exists(f"/proc/{server.pid}") or sys.platform != "linux"
            assert server.port not in local_servers.stores

    def test_can_be_killed(self):
        t = table()
        server = reprise.Server([t], where="child")
        path = local_path.find(server.port)
        server.kill()
        assert not server.running
        assert refuses(server.port)
        assert not os.path.exists(path)
        with pytest.raises(errors.StatusError, match="ended") as caught:
            t.info
        assert caught.value.code == "UNAVAILABLE"
        server.wait()
        server.stop()

    @pytest.mark.parametrize("transport", [None, "tcp"])
    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_killing_the_child_ends_waiting_calls(self, transport, end):
        """Calls that wait for a sample or for a full table end at once, not at their deadline."""
        server = reprise.Server([table(), reprise.Table.queue("full", 1)], where="child")
        client = reprise.Client(f"localhost:{server.port}", transport=transport)
        client.insert(np.zeros(2), {"full": 1.0}, timeout=TIMEOUT)
        told = []

        def wait(what):
            try:
                what()
            except errors.StatusError as error:
                told.append((error.code, str(error)))

        def write():
            with client.trajectory_writer(1) as writer:
                writer.append(np.zeros(2))
                writer.create_item("full", 1.0, writer.history[-1:])
                writer.flush()

        waits = [
            lambda: next(iter(client.sample("t", 1))),
            lambda: client.insert(np.zeros(2), {"full": 1.0}),
            write,
        ]
        threads = [threading.Thread(target=wait, args=(w,), daemon=True) for w in waits]
        for thread in threads:
            thread.start()
        until = time.monotonic() + TIMEOUT
        while len(server.why()) < len(waits) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(server.why()) == len(waits)

        getattr(server, end)()

        for thread in threads:
            thread.join(TIMEOUT)
        assert not any(thread.is_alive() for thread in threads)
        assert [code for code, _ in told] == ["CANCELLED"] * len(waits), told
        server.stop()

    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_clients_go_on_with_the_other_shard(self, end):
        """A running sampler and writer lose a shard that this process stops, and no more than that."""
        shards = [reprise.Server([table()], where="child") for _ in range(2)]
        client = reprise.Client([f"localhost:{shard.port}" for shard in shards])
        left = reprise.Client(f"localhost:{shards[1].port}")
        writer = client.trajectory_writer(1)

        def write(count):
            for _ in range(count):
                writer.append(np.zeros(2))
                writer.create_item("t", 1.0, writer.history[-1:])
            writer.flush(timeout_ms=TIMEOUT * 1000)

        write(20)
        batches = iter(client.sampler("t", 8, timeout=TIMEOUT))
        assert next(batches).size == 8

        getattr(shards[0], end)()

        before = left.server_info()["t"].current_size
        write(20)
        assert left.server_info()["t"].current_size == before + 20
        assert [next(batches).size for _ in range(100)] == [8] * 100
        assert len(list(client.sample("t", 20, timeout=TIMEOUT))) == 20
        client.insert(np.zeros(2), {"t": 1.0}, timeout=TIMEOUT)

        # The last shard ends what waits, as the only server of a client does.
        shards[1].stop()
        with pytest.raises((errors.StatusError, StopIteration)):
            while True:
                next(batches)

    def test_wait_ends_when_the_child_dies(self):
        server = reprise.Server([table()], where="child")
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        assert not server.running
        server.stop()

    def test_ignores_ctrl_c(self):
        with reprise.Server([table()], where="child") as server:
            os.kill(server.pid, signal.SIGINT)
            assert len(connect(server).tables(timeout=TIMEOUT)) == 1

    @pytest.mark.parametrize("how", ["exit", "kill"])
    def test_dies_with_its_parent(self, how):
        # A forked child of the parent holds the pipe, and must not keep the server alive.
        program = """
            import os, signal, sys, time, reprise
            server = reprise.Server([reprise.Table.queue("q", 3)], where="child")
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            print(server.port, server.pid, pid, flush=True)
            if sys.argv[1] == "exit":
                sys.exit()
            time.sleep(60)
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), how],
            stdout=subprocess.PIPE,
            text=True,
        )
        port, pid, forked = map(int, process.stdout.readline().split())
        try:
            if how == "kill":
                process.kill()
            process.wait(TIMEOUT)
            wait_for(lambda: refuses(port), "the server outlived its parent")
            wait_for(lambda: not _runs(pid), "the process outlived its parent")
            assert local_path.find(port) is None
        finally:
            os.kill(forked, signal.SIGKILL)
            process.stdout.close()

    def test_child_stops_when_the_server_is_collected(self):
        server = reprise.Server([table()], where="child")
        port, pid = server.port, server.pid
        del server
        gc.collect()
        assert refuses(port)
        assert not _runs(pid)

    def test_is_left_alone_by_a_forked_child(self):
        t = table()
        with reprise.Server([t], where="child") as server:
            pid = os.fork()
            if pid == 0:
                try:
                    t.info
                except errors.StatusError as error:
                    server.stop()
                    os._exit(7 if error.code == "FAILED_PRECONDITION" else 1)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            assert server.running
            assert t.info.current_size == 0

    def test_several_threads_can_use_the_child(self):
        t = table()
        with reprise.Server([t], where="child"):
            sizes = []
            ask = [
                threading.Thread(
                    target=lambda: sizes.extend(t.info.max_size for _ in range(20))
                )
                for _ in range(4)
            ]
            for thread in ask:
                thread.start()
            for thread in ask:
                thread.join(TIMEOUT)
            assert sizes == [100] * 80

    def test_writes_nothing_to_our_output(self, capfd):
        with reprise.Server([table()], where="child"):
            pass
        captured = capfd.readouterr()
        assert (captured.out, captured.err) == ("", "")

    def test_process_that_does_not_start(self, monkeypatch):
        monkeypatch.setattr(child_server, "_PROGRAM", "import sys; sys.exit(3)")
        with pytest.raises(errors.StatusError, match="ended with 3") as caught:
            reprise.Server([table()], where="child")
        assert caught.value.code == "UNAVAILABLE"

    def test_process_that_hangs(self, monkeypatch):
        monkeypatch.setattr(child_server, "_PROGRAM", "import time; time.sleep(60)")
        monkeypatch.setattr(child_server, "_START_TIMEOUT", 0.5)
        with pytest.raises(errors.StatusError, match="did not start in 0.5 s"):
            reprise.Server([table()], where="child")


class TestSignatureAsJson:
    @pytest.mark.parametrize(
        "signature",
        [
            None,
            specs.TensorSpec((), "float32"),
            specs.TensorSpec(None, "bool", "n"),
            {"a": [specs.TensorSpec((None, 2), str)], "b": (specs.TensorSpec((), "int8"),)},
        ],
    )
    def test_round_trip(self, signature):
        node = child_server.signature_to_json(signature)
        assert child_server.signature_from_json(node) == signature


def test_a_killed_server_says_that_it_has_ended():
    with reprise.Server([table()], where="child") as server:
        assert "ended" not in repr(server)
        os.kill(server.pid, signal.SIGKILL)
        wait_for(lambda: not server.running, "the end of the process")
        assert "ended='signal 9'" in repr(server)


def test_shards_that_are_away_are_the_reason_of_a_sample():
    servers = [reprise.Server([table()]) for _ in range(2)]
    client = reprise.Client([f"localhost:{server.port}" for server in servers], transport="tcp")
    client.server_info()
    for server in servers:
        server.stop()
    with pytest.raises(errors.DeadlineExceededError, match=r"refused; no shard is known to have items") as raised:
        next(client.sample("t", timeout=1))
    assert "first insert" not in str(raised.value)


def test_calls_of_a_client_say_that_the_process_has_ended(caplog):
    server = reprise.Server([table()], where="child")
    clients = [reprise.Client(f"localhost:{server.port}", transport=how) for how in (None, "tcp")]
    writers = []
    for client in clients:
        client.insert(np.zeros(2), {"t": 1.0}, timeout=TIMEOUT)
        writers.append(client.trajectory_writer(1))
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: refuses(server.port), "the end of the process")

    def write(writer):
        writer.append(np.zeros(2))
        writer.create_item("t", 1.0, writer.history[-1:])
        writer.flush(timeout_ms=150)

    ended = rf"process {server.pid} has ended \(signal 9\): make a new Server"
    for client, writer in zip(clients, writers):
        for call in (
            lambda: client.server_info(timeout=0.15),
            lambda: client.details(0.15, "t"),
            lambda: client.reset("t", timeout=0.15),
            lambda: client.checkpoint(timeout=0.15),
            lambda: client.why(timeout=0.15),
            lambda: client.insert(np.zeros(2), {"t": 1.0}, timeout=0.15),
            lambda: next(client.sample("t", timeout=0.15)),
            lambda: next(iter(client.sampler("t", 2, timeout=0.15))),
            lambda: client.rollouts("r").info(timeout=0.15),
            lambda: write(writer),
            lambda: server.why(),
            lambda: server._tables[0].info,
        ):
            with pytest.raises((errors.ReverbError, errors.StatusError), match=ended) as raised:
                call()
            assert str(raised.value).count("has ended") == 1
        writer.close()
    reprise._log.say_waiting(2.0, f"localhost:{server.port}: Connection refused")
    assert f"process {server.pid} has ended" in caplog.text

    server.stop()
    assert not local_servers.children
    assert local_servers.explain("localhost:1: refused") == "localhost:1: refused"


def test_a_stop_that_waits_says_so(caplog, monkeypatch):
    monkeypatch.setattr(child_server, "_STOP_TIMEOUT", 1.0)
    server = reprise.Server([table()], where="child")
    monkeypatch.setattr(reprise._log, "_FIRST_S", 0.1)
    caplog.clear()
    os.kill(server.pid, signal.SIGSTOP)
    server.stop()
    texts = [record.getMessage() for record in caplog.records]
    assert f"the server's process {server.pid} has not ended after stop(): it does not respond" in texts[0]
    assert texts[0].startswith("still waiting after")
    assert texts[-1] == f"the server's process {server.pid} did not end within 1 s of stop() and was killed"


def test_a_process_that_has_ended_is_not_named_for_a_later_server_of_its_port():
    child = reprise.Server([table()], where="child")
    port = child.port
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: refuses(port), "the end of the process")
    other = reprise.Server([table()], port=port)
    client = reprise.Client(f"localhost:{port}", transport="tcp")
    client.insert(np.zeros(2), {"t": 1.0}, timeout=TIMEOUT)
    other.stop()
    with pytest.raises(errors.DeadlineExceededError, match="this process has stopped the server") as raised:
        client.server_info(timeout=0.15)
    assert str(child.pid) not in str(raised.value)
    child.stop()


def test_a_process_that_has_ended_is_not_named_for_another_program_on_its_port(monkeypatch):
    monkeypatch.setattr(child_server, "_LOSS_S", 0.2)
    child = reprise.Server([table()], where="child")
    client = reprise.Client(f"localhost:{child.port}", transport="tcp")
    client.server_info(timeout=TIMEOUT)
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: refuses(child.port), "the end of the process")
    store = _core.Store()
    table()._add_to(store)
    other = _core.Server(store, [f"localhost:{child.port}"])  # which is not registered, as in another program

    wait_for(lambda: client.server_info(timeout=TIMEOUT) and child.port not in local_servers.children,
             "calls of the client some time after the end of the process")
    other.stop()
    with pytest.raises(errors.DeadlineExceededError) as raised:
        client.server_info(timeout=0.15)
    assert str(child.pid) not in str(raised.value)
    child.stop()


@pytest.mark.parametrize("where", ["process", "child"])
def test_the_log_is_on_stderr(where, capfd):
    for level in ("info", "warning"):
        with reprise.Server([table()], where=where, log=level) as server:
            port = server.port
        told = capfd.readouterr().err
        for event in ("serving", "stopping"):
            assert (f"reprise: info: {event} port={port}" in told) == (level == "info")
