# SPDX-License-Identifier: Apache-2.0
"""TrajectoryWriter: steps, histories, items, and waiting for them."""

import collections
import time

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, sample, samples, size
from reverb_suite.implementation import queue, reverb, table

Point = collections.namedtuple("Point", ["x", "y"])


def write(client, trajectory, steps, refs=10, name="t"):
    """Appends steps and makes one item of them."""
    with client.trajectory_writer(refs) as writer:
        for step in steps:
            writer.append(step)
        writer.create_item(name, 1.0, trajectory(writer.history))


CUTS = {
    "last": (lambda h: h[-1:], [9]),
    "last three": (lambda h: h[-3:], [7, 8, 9]),
    "all": (lambda h: h[:], list(range(10))),
    "all by step": (lambda h: h[::1], list(range(10))),
    "middle": (lambda h: h[-5:-2], [5, 6, 7]),
    "from the front": (lambda h: h[2:5], [2, 3, 4]),
    "front to back": (lambda h: h[2:-2], [2, 3, 4, 5, 6, 7]),
    "up to": (lambda h: h[:3], [0, 1, 2]),
    "up to, from the back": (lambda h: h[:-7], [0, 1, 2]),
    "list": (lambda h: h[[-3, -2, -1]], [7, 8, 9]),
    "list of one": (lambda h: h[[-4]], [6]),
    "list of fronts": (lambda h: h[[3, 4]], [3, 4]),
    "slice of slice": (lambda h: h[-6:][1:3], [5, 6]),
    "list of slice": (lambda h: h[-6:][[0, 1]], [4, 5]),
}


@pytest.mark.parametrize("name", CUTS)
def test_cuts_of_the_history(serve, name):
    cut, expected = CUTS[name]
    client = serve()
    write(client, lambda h: {"x": cut(h["x"])}, [{"x": np.int64(i)} for i in range(10)])
    assert_same(sample(client).data[0], np.array(expected))


@pytest.mark.parametrize("index, expected", [(-1, 9), (-10, 0), (0, 0), (4, 4), (9, 9)])
def test_one_step_is_squeezed(serve, index, expected):
    client = serve()
    write(client, lambda h: {"x": h["x"][index], "y": h["x"][-2:]},
          [{"x": np.int64(i)} for i in range(10)])
    one = sample(client)
    assert_same(one.data[0], np.int64(expected))
    assert_same(one.data[1], np.array([8, 9]))


@pytest.mark.parametrize("cut, expected", [
    (lambda h: h[-5::2], [5, 7, 9]), (lambda h: h[::3], [0, 3, 6, 9]),
    (lambda h: h[[-1, -3]], [9, 7]), (lambda h: h[[0, 9]], [0, 9]),
    (lambda h: h[-1:-4:-1], [9, 8, 7]),
], ids=["every other", "every third", "backwards", "ends", "reversed"])
def test_scattered_cuts_of_short_histories(serve, cut, expected):
    """While few items have been made, every chunk has one step."""
    client = serve()
    write(client, lambda h: {"x": cut(h["x"])}, [{"x": np.int64(i)} for i in range(10)])
    assert_same(sample(client).data[0], np.array(expected))


@pytest.mark.reverb_differs("runs of rows are merged without a look at the gaps between them")
@pytest.mark.parametrize("cut, expected", [
    (lambda h: h[-5::2], [1, 3, 5]), (lambda h: h[[-1, -3]], [5, 3]),
    (lambda h: h[[-1, -1]], [5, 5]), (lambda h: h[[0, 5]], [0, 5]),
], ids=["every other", "backwards", "twice", "ends"])
def test_scattered_cuts_of_long_chunks(serve, cut, expected):
    client = serve()
    with client.trajectory_writer(6) as writer:
        writer.configure(("x",), num_keep_alive_refs=6, max_chunk_length=6)
        for i in range(6):
            writer.append({"x": np.int64(i)})
        writer.create_item("t", 1.0, {"x": cut(writer.history["x"])})
    assert_same(sample(client).data[0], np.array(expected))


@pytest.mark.reverb_differs("the same row again is taken for the row after it")
def test_one_row_several_times(serve):
    client = serve()
    write(client, lambda h: {"x": h["x"][[-1, -1, -2]]}, [{"x": np.int64(i)} for i in range(3)])
    assert_same(sample(client).data[0], np.array([2, 2, 1]))


