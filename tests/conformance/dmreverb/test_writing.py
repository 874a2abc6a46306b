# SPDX-License-Identifier: Apache-2.0
"""dm-reverb's writers: samples have the shapes, types and bytes that were written."""

import numpy as np
import pytest
import reverb

from harness import wait_until

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool", "complex64", "complex128"]


def steps_of(client, table, count=1):
    """Returns the next samples of a table, each as a list of steps."""
    return list(client.sample(table, count))


def trajectory_of(client, table):
    return next(iter(client.sample(table, 1, emit_timesteps=False)))


def values(dtype, shape):
    """Returns different values of a type, with its smallest and largest."""
    count = int(np.prod(shape, dtype=int))
    if dtype == "bool":
        return (np.arange(count) % 3 == 0).reshape(shape)
    if np.issubdtype(np.dtype(dtype), np.integer):
        info = np.iinfo(dtype)
        flat = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761)).astype(dtype)
        flat[:2] = [info.min, info.max][:count]
        return flat.reshape(shape)
    flat = np.linspace(-3, 3, count).astype(dtype)
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        flat = flat + 1j * flat[::-1]
    return flat.astype(dtype).reshape(shape)


def test_an_inserted_item_is_sampled_with_its_info(client, fresh):
    table = fresh("uniform")
    data = [np.array([1, 2, 3], np.float32), np.int32(7)]
    client.insert(data, {table: 1.5})
    [[step]] = steps_of(client, table)
    np.testing.assert_array_equal(step.data[0], data[0])
    assert step.data[0].dtype == np.float32
    assert step.data[1] == 7 and step.data[1].dtype == np.int32
    assert step.info.priority == 1.5
    assert step.info.probability == 1.0
    assert step.info.table_size == 1
    assert step.info.times_sampled == 1
    [[again]] = steps_of(client, table)
    assert again.info.key == step.info.key
    assert again.info.times_sampled == 2


def test_one_insert_goes_into_several_tables(client, fresh):
    fresh("uniform", "uniform-too")
    client.insert([np.int64(5)], {"uniform": 1.0, "uniform-too": 2.0})
    [[one]], [[two]] = steps_of(client, "uniform"), steps_of(client, "uniform-too")
    assert one.data[0] == two.data[0] == 5
    assert (one.info.priority, two.info.priority) == (1.0, 2.0)


def test_an_insert_into_no_table_is_refused_by_the_client(client):
    with pytest.raises(ValueError):
        client.insert([np.int64(5)], {})


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives(client, fresh, dtype):
    table = fresh("fifo")
    rows = [values(dtype, (2, 3)) for _ in range(3)]
    with client.trajectory_writer(3) as writer:
        for row in rows:
            writer.append({"x": row})
        writer.create_item(table, 1.0, {"x": writer.history["x"][-3:]})
    column = trajectory_of(client, table).data[0]
    assert column.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(column, np.stack(rows))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_survives_delta_encoding(client, fresh, dtype):
    table = fresh("fifo")
    rows = [values(dtype, (4,)) for _ in range(6)]
    rows[3] = rows[3][::-1]
    with client.writer(max_sequence_length=6, delta_encoded=True, chunk_length=3) as writer:
        for row in rows:
            writer.append([row, row[0]])
        writer.create_item(table, 5, 1.0)
    [steps] = steps_of(client, table)
    assert len(steps) == 5
    for step, row in zip(steps, rows[1:]):
        assert step.data[0].dtype == np.dtype(dtype)
        np.testing.assert_array_equal(step.data[0], row)
        np.testing.assert_array_equal(step.data[1], row[0])


def test_strings_survive(client, fresh):
    table = fresh("fifo")
    texts = [b"", b"a", "gr\u00fc\u00dfe".encode(), b"\x00\xff" * 300]
    with client.trajectory_writer(2) as writer:
        writer.append({"one": np.array("first"), "many": np.array(texts, object)})
        writer.append({"one": np.array("second"), "many": np.array(texts[::-1], object)})
        writer.create_item(table, 1.0, {
            "many": writer.history["many"][-2:], "one": writer.history["one"][-2:]})
    many, one = trajectory_of(client, table).data
    assert many.tolist() == [texts, texts[::-1]]
    assert one.tolist() == [b"first", b"second"]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 1, 2, 1, 2), (1000,)])
