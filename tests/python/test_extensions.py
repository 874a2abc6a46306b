# SPDX-License-Identifier: Apache-2.0
"""Extensions of tables, given from Python."""

import asyncio
import gc
import logging
import os
import resource
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import reprise
from events import LIMIT_S, assert_interrupted, wait_until
from reprise import _core, extensions, pybind
from reprise.callbacks import CallbackThread

FREE = (1.0, 1, -1e9, 1e9)


def make_table(name="t", *given, max_size=1000, sampler=None, **options):
    return reprise.Table(name, sampler or reprise.selectors.Fifo(), reprise.selectors.Fifo(), max_size,
                         reprise.rate_limiters.MinSize(1), extensions=given, **options)


@pytest.fixture
def serve():
    """Serves tables. Returns the server, and a client of it."""
    servers = []

    def start(*tables, **options):
        servers.append(reprise.Server(list(tables), **options))
        return servers[-1], servers[-1].localhost_client()

    yield start
    for server in servers:
        server.stop()


def insert(client, priorities, name="t"):
    """Inserts an item for each priority. Returns the keys."""
    with client.trajectory_writer(1) as writer:
        for priority in priorities:
            writer.append([np.int64(1)])
            writer.create_item(name, priority, [writer.history[0][-1:]])
        writer.flush()


def keys_of(client, name, count):
    return [sample[0].info.key for sample in client.sample(name, count)]


@pytest.mark.parametrize("transport", ["local", "tcp"])
def test_statistics(serve, transport):
    table = make_table("t", extensions.Statistics(), max_size=3, max_times_sampled=2)
    server, _ = serve(table)
    client = reprise.Client(server.address, transport=None if transport == "local" else "tcp")
    insert(client, [1.0, 2.0, 4.0, 5.0])  # evicts the first
    [key] = keys_of(client, "t", 1)
    client.mutate_priorities("t", updates={key: 8.0})
    keys_of(client, "t", 1)  # the second time: removes it
    client.reset("t")

    [statistics] = table.extensions
    assert statistics.read() == {
        "inserts": 4, "updates": 1, "samples": 2, "deletes": 2, "resets": 1, "deleted_unsampled": 1,
        "priority_mean": pytest.approx(4.0), "priority_min": 1.0, "priority_max": 8.0,
        "times_sampled_mean": pytest.approx(1.0)}


def test_diffusion(serve):
    table = make_table("t", extensions.Diffusion(radius=2, decay=0.5))
    _, client = serve(table)
    insert(client, [1.0] * 5)
    seen = {}
    for sample in client.sampler("t", 5, max_samples=5):
        seen = dict(zip(sample.keys.tolist(), sample.priorities.tolist()))
    key = next(iter(seen))  # a Fifo table draws its first item
    client.mutate_priorities("t", updates={key: 9.0})
    table.extensions[0].read()
    client.mutate_priorities("t", deletes=[key])
    assert [next(iter(client.sample("t", 1)))[0].info.priority] == [5.0]  # 1 + 0.5 * 8


def test_insert_on_sample(serve):
    target = make_table("target")
    table = make_table("t", extensions.InsertOnSample(target))
    _, client = serve(target, table)
    insert(client, [1.5, 2.5])
    first = keys_of(client, "t", 3)
    wait_until(lambda: target.info.current_size == 1)
    assert table.extensions[0].read() == {"copied": 1, "dropped": 0}
    [[step]] = client.sample("target", 1)
    assert step.info.priority == 1.5 and step.info.key == first[0] == first[2]


def test_the_target_comes_first():
    table, target = make_table("t", extensions.InsertOnSample("target")), make_table("target")
    with pytest.raises(ValueError, match="no table 'target' yet; it must come before"):
        reprise.Server([table, target])
    server = reprise.Server([target, table])  # the tables are free for another server
    assert len(table.extensions) == 1
    server.stop()


def test_a_callback_gets_the_events_in_order(serve):
    seen = []
    table = make_table("t", extensions.Callback(seen.append), max_size=2)
    _, client = serve(table)
    insert(client, [1.0, 2.0, 3.0])
    [key] = keys_of(client, "t", 1)
    client.mutate_priorities("t", updates={key: 7.0})
    client.mutate_priorities("t", deletes=[key])
    client.reset("t")
    wait_until(lambda: any(event.kind == "reset" for events in seen for event in events))

    events = [event for group in seen for event in group]
    assert all(type(event) is extensions.Event for event in events)
    # An eviction comes before or after the insert that causes it.
    kinds = [event.kind for event in events]
    assert kinds[0] == "insert" and sorted(kinds[:4]) == ["delete", "insert", "insert", "insert"]
    assert kinds[4:] == ["sample", "update", "delete", "reset"]
    assert [e.priority for e in events if e.kind == "insert"] == [1.0, 2.0, 3.0]
    assert [(e.key, e.priority, e.times_sampled) for e in events[4:]] == [
        (key, 2.0, 1), (key, 7.0, 1), (key, 7.0, 1), (0, 0.0, 0)]


