# SPDX-License-Identifier: Apache-2.0
"""Servers: in this process, in a child process, and one that is already running."""

import gc
import hashlib
import http.client
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import reprise
from reprise import _core, errors, local_path, local_servers, rate_limiters
from reprise import selectors, specs
from reprise import server as server_module

TIMEOUT = 120.0


def table(name="t", **overrides):
    options = dict(
        sampler=selectors.Uniform(),
        remover=selectors.Fifo(),
        max_size=100,
        rate_limiter=rate_limiters.MinSize(1),
    )
    return reprise.Table(name, **{**options, **overrides})


def connect(server):
    """Returns a client over the network, wherever the server runs."""
    return _core.Client(server.address)


def insert(client, name="t", count=1):
    writer = _core.StepWriter(client, 1)
    for i in range(count):
        writer.append([np.float32(i)])
        writer.create_item(name, 1, 1.0, timeout=TIMEOUT)
    writer.flush(timeout=TIMEOUT)


def sample(client, name="t", count=1):
    sampler = _core.Sampler(client, name, max_samples=count)
    found = []
    while len(found) < count:
        found += sampler.next(count - len(found), timeout_ms=int(TIMEOUT * 1000))
    return found


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.005)


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    except (ConnectionResetError, TimeoutError):  # it ends while the connection begins
        return False
    return False


@pytest.fixture(scope="module")
def elsewhere():
    """A server that is already running."""
    with reprise.Server([table("theirs")], where="child") as server:
        yield server


@pytest.fixture(params=["process", "child", "address"])
def where(request):
    if request.param == "address":
        return request.getfixturevalue("elsewhere").address
    return request.param


@pytest.fixture
def name(request):
    """A name of a table that no other test has, since the tests share the running server."""
    return re.sub(r"\W", "_", request.node.name)


class TestEveryPlace:
    def test_serves_its_tables(self, where, name):
        t = table(name)
        with reprise.Server([t], where=where) as server:
            client = connect(server)
            insert(client, name, 3)
            assert len(sample(client, name, 2)) == 2
            assert t.info.current_size == 3
            assert t.info.rate_limiter_info.insert_stats.completed == 3
            assert t.info.rate_limiter_info.sample_stats.completed >= 2

    def test_can_sample_follows_the_table(self, where, name):
        t = table(name, rate_limiter=rate_limiters.MinSize(2))
        with reprise.Server([t], where=where) as server:
            client = connect(server)
            assert not t.can_sample(1)
            insert(client, name)
            assert not t.can_sample(1)
            insert(client, name)
            assert t.can_sample(1)
            assert t.can_insert(1)

    def test_limiter_bounds_inserts(self, where, name):
        t = reprise.Table.queue(name, 3)
        with reprise.Server([t], where=where) as server:
            insert(connect(server), name, 2)
            assert t.can_insert(1)
            assert not t.can_insert(2)
            assert t.can_sample(2)
            assert not t.can_sample(3)

    def test_paused_side_may_not_go_ahead(self, where, name):
        t = table(name)
        with reprise.Server([t], where=where) as server:
            client = connect(server)
            insert(client, name)
            client.pause(name, 2, timeout=TIMEOUT)
            assert not t.can_sample(1) and t.can_insert(1)
            client.pause(name, 1, timeout=TIMEOUT)
            assert not t.can_insert(1)

    @pytest.mark.parametrize("call", ["can_sample", "can_insert"])
    def test_count_must_be_positive(self, where, name, call):
        t = table(name)
        with reprise.Server([t], where=where):
            with pytest.raises(ValueError, match=">= 1"):
                getattr(t, call)(0)

    def test_signature_comes_back(self, where, name):
        spec = {
            "a": [specs.TensorSpec((2, None), "float32", "x")],
            "b": specs.TensorSpec((), str),
        }
        t = table(name, signature=spec)
        with reprise.Server([t], where=where) as server:
            assert t.info.signature == spec
            found = {info["name"]: info for info in connect(server).tables(timeout=TIMEOUT)}
            assert found[name]["signature"] == spec

    def test_why_lists_waiting_calls(self, where, name):
        limiter = rate_limiters.MinSize(5)
        t = table(name, rate_limiter=limiter)
        with reprise.Server([t], where=where) as server:
            sampler = _core.Sampler(connect(server), name)
            thread = threading.Thread(target=lambda: sampler.next(1, timeout_ms=30000))
            thread.start()
            wait_for(t.why, "nobody waits")
            waiting = limiter.why()[0]
            assert [w.table for w in server.why()] == [name]
            assert waiting.table == name
            assert waiting.side == "sample"
            assert waiting.wanted >= 1 and waiting.done == 0
            assert waiting.seconds >= 0
            assert "5" in waiting.why
            assert name in str(waiting) and waiting.why in str(waiting)
            insert(connect(server), name, 5)
            thread.join(TIMEOUT)
            assert not thread.is_alive()
            sampler.close()

    def test_replace_is_a_new_table(self, where, name):
        t = table(name)
        with reprise.Server([t], where=where) as server:
            insert(connect(server), name)
            other = t.replace(max_size=7)
            assert other.info.current_size == 0
            assert other.info.max_size == 7
            assert t.info.current_size == 1

    def test_has_text(self, where, name):
        with reprise.Server([table(name)], where=where) as server:
            assert f"port={server.port}" in repr(server)
            assert f"name={name}" in repr(server)

    def test_stop_may_be_called_again(self, where, name):
        server = reprise.Server([table(name)], where=where)
        assert server.running
        assert server.stop() is None
        assert server.stop() is None
        assert not server.running

    def test_wait_ends_with_stop(self, where, name):
        server = reprise.Server([table(name)], where=where)
        thread = threading.Thread(target=server.wait)
        thread.start()
        assert thread.is_alive()
        server.stop()
        thread.join(TIMEOUT)
        assert not thread.is_alive()
        server.wait()


