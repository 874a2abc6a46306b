# SPDX-License-Identifier: Apache-2.0
"""Reverb's datasets, TFClient and Dataset.tf() with TensorFlow."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from events import Call, wait_until

tf = pytest.importorskip("tensorflow")

import reprise  # noqa: E402
from reprise import pattern_dataset, structured  # noqa: E402

SIGNATURE = {
    "a": tf.TensorSpec([3], tf.float32, "a"),
    "b": tf.TensorSpec([], tf.int64, "b"),
}
DTYPES = {"a": tf.float32, "b": tf.int64}
STEP = {"a": tf.TensorShape([3]), "b": tf.TensorShape([])}
ROW = {"a": tf.TensorShape([1, 3]), "b": tf.TensorShape([1])}


def uniform(name, signature=None):
    return reprise.Table(
        name,
        reprise.selectors.Uniform(),
        reprise.selectors.Fifo(),
        1000,
        reprise.rate_limiters.MinSize(1),
        signature=signature,
    )


@pytest.fixture(params=["process", "child"])
def client(request):
    server = reprise.Server(
        [
            reprise.Table.queue("queue", 1000),
            reprise.Table.queue("signed", 1000, signature=SIGNATURE),
            reprise.Table.queue(
                "rows",
                1000,
                signature=[tf.TensorSpec([2, 3], tf.float32), tf.TensorSpec([], tf.int64)],
            ),
            reprise.Table.queue("words", 1000),
            uniform("uniform"),
        ],
        where=request.param,
    )
    yield reprise.Client(f"localhost:{server.port}")
    server.stop()


def fill(client, table, count, length=1):
    with client.writer(length) as writer:
        for i in range(count * length):
            writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i)})
            if (i + 1) % length == 0:
                writer.create_item(table, length, 1.5)
        writer.flush()


def fill_rows(client, count):
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


def test_trajectory_dataset_is_a_tf_dataset(client):
    dataset = trajectories(client)
    assert isinstance(dataset, tf.data.Dataset)
    assert isinstance(dataset, reprise.TrajectoryDataset)
    assert not isinstance(dataset, reprise.TimestepDataset)
    assert "TrajectoryDataset" in repr(dataset)
    assert dataset.element_spec == reprise.ReplaySample(
        reprise.SampleInfo(
            tf.TensorSpec([], tf.uint64),
            tf.TensorSpec([], tf.float64),
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([], tf.float64),
            tf.TensorSpec([], tf.int32),
        ),
        {"a": tf.TensorSpec([1, 3], tf.float32), "b": tf.TensorSpec([1], tf.int64)},
    )


def test_trajectories(client):
    fill(client, "queue", 25)
    samples = list(trajectories(client, max_samples=25))
    assert [int(s.data["b"][0]) for s in samples] == list(range(25))
    sample = samples[0]
    assert isinstance(sample, reprise.ReplaySample) and isinstance(
        sample.info, reprise.SampleInfo
    )
    assert sample.info.key.dtype == tf.uint64 and float(sample.info.priority) == 1.5
    assert len({int(s.info.key) for s in samples}) == 25
    assert sample.data["a"].numpy().tolist() == [[0, 0, 0]]


def test_timesteps(client):
    fill(client, "queue", 4, length=3)
    samples = list(timesteps(client, max_samples=4))
    assert [int(s.data["b"]) for s in samples] == list(range(12))
    assert samples[0].data["a"].shape == [3]
    assert len({int(s.info.key) for s in samples}) == 4


def test_batch_take_prefetch(client):
    fill(client, "queue", 12)
    dataset = trajectories(client, max_samples=12).batch(5).prefetch(1)
    batches = list(dataset.as_numpy_iterator())
    assert [len(b.info.key) for b in batches] == [5, 5, 2]
    assert batches[0].data["a"].shape == (5, 1, 3)
    fill(client, "queue", 3)
    assert len(list(trajectories(client).take(2))) == 2


def test_lists_become_tuples(client):
    fill_rows(client, 2)
    dataset = reprise.TrajectoryDataset.from_table_signature(
        client.server_address, "rows", 10, max_samples=2
    )
    samples = list(dataset)
    assert isinstance(samples[0].data, tuple)
    assert samples[1].data[0].numpy()[:, 0].tolist() == [1, 2] and int(samples[1].data[1]) == 2


def test_from_table_signature(client):
    fill(client, "signed", 3)
    dataset = reprise.TimestepDataset.from_table_signature(
        client.server_address, "signed", 10, max_samples=3
    )
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec.data["b"] == tf.TensorSpec([], tf.int64)
    assert [int(s.data["b"]) for s in dataset] == [0, 1, 2]
    with pytest.raises(ValueError, match="does not have a signature"):
        reprise.TimestepDataset.from_table_signature(client.server_address, "queue", 10)


def test_unknown_dimensions(client):
    fill(client, "queue", 1, length=2)
    fill(client, "queue", 1, length=3)
    shapes = {"a": tf.TensorShape([None, 3]), "b": tf.TensorShape(None)}
    samples = list(trajectories(client, shapes=shapes, max_samples=2))
    assert [s.data["a"].shape.as_list() for s in samples] == [[2, 3], [3, 3]]


def test_items_whose_shapes_differ(client):
    """Items that are stacked and items that are sliced, in order."""
    lengths = [2, 2, 2, 3, 1, 4, 4, 4, 4, 1, 2, 2]
    with client.trajectory_writer(4) as writer:
        for i in range(4):
            writer.append([np.full(3, i, np.float32), np.int64(i), str(i)])
        for length in lengths:
            rows, numbers, words = writer.history
            trajectory = [rows[-length:], numbers[-1], words[-length:], rows[-length:]]
            writer.create_item("queue", float(length), trajectory)
        writer.flush()
    samples = list(trajectories(
        client, dtypes=(tf.float32, tf.int64, tf.string, tf.float32),
        shapes=(tf.TensorShape([None, 3]), tf.TensorShape([]), tf.TensorShape([None]),
                tf.TensorShape([None, None])),
        max_samples=len(lengths), max_in_flight_samples_per_worker=6))
    assert [s.info.priority.numpy() for s in samples] == lengths
    for length, (_, (rows, number, words, again)) in zip(lengths, samples):
        assert rows.shape == again.shape == (length, 3) and number.shape == ()
        assert rows[:, 0].numpy().tolist() == list(range(4 - length, 4)) and number == 3
        assert np.array_equal(rows, again)
        assert words.numpy().tolist() == [b"%d" % i for i in range(4 - length, 4)]


def test_steps_of_items_of_many_lengths(client):
    lengths = [2, 2, 3, 1, 4, 4, 1, 2] * 5
    for length in lengths:
        fill(client, "queue", 1, length)
    steps = list(timesteps(client, max_samples=len(lengths)))
    assert [s.data["b"].numpy() for s in steps] == [i for n in lengths for i in range(n)]
    assert len({int(s.info.key) for s in steps}) == len(lengths)


@pytest.mark.parametrize("ahead", [4, 100])  # stacked in C, and not
def test_items_that_are_not_steps(client, ahead):
    with client.trajectory_writer(1) as writer:
        for i in range(8):
            writer.append([np.int64(i)])
            writer.create_item("queue", 1.0, [writer.history[0][-1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Can't split non timestep"):
        list(timesteps(client, dtypes=[tf.int64], shapes=[tf.TensorShape([])], max_samples=8,
                       max_in_flight_samples_per_worker=ahead))


def test_strings(client):
    client.insert({"w": np.array([b"x", b"yz"], object)}, {"words": 1.0})
    dataset = trajectories(
        client, "words", {"w": tf.string}, {"w": tf.TensorShape([1, 2])}, max_samples=1
    )
    assert [s.data["w"].numpy().tolist() for s in dataset] == [[[b"x", b"yz"]]]


def test_timeout_and_numbers(client):
    fill(client, "queue", 2)
    assert len(list(trajectories(client, rate_limiter_timeout_ms=200))) == 2
    with pytest.raises(ValueError, match=r"max_samples \(0\) must be a positive integer or -1"):
        trajectories(client, max_samples=0)
    with pytest.raises(ValueError):
        trajectories(client, dtypes={"a": tf.float32}, shapes={"b": tf.TensorShape([3])})


def test_a_dataset_can_be_iterated_again(client):
    fill(client, "queue", 4)
    dataset = trajectories(client, max_samples=2, max_in_flight_samples_per_worker=1)
    assert [int(s.data["b"][0]) for s in dataset] == [0, 1]
    assert [int(s.data["b"][0]) for s in dataset] == [2, 3]


def test_made_while_tensorflow_traces(client):
    """Acme makes its datasets in this way."""
    fill(client, "uniform", 10)

    def make(_):
        return trajectories(client, "uniform").map(lambda s: s.data["b"]).batch(4, True)

    dataset = tf.data.Dataset.range(3).interleave(
        make, cycle_length=3, num_parallel_calls=3, deterministic=False
    )
    batches = list(dataset.prefetch(2).take(20))
    assert len(batches) == 20 and all(b.shape == [4, 1] for b in batches)


def test_address_and_table_as_tensors(client):
    fill(client, "uniform", 3)

    def make(table):
        return reprise.TrajectoryDataset(
            tf.constant(client.server_address), table, DTYPES, ROW, 10, max_samples=2
        )

    dataset = tf.data.Dataset.from_tensor_slices(["uniform", "uniform"]).flat_map(make)
    assert len(list(dataset)) == 4


def test_inside_a_tf_function(client):
    fill(client, "queue", 5)
    dataset = trajectories(client, max_samples=5)

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for sample in dataset:
            result += sample.data["b"][0]
        return result

    assert int(total()) == 10


@pytest.mark.parametrize(
    "table, dtypes, shapes, text",
    [
        (
            "signed",
            {"a": tf.float64, "b": tf.int64},
            STEP,
            "Requested incompatible tensor at flattened index 0 from table 'signed'",
        ),
        (
            "signed",
            {"a": tf.float32},
            {"a": tf.TensorShape([3])},
            "Inconsistent number of tensors requested from table 'signed'",
        ),
        (
            "queue",
            {"a": tf.float32, "b": tf.int32},
            STEP,
            "Received incompatible tensor at flattened index 1 from table 'queue'",
        ),
        (
            "queue",
            {"a": tf.float32},
            {"a": tf.TensorShape([3])},
            "Inconsistent number of tensors received from table 'queue'",
        ),
    ],
)
def test_dtypes_and_shapes_unlike_the_table_are_refused(client, table, dtypes, shapes, text):
    fill(client, table, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        list(timesteps(client, table, dtypes, shapes))


def test_unknown_table(client):
    with pytest.raises(tf.errors.OpError, match="nope"):
        list(trajectories(client, "nope"))


def test_a_busy_thread_beside_a_blocked_dataset(client):
    """The sample can arrive only if this thread runs while the dataset waits."""
    call = Call(lambda: list(trajectories(client, max_samples=1)))
    wait_until(lambda: client.why("queue"))
    assert not call.is_over
    fill(client, "queue", 1)
    assert len(call.end()) == 1


def test_a_process_can_end_while_a_dataset_waits():
    program = """
        import threading, time
        import tensorflow as tf
        import reprise
        server = reprise.Server([reprise.Table.queue("queue", 10)])
        dataset = reprise.TrajectoryDataset(
            f"localhost:{server.port}", "queue", [tf.float32], [tf.TensorShape([])], 1)
        iterator = iter(dataset.prefetch(1))
        threading.Thread(target=lambda: next(iterator), daemon=True).start()
        while not server.why():
            time.sleep(0.01)
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        timeout=90,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert "over" in done.stdout


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("ahead", [0, 2])
def test_an_iterator_that_waits_can_be_dropped(client, known, ahead):
    shapes = ROW if known else {"a": tf.TensorShape([None, 3]), "b": tf.TensorShape(None)}
    dataset = trajectories(client, shapes=shapes, max_in_flight_samples_per_worker=1)
    if ahead:
        dataset = dataset.map(lambda sample: sample.data).prefetch(ahead)
    iterator = iter(dataset)
    for _ in range(3):
        fill(client, "queue", 1)
        next(iterator)
    del iterator


