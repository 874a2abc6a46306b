# SPDX-License-Identifier: Apache-2.0
"""One server for most tests, with a table of every kind. Each test resets the tables that it
uses."""

import os
import sys

import grpc
import pytest

import harness
from harness import table

sys.path.insert(0, os.path.dirname(__file__))

from messages import Reverb  # noqa: E402

TABLES = [
    table("uniform"),
    table("uniform-too"),
    table("fifo", sampler="fifo"),
    table("lifo", sampler="lifo"),
    table("max-heap", sampler="max_heap"),
    table("min-heap", sampler="min_heap"),
    table("prioritized", sampler=("prioritized", 1.0)),
    table("prioritized-remover", sampler="fifo", remover=("prioritized", -0.5)),
    table("thrice", sampler="fifo", max_times_sampled=3),
    table("small", sampler="fifo", max_size=3),
    table("min-size", sampler="fifo", limiter=("min_size", 3)),
    table("ratio", sampler="fifo", limiter=("ratio", 2.0, 2, 2.0)),
    table("signed", sampler="fifo",
          signature={"a": "float32[?,2]", "b": {"tuple": ["int64[?]"]}}),
]
# Queues of four items. Each is used by one test, since inserts that wait for a queue outlive their
# stream.
QUEUES = [
    table(f"queue-{i}", sampler="fifo", max_size=4, max_times_sampled=1, limiter=("queue", 4))
    for i in range(40)
]
MIB = 2**20
# The tests send messages that are larger than the default limits.
LIMITS = {"message_bytes": 256 * MIB, "chunk_bytes": 256 * MIB, "tensor_bytes": 256 * MIB,
          "stream_pinned_bytes": 512 * MIB, "connection_pinned_bytes": 1024 * MIB}
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def make(config, folder):
    """Returns the server under test. With CONFORMANCE_SERVER=dm-reverb it is dm-reverb's, to find
    out which tests Reverb itself passes."""
    if os.environ.get("CONFORMANCE_SERVER") == "dm-reverb":
        return harness.DmReverb(config["tables"], folder)
    return harness.Reprise(config, folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with make({"tables": TABLES + QUEUES, "limits": LIMITS}, folder) as made:
        yield made.start()


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.address, UNLIMITED) as made:
        yield made


@pytest.fixture
def reverb(channel):
    return Reverb(channel)


@pytest.fixture
def fresh(reverb):
    """Resets the tables that a test names, and returns the first name."""

    def empty(*names):
        for name in names:
            reverb.reset(name)
        return names[0]

    return empty


@pytest.fixture(scope="session")
def unused_queues():
    return [q["name"] for q in QUEUES]


@pytest.fixture
def queue(unused_queues):
    """The name of a queue of four that no other test uses."""
    return unused_queues.pop()


@pytest.fixture
def refused():
    """with refused(code, text): expects a call to end with this code, and a message that contains
    this text."""

    class Expect:
        def __init__(self, code, text=""):
            self.code, self.text = code, text

        def __enter__(self):
            return self

        def __exit__(self, kind, error, _):
            assert isinstance(error, grpc.RpcError), f"no failure, but {error!r}"
            assert (error.code(), self.text in error.details()) == (self.code, True), (
                f"{error.code()}: {error.details()}")
            return True

    return Expect
