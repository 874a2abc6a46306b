# SPDX-License-Identifier: Apache-2.0
"""Servers with a data directory: acknowledged data survives a kill, and the servers report their
state."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import grpc
import pytest

import harness
from harness import table, wait_until
from messages import Reverb, insertion, item, numbers
from stubs import health, health_service, own, own_service, rpc

Code = grpc.StatusCode
TABLES = [
    table("fifo", sampler="fifo", max_size=100000),
    table("prioritized", sampler=("prioritized", 0.6), max_size=100000),
    table("queue", sampler="fifo", max_size=1000, max_times_sampled=1, limiter=("queue", 1000)),
]
JOURNALS = ["interval", "sync"]


class Durable(harness.Reprise):
    """A server with its own data directory, which stays when the server is killed."""

    def __init__(self, folder, prefix=(), **storage):
        storage = {"data": str(folder / "data"), "checkpoint_every": 0, **storage}
        super().__init__({"tables": TABLES, "storage": storage}, folder)
        self.prefix = list(prefix)

    def command(self):
        return self.prefix + super().command()

    def page(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ready(self):
        """Waits until the server serves: it already listens while it loads."""
        super().ready()
        wait_until(lambda: self.page("/healthz")[0] == 200, harness.START_S, "a server that serves")
        return self

    def info(self):
        return json.loads(self.page("/v1/info")[1])["durable"]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process = None
        return self

    @contextlib.contextmanager
    def client(self):
        with grpc.insecure_channel(self.address) as channel:
            yield Reverb(channel)


@pytest.fixture
def durable(tmp_path):
    """durable(**storage): starts a server, which is stopped at the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **storage: stack.enter_context(Durable(tmp_path, **storage)).start()


def present(client, name, keys):
    """Returns the keys that are in a table."""
    stub = own_service.ReplayStub(client.channel)
    answer = stub.Peek(own.PeekRequest(table=name, keys=keys), timeout=120)
    return {entry.info.item.key for entry in answer.entries}


def checkpoint(client, timeout=120):
    return client.stub.Checkpoint(rpc.CheckpointRequest(), timeout=timeout).checkpoint_path


def test_a_checkpoint_is_at_its_path_and_is_loaded(durable, tmp_path):
    server = durable()
    with server.client() as client:
        before = [client.insert("fifo", i) for i in range(20)]
        path = checkpoint(client)
        after = client.insert("fifo", 99)
    assert path.startswith(str(tmp_path / "data")) and os.path.exists(path)
    server.kill().start()
    with server.client() as client:
        assert present(client, "fifo", before + [after]) == set(before)
        assert client.sample("fifo")[0].info.item.key == before[0]
    assert server.info()["recovered_items"] == 20


def test_the_newest_of_several_is_loaded_and_few_are_kept(durable, tmp_path):
    server = durable(keep_checkpoints=2)
    with server.client() as client:
        paths = []
        for i in range(4):
            client.insert("fifo", i)
            paths.append(checkpoint(client))
    assert len(set(paths)) == 4
    assert [os.path.exists(path) for path in paths] == [False, False, True, True]
    server.kill().start()
    with server.client() as client:
        assert client.size("fifo") == 4


def test_checkpoints_are_written_periodically(durable):
    server = durable(checkpoint_every=0.2)
    with server.client() as client:
        client.insert("fifo", 1)
        wait_until(lambda: server.info()["checkpoints"] >= 2, 20, "two checkpoints")
    wait_until(lambda: "event=checkpoint number=" in server.log(), 10, "a line in the log")
    server.kill().start()
    with server.client() as client:
        assert client.size("fifo") == 1


def test_concurrent_checkpoint_requests_share_checkpoints(durable):
    server = durable()
    began = time.monotonic()
    with server.client() as client:
        client.insert("fifo", 1)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            paths = list(pool.map(lambda _: checkpoint(client), range(32)))
    # One checkpoint when the store was opened, six in a row, and then one every ten seconds.
    most = 7 + int((time.monotonic() - began) / 10)
    assert len(set(paths)) <= server.info()["checkpoints"] <= most