def test_an_iterator_of_batches_that_waits_can_be_dropped(client):
    fill(client, "queue", 2)
    iterator = iter(client.sampler("queue", 2).tf().prefetch(1))
    fill(client, "queue", 2)
    next(iterator)
    del iterator


def steps(count, episode=4):
    return tf.data.Dataset.from_tensor_slices(
        {
            "obs": np.arange(count, dtype=np.float32),
            "last": np.arange(count) % episode == episode - 1,
        }
    )


def pairs(spec, *conditions):
    pattern = structured.pattern_from_transform(
        spec, lambda ref: {"pair": ref["obs"][-2:], "latest": ref["obs"][-1]}
    )
    return structured.create_config(pattern, "table", conditions)


def is_last(step):
    return step["last"]


def test_patterns():
    source = steps(8)
    dataset = reprise.PatternDataset(source, [pairs(source.element_spec)], True, is_last)
    assert isinstance(dataset, tf.data.Dataset) and isinstance(dataset, reprise.PatternDataset)
    assert dataset.element_spec == {
        "pair": tf.TensorSpec([2], tf.float32),
        "latest": tf.TensorSpec([], tf.float32),
    }
    items = [item["pair"].tolist() for item in dataset.as_numpy_iterator()]
    assert items == [[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]


def test_patterns_across_episodes_and_at_their_end():
    source = steps(6)
    config = pairs(source.element_spec)
    dataset = reprise.PatternDataset(source, [config], False, is_last)
    assert [i["pair"].tolist() for i in dataset.as_numpy_iterator()] == [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
        [4, 5],
    ]
    config = pairs(source.element_spec, structured.Condition.is_end_episode())
    dataset = reprise.PatternDataset(source, [config], True, is_last)
    assert [i["pair"].tolist() for i in dataset.as_numpy_iterator()] == [[2, 3]]


def test_patterns_with_info():
    source = steps(4)
    dataset = pattern_dataset.pattern_dataset_with_info(
        source, [pairs(source.element_spec)], True, is_last
    )
    samples = list(dataset)
    assert isinstance(samples[0], reprise.ReplaySample)
    assert [int(s.info.key) for s in samples] == [0, 0, 0]
    assert samples[2].data["pair"].numpy().tolist() == [2, 3]


def test_end_of_episode_must_be_a_bool():
    source = steps(4)
    with pytest.raises(ValueError, match="Invalid `is_end_of_episode`"):
        reprise.PatternDataset(source, [pairs(source.element_spec)], True, lambda s: s["obs"])


def test_tf_client(client):
    calls = reprise.TFClient(client.server_address)
    calls.insert(
        [tf.constant([1.0, 2.0, 3.0]), tf.constant(5, tf.int64)],
        tf.constant(["uniform", "queue"]),
        tf.constant([2.0, 3.0], tf.float64),
    )
    sample = calls.sample("uniform", DTYPES)
    assert sample.data["a"].numpy().tolist() == [1, 2, 3] and int(sample.data["b"]) == 5
    assert sample.info.key.dtype == tf.uint64 and float(sample.info.priority) == 2.0
    assert float(calls.sample("queue", [tf.float32, tf.int64]).info.priority) == 3.0


def test_tf_client_inside_a_tf_function(client):
    calls = reprise.TFClient(client.server_address)
    fill(client, "uniform", 1)

    @tf.function
    def double():
        sample = calls.sample("uniform", DTYPES)
        calls.update_priorities(
            "uniform", sample.info.key[None], 2 * sample.info.priority[None]
        )
        return sample.info.priority

    assert float(double()) == 1.5
    assert float(double()) == 3.0
    assert float(calls.sample("uniform", DTYPES).info.priority) == 6.0


def test_tf_client_mistakes(client):
    calls = reprise.TFClient(client.server_address)
    one = tf.constant([1.0], tf.float64)
    with pytest.raises(ValueError, match="tables must be a string tensor of rank 1"):
        calls.insert([one], tf.constant("queue"), one)
    with pytest.raises(ValueError, match="priorities must be a float64 tensor of rank 1"):
        calls.insert([one], tf.constant(["queue"]), tf.constant([1.0]))
    with pytest.raises(ValueError, match="priorities and tables must have the same shape"):
        calls.insert([one], tf.constant(["queue", "uniform"]), one)


def test_batches(client):
    fill(client, "queue", 20)
    source = client.sampler("queue", 8, max_samples=16, structure={"a": None, "b": None})
    fill(client, "queue", 20)
    dataset = source.tf()
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec.data["a"] == tf.TensorSpec([None, 1, 3], tf.float32)
    batches = list(dataset)
    assert [b.data["a"].shape.as_list() for b in batches] == [[8, 1, 3], [8, 1, 3]]
    assert batches[0].info.keys.dtype == tf.uint64


def test_batches_by_the_signature(client):
    with client.trajectory_writer(2) as writer:
        for i in range(5):
            writer.append({"a": np.full(3, i, np.float32), "b": np.int64(i)})
            history = writer.history
            writer.create_item("signed", 1.0, {"a": history["a"][-1], "b": history["b"][-1]})
        writer.flush()
    dataset = client.sampler("signed", 2, max_samples=4, drop_remainder=True).tf()
    assert dataset.element_spec.data["a"] == tf.TensorSpec([2, 3], tf.float32)
    assert [b.data["b"].numpy().tolist() for b in dataset] == [[0, 1], [2, 3]]
