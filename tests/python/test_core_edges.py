# SPDX-License-Identifier: Apache-2.0
"""Edge cases of the extension: invalid arguments, concurrent threads, forks, Ctrl-C."""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from events import IS_SHORT, LIMIT_S, wait_until
from reprise import _core, errors

FREE = (1.0, 1, -1e9, 1e9)
PATTERN = ("t", ((0, -1, None, None),), (), (0, 1.0, 0.0, 0))


class Interrupted(Exception):
    pass


@pytest.fixture
def alarm():
    """Returns a function that raises Interrupted on the main thread after a number of seconds."""
    def interrupt(*_):
        raise Interrupted
    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def make_store(limiter=FREE):
    store = _core.Store()
    store.add_table("t", limiter=limiter, max_size=100)
    return store


@pytest.fixture
def client():
    return _core.Client.local(make_store())


def filled(client, steps):
    writer = _core.StepWriter(client, 1)
    for step in steps:
        writer.append([step])
        writer.create_item("t", 1, 1.0)
    writer.flush()
    return _core.Sampler(client, "t")


def in_child(function):
    """Returns what `function` returns or raises in a forked child."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(function())
        except BaseException as e:
            text = f"{type(e).__name__}: {e}"
        os.write(into, text.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as f:
        text = f.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize("dtype", ["S8", "S1", "U8"])
def test_strings_go_into_object_arrays_only(client, dtype):
    sampler = filled(client, [b"hello"] * 4)
    with pytest.raises(ValueError, match="memory for strings is an array of dtype object"):
        sampler.batch(4, out=[np.zeros((4, 1), dtype)], timeout_ms=5000)
    with pytest.raises(ValueError, match="memory for strings is an array of dtype object"):
        sampler.start(4, depth=1, reuse=1, memory=[[np.zeros((4, 1), dtype)]] * 2)
    out = np.empty((4, 1), object)
    sampler.batch(4, out=[out], timeout_ms=5000)
    assert out.tolist() == [[b"hello"]] * 4


@pytest.mark.parametrize("mebibytes", [5, 20])
def test_next_decodes_a_bounded_part_of_what_has_arrived(client, mebibytes):
    filled(client, [np.full(mebibytes << 20, i, np.uint8) for i in range(8)]).close()
    sampler = _core.Sampler(client, "t", max_samples=20)
    sizes = []
    while samples := sampler.next(8, LIMIT_S * 1000):
        assert len(samples) == 1 or sum(s[5][0].nbytes for s in samples) <= 16 << 20
        sizes.append(len(samples))
    assert sum(sizes) == 20 and max(sizes) == max(1, 16 // mebibytes)


def test_a_sampler_is_closed_with_samples_that_were_not_decoded(client):
    filled(client, [np.zeros(20 << 20, np.uint8)] * 2).close()
    sampler = _core.Sampler(client, "t", max_samples=8)
    assert len(sampler.next(8, LIMIT_S * 1000)) == 1
    sampler.close()
    with pytest.raises(errors.StatusError):
        sampler.next()


def test_memory_that_changes_while_it_is_read(client):
    sampler = filled(client, [np.float32(1)] * 4)

    def arrays():
        memory.clear()
        yield np.zeros((4, 1), np.float32)
    memory = [arrays() for _ in range(3)]
    sampler.start(4, depth=2, reuse=1, memory=memory)
    assert sampler.take(5000).columns[0].tolist() == [[1]] * 4


def test_keys_that_change_while_they_are_read(client):
    class Key:
        def __index__(self):
            keys.clear()
            return -1

        def __repr__(self):
            return "a key"
    keys = [Key(), Key()]
    with pytest.raises(TypeError, match="got a key"):
        client.mutate("t", keys, 1.0)


def in_thread(function):
    """Runs `function` on a thread. Returns the thread, and a list of what it raises."""
    raised = []

    def main():
        try:
            function()
        except Exception as e:
            raised.append(e)
    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    return thread, raised


def blocked_step_writer(store):
    writer = _core.StepWriter(_core.Client.local(store), 1)

    def fill():
        for _ in range(5):
            writer.append([np.float32(1)])
            writer.create_item("t", 1, 1.0)
        writer.flush()
    return writer, fill


def blocked_structured_writer(store):
    writer = _core.StructuredWriter(_core.Client.local(store), (PATTERN,))

    def fill():
        for _ in range(5):
            writer.append([np.float32(1)])
        writer.flush()
    return writer, fill


@pytest.mark.parametrize("make, late", [(blocked_step_writer, {"timeout": 0.2}),
                                        (blocked_structured_writer, {"timeout_ms": 200})])
def test_a_blocked_writer_times_out_other_threads_and_can_be_closed(make, late):
    store = make_store((1.0, 1, -1e9, 1.0))
    writer, fill = make(store)
    thread, raised = in_thread(fill)
    wait_until(lambda: store.table_info("t")["waiting_inserts"] > 0, "the wait")

    def finds_the_other_thread():  # which may be between two calls
        with pytest.raises(errors.DeadlineExceededError) as late_call:
            writer.flush(**late)
        return "another thread" in str(late_call.value)
    wait_until(finds_the_other_thread, "a call during the other thread's")
    assert thread.is_alive()
    closer, failed = in_thread(writer.close)
    closer.join(LIMIT_S)
    thread.join(LIMIT_S)
    assert not closer.is_alive() and not thread.is_alive() and not failed
    assert raised[0].code == "CANCELLED" and "closed meanwhile" in str(raised[0])
    with pytest.raises(errors.StatusError):
        writer.flush()


@pytest.mark.parametrize("method", ["flush", "close"])
def test_a_step_that_calls_the_writer(client, method):
    writer = _core.StructuredWriter(client, (PATTERN,))

    class Step:
        def __array__(self, dtype=None, copy=None):
            getattr(writer, method)()
            return np.zeros((), np.float32)
    writer.append({"a": np.float32(1)})
    with pytest.raises(RuntimeError, match="in a call of it already"):
        writer.append({"a": Step()})
    writer.append({"a": np.float32(2)})
    writer.flush()
    assert client.tables()[0]["size"] == 2


def test_a_priority_that_calls_the_writer(client):
    writer = _core.StepWriter(client, 1)

    class Priority:
        def __float__(self):
            writer.flush()
            return 2.0
    assert writer.insert([np.float32(1)], {"t": Priority()})
    assert client.tables()[0]["size"] == 1


def threads():
    return len(os.listdir("/proc/self/task"))


def test_calls_that_are_interrupted_leave_nothing(alarm):
    gc.collect()
    before = threads()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = _core.Client("127.0.0.1:%d" % silent.getsockname()[1])
        for _ in range(5):
            for call in (lambda: _core.StepWriter(client, 1, timeout=120),
                         lambda: client.tables(20), lambda: client.checkpoint(20)):
                alarm(0.15)
                with pytest.raises(Interrupted):
                    call()
        del client, call
        gc.collect()
    wait_until(lambda: threads() <= before, "the end of all threads")


def test_a_signal_ends_the_grace_period_of_stop(alarm):
    store = make_store()
    server = _core.Server(store, "localhost:0")
    sampler = _core.Sampler(_core.Client(f"localhost:{server.port}"), "t")
    thread, _ = in_thread(lambda: sampler.next(1, 20000))
    wait_until(lambda: store.table_info("t")["waiting_samples"] > 0, "the wait")
    alarm(0.3)
    with pytest.raises(Interrupted):
        server.stop(LIMIT_S * 1000)
    assert not server.running
    sampler.close()
    thread.join(LIMIT_S)


def test_a_server_without_connections_stops_before_its_grace_ends():
    server = _core.Server(make_store(), "localhost:0")
    stop, _ = in_thread(lambda: server.stop(1_000_000))
    stop.join(LIMIT_S)
    assert not stop.is_alive()


def test_a_thread_that_calls_while_the_interpreter_ends():
    code = """if True:
        import contextlib, socket, threading, time
        from reprise import _core
        silent = socket.create_server(("127.0.0.1", 0))
        def run(call):  # a thread that prints its exception now can stop the interpreter
            with contextlib.suppress(Exception):
                call()
        client = _core.Client("127.0.0.1:%d" % silent.getsockname()[1])
        for call in (lambda: client.tables(0.6), lambda: client.mutate("t", [1], [1.0], None, 0.6),
                     lambda: client.reset("t", 0.6), lambda: _core.StepWriter(client, 1)) * 3:
            threading.Thread(target=run, args=(call,), daemon=True).start()
        time.sleep(0.4)
        class Late:
            def __del__(self, sleep=time.sleep):
                sleep(0.5)
        late = Late()
    """
    for _ in range(1 if IS_SHORT else 2):
        assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_a_store_stays_with_its_process(client):
    store = make_store()
    refused = "StatusError: the store belongs to the process that forked this one"
    for use in (lambda: _core.Client.local(store), lambda: _core.Server(store, "localhost:0"),
                lambda: _core.StepWriter(client, 1), lambda: client.tables(),
                lambda: _core.Sampler(client, "t"),
                lambda: _core.StructuredWriter(client, (PATTERN,)),
                lambda: _core.BatchWriter(client, 1, (PATTERN,))):
        assert in_child(use).startswith(refused)


@pytest.mark.parametrize("keys", [[-1], np.array([-1]), np.array([1, -1], np.int8), [2**64], [True],
                                  np.array([True]), {True: 1.0}, {-1: 1.0}, [1.0], np.array([1.0])])
def test_keys_of_other_types_are_refused(client, keys):
    with pytest.raises(TypeError):
        client.mutate("t", keys, 1.0)
    if not isinstance(keys, dict):
        with pytest.raises(TypeError):
            client.mutate("t", None, None, keys)


@pytest.mark.parametrize("keys", [[1, 2**64 - 1], np.array([1, 2**64 - 1], np.uint64), (np.int8(1),),
                                  np.array([1], np.int8), [], np.array([]), {2**64 - 1: 1.0}])
def test_keys(client, keys):
    client.mutate("t", keys, 1.0)


@pytest.mark.parametrize("patterns", [
    ("t",), (["t", (), (), ()],), (("t", ([0, -1, None, None],), (), (0, 1.0, 0.0, 0)),),
    (("t", ((0, -1, None, None),), ([0, 0, 0, 0, 0, False],), (0, 1.0, 0.0, 0)),), [PATTERN]])
def test_patterns_are_tuples(client, patterns):
    with pytest.raises(TypeError, match="must be a tuple"):
        _core.StructuredWriter(client, patterns)


def test_limiters_are_tuples(client):
    with pytest.raises(TypeError, match="limiter must be a tuple"):
        client.alter_table("t", limiter=list(FREE))


def test_priorities_are_pairs(client):
    class Odd(dict):
        def items(self):
            return [["t", 1.0]]
    writer = _core.StepWriter(client, 1)
    with pytest.raises(TypeError, match="a dict of table to priority"):
        writer.insert([np.float32(1)], Odd())
    assert writer.steps == 0


def test_names_with_a_nul_are_refused(client):
    store, name = make_store(), "t\0x"
    writer = _core.StepWriter(client, 1)
    for use in (lambda: client.mutate(name, [1], 1.0), lambda: client.reset(name),
                lambda: store.table_info(name), lambda: store.drop_table(name),
                lambda: store.waiting(name), lambda: store.can_insert(name, 1),
                lambda: store.add_table(name, limiter=FREE, max_size=1),
                lambda: _core.Sampler(client, name), lambda: writer.create_item(name, 1, 1.0),
                lambda: writer.insert([np.float32(1)], {name: 1.0}),
                lambda: _core.StructuredWriter(client, ((name, *PATTERN[1:]),))):
        with pytest.raises(ValueError, match="(?i)nul"):
            use()


def test_negative_numbers_are_refused(client):
    store = make_store()
    for use in (lambda n: _core.Store(max_bytes=n), lambda n: _core.Store(seed=n),
                lambda n: store.add_table("u", limiter=FREE, max_size=1, max_bytes=n),
                lambda n: store.add_table("u", limiter=FREE, max_size=1, seed=n),
                lambda n: _core.Server(store, "localhost:0", shared_memory_bytes=n),
                lambda n: _core.Client("localhost:1", seed=n),
                lambda n: _core.Client.local(store, n),
                lambda n: client.alter_table("t", max_bytes=n)):
        for number in (-1, 2**64):
            with pytest.raises(ValueError, match="must be >= 0"):
                use(number)
    assert _core.Store(seed=2**64 - 1).info()["seed"] == 2**64 - 1


def test_a_path_that_has_no_utf8(client):
    writer = _core.StepWriter(client, 1)
    with pytest.raises(TypeError):
        writer.append({"\ud800": object()})


def make_buffer(dtype="f4"):
    return _core.ReplayBuffer(8, (("x", np.dtype(dtype), (), 0),), 0.6, 0.4, 1e-6, 1)


def test_names_that_are_not_interned():
    buffer, name = make_buffer(), "".join(["prior", "ities"])
    buffer.add(np.zeros(2, "f4"), **{name: [1, 2]})
    buffer.add({"x": np.zeros(2, "f4")}, **{name: [1, 2]})
    assert len(buffer) == 4


@pytest.mark.parametrize("indices", [[1.7], ["0"], [True], [1j], np.array([0.0])])
def test_indices_are_integers(indices):
    buffer = make_buffer()
    buffer.add(np.zeros(2, "f4"))
    with pytest.raises(TypeError, match="indices must be integers"):
        buffer.update_priorities(indices, [1.0])
    assert buffer.update_priorities([], []) == 0
    assert buffer.update_priorities(np.array([0, 1], np.uint8), [1, 2]) == 2


@pytest.mark.parametrize("priorities", [["2"], [1j]])
def test_priorities_are_numbers(priorities):
    buffer = make_buffer()
    with pytest.raises(TypeError, match="priorities must be numbers"):
        buffer.add(np.zeros(1, "f4"), priorities=priorities)


def test_a_column_of_foreign_byte_order():
    foreign = np.dtype("f4").newbyteorder()
    buffer = make_buffer(foreign)
    buffer.add(np.full(4, 3.5, foreign))
    out = buffer.sample(4)
    assert buffer.sample(4, out=out) is out and out["x"].tolist() == [3.5] * 4