class TestClient:
    def test_of_localhost(self, where, name):
        t = table(name)
        with reprise.Server([t], where=where) as server:
            client = server.localhost_client()
            assert isinstance(client, reprise.Client)
            assert client.server_address == server.address
            client.insert([np.arange(3)], {name: 2.0})
            (step,) = next(client.sample(name))
            assert step.info.priority == 2.0
            assert step.data[0].tolist() == [0, 1, 2]
            assert client.server_info(timeout=120)[name] == t.info

    def test_takes_options(self):
        with reprise.Server([table()]) as server:
            client = server.localhost_client(transport="tcp")
            client.insert([1.0], {"t": 1.0})
            assert not client._client.is_local
            assert server.localhost_client()._client.is_local

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_checkpoint_without_a_checkpointer_is_refused(self, place):
        with reprise.Server([table()], where=place) as server:
            with pytest.raises(ValueError, match=r"^no checkpointer is .* with reprise.Server\(tables, storage"):
                server.localhost_client().checkpoint(timeout=120)

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_needs_its_token(self, place, tmp_path):
        digest = hashlib.sha256(b"secret").hexdigest()
        tokens = tmp_path / "tokens"
        tokens.write_text(f"write actors sha256:{digest}\n")
        tokens.chmod(0o600)
        t = table()
        with reprise.Server([t], where=place, tokens_file=str(tokens)) as server:
            assert local_path.find(server.port) is None
            client = server.localhost_client(transport="tcp")
            with pytest.raises(errors.StatusError) as caught:
                client.server_info(timeout=120)
            assert caught.value.code == "UNAUTHENTICATED"
            server.localhost_client(token="secret").insert([1.0], {"t": 1.0})
            assert t.info.current_size == 1

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_serves_pages_under_the_names_in_page_hosts(self, place):
        names = ["replay.example.com", "other.example.com"]
        with reprise.Server([table()], where=place, page_hosts=names) as server:
            for name, status in [(names[0], 200), (names[1], 200), ("evil.example.com", 421)]:
                connection = http.client.HTTPConnection("localhost", server.port, timeout=TIMEOUT)
                connection.request("GET", "/metrics", headers={"Host": name})
                assert connection.getresponse().status == status
                connection.close()

    @pytest.mark.parametrize("names", [[""], ["a.b,c.d"], [1], [None]])
    def test_page_hosts_are_names(self, names):
        with pytest.raises(ValueError, match="page_hosts"):
            reprise.Server([table()], page_hosts=names)

    def test_speaks_tls(self, tmp_path):
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("no openssl")
        key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
        subprocess.run(
            [
                openssl,
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-keyout",
                key,
                "-out",
                certificate,
            ],
            check=True,
            capture_output=True,
        )
        with reprise.Server([table()], certificate_file=certificate, key_file=key) as server:
            client = server.localhost_client(ca_file=certificate)
            assert list(client.server_info(timeout=120)) == ["t"]


