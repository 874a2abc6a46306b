# SPDX-License-Identifier: Apache-2.0
"""reprise._core.Sampler: samples, batches, prefetched batches."""

import gc
import os
import sys
import threading
import time

import numpy as np
import pytest
from events import LIMIT_S, Call, Witness, assert_interrupted, wait_until

from reprise import _core

MIN_SIZE_1 = (1.0, 1, -1e300, 1e300)
QUEUE = dict(sampler="fifo", remover="fifo", max_times_sampled=1)


class World:
    """A store with tables, and a client of it over one transport."""

    def __init__(self, transport, tmp_path, **tables):
        self.store = _core.Store(seed=7)
        for name, options in tables.items():
            self.store.add_table(name, **{"limiter": MIN_SIZE_1, "max_size": 100000, **options})
        self.server = None
        if transport == "local":
            self.client = _core.Client.local(self.store)
        else:
            path = f"unix:{tmp_path}/s"
            address = "localhost:0" if transport == "tcp" else path
            self.server = _core.Server(self.store, address)
            if transport == "tcp":
                address = f"localhost:{self.server.port}"
            self.client = _core.Client(address)

    def insert(self, table, *steps, priority=1.0, length=1):
        """Inserts one item for each `length` steps."""
        writer = _core.StepWriter(self.client, length, chunk_length=length)
        keys = []
        for i, step in enumerate(steps, 1):
            writer.append(step)
            if i % length == 0:
                keys.append(writer.create_item(table, length, priority))
        writer.flush(10)
        return keys

    def sampler(self, table="t", **options):
        return _core.Sampler(self.client, table, **options)


@pytest.fixture(params=["local", "tcp", "unix"])
def make(request, tmp_path):
    made = []

    def make(**tables):
        made.append(World(request.param, tmp_path, **(tables or {"t": {}})))
        return made[-1]

    yield make
    for world in made:
        if world.server is not None:
            world.server.stop(0)


@pytest.fixture
def local(tmp_path):
    return lambda **tables: World("local", tmp_path, **(tables or {"t": {}}))


def bounded(tmp_path, **options):
    """Returns a world whose client has these limits."""
    world = World("unix", tmp_path, t=QUEUE)
    world.client = _core.Client(f"unix:{tmp_path}/s", **options)
    return world


def test_an_item_over_the_limit_is_not_decoded(tmp_path):
    """The text of the error has the size, the limit, and the name of the option."""
    world = bounded(tmp_path, item_bytes=999)
    for size in (999, 1000):
        world.insert("t", np.zeros(size, np.uint8))
    sampler = world.sampler(max_in_flight=1)
    [sample] = sampler.next(1, timeout_ms=10000)
    assert sample[5][0].nbytes == 999
    with pytest.raises(_core.StatusError, match="999.*1000.*item_bytes") as caught:
        sampler.next(1, timeout_ms=10000)
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    world.server.stop(0)


@pytest.mark.parametrize("transport", ["local", "unix"])
def test_a_batch_over_the_limit_is_not_decoded(tmp_path, transport):
    world = World(transport, tmp_path, t=QUEUE)
    world.client = (_core.Client.local(world.store, 0, 4000) if transport == "local"
                    else _core.Client(f"unix:{tmp_path}/s", batch_bytes=4000))
    world.insert("t", *[np.zeros(1000, np.uint8)] * 20)
    sampler = world.sampler()
    assert sampler.batch(4, timeout_ms=10000).columns[0].nbytes == 4000
    with pytest.raises(_core.StatusError, match="5000.*4000.*batch_bytes"):
        sampler.batch(5, timeout_ms=10000)
    assert sampler.batch(4, timeout_ms=10000).columns[0].nbytes == 4000
    if world.server is not None:
        world.server.stop(0)


def test_strings_count_in_a_batch(tmp_path):
    world = bounded(tmp_path, batch_bytes=5000)
    world.insert("t", *[np.array([b"x" * 1000])] * 20)
    sampler = world.sampler()
    assert len(sampler.batch(4, timeout_ms=10000).columns[0]) == 4
    with pytest.raises(_core.StatusError, match="batch_bytes"):
        sampler.batch(5, timeout_ms=10000)
    world.server.stop(0)


