# SPDX-License-Identifier: Apache-2.0
"""reprise.Dataset and Client.sampler: batches of stacked arrays."""

import collections
import copy
import gc
import multiprocessing
import pickle
import weakref

import numpy as np
import pytest
from events import LIMIT_S, Call, assert_interrupted, wait_until

import reprise
from reprise.dataset import Batch, BatchInfo

SIGNATURE = {
    "obs": reprise.TensorSpec((None, 3), np.float32, "obs"),
    "extra": [reprise.TensorSpec((None,), np.int64), reprise.TensorSpec((None, 2), np.uint8)],
}


def tables():
    return [
        reprise.Table.queue("queue", 100000),
        reprise.Table.queue("signed", 100000, signature=SIGNATURE),
        reprise.Table(
            "uniform",
            reprise.selectors.Uniform(),
            reprise.selectors.Fifo(),
            100000,
            reprise.rate_limiters.MinSize(1),
        ),
        reprise.Table(
            "prioritized",
            reprise.selectors.Prioritized(1.0),
            reprise.selectors.Fifo(),
            100000,
            reprise.rate_limiters.MinSize(1),
        ),
    ]


@pytest.fixture(params=["in process", "child", "tcp"])
def client(request):
    where = {"where": "child"} if request.param == "child" else {}
    server = reprise.Server(tables(), **where)
    transport = "tcp" if request.param == "tcp" else None
    yield reprise.Client(f"localhost:{server.port}", transport=transport)
    server.stop()


@pytest.fixture
def near():
    server = reprise.Server(tables())
    yield server.localhost_client()
    server.stop()


def step(i):
    return {
        "obs": np.full(3, i, np.float32),
        "extra": [np.int64(i), np.full(2, i % 256, np.uint8)],
    }


def fill(client, table, count, first=0, length=1, priority=1.0):
    """Inserts `count` items of `length` steps."""
    with client.writer(length) as writer:
        for i in range(count * length):
            writer.append(step(first + i))
            if (i + 1) % length == 0:
                writer.create_item(table, length, priority)
        writer.flush()


def numbers(batch):
    return batch.data["extra"][0][:, 0].tolist()


def test_batches_have_the_form_of_the_signature(client):
    fill(client, "signed", 10)
    batches = list(client.sampler("signed", 4, max_samples=10))

    assert [b.size for b in batches] == [4, 4, 2]
    assert [n for b in batches for n in numbers(b)] == list(range(10))
    batch = batches[0]
    assert isinstance(batch, Batch) and isinstance(batch.info, BatchInfo)
    assert batch["obs"] is batch.data["obs"]
    assert batch["obs"].shape == (4, 1, 3) and batch["obs"].dtype == np.float32
    assert isinstance(batch["extra"], list) and batch["extra"][1].dtype == np.uint8
    assert batch.lengths is None
    assert batch.keys is batch.info.keys and batch.keys.dtype == np.uint64
    assert len(set(batch.keys.tolist())) == 4
    for name in ("probabilities", "priorities", "weights", "table_size", "times_sampled"):
        assert getattr(batch, name) is getattr(batch.info, name)
        assert getattr(batch, name).shape == (4,)
    assert (batch.weights == 1).all() and (batch.times_sampled == 1).all()


def test_without_a_signature_columns_are_a_list(client):
    fill(client, "queue", 4)
    (batch,) = client.sampler("queue", 4, max_samples=4)
    assert isinstance(batch.data, list) and len(batch.data) == 3
    assert [c.shape for c in batch.data] == [(4, 1), (4, 1, 2), (4, 1, 3)]


def test_structure_is_given_or_refused(near):
    fill(near, "signed", 8)
    Point = collections.namedtuple("Point", "x y z")
    (batch,) = near.sampler("signed", 4, max_samples=4, structure=Point(0, 0, 0))
    assert isinstance(batch.data, Point) and batch.data.z.shape == (4, 1, 3)
    (batch,) = near.sampler("signed", 4, max_samples=4, structure=False)
    assert isinstance(batch.data, list)


def test_structure_of_another_size_is_an_error(near):
    fill(near, "queue", 2)
    with pytest.raises(ValueError, match="items have 3 columns, but the structure has 2"):
        next(iter(near.sampler("queue", 2, structure={"a": 0, "b": 0})))


def test_a_dataset_can_be_made_from_an_address(near):
    fill(near, "queue", 4)
    dataset = reprise.Dataset(near.server_address, "queue", 4, max_samples=4)
    assert [b.size for b in dataset] == [4]
    assert (dataset.table, dataset.batch_size) == ("queue", 4)


def test_batch_is_a_named_tuple(near):
    fill(near, "signed", 2)
    (batch,) = near.sampler("signed", 2, max_samples=2)
    data, info, lengths = batch
    assert data is batch[0] and info is batch[1] and lengths is None
    again = pickle.loads(pickle.dumps(batch))
    assert np.array_equal(again["obs"], batch["obs"]) and (again.keys == batch.keys).all()
    mapped = reprise.tree.map_structure(lambda x: x, batch)
    assert isinstance(mapped, Batch) and isinstance(mapped.info, BatchInfo)


