# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the trajectory writer: a store, over each transport, and a writer."""

import collections
import contextlib
import gc

import numpy as np
import pytest

from reprise import _core, specs
from reprise.trajectory_writer import TrajectoryWriter

FOR_EVER = (1.0, 1, -1e300, 1e300)
Pair = collections.namedtuple("Pair", "x y")
WAIT_MS = 120_000


class Place:
    """A store with some tables, and a client of it over one transport."""

    def __init__(self, transport, directory):
        self.store = _core.Store()
        queue = dict(sampler=("fifo", 0.0), remover=("fifo", 0.0), max_times_sampled=1)
        self.store.add_table("t", limiter=FOR_EVER, max_size=100_000, **queue)
        self.store.add_table("small", limiter=(1.0, 1, 0.0, 2.0), max_size=2, **queue)
        self.store.add_table("signed", limiter=FOR_EVER, max_size=1000, signature={
            "a": specs.TensorSpec((2,), np.float32), "b": specs.TensorSpec((), np.int64)},
            **queue)
        self.server = None
        if transport == "local":
            self.client = _core.Client.local(self.store)
            return
        address = "127.0.0.1:0" if transport == "tcp" else f"unix:{directory}/socket"
        self.server = _core.Server(self.store, address)
        if transport == "tcp":
            address = f"127.0.0.1:{self.server.port}"
        self.client = _core.Client(address)

    def writer(self, refs=10, **options):
        return TrajectoryWriter(self.client, refs, **options)

    def read(self, count=1, table="t"):
        """Returns the columns of the next items."""
        sampler = _core.Sampler(self.client, table, max_samples=count)
        found = []
        while len(found) < count:
            got = sampler.next(count - len(found), timeout_ms=WAIT_MS)
            assert got, "the samples ended early"
            found += got
        sampler.close()
        return [sample[-1] for sample in found]

    def size(self, table="t"):
        return self.store.table_info(table)["size"]


@pytest.fixture(params=["local", "tcp", "unix"])
def place(request, tmp_path):
    made = Place(request.param, tmp_path)
    yield made
    gc.collect()
    if made.server is not None:
        made.server.stop(0)


@pytest.fixture
def local(tmp_path):
    return Place("local", tmp_path)


@pytest.fixture
def writer(local):
    return local.writer()


def fill(writer, count, start=0):
    for i in range(start, start + count):
        writer.append({"a": np.float32(i), "b": np.full(3, i, np.int32)})


@contextlib.contextmanager
def blocked(place):
    """Returns a writer with two items more than their table takes."""
    writer = place.writer(refs=1)
    for i in range(4):
        writer.append({"a": i})
        writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    try:
        yield writer
    finally:
        writer.close()


def waits(place):
    """Returns whether an insert waits at the table of blocked()."""
    return place.store.table_info("small")["waiting_inserts"] > 0
