# SPDX-License-Identifier: Apache-2.0
"""TimestepDataset, TrajectoryDataset and PatternDataset: with TensorFlow if it is installed, and
otherwise as iterables of NumPy arrays, which only reprise has."""

import itertools

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, insert
from reverb_suite.implementation import Spec, queue, reverb, table

try:
    import tensorflow as tf
except ImportError:
    tf = None

with_tensorflow = pytest.mark.skipif(tf is None, reason="there is no TensorFlow")
SIGNATURE = {"a": Spec([None, 2], "float32"), "b": Spec([], "int64")}
STEP_SIGNATURE = {"a": Spec([2], "float32"), "b": Spec([], "int64")}


def dtype(name):
    return getattr(tf, name) if tf else np.dtype(name)


def shape(*sizes):
    return tf.TensorShape(list(sizes)) if tf else sizes


def trajectories(service, name="t", **options):
    """Returns a dataset of the items that write() writes."""
    options = {"max_in_flight_samples_per_worker": 1, **options}
    return reverb.TrajectoryDataset(
        server_address=service.address, table=name, dtypes={"a": dtype("float32"),
                                                            "b": dtype("int64")},
        shapes={"a": shape(None, 2), "b": shape()}, **options)


def timesteps(service, name="t", **options):
    options = {"max_in_flight_samples_per_worker": 1, **options}
    return reverb.TimestepDataset(
        server_address=service.address, table=name, dtypes={"a": dtype("float32"),
                                                            "b": dtype("int64")},
        shapes={"a": shape(2), "b": shape()}, **options)


def take(dataset, count=None):
    """Returns the first `count` elements, or all, as NumPy arrays."""
    if tf is not None:
        dataset = dataset if count is None else dataset.take(count)
        return list(dataset.as_numpy_iterator())
    return list(itertools.islice(dataset, count))


def write(client, count=3, length=2, name="t"):
    """Writes items whose column a has `length` rows; column b is the number of the item."""
    with client.trajectory_writer(length) as writer:
        for item in range(count):
            for step in range(length):
                writer.append({"a": np.full(2, 10 * item + step, np.float32),
                               "b": np.int64(item)})
            writer.create_item(name, 1.0 + item, {"a": writer.history["a"][-length:],
                                                  "b": writer.history["b"][-1]})


def write_steps(client, count=3, length=2, name="t"):
    with client.writer(length) as writer:
        for item in range(count):
            for step in range(length):
                writer.append({"a": np.full(2, 10 * item + step, np.float32),
                               "b": np.int64(item)})
            writer.create_item(name, length, 1.0 + item)


def test_trajectories(start):
    service = start(table(max_times_sampled=1))
    write(service.client)
    for i, one in enumerate(take(trajectories(service, max_samples=3), 3)):
        assert_same(one.data["a"], np.array([[10 * i] * 2, [10 * i + 1] * 2], np.float32))
        assert_same(one.data["b"], np.int64(i))


def test_info_of_trajectories(start):
    service = start(table(max_times_sampled=1))
    write(service.client)
    (one,) = take(trajectories(service), 1)
    assert one.info._fields == reverb.SampleInfo._fields
    assert one.info.priority == 1.0
    assert one.info.probability == 1.0
    assert one.info.table_size == 3
    assert one.info.times_sampled == 1
    assert one.info.key > 0


def test_a_dataset_is_endless(start):
    service = start(table())
    write(service.client, count=1)
    assert len(take(trajectories(service), 50)) == 50


@pytest.mark.parametrize("count", [1, 2, 7])
def test_max_samples(start, count):
    service = start(table())
    write(service.client)
    assert len(take(trajectories(service, max_samples=count))) == count


@pytest.mark.parametrize("make", [trajectories, timesteps])
def test_a_timeout_ends_the_sequence(start, make):
    service = start(queue("t", 10))
    (write if make is trajectories else write_steps)(service.client, count=2)
    steps = 2 if make is timesteps else 1
    assert len(take(make(service, rate_limiter_timeout_ms=100))) == 2 * steps