@pytest.mark.reverb_differs("chunks grow in time, and then strides give the wrong rows",
                            strict=False)
def test_strides_stay_right_when_chunks_grow(serve):
    client = serve(table(max_times_sampled=1))
    with client.trajectory_writer(10) as writer:
        for i in range(200):
            writer.append({"x": np.int64(i)})
            if i >= 9:
                writer.create_item("t", 1.0, {"x": writer.history["x"][-9::2]})
    for i, one in enumerate(samples(client, count=191)):
        assert_same(one.data[0], np.arange(i + 1, i + 10, 2))


def test_runs_stay_right_when_chunks_grow(serve):
    client = serve(table(max_times_sampled=1))
    with client.trajectory_writer(10) as writer:
        for i in range(200):
            writer.append({"x": np.int64(i)})
            if i >= 4:
                writer.create_item("t", 1.0, {"x": writer.history["x"][-5:]})
    for i, one in enumerate(samples(client, count=196)):
        assert_same(one.data[0], np.arange(i, i + 5))


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_chunk_length_does_not_change_the_samples(serve, length):
    client = serve(table(max_times_sampled=1))
    with client.trajectory_writer(7) as writer:
        writer.configure(("x",), num_keep_alive_refs=7, max_chunk_length=length)
        for i in range(30):
            writer.append({"x": np.full(3, i, np.float32), "y": np.int32(i)})
            if i >= 6:
                writer.create_item("t", 1.0, {"x": writer.history["x"][-7:],
                                              "y": writer.history["y"][-2:]})
    for i, one in enumerate(samples(client, count=24)):
        assert_same(one.data[0], np.arange(i, i + 7, dtype=np.float32)[:, None].repeat(3, 1))
        assert_same(one.data[1], np.array([i + 5, i + 6], np.int32))


def test_columns_of_several_lengths(serve):
    client = serve()
    write(client, lambda h: {"a": h["a"][-3:], "b": h["b"][-1:], "c": h["a"][-2]},
          [{"a": np.int64(i), "b": np.float32(i)} for i in range(5)])
    data = sample(client).data
    assert_same(data[0], np.array([2, 3, 4]))
    assert_same(data[1], np.array([4], np.float32))
    assert_same(data[2], np.int64(3))


def test_an_item_of_another_structure_than_the_step(serve):
    client = serve()
    write(client, lambda h: [h["b"][-1:], (h["a"][-2:], {"z": h["b"][-2:]})],
          [{"a": np.int64(i), "b": np.float32(i)} for i in range(3)])
    data = sample(client).data
    assert_same(data[0], np.array([2], np.float32))
    assert_same(data[1], np.array([1, 2]))
    assert_same(data[2], np.array([1, 2], np.float32))


def test_one_column_twice(serve):
    client = serve()
    write(client, lambda h: {"now": h["x"][-2:], "before": h["x"][-3:-1]},
          [{"x": np.int64(i)} for i in range(4)])
    data = sample(client).data
    assert_same(data[0], np.array([1, 2]))
    assert_same(data[1], np.array([2, 3]))


def test_items_for_several_tables(serve):
    client = serve(table("a"), table("b"))
    with client.trajectory_writer(2) as writer:
        writer.append([np.int64(1)])
        writer.append([np.int64(2)])
        writer.create_item("a", 1.0, [writer.history[0][-2:]])
        writer.create_item("b", 2.0, [writer.history[0][-1:]])
    assert_same(sample(client, "a").data[0], np.array([1, 2]))
    assert_same(sample(client, "b").data[0], np.array([2]))


@pytest.mark.parametrize("priority", [0.0, 0.25, 1e9, np.float32(0.5), 2])
def test_priorities(serve, priority):
    client = serve()
    with client.trajectory_writer(1) as writer:
        writer.append([1.0])
        writer.create_item("t", priority, [writer.history[0][-1:]])
    assert sample(client).info.priority == priority


