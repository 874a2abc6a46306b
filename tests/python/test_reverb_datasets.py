# SPDX-License-Identifier: Apache-2.0
"""TimestepDataset, TrajectoryDataset, PatternDataset and TFClient without TensorFlow."""

import itertools
import numpy as np
import pytest

import reprise
from reprise import pattern_dataset, sample_dataset, structured, tf_client

SIGNATURE = {
    "a": reprise.TensorSpec((3,), np.float32, "a"),
    "b": reprise.TensorSpec((), np.int64, "b"),
}
DTYPES = {"a": np.float32, "b": np.int64}
STEP = {"a": (3,), "b": ()}
ROW = {"a": (1, 3), "b": (1,)}


@pytest.fixture(autouse=True)
def no_tensorflow(monkeypatch):
    for module in (sample_dataset, pattern_dataset, tf_client):
        monkeypatch.setattr(module, "have_tensorflow", lambda: False)


@pytest.fixture(params=["process", "child"])
def client(request):
    server = reprise.Server(
        [
            reprise.Table.queue("queue", 1000),
            reprise.Table.queue("signed", 1000, signature=SIGNATURE),
            reprise.Table.queue(
                "rows",
                1000,
                signature=[
                    reprise.TensorSpec((2, 3), np.float32),
                    reprise.TensorSpec((), np.int64),
                ],
            ),
        ],
        where=request.param,
    )
    yield reprise.Client(f"localhost:{server.port}")
    server.stop()


def fill(client, table, count, length=1, first=0):
    with client.writer(length) as writer:
        for i in range(count * length):
            i += first
            writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i)})
            if (i - first + 1) % length == 0:
                writer.create_item(table, length, 1.5)
        writer.flush()


def fill_rows(client, count):
    """Inserts items with a column of two rows, and a squeezed column."""
    with client.trajectory_writer(2) as writer:
        for i in range(count + 1):
            writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i)})
            if i:
                history = writer.history
                writer.create_item("rows", 1.0, [history["a"][-2:], history["b"][-1]])
        writer.flush()


def trajectories(client, table="queue", dtypes=DTYPES, shapes=ROW, **options):
    options.setdefault("max_in_flight_samples_per_worker", 10)
    return reprise.TrajectoryDataset(client.server_address, table, dtypes, shapes, **options)


def timesteps(client, table="queue", dtypes=DTYPES, shapes=STEP, **options):
    options.setdefault("max_in_flight_samples_per_worker", 10)
    return reprise.TimestepDataset(client.server_address, table, dtypes, shapes, **options)


def test_trajectories(client):
    fill(client, "queue", 5)
    samples = list(trajectories(client, max_samples=5))

    assert [int(s.data["b"][0]) for s in samples] == [0, 1, 2, 3, 4]
    sample = samples[0]
    assert isinstance(sample, reprise.ReplaySample)
    assert isinstance(sample.info, reprise.SampleInfo)
    assert sample.data["a"].shape == (1, 3) and sample.data["a"].dtype == np.float32
    types = [type(x) for x in sample.info]
    assert types == [np.uint64, np.float64, np.int64, np.float64, np.int32]
    assert sample.info.priority == 1.5 and sample.info.times_sampled == 1


def test_timesteps(client):
    fill(client, "queue", 2, length=3)
    samples = list(timesteps(client, max_samples=2))
    assert [int(s.data["b"]) for s in samples] == [0, 1, 2, 3, 4, 5]
    assert samples[0].data["a"].shape == (3,) and samples[0].data["b"].shape == ()
    keys = [s.info.key for s in samples]
    assert len(set(keys[:3])) == 1 and len(set(keys)) == 2


def test_timesteps_of_columns_that_differ(client):
    fill_rows(client, 1)
    dataset = timesteps(client, "rows", [np.float32, np.int64], [(3,), ()])
    with pytest.raises(ValueError, match="incompatible tensor at flattened index 0"):
        list(dataset)


