# SPDX-License-Identifier: Apache-2.0
"""StructuredWriter: items that patterns make of steps."""

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, sample, samples, size
from reverb_suite.implementation import queue, reverb, table

structured = reverb.structured
Condition = structured.Condition
STEP = {"a": None, "b": {"c": None, "d": None}}


def config(transform, *, name="t", conditions=(), priority=None, step=STEP):
    pattern = structured.pattern_from_transform(step, transform)
    return structured.create_config(pattern, name, conditions, priority)


def step(i):
    return {"a": np.int64(i), "b": {"c": np.float32(i), "d": np.full(2, i, np.int32)}}


def run(client, configs, steps=5, end=True):
    writer = client.structured_writer(configs)
    for i in range(steps):
        writer.append(step(i))
    if end:
        writer.end_episode()
    else:
        writer.flush()
    return writer


def columns(client, name="t"):
    """Returns the first column of every item, oldest first. The table must give each item once."""
    count = size(client, name)
    return [np.asarray(s.data[0]).tolist() for s in samples(client, name, count)] if count else []


@pytest.fixture
def once(serve):
    """A client of a table that gives every item once, in order."""
    return serve(table(max_times_sampled=1))


PATTERNS = {
    "newest": (lambda s: [s["a"][-1]], [0, 1, 2, 3, 4]),
    "one before": (lambda s: [s["a"][-2]], [0, 1, 2, 3]),
    "newest as a row": (lambda s: [s["a"][-1:]], [[0], [1], [2], [3], [4]]),
    "last two": (lambda s: [s["a"][-2:]], [[0, 1], [1, 2], [2, 3], [3, 4]]),
    "last four": (lambda s: [s["a"][-4:]], [[0, 1, 2, 3], [1, 2, 3, 4]]),
    "too many": (lambda s: [s["a"][-6:]], []),
    "not the newest": (lambda s: [s["a"][-3:-1]], [[0, 1], [1, 2], [2, 3]]),
    "every other": (lambda s: [s["a"][-3::2]], [[0, 2], [1, 3], [2, 4]]),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(once, name):
    transform, expected = PATTERNS[name]
    run(once, [config(transform)])
    assert columns(once) == expected


@pytest.mark.reverb_differs("rows of one chunk are merged without a look at the gaps, if in time "
                            "they come to lie in one", strict=False)
def test_strides_stay_right_when_chunks_grow(once):
    run(once, [config(lambda s: [s["a"][-5::2]])], steps=100)
    assert columns(once) == [[i, i + 2, i + 4] for i in range(96)]


def test_runs_stay_right_when_chunks_grow(once):
    run(once, [config(lambda s: [s["a"][-5:]])], steps=100)
    assert columns(once) == [list(range(i, i + 5)) for i in range(96)]


def test_several_columns(once):
    run(once, [config(lambda s: {"x": s["b"]["d"][-2:], "y": s["a"][-1], "z": s["b"]["c"][-3:-1]})],
        steps=3)
    (one,) = samples(once)
    assert_same(one.data[0], np.array([[1, 1], [2, 2]], np.int32))
    assert_same(one.data[1], np.int64(2))
    assert_same(one.data[2], np.array([0, 1], np.float32))


def test_one_column_twice(once):
    run(once, [config(lambda s: {"now": s["a"][-2:-1], "then": s["a"][-1:]})], steps=3)
    one, two = samples(once, count=2)
    assert [column.tolist() for column in one.data] == [[0], [1]]
    assert [column.tolist() for column in two.data] == [[1], [2]]


def test_several_configs(serve):
    client = serve(table("a"), table("b"))
    run(client, [config(lambda s: [s["a"][-1]], name="a"),
                 config(lambda s: [s["a"][-2:]], name="b"),
                 config(lambda s: [s["b"]["c"][-3:]], name="b")])
    assert (size(client, "a"), size(client, "b")) == (5, 4 + 3)


def test_items_have_priority_one(once):
    run(once, [config(lambda s: [s["a"][-1]])], steps=1)
    assert sample(once).info.priority == 1.0


@pytest.mark.parametrize("priority", [0.0, 0.5, 12.0])
def test_constant_priority(once, priority):
    fn = structured.constant_priority_fn(priority)
    run(once, [config(lambda s: [s["a"][-1]], priority=fn)], steps=1)
    assert sample(once).info.priority == priority


@pytest.mark.parametrize("weight, expected", [(0.0, 2.0), (1.0, 3.0), (0.5, 2.5)])
def test_td_error(once, weight, expected):
    fn = structured.td_error(weight, STEP, lambda s: s["b"]["c"])
    pattern = config(lambda s: {"x": s["b"]["c"][-3:]}, priority=fn)
    writer = once.structured_writer([pattern])
    for value in (1.0, -3.0, 2.0):
        writer.append({"a": 1, "b": {"c": np.float32(value), "d": 1}})
    writer.flush()
    assert sample(once).info.priority == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_td_error_of_dtypes(once, dtype):
    fn = structured.td_error(1.0, STEP, lambda s: s["a"])
    writer = once.structured_writer([config(lambda s: {"x": s["a"][-2:]}, priority=fn)])
    for value in (-4, 2):
        writer.append({"a": dtype(value), "b": {"c": 1, "d": 1}})
    writer.flush()
    assert sample(once).info.priority == 4.0


CONDITIONS = {
    "step == 2": ([Condition.step_index() == 2], [2]),
    "step != 2": ([Condition.step_index() != 2], [0, 1, 3, 4, 5]),
    "step >= 3": ([Condition.step_index() >= 3], [3, 4, 5]),
    "step > 3": ([Condition.step_index() > 3], [4, 5]),
    "step < 2": ([Condition.step_index() < 2], [0, 1]),
    "step <= 2": ([Condition.step_index() <= 2], [0, 1, 2]),
    "step % 2 == 0": ([Condition.step_index() % 2 == 0], [0, 2, 4]),
    "step % 2 == 1": ([Condition.step_index() % 2 == 1], [1, 3, 5]),
    "step % 3 != 0": ([Condition.step_index() % 3 != 0], [1, 2, 4, 5]),
    "since >= 2": ([Condition.steps_since_applied() >= 2], [1, 3, 5]),
    "since >= 3": ([Condition.steps_since_applied() >= 3], [2, 5]),
    "two": ([Condition.step_index() >= 1, Condition.step_index() <= 3], [1, 2, 3]),
    "two kinds": ([Condition.step_index() >= 2, Condition.steps_since_applied() >= 2], [2, 4]),
    "end": ([Condition.is_end_episode()], [5]),
    "data == 3": ([Condition.data(STEP)["a"] == 3], [3]),
    "data >= 4": ([Condition.data(STEP)["a"] >= 4], [4, 5]),
    "data % 2 == 1": ([Condition.data(STEP)["a"] % 2 == 1], [1, 3, 5]),
    "never": ([Condition.step_index() == 100], []),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions(once, name):
    conditions, expected = CONDITIONS[name]
    run(once, [config(lambda s: [s["a"][-1]], conditions=conditions)], steps=6)
    assert columns(once) == expected


def test_conditions_start_again_with_an_episode(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-1]],
                                            conditions=[Condition.step_index() == 1])])
    for episode in range(3):
        for i in range(3):
            writer.append(step(10 * episode + i))
        writer.end_episode()
    assert columns(once) == [1, 11, 21]