@pytest.mark.parametrize("make", [trajectories, timesteps])
def test_a_timeout_of_an_empty_table(start, make):
    service = start(table())
    assert take(make(service, rate_limiter_timeout_ms=50)) == []


def test_several_workers(start):
    service = start(table(max_times_sampled=1))
    write(service.client, count=30)
    got = take(trajectories(service, num_workers_per_iterator=3, max_samples_per_stream=4,
                            rate_limiter_timeout_ms=200))
    assert sorted(int(one.data["b"]) for one in got) == list(range(30))


def test_new_items_are_seen(start):
    service = start(queue("t", 10))
    iterator = iter(trajectories(service))
    for i in range(3):
        write(service.client, count=1)
        assert int(next(iterator).data["b"]) == 0


def test_trajectories_from_the_signature(start):
    service = start(table(signature=SIGNATURE, max_times_sampled=1))
    write(service.client)
    dataset = reverb.TrajectoryDataset.from_table_signature(
        server_address=service.address, table="t", max_in_flight_samples_per_worker=1,
        max_samples=3)
    for i, one in enumerate(take(dataset, 3)):
        assert_same(one.data["b"], np.int64(i))
        assert one.data["a"].shape == (2, 2)


@pytest.mark.parametrize("kind", ["TrajectoryDataset", "TimestepDataset"])
def test_the_signature_of_an_unknown_table(start, kind):
    service = start(table("b"), table("a"))
    with pytest.raises(ValueError, match="does not contain any table named t. Found: a, b"):
        getattr(reverb, kind).from_table_signature(service.address, "t", 1)


@pytest.mark.parametrize("kind", ["TrajectoryDataset", "TimestepDataset"])
def test_the_signature_of_a_table_without(start, kind):
    service = start(table())
    with pytest.raises(ValueError, match="Table t at .* does not have a signature"):
        getattr(reverb, kind).from_table_signature(service.address, "t", 1)