def test_batches_are_stacked(client):
    fill(client, "queue", 7)
    dataset = trajectories(client, max_samples=7).batch(3)
    batches = list(dataset)
    assert [len(b.info.key) for b in batches] == [3, 3, 1]
    assert batches[0].data["a"].shape == (3, 1, 3)
    assert [x for b in batches for x in b.data["b"][:, 0].tolist()] == list(range(7))
    assert [a.dtype for a in batches[0].info] == [
        np.uint64,
        np.float64,
        np.int64,
        np.float64,
        np.int32,
    ]
    assert dataset.element_spec.data["a"].shape == (None, 1, 3)


def test_batches_without_the_remainder(client):
    fill(client, "queue", 7)
    dataset = trajectories(client, max_samples=7).batch(3, drop_remainder=True)
    assert dataset.element_spec.data["a"].shape == (3, 1, 3)
    assert [len(b.info.key) for b in dataset] == [3, 3]


def test_timesteps_in_batches(client):
    fill(client, "queue", 3, length=2)
    batches = list(timesteps(client, max_samples=3).batch(4))
    assert [b.data["b"].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5]]
    assert batches[0].info.key.dtype == np.uint64


def test_pipeline(client):
    fill(client, "queue", 6)
    dataset = trajectories(client, max_in_flight_samples_per_worker=1)
    assert [int(s.data["b"][0]) for s in dataset.take(2)] == [0, 1]
    assert list(dataset.take(0)) == []
    mapped = dataset.map(lambda sample: int(sample.data["b"][0]), num_parallel_calls=2)
    assert len(list(mapped.prefetch(2).take(1))) == 1


def test_a_cache_keeps_complete_iterations_only():
    numbers = itertools.count()
    cached = sample_dataset.Pipeline(lambda: numbers).take(3).cache()
    assert next(iter(cached)) == 0  # not to the end
    assert list(cached) == list(cached) == [1, 2, 3]
    assert next(numbers) == 4
    with pytest.raises(ValueError, match="somewhere"):
        cached.cache("somewhere")