def test_frequent_checkpoints_are_spaced(tmp_path, refused):
    made = Durable(tmp_path)
    made.config["limits"] = {"checkpoint_spacing_ms": 3600000}
    with made.start() as server, server.client() as client:
        for _ in range(6):
            checkpoint(client)
        with refused(Code.DEADLINE_EXCEEDED):
            checkpoint(client, timeout=0.5)
        client.insert("fifo", 1)  # other calls do not wait


def test_checkpoint_without_a_directory_is_refused(tmp_path, refused):
    with harness.Reprise({"tables": TABLES}, tmp_path).start() as server:
        with grpc.insecure_channel(server.address) as channel:
            with refused(Code.INVALID_ARGUMENT, "no checkpointer is configured"):
                checkpoint(Reverb(channel))


def insert_until_killed(server, name, acknowledged, started):
    """Inserts until the connection breaks. Records every confirmed key."""
    with server.client() as client:
        stream = client.inserts()
        try:
            sent = 0
            while True:
                data = numbers(1, sent)
                stream.send(insertion([data], [item(name, data)]))
                sent += 1
                while sent - len(acknowledged) > 50 or not acknowledged:
                    message = stream.receive()
                    if message is None:
                        return
                    acknowledged.extend(message.keys)
                    if len(acknowledged) > 100:
                        started.set()
        except TimeoutError:
            raise
        except Exception:
            return


@pytest.mark.parametrize("mode", JOURNALS)
def test_confirmed_items_survive_a_kill(durable, mode):
    server = durable(durability=mode)
    names = ["fifo", "prioritized"]
    keys = {name: [] for name in names}
    started = [threading.Event() for _ in names]
    threads = [threading.Thread(target=insert_until_killed, args=(server, name, keys[name], e))
               for name, e in zip(names, started)]
    for thread in threads:
        thread.start()
    for event in started:
        assert event.wait(120)
    server.process.send_signal(signal.SIGKILL)
    for thread in threads:
        thread.join(120)
    server.kill().start()
    with server.client() as client:
        for name in names:
            assert len(keys[name]) > 100
            assert present(client, name, keys[name]) == set(keys[name])
    assert server.info()["recovered_records"] > 0


@pytest.mark.parametrize("mode", JOURNALS)
def test_all_kinds_of_changes_survive_a_kill(durable, mode):
    server = durable(durability=mode)
    with server.client() as client:
        stub = own_service.ReplayStub(client.channel)
        keys = [client.insert("prioritized", i) for i in range(6)]
        client.mutate("prioritized", {keys[0]: 7.5}, [keys[1]])
        stub.Update(own.UpdateRequest(
            table="prioritized", updates=[{"key": keys[2], "priority": 2.5}]), timeout=120)
        stub.Delete(own.DeleteRequest(table="prioritized", keys=[keys[3]]), timeout=120)
        client.insert("fifo", 1)
        client.reset("fifo")
        client.insert("queue", 1)
        client.insert("queue", 2)
        client.sample("queue", 1)
        stub.CreateTable(own.CreateTableRequest(options={"name": "new", "max_size": 10}), timeout=120)
        client.insert("new", 5)
        stub.CreateTable(own.CreateTableRequest(options={"name": "gone", "max_size": 10}), timeout=120)
        stub.DropTable(own.DropTableRequest(table="gone"), timeout=120)
        stub.AlterTable(own.AlterTableRequest(table="new", max_size=7), timeout=120)
        stub.PauseTable(own.PauseTableRequest(table="new", side=own.SIDE_SAMPLES), timeout=120)
        client.insert("fifo", 2)  # when this is confirmed, the sample of the queue is in the journal, too
    server.kill().start()
    with server.client() as client:
        stub = own_service.ReplayStub(client.channel)
        assert present(client, "prioritized", keys) == {keys[0], keys[2], keys[4], keys[5]}
        found = stub.Peek(own.PeekRequest(table="prioritized", keys=keys[:3]), timeout=120)
        assert [e.info.item.priority for e in found.entries] == [7.5, 2.5]
        assert client.size("fifo") == 1
        assert client.size("queue") == 1
        assert client.info("new").max_size == 7 and client.size("new") == 1
        assert "gone" not in [t.name for t in client.info().table_info]
        [status] = stub.Status(own.StatusRequest(table="new"), timeout=120).tables
        assert status.samples_paused and not status.inserts_paused


