# SPDX-License-Identifier: Apache-2.0
"""Writer: Reverb's older writer, whose items consist of the latest steps."""

import collections
import time

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, sample, samples, size
from reverb_suite.implementation import Spec, table

Step = collections.namedtuple("Step", ["action", "reward"])


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_an_item_is_the_last_steps(serve, length):
    client = serve()
    with client.writer(5) as writer:
        for i in range(5):
            writer.append([np.int64(i)])
        writer.create_item("t", length, 1.0)
    assert_same(sample(client).data[0], np.arange(5 - length, 5))


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_chunk_length_does_not_change_the_samples(serve, chunk):
    client = serve()
    with client.writer(4, chunk_length=chunk) as writer:
        for i in range(12):
            writer.append({"x": np.full((2, 2), i, np.float32)})
            if i >= 3:
                writer.create_item("t", 4, float(i))
    assert size(client) == 9
    client.reset("t")


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_overlapping_items(serve, chunk):
    client = serve(table(max_times_sampled=1))
    with client.writer(4, chunk_length=chunk) as writer:
        for i in range(12):
            writer.append(np.int64(i))
            if i >= 3:
                writer.create_item("t", 4, float(i))
    for i, one in enumerate(samples(client, count=9)):
        assert_same(one.data[0], np.arange(i, i + 4))
        assert one.info.priority == i + 3


@pytest.mark.parametrize("delta", [False, True])
def test_delta_encoding_does_not_change_the_samples(serve, delta):
    client = serve()
    rows = np.random.default_rng(1).integers(0, 255, (6, 7), np.uint8)
    with client.writer(6, delta_encoded=delta, chunk_length=6) as writer:
        for row in rows:
            writer.append(row)
        writer.create_item("t", 6, 1.0)
    assert_same(sample(client).data[0], rows)


def test_several_items_of_one_step(serve):
    client = serve(table("a"), table("b"))
    with client.writer(2) as writer:
        writer.append(1.0)
        writer.append(2.0)
        writer.create_item("a", 2, 1.0)
        writer.create_item("b", 1, 3.0)
        writer.create_item("a", 1, 2.0)
    assert (size(client, "a"), size(client, "b")) == (2, 1)
    assert_same(sample(client, "b").data[0], np.array([2.0]))


def test_a_writer_of_a_named_tuple(serve):
    client = serve()
    with client.writer(1) as writer:
        writer.append(Step(action=np.int32(3), reward=np.float32(0.5)))
        writer.create_item("t", 1, 1.0)
    data = sample(client).data
    assert_same(data[0], np.array([3], np.int32))
    assert_same(data[1], np.array([0.5], np.float32))


def test_close_sends_items_that_were_not_flushed(serve):
    client = serve()
    writer = client.writer(10, chunk_length=10)
    writer.append(1.0)
    writer.create_item("t", 1, 1.0)
    writer.close()
    # Reverb's writer sometimes stops waiting for the confirmation before the item is inserted.
    deadline = time.monotonic() + 10
    while size(client) == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert size(client) == 1


def test_num_timesteps_up_to_the_history(serve):
    client = serve()
    with client.writer(3, chunk_length=1) as writer:
        for i in range(20):
            writer.append(np.int64(i))
            writer.create_item("t", min(3, i + 1), 1.0)
    assert size(client) == 20


def test_none_in_flight_is_no_limit(serve):
    client = serve()
    with client.writer(1, max_in_flight_items=None) as writer:
        for i in range(100):
            writer.append(i)
            writer.create_item("t", 1, 1.0)
    assert size(client) == 100


def test_one_item_in_flight(serve):
    client = serve()
    with client.writer(1, max_in_flight_items=1) as writer:
        for i in range(30):
            writer.append(i)
            writer.create_item("t", 1, 1.0)
    assert size(client) == 30


