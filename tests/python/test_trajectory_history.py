# SPDX-License-Identifier: Apache-2.0
"""The history of a trajectory writer: its structure, and how it is indexed."""

import collections

import numpy as np
import pytest

from trajectory_place import fill, local, Pair, writer  # noqa: F401: fixtures

from reprise import tree


@pytest.mark.parametrize("step", [
    5, [1, 2], (1, 2), {"a": 1}, {"b": 1, "a": {"d": [1], "c": (2, 3)}}, Pair(1, {"k": 2}),
    [Pair(1, 2), Pair(3, 4)], collections.OrderedDict(z=1, y=2), {"e": (), "a": 1},
    {1: 2, 3: 4}, {("a", 1): 2}, [[[[1]]]]], ids=repr)
def test_the_history_is_structured_like_the_step(writer, step):
    writer.append(step)
    history = writer.history

    tree.assert_same_structure(history, step)
    values = tree.map_structure(lambda column: column[-1].numpy().item(), history)
    assert values == step
    assert isinstance(history, type(step)) or not tree.is_nested(step)
    assert writer.history is not None


def test_history_before_the_first_append(writer):
    with pytest.raises(RuntimeError, match="history cannot be accessed before `append`"):
        writer.history  # noqa: B018
    writer.append({})
    with pytest.raises(RuntimeError, match="history cannot be accessed before `append`"):
        writer.history  # noqa: B018
    assert writer.episode_steps == 1


GROWTH = [
    ([{"a": 1}, {"a": 1, "b": 2}], {"a": 0, "b": 0}),
    ([{"b": 1}, {"a": 1, "b": 2}, {"c": 3}], {"a": 0, "b": 0, "c": 0}),
    ([{"a": {"x": 1}}, {"a": {"y": 2}}], {"a": {"x": 0, "y": 0}}),
    ([{"a": 1}, {"b": {"x": [1, 2]}}], {"a": 0, "b": {"x": [0, 0]}}),
    ([[1], [1, 2]], [0, 0]),
    ([(1,), (None, 2)], (0, 0)),
    ([[1, 2, 3], [4]], [0, 0, 0]),
    ([{"a": [1]}, {"a": [1, {"z": 2}]}], {"a": [0, {"z": 0}]}),
    ([Pair(1, None), Pair(None, 2)], Pair(0, 0)),
    ([Pair({"k": 1}, 1), Pair({"j": 1}, None)], Pair({"k": 0, "j": 0}, 0)),
    ([{"a": 1}, {}], {"a": 0}),
    ([{"a": {"x": 1}}, {"a": None}], {"a": {"x": 0}}),
    ([(1, 2), [3, 4, 5]], (0, 0, 0)),
]


@pytest.mark.parametrize("steps,expected", GROWTH, ids=repr)
def test_the_structure_grows(writer, steps, expected):
    for step in steps:
        writer.append(step)
    history = writer.history

    tree.assert_same_structure(history, expected)
    assert {len(column) for column in tree.flatten(history)} == {len(steps)}
    paths = dict(tree.flatten_with_path(history))
    for i, step in enumerate(steps):
        for path, value in tree.flatten_with_path(step):
            if value is not None:
                assert paths[path][i].numpy() == value
    for path, column in paths.items():
        assert column.path() == path


def test_steps_before_a_column_began_have_no_value(writer):
    writer.append({"a": 1})
    writer.append({"a": 2})
    writer.append({"a": 3, "b": 30})

    history = writer.history
    assert [cell is None for cell in history["b"]] == [True, True, False]
    assert history["b"][-1:].numpy().tolist() == [30]
    assert history["b"][2].numpy() == 30
    for index in (0, slice(None), slice(1, None), [0], [2, 1]):
        with pytest.raises(ValueError, match="cannot contain any None data references"):
            history["b"][index]


@pytest.mark.parametrize("step", [{"a": 1, "c": 2}, [{"a": 1, "c": 2}], {"x": {"a": 1, "c": 2}}], ids=repr)
def test_the_dicts_of_a_history_are_plain(writer, step):
    """jax, optree and torch take a dict of another type for a leaf, or for another structure."""
    writer.append(step)
    assert type(writer.history) is type(step)
    nest = writer.history
    if "a" not in nest:
        nest = nest[0] if isinstance(step, list) else nest["x"]
    with pytest.raises(KeyError, match="b"):
        nest["b"]
    assert type(nest) is dict and nest.get("b") is None and "b" not in nest
    assert tree.map_structure(lambda x: x[-1].numpy().tolist(), nest) == {"a": 1, "c": 2}
    assert nest == {"a": nest["a"], "c": nest["c"]}


def test_steps_without_any_column_are_in_no_history(writer):
    writer.append({})
    writer.append({"a": 1})

    assert writer.episode_steps == 2 and len(writer.history["a"]) == 1
    assert writer.history["a"][0].numpy() == 1


def test_dicts_in_any_order_are_the_same_step(writer):
    writer.append({"a": 1, "b": 2})
    writer.append({"b": 4, "a": 3})
    writer.append(collections.OrderedDict([("b", 6), ("a", 5)]))
    writer.append(Pair(None, None)._asdict() | {"a": 7, "b": 8})

    assert writer.history["a"][:].numpy().tolist() == [1, 3, 5, 7]
    assert writer.history["b"][:].numpy().tolist() == [2, 4, 6, 8]