class TestArguments:
    @pytest.mark.parametrize("tables", [None, [], ()])
    def test_needs_a_table(self, tables):
        with pytest.raises(ValueError, match="At least one table must be provided"):
            reprise.Server(tables)

    def test_names_must_differ(self):
        with pytest.raises(ValueError, match="have the same name: a, b"):
            reprise.Server([table("a"), table("b"), table("a"), table("b"), table("c")])

    @pytest.mark.parametrize("port", ["x", 1.5])
    def test_port_must_be_whole(self, port):
        with pytest.raises(TypeError, match="port"):
            reprise.Server([table()], port=port)

    @pytest.mark.parametrize("port", [-1, 65536])
    def test_port_must_be_in_range(self, port):
        with pytest.raises(ValueError, match="port"):
            reprise.Server([table()], port=port)

    @pytest.mark.parametrize("port", [None, 0])
    def test_port_is_found(self, port):
        with reprise.Server([table()], port) as server:
            assert server.port > 0

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_port_can_be_chosen(self, place):
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        with reprise.Server([table()], port=port, where=place) as server:
            assert server.port == port

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_port_in_use(self, place):
        with reprise.Server([table()]) as server:
            with pytest.raises(ValueError, match="in use"):
                reprise.Server([table()], port=server.port, where=place)

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_network_needs_credentials(self, place):
        with pytest.raises(errors.StatusError, match="credentials") as caught:
            reprise.Server([table()], address="0.0.0.0", where=place)
        assert caught.value.code == "FAILED_PRECONDITION"
        assert "--insecure (in Python insecure=True)" in str(caught.value)

    def test_insecure_allows_the_network(self):
        with reprise.Server([table()], address="0.0.0.0", insecure=True) as server:
            assert server.address == f"localhost:{server.port}"
            assert len(connect(server).tables(timeout=TIMEOUT)) == 1

    def test_several_addresses(self):
        with reprise.Server([table()], address=["127.0.0.1"]) as server:
            assert server.address == f"127.0.0.1:{server.port}"
            assert len(connect(server).tables(timeout=TIMEOUT)) == 1

    @pytest.mark.parametrize("host", ["::1", "[::1]"])
    def test_address_of_ipv6(self, host):
        if not _has_ipv6():
            pytest.skip("no IPv6 here")
        with reprise.Server([table()], address=host) as server:
            assert server.address == f"[::1]:{server.port}"
            assert len(connect(server).tables(timeout=TIMEOUT)) == 1

    @pytest.mark.parametrize("options", [{"port": 8000}, {"address": "localhost"}])
    def test_a_running_server_refuses_port_and_address(self, elsewhere, options):
        with pytest.raises(ValueError, match="has its own port and address"):
            reprise.Server([table("other")], where=elsewhere.address, **options)

    def test_no_address(self):
        with pytest.raises(ValueError, match="at least one host"):
            reprise.Server([table()], address=[])

    @pytest.mark.parametrize("place", ["thread", "", "host:port"])
    def test_where_must_be_known(self, place):
        with pytest.raises(ValueError, match="where must be"):
            reprise.Server([table()], where=place)

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_policy_must_be_known(self, place):
        with pytest.raises(ValueError, match="policy"):
            reprise.Server([table()], policy="shrink", where=place)

    @pytest.mark.parametrize("argument", ["max_bytes", "seed", "threads"])
    def test_numbers_must_not_be_negative(self, argument):
        with pytest.raises(ValueError, match=argument):
            reprise.Server([table()], **{argument: -1})

    @pytest.mark.parametrize("place", ["process", "child"])
    @pytest.mark.parametrize(
        "limits, error",
        [
            ({"nothing": 1}, ValueError),
            ({"tables": "x"}, TypeError),
            ({"tables": -1}, OverflowError),
        ],
    )
    def test_limits_are_checked(self, place, limits, error):
        with pytest.raises(error):
            reprise.Server([table()], limits=limits, where=place)

    @pytest.mark.parametrize("place", ["process", "child"])
    def test_budget_is_kept(self, place):
        t = table(max_size=1000)
        with reprise.Server([t], max_bytes=2000, where=place) as server:
            insert(connect(server), count=300)
            assert t.details["bytes"] <= 2000
            assert 0 < t.info.current_size < 300

    def test_seed_repeats_a_run(self):
        draws = []
        for _ in range(2):
            t = table()
            with reprise.Server([t], seed=42) as server:
                client = _core.Client.local(server._place.store)
                insert(client, count=50)
                found = sample(client, count=20)
                draws.append([float(s[5][0].ravel()[0]) for s in found])
        assert draws[0] == draws[1]
        assert len(set(draws[0])) > 1


