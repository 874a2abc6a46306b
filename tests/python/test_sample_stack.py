# SPDX-License-Identifier: Apache-2.0
"""reprise._core.Sampler.stack: samples of any shapes, with one array for each column."""

import gc
import sys

import numpy as np
import pytest
from events import LIMIT_S, Call, assert_interrupted, wait_until
from reprise import _core
from test_sampler import QUEUE, World

LIMIT_MS = LIMIT_S * 1000


@pytest.fixture(params=["local", "tcp"])
def make(request, tmp_path):
    made = []

    def make(**options):
        made.append(World(request.param, tmp_path, t={**QUEUE, **options}))
        return made[-1]

    yield make
    for world in made:
        if world.server is not None:
            world.server.stop(0)


def insert(world, *items):
    """Inserts items. Each is a list of columns, of which the first dimension counts rows."""
    for number, columns in enumerate(items):
        writer = _core.StepWriter(world.client, len(columns[0]), chunk_length=len(columns[0]))
        for step in zip(*columns):
            writer.append(list(step))
        writer.create_item("t", len(columns[0]), 1.0 + number)
        writer.flush(LIMIT_S)


def stacks(sampler, limit=100):
    """Returns all stacks until the end of the sequence."""
    return list(iter(lambda: sampler.stack(limit, LIMIT_MS), None))


def split(stack):
    """Returns the samples of a stack, as next() returns them."""
    *infos, columns, shapes = stack
    parts = []
    for column, rows in zip(columns, shapes):
        if rows is None:
            parts.append(list(column))
            continue
        assert column.ndim == 1 and rows.dtype == np.int64
        ends = np.cumsum(rows.prod(1))
        assert len(column) == ends[-1]
        parts.append([values.reshape(shape) for values, shape in zip(np.split(column, ends[:-1]), rows)])
    return [(*info, list(values)) for info, values in zip(zip(*infos), zip(*parts))]


def rows_of(length, *shape, first=0):
    size = length * int(np.prod(shape, dtype=int))
    return np.arange(first, first + size, dtype=np.float32).reshape(length, *shape)


def test_samples_of_one_shape_are_stacked(make):
    world = make()
    insert(world, *([rows_of(2, 3, first=10 * i), np.array([i, i + 1])] for i in range(4)))
    keys, probabilities, sizes, priorities, times, columns, shapes = world.sampler(
        max_samples=4).stack(10, LIMIT_MS)

    count = len(keys)
    assert shapes == [None, None] and len(columns) == 2
    assert columns[0].shape == (count, 2, 3) and columns[0].dtype == np.float32
    assert columns[0][0].tolist() == rows_of(2, 3).tolist() and columns[1][0].tolist() == [0, 1]
    assert [a.dtype for a in (keys, probabilities, sizes, priorities, times)] == [
        np.uint64, np.float64, np.int64, np.float64, np.int32]
    assert priorities.tolist() == [1.0, 2.0, 3.0, 4.0][:count] and times.tolist() == [1] * count
    assert columns[0].flags.writeable


def test_samples_of_several_shapes_are_end_to_end(make):
    world = make()
    insert(world, *([rows_of(n, 2), rows_of(n)] for n in (1, 3, 2)))
    wait_until(lambda: world.store.table_info("t")["size"] == 3)
    sampler = world.sampler(max_samples=3)
    found = [sample for stack in stacks(sampler) for sample in split(stack)]
    assert [sample[5][0].shape for sample in found] == [(1, 2), (3, 2), (2, 2)]
    assert all(np.array_equal(s[5][0], rows_of(len(s[5][1]), 2)) for s in found)
    assert sampler.ended == "samples" and sampler.stack() is None


def test_only_samples_that_are_alike_are_stacked_together(make):
    """Other dtypes, ranks or numbers of columns begin another stack."""
    world = make()
    kinds = [[rows_of(1, 2)], [rows_of(1)], [rows_of(1).astype(np.int8)], [rows_of(1), rows_of(1)]]
    insert(world, *(kind for kind in kinds for _ in range(2)))
    found = stacks(world.sampler(max_samples=8))
    forms = [(len(stack[5]), stack[5][0].dtype, stack[5][0].ndim) for stack in found]
    assert sorted(set(forms), key=forms.index) == [
        (1, np.float32, 3), (1, np.float32, 2), (1, np.int8, 2), (2, np.float32, 2)]
    assert [p for stack in found for p in stack[3].tolist()] == list(range(1, 9))