def test_dlpack(near):
    fill(near, "signed", 2)
    (batch,) = near.sampler("signed", 2, max_samples=2)
    if not hasattr(np, "from_dlpack"):
        pytest.skip("NumPy has no from_dlpack")
    shared = np.from_dlpack(batch["obs"])
    assert np.shares_memory(shared, batch["obs"])


def fill_ragged(client):
    fill(client, "signed", 1, first=1, length=1)
    fill(client, "signed", 1, first=2, length=3)


def test_ragged_refused(near):
    fill_ragged(near)
    with pytest.raises(ValueError, match="all must have one length"):
        next(iter(near.sampler("signed", 2)))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_ragged_padded(client, prefetch):
    fill_ragged(client)
    batch = next(iter(client.sampler("signed", 2, ragged="pad", prefetch=prefetch)))
    assert batch.data["extra"][0].tolist() == [[1, 0, 0], [2, 3, 4]]
    assert batch.lengths["extra"][0].tolist() == [1, 3]
    assert batch.lengths["obs"].tolist() == [1, 3]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_ragged_offsets(client, prefetch):
    fill_ragged(client)
    batch = next(iter(client.sampler("signed", 2, ragged="offsets", prefetch=prefetch)))
    assert batch.data["extra"][0].tolist() == [1, 2, 3, 4]
    assert batch.lengths["obs"].tolist() == [0, 1, 4]


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("drop", [False, True])
def test_no_sample_is_lost_or_repeated(client, prefetch, drop):
    fill(client, "signed", 23)
    dataset = client.sampler(
        "signed", 5, max_samples=23, prefetch=prefetch, drop_remainder=drop
    )
    seen = [n for batch in dataset for n in numbers(batch)]
    assert seen == list(range(20 if drop else 23))


def test_fresh_batches_stay_as_they_are(client):
    fill(client, "signed", 40)
    batches = list(client.sampler("signed", 4, max_samples=40, prefetch=3))
    for i, batch in enumerate(batches):
        assert numbers(batch) == list(range(4 * i, 4 * i + 4))


def test_reuse(client):
    fill(client, "signed", 40)
    addresses, before = set(), None
    for i, batch in enumerate(client.sampler("signed", 4, max_samples=40, prefetch=1, reuse=2)):
        addresses.add(batch["obs"].ctypes.data)
        if before is not None:
            assert numbers(before) == list(range(4 * i - 4, 4 * i))
        before = batch
    assert len(addresses) == 3


def test_batches_use_the_memory_of_the_caller(near):
    fill(near, "signed", 12)
    memory = [
        [
            np.zeros((4, 1), np.int64),
            np.zeros((4, 1, 2), np.uint8),
            np.zeros((4, 1, 3), np.float32),
        ]
        for _ in range(2)
    ]
    dataset = near.sampler("signed", 4, max_samples=12, prefetch=1, reuse=1, memory=memory)
    for i, batch in enumerate(dataset):
        assert batch["obs"] is memory[i % 2][2]
        assert memory[i % 2][0][:, 0].tolist() == list(range(4 * i, 4 * i + 4))


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(batch_size=0), "batch_size must be a positive integer, got 0"),
        (dict(prefetch=-1), "prefetch must be >= 0"),
        (dict(reuse=-1), "reuse must be >= 0"),
        (dict(prefetch=0, reuse=1), "need prefetch >= 1"),
        (dict(memory=[]), "memory must have prefetch [+] reuse sets"),
        (dict(reuse=1, memory=[[]]), "got 1 sets, prefetch 2 and reuse 1"),
        (dict(ragged="maybe"), "'refuse', 'pad' or 'offsets', got 'maybe'"),
        (dict(max_samples=0), "max_samples must be a positive integer or -1, got 0"),
        (dict(max_per_stream=0), "max_per_stream"),
        (dict(max_in_flight=0), "max_in_flight must be a positive integer, got 0"),
        (dict(streams=0), "streams"),
        (dict(timeout=-1), "timeout must be None or >= 0 seconds, got -1"),
        (dict(rate_limiter_timeout=-0.5), "rate_limiter_timeout"),
    ],
)
def test_arguments_out_of_range(options, text):
    with pytest.raises(ValueError, match=text):
        reprise.Dataset("localhost:1", "t", options.pop("batch_size", 4), **options)


def test_weights_and_updates(client):
    fill(client, "prioritized", 50)
    dataset = client.sampler("prioritized", 64, beta=0.5, max_in_flight=64)
    batch = next(iter(dataset))
    assert (batch.weights == 1).all() and np.allclose(batch.probabilities, 1 / 50)

    client.update_priorities("prioritized", batch.keys, np.zeros(64))
    drawn = set(batch.keys.tolist())
    client.update_priorities("prioritized", batch.keys[:1], np.array([2.0]))
    batch = next(iter(dataset))
    seen = dict(zip(batch.keys.tolist(), batch.weights.tolist()))
    left = 50 - len(drawn)
    heavy = int(np.argmax(batch.priorities)) if batch.priorities.max() == 2.0 else None
    assert (
        set(seen) & drawn <= {batch.keys[heavy]} if heavy is not None else not set(seen) & drawn
    )
    assert set(np.round(batch.probabilities * (left + 2), 6)) <= {1.0, 2.0}
    if heavy is not None:
        assert batch.weights[heavy] == pytest.approx(2**-0.5)


