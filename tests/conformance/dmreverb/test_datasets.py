# SPDX-License-Identifier: Apache-2.0
"""dm-reverb's datasets and its client for TensorFlow graphs."""

import numpy as np
import pytest
import reverb
import tensorflow as tf


def fill(client, table, count, length=1):
    with client.trajectory_writer(length) as writer:
        for step in range(count + length - 1):
            writer.append([np.full((2,), step, np.float32), np.int64(step)])
            if step >= length - 1:
                writer.create_item(table, 1.0 + step, [
                    writer.history[0][-length:], writer.history[1][-length:]])


def trajectories(server, table, length=1, **options):
    options = {"max_in_flight_samples_per_worker": 4, "num_workers_per_iterator": 1, **options}
    return reverb.TrajectoryDataset(
        server.address, table, dtypes=(tf.float32, tf.int64),
        shapes=(tf.TensorShape([length, 2]), tf.TensorShape([length])), **options)


def timesteps(server, table, **options):
    options = {"max_in_flight_samples_per_worker": 4, "num_workers_per_iterator": 1, **options}
    return reverb.TimestepDataset(
        server.address, table, dtypes=(tf.float32, tf.int64),
        shapes=(tf.TensorShape([2]), tf.TensorShape([])), **options)


def test_a_dataset_of_trajectories(server, client, fresh):
    table = fresh("uniform")
    fill(client, table, 10, length=3)
    seen = set()
    for sample in trajectories(server, table, 3, max_samples=200):
        floats, numbers = (x.numpy() for x in sample.data)
        first = int(numbers[0])
        assert numbers.tolist() == [first, first + 1, first + 2]
        np.testing.assert_array_equal(floats[:, 0], numbers)
        assert sample.info.priority.numpy() == 3.0 + first
        assert sample.info.probability.numpy() == pytest.approx(0.1)
        assert sample.info.table_size.numpy() == 10
        seen.add(first)
    assert seen == set(range(10))


def test_a_dataset_of_timesteps(server, client, fresh):
    table = fresh("queue")
    fill(client, table, 2, length=3)
    numbers = [int(s.data[1]) for s in timesteps(
        server, table, rate_limiter_timeout_ms=200, max_in_flight_samples_per_worker=1)]
    assert numbers == [0, 1, 2, 1, 2, 3]


def test_datasets_of_several_workers(server, client, fresh):
    table = fresh("uniform")
    fill(client, table, 50)
    dataset = trajectories(server, table, num_workers_per_iterator=4,
                           max_in_flight_samples_per_worker=20, max_samples=1000)
    assert sum(1 for _ in dataset) == 1000
    info = client.server_info()[table]
    assert info.rate_limiter_info.sample_stats.completed >= 1000


def test_a_dataset_in_batches(server, client, fresh):
    table = fresh("uniform")
    fill(client, table, 20)
    dataset = trajectories(server, table, max_in_flight_samples_per_worker=64).batch(64).take(3)
    shapes = [sample.data[0].shape.as_list() for sample in dataset]
    assert shapes == [[64, 1, 2]] * 3


def test_max_samples_per_stream_is_respected(server, client, fresh):
    table = fresh("uniform")
    fill(client, table, 5)
    dataset = trajectories(server, table, max_samples_per_stream=3, max_samples=30,
                           max_in_flight_samples_per_worker=2)
    assert sum(1 for _ in dataset) == 30


@pytest.mark.parametrize("make", [trajectories, timesteps])
def test_a_dataset_ends_after_the_rate_limiter_timeout(server, fresh, make):
    table = fresh("fifo")
    assert list(make(server, table, rate_limiter_timeout_ms=100)) == []


def test_a_dataset_gives_the_existing_items_before_it_ends(server, client, fresh):
    table = fresh("queue")
    fill(client, table, 3)
    dataset = trajectories(server, table, rate_limiter_timeout_ms=200,
                           max_in_flight_samples_per_worker=1)
    assert [int(s.data[1][0]) for s in dataset] == [0, 1, 2]


def test_a_dataset_by_signature(server, client, fresh):
    table = fresh("signed")
    with client.trajectory_writer(3) as writer:
        for step in range(3):
            writer.append({"a": np.full((2,), step, np.float32), "b": (np.int64(step),)})
        writer.create_item(table, 1.0, {
            "a": writer.history["a"][:], "b": (writer.history["b"][0][:],)})
    dataset = reverb.TrajectoryDataset.from_table_signature(
        server.address, table, max_in_flight_samples_per_worker=1, max_samples=1,
        get_signature_timeout_secs=10)
    [sample] = list(dataset)
    np.testing.assert_array_equal(sample.data["a"][:, 0], [0, 1, 2])
    assert sample.data["b"][0].numpy().tolist() == [0, 1, 2]


def test_steps_by_signature(server, client, fresh):
    table = fresh("signed-step")
    data = {"action": np.array([3, 4], np.int32),
            "observation": np.arange(6, dtype=np.float32).reshape(2, 3)}
    client.insert(data, {table: 1.0})
    dataset = reverb.TimestepDataset.from_table_signature(
        server.address, table, max_in_flight_samples_per_worker=1, max_samples=1,
        get_signature_timeout_secs=10)
    [step] = list(dataset)
    for name, value in data.items():
        np.testing.assert_array_equal(step.data[name], value)


def test_samples_unpacked_by_signature(client, fresh):
    table = fresh("signed-list")
    with client.trajectory_writer(2) as writer:
        writer.append([np.ones((3,)), np.array(b"text"), np.bool_(True)])
        writer.append([np.zeros((3,)), np.array(b"more"), np.bool_(False)])
        writer.create_item(table, 1.0, [
            writer.history[0][-1], writer.history[1][0], writer.history[2][:]])
    [sample] = client.sample(table, 1, emit_timesteps=False, unpack_as_table_signature=True)
    assert isinstance(sample.data, list)
    assert sample.data[0].tolist() == [0, 0, 0]
    assert sample.data[1] == b"text"
    assert sample.data[2].tolist() == [True, False]


def test_a_dataset_whose_types_do_not_fit_the_table_fails(server, fresh):
    table = fresh("signed")
    dataset = reverb.TrajectoryDataset(
        server.address, table, dtypes=(tf.float32,), shapes=(tf.TensorShape([None]),),
        max_in_flight_samples_per_worker=1, num_workers_per_iterator=1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iter(dataset))


def test_a_dataset_of_an_unknown_table_fails(server):
    with pytest.raises((tf.errors.NotFoundError, tf.errors.InvalidArgumentError),
                       match="nowhere"):
        next(iter(trajectories(server, "nowhere")))


def test_the_client_for_graphs(server, client, fresh):
    table = fresh("prioritized")
    graph = reverb.TFClient(server.address)
    graph.insert([tf.constant([1, 2], tf.int32)], tf.constant([table]),
                 tf.constant([2.0], tf.float64))
    sample = graph.sample(table, [tf.int32])
    assert sample.data[0].numpy().tolist() == [1, 2]
    assert sample.info.priority.numpy() == 2.0
    graph.update_priorities(table, keys=tf.reshape(sample.info.key, [1]),
                            priorities=tf.constant([5.0], tf.float64))
    [[step]] = client.sample(table)
    assert step.info.priority == 5.0