def test_samples_that_are_not_alike_keep_their_order(make):
    """Also if there are more of them than a later call asks for."""
    world = make()
    kinds = [rows_of(1), rows_of(1).astype(np.int8)]
    insert(world, *([kinds[i % 2]] for i in range(10)))
    sampler = world.sampler(max_samples=10, max_in_flight=10)
    wait_until(lambda: world.store.table_info("t")["samples"] == 10)
    found = [sampler.stack(limit, LIMIT_MS) for limit in [8] + [2] * 9]
    assert [stack[3].tolist() for stack in found] == [[float(i)] for i in range(1, 11)]


def test_strings(make):
    world = make()
    words = [[b"one"], [b"", b"two\0x"], [b"three", b"four"]]
    insert(world, *([np.array(w, object)] for w in words))
    found = [sample for stack in stacks(world.sampler(max_samples=3)) for sample in split(stack)]
    assert [sample[5][0].tolist() for sample in found] == words
    assert found[0][5][0].dtype == object


def test_empty_rows(make):
    world = make()
    insert(world, [np.zeros((2, 0), np.float32)], [np.zeros((3, 0), np.float32)],
           [np.zeros((3, 0), np.float32)])
    found = [sample for stack in stacks(world.sampler(max_samples=3)) for sample in split(stack)]
    assert [sample[5][0].shape for sample in found] == [(2, 0), (3, 0), (3, 0)]


def test_equal_to_next(make):
    """Random lengths, in groups of random sizes, between calls of next()."""
    rng = np.random.default_rng(3)
    items = [[rows_of(n, 2, first=i), np.array([b"%d" % i] * n, object), np.full(n, i)]
             for i, n in enumerate(rng.choice([1, 2, 2, 2, 7], 60))]
    world = make()
    insert(world, *items)
    sampler = world.sampler(max_samples=len(items), max_in_flight=20)
    found = []
    while len(found) < len(items):
        limit = int(rng.integers(1, 12))
        if rng.random() < 0.3:
            found += sampler.next(limit, LIMIT_MS)
        else:
            found += split(sampler.stack(limit, LIMIT_MS))
    assert [sample[3] for sample in found] == [1.0 + i for i in range(len(items))]
    for sample, item in zip(found, items):
        assert all(np.array_equal(got, put) for got, put in zip(sample[5], item))


def test_large_samples_are_taken_in_parts(make):
    """At most 16 MiB are decoded in one call; the rest is kept for the next."""
    world = make()
    insert(world, *([np.full((1, 1 << 20), i, np.float64)] for i in range(4)))
    sampler = world.sampler(max_samples=4, max_in_flight=4)
    found = stacks(sampler)
    assert [int(p) for stack in found for p in stack[3]] == [1, 2, 3, 4]
    assert all(stack[5][0].nbytes <= 16 << 20 for stack in found)


def test_arguments(make):
    sampler = make().sampler()
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        sampler.stack(0)
    with pytest.raises(TypeError, match="no argument 'size'"):
        sampler.stack(size=1)
    with pytest.raises(_core.DeadlineExceededError, match="no sample within 20 ms"):
        sampler.stack(1, timeout_ms=20)


def test_waits_end(make):
    world = make()
    sampler = world.sampler()

    def waits():
        return world.store.table_info("t")["waiting_samples"] > 0

    assert_interrupted(lambda: sampler.stack(1, LIMIT_MS), waits)
    call = Call(sampler.stack, 1, LIMIT_MS)
    sampler.close()
    wait_until(lambda: call.is_over)
    assert call.raised.code == "CANCELLED"


def test_no_references_are_lost(tmp_path):
    world = World("local", tmp_path, t={})
    insert(world, *([rows_of(n, 2), np.array(["x"] * n, object)] for n in (1, 2, 2)))
    sampler = world.sampler()
    for _ in range(50):
        sampler.stack(8)
    gc.collect()
    before = sys.getrefcount(np.dtype(object)), len(gc.get_objects())
    for _ in range(200):
        sampler.stack(8)
    gc.collect()
    after = sys.getrefcount(np.dtype(object)), len(gc.get_objects())
    assert abs(after[0] - before[0]) < 50 and after[1] - before[1] < 50