@pytest.mark.parametrize("name", ["message_bytes", "item_bytes", "batch_bytes"])
def test_limits_are_not_negative(name):
    with pytest.raises(ValueError, match=name):
        _core.Client("localhost:1", **{name: -1})


def step(i, size=3):
    return {"a": np.full(size, i, np.float32), "b": np.int64(i)}


def test_next_returns_the_inserted_items_in_order(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(5)), priority=2.5)
    sampler = world.sampler(max_samples=5)

    seen = []
    while True:
        samples = sampler.next(2, timeout_ms=10000)
        if not samples:
            break
        assert len(samples) <= 2
        seen += samples

    assert [int(s[5][1][0]) for s in seen] == [0, 1, 2, 3, 4]
    key, probability, table_size, priority, times_sampled, columns = seen[0]
    assert isinstance(key, int) and isinstance(probability, float)
    assert (priority, times_sampled) == (2.5, 1) and probability == 1.0 and table_size >= 1
    assert columns[0].dtype == np.float32 and columns[0].shape == (1, 3)
    assert columns[1].dtype == np.int64 and columns[1].shape == (1,)
    assert columns[0].flags.writeable and columns[0].flags.owndata
    assert sampler.ended == "samples"
    assert sampler.next(1) == []


def test_next_arguments(local):
    sampler = local().sampler()
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        sampler.next(0)
    with pytest.raises(TypeError, match="no argument 'limits'"):
        sampler.next(limits=1)
    with pytest.raises(TypeError, match="'limit' twice"):
        sampler.next(1, limit=1)
    with pytest.raises(TypeError):
        sampler.next("one")
    with pytest.raises(TypeError):
        sampler.next(1, 2, 3)


def test_next_times_out_and_goes_on(make):
    world = make()
    sampler = world.sampler()

    with pytest.raises(_core.DeadlineExceededError, match="no sample within 60 ms: none is ready; a timeout of 100 ms or more gives the reason"):
        sampler.next(1, timeout_ms=60)

    world.insert("t", step(3))
    assert sampler.next(1, timeout_ms=10000)[0][5][1] == [3]


def test_rate_limiter_timeout_ends_the_sequence(make):
    world = make(t=QUEUE)
    world.insert("t", step(0))
    sampler = world.sampler(rate_limiter_timeout_ms=100)

    assert len(sampler.next(1, timeout_ms=10000)) == 1
    assert sampler.next(1, timeout_ms=10000) == []
    assert sampler.ended == "timeout"
    assert sampler.next(1) == []


def test_strings_and_large_samples(make):
    world = make(t=QUEUE)
    big = np.arange(300000, dtype=np.int32)
    world.insert("t", {"s": np.array([b"one", b"", b"three\0x"], object), "x": big})
    (sample,) = world.sampler().next(1, timeout_ms=10000)

    strings, column = sample[5]
    assert strings.dtype == object and strings.tolist() == [[b"one", b"", b"three\0x"]]
    assert np.array_equal(column[0], big)