def test_a_kill_in_a_checkpoint_loses_nothing(durable):
    server = durable(durability="sync")
    with server.client() as client:
        keys = [client.insert("fifo", i) for i in range(50)]
        calls = [client.stub.Checkpoint.future(rpc.CheckpointRequest(), timeout=120)
                 for _ in range(4)]
        keys += [client.insert("fifo", i) for i in range(50)]
        server.kill()
        del calls
    server.start()
    with server.client() as client:
        assert present(client, "fifo", keys) == set(keys)


def test_a_server_that_is_stopped_writes_a_last_checkpoint(durable):
    server = durable()
    with server.client() as client:
        keys = [client.insert("fifo", i) for i in range(10)]
    assert server.stop() == 0
    server.start()
    with server.client() as client:
        assert present(client, "fifo", keys) == set(keys)


def test_no_final_checkpoint_skips_the_last_checkpoint(durable):
    server = durable(no_final_checkpoint=True)
    with server.client() as client:
        client.insert("fifo", 1)
    assert server.stop() == 0
    server.start()
    with server.client() as client:
        assert client.size("fifo") == 0


@pytest.mark.parametrize("mode", JOURNALS)
def test_confirmations_are_sent_before_the_server_stops(durable, mode):
    server = durable(durability=mode)
    with server.client() as client:
        stream = client.inserts()
        data = [numbers(1, i) for i in range(200)]
        for chunk in data:
            stream.send(insertion([chunk], [item("fifo", chunk)]))
        stream.half_close()
        server.process.send_signal(signal.SIGTERM)
        confirmed = sum((list(m.keys) for m in stream.rest()), [])
    server.process.wait(120)
    server.stop()
    server.start()
    with server.client() as client:
        assert present(client, "fifo", confirmed) == set(confirmed)


def test_a_directory_in_use_is_refused(durable, tmp_path):
    durable()
    second = Durable(tmp_path)
    second.launch()
    assert second.process.wait(120) == 1
    assert "start_failed" in second.log() and str(tmp_path / "data") in second.log()


def test_a_table_with_changed_options_is_refused_unless_allowed(tmp_path):
    first = Durable(tmp_path)
    with first.start() as server, server.client() as client:
        client.insert("fifo", 1)
    other = Durable(tmp_path)
    other.config["tables"] = [table("fifo", sampler="lifo", max_size=100000)] + TABLES[1:]
    other.launch()
    assert other.process.wait(120) == 1
    assert "fifo" in other.log()
    other.config["storage"]["accept_changes"] = True
    with other.start() as server, server.client() as client:
        assert client.size("fifo") == 1


@pytest.mark.seconds(120)
def test_a_loading_server_is_not_serving(durable):
    server = durable()
    rows = 1000
    with server.client() as client:
        stream = client.inserts()
        for i in range(60):
            data = numbers(rows, i)
            items = [item("fifo", [(data, j, 1)]) for j in range(rows)]
            stream.send(insertion([data], items))
        assert len(stream.confirmed(60 * rows, 60)) == 60 * rows
    assert server.stop() == 0
    server.launch()
    harness.Reprise.ready(server)  # it listens
    seen = set()
    with grpc.insecure_channel(server.address) as channel:
        stub = health_service.HealthStub(channel)
        client = Reverb(channel)
        while "serving" not in seen:
            status, text = server.page("/healthz")
            assert (status, text.split(":")[0].strip()) in [(503, "loading"), (200, "serving")]
            seen.add(text.split(":")[0].strip())
            if status == 200:
                break
            try:  # it may have begun to serve meanwhile
                assert client.size("fifo") == 60 * rows
            except grpc.RpcError as error:
                assert error.code() == Code.UNAVAILABLE
                assert "loading its data" in error.details()
        assert stub.Check(health.HealthCheckRequest()).status == health.HealthCheckResponse.SERVING
        assert client.size("fifo") == 60 * rows