def test_data_that_is_no_integer_is_false(once):
    run(once, [config(lambda s: [s["a"][-1]], conditions=[Condition.data(STEP)["b"]["c"] == 1])])
    assert columns(once) == []


def test_data_may_be_a_bool(once):
    writer = once.structured_writer([config(
        lambda s: [s["a"][-1]], conditions=[Condition.data(STEP)["b"]["c"] == 1])])
    for i in range(4):
        writer.append({"a": i, "b": {"c": np.bool_(i % 2), "d": 0}})
    writer.flush()
    assert columns(once) == [1, 3]


def test_patterns_do_not_cross_episodes(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-2:]])])
    for episode in range(2):
        for i in range(3):
            writer.append(step(10 * episode + i))
        writer.end_episode()
    assert columns(once) == [[0, 1], [1, 2], [10, 11], [11, 12]]


def test_patterns_may_cross_episodes(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-2:]])])
    for episode in range(2):
        for i in range(2):
            writer.append(step(10 * episode + i))
        writer.end_episode(clear_buffers=False)
    assert columns(once) == [[0, 1], [1, 10], [10, 11]]


def test_the_end_of_an_episode_applies_once_more(once):
    configs = [config(lambda s: [s["a"][-1]], conditions=[Condition.is_end_episode()]),
               config(lambda s: [s["a"][-2:]])]
    run(once, configs, steps=3)
    assert columns(once) == [[0, 1], [1, 2], 2]