def test_unknown_table(make):
    world = make()
    with pytest.raises(_core.StatusError) as error:
        world.sampler("nope").next(1, timeout_ms=10000)
    assert error.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "options",
    [
        dict(max_samples=0),
        dict(max_samples=-2),
        dict(max_in_flight=0),
        dict(streams=0),
        dict(max_per_stream=0),
        dict(max_per_stream=-7),
    ],
)
def test_options_out_of_range(local, options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        local().sampler(**options)


def test_a_client_is_needed(local):
    with pytest.raises(TypeError, match="_core.Client"):
        _core.Sampler("localhost:1", "t")


def test_batch_stacks_columns_and_has_the_info_of_each_item(make):
    world = make(t=QUEUE)
    keys = world.insert("t", *(step(i) for i in range(4)), priority=0.5)
    batch = world.sampler(max_samples=4).batch(4, timeout_ms=10000)

    assert len(batch) == batch.size == 4
    a, b = batch.columns
    assert a.shape == (4, 1, 3) and a.dtype == np.float32
    assert b[:, 0].tolist() == [0, 1, 2, 3]
    assert batch.lengths == [None, None]
    assert batch.keys.tolist() == keys and batch.keys.dtype == np.uint64
    assert batch.priorities.tolist() == [0.5] * 4 and batch.priorities.dtype == np.float64
    assert batch.probabilities.tolist() == [1.0] * 4
    assert batch.weights.tolist() == [1.0] * 4
    assert batch.times_sampled.tolist() == [1] * 4 and batch.times_sampled.dtype == np.int32
    assert batch.table_sizes.dtype == np.int64 and (batch.table_sizes >= 1).all()
    assert "4 items, 2 columns" in repr(batch)


def test_last_batch_is_smaller_or_left_out(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(10)))

    sampler = world.sampler(max_samples=5)
    assert [sampler.batch(4, timeout_ms=10000).size for _ in range(2)] == [4, 1]
    assert sampler.batch(4) is None and sampler.ended == "samples"

    sampler = world.sampler(max_samples=5)
    assert sampler.batch(4, whole=True, timeout_ms=10000).size == 4
    assert sampler.batch(4, whole=True, timeout_ms=10000) is None


def test_batch_that_times_out_loses_nothing(make):
    world = make(t=QUEUE)
    world.insert("t", step(0), step(1))
    sampler = world.sampler()

    with pytest.raises(_core.DeadlineExceededError, match="no batch within 100 ms"):
        sampler.batch(3, timeout_ms=100)
    world.insert("t", step(2))
    assert sampler.batch(3, timeout_ms=10000).columns[1][:, 0].tolist() == [0, 1, 2]


def ragged_world(make):
    world = make(t=QUEUE)
    world.insert("t", step(1))
    world.insert("t", *(step(i) for i in (2, 3, 4)), length=3)
    return world


def test_ragged_is_refused(make):
    sampler = ragged_world(make).sampler()
    with pytest.raises(ValueError, match="table 't': item 1, column 0: 3 rows but item 0 has 1"):
        sampler.batch(2, timeout_ms=10000)


def test_ragged_is_padded(make):
    batch = ragged_world(make).sampler().batch(2, ragged="pad", timeout_ms=10000)
    assert batch.columns[1].tolist() == [[1, 0, 0], [2, 3, 4]]
    assert batch.columns[0].shape == (2, 3, 3) and not batch.columns[0][0, 1:].any()
    assert [x.tolist() for x in batch.lengths] == [[1, 3], [1, 3]]


def test_ragged_with_offsets(make):
    batch = ragged_world(make).sampler().batch(2, ragged="offsets", timeout_ms=10000)
    assert batch.columns[1].tolist() == [1, 2, 3, 4]
    assert batch.columns[0].shape == (4, 3)
    assert [x.tolist() for x in batch.lengths] == [[0, 1, 4], [0, 1, 4]]


def test_out_is_filled(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(6)))
    out = [np.full((4, 1, 3), -1, np.float32), np.full((4, 1), -1, np.int64)]
    sampler = world.sampler(max_samples=6)

    first = sampler.batch(4, out=out, timeout_ms=10000)
    assert first.columns[0] is out[0] and first.columns[1] is out[1]
    assert out[1][:, 0].tolist() == [0, 1, 2, 3]

    last = sampler.batch(4, out=out, timeout_ms=10000)
    assert last.columns[1].shape == (2, 1) and np.shares_memory(last.columns[1], out[1])
    assert out[1][:, 0].tolist() == [4, 5, 2, 3]