def test_a_callback_gets_only_the_kinds_that_it_asks_for(serve):
    seen = []
    table = make_table("t", extensions.Callback(seen.extend, ["update", "delete"]), max_size=2)
    server, client = serve(table)
    insert(client, [1.0, 2.0, 3.0])
    server.stop()
    assert [event.kind for event in seen] == ["delete"]


def test_a_callback_runs_on_one_thread_without_a_lock_of_the_table(serve):
    """The function inserts into its own table."""
    threads = set()

    def copy(events):
        threads.add(threading.current_thread().name)
        for event in events:
            if event.priority < 3:
                insert(client, [event.priority + 1])

    table = make_table("t", extensions.Callback(copy, ["insert"]))
    _, client = serve(table)
    insert(client, [1.0])
    wait_until(lambda: table.info.current_size == 3)
    assert threads == {"reprise-callback-t"}


def test_events_that_a_slow_callback_does_not_take_are_dropped(serve, caplog):
    """The calls of the table do not wait for it."""
    entered, go_on, seen = threading.Event(), threading.Event(), []

    def slow(events):
        seen.extend(events)
        entered.set()
        assert go_on.wait(LIMIT_S)

    table = make_table("t", extensions.Callback(slow, ["insert"], max_waiting=5))
    server, client = serve(table)
    insert(client, [1.0])
    assert entered.wait(LIMIT_S)
    insert(client, range(100))
    assert table.info.current_size == 101
    counts = table.extensions[0].read()
    assert counts == {"waiting": 5, "taken": 1, "dropped": 95, "errors": 0}
    with caplog.at_level(logging.WARNING, "reprise"):
        go_on.set()
        server.stop()
    assert [event.priority for event in seen] == [1.0, 0, 1, 2, 3, 4]
    assert "table 't': 95 events were dropped" in caplog.text


def test_exceptions_of_a_callback_are_logged(serve, caplog):
    seen = []

    def fail(events):
        seen.extend(events)
        raise KeyError("oops")

    table = make_table("t", extensions.Callback(fail, ["insert"]))
    server, client = serve(table)
    with caplog.at_level(logging.ERROR, "reprise"):
        for i in range(4):
            insert(client, [1.0])
            wait_until(lambda: len(seen) == i + 1)  # one call for each event
        server.stop()
    assert len(seen) == 4 and table.extensions[0].read()["errors"] == 4
    assert caplog.text.count("KeyError: 'oops'") == 3  # the first, the second and the fourth
    assert "table 't': the callback of an extension raised an exception" in caplog.text


def test_a_cancelled_error_does_not_end_a_callback(serve, caplog):
    """It is no Exception."""
    seen = []

    def cancel(events):
        seen.extend(events)
        raise asyncio.CancelledError

    table = make_table("t", extensions.Callback(cancel, ["insert"]))
    server, client = serve(table)
    with caplog.at_level(logging.ERROR, "reprise"):
        for i in range(2):
            insert(client, [1.0])
            wait_until(lambda: len(seen) == i + 1)
        server.stop()
    assert table.extensions[0].read()["errors"] == 2 and "CancelledError" in caplog.text


def test_system_exit_ends_a_callback(serve):
    def leave(events):
        raise SystemExit

    table = make_table("t", extensions.Callback(leave, ["insert"]))
    _, client = serve(table)
    insert(client, [1.0])
    [callback] = table.extensions
    wait_until(lambda: not callback._thread.is_alive())
    insert(client, [1.0])
    assert callback.read()["waiting"] == 0


def test_stop_passes_on_what_waits(serve):
    entered, go_on, seen = threading.Event(), threading.Event(), []

    def slow(events):
        entered.set()
        assert go_on.wait(LIMIT_S)
        seen.extend(events)

    table = make_table("t", extensions.Callback(slow, ["insert"]))
    _, client = serve(table)
    insert(client, [1.0])
    assert entered.wait(LIMIT_S)
    insert(client, [2.0, 3.0])
    [callback] = table.extensions
    threading.Timer(0.05, go_on.set).start()
    assert callback.stop()
    insert(client, [4.0])
    assert [event.priority for event in seen] == [1.0, 2.0, 3.0]
    assert callback.stop() and callback.read() == {
        "waiting": 0, "taken": 3, "dropped": 0, "errors": 0}


