# SPDX-License-Identifier: Apache-2.0
"""Clients in other processes and threads: pickles, forks, signals, references."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from events import LIMIT_S, Call, wait_until
from test_client import serve, table  # noqa: F401: fixtures

import reprise
from reprise.client import Client


def test_pickle(serve):
    client = serve()
    client.insert(4, {"t": 1.0})
    other = pickle.loads(pickle.dumps(client))
    assert other.server_address == client.server_address
    assert next(other.sample("t"))[0].data[0] == 4
    there = pickle.loads(pickle.dumps(Client("a:1", token="x", transport="tcp", seed=5)))
    assert (there._options, there._transport) == ({"token": "x", "seed": 5}, "tcp")


class Sub(Client):
    pass


def test_pickle_keeps_the_class():
    assert type(pickle.loads(pickle.dumps(Sub("localhost:1")))) is Sub


def forked(work):
    """Returns the result of `work` in a forked child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.write(write, repr(work()).encode())
        except BaseException as e:  # noqa: BLE001
            os.write(write, repr(e).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return answer


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_client_goes_on_in_a_forked_child(serve):
    client = serve()
    client.insert(1, {"t": 1.0})
    next(client.sample("t"))

    def work():
        client.insert(2, {"t": 1.0}, timeout=120)
        return client.server_info(20)["t"].current_size, len(list(client.sample("t", 5)))

    assert forked(work) == "(2, 5)"
    client.insert(3, {"t": 1.0})
    assert client.server_info()["t"].current_size == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_writer_stays_with_its_process(serve):
    client = serve()
    writer = client.writer(1)
    writer.append(1)

    def work():
        writer.create_item("t", 1, 1.0)
        writer.flush()

    assert "StatusError" in forked(work)
    writer.create_item("t", 1, 1.0)
    writer.close()
    assert client.server_info()["t"].current_size == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_writer_in_use_when_the_process_forks(serve):
    client = serve(reprise.Table.queue("q", 1))
    client.insert(0, {"q": 1.0})
    writer = client.writer(1)
    writer.append(1)
    writer.create_item("q", 1, 1.0)
    thread = threading.Thread(target=writer.flush)  # holds the writer's lock, and waits
    thread.start()
    while not client.why("q"):
        pass
    assert "the process that forked" in forked(writer.flush)
    list(client.sample("q", 2))
    thread.join(120)
    writer.close()


def test_multiprocessing_spawn(serve):
    client = serve()
    pool = multiprocessing.get_context("spawn").Pool(1)
    with pool:
        pool.apply(client.insert, ([1, 2], {"t": 1.0}))
    assert client.server_info()["t"].current_size == 1


INTERRUPTED = """
import signal, sys, threading, time
import reprise
port, call = int(sys.argv[1]), sys.argv[2]
client = reprise.Client(f"localhost:{port}", transport="tcp")
calls = {
    "info": lambda: reprise.Client("localhost:1").server_info(),
    "reset": lambda: reprise.Client("localhost:1").reset("t"),
    "mutate": lambda: reprise.Client("localhost:1").mutate_priorities("t", {1: 1.0}),
    "sample": lambda: next(client.sample("t")),
    "insert": lambda: client.insert(1, {"full": 1.0}),
}
try:
    print("ready", flush=True)
    calls[call]()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("call", ["info", "reset", "mutate", "sample", "insert"])
def test_ctrl_c_ends_every_wait(call):
    server = reprise.Server([table("t"), reprise.Table.queue("full", 1)])
    server.localhost_client().insert(0, {"full": 1.0})
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(server.port), call],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)  # it waits
        child.send_signal(signal.SIGINT)
        child.wait(120)
        assert child.stdout.read() == "interrupted\n"
    finally:
        child.kill()
        child.wait()
    server.stop()


def test_other_threads_run_while_a_call_waits(serve):
    """The call can end only if this thread runs while the call waits."""
    client = serve()
    call = Call(lambda: next(client.sample("t", timeout=LIMIT_S)))
    wait_until(lambda: client.why("t"))
    client.insert(1, {"t": 1.0})
    assert call.end()


def test_nothing_is_kept_alive(serve):
    client = serve()
    array = np.zeros(10)
    key = object()
    client.insert([array, 1], {"t": 1.0})
    before = sys.getrefcount(array), sys.getrefcount(None), sys.getrefcount(key)
    for _ in range(200):
        client.insert([array, 1], {"t": 1.0})
        with pytest.raises(TypeError):
            client.insert([array, key], {"t": 1.0})
        with pytest.raises(TypeError):
            client.mutate_priorities("t", {key: 1.0})
        list(client.sample("t", 3))
        client.mutate_priorities("t", {5: 1.0}, [6])
    gc.collect()
    assert sys.getrefcount(array) == before[0]
    assert sys.getrefcount(key) == before[2]
    assert abs(sys.getrefcount(None) - before[1]) < 150