@pytest.mark.parametrize(
    "out, text",
    [
        ([np.zeros((2, 1, 3), np.float32)], "memory for 1 column was given"),
        ([np.zeros((2, 1, 3)), np.zeros((2, 1), np.int64)], r"memory for double \[2,1,3\]"),
        ([np.zeros((2, 1, 4), np.float32), np.zeros((2, 1), np.int64)], r"float \[2,1,3\]"),
        ([np.zeros((1, 1, 3), np.float32), np.zeros((2, 1), np.int64)], r"float \[1,1,3\]"),
        ([np.zeros((2, 1, 6), np.float32)[..., ::2], np.zeros((2, 1), np.int64)], "contiguous"),
    ],
)
def test_out_that_does_not_fit(local, out, text):
    world = local(t=QUEUE)
    world.insert("t", step(0), step(1))
    with pytest.raises(ValueError, match=text):
        world.sampler().batch(2, out=out, timeout_ms=10000)


def test_out_must_be_arrays(local):
    with pytest.raises(
        TypeError, match="column 0: memory for batches is a NumPy array, got list"
    ):
        local().sampler().batch(2, out=[[1, 2]])
    read_only = np.zeros((2, 1))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        local().sampler().batch(2, out=[read_only])


def test_batch_arguments(local):
    sampler = local().sampler()
    with pytest.raises(ValueError, match="at least 1 item, got 0"):
        sampler.batch(0)
    with pytest.raises(ValueError, match="'refuse', 'pad' or 'offsets', got 'no'"):
        sampler.batch(1, ragged="no")
    with pytest.raises(ValueError, match="1048576"):
        sampler.batch(1 << 21, timeout_ms=10)


def test_strings_in_batches(make):
    world = make(t=QUEUE)
    world.insert("t", *({"s": np.array(f"text {i}", object)} for i in range(3)))
    batch = world.sampler().batch(3, timeout_ms=10000)
    assert batch.columns[0].tolist() == [[b"text 0"], [b"text 1"], [b"text 2"]]


def test_importance_weights(make):
    world = make(t=dict(sampler=("prioritized", 1.0)))
    (low,) = world.insert("t", step(0), priority=1.0)
    (high,) = world.insert("t", step(1), priority=3.0)
    batch = world.sampler(beta=1.0).batch(200, timeout_ms=10000)

    assert set(batch.keys.tolist()) == {low, high}
    weight = dict(zip(batch.keys.tolist(), batch.weights.tolist()))
    assert weight[low] == 1.0 and weight[high] == pytest.approx(1 / 3)
    chance = dict(zip(batch.keys.tolist(), batch.probabilities.tolist()))
    assert chance[low] == pytest.approx(0.25) and chance[high] == pytest.approx(0.75)


def take_all(sampler):
    batches = []
    while True:
        batch = sampler.take(10000)
        if batch is None:
            return batches
        batches.append(batch)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_take_returns_batches_in_order(make, depth):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(50)))
    sampler = world.sampler(max_samples=50)
    sampler.start(8, depth=depth)
    batches = take_all(sampler)

    assert [b.size for b in batches] == [8] * 6 + [2]
    assert np.concatenate([b.columns[1][:, 0] for b in batches]).tolist() == list(range(50))
    assert sampler.ended == "samples" and sampler.take(0) is None


def test_fresh_batches_never_change(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i, 5000) for i in range(60)))
    sampler = world.sampler(max_samples=60)
    sampler.start(4, depth=2)
    kept = take_all(sampler)
    for i, batch in enumerate(kept):
        expected = np.arange(4 * i, 4 * i + 4)
        assert (batch.columns[0][:, 0, :] == expected[:, None]).all()
    del sampler, world, batch
    gc.collect()
    assert kept[3].columns[0][0, 0, 0] == 12


def test_memory_of_a_dead_batch_is_used_again(local):
    world = local(t={})
    world.insert("t", step(1, 5000))
    sampler = world.sampler()
    sampler.start(4, depth=1)
    addresses = {sampler.take(10000).columns[0].ctypes.data for _ in range(50)}
    assert len(addresses) <= 6


def test_reuse_keeps_the_latest_batches_unchanged(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i, 5000) for i in range(80)))
    sampler = world.sampler(max_samples=80)
    sampler.start(4, depth=2, reuse=3)
    latest, addresses = [], set()
    for i in range(20):
        batch = sampler.take(10000)
        addresses.add(batch.columns[0].ctypes.data)
        latest = (latest + [(i, batch)])[-3:]
        for j, kept in latest:
            assert kept.columns[1][:, 0].tolist() == list(range(4 * j, 4 * j + 4))
            assert kept.columns[0][0, 0, 0] == 4 * j
    assert len(addresses) == 5