def test_durability_is_reported_in_status_info_and_metrics(durable):
    server = durable(durability="sync")
    first = server.info()["checkpoints"]  # a new directory gets a checkpoint at once
    with server.client() as client:
        client.insert("fifo", 1)
        checkpoint(client)
        stub = own_service.ReplayStub(client.channel)
        status = stub.Status(own.StatusRequest(without_tables=True), timeout=120)
        every = stub.Status(own.StatusRequest(), timeout=120)
    assert not status.tables and len(every.tables) == len(TABLES)
    told = status.durability
    assert told.mode == own.DURABILITY_SYNC and not told.degraded
    assert told.checkpoints == first + 1 == told.last_checkpoint
    assert told.lsn == told.safe_lsn >= 1
    info = server.info()
    assert info["mode"] == "sync" and info["checkpoints"] == first + 1
    assert info["last_checkpoint"]["bytes"] > 0
    _, metrics = server.page("/metrics")
    assert f"reprise_durable_checkpoints_total {first + 1}\n" in metrics
    assert 'reprise_durable_mode{mode="sync"} 1\n' in metrics


def test_the_command_line_shows_the_durability(durable):
    server = durable(durability="interval")

    def run(*words):
        done = subprocess.run([harness.binary(), *words, "--server", server.address],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with server.client() as client:
        client.insert("fifo", 1)
    count = server.info()["checkpoints"] + 2
    path = run("checkpoint").strip()
    assert os.path.exists(path)
    assert json.loads(run("checkpoint", "--json"))["path"] != path
    assert f"storage interval: checkpoint {count} " in run("info")
    [shard] = json.loads(run("info", "--storage", "--json"))
    assert shard["durability"] == "interval" and shard["checkpoints"] == count
    [top] = json.loads(run("top", "--count", "1", "--json"))["storage"]
    assert top.keys() == shard.keys()
    # Ages grow between the two commands, and the journal may be synced and shortened.
    for key in ("shard", "durability", "degraded", "checkpoints", "last_checkpoint",
                "last_checkpoint_seconds", "last_checkpoint_bytes", "lsn"):
        assert top[key] == shard[key], key


def private_tmpfs():
    """Returns a command that runs its further arguments with a small private disk, mounted at its
    first argument. None if that is not allowed."""
    if shutil.which("unshare") is None:
        return None
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        return None
    return ["unshare", "-rm", "sh", "-c",
            'd=$1; shift; mount -t tmpfs -o size=24m none "$d" && exec "$@"', "sh"]


@pytest.mark.seconds(120)
@pytest.mark.parametrize("mode", ["checkpoint", "interval", "sync"])
def test_a_full_disk_is_reported_and_survived(tmp_path, mode):
    prefix = private_tmpfs()
    if prefix is None:
        pytest.skip("no mounts are allowed here")
    (tmp_path / "data").mkdir()
    made = Durable(tmp_path, prefix + [str(tmp_path / "data")], durability=mode)
    with made.start() as server, server.client() as client:
        # The path in the mount namespace of the server.
        ballast = f"/proc/{server.process.pid}/root{tmp_path}/data/ballast"
        first = client.insert("fifo", 1)
        checkpoint(client)
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        large = numbers(1000000)  # more than the reserve
        stream = client.inserts()
        stream.send(insertion([large], [item("fifo", large)]))
        if mode == "checkpoint":
            wait_until(lambda: client.size("fifo") == 2, 20, "the item")
            with pytest.raises(grpc.RpcError) as error:
                checkpoint(client)
            assert error.value.code() in (Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE)
        wait_until(lambda: server.page("/healthz")[1].startswith("degraded"), 20, "degraded")
        assert server.info()["degraded"] and server.info()["trouble"]
        if mode == "sync":
            assert stream.silent(0.5), "confirmed what is not on disk"
        assert client.size("fifo") == 2  # it continues to serve
        os.unlink(ballast)
        if mode == "checkpoint":
            checkpoint(client)
        wait_until(lambda: server.page("/healthz")[1] == "serving\n", 30, "well again")
        assert len(stream.confirmed(1)) == 1
        assert present(client, "fifo", [first]) == {first}