class TestTables:
    def test_belongs_to_one_server_at_a_time(self):
        t = table()
        with reprise.Server([t]) as server:
            with pytest.raises(ValueError, match=f"another server already: {server.address}"):
                reprise.Server([t])

    def test_can_be_used_again(self):
        t = table()
        with reprise.Server([t]) as server:
            insert(connect(server))
            assert t.info.current_size == 1
        with reprise.Server([t]):
            assert t.info.current_size == 0

    def test_can_be_read_after_the_server(self):
        t = table()
        with reprise.Server([t]) as server:
            insert(connect(server))
        assert t.info.current_size == 1

    def test_outlives_its_server(self):
        t = table()
        server = reprise.Server([t])
        insert(connect(server))
        del server
        gc.collect()
        assert t.info.current_size == 1

    def test_share_chunks(self):
        a, b = table("a"), table("b")
        with reprise.Server([a, b]) as server:
            writer = _core.StepWriter(connect(server), 1)
            writer.append([np.zeros(1000, np.float32)])
            writer.create_item("a", 1, 1.0, timeout=TIMEOUT)
            writer.create_item("b", 1, 1.0, timeout=TIMEOUT)
            writer.flush(timeout=TIMEOUT)
            both = server._place.store.info()["bytes"]
            each = a.details["bytes"]
            assert b.details["bytes"] == each
            assert each < both < 2 * each  # an item each, and one chunk


