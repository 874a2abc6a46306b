# SPDX-License-Identifier: Apache-2.0
"""A trajectory writer with threads, signals and forks; leaks of references."""

import collections
import copy
import gc
import os
import pickle
import socket
import sys
import threading
import time

import numpy as np
import pytest

from events import LIMIT_S, Call, Witness, assert_interrupted
from trajectory_place import WAIT_MS, Pair, blocked, fill, local, place, waits, writer  # noqa: F401: fixtures

from reprise import _core, errors
from reprise.trajectory_writer import TrajectoryColumn, TrajectoryWriter


def test_a_flush_that_waits_lets_other_threads_in(place):
    with blocked(place) as writer:
        flush = Call(writer.flush, timeout_ms=WAIT_MS)
        for i in range(100):  # all of these run before the flush can end
            writer.append({"a": i})
            assert writer.history["a"][-1].numpy() == i
        assert not flush.is_over
        place.read(2, "small")
        flush.end()


def test_ctrl_c_ends_a_wait(place):
    with blocked(place) as writer:
        assert_interrupted(lambda: writer.flush(timeout_ms=WAIT_MS), lambda: waits(place))
        writer.append({"a": 5})
        assert writer.history["a"][-1].numpy() == 5


def test_ctrl_c_ends_the_wait_for_a_server(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{tmp_path}/silent")
        silent.listen()
        client = _core.Client(f"unix:{tmp_path}/silent")
        assert_interrupted(lambda: TrajectoryWriter(client, 1, timeout=LIMIT_S),
                           lambda: silent.accept())


def test_threads_share_a_writer(place):
    writer = place.writer(refs=100)
    large = np.zeros(1 << 17, np.uint8)

    def append():
        for _ in range(50):
            writer.append({"x": large})

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.episode_steps == 200 and len(writer.history["x"]) == 200


def test_a_large_append_releases_the_gil(local):
    large = np.zeros(8 << 20, np.uint8)
    writer = local.writer(refs=1)
    writer.configure((0,), num_keep_alive_refs=1, max_chunk_length=1, codec="none")
    writer.append([large])
    end = time.monotonic() + LIMIT_S

    with Witness() as witness:  # runs only if the append releases the GIL
        while not witness.has_run and time.monotonic() < end:
            writer.append([large])
        has_run = witness.has_run

    assert has_run


def test_writers_of_several_threads(place):
    def write(index):
        with place.writer(refs=2) as writer:
            for i in range(200):
                writer.append({"who": index, "i": i})
                writer.create_item("t", 1.0, {k: writer.history[k][-1] for k in ("who", "i")})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    rows = collections.defaultdict(list)
    for i, who in place.read(1600):
        rows[int(who)].append(int(i))
    assert rows == {who: list(range(200)) for who in range(8)}


def test_a_call_from_inside_a_call_is_refused(writer):
    class Sneaky:
        def __array__(self, *args, **kwargs):
            writer.append([1])
            return np.zeros(3)

    with pytest.raises(RuntimeError, match="busy"):
        writer.append([Sneaky()])
    writer.append([5])
    assert writer.episode_steps == 1


def test_a_fork_leaves_the_writer_with_the_parent(place):
    writer = place.writer()
    fill(writer, 2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = []
            for call in (lambda: fill(writer, 1), writer.flush, writer.end_episode,
                         lambda: writer.create_item("t", 1.0, [writer.history["a"][:]])):
                try:
                    call()
                    said.append("no error")
                except errors.StatusError as error:
                    said.append(error.code)
            del writer
            os.write(write, " ".join(said).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 1000).decode().split() == ["FAILED_PRECONDITION"] * 4
    os.close(read)

    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.size() == 1


def test_a_fork_while_the_writer_is_busy(place):
    with blocked(place) as writer:
        thread = threading.Thread(target=lambda: pytest.raises(
            errors.DeadlineExceededError, writer.flush, timeout_ms=500))
        thread.start()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                writer.append({"a": 1})
            except errors.StatusError as error:
                os.write(write, error.code.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        assert os.read(read, 100) == b"FAILED_PRECONDITION"
        os.close(read)
        thread.join()


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_writers_and_their_parts_are_not_pickled(writer, take):
    fill(writer, 2)
    for part in (writer, writer.history["a"], writer.history["a"][:],
                 list(writer.history["a"])[0]):
        with pytest.raises(TypeError, match="pickle"):
            take(part)


def count_of(function, times=60):
    """Returns how many blocks of memory are added by that many calls."""
    for _ in range(20):
        function()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        function()
    gc.collect()
    return sys.getallocatedblocks() - before


def quietly(function, *errors_expected):
    def call():
        try:
            function()
        except errors_expected:
            return
        raise AssertionError("no error")
    return call


def test_nothing_leaks(local):
    writer = local.writer(refs=3)
    step = {"a": np.zeros(3, np.float32), "b": 1, "s": "text", "n": [1.5, Pair(True, None)]}
    writer.append(step)
    h = writer.history
    bad_step = dict(step, b=1.5)
    lost = h["a"][:]
    for _ in range(4):
        writer.append(step)

    cases = {
        "append": lambda: writer.append(step),
        "append dtype": quietly(lambda: writer.append(bad_step), ValueError),
        "append object": quietly(lambda: writer.append(dict(step, b=object())), TypeError),
        "history": lambda: writer.history,
        "history kept": lambda: [writer.history, writer.history],
        "slice": lambda: h["a"][-3:],
        "list": lambda: h["a"][[-1, -2]],
        "int": lambda: h["a"][-1],
        "numpy": lambda: [h["a"][-3:].numpy(), h["s"][-2:].numpy(), h["b"][-1].numpy()],
        "cells": lambda: TrajectoryColumn(list(h["a"][-3:])).shape,
        "none": quietly(lambda: h["a"][0], ValueError),
        "none slice": quietly(lambda: h["a"][:], ValueError),
        "none list": quietly(lambda: h["a"][[-1, 0]], ValueError),
        "range": quietly(lambda: h["a"][[10 ** 6]], IndexError),
        "type": quietly(lambda: h["a"]["x"], TypeError),
        "expired": quietly(lost.numpy, RuntimeError),
        "create expired": quietly(lambda: writer.create_item("t", 1.0, [lost]), ValueError),
        "create type": quietly(lambda: writer.create_item("t", 1.0, [1]), TypeError),
        "create empty": quietly(lambda: writer.create_item("t", 1.0, []), ValueError),
        "create table": quietly(lambda: writer.create_item("no", 1.0, [h["a"][-1]]),
                                ValueError),
        "create signature": quietly(lambda: writer.create_item("signed", 1.0, [h["a"][-1]]),
                                    ValueError),
        "create": lambda: writer.create_item("t", 1.0, {"x": h["a"][-2:], "y": h["s"][-1]}),
        "flush": writer.flush,
        "end": lambda: (writer.end_episode(), writer.append(step), writer.append(step),
                        writer.append(step)),
        "writer": lambda: local.writer().append(step),
        "structures": lambda: writer.append({f"k{time.monotonic_ns() % 50}": 1, **step}),
    }
    leaks = {name: count_of(case) for name, case in cases.items() if name != "structures"}
    assert {name: n for name, n in leaks.items() if n > 20} == {}


def test_references_to_appended_values_are_dropped(local):
    writer = local.writer(refs=2)
    array, key = np.zeros(1 << 17, np.uint8), "some key"
    writer.append({key: array})
    writer.history  # noqa: B018
    before = sys.getrefcount(array), sys.getrefcount(key)
    for _ in range(50):
        writer.append({key: array})
        writer.history[key][-1:]  # noqa: B018

    assert (sys.getrefcount(array), sys.getrefcount(key)) == before
    client = local.client
    column, before = writer.history[key][-1:], sys.getrefcount(client)
    del writer
    after = sys.getrefcount(client)
    assert after == before - 1 and len(column) == 1