def test_stop_does_not_wait_for_ever(serve):
    entered, go_on = threading.Event(), threading.Event()

    def stuck(events):
        entered.set()
        assert go_on.wait(LIMIT_S)

    table = make_table("t", extensions.Callback(stuck, ["insert"]))
    _, client = serve(table)
    insert(client, [1.0])
    assert entered.wait(LIMIT_S)
    insert(client, [1.0, 1.0])
    [callback] = table.extensions
    assert not callback.stop(timeout=0.01)
    assert callback.read() == {"waiting": 0, "taken": 1, "dropped": 2, "errors": 0}
    go_on.set()
    assert callback.stop()


def test_ctrl_c_ends_the_wait_for_a_callback(serve):
    entered, go_on = threading.Event(), threading.Event()

    def stuck(events):
        entered.set()
        assert go_on.wait(LIMIT_S)

    table = make_table("t", extensions.Callback(stuck, ["insert"]))
    _, client = serve(table)
    insert(client, [1.0])
    [callback] = table.extensions
    assert_interrupted(lambda: callback.stop(LIMIT_S), entered.is_set)
    go_on.set()
    assert callback.stop()


def test_a_callback_may_stop_its_server(caplog):
    stopped = threading.Event()

    def stop(events):
        server.stop()
        stopped.set()

    server = reprise.Server([make_table("t", extensions.Callback(stop, ["insert"]))])
    insert(server.localhost_client(), [1.0])
    assert stopped.wait(LIMIT_S) and not server.running
    assert "still running" not in caplog.text


def test_a_server_that_is_collected_ends_its_callbacks():
    table = make_table("t", extensions.Callback(list))
    server = reprise.Server([table])
    thread, there = table.extensions[0]._thread, weakref.ref(server)
    assert thread.is_alive()
    del server
    gc.collect()
    assert there() is None
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_counts_outlive_their_table(serve):
    target = make_table("target")
    table = make_table("t", extensions.Statistics(), extensions.InsertOnSample(target))
    server, client = serve(target, table)
    insert(client, [3.0])
    keys_of(client, "t", 1)
    wait_until(lambda: target.info.current_size == 1)
    statistics, copies = table.extensions
    server.stop()
    del server, client, table, target
    gc.collect()
    assert statistics.read()["priority_max"] == 3.0 and copies.read() == {"copied": 1, "dropped": 0}


def test_one_description_serves_several_tables(serve):
    statistics = extensions.Statistics()
    one = make_table("t", statistics, extensions.Callback(list))
    two = one.replace(name="u")
    assert one.extensions == two.extensions == ()  # there is no server
    _, client = serve(one, two)
    insert(client, [1.0, 1.0], "u")
    assert [table.extensions[0].read()["inserts"] for table in (one, two)] == [0, 2]
    assert [extension.kind for extension in two.extensions] == ["statistics", "events"]


def test_other_extensions_build_those_of_the_package(serve):
    class Both(extensions.TableExtensionBase):
        def build_internal_extensions(self, table_name):
            assert table_name == "t"
            return [e for d in (extensions.Statistics(), extensions.Diffusion(1, 0.5))
                    for e in d.build_internal_extensions(table_name)]

    table = reprise.Table.queue("t", 10, extensions=[Both()])
    _, client = serve(table)
    client.insert([1], {"t": 1.0})
    assert [e.kind for e in table.extensions] == ["statistics", "diffusion"]
    assert all(isinstance(e, pybind.TableExtension) for e in table.extensions)
    assert table.extensions[0].read()["inserts"] == 1 and table.extensions[1].read() == {}