def test_arguments_by_name(serve):
    client = serve()
    with client.trajectory_writer(num_keep_alive_refs=1, validate_items=False) as writer:
        writer.append(data=[1.0], partial_step=False)
        writer.create_item(table="t", priority=1.0, trajectory=[writer.history[0][-1:]])
        writer.flush(block_until_num_items=0, timeout_ms=5000)
        writer.end_episode(clear_buffers=True, timeout_ms=5000)
    assert size(client) == 1


@pytest.fixture
def writer(serve):
    made = serve().trajectory_writer(3)
    yield made
    made.close()


def test_history_before_the_first_step(writer):
    with pytest.raises(RuntimeError, match="history cannot be accessed before `append`"):
        writer.history  # noqa: B018


@pytest.mark.parametrize("leaf", [1.0, np.arange(3), None, "text"])
def test_leaves_of_items_are_columns(writer, leaf):
    writer.append({"x": 1.0})
    with pytest.raises(TypeError, match="All leaves of `trajectory` must be `TrajectoryColumn`"):
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1:], "y": leaf})


def test_an_item_without_columns_is_refused(writer):
    writer.append({"x": 1.0})
    with pytest.raises(ValueError):
        writer.create_item("t", 1.0, {})


def test_an_item_with_a_nan_priority(writer):
    writer.append({"x": 1.0})
    with pytest.raises(ValueError, match="(?i)nan"):
        writer.create_item("t", float("nan"), {"x": writer.history["x"][-1:]})


def test_an_item_for_an_unknown_table(writer):
    writer.append({"x": 1.0})
    with pytest.raises(ValueError, match="nowhere"):
        writer.create_item("nowhere", 1.0, {"x": writer.history["x"][-1:]})


def test_a_writer_goes_on_after_a_refused_item(serve):
    client = serve()
    with client.trajectory_writer(1) as writer:
        writer.append({"x": 1.0})
        with pytest.raises(ValueError):
            writer.create_item("nowhere", 1.0, {"x": writer.history["x"][-1:]})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
    assert size(client) == 1


def test_a_column_keeps_its_dtype(writer):
    writer.append({"x": np.int64(1)})
    with pytest.raises(ValueError, match=r"wrong dtype.*for column.*x.*double.*int64"):
        writer.append({"x": np.float64(1)})