def test_append_sequence(serve):
    client = serve()
    with client.writer(4) as writer:
        writer.append_sequence({"a": np.arange(4), "b": np.ones((4, 2), np.float32)})
        writer.create_item("t", 4, 1.0)
    data = sample(client).data
    assert_same(data[0], np.arange(4))
    assert_same(data[1], np.ones((4, 2), np.float32))


def test_append_sequence_after_append(serve):
    client = serve()
    with client.writer(4) as writer:
        writer.append([np.int64(0)])
        writer.append_sequence([np.arange(1, 4)])
        writer.create_item("t", 4, 1.0)
    assert_same(sample(client).data[0], np.arange(4))


def test_a_scalar_is_refused_as_a_sequence(serve):
    with pytest.raises(ValueError):
        serve().writer(4).append_sequence([1.0])


def test_a_sequence_of_several_lengths(serve):
    with pytest.raises(ValueError):
        serve().writer(4).append_sequence([np.arange(3), np.arange(4)])


@pytest.mark.parametrize("steps", [0, -1])
def test_num_timesteps_must_be_positive(serve, steps):
    writer = serve().writer(3)
    writer.append(1.0)
    with pytest.raises(ValueError, match="num_timesteps .* must be a positive integer"):
        writer.create_item("t", steps, 1.0)


def test_more_steps_than_there_are(serve):
    writer = serve().writer(5)
    writer.append(1.0)
    with pytest.raises(ValueError):
        writer.create_item("t", 2, 1.0)


def test_more_steps_than_the_writer_keeps(serve):
    writer = serve().writer(2)
    for i in range(5):
        writer.append(i)
    with pytest.raises(ValueError):
        writer.create_item("t", 3, 1.0)


def test_no_step_at_all(serve):
    with pytest.raises(ValueError):
        serve().writer(2).create_item("t", 1, 1.0)


def test_nan_priority(serve):
    writer = serve().writer(2)
    writer.append(1.0)
    with pytest.raises(ValueError, match="(?i)nan"):
        writer.create_item("t", 1, float("nan"))


def test_steps_of_another_number_of_leaves(serve):
    writer = serve().writer(4, chunk_length=4)
    writer.append([1.0, 2.0])
    with pytest.raises(ValueError):
        writer.append([1.0])
        writer.create_item("t", 2, 1.0)
        writer.flush()


def test_close_twice(serve):
    writer = serve().writer(1)
    writer.close()
    with pytest.raises(ValueError, match=r"close\(\) has already been called on Writer"):
        writer.close()


def test_no_use_after_the_end(serve):
    writer = serve().writer(1)
    writer.close()
    with pytest.raises(ValueError, match="Cannot reuse already closed Writer"):
        with writer:
            pass


def test_close_takes_an_argument(serve):
    serve().writer(1).close(retry_on_unavailable=False)


def test_repr_says_whether_it_is_closed(serve):
    writer = serve().writer(1)
    assert repr(writer).endswith("closed: False")
    writer.close()
    assert repr(writer).endswith("closed: True")


SIGNED = {"a": Spec([2], "float32"), "b": Spec([], "int64")}


def test_signature_is_one_step(serve):
    client = serve(table(signature=SIGNED))
    with client.writer(2) as writer:
        for i in range(2):
            writer.append({"a": np.zeros(2, np.float32), "b": np.int64(i)})
        writer.create_item("t", 2, 1.0)
    assert_same(sample(client, unpack_as_table_signature=True).data["b"], np.arange(2))


@pytest.mark.parametrize("step", [
    {"a": np.zeros(2, np.float64), "b": np.int64(1)},
    {"a": np.zeros(3, np.float32), "b": np.int64(1)},
    {"a": np.zeros(2, np.float32)},
    {"a": np.zeros(2, np.float32), "b": np.int64(1), "c": 1.0},
], ids=["dtype", "shape", "too few", "too many"])
def test_signature_is_checked(serve, step):
    client = serve(table(signature=SIGNED))
    with pytest.raises((ValueError, RuntimeError)):
        with client.writer(1) as writer:
            writer.append(step)
            writer.create_item("t", 1, 1.0)
    assert size(client) == 0