class TestInThisProcess:
    def test_is_found_by_its_port(self):
        with reprise.Server([table()]) as server:
            store = local_servers.stores[server.port]
            assert store.tables() == ["t"]
            for host in ("localhost", "127.0.0.1", "[::1]"):
                assert server_module.local_store(f"{host}:{server.port}") is store
            assert server_module.local_store(f"elsewhere:{server.port}") is None
            assert server_module.local_store("localhost") is None
            assert server_module.local_store(f"unix:/tmp/{server.port}") is None
        assert server.port not in local_servers.stores

    def test_is_not_found_in_a_forked_child(self):
        with reprise.Server([table()]) as server:
            pid = os.fork()
            if pid == 0:
                ok = not local_servers.stores and not server.running
                server.stop()
                os._exit(7 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            assert len(connect(server).tables(timeout=TIMEOUT)) == 1
            assert local_path.find(server.port) is not None

    def test_stops_when_it_is_dropped(self):
        server = reprise.Server([table()])
        port = server.port
        del server
        gc.collect()
        assert refuses(port)
        assert port not in local_servers.stores

    def test_stop_ends_waits(self):
        t = table()
        server = reprise.Server([t])
        sampler = _core.Sampler(_core.Client.local(server._place.store), "t")
        caught = []

        def wait():
            try:
                caught.append(sampler.next(1, timeout_ms=30000))
            except errors.StatusError as error:
                caught.append(error.code)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_for(t.why, "nobody waits")
        server.stop()
        thread.join(TIMEOUT)
        assert caught == ["CANCELLED"]

    def test_stops_with_the_interpreter(self):
        program = """
            import reprise
            server = reprise.Server([reprise.Table.queue("q", 3)])
            keep = [server]
            keep.append(keep)
            print(reprise.local_path.find(server.port) if hasattr(reprise, "local_path")
                  else __import__("reprise.local_path").local_path.find(server.port))
        """
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert not os.path.exists(result.stdout.strip())

    def test_ctrl_c_ends_wait_and_server(self):
        program = """
            import os, signal, threading, reprise
            server = reprise.Server([reprise.Table.queue("q", 3)])
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                server.wait()
            except KeyboardInterrupt:
                print("interrupted", server.running)
        """
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.stdout == "interrupted False\n", result.stderr

    def test_pid_is_ours(self):
        with reprise.Server([table()]) as server:
            assert server.pid == os.getpid()
            assert server.where == "process"
            with pytest.raises(ValueError, match="child"):
                server.kill()


class TestElsewhere:
    def test_is_left_running(self, elsewhere):
        reprise.Server([table("kept")], where=elsewhere.address).stop()
        names = [info["name"] for info in connect(elsewhere).tables(timeout=TIMEOUT)]
        assert "theirs" in names and "kept" in names

    def test_uses_existing_tables(self, elsewhere):
        theirs = table("theirs")
        insert(connect(elsewhere), "theirs")
        with reprise.Server([theirs], where=elsewhere.address) as server:
            assert theirs.info.current_size >= 1
            assert server.pid == 0
            assert server.port == elsewhere.port

    def test_refuses_tables_with_other_options(self, elsewhere):
        with pytest.raises(ValueError, match="max_size 100 and not 7"):
            reprise.Server([table("theirs", max_size=7)], where=elsewhere.address)
        with pytest.raises(ValueError, match="sampler"):
            reprise.Server(
                [table("theirs", sampler=selectors.Prioritized(0.5))], where=elsewhere.address
            )

    def test_can_be_named_by_a_client(self, elsewhere):
        t = table("by_client")
        client = reprise.Client(elsewhere.address)
        with reprise.Server([t], where=client) as server:
            assert server.where == server.address == elsewhere.address
            client.insert([1.0], {"by_client": 1.0})
            assert t.info.current_size == 1

    def test_table_that_was_dropped(self, elsewhere):
        t = table("short")
        with reprise.Server([t], where=elsewhere.address):
            connect(elsewhere).drop_table("short", timeout=TIMEOUT)
            with pytest.raises(errors.StatusError) as caught:
                t.info
            assert caught.value.code == "NOT_FOUND"


def _has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


def test_items_of_other_clients_outlive_a_stop():
    """An item that waits is not dropped when its server stops, and another one gets it."""
    table = lambda size: reprise.Table("t", reprise.selectors.Fifo(), reprise.selectors.Fifo(), size,  # noqa: E731
                                       reprise.rate_limiters.Queue(size))
    server = reprise.Server([table(1)])
    port = server.port
    with reprise.Client(f"localhost:{port}", transport="tcp").trajectory_writer(1) as writer:
        for value in (1.0, 2.0):
            writer.append([value])
            writer.create_item("t", 1.0, [writer.history[0][-1:]])
        with pytest.raises(errors.DeadlineExceededError):
            writer.flush(timeout=0.5)
        server.stop()
        server = reprise.Server([table(10)], port=port)
        writer.flush(timeout=60)
        assert server.localhost_client().server_info()["t"].current_size >= 1
    server.stop()


def unreferenced_server():
    return reprise.Server([reprise.Table.queue("t", 10)]).localhost_client()


@pytest.mark.parametrize("use", [
    lambda c: c.insert([1.0], {"t": 1.0}, timeout=5),
    lambda c: write(c.trajectory_writer(1)),
    lambda c: write(c.writer(1)),
    lambda c: next(iter(filled(c).sampler("t", 1, timeout=5))),
    lambda c: next(filled(c).sample("t", timeout=5)),
])
def test_a_client_keeps_its_server(use):
    use(unreferenced_server())


def write(writer):
    gc.collect()
    writer.append([1.0])
    if isinstance(writer, reprise.TrajectoryWriter):
        writer.create_item("t", 1.0, [writer.history[0][-1:]])
    else:
        writer.create_item("t", 1, 1.0)
    writer.flush()


def filled(client):
    client.insert([1.0], {"t": 1.0}, timeout=5)
    return client


def test_a_server_without_clients_is_collected():
    client = unreferenced_server()
    port = local_servers.split_address(client.server_address)[1]
    gc.collect()
    assert local_servers.local_store(client.server_address) is not None
    iterator = iter(client.sampler("t", 1))
    del client
    gc.collect()
    assert port in local_servers.stores
    del iterator
    gc.collect()
    assert port not in local_servers.stores


def test_a_copy_of_a_client_does_not_keep_the_server():
    client = unreferenced_server()
    copy = pickle.loads(pickle.dumps(client))
    assert list(copy.server_info(5)) == ["t"]
    del client
    gc.collect()
    assert local_servers.local_store(copy.server_address) is None


def test_another_saved_signature_is_compared(tmp_path):
    def open_with(dtype):
        signature = {"obs": reprise.TensorSpec([4], dtype), "z": reprise.TensorSpec([], np.int32)}
        return reprise.Server([reprise.Table.queue("t", 5, signature=signature)], storage=str(tmp_path / "data"))

    open_with(np.float64).stop()
    with pytest.raises(Exception, match=r"table 't': its signature is not the one that is saved: column 0 is 'obs' "
                       r"float \[4\], saved is 'obs' double \[4\]; give the saved one, or use a new directory"):
        open_with(np.float32)


@pytest.mark.parametrize("keep", [
    lambda path: {"storage": path},
    lambda path: {"checkpointer": reprise.checkpointers.DefaultCheckpointer(path)},
])
@pytest.mark.parametrize("where", ["process", "child"])
def test_saved_settings_that_differ_are_logged(tmp_path, caplog, where, keep):
    def open_with(**options):
        options = {"max_size": 100, "rate_limiter": reprise.rate_limiters.MinSize(1), **options}
        made = reprise.Table("t", reprise.selectors.Uniform(), reprise.selectors.Fifo(), **options)
        return reprise.Server([made], where=where, **keep(str(tmp_path / "data")))

    with open_with() as server:
        server.localhost_client().insert(np.zeros(2), {"t": 1.0})
        server.localhost_client().checkpoint()
    with open_with():
        assert not caplog.records
    with open_with(max_size=3, rate_limiter=reprise.rate_limiters.MinSize(2)) as server:
        assert server._tables[0].info.max_size == 100
    [record] = caplog.records
    assert record.name == "reprise" and record.levelname == "WARNING"
    assert record.getMessage() == (
        "table 't': the saved max_size=100, min_size_to_sample=1 are used, not max_size=3, min_size_to_sample=2 "
        "as given; client.alter_table('t', ...) changes them")


def test_a_server_that_is_interrupted_while_it_starts_leaves_nothing(monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    for where in ("child", "process"):
        with monkeypatch.context() as patch:
            patch.setattr(server_module.storage_module, "warn_of_saved", interrupt)
            with pytest.raises(KeyboardInterrupt):
                reprise.Server([table()], storage=str(tmp_path / where), where=where)
        reprise.Server([table()], storage=str(tmp_path / where), where=where).stop()  # the data are free again