def test_batches_use_the_memory_of_the_caller(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(22)))
    memory = [[np.zeros((4, 1, 3), np.float32), np.zeros((4, 1), np.int64)] for _ in range(3)]
    sampler = world.sampler(max_samples=22)
    sampler.start(4, depth=2, reuse=1, memory=memory)
    for i in range(5):
        batch = sampler.take(10000)
        assert batch.columns[0] is memory[i % 3][0]
        assert batch.columns[1][:, 0].tolist() == list(range(4 * i, 4 * i + 4))
    last = sampler.take(10000)
    assert last.columns[1][:, 0].tolist() == [20, 21]
    assert np.shares_memory(last.columns[1], memory[2][1])


def test_memory_that_does_not_fit_is_an_error_of_the_batch(local):
    world = local(t=QUEUE)
    world.insert("t", step(0), step(1))
    sampler = world.sampler()
    sampler.start(1, depth=1, reuse=1, memory=[[np.zeros((1, 1))]] * 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="memory for 1 column was given"):
            sampler.take(10000)


def test_start_arguments(local):
    sampler = local().sampler()
    with pytest.raises(RuntimeError, match="start"):
        sampler.take()
    with pytest.raises(ValueError, match="depth must be 1 .. 1024"):
        sampler.start(1, depth=0)
    with pytest.raises(ValueError, match="reuse"):
        sampler.start(1, reuse=-1)
    with pytest.raises(ValueError, match="reuse must be >= 1"):
        sampler.start(1, memory=[])
    with pytest.raises(ValueError, match="memory for 3 batches"):
        sampler.start(1, depth=2, reuse=1, memory=[])
    with pytest.raises(ValueError, match="2 arrays for batch 1 but 1 for the first"):
        a = np.zeros((1, 1))
        sampler.start(1, depth=1, reuse=1, memory=[[a], [a, a]])
    sampler.start(1)
    with pytest.raises(RuntimeError, match="already"):
        sampler.start(1)


def test_a_sampler_continues_after_a_batch_of_differing_items(make):
    world = make(t=QUEUE)
    world.insert("t", step(0))
    world.insert("t", step(1), step(2), length=2)
    world.insert("t", step(3), step(4))
    sampler = world.sampler(max_samples=4)
    sampler.start(2, depth=2)
    with pytest.raises(ValueError, match="rows"):
        sampler.take(10000)
    assert sampler.take(10000).columns[1][:, 0].tolist() == [3, 4]
    assert sampler.take(10000) is None


def test_a_prefetch_error_is_returned_by_each_take(make):
    sampler = make().sampler("nope")
    sampler.start(2)
    for _ in range(3):
        with pytest.raises(_core.StatusError) as error:
            sampler.take(10000)
        assert error.value.code == "NOT_FOUND"


def test_rate_limiter_timeout_ends_prefetching(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(5)))
    sampler = world.sampler(rate_limiter_timeout_ms=100)
    sampler.start(2)
    assert [b.size for b in take_all(sampler)] == [2, 2, 1]
    assert sampler.ended == "timeout"


def test_take_times_out_with_a_reason_and_loses_nothing(make):
    world = make(t=QUEUE)
    world.insert("t", step(0))
    sampler = world.sampler()
    sampler.start(2)
    with pytest.raises(_core.DeadlineExceededError, match="no batch within 80 ms: "):
        sampler.take(80)
    world.insert("t", step(1))
    assert sampler.take(10000).columns[1][:, 0].tolist() == [0, 1]


def test_several_readers_share_one_sequence(make):
    world = make(t=QUEUE)
    world.insert("t", *(step(i) for i in range(400)))
    sampler = world.sampler(max_samples=400)
    sampler.start(4, depth=3)
    seen = []

    def read():
        for batch in take_all(sampler):
            seen.extend(batch.columns[1][:, 0].tolist())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(seen) == list(range(400))