def test_a_column_keeps_its_shape(writer):
    writer.append({"x": np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match=r"incompatible shape.*for column.*x.*\[3\].*\[2\]"):
        writer.append({"x": np.zeros(3, np.float32)})


def test_messages_name_the_column_by_its_path(writer):
    writer.append({"a": {"b": [np.int64(1), np.int64(2)]}})
    with pytest.raises(ValueError, match=r"\('a', 'b', 1\)"):
        writer.append({"a": {"b": [np.int64(1), np.float32(2)]}})


def test_a_step_that_was_left_too_long_ago(writer):
    for i in range(5):
        writer.append({"x": i})
    with pytest.raises(ValueError, match="TrajectoryColumns cannot contain any None"):
        writer.history["x"][-4:]


@pytest.mark.parametrize("index", [-4, 0, 1])
def test_one_step_that_was_left_too_long_ago(writer, index):
    for i in range(5):
        writer.append({"x": i})
    with pytest.raises(ValueError, match="cannot contain any None data"):
        writer.history["x"][index]


def test_a_step_that_is_still_to_come(writer):
    writer.append({"x": 1})
    with pytest.raises(IndexError):
        writer.history["x"][2]


@pytest.mark.parametrize("index", ["a", 1.5, (1, 2), None])
def test_indices_of_histories(writer, index):
    writer.append({"x": 1})
    with pytest.raises(TypeError):
        writer.history["x"][index]


def test_a_cell_that_expired_since(serve):
    with serve().trajectory_writer(2) as writer:
        writer.append({"x": 1})
        column = writer.history["x"][-1:]
        writer.append({"x": 2})
        writer.append({"x": 3})
        with pytest.raises(ValueError, match="(?i)expired"):
            writer.create_item("t", 1.0, {"x": column})


@pytest.mark.parametrize("refs", [0, -1])
def test_configure_wants_a_history(writer, refs):
    with pytest.raises(ValueError, match=rf"num_keep_alive_refs \({refs}\) must be a positive"):
        writer.configure(("x",), num_keep_alive_refs=refs, max_chunk_length=1)


@pytest.mark.parametrize("length", [0, -1, 6])
def test_configure_wants_a_chunk_length_that_fits(writer, length):
    with pytest.raises(ValueError, match=rf"max_chunk_length \({length}\) must be None or"):
        writer.configure(("x",), num_keep_alive_refs=5, max_chunk_length=length)


def test_configure_a_column_with_an_open_chunk(writer):
    writer.configure(("x",), num_keep_alive_refs=3, max_chunk_length=3)
    writer.append({"x": 1})
    with pytest.raises((RuntimeError, ValueError)):
        writer.configure(("x",), num_keep_alive_refs=2, max_chunk_length=1)


@pytest.mark.reverb_differs("the history is as long as the writer was told before")
def test_configure_gives_a_column_a_longer_history(serve):
    client = serve()
    with client.trajectory_writer(1) as writer:
        writer.configure(("x",), num_keep_alive_refs=6, max_chunk_length=2)
        for i in range(6):
            writer.append({"x": np.int64(i)})
        writer.create_item("t", 1.0, {"x": writer.history["x"][:]})
    assert_same(sample(client).data[0], np.arange(6))


def test_configure_without_a_chunk_length(serve):
    client = serve()
    with client.trajectory_writer(4) as writer:
        writer.configure(("x",), num_keep_alive_refs=4, max_chunk_length=None)
        for i in range(4):
            writer.append({"x": np.int64(i)})
        writer.create_item("t", 1.0, {"x": writer.history["x"][-4:]})
    assert_same(sample(client).data[0], np.arange(4))


def test_a_key_that_comes_later(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        writer.append({"a": np.int64(1), "c": np.int64(101)})
        writer.append({"a": np.int64(2), "b": np.int64(12), "c": np.int64(102)})
        assert set(writer.history) == {"a", "b", "c"}
        writer.create_item("t", 1.0, {"a": writer.history["a"][:], "b": writer.history["b"][-1:],
                                      "c": writer.history["c"][:]})
    data = sample(client).data
    assert_same(data[0], np.array([1, 2]))
    assert_same(data[1], np.array([12]))
    assert_same(data[2], np.array([101, 102]))


def test_steps_before_a_key_are_none(writer):
    writer.append({"a": 1})
    writer.append({"a": 2, "b": 3})
    assert len(writer.history["b"]) == 2
    with pytest.raises(ValueError, match="cannot contain any None"):
        writer.history["b"][:]


def test_a_key_that_is_left_out(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        writer.append({"a": np.int64(1), "b": np.int64(11)})
        writer.append({"a": np.int64(2)})
        writer.append({"a": np.int64(3), "b": np.int64(13)})
        with pytest.raises(ValueError, match="cannot contain any None"):
            writer.history["b"][:]
        writer.create_item("t", 1.0, {"a": writer.history["a"][:],
                                      "b": writer.history["b"][[0, 2]]})
    assert_same(sample(client).data[1], np.array([11, 13]))


def test_none_is_left_out(writer):
    writer.append({"a": 1, "b": None})
    writer.append({"a": None, "b": 2})
    with pytest.raises(ValueError, match="cannot contain any None"):
        writer.history["a"][-1]
    assert writer.history["b"][-1].numpy() == 2


def test_a_nested_structure_grows(writer):
    writer.append({"a": {"x": 1}})
    writer.append({"a": {"x": 2, "y": 3}, "b": [4, 5]})
    history = writer.history
    assert set(history) == {"a", "b"} and set(history["a"]) == {"x", "y"}
    assert history["b"][1][-1].numpy() == 5
    assert history["a"]["x"][-2:].numpy().tolist() == [1, 2]


def test_a_list_grows(writer):
    writer.append([1])
    writer.append([2, 3])
    assert len(writer.history) == 2
    assert writer.history[1][-1].numpy() == 3


@pytest.mark.parametrize("step", [{"a": 1, "b": 2}, [1, 2], (1, 2), Point(1, 2),
                                  {"a": [1, (2, {"c": 3})]}, 1])
def test_history_has_the_structure_of_a_step(writer, step):
    writer.append(step)
    history = writer.history
    if isinstance(step, dict):
        assert list(history) == list(step)
    elif isinstance(step, (list, tuple)):
        assert type(history) is type(step) and len(history) == len(step)
    else:
        assert history[-1].numpy() == 1


def test_a_step_in_parts(serve):
    client = serve()
    with client.trajectory_writer(2) as writer:
        for i in range(2):
            writer.append({"a": np.int64(i)}, partial_step=True)
            writer.append({"b": np.int64(10 + i)})
        writer.create_item("t", 1.0, {"a": writer.history["a"][:], "b": writer.history["b"][:]})
    data = sample(client).data
    assert_same(data[0], np.array([0, 1]))
    assert_same(data[1], np.array([10, 11]))


def test_an_item_of_an_open_step(serve):
    client = serve()
    with client.trajectory_writer(2) as writer:
        writer.append({"a": np.int64(1), "b": None}, partial_step=True)
        writer.create_item("t", 1.0, {"a": writer.history["a"][-1:]})
        writer.flush()
        assert_same(sample(client).data[0], np.array([1]))
        writer.append({"b": np.int64(2)})


def test_a_field_twice_in_one_step(writer):
    writer.append({"a": 1, "b": None}, partial_step=True)
    with pytest.raises(ValueError, match="has already been set in the active step"):
        writer.append({"a": 2, "b": 3})


def test_a_field_in_the_next_step(writer):
    writer.append({"a": 1}, partial_step=True)
    writer.append({"b": 2})
    writer.append({"a": 3, "b": 4})
    assert writer.history["a"][:].numpy().tolist() == [1, 3]
    assert writer.history["b"][:].numpy().tolist() == [2, 4]


def test_parts_are_one_step(writer):
    for i in range(2):
        writer.append({"a": i}, partial_step=True)
        assert writer.episode_steps == i
        writer.append({"b": i}, partial_step=True)
        writer.append({"c": i})
        assert writer.episode_steps == i + 1
    assert len(writer.history["c"]) == 2


def test_an_empty_partial_step_ends_the_step(writer):
    writer.append({"a": 1, "b": 2}, partial_step=True)
    writer.append({})
    writer.append({"a": 3, "b": 4})
    assert writer.history["a"][:].numpy().tolist() == [1, 3]


def test_episode_steps(writer):
    assert writer.episode_steps == 0
    for i in range(1, 4):
        writer.append({"a": i})
        assert writer.episode_steps == i
    writer.end_episode()
    assert writer.episode_steps == 0
    writer.append({"a": 1})
    assert writer.episode_steps == 1


def test_end_episode_clears_the_history(writer):
    writer.append({"a": 1})
    writer.end_episode()
    assert len(writer.history["a"]) == 0


def test_end_episode_may_keep_the_history(serve):
    client = serve()
    with client.trajectory_writer(4) as writer:
        writer.append({"a": np.int64(1)})
        writer.end_episode(clear_buffers=False)
        assert writer.episode_steps == 0
        writer.append({"a": np.int64(2)})
        writer.create_item("t", 1.0, {"a": writer.history["a"][-2:]})
    assert_same(sample(client).data[0], np.array([1, 2]))


def test_end_episode_sends_pending_items(serve):
    client = serve()
    writer = client.trajectory_writer(4)
    writer.append({"a": 1})
    writer.create_item("t", 1.0, {"a": writer.history["a"][:]})
    writer.end_episode()
    assert size(client) == 1


def test_episodes_are_counted(serve):
    client = serve(table(max_size=100))
    with client.trajectory_writer(2) as writer:
        for _ in range(3):
            for i in range(2):
                writer.append({"a": i})
                writer.create_item("t", 1.0, {"a": writer.history["a"][-1:]})
            writer.end_episode()
    info = client.server_info()["t"]
    assert (info.current_size, info.num_episodes) == (6, 3)


def test_columns_may_change_after_an_episode(writer):
    """Not the dtype, but the options may change."""
    writer.append({"a": 1})
    writer.end_episode()
    writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=2)
    writer.append({"a": 2})


def item(writer, value=1.0):
    writer.append({"a": value})
    writer.create_item("t", 1.0, {"a": writer.history["a"][-1:]})


def test_flush_waits_for_the_server(serve):
    client = serve()
    with client.trajectory_writer(1) as writer:
        for i in range(10):
            item(writer)
            writer.flush()
            assert size(client) == i + 1


def test_flush_of_nothing(writer):
    writer.flush()
    writer.append({"a": 1})
    writer.flush()


@pytest.mark.parametrize("count", [-1, -100])
def test_flush_wants_no_negative_number(writer, count):
    with pytest.raises(ValueError, match=f"block_until_num_items must be >= 0, got {count}"):
        writer.flush(count)


@pytest.mark.parametrize("call", [lambda w: w.flush(0, 50), lambda w: w.flush(timeout_ms=50),
                                  lambda w: w.end_episode(timeout_ms=50)])
def test_timeouts(serve, call):
    writer = serve(queue("t", 1)).trajectory_writer(1)
    item(writer)
    item(writer)
    with pytest.raises(reverb.DeadlineExceededError, match="provided timeout of 0:00:00.05"):
        call(writer)
    writer.close()


def test_items_arrive_after_a_timeout(serve):
    client = serve(queue("t", 1))
    writer = client.trajectory_writer(1)
    item(writer, 1.0)
    item(writer, 2.0)
    with pytest.raises(reverb.DeadlineExceededError):
        writer.flush(timeout_ms=20)
    assert sample(client).data[0][0] == 1.0
    writer.flush(timeout_ms=5000)
    assert sample(client).data[0][0] == 2.0


def test_flush_may_leave_some_items_pending(serve):
    client = serve(queue("t", 2))
    writer = client.trajectory_writer(1)
    for i in range(4):
        item(writer, float(i))
    writer.flush(block_until_num_items=2, timeout_ms=5000)
    with pytest.raises(reverb.DeadlineExceededError):
        writer.flush(block_until_num_items=1, timeout_ms=20)
    writer.close()


@pytest.mark.parametrize("timeout", [0, -1, None])
def test_no_timeout(serve, timeout):
    client = serve()
    with client.trajectory_writer(1) as writer:
        item(writer)
        writer.flush(timeout_ms=timeout)
        assert size(client) == 1


def test_the_end_of_the_context_flushes(serve):
    client = serve()
    with client.trajectory_writer(8) as writer:
        for _ in range(5):
            item(writer)
    assert size(client) == 5


def test_an_exception_in_the_context_keeps_flushed_items(serve):
    """Reverb flushes the other items and waits for them; reprise drops them and logs this."""
    client = serve()
    with pytest.raises(KeyError):
        with client.trajectory_writer(8) as writer:
            item(writer)
            writer.flush()
            raise KeyError("elsewhere")
    assert size(client) == 1


def test_a_reverb_error_in_the_context_does_not_wait(serve):
    client = serve(queue("t", 1))
    with pytest.raises(reverb.ReverbError, match="enough"):
        with client.trajectory_writer(1) as writer:
            item(writer)
            item(writer)
            raise reverb.ReverbError("enough")
    writer.close()


def test_close_twice(writer):
    writer.close()
    writer.close()


def test_two_writers(serve):
    client = serve()
    one, two = client.trajectory_writer(2), client.trajectory_writer(2)
    for i in range(10):
        item(one, float(i))
        item(two, float(i))
    one.flush()
    two.flush()
    assert size(client) == 20


def test_many_items(serve):
    client = serve(table(max_size=10000))
    with client.trajectory_writer(1) as writer:
        for i in range(3000):
            item(writer, float(i))
    assert size(client) == 3000


def test_large_steps(serve):
    client = serve()
    frames = np.random.default_rng(1).integers(0, 255, (4, 512, 1024), np.uint8)
    write(client, lambda h: {"x": h["x"][-4:]}, [{"x": frame} for frame in frames])
    assert_same(sample(client).data[0], frames)


def test_appended_values_are_copied(serve):
    client = serve()
    row = np.arange(4.0)
    with client.trajectory_writer(2) as writer:
        writer.append({"a": row})
        row[:] = 100.0
        writer.append({"a": row})
        row[:] = 200.0
        writer.create_item("t", 1.0, {"a": writer.history["a"][:]})
    assert_same(sample(client).data[0], np.stack([np.arange(4.0), np.full(4, 100.0)]))