def test_step_is_open(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-1]])])
    assert not writer.step_is_open
    writer.append({"a": 1, "b": {"c": None, "d": None}}, partial_step=True)
    assert writer.step_is_open
    writer.append({"a": None, "b": {"c": 1, "d": 1}})
    assert not writer.step_is_open


def test_a_pattern_that_can_be_filled_early(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-1]])])
    writer.append({"a": 1, "b": {"c": None, "d": None}}, partial_step=True)
    writer.flush()
    assert size(once) == 1
    writer.append({"a": None, "b": {"c": 2, "d": 2}})
    writer.flush()
    assert columns(once) == [1]


def test_a_pattern_that_has_to_wait(once):
    writer = once.structured_writer([config(lambda s: [s["b"]["c"][-1]])])
    writer.append({"a": 1, "b": {"c": None, "d": None}}, partial_step=True)
    writer.flush()
    assert size(once) == 0
    writer.append({"a": None, "b": {"c": 2, "d": 2}})
    writer.flush()
    assert columns(once) == [2]


def test_a_pattern_with_a_hole_is_left_out(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-2:]])])
    for value in (1, None, 3, 4):
        writer.append({"a": value, "b": {"c": 0, "d": 0}})
    writer.flush()
    assert columns(once) == [[3, 4]]


def test_steps_of_another_number_of_leaves(once):
    writer = once.structured_writer([config(lambda s: [s["a"][-1]])])
    writer.append(step(0))
    with pytest.raises(ValueError, match="unexpected length, got 2 but wanted 3"):
        writer.append({"a": 1, "b": 2})


def test_a_dtype_that_changes(once):
    writer = once.structured_writer([config(lambda s: [s["b"]["c"][-1]])])
    writer.append(step(0))
    with pytest.raises(ValueError, match=r"path=\('b', 'c'\)"):
        writer.append({"a": 1, "b": {"c": np.int64(2), "d": 3}})


def test_a_shape_that_changes(once):
    writer = once.structured_writer([config(lambda s: [s["b"]["d"][-1]])])
    writer.append(step(0))
    with pytest.raises(ValueError, match=r"incompatible shape.*\[3\].*\[2\]"):
        writer.append({"a": 1, "b": {"c": np.float32(2), "d": np.zeros(3, np.int32)}})


@pytest.mark.parametrize("count", [-1, -5])
def test_flush_wants_no_negative_number(once, count):
    writer = once.structured_writer([config(lambda s: [s["a"][-1]])])
    with pytest.raises(ValueError, match=f"block_until_num_items must be >= 0, got {count}"):
        writer.flush(count)


@pytest.mark.parametrize("call", [lambda w: w.flush(timeout_ms=50),
                                  lambda w: w.end_episode(timeout_ms=50)])
def test_timeouts(serve, call):
    client = serve(queue("t", 1))
    writer = client.structured_writer([config(lambda s: [s["a"][-1]])])
    for i in range(3):
        writer.append(step(i))
    with pytest.raises(reverb.DeadlineExceededError, match="provided timeout of 0:00:00.05"):
        call(writer)
    samples(client, count=2)  # dm-reverb's writer cannot be freed while an item waits
    writer.flush(timeout_ms=5000)


@pytest.mark.parametrize("pattern", [
    lambda s: [s["a"][1:]], lambda s: [s["a"][0]], lambda s: [s["a"][-2:1]],
    lambda s: [s["a"][-2:-3]], lambda s: [s["a"][-3::-1]],
], ids=["start > 0", "index 0", "stop > 0", "stop < start", "step < 0"])
def test_invalid_patterns_are_refused(once, pattern):
    with pytest.raises(ValueError, match="Invalid configuration at position 0"):
        once.structured_writer([config(pattern)])


def test_the_position_of_a_wrong_config(once):
    good, bad = config(lambda s: [s["a"][-1]]), config(lambda s: [s["a"][1:]])
    with pytest.raises(ValueError, match="Invalid configuration at position 1"):
        once.structured_writer([good, bad])


def test_a_negative_modulus_is_refused(once):
    with pytest.raises(ValueError, match="Invalid configuration at position 0"):
        once.structured_writer([config(lambda s: [s["a"][-1]],
                                       conditions=[Condition.step_index() % -1 == 0])])
