# SPDX-License-Identifier: Apache-2.0
"""Calls that wait say so after two seconds, with the address of the server or with its reason."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import reprise
from events import LIMIT_S, expect_reason
from reprise import aio, child_server

# All calls wait at once, each on a thread that has its name. The program ends when each of them has
# logged a line with the wanted text, which begins with the name of its thread.
PROGRAM = """
import asyncio, logging, os, sys, threading
import reprise
from reprise import aio

ADDRESS, WANTED = sys.argv[1:3]
left = set(sys.argv[3:])

class Lines(logging.Handler):
    def emit(self, record):
        name = threading.current_thread().name
        if name not in left or WANTED not in record.getMessage():
            return  # a busy server may give its reason later
        print(name, record.getMessage(), sep=": ", flush=True)
        left.discard(name)
        if not left:
            os._exit(0)

logging.getLogger("reprise").addHandler(Lines())

def client():
    return reprise.Client(ADDRESS)

CALLS = {
    "server_info": lambda: client().server_info(),
    "insert": lambda: client().insert([1.0], {"t": 1.0}),
    "trajectory_writer": lambda: client().trajectory_writer(1),
    "why": lambda: client().why(),
    "checkpoint": lambda: client().checkpoint(),
    "reset": lambda: client().reset("t"),
    "mutate_priorities": lambda: client().mutate_priorities("t", {1: 1.0}),
    "sample": lambda: next(client().sample("t")),
    "sampler": lambda: next(iter(client().sampler("t", 4))),
    "dataset": lambda: next(iter(reprise.Dataset(ADDRESS, "t", 4))),
    "reprise-aio_0": lambda: asyncio.run(aio.AsyncClient(ADDRESS).server_info()),
}
for name in sys.argv[3:]:
    threading.Thread(target=CALLS[name], name=name, daemon=True).start()