@with_tensorflow
def test_batches(start):
    service = start(table(max_times_sampled=1))
    write(service.client, count=8)
    batches = list(trajectories(service, max_samples=8).batch(4))
    assert [batch.data["b"].numpy().tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert batches[0].data["a"].shape == (4, 2, 2)
    assert batches[0].info.key.shape == (4,)


@with_tensorflow
@pytest.mark.parametrize("make, outer", [(trajectories, (None, 2)), (timesteps, (2,))])
def test_element_spec(start, make, outer):
    spec = make(start(table())).element_spec
    assert isinstance(spec, reverb.ReplaySample)
    assert tuple(spec.data["a"].shape) == outer
    assert spec.data["b"].dtype == tf.int64
    assert spec.info.key.dtype == tf.uint64
    assert spec.info.probability.dtype == tf.float64


def test_timesteps(start):
    service = start(table(max_times_sampled=1))
    write_steps(service.client)
    got = take(timesteps(service, max_samples=3), 6)
    for i, one in enumerate(got):
        assert_same(one.data["a"], np.full(2, 10 * (i // 2) + i % 2, np.float32))
        assert_same(one.data["b"], np.int64(i // 2))
    assert got[0].info.key == got[1].info.key != got[2].info.key


def test_max_samples_counts_items(start):
    service = start(table(max_times_sampled=1))
    write_steps(service.client, count=4, length=3)
    assert len(take(timesteps(service, max_samples=2))) == 6


def test_timesteps_from_the_signature(start):
    service = start(table(signature=STEP_SIGNATURE, max_times_sampled=1))
    write_steps(service.client)
    dataset = reverb.TimestepDataset.from_table_signature(
        server_address=service.address, table="t", max_in_flight_samples_per_worker=1,
        max_samples=3)
    assert len(take(dataset)) == 6


@pytest.mark.parametrize("make", [trajectories, timesteps])
@pytest.mark.parametrize("option, value", [
    ("max_in_flight_samples_per_worker", 0), ("max_in_flight_samples_per_worker", -1),
    ("num_workers_per_iterator", 0), ("num_workers_per_iterator", -2),
    ("max_samples_per_stream", 0), ("max_samples_per_stream", -2),
    ("rate_limiter_timeout_ms", -2), ("max_samples", 0), ("max_samples", -2),
])
def test_options_out_of_range_are_refused(make, option, value):
    class Nobody:
        address = "localhost:1"

    with pytest.raises(ValueError, match=rf"{option} \({value}\) must be an? .*integer"):
        make(Nobody, **{option: value})


def test_dtypes_and_shapes_have_one_structure():
    with pytest.raises((ValueError, TypeError)):
        reverb.TrajectoryDataset("localhost:1", "t", dtypes={"a": dtype("float32")},
                                 shapes={"a": shape(), "b": shape()},
                                 max_in_flight_samples_per_worker=1)


def test_a_dtype_that_differs_from_the_signature_is_refused(start):
    service = start(table(signature={"a": Spec([None, 2], "float64"), "b": Spec([], "int64")}))
    with pytest.raises(Exception, match="(?i)dtype|type|signature|float"):
        take(trajectories(service, rate_limiter_timeout_ms=100), 1)


STEP = {"a": None, "last": None}


def config(transform, conditions=()):
    pattern = reverb.structured.pattern_from_transform(STEP, transform)
    return reverb.structured.create_config(pattern, "any", conditions)


def steps(episodes=((0, 1, 2), (10, 11, 12))):
    """Returns a dataset of steps. `last` is true at the end of each episode."""
    values = [v for e in episodes for v in e]
    ends = [i == len(e) - 1 for e in episodes for i in range(len(e))]
    return tf.data.Dataset.from_tensor_slices({"a": np.array(values), "last": np.array(ends)})


@with_tensorflow
@pytest.mark.parametrize("apart, expected", [
    (True, [[0, 1], [1, 2], [10, 11], [11, 12]]),
    (False, [[0, 1], [1, 2], [2, 10], [10, 11], [11, 12]]),
])
def test_patterns(apart, expected):
    dataset = reverb.PatternDataset(
        input_dataset=steps(), configs=[config(lambda s: {"x": s["a"][-2:]})],
        respect_episode_boundaries=apart, is_end_of_episode=lambda s: s["last"])
    assert [one["x"].tolist() for one in dataset.as_numpy_iterator()] == expected


@with_tensorflow
def test_patterns_with_conditions():
    conditions = [reverb.structured.Condition.step_index() == 1]
    dataset = reverb.PatternDataset(
        steps(), [config(lambda s: {"x": s["a"][-1]}, conditions)],
        respect_episode_boundaries=True, is_end_of_episode=lambda s: s["last"])
    assert [int(one["x"]) for one in dataset.as_numpy_iterator()] == [1, 11]


@with_tensorflow
def test_element_spec_of_patterns():
    dataset = reverb.PatternDataset(
        steps(), [config(lambda s: {"x": s["a"][-2:]})], respect_episode_boundaries=True,
        is_end_of_episode=lambda s: s["last"])
    assert tuple(dataset.element_spec["x"].shape) == (2,)
    assert dataset.element_spec["x"].dtype == tf.int64


@with_tensorflow
def test_tf_client(start):
    service = start(table("t", sampler="max_heap"))
    client = reverb.TFClient(service.address)
    client.insert([tf.constant([1.0, 2.0])], tf.constant(["t"]), tf.constant([1.0], tf.float64))
    insert(service.client, [np.array([3.0, 4.0], np.float32)], priorities=[2.0])
    one = client.sample("t", [tf.float32])
    assert one.data[0].numpy().tolist() == [3.0, 4.0]
    assert float(one.info.priority) == 2.0
    client.update_priorities("t", tf.reshape(one.info.key, [1]), tf.constant([0.5], tf.float64))
    assert client.sample("t", [tf.float32]).data[0].numpy().tolist() == [1.0, 2.0]


@with_tensorflow
def test_types_of_info():
    assert reverb.SampleInfo.tf_dtypes() == (tf.uint64, tf.double, tf.int64, tf.double, tf.int32)
    assert [s.rank for s in reverb.SampleInfo.tf_shapes()] == [0] * 5