def test_every_shape_survives(client, fresh, shape):
    table = fresh("fifo")
    row = values("int32", shape) if np.prod(shape) else np.zeros(shape, np.int32)
    with client.trajectory_writer(2) as writer:
        writer.append([row])
        writer.append([row])
        writer.create_item(table, 1.0, [writer.history[0][:]])
    [column] = trajectory_of(client, table).data
    assert column.shape == (2, *shape)
    np.testing.assert_array_equal(column, np.stack([row, row]))


def test_sequences_across_chunks_of_the_old_writer(client, fresh):
    table = fresh("queue")
    with client.writer(max_sequence_length=3, chunk_length=2) as writer:
        for step in range(5):
            writer.append([np.full((2, 2), step, np.float32), np.int64(step)])
            if step >= 2:
                writer.create_item(table, 3, float(step))
    for first, steps in enumerate(steps_of(client, table, 3)):
        assert [int(s.data[1]) for s in steps] == [first, first + 1, first + 2]
        np.testing.assert_array_equal(steps[0].data[0], np.full((2, 2), first, np.float32))
        assert steps[0].info.priority == first + 2


def test_the_old_writer_takes_whole_sequences(client, fresh):
    table = fresh("fifo")
    with client.writer(max_sequence_length=10, chunk_length=5) as writer:
        writer.append_sequence([np.arange(10, dtype=np.int32), np.ones((10, 2))])
        writer.create_item(table, 7, 1.0)
    [steps] = steps_of(client, table)
    assert [int(s.data[0]) for s in steps] == list(range(3, 10))


def test_the_old_writer_confirms_many_items(client, fresh):
    table = fresh("uniform")
    with client.writer(max_sequence_length=2, chunk_length=1, max_in_flight_items=3) as writer:
        for step in range(200):
            writer.append([np.int64(step)])
            writer.create_item(table, 1, 1.0)
    assert client.server_info()[table].current_size == 200


def test_the_old_writer_flushes_items_whose_chunk_is_open(client, fresh):
    table = fresh("fifo")
    writer = client.writer(max_sequence_length=10, chunk_length=10)
    writer.append([np.int64(1)])
    writer.create_item(table, 1, 1.0)
    writer.flush()
    [[step]] = steps_of(client, table)
    assert step.data[0] == 1
    writer.append([np.int64(2)])
    writer.create_item(table, 2, 1.0)
    writer.close()  # sends the item, but does not always wait until it is confirmed
    wait_until(lambda: client.server_info()[table].current_size == 2, 10, "the second item")


def test_an_item_longer_than_the_history_is_refused_by_the_client(client, fresh):
    table = fresh("fifo")
    with client.writer(max_sequence_length=2) as writer:
        writer.append([np.int64(1)])
        with pytest.raises(ValueError):
            writer.create_item(table, 2, 1.0)


def test_overlapping_trajectories(client, fresh):
    table = fresh("fifo")
    with client.trajectory_writer(num_keep_alive_refs=3) as writer:
        for step in range(6):
            writer.append({"o": np.full((2,), step, np.float32), "a": np.int32(step)})
            if step >= 2:
                writer.create_item(table, 1.0, {
                    "a": writer.history["a"][-2:], "o": writer.history["o"][-3:]})
    assert client.server_info()[table].current_size == 4
    sample = trajectory_of(client, table)
    actions, observations = sample.data
    assert actions.tolist() == [1, 2]
    np.testing.assert_array_equal(observations[:, 0], [0, 1, 2])