def test_pipeline_of_plain_elements():
    pipeline = sample_dataset.Pipeline(lambda: iter(range(10)))
    assert list(pipeline.skip(7)) == [7, 8, 9]
    assert list(pipeline.filter(lambda x: x % 5 == 0)) == [0, 5]
    assert list(pipeline.take(2).repeat(2)) == [0, 1, 0, 1]
    assert list(pipeline.take(-1).as_numpy_iterator()) == list(range(10))
    assert [b.tolist() for b in pipeline.batch(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(pipeline.batch(4).unbatch()) == list(range(10))
    assert list(pipeline.with_options(None)) == list(range(10))
    pairs = sample_dataset.Pipeline(lambda: iter([(1, 2), (3, 4)]))
    assert list(pairs.map(lambda a, b: a * b)) == [2, 12]
    with pytest.raises(ValueError, match="batch_size"):
        pipeline.batch(0)


def test_lists_become_tuples(client):
    fill_rows(client, 2)
    dataset = trajectories(client, "rows", [np.float32, np.int64], [(2, 3), ()], max_samples=2)
    samples = list(dataset)
    assert isinstance(samples[0].data, tuple)
    assert samples[0].data[0].shape == (2, 3) and samples[0].data[1].shape == ()
    assert isinstance(dataset.element_spec.data, tuple)


def test_rate_limiter_timeout_ends_the_dataset(client):
    fill(client, "queue", 2)
    assert len(list(trajectories(client, rate_limiter_timeout_ms=100))) == 2
    assert list(trajectories(client, rate_limiter_timeout_ms=0)) == []


def test_unknown_dimensions(client):
    fill(client, "queue", 1, length=2)
    fill(client, "queue", 1, length=3)
    shapes = {"a": (None, 3), "b": (None,)}
    samples = list(trajectories(client, shapes=shapes, max_samples=2))
    assert [s.data["a"].shape for s in samples] == [(2, 3), (3, 3)]
    any_shape = {"a": None, "b": None}
    fill(client, "queue", 1)
    assert len(list(trajectories(client, shapes=any_shape, max_samples=1))) == 1


@pytest.mark.parametrize("make", [reprise.TrajectoryDataset, reprise.TimestepDataset])
@pytest.mark.parametrize(
    "options, text",
    [
        (dict(max_in_flight_samples_per_worker=0), r"worker \(0\) must be a positive integer$"),
        (dict(max_in_flight_samples_per_worker=-1), r"worker \(-1\) must be a positive"),
        (dict(num_workers_per_iterator=0), r"iterator \(0\) must be a positive integer or -1"),
        (dict(num_workers_per_iterator=-2), r"iterator \(-2\) must be"),
        (dict(max_samples_per_stream=0), r"max_samples_per_stream \(0\) must be"),
        (dict(max_samples_per_stream=-2), r"max_samples_per_stream \(-2\) must be"),
        (dict(rate_limiter_timeout_ms=-2), r"rate_limiter_timeout_ms \(-2\) must be .* >= -1"),
        (dict(max_samples=0), r"max_samples \(0\) must be a positive integer or -1"),
        (dict(max_samples=-2), r"max_samples \(-2\) must be"),
    ],
)
def test_numbers_out_of_range(make, options, text):
    options = {"max_in_flight_samples_per_worker": 1, **options}
    with pytest.raises(ValueError, match=text):
        make("localhost:1", "t", DTYPES, ROW, **options)


@pytest.mark.parametrize(
    "shapes", [{"a": (3,)}, {"a": (3,), "c": ()}, [(3,), ()], {"a": (3,), "b": {"c": ()}}]
)
def test_structures_that_differ(shapes):
    with pytest.raises((ValueError, TypeError)):
        reprise.TrajectoryDataset("localhost:1", "t", DTYPES, shapes, 1)


def test_signature_is_compared(client):
    fill(client, "signed", 1)
    with pytest.raises(
        ValueError,
        match=r"Requested incompatible tensor at flattened index 0 from "
        r"table 'signed'.  Requested \(dtype, shape\): \(double, \[3\]\).  Signature "
        r"\(dtype, shape\): \(float, \[3\]\)",
    ):
        list(timesteps(client, "signed", {"a": np.float64, "b": np.int64}))
    with pytest.raises(ValueError, match=r"Requested \(dtype, shape\): \(float, \[4\]\)"):
        list(timesteps(client, "signed", shapes={"a": (4,), "b": ()}))
    with pytest.raises(ValueError, match="Requested 1 tensors, but table signature shows 2"):
        list(timesteps(client, "signed", {"a": np.float32}, {"a": (3,)}))


def test_samples_are_compared(client):
    fill(client, "queue", 3)
    with pytest.raises(
        ValueError,
        match=r"Received incompatible tensor at flattened index 0 from "
        r"table 'queue'.  Specification has \(dtype, shape\): \(double, \[1,3\]\).  "
        r"Tensor has \(dtype, shape\): \(float, \[1,3\]\)",
    ):
        list(trajectories(client, dtypes={"a": np.float64, "b": np.int64}))
    fill(client, "queue", 3)
    with pytest.raises(
        ValueError, match=r"Specification has \(dtype, shape\): \(float, \[1,4\]\)"
    ):
        list(trajectories(client, shapes={"a": (1, 4), "b": (1,)}).batch(2))
    fill(client, "queue", 3)
    with pytest.raises(
        ValueError, match="Specification has 1 tensors, but data coming from the table shows 2"
    ):
        list(trajectories(client, dtypes={"a": np.float32}, shapes={"a": (1, 3)}))


def test_unknown_table(client):
    with pytest.raises(reprise.StatusError):
        list(trajectories(client, "nope"))


def test_from_table_signature(client):
    fill(client, "signed", 3)
    dataset = reprise.TimestepDataset.from_table_signature(
        client.server_address, "signed", 10, max_samples=3
    )
    assert isinstance(dataset, reprise.TimestepDataset)
    assert dataset.element_spec.data["a"] == reprise.TensorSpec((3,), np.float32)
    assert [int(s.data["b"]) for s in dataset] == [0, 1, 2]

    fill_rows(client, 3)
    dataset = reprise.TrajectoryDataset.from_table_signature(
        client.server_address, "rows", 10, max_samples=3
    )
    assert [s.data[0][:, 0].tolist() for s in dataset] == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("kind", [reprise.TimestepDataset, reprise.TrajectoryDataset])
def test_from_table_signature_mistakes(client, kind):
    address = client.server_address
    with pytest.raises(
        ValueError,
        match=f"Server at {address} does not contain any table named "
        "nope. Found: queue, rows, signed.",
    ):
        kind.from_table_signature(address, "nope", 10)
    with pytest.raises(
        ValueError, match=f"Table queue at {address} does not have a signature."
    ):
        kind.from_table_signature(address, "queue", 10)
    with pytest.raises(ValueError, match="must be a positive integer"):
        kind.from_table_signature(address, "signed", 0)
    with pytest.raises(reprise.DeadlineExceededError):
        kind.from_table_signature("localhost:1", "t", 10, get_signature_timeout_secs=1)


def steps(count, episode=4):
    for i in range(count):
        yield {"obs": np.float32(i), "last": np.bool_(i % episode == episode - 1)}


def pairs(*conditions):
    pattern = structured.pattern_from_transform(
        {"obs": None, "last": None},
        lambda ref: {"pair": ref["obs"][-2:], "latest": ref["obs"][-1]},
    )
    return structured.create_config(pattern, "table", conditions)


def is_last(step):
    return step["last"]


def test_patterns_within_episodes():
    dataset = reprise.PatternDataset(list(steps(8)), [pairs()], True, is_last)
    items = [item["pair"].tolist() for item in dataset]
    assert items == [[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]
    assert [float(item["latest"]) for item in dataset] == [1, 2, 3, 5, 6, 7]


def test_patterns_across_episodes():
    dataset = reprise.PatternDataset(list(steps(6)), [pairs()], False, is_last)
    assert [i["pair"].tolist() for i in dataset] == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]


def test_patterns_at_the_end_of_an_episode():
    config = pairs(structured.Condition.is_end_episode())
    dataset = reprise.PatternDataset(list(steps(8)), [config], True, is_last)
    assert [i["pair"].tolist() for i in dataset] == [[2, 3], [6, 7]]


def test_patterns_leave_the_configs_alone():
    config = pairs()
    before = config.SerializeToString()
    list(reprise.PatternDataset(list(steps(4)), [config], True, is_last))
    assert config.SerializeToString() == before and config.table == "table"


def test_patterns_with_info():
    dataset = pattern_dataset.pattern_dataset_with_info(
        list(steps(4)), [pairs()], True, is_last
    )
    samples = list(dataset)
    assert all(s.info == reprise.SampleInfo.zeros() for s in samples)
    assert [s.data["pair"].tolist() for s in samples] == [[0, 1], [1, 2], [2, 3]]


def test_patterns_come_as_soon_as_they_are_made():
    seen = []

    def watched():
        for step in steps(100):
            seen.append(step)
            yield step

    iterator = iter(reprise.PatternDataset(watched(), [pairs()], True, is_last))
    next(iterator)
    assert len(seen) == 2


def test_patterns_need_a_config():
    with pytest.raises(ValueError, match="At least one config"):
        reprise.PatternDataset([], [], True, is_last)


def test_tf_client(client):
    calls = reprise.TFClient(client.server_address)
    assert calls.server_address == calls._server_address == client.server_address
    calls.insert([np.ones(3, np.float32), np.int64(5)], ["queue"], np.array([2.0]))
    sample = calls.sample("queue", {"a": np.float32, "b": np.int64})
    assert sample.data["a"].tolist() == [1, 1, 1] and sample.data["b"] == 5
    assert sample.info.priority == 2.0
    calls.update_priorities("queue", np.array([1], np.uint64), np.array([1.0]))


def test_tf_client_mistakes(client):
    calls = reprise.TFClient(client.server_address)
    with pytest.raises(ValueError, match="tables must be a string tensor of rank 1"):
        calls.insert([np.ones(1)], np.array(["queue"]).reshape(1, 1), np.array([1.0]))
    with pytest.raises(ValueError, match="tables must be a string tensor of rank 1"):
        calls.insert([np.ones(1)], np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="priorities must be a float64 tensor of rank 1"):
        calls.insert([np.ones(1)], ["queue"], np.array([1.0], np.float32))
    with pytest.raises(ValueError, match="must have the same shape"):
        calls.insert([np.ones(1)], ["queue"], np.array([1.0, 2.0]))
    fill(client, "queue", 2)
    with pytest.raises(ValueError, match="dtype"):
        calls.sample("queue", [np.float64, np.int64])
    with pytest.raises(ValueError, match="Specification has 1 tensors"):
        calls.sample("queue", [np.float32])