threading.Event().wait()
"""
ALL = ["server_info", "insert", "trajectory_writer", "why", "checkpoint", "reset",
       "mutate_priorities", "sample", "sampler", "dataset", "reprise-aio_0"]


def lines_of(address, wanted, calls):
    done = subprocess.run([sys.executable, "-c", PROGRAM, address, wanted, *calls],
                          timeout=LIMIT_S, stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_calls_name_a_server_that_is_away():
    lines = lines_of("localhost:1", "localhost:1: Connection refused", ALL)
    assert sorted(lines) == sorted(ALL)
    assert all(text.startswith("still waiting after ") for text in lines.values()), lines


def test_calls_give_the_reason_of_a_server():
    calls = ["sample", "sampler", "dataset"]
    with reprise.Server([reprise.Table.queue("t", 1)]) as server:
        address = f"localhost:{server.port}"
        assert sorted(lines_of(address, "sample waits for inserts", calls)) == sorted(calls)
    # Another server: a sampler whose process has ended may still take an item of the first one.
    with reprise.Server([reprise.Table.queue("t", 1)]) as server:
        server.localhost_client().insert([1.0], {"t": 1.0})
        address = f"localhost:{server.port}"
        assert "insert" in lines_of(address, "insert waits for samples", ["insert"])


def test_calls_name_a_server_that_accepts_and_is_silent():
    calls = ["insert", "trajectory_writer", "checkpoint", "sampler"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"localhost:{listener.getsockname()[1]}"
        assert sorted(lines_of(address, address, calls)) == sorted(calls)
        with pytest.raises(reprise.DeadlineExceededError, match=address):
            options = {"structure": False, "checked": True, "timeout": 0.2}
            next(iter(reprise.Client(address).sampler("t", 4, **options)))


def test_a_flush_of_a_writer_that_has_waited_says_so_after_two_seconds(caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = reprise.Client(f"localhost:{listener.getsockname()[1]}", transport="tcp")
        writer = client.writer(1, timeout=2.2)
        writer.append([1.0])
        writer.create_item("t", 1, 1.0)
        caplog.clear()
        with pytest.raises(reprise.DeadlineExceededError):
            writer.flush(timeout=3)
        assert "still waiting after 4" in caplog.text or "still waiting after 5" in caplog.text
        caplog.clear()
        writer._writer.close()  # its collection would wait, too


@pytest.mark.parametrize("sized", [{}, {"prefetch": 0}])
def test_the_timeout_of_the_rate_limiter_counts_without_a_server(sized):
    client = reprise.Client("localhost:1")
    with pytest.raises(reprise.DeadlineExceededError, match="localhost:1: "):
        list(client.sampler("t", 2, rate_limiter_timeout=0.2, **sized))
    with pytest.raises(reprise.StatusError, match="no sample of 't' within 200 ms.*localhost:1: "):
        list(client.sampler("t", 2, structure=False, rate_limiter_timeout=0.2, **sized))
    with pytest.raises(reprise.StatusError, match="no sample of 't' within 200 ms"):
        list(reprise.TrajectoryDataset("localhost:1", "t", np.float32, (), 1, rate_limiter_timeout_ms=200))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_timeout_of_the_rate_limiter_counts_over_empty_shards(prefetch):
    """Also if the wait is cut into short ones, so that Ctrl-C ends it."""
    servers = [reprise.Server([reprise.Table.queue("t", 9)]) for _ in range(2)]
    client = reprise.Client([f"localhost:{server.port}" for server in servers])
    assert list(client.sampler("t", 2, rate_limiter_timeout=0.3, prefetch=prefetch)) == []
    for server in servers:
        server.stop()


@pytest.mark.parametrize("call", [
    lambda client: next(client.sample("t", unpack_as_table_signature=True, timeout=0.2)),
    lambda client: asyncio.run(first(aio.AsyncClient(client).batches("t", 4, timeout=0.2))),
    lambda client: asyncio.run(first(aio.AsyncClient(client).sample(
        "t", unpack_as_table_signature=True, timeout=0.2))),
])
def test_timeouts_count_while_a_signature_is_requested(call):
    with pytest.raises(reprise.DeadlineExceededError):
        call(reprise.Client("localhost:1"))


@pytest.mark.parametrize("call", [
    lambda client: client.alter_table("t", max_size=9, timeout=0.3),
    lambda client: client.create_table(reprise.Table.queue("t", 9), timeout=0.3),
    lambda client: client.drop_table("t", timeout=0.3),
    lambda client: client.pause_table("t", timeout=0.3),
    lambda client: client.reset("t", timeout=0.3),
    lambda client: client.mutate_priorities("t", {1: 1.0}, timeout=0.3),
    lambda client: client.checkpoint(timeout=0.3),
    lambda client: client.insert([1.0], {"t": 1.0}, timeout=0.3),
    lambda client: client.why(timeout=0.3),
])
def test_calls_wait_as_long_as_their_timeout_for_a_server(call):
    with pytest.raises(reprise.DeadlineExceededError, match="localhost:1: "):
        call(reprise.Client("localhost:1"))


@pytest.mark.parametrize("where", ["process", "child"])
def test_a_server_that_loads_for_long_says_so(where, monkeypatch, tmp_path):
    """The start of a server waits until there is a warning."""
    said = threading.Event()
    handler = logging.Handler()
    lines = []
    handler.emit = lambda record: (lines.append(record.getMessage()), said.set())
    logger = logging.getLogger("reprise")
    monkeypatch.setattr("reprise._log._FIRST_S", 0.001)

    def wait(*args):
        assert said.wait(LIMIT_S)

    monkeypatch.setattr("reprise.storage.begin_with", wait)
    if where == "child":
        real = child_server._Lines.read
        monkeypatch.setattr(child_server._Lines, "read", lambda *args: wait() or real(*args))
    logger.addHandler(handler)
    try:
        reprise.Server([reprise.Table.queue("t", 1)], storage=tmp_path, where=where).stop()
    finally:
        logger.removeHandler(handler)
    wanted = "is being loaded" if where == "process" else "process is starting"
    assert any(wanted in line for line in lines), lines


async def first(generator):
    async for value in generator:
        return value


@pytest.mark.parametrize("call", [
    lambda timeout: next(iter(reprise.Dataset("localhost:1", "t", 4, timeout=timeout))),
    lambda timeout: next(iter(reprise.Client("localhost:1").sampler("t", 4, timeout=timeout))),
    lambda timeout: reprise.Client("localhost:1").server_info(timeout=timeout),
    lambda timeout: next(reprise.Client("localhost:1").sample("t", timeout=timeout)),
])
def test_timeouts_name_the_reason(call):
    expect_reason(reprise.DeadlineExceededError, "localhost:1: Connection refused", call)


def test_an_insert_has_one_timeout(monkeypatch):
    """A wait for the signatures of the tables leaves less time for the confirmation."""
    left = []

    class Late:
        def __init__(self, client, longest, timeout):
            time.sleep(0.1)

        def insert(self, data, priorities, timeout):
            left.append(timeout)
            return True

    monkeypatch.setattr("reprise.client._core.StepWriter", Late)

    for timeout in (10, 0.1, None):
        reprise.Client("localhost:1").insert([1.0], {"t": 1.0}, timeout=timeout)

    assert left[0] <= 9.9 and left[1] <= 0.001 and left[2] is None


def writer_of(client):
    writer = client.writer(1)
    writer.append([1.0])
    return writer


def structured_writer_of(client, environments=0):
    made = reprise.structured.pattern_from_transform({"x": None}, lambda s: s["x"][-1])
    configs = [reprise.structured.create_config(made, "t")]
    return client.batch_writer(environments, configs) if environments else client.structured_writer(configs)


CALLS = [
    lambda c, s: structured_writer_of(c).flush(timeout=s),
    lambda c, s: structured_writer_of(c).end_episode(timeout=s),
    lambda c, s: structured_writer_of(c).append({"x": 1.0}, timeout=s),
    lambda c, s: structured_writer_of(c, environments=2).flush(timeout=s),
    lambda c, s: structured_writer_of(c, environments=2).append_batch({"x": [1, 2]}, timeout=s),
    lambda c, s: c.trajectory_writer(1).flush(timeout=s),
    lambda c, s: c.insert([1.0], {"t": 1.0}, timeout=s),
    lambda c, s: next(c.sample("t", timeout=s)),
    lambda c, s: c.sampler("t", 1, timeout=s),
    lambda c, s: c.sampler("t", 1).signature(timeout=s),
    lambda c, s: c.server_info(timeout=s),
    lambda c, s: c.details(timeout=s),
    lambda c, s: c.mutate_priorities("t", {1: 1.0}, timeout=s),
    lambda c, s: c.update_priorities("t", [1], [1.0], timeout=s),
    lambda c, s: c.reset("t", timeout=s),
    lambda c, s: c.checkpoint(timeout=s),
    lambda c, s: c.storage(timeout=s),
    lambda c, s: c.why(timeout=s),
    lambda c, s: c.drop_table("t", timeout=s),
    lambda c, s: c.alter_table("t", max_size=3, timeout=s),
    lambda c, s: c.pause_table("t", timeout=s),
    lambda c, s: c.writer(1, timeout=s),
    lambda c, s: c.trajectory_writer(1, timeout=s),
    lambda c, s: writer_of(c).create_item("t", 1, 1.0, timeout=s),
    lambda c, s: writer_of(c).flush(timeout=s),
    lambda c, s: writer_of(c).close(timeout=s),
    lambda c, s: c.rollouts("r").info(timeout=s),
    lambda c, s: asyncio.run(aio.AsyncClient(c).insert([1.0], {"t": 1.0}, timeout=s)),
    lambda c, s: asyncio.run(aio.AsyncClient(c).sample("t", timeout=s).__anext__()),
    lambda c, s: asyncio.run(aio.AsyncClient(c).server_info(timeout=s)),
    lambda c, s: asyncio.run(aio.AsyncClient(c).reset("t", timeout=s)),
    lambda c, s: asyncio.run(aio.AsyncClient(c).why(timeout=s)),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("timeout, error, text", [
    (-1, ValueError, "timeout must be None or >= 0 seconds, got -1"),
    ("1", TypeError, "timeout must be a number or None, got '1'"),
])
def test_a_timeout_is_a_number_of_seconds(call, timeout, error, text):
    with reprise.Server([reprise.Table.queue("t", 10)]) as server:
        with pytest.raises(error, match=text):
            call(server.localhost_client(), timeout)


def test_the_wait_of_a_writer_begins_with_its_constructor(monkeypatch):
    """A writer waits for the signatures of its tables first. The log counts that time, too."""
    said = []
    begun = 0.0

    def say_waiting(seconds, reason):
        said.append((seconds, time.monotonic() - begun))
        raise KeyboardInterrupt

    monkeypatch.setattr(reprise._log, "say_waiting", say_waiting)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = reprise.Client(f"localhost:{listener.getsockname()[1]}")
        writer = reprise._core.StepWriter(client._client, 1, timeout=1.5)
        writer.append([1.0])
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            writer.create_item("t", 1, 1.0)
            writer.flush()
        step = {"a": np.zeros(1)}
        pattern = reprise.structured_writer.pattern_from_transform(
            reprise.structured_writer.create_reference_step(step), lambda ref: {"a": ref["a"][-1:]})
        config = reprise.structured_writer.create_config(pattern, "t", [])
        patterns = client.structured_writer([config])
        patterns.append(step)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            patterns.flush()
    # The second number is the time of the calls that are logged: it would not be less.
    assert len(said) == 2
    assert all(counted > waited for counted, waited in said), said