@pytest.mark.parametrize("length", [1, 2, 5, 7])
def test_trajectories_across_chunks_of_any_length(client, fresh, length):
    table = fresh("queue")
    writer = client.trajectory_writer(num_keep_alive_refs=7)
    writer.configure(("x",), num_keep_alive_refs=7, max_chunk_length=length)
    for step in range(11):
        writer.append({"x": np.int64(step)})
    writer.create_item(table, 1.0, {"x": writer.history["x"][-7:]})
    writer.create_item(table, 1.0, {"x": writer.history["x"][-6:-2]})
    writer.flush()
    assert trajectory_of(client, table).data[0].tolist() == list(range(4, 11))
    assert trajectory_of(client, table).data[0].tolist() == list(range(5, 9))


def test_squeezed_columns_lose_their_row(client, fresh):
    table = fresh("fifo")
    with client.trajectory_writer(2) as writer:
        for step in range(2):
            writer.append({"v": np.full((3,), step, np.float32), "s": np.int16(step)})
        writer.create_item(table, 1.0, {
            "all": writer.history["v"][:], "last": writer.history["v"][-1],
            "scalar": writer.history["s"][0]})
    whole, last, scalar = trajectory_of(client, table).data
    assert whole.shape == (2, 3)
    assert last.tolist() == [1, 1, 1]
    assert scalar.shape == () and scalar == 0


def test_one_column_twice_and_columns_of_different_length(client, fresh):
    table = fresh("fifo")
    with client.trajectory_writer(4) as writer:
        for step in range(4):
            writer.append({"x": np.int64(step)})
        writer.create_item(table, 1.0, [
            writer.history["x"][:2], writer.history["x"][-1:], writer.history["x"][:]])
    first, second, third = trajectory_of(client, table).data
    assert (first.tolist(), second.tolist(), third.tolist()) == ([0, 1], [3], [0, 1, 2, 3])


def test_steps_in_parts_and_columns_that_are_missing(client, fresh):
    table = fresh("fifo")
    with client.trajectory_writer(3) as writer:
        writer.append({"a": np.int64(0)})
        writer.append({"a": np.int64(1)}, partial_step=True)
        writer.append({"b": np.int64(10)})
        writer.append({"b": np.int64(20), "a": np.int64(2)})
        writer.create_item(table, 1.0, {
            "a": writer.history["a"][:], "b": writer.history["b"][-2:]})
    a, b = trajectory_of(client, table).data
    assert (a.tolist(), b.tolist()) == ([0, 1, 2], [10, 20])


def test_episodes_are_counted(client, fresh):
    table = fresh("small")
    with client.trajectory_writer(2) as writer:
        for episode in range(4):
            for step in range(2):
                writer.append([np.int64(episode)])
            writer.create_item(table, 1.0, [writer.history[0][:]])
            writer.end_episode()
    info = client.server_info()[table]
    assert (info.current_size, info.num_episodes, info.num_deleted_episodes) == (3, 3, 1)


def test_one_trajectory_in_several_tables(client, fresh):
    fresh("fifo", "lifo")
    with client.trajectory_writer(2) as writer:
        writer.append([np.arange(3)])
        writer.create_item("fifo", 1.0, [writer.history[0][:]])
        writer.create_item("lifo", 2.0, [writer.history[0][:]])
    one, two = trajectory_of(client, "fifo"), trajectory_of(client, "lifo")
    np.testing.assert_array_equal(one.data[0], two.data[0])
    assert one.info.key != two.info.key


def test_many_items_of_one_writer_are_all_confirmed(client, fresh):
    table = fresh("uniform")
    with client.trajectory_writer(1) as writer:
        for step in range(500):
            writer.append([np.full((100,), step, np.int32)])
            writer.create_item(table, 1.0, [writer.history[0][-1:]])
            writer.flush(block_until_num_items=50)
        writer.flush()
        assert client.server_info()[table].current_size == 500