@pytest.mark.parametrize("make, text", [
    (lambda: extensions.Diffusion(0, 0.5), r"radius must be in \[1, 64\], got 0"),
    (lambda: extensions.Diffusion(3, 1.0), r"decay must be in \(0, 1\), got 1"),
    (lambda: extensions.InsertOnSample("t", -1), "timeout must be None or >= 0"),
    (lambda: extensions.Callback(list, []), "events must be some of insert, update"),
    (lambda: extensions.Callback(list, "drop"), r"got \['drop'\]"),
    (lambda: extensions.Callback(list, max_waiting=0), "max_waiting must be from 1 to 1048576, got 0"),
    (lambda: extensions.Callback(list, max_waiting=2**20 + 1), "got 1048577"),
])
def test_values_out_of_range(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_wrong_types():
    with pytest.raises(TypeError, match="a callback must be a function, got 3"):
        extensions.Callback(3)
    with pytest.raises(TypeError, match="table 't': an extension must be one of reprise.extensions"):
        make_table("t", list)

    class Wrong(extensions.TableExtensionBase):
        def build_internal_extensions(self, table_name):
            return [3]

    with pytest.raises(TypeError, match="an extension must be a TableExtension, got int"):
        reprise.Server([make_table("t", Wrong())])


@pytest.mark.parametrize("given", [[extensions.Statistics()], [extensions.Callback(list)]])
def test_other_processes_have_no_extensions(serve, given):
    with pytest.raises(ValueError, match="extensions run in this process, and a server in a child"):
        reprise.Server([make_table("t", *given)], where="child")
    server, client = serve(make_table("u"))
    for create in (lambda table: reprise.Server([table], where=server.address), client.create_table):
        with pytest.raises(ValueError, match="extensions run in this process, and a server that is"):
            create(make_table("t", *given))


# Lets one allocation after the other fail, and prints how many there are.
FAILING = """
import _testcapi
from reprise import _core

store = _core.Store()
options = {"limiter": (1.0, 1, -1e9, 1e9), "max_size": 10}
for n in range(1000):
    _testcapi.set_nomemory(n, n + 1)
    try:
        given = [_core.TableExtension("statistics"),
                 _core.TableExtension("events", max_waiting=1, kinds=31)]
        store.add_table("t", extensions=given, **options)
        break
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
assert store.tables() == ["t"]
print(n)
"""


class TestCore:
    """TableExtension itself."""

    def store(self, *given, name="t"):
        store = _core.Store()
        store.add_table(name, limiter=FREE, max_size=10, extensions=given)
        return store

    def test_an_extension_belongs_to_one_table(self):
        extension = _core.TableExtension("statistics")
        store = self.store(extension)
        with pytest.raises(ValueError, match="the extension statistics belongs to a table already"):
            store.add_table("u", limiter=FREE, max_size=10, extensions=[extension])
        assert store.tables() == ["t"]

    def test_a_table_that_is_not_made_gives_its_extensions_back(self):
        events = _core.TableExtension("events", max_waiting=1, kinds=31)
        store = self.store()
        with pytest.raises(reprise.StatusError):
            store.add_table("t", limiter=FREE, max_size=10, extensions=[events])
        assert events.take() is None  # closed

    def test_a_table_that_is_not_in_the_journal_keeps_its_extensions(self, tmp_path):
        """The call fails, but the table exists and calls them."""
        store = self.store()
        durable = _core.Durable(store, tmp_path / "data", durability="sync")
        events = _core.TableExtension("events", max_waiting=1, kinds=31)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # the disk is full
        try:
            with pytest.raises(reprise.StatusError, match="the journal cannot be written"):
                store.add_table("u", limiter=FREE, max_size=10, extensions=[events])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert store.tables() == ["t", "u"]
        assert events.take() == []  # open
        del durable, store
        assert events.take() is None

    def test_each_allocation_may_fail(self):
        """Python's own allocations, in a process without other threads."""
        pytest.importorskip("_testcapi")
        ran = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert int(ran.stdout) > 10

    def test_no_python_code_sees_half_an_extension(self):
        class Closes(_core.TableExtension):
            def __del__(self):
                self.close()

        class Looks:
            def __float__(self):
                found.extend(repr(o) for o in gc.get_objects() if isinstance(o, Closes))
                return 0.0

        found = []
        with pytest.raises(ValueError, match="radius"):
            Closes("diffusion", radius=0, decay=0.5)
        Closes("events", max_waiting=1, kinds=31, timeout=Looks())
        assert found == []

    def test_the_end_of_a_table_ends_its_events(self):
        events = _core.TableExtension("events", max_waiting=1, kinds=31)
        store = self.store(events)
        assert events.take() == []
        del store
        assert events.take() is None

    @pytest.mark.parametrize("arguments", [("nothing",), (3,), ()])
    def test_names_of_extensions(self, arguments):
        with pytest.raises((TypeError, ValueError)):
            _core.TableExtension(*arguments)

    def test_only_events_have_a_queue(self):
        with pytest.raises(TypeError, match="no queue of events"):
            _core.TableExtension("statistics").take()
        assert _core.TableExtension("statistics").close() is None
        assert repr(_core.TableExtension("diffusion", radius=1, decay=0.5)).endswith("diffusion>")

    def test_a_forked_child_leaves_them_alone(self):
        events = _core.TableExtension("events", max_waiting=1, kinds=31)
        store = self.store(events)
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            said = b""
            for call in (events.take, events.read, events.close):
                try:
                    call()
                except reprise.StatusError as error:
                    said += error.code.encode() + b" "
            os.write(into, said)
            os._exit(0)
        os.close(into)
        with os.fdopen(out, "rb") as pipe:
            assert pipe.read().split() == [b"FAILED_PRECONDITION"] * 3
        os.waitpid(child, 0)
        del store


def test_the_thread_of_a_callback_is_an_extension():
    assert issubclass(CallbackThread, _core.TableExtension)