def test_a_leaf_cannot_become_a_structure_nor_a_structure_a_leaf(writer):
    writer.append({"a": 1, "b": {"x": 1}})

    with pytest.raises(ValueError, match=r"\('a',\)"):
        writer.append({"a": {"x": 1}})
    with pytest.raises(ValueError, match="b"):
        writer.append({"b": 5})
    with pytest.raises(ValueError):
        writer.append([1, 2])
    writer.append({"b": None})
    with pytest.raises(ValueError, match="'b' was a structure"):
        writer.append({"b": 5})
    writer.append({"a": 2, "b": {"x": 2}})

    assert writer.episode_steps == 3
    assert writer.history["a"][[0, 2]].numpy().tolist() == [1, 2]


def test_many_structures_take_turns(writer):
    for i in range(100):
        writer.append({f"k{i % 20}": i, "a": i})

    assert writer.history["k19"][-1].numpy() == 99
    assert len(tree.flatten(writer.history)) == 21


def test_the_callers_own_the_history_they_get(writer):
    writer.append({"a": 1, "b": {"c": 2, "d": [3, 4]}})
    history = writer.history
    inner = history["b"]

    history["a"] = "changed"
    del inner["c"]
    inner["d"].append(5)
    del history, inner
    again = writer.history

    tree.assert_same_structure(again, {"a": 0, "b": {"c": 0, "d": [0, 0]}})
    assert again["a"][0].numpy() == 1
    again["x"] = again.pop("b")
    del again
    assert list(writer.history) == ["a", "b"]
    kept = writer.history
    assert kept is not writer.history
    assert kept["a"] is writer.history["a"]


def test_positions_count_from_the_episodes_start(local):
    writer = local.writer(refs=3)
    fill(writer, 9)
    a = writer.history["a"]

    assert len(a) == 9
    assert a[8].numpy() == 8 and a[6].numpy() == 6 and a[-3].numpy() == 6
    assert a[6:9].numpy().tolist() == [6, 7, 8]
    assert a[7:].numpy().tolist() == [7, 8]
    assert a[[6, -1]].numpy().tolist() == [6, 8]
    assert [cell is None for cell in a] == [True] * 6 + [False] * 3


@pytest.mark.parametrize("index", [0, 5, -4, -9, -100, slice(None), slice(0, 3), slice(5, 9),
                                   slice(None, 3), slice(-4, None), slice(-100, None),
                                   slice(None, None, -1), [0], [8, 5], [-4]], ids=str)
def test_cells_that_are_lost_are_refused(local, index):
    writer = local.writer(refs=3)
    fill(writer, 9)

    with pytest.raises(ValueError, match=r"cannot contain any None data references: "
                                         r"TrajectoryColumn at path \('a', .*None"):
        writer.history["a"][index]


@pytest.mark.parametrize("index", [9, 10, 1000, [9], [0, 9]], ids=str)
def test_future_steps_are_out_of_range(writer, index):
    fill(writer, 9)

    with pytest.raises(IndexError, match="list index out of range"):
        writer.history["a"][index]


@pytest.mark.parametrize("index", ["x", 1.0, None, (0, 1), np.array([0]), {0}, b"x"], ids=repr)
def test_other_indices_are_refused(writer, index):
    fill(writer, 2)

    text = f"indices must be integers or slices, not <class '.*{type(index).__name__}'>"
    with pytest.raises(TypeError, match=f"_ColumnHistory {text}"):
        writer.history["a"][index]
    with pytest.raises(TypeError, match=f"TrajectoryColumn {text}"):
        writer.history["a"][:][index]


@pytest.mark.parametrize("picked", [slice(2, 2), slice(5, 9), slice(-1, -1), slice(None, -100),
                                    slice(1, 0), [], slice(0, 0)], ids=str)
def test_empty_columns(writer, picked):
    fill(writer, 2)
    column = writer.history["a"][picked]

    assert len(column) == 0 and list(column) == []
    with pytest.raises(ValueError, match="need at least one array to stack"):
        column.numpy()
    with pytest.raises(IndexError):
        column.shape  # noqa: B018
    with pytest.raises(IndexError):
        column.dtype  # noqa: B018
    with pytest.raises(ValueError, match="trajectory must not be empty."):
        writer.create_item("t", 1.0, {"a": column})
    with pytest.raises(ValueError, match="trajectory must not be empty."):
        writer.create_item("t", 1.0, {"a": column, "b": writer.history["b"][:]})


def test_more_steps_than_there_are_is_an_error_and_not_fewer(writer):
    fill(writer, 3)

    assert writer.history["a"][-3:].numpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="None data references"):
        writer.history["a"][-4:]
    assert writer.history["a"][-1:-10:-1].numpy().tolist() == [2, 1, 0]


@pytest.mark.parametrize("start", [-2**70, -2**63, -2**63 + 1, -2**62])
@pytest.mark.parametrize("steps", [0, 3, 200])
def test_a_start_long_before_the_first_step(writer, start, steps):
    fill(writer, 1)
    writer.end_episode()
    fill(writer, steps)
    for step in None, 2, 2**62:
        with pytest.raises(ValueError, match=f"before the first: the history has {steps} "):
            writer.history["a"][start::step]


def test_bad_slices(writer):
    fill(writer, 3)
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        writer.history["a"][::0]
    with pytest.raises(TypeError):
        writer.history["a"][1.0:]


def test_numpy_integers_are_integers(writer):
    fill(writer, 3)
    assert writer.history["a"][np.int64(1)].numpy() == 1
    assert writer.history["a"][[np.int32(0), np.uint8(2)]].numpy().tolist() == [0, 2]


def test_a_history_has_text_and_path(writer):
    fill(writer, 2)
    history = writer.history["a"]

    assert "('a',)" in str(history) and history.path() == ("a",)
    assert not history.can_set_last
    writer.append({"b": np.zeros(3, np.int32)}, partial_step=True)
    assert history.can_set_last