def test_structured_writers_insert_what_their_pattern_says(client, fresh):
    fresh("fifo", "lifo")
    shape = {"a": None, "b": {"c": None}}

    def pattern(step):
        return {"pair": step["a"][-2:], "last": step["b"]["c"][-1]}

    configs = [
        reverb.structured.create_config(
            reverb.structured.pattern_from_transform(shape, pattern), "fifo"),
        reverb.structured.create_config(
            reverb.structured.pattern_from_transform(shape, lambda step: [step["a"][-3:]]),
            "lifo", conditions=[reverb.structured.Condition.is_end_episode()]),
    ]
    writer = client.structured_writer(configs)
    for step in range(5):
        writer.append({"a": np.int64(step), "b": {"c": np.float32(step)}})
    writer.flush()
    info = client.server_info()
    assert (info["fifo"].current_size, info["lifo"].current_size) == (4, 0)
    writer.end_episode()
    last, pair = trajectory_of(client, "fifo").data
    assert last == 1.0 and pair.tolist() == [0, 1]
    assert trajectory_of(client, "lifo").data[0].tolist() == [2, 3, 4]


def test_an_item_of_20_megabytes(client, fresh):
    table = fresh("fifo")
    noise = np.random.default_rng(1).integers(0, 256, (5, 4_000_000), np.uint8)
    with client.trajectory_writer(5) as writer:
        for row in noise:
            writer.append([row])
        writer.create_item(table, 1.0, [writer.history[0][:]])
    np.testing.assert_array_equal(trajectory_of(client, table).data[0], noise)


def test_a_trajectory_that_does_not_match_the_signature_is_refused(client, fresh):
    table = fresh("signed")
    writer = client.trajectory_writer(2)
    writer.append({"a": np.zeros((2,), np.float64), "b": (np.int64(1),)})
    with pytest.raises(ValueError, match="signature|dtype|mismatch|expected"):
        writer.create_item(table, 1.0, {
            "a": writer.history["a"][:], "b": (writer.history["b"][0][:],)})
        writer.flush(timeout_ms=5000)
    writer.close()
    assert client.server_info()[table].current_size == 0


def test_an_old_insert_that_does_not_match_the_signature_is_refused(client, fresh):
    table = fresh("signed-step")
    with pytest.raises(ValueError, match="signature|dtype|mismatch|expected"):
        client.insert({"action": np.zeros((2,), np.int64),
                       "observation": np.zeros((2, 3), np.float32)}, {table: 1.0})
    client.insert({"action": np.zeros((2,), np.int32),
                   "observation": np.zeros((2, 3), np.float32)}, {table: 1.0})
    assert client.server_info()[table].current_size == 1


def test_an_item_for_an_unknown_table_is_refused(client):
    writer = client.trajectory_writer(1)
    writer.append([np.int64(1)])
    with pytest.raises(ValueError, match="nowhere"):
        writer.create_item("nowhere", 1.0, [writer.history[0][:]])
        writer.flush(timeout_ms=5000)
    writer.close()


def test_an_unvalidated_item_for_an_unknown_table_ends_the_writer(client):
    writer = client.trajectory_writer(1, validate_items=False)
    writer.append([np.int64(1)])
    writer.create_item("nowhere", 1.0, [writer.history[0][:]])
    with pytest.raises(RuntimeError, match="Priority table nowhere was not found"):
        writer.flush(timeout_ms=5000)
    writer.close()


def test_a_priority_that_is_no_number_is_refused(client, fresh):
    table = fresh("uniform")
    writer = client.trajectory_writer(1)
    writer.append([np.int64(1)])
    with pytest.raises(ValueError):
        writer.create_item(table, float("nan"), [writer.history[0][:]])
    writer.close()


def test_sequences_of_the_old_writer_fit_a_signature_of_steps(client, fresh):
    """The signature may be that of one step, for items of any number of steps."""
    table = fresh("signed-step")
    with client.writer(max_sequence_length=3) as writer:
        for step in range(3):
            writer.append({"action": np.full((2,), step, np.int32),
                           "observation": np.full((2, 3), step, np.float32)})
        writer.create_item(table, 3, 1.0)
    [steps] = steps_of(client, table)
    assert [s.data[0].tolist() for s in steps] == [[0, 0], [1, 1], [2, 2]]