def test_times_sampled_counts_draws(near):
    fill(near, "uniform", 1)
    batch = next(iter(near.sampler("uniform", 10)))
    assert sorted(batch.times_sampled.tolist()) == list(range(1, 11))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_timeout(client, prefetch):
    fill(client, "signed", 1)
    iterator = iter(client.sampler("signed", 2, timeout=0.1, prefetch=prefetch))
    with pytest.raises(reprise.DeadlineExceededError, match="no batch within 100 ms"):
        next(iterator)
    fill(client, "signed", 1, first=1)
    assert numbers(iterator.take(timeout=120)) == [0, 1]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_rate_limiter_timeout_ends_the_dataset(client, prefetch):
    fill(client, "signed", 5)
    dataset = client.sampler("signed", 2, rate_limiter_timeout=0.2, prefetch=prefetch)
    assert [b.size for b in dataset] == [2, 2, 1]


def test_why(near):
    iterator = iter(near.sampler("queue", 2))
    assert isinstance(iterator.why(), str) and iterator.why()


def test_ctrl_c(client):
    iterator = iter(client.sampler("queue", 2, timeout=LIMIT_S))
    assert_interrupted(lambda: next(iterator), lambda: client.why("queue"))


def test_busy_thread_beside_a_blocked_dataset(client):
    """The batch can arrive only if this thread runs while the dataset waits."""
    iterator = iter(client.sampler("queue", 2, timeout=LIMIT_S))
    call = Call(lambda: next(iterator))
    wait_until(lambda: client.why("queue"))
    assert not call.is_over
    fill(client, "queue", 2)
    assert call.end().size == 2


def test_a_dataset_can_be_iterated_again(client):
    fill(client, "signed", 8)
    dataset = client.sampler("signed", 4, max_samples=4)
    assert [numbers(b) for b in dataset] == [[0, 1, 2, 3]]
    assert [numbers(b) for b in dataset] == [[4, 5, 6, 7]]


def test_with_closes(near):
    with iter(near.sampler("queue", 2)) as iterator:
        pass
    with pytest.raises(reprise.StatusError, match="closed"):
        next(iterator)


def test_iterators_are_collected(near):
    fill(near, "uniform", 4)
    iterator = iter(near.sampler("uniform", 2))
    batch = next(iterator)
    reference = weakref.ref(iterator)
    del iterator
    gc.collect()
    assert reference() is None
    assert batch.size == 2


def test_unknown_table(client):
    with pytest.raises(ValueError, match="Priority table nope was not found; the tables are"):
        next(iter(client.sampler("nope", 2)))
    with pytest.raises(reprise.StatusError):
        next(iter(client.sampler("nope", 2, structure=False)))


def test_datasets_are_pickled(client):
    fill(client, "signed", 4)
    dataset = pickle.loads(pickle.dumps(client.sampler("signed", 4, max_samples=4)))
    assert [numbers(b) for b in dataset] == [[0, 1, 2, 3]]
    assert copy.copy(dataset).table == "signed"


def _draw(dataset, results):
    results.put([numbers(b) for b in dataset])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_datasets_in_another_process(client, method):
    context = multiprocessing.get_context(method)
    fill(client, "signed", 4)
    results = context.Queue()
    dataset = client.sampler("signed", 4, max_samples=4)
    process = context.Process(target=_draw, args=(dataset.part(0, 1), results))
    process.start()
    assert results.get(timeout=120) == [[0, 1, 2, 3]]
    process.join(120)
    assert process.exitcode == 0


def test_parts_share_max_samples(near):
    dataset = near.sampler("queue", 4, max_samples=10)
    assert [dataset.part(i, 3)._options["max_samples"] for i in range(3)] == [4, 3, 3]


def test_several_streams_and_order(client):
    fill(client, "uniform", 20)
    for ordered in (False, True):
        dataset = client.sampler("uniform", 10, streams=3, ordered=ordered, max_samples=100)
        assert sum(b.size for b in dataset) == 100


def test_jax(near):
    jax = pytest.importorskip("jax")
    fill(near, "signed", 8)
    for reuse in (0, 1):
        (batch,) = near.sampler("signed", 4, max_samples=4, reuse=reuse).jax()
        assert isinstance(batch["obs"], jax.Array) and batch["obs"].shape == (4, 1, 3)
        assert isinstance(batch.keys, np.ndarray) and isinstance(batch.weights, jax.Array)
        doubled = jax.tree_util.tree_map(lambda x: x * 2, batch.data)
        assert np.array_equal(np.asarray(doubled["obs"]), 2 * np.asarray(batch["obs"]))