@pytest.mark.parametrize("how", ["next", "batch", "take"])
def test_close_ends_a_wait(make, how):
    world = make()
    sampler = world.sampler()
    if how == "take":
        sampler.start(2)
    calls = dict(
        next=lambda: sampler.next(1), batch=lambda: sampler.batch(2), take=sampler.take
    )
    errors = []

    def wait():
        try:
            calls[how]()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: world.store.table_info("t")["waiting_samples"] > 0)
    sampler.close()
    thread.join(120)
    assert not thread.is_alive()
    assert errors[0].code == "CANCELLED"
    assert sampler.closed
    sampler.close()
    with pytest.raises(_core.StatusError, match="closed"):
        calls[how]()
    assert sampler.why() == "the sampler is closed"


def test_a_sampler_can_be_dropped_at_any_moment(make):
    world = make()
    world.insert("t", *(step(i) for i in range(20)))
    for depth in range(8):
        sampler = world.sampler()
        if depth:
            sampler.start(3, depth=depth)
        if depth % 2:
            sampler.take(10000)
        del sampler


def waiting_call(sampler, how):
    """Returns a function that waits for two samples."""
    if how == "take":
        sampler.start(2)
    limit_ms = LIMIT_S * 1000
    return dict(
        next=lambda: sampler.next(1, timeout_ms=limit_ms),
        batch=lambda: sampler.batch(2, timeout_ms=limit_ms),
        take=lambda: sampler.take(limit_ms),
    )[how]


@pytest.mark.parametrize("how", ["next", "batch", "take"])
def test_ctrl_c_ends_a_wait(make, how):
    world = make()
    call = waiting_call(world.sampler(), how)

    assert_interrupted(call, lambda: world.store.table_info("t")["waiting_samples"] > 0)


@pytest.mark.parametrize("how", ["next", "batch", "take"])
def test_a_blocked_sampler_leaves_the_gil_to_others(make, how):
    """The call can end only if this thread runs while the call waits."""
    world = make()
    call = Call(waiting_call(world.sampler(), how))

    wait_until(lambda: world.store.table_info("t")["waiting_samples"] > 0)
    assert sum(range(100_000)) > 0 and not call.is_over
    world.insert("t", step(1), step(2))

    assert call.end()


def test_batches_are_made_beside_a_thread_that_keeps_the_gil(local):
    """take(0) does not release the GIL; still a batch is made in the background."""
    world = local(t={})
    world.insert("t", *(step(i, 1000) for i in range(64)))
    sampler = world.sampler(max_in_flight=200)
    sampler.start(32, depth=4)
    taken, end = 0, time.monotonic() + LIMIT_S

    with Witness() as witness:
        while taken < 12 and time.monotonic() < end:
            try:
                taken += sampler.take(0).size == 32
            except _core.DeadlineExceededError:
                pass
        has_run = witness.has_run

    assert taken == 12 and not has_run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_sampler_is_refused_in_a_forked_child(make):
    world = make()
    world.insert("t", step(0))
    sampler = world.sampler()
    sampler.start(1)
    sampler.take(10000)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sampler.take(1000)
        except _core.StatusError as error:
            code = 0 if error.code == "FAILED_PRECONDITION" else 2
            del sampler
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sampler.take(10000).size == 1


def test_no_references_are_lost(local):
    world = local(t={})
    world.insert("t", *({"a": np.ones(3), "s": np.array("x", object)} for _ in range(8)))
    sampler = world.sampler()
    sampler.start(4, depth=1, reuse=1)
    out = [np.zeros((4, 1, 3)), np.empty((4, 1), object)]

    def once():
        sampler.next(4)
        sampler.batch(4)
        sampler.batch(4, out=out)
        sampler.take()

    for _ in range(50):
        once()
    gc.collect()
    before = sys.getrefcount(out[0]), sys.getrefcount(None), len(gc.get_objects())
    for _ in range(200):
        once()
    gc.collect()
    after = sys.getrefcount(out[0]), sys.getrefcount(None), len(gc.get_objects())
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 50 and abs(after[2] - before[2]) < 50
