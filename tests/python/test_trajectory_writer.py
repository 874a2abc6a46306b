# SPDX-License-Identifier: Apache-2.0
"""The trajectory writer and its columns, against a store in this process and over sockets."""

import collections
import contextlib
import copy
import gc
import hashlib
import logging
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest

from reprise import _core, errors, specs, tree
from reprise.trajectory_writer import TrajectoryColumn, TrajectoryWriter

FOR_EVER = (1.0, 1, -1e300, 1e300)
Pair = collections.namedtuple("Pair", "x y")
WAIT_MS = 20_000


class Place:
    """A store with some tables, and a client of it over one transport."""

    def __init__(self, transport, directory):
        self.store = _core.Store()
        queue = dict(sampler=("fifo", 0.0), remover=("fifo", 0.0), max_times_sampled=1)
        self.store.add_table("t", limiter=FOR_EVER, max_size=100_000, **queue)
        self.store.add_table("small", limiter=(1.0, 1, 0.0, 2.0), max_size=2, **queue)
        self.store.add_table("signed", limiter=FOR_EVER, max_size=1000, signature={
            "a": specs.TensorSpec((2,), np.float32), "b": specs.TensorSpec((), np.int64)},
            **queue)
        self.server = None
        if transport == "local":
            self.client = _core.Client.local(self.store)
            return
        address = "127.0.0.1:0" if transport == "tcp" else f"unix:{directory}/socket"
        self.server = _core.Server(self.store, address)
        if transport == "tcp":
            address = f"127.0.0.1:{self.server.port}"
        self.client = _core.Client(address)

    def writer(self, refs=10, **options):
        return TrajectoryWriter(self.client, refs, **options)

    def read(self, count=1, table="t"):
        """The columns of the next items."""
        sampler = _core.Sampler(self.client, table, max_samples=count)
        found = []
        while len(found) < count:
            got = sampler.next(count - len(found), timeout_ms=WAIT_MS)
            assert got, "the samples ended early"
            found += got
        sampler.close()
        return [sample[-1] for sample in found]

    def size(self, table="t"):
        return self.store.table_info(table)["size"]


@pytest.fixture(params=["local", "tcp", "unix"])
def place(request, tmp_path):
    made = Place(request.param, tmp_path)
    yield made
    gc.collect()
    if made.server is not None:
        made.server.stop(0)


@pytest.fixture
def local(tmp_path):
    return Place("local", tmp_path)


@pytest.fixture
def writer(local):
    return local.writer()


def fill(writer, count, start=0):
    for i in range(start, start + count):
        writer.append({"a": np.float32(i), "b": np.full(3, i, np.int32)})


SLICES = [slice(None), slice(-1, None), slice(-3, None), slice(2, 5), slice(None, 4),
          slice(None, -2), slice(None, None, 2), slice(1, None, 3), slice(None, None, -1),
          slice(-1, -5, -1), slice(6, 1, -2), slice(5, None, -1), slice(None, 3, -1),
          slice(0, 8), slice(3, 100), slice(7, 8)]


@pytest.mark.parametrize("picked", SLICES, ids=str)
def test_a_slice_reads_back_as_it_was_asked_for(local, picked):
    writer = local.writer(refs=8)
    fill(writer, 8)

    writer.create_item("t", 1.0, {"a": writer.history["a"][picked],
                                  "b": writer.history["b"][picked]})
    writer.flush()

    a, b = local.read()[0]
    expected = np.arange(8, dtype=np.float32)[picked]
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(b, np.repeat(expected.astype(np.int32)[:, None], 3, axis=1))


ROWS = [[0], [-1], [0, 0, 0], [3, 1, 2], [-1, -2, -3], [7, 0, 7, 0], [4, 5, 6], [6, 5, 4],
        [0, 2, 4, 6], list(range(8)) * 3]


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("length", [1, 3, None])
def test_a_list_reads_back_as_it_was_asked_for(local, rows, length):
    writer = local.writer(refs=8)
    writer.configure(("a",), num_keep_alive_refs=8, max_chunk_length=length)
    fill(writer, 8)

    writer.create_item("t", 1.0, [writer.history["a"][rows]])
    writer.flush()

    np.testing.assert_array_equal(local.read()[0][0], np.arange(8, dtype=np.float32)[rows])


@pytest.mark.parametrize("step", [0, 3, 7, -1, -8])
def test_an_int_makes_a_squeezed_column(place, step):
    writer = place.writer(refs=8)
    fill(writer, 8)
    column = writer.history["b"][step]

    writer.create_item("t", 1.0, [column])
    writer.flush()

    assert column.is_squeezed and column.shape == (3,) and len(column) == 1
    np.testing.assert_array_equal(place.read()[0][0], np.full(3, step % 8, np.int32))


def test_strided_slices_stay_right_as_chunks_grow(place):
    writer = place.writer(refs=20)
    for i in range(200):
        writer.append({"a": i})
        if i >= 9:
            writer.create_item("t", 1.0, {"odd": writer.history["a"][-9::2],
                                          "back": writer.history["a"][-1:-6:-1],
                                          "twice": writer.history["a"][[-1, -1, -3]]})
    writer.flush()

    for i, (back, odd, twice) in zip(range(9, 200), place.read(191)):
        assert odd.tolist() == [i - 8, i - 6, i - 4, i - 2, i]
        assert back.tolist() == [i, i - 1, i - 2, i - 3, i - 4]
        assert twice.tolist() == [i, i, i - 2]


def test_columns_may_mix_rows_of_several_columns(place):
    writer = place.writer()
    writer.append({"x": 1, "y": 10})
    writer.append({"x": 2, "y": 20})
    mixed = TrajectoryColumn([*writer.history["x"][:], *writer.history["y"][::-1]])

    writer.create_item("t", 1.0, mixed)
    writer.flush()

    assert mixed.numpy().tolist() == [1, 2, 20, 10]
    assert place.read()[0][0].tolist() == [1, 2, 20, 10]


@pytest.mark.parametrize("value", [
    np.float32(1.5), np.float64(2.5), np.float16(0.5), np.int8(-3), np.int16(-3), np.int32(-3),
    np.int64(-3), np.uint8(3), np.uint16(3), np.uint32(3), np.uint64(3), np.bool_(True),
    np.complex64(1j), np.complex128(1j), 1, 2.5, True, 1j, "text", b"\x00\xff", "h\xe9",
    np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(10)[::-3], np.arange(3, dtype=">i4"), np.zeros((0, 3), np.float32),
    np.array(["a", "bcd"]), np.array([b"a", b"bcd"]), np.array(["x", b"yz"], object),
    np.zeros((1, 2, 1, 2, 1, 2, 1), np.uint8)], ids=repr)
def test_values_of_every_kind_come_back(local, value):
    writer = local.writer()
    for _ in range(3):
        writer.append([value])
    expected = _core.as_sampled(value)

    writer.create_item("t", 1.0, [writer.history[0][-2:], writer.history[0][-1]])
    shown = writer.history[0][-2:].numpy()
    writer.flush()

    two, one = local.read()[0]
    for got, wanted in ((two, np.stack([expected] * 2)), (shown, np.stack([expected] * 2)),
                        (one, expected), (writer.history[0][-1].numpy(), expected)):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    assert writer.history[0][-1].dtype == expected.dtype
    assert writer.history[0][-1].shape == expected.shape


def test_structured_scalars_are_values(writer):
    rows = np.array([(1,), (2,), (3,)], [("qint8", "i1")])
    for row in rows:
        writer.append({"q": row})
    assert writer.history["q"][:].numpy()["qint8"].tolist() == [1, 2, 3]


def test_scalars_of_the_same_dtype_go_together(writer):
    for value in (1, np.int64(2), np.array(3), np.array([4])[0], 5):
        writer.append(value)
    for value in (0.5,):
        with pytest.raises(ValueError, match="wrong dtype"):
            writer.append(value)

    assert writer.history[:].numpy().tolist() == [1, 2, 3, 4, 5]


def test_what_is_appended_is_copied(writer):
    array = np.zeros(4, np.float32)
    writer.append([array])
    array[:] = 9
    writer.append([array])
    array[:] = 5

    assert writer.history[0][:].numpy()[:, 0].tolist() == [0, 9]


@pytest.mark.parametrize("size", [100, 1 << 14, 1 << 18])
@pytest.mark.parametrize("codec", [None, "none", "snappy", "zstd", "lz4"])
def test_rows_of_every_size_and_codec(place, size, codec):
    writer = place.writer(refs=4)
    writer.configure((0,), num_keep_alive_refs=4, max_chunk_length=2, codec=codec, delta=True)
    rows = [np.arange(i, i + size, dtype=np.uint32) for i in range(4)]
    for row in rows:
        writer.append([row])

    writer.create_item("t", 1.0, [writer.history[0][:]])
    np.testing.assert_array_equal(writer.history[0][:].numpy(), rows)
    writer.flush()

    np.testing.assert_array_equal(writer.history[0][::-1].numpy(), rows[::-1])
    np.testing.assert_array_equal(place.read()[0][0], rows)


def test_create_item_returns_the_key_of_the_item(place):
    writer = place.writer()
    writer.append([1])
    key = writer.create_item("t", 2.5, [writer.history[0][:]])
    writer.flush()

    sampler = _core.Sampler(place.client, "t", max_samples=1)
    sample = sampler.next(1, timeout_ms=WAIT_MS)[0]

    assert sample[0] == key and 2.5 in sample
    sampler.close()


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
    assert type(history) is type(step) or not tree.is_nested(step)
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
def test_steps_that_are_to_come_are_out_of_range(writer, index):
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
        with pytest.raises(ValueError, match="got .None, None") as raised:
            writer.history["a"][start::step]
        assert len(str(raised.value)) < 10_000


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


def test_a_history_shows_itself(writer):
    fill(writer, 2)
    history = writer.history["a"]

    assert "('a',)" in str(history) and history.path() == ("a",)
    assert not history.can_set_last
    writer.append({"b": np.zeros(3, np.int32)}, partial_step=True)
    assert history.can_set_last


def test_a_column_is_a_sequence(writer):
    fill(writer, 5)
    column = writer.history["a"][1:5]

    assert len(column) == 4 and column.shape == (4,) and column.dtype == np.float32
    assert [cell.numpy().item() for cell in column] == [1, 2, 3, 4]
    assert column[0].is_squeezed and column[0].numpy() == 1 and column[0].shape == ()
    assert column[-1].numpy() == 4 and column[True].numpy() == 2
    assert column[::-1].numpy().tolist() == [4, 3, 2, 1]
    assert column[[0, 0, -1]].numpy().tolist() == [1, 1, 4]
    assert column[1:3][1].numpy() == 3
    assert not column[1:2].is_squeezed
    for index in (4, -5, [9]):
        with pytest.raises(IndexError, match="tuple index out of range"):
            column[index]


def test_a_column_of_cells(writer):
    fill(writer, 3)
    cells = list(writer.history["b"][:])

    column = TrajectoryColumn(cells[::-1], path=("b",))
    one = TrajectoryColumn([cells[1]], squeeze=True)

    assert column.numpy()[:, 0].tolist() == [2, 1, 0] and column.shape == (3, 3)
    assert one.is_squeezed and one.shape == (3,) and one.numpy().tolist() == [1, 1, 1]
    assert all(not cell.expired and cell.shape == (3,) and cell.dtype == np.int32
               for cell in cells)
    assert TrajectoryColumn(iter(cells)).shape == (3, 3)


def test_columns_refuse_what_they_cannot_hold(writer):
    fill(writer, 3)
    cells = list(writer.history["a"][:])

    with pytest.raises(ValueError, match="exactly one data reference when squeeze set, got 3"):
        TrajectoryColumn(cells, squeeze=True)
    with pytest.raises(ValueError, match=r"None data references: TrajectoryColumn at path "
                                         r"\('a', 0\) got \[None\]"):
        TrajectoryColumn([None], path=("a", 0))
    with pytest.raises(TypeError, match="not iterable"):
        TrajectoryColumn(5)
    with pytest.raises(TypeError):
        TrajectoryColumn(cells, True)
    with pytest.raises(TypeError):
        TrajectoryColumn()


class FakeCell:
    shape, dtype, expired = (2,), np.dtype(np.int8), False

    def numpy(self):
        return np.array([1, 2], np.int8)


def test_a_column_of_anything_that_looks_like_a_cell(writer):
    column = TrajectoryColumn([FakeCell(), FakeCell()])

    assert column.shape == (2, 2) and column.dtype == np.int8 and len(column) == 2
    assert column.numpy().tolist() == [[1, 2], [1, 2]]
    assert column[0].numpy().tolist() == [1, 2] and column[0].shape == (2,)
    assert len(column[:1]) == 1 and isinstance(list(column)[0], FakeCell)
    with pytest.raises(ValueError, match="of the writer"):
        writer.create_item("t", 1.0, [column])
    FakeCell.expired = True
    try:
        with pytest.raises(RuntimeError, match="expired"):
            column.numpy()
    finally:
        FakeCell.expired = False


def test_a_subclass_of_a_column_is_a_column(place):
    class Mine(TrajectoryColumn):
        pass

    writer = place.writer()
    fill(writer, 2)
    column = Mine(list(writer.history["a"][:]))
    column.label = "mine"

    writer.create_item("t", 1.0, [column])
    writer.flush()

    assert column.label == "mine" and place.read()[0][0].tolist() == [0, 1]


def test_squeezing_can_be_set(place):
    writer = place.writer()
    fill(writer, 2)
    column = writer.history["a"][-1:]
    column.is_squeezed = True
    two = writer.history["a"][-2:]
    two.is_squeezed = True

    assert column.shape == ()
    writer.create_item("t", 1.0, [column])
    with pytest.raises(ValueError, match="exactly one row when squeeze is set but got 2"):
        writer.create_item("t", 1.0, [two])
    writer.flush()
    assert place.read()[0][0].shape == ()


def test_an_expired_column_says_so(local):
    writer = local.writer(refs=3)
    fill(writer, 3)
    column, cell = writer.history["a"][:], list(writer.history["a"][:])[0]
    assert not cell.expired
    fill(writer, 1)

    assert cell.expired
    with pytest.raises(RuntimeError, match="Cannot convert TrajectoryColumn with expired data "
                                           "references to numpy array."):
        column.numpy()
    for look in (lambda: cell.numpy(), lambda: cell.shape, lambda: cell.dtype,
                 lambda: column.shape, lambda: column.dtype):
        with pytest.raises(RuntimeError, match="Cannot access data from expired WeakCellRef"):
            look()
    with pytest.raises(ValueError, match="Error in column 0: Column contains expired CellRef."):
        writer.create_item("t", 1.0, {"a": column})
    with pytest.raises(ValueError, match="Error in column 1: Column contains expired CellRef."):
        writer.create_item("t", 1.0, [writer.history["a"][-1:], column])
    assert writer.pending == 0


def test_strings_expire_like_everything_else(local):
    writer = local.writer(refs=2)
    for i in range(5):
        writer.append(f"text {i}")
    kept = writer.history[-2:]

    assert kept.numpy().tolist() == [b"text 3", b"text 4"]
    writer.append("more")
    with pytest.raises(RuntimeError, match="expired"):
        kept.numpy()
    assert writer.history[-2:].numpy().tolist() == [b"text 4", b"more"]
    writer.end_episode()
    writer.append("fresh")
    assert writer.history[:].numpy().tolist() == [b"fresh"]


def test_the_end_of_an_episode_expires_all(local):
    writer = local.writer(refs=3)
    fill(writer, 2)
    column = writer.history["a"][:]
    writer.end_episode()

    with pytest.raises(RuntimeError, match="expired"):
        column.numpy()
    with pytest.raises(ValueError, match="expired"):
        writer.create_item("t", 1.0, [column])


def test_a_writer_that_was_not_initialised():
    writer = TrajectoryWriter.__new__(TrajectoryWriter)
    for call in (lambda: writer._add_column(("a",)), lambda: writer.append({"a": 1}),
                 lambda: writer.create_item("t", 1.0, []), writer.flush,
                 lambda: writer.history):
        with pytest.raises(RuntimeError):
            call()
    assert writer.episode_steps == 0 and writer.pending == 0


def test_a_writer_may_be_initialised_after_a_failure(local, tmp_path):
    nobody = _core.Client(f"unix:{tmp_path}/nobody")
    writer = TrajectoryWriter.__new__(TrajectoryWriter)
    before = sys.getrefcount(nobody)
    for _ in range(5):
        with pytest.raises(errors.DeadlineExceededError):
            writer.__init__(nobody, 1, timeout=0.01)
    assert sys.getrefcount(nobody) == before
    writer.__init__(local.client, 1)
    with pytest.raises(RuntimeError, match="initialised once"):
        writer.__init__(local.client, 1)
    writer.append({"a": 1})


def test_a_column_that_nobody_asked_for_moves_no_other(writer):
    writer._add_column(("stray",))
    writer.append({"a": 1.0, "b": 2})
    assert writer.history["a"][-1].numpy() == 1.0 and writer.history["b"][-1].numpy() == 2


def test_the_options_of_a_column_outlive_a_failure(writer, monkeypatch):
    writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=1)
    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryWriter, "_add_column", lambda *args: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            writer.append({"a": 1.0})
    for i in range(3):
        writer.append({"a": float(i)})
    with pytest.raises(RuntimeError, match="expired"):
        writer.history["a"][:].numpy()


@pytest.mark.parametrize("table", ["t\0", b"t\0x", "\0"])
def test_a_table_name_with_a_null_character(writer, table):
    writer.append({"a": 1.0})
    with pytest.raises(ValueError, match="null character"):
        writer.create_item(table, 1.0, writer.history["a"][:])


def test_the_steps_of_the_episode_wait_for_the_thread_inside(writer):
    big, stop, seen = np.zeros(1 << 20, np.uint8), threading.Event(), []

    def ask():
        while not stop.is_set():
            seen.append(writer.episode_steps)

    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(20):
        writer.append({"a": big})
    stop.set()
    thread.join(20)
    assert seen == sorted(seen) and writer.episode_steps == 20


def test_columns_outlive_their_writer(local):
    writer = local.writer()
    fill(writer, 2)
    history = writer.history["a"]
    column, cell = history[:], list(history)[0]
    del writer

    assert cell.expired and len(column) == 2 and len(history) == 2
    with pytest.raises(RuntimeError, match="expired"):
        column.numpy()
    with pytest.raises(RuntimeError, match="expired"):
        history[-1].numpy()


def test_a_column_with_fewer_references_than_the_writer(local):
    writer = local.writer(refs=3)
    writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=2)
    fill(writer, 5)

    assert writer.history["a"][-2:].numpy().tolist() == [3, 4]
    assert writer.history["b"][-3:].numpy()[:, 0].tolist() == [2, 3, 4]
    with pytest.raises(RuntimeError, match="expired"):
        writer.history["a"][-3:].numpy()
    with pytest.raises(ValueError, match="Column contains expired CellRef"):
        writer.create_item("t", 1.0, [writer.history["a"][-3:]])


def test_a_column_with_more_references_than_the_writer(local):
    writer = local.writer(refs=2)
    writer.configure(("a",), num_keep_alive_refs=50, max_chunk_length=None)
    fill(writer, 60)

    assert writer.history["a"][-50:].numpy().tolist() == list(range(10, 60))
    with pytest.raises(ValueError):
        writer.history["b"][-3:]
    writer.create_item("t", 1.0, [writer.history["a"][-50:]])
    writer.flush()
    assert local.read()[0][0].tolist() == list(range(10, 60))


def test_partial_steps(writer):
    writer.append({"a": 1}, partial_step=True)
    assert writer.episode_steps == 0 and len(writer.history["a"]) == 1
    writer.append({"b": 10}, partial_step=True)
    assert writer.history["b"][-1].numpy() == 10
    writer.append({"a": None, "c": 100})

    assert writer.episode_steps == 1
    writer.append({"a": 2, "b": 20, "c": 200})
    for name, values in (("a", [1, 2]), ("b", [10, 20]), ("c", [100, 200])):
        assert writer.history[name][:].numpy().tolist() == values


def test_a_field_is_given_once_in_a_step(writer):
    writer.append({"a": 1, "b": 1})
    writer.append({"a": 2}, partial_step=True)

    text = (r"Field \('a',\) has already been set in the active step by previous \(partial\) "
            r"append call and thus must be omitted or set to None but got: 7")
    for partial in (True, False):
        with pytest.raises(ValueError, match=text):
            writer.append({"a": 7}, partial_step=partial)
    writer.append({"b": 2})
    writer.append({"a": 3, "b": 3})

    assert writer.history["a"][:].numpy().tolist() == [1, 2, 3]
    assert writer.history["b"][:].numpy().tolist() == [1, 2, 3]


def test_items_of_an_open_step(place):
    writer = place.writer()
    writer.append({"a": 1}, partial_step=True)
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    writer.append({"b": 5})

    assert place.read()[0][0].tolist() == [1] and writer.episode_steps == 1


def test_an_episode_may_end_in_an_open_step(writer):
    writer.append({"a": 1}, partial_step=True)
    writer.end_episode()
    writer.append({"a": 5})

    assert writer.episode_steps == 1 and writer.history["a"][:].numpy().tolist() == [5]


def test_a_step_may_be_opened_without_a_value(writer):
    writer.append({}, partial_step=True)
    writer.append({"a": 1, "b": None}, partial_step=True)
    writer.append({"b": 10})
    writer.append({"a": 2, "b": 20})

    assert writer.episode_steps == 2
    assert writer.history["a"][:].numpy().tolist() == [1, 2]
    assert writer.history["b"][:].numpy().tolist() == [10, 20]


def test_partial_step_is_a_keyword(writer):
    with pytest.raises(TypeError, match="positional"):
        writer.append({"a": 1}, True)
    with pytest.raises(TypeError):
        writer.append()
    with pytest.raises(TypeError):
        writer.append({"a": 1}, other=True)
    writer.append(data={"a": 1}, partial_step=False)
    assert writer.episode_steps == 1


BAD_VALUES = [
    ({"a": 1.0}, r"Tensor of wrong dtype provided for column \('a',\). Got double but expected "
                 r"float."),
    ({"a": 1}, r"Got int64 but expected float."),
    ({"a": "x"}, r"Got string but expected float."),
    ({"a": np.zeros(1, np.float32)}, r"Tensor of incompatible shape provided for column "
                                     r"\('a',\). Got \[1\] which is incompatible with \[\]."),
    ({"b": np.zeros((2, 4), np.uint8)}, r"column \('b',\). Got \[2,4\] which is incompatible "
                                        r"with \[2,3\]."),
    ({"b": np.zeros(2, np.uint8)}, r"Got \[2\] which is incompatible with \[2,3\]."),
    ({"b": np.zeros((2, 3), np.int8)}, r"Got int8 but expected uint8."),
    ({"c": [1, np.int32(1)]}, r"column \('c', 1\). Got int32 but expected double."),
    ({"new": np.zeros((1,) * 9)}, "dimensions"),
]


@pytest.mark.parametrize("step,text", BAD_VALUES, ids=[t for _, t in BAD_VALUES])
def test_values_that_do_not_fit_their_column(writer, step, text):
    writer.append({"a": np.float32(1), "b": np.zeros((2, 3), np.uint8), "c": [1, 2.5]})
    before = len(writer.history["a"])

    with pytest.raises(ValueError, match=text):
        writer.append(step)

    assert writer.episode_steps == 1 and len(writer.history["a"]) == before
    writer.append({"a": np.float32(2), "b": np.ones((2, 3), np.uint8), "c": [2, 3.5]})
    assert writer.history["a"][:].numpy().tolist() == [1, 2]
    assert writer.history["c"][1][:].numpy().tolist() == [2.5, 3.5]


@pytest.mark.parametrize("value", [object(), {1, 2}, 2 ** 70, np.datetime64("2020-01-01"),
                                   np.array([object()])], ids=repr)
def test_values_without_a_dtype(writer, value):
    with pytest.raises((TypeError, ValueError)):
        writer.append({"e": value})
    writer.append({"e": 1})
    assert writer.history["e"][-1].numpy() == 1


def test_a_refused_step_changes_nothing(place):
    writer = place.writer()
    writer.append({"a": 1, "b": 1})
    with pytest.raises(ValueError):
        writer.append({"a": 2, "b": 2.0})
    writer.append({"a": 3, "b": 3})

    writer.create_item("t", 1.0, {k: writer.history[k][:] for k in "ab"})
    writer.flush()

    assert [column.tolist() for column in place.read()[0]] == [[1, 3], [1, 3]]


def test_leaves_that_are_no_columns(writer):
    fill(writer, 1)
    for bad in ({"a": 1}, {"a": None, "b": writer.history["b"][:]}, {"a": writer.history["a"]},
                [writer.history["a"][:], np.zeros(3)], 5):
        with pytest.raises(TypeError, match="All leaves of `trajectory` must be "
                                            "`TrajectoryColumn` but got"):
            writer.create_item("t", 1.0, bad)


@pytest.mark.parametrize("empty", [{}, [], (), {"a": {}}], ids=repr)
def test_an_empty_trajectory(writer, empty):
    fill(writer, 1)
    with pytest.raises(ValueError, match="trajectory must not be empty."):
        writer.create_item("t", 1.0, empty)


def test_priorities(place):
    writer = place.writer()
    fill(writer, 1)
    column = writer.history["a"][:]

    with pytest.raises(ValueError, match="`priority` must not be nan."):
        writer.create_item("t", float("nan"), [column])
    for bad in ("x", None, [1.0], 1j):
        with pytest.raises(TypeError):
            writer.create_item("t", bad, [column])
    for good in (1, 0, 2.5, np.float32(1.5), np.int64(3), True):
        writer.create_item("t", good, [column])
    writer.flush()
    assert place.size() == 6


def test_an_unknown_table(place):
    writer = place.writer()
    fill(writer, 1)

    for _ in range(2):
        with pytest.raises(ValueError, match="Unable to create item in table 'nope' since the "
                                             "table could not be found."):
            writer.create_item("nope", 1.0, [writer.history["a"][:]])
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.size() == 1


def test_tables_are_named_by_text(place):
    writer = place.writer()
    fill(writer, 1)
    column = writer.history["a"][:]

    for bad in (5, None, ["t"]):
        with pytest.raises(TypeError):
            writer.create_item(bad, 1.0, [column])
    writer.create_item(b"t", 1.0, [column])
    writer.create_item(table="t", priority=1.0, trajectory=[column])
    writer.create_item("t", trajectory=[column], priority=1.0)
    writer.flush()
    assert place.size() == 3
    for args, kwargs in ((("t",), {}), (("t", 1.0, [column], 4), {}),
                         (("t", 1.0, [column]), {"table": "t"}), ((), {"other": 1})):
        with pytest.raises(TypeError):
            writer.create_item(*args, **kwargs)


def test_rows_of_other_dtypes_and_shapes(writer):
    writer.append({"f": np.float32(1), "i": 1, "v": np.zeros(2, np.float32)})
    h = writer.history

    def column(*names):
        return TrajectoryColumn([cell for name in names for cell in h[name][:]])

    with pytest.raises(ValueError, match=r"Error in column 0: Column references tensors with "
                                         r"different dtypes: float \(index 0\) != int64 "
                                         r"\(index 1\)."):
        writer.create_item("t", 1.0, [column("f", "i")])
    with pytest.raises(ValueError, match=r"Error in column 1: Column references tensors with "
                                         r"incompatible shapes: \[\] \(index 0\) not "
                                         r"compatible with \[2\] \(index 1\)."):
        writer.create_item("t", 1.0, [h["i"][:], column("f", "v")])
    with pytest.raises(ValueError):
        column("f", "v").numpy()


def test_signatures(place):
    writer = place.writer()
    for i in range(2):
        writer.append({"a": np.float32(i), "b": i, "c": float(i)})
    h = writer.history

    for bad in ({"a": h["a"][-2:]}, {"a": h["a"][-1:], "b": h["b"][-1]},
                {"a": h["c"][-2:], "b": h["b"][-1]}, {"a": h["a"][-2:], "b": h["b"][-1:]},
                {"a": h["a"][-2:], "b": h["a"][-1]},
                [h["a"][-2:], h["b"][-1], h["c"][-1]]):
        with pytest.raises(ValueError, match="Unable to create item in table 'signed' since "
                                             "the provided trajectory is inconsistent with the "
                                             "table signature"):
            writer.create_item("signed", 1.0, bad)
    writer.create_item("signed", 1.0, {"a": h["a"][-2:], "b": h["b"][-1]})
    writer.flush()
    assert place.size("signed") == 1


def test_what_is_wrong_by_the_signature(place):
    writer = place.writer()
    for i in range(2):
        writer.append({"a": np.float32(i), "b": i})
    h = writer.history

    with pytest.raises(ValueError, match="The trajectory has 1 columns but the table signature "
                                         "has 2 columns."):
        writer.create_item("signed", 1.0, [h["a"][:]])
    with pytest.raises(ValueError) as caught:
        writer.create_item("signed", 1.0, {"a": h["a"][-1:], "b": h["b"][-1]})
    text = str(caught.value)
    assert "The table expects column 0 to be a float [2] tensor but got a float [1] tensor." in text
    assert ("The table signature is:\n\t0: Tensor<name: 'a', dtype: float, shape: [2]>, "
            "1: Tensor<name: 'b', dtype: int64, shape: []>") in text
    assert ("The provided trajectory signature is:\n\t0: Tensor<name: '0', dtype: float, "
            "shape: [1]>, 1: Tensor<name: '1', dtype: int64, shape: []>") in text


def test_without_validation_the_server_refuses(place):
    writer = place.writer(validate=False)
    fill(writer, 1)
    writer.create_item("signed", 1.0, [writer.history["a"][:]])

    with pytest.raises((ValueError, errors.StatusError)):
        writer.flush()
    assert writer.pending == 0 and place.size("signed") == 0


def test_columns_of_another_writer(local):
    one, two = local.writer(), local.writer()
    fill(one, 1)
    fill(two, 1)

    with pytest.raises(ValueError, match="of the writer that creates the item"):
        one.create_item("t", 1.0, [two.history["a"][:]])


def test_flush_waits_for_the_server(place):
    writer = place.writer(refs=4)
    writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=4)
    writer.append({"a": 1})
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    assert writer.pending == 1 and place.size() == 0

    writer.flush(block_until_num_items=1)
    assert writer.pending == 1
    writer.flush()

    assert writer.pending == 0 and place.size() == 1
    assert "no item" in writer.why()


@contextlib.contextmanager
def blocked(place):
    """A writer with two items too many for their table."""
    writer = place.writer(refs=1)
    for i in range(4):
        writer.append({"a": i})
        writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    try:
        yield writer
    finally:
        writer.close()


def test_flush_has_a_timeout(place):
    with blocked(place) as writer:
        start = time.monotonic()
        with pytest.raises(errors.DeadlineExceededError,
                           match="Flush call did not complete within provided timeout of "
                                 "0:00:00.100000"):
            writer.flush(timeout_ms=100)
        assert 0.09 < time.monotonic() - start < 10
        writer.flush(block_until_num_items=2, timeout_ms=0)
        assert 0 < writer.pending <= 2 and "unconfirmed" in writer.why()

        place.read(2, "small")
        writer.flush(timeout_ms=WAIT_MS)
        assert writer.pending == 0


def test_end_episode_has_a_timeout_and_then_changes_nothing(place):
    with blocked(place) as writer:
        for timeout in (50, 0, -1):
            with pytest.raises(errors.DeadlineExceededError,
                               match="End episode call did not complete within provided "):
                writer.end_episode(timeout_ms=timeout)
            assert writer.episode_steps == 4 and len(writer.history["a"]) == 4

        place.read(2, "small")
        writer.end_episode(timeout_ms=WAIT_MS)
        assert writer.episode_steps == 0 and len(writer.history["a"]) == 0


@pytest.mark.parametrize("call", ["flush", "end_episode"])
def test_arguments_of_waits(writer, call):
    method = getattr(writer, call)
    with pytest.raises(TypeError):
        method(0, "x")
    with pytest.raises(TypeError):
        method(other=1)
    if call == "flush":
        with pytest.raises(ValueError, match="block_until_num_items must be >= 0, got -1"):
            method(-1)
        for bad in ("x", 0.5):
            with pytest.raises(TypeError):
                method(bad)
    method(timeout_ms=None)


def test_episodes(place):
    writer = place.writer()
    fill(writer, 3)
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.end_episode()

    assert writer.episode_steps == 0 and place.size() == 1 and len(writer.history["a"]) == 0
    with pytest.raises(IndexError):
        writer.history["a"][0]
    with pytest.raises(ValueError):
        writer.history["a"][-1]
    fill(writer, 2, start=10)
    assert writer.episode_steps == 2 and writer.history["a"][:].numpy().tolist() == [10, 11]


def test_an_episode_may_keep_its_history(place):
    writer = place.writer()
    fill(writer, 2)
    writer.end_episode(clear_buffers=False)
    assert writer.episode_steps == 0 and len(writer.history["a"]) == 2
    fill(writer, 2, start=10)

    assert writer.episode_steps == 2 and writer.history["a"][0].numpy() == 0
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.read()[0][0].tolist() == [0, 1, 10, 11]


def test_configure_checks_its_arguments(writer):
    for refs, length, text in (
            (0, 1, r"num_keep_alive_refs \(0\) must be a positive integer"),
            (1, 2, r"max_chunk_length \(2\) must be None or a positive integer <= "
                   r"num_keep_alive_refs \(1\)"),
            (1, 0, r"max_chunk_length \(0\) must be")):
        with pytest.raises(ValueError, match=text):
            writer.configure(("a",), num_keep_alive_refs=refs, max_chunk_length=length)
    with pytest.raises(ValueError, match="codec"):
        writer.configure(("a",), num_keep_alive_refs=1, max_chunk_length=1, codec="gzip")
    with pytest.raises(TypeError):
        writer.configure(("a",), num_keep_alive_refs=1)
    with pytest.raises(TypeError):
        writer.configure(("a",), 3, 4)


def test_configure_a_column_that_exists(writer):
    writer.configure(("a",), num_keep_alive_refs=1, max_chunk_length=None)
    fill(writer, 3)
    with pytest.raises(errors.StatusError, match="rows already") as caught:
        writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=2)
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(RuntimeError, match="expired"):
        writer.history["a"][-2:].numpy()

    writer.end_episode()
    writer.configure(("a",), num_keep_alive_refs=40, max_chunk_length=2)
    fill(writer, 50)
    assert writer.history["a"][-40:].numpy().tolist() == list(range(10, 50))


def test_a_chunk_length_is_kept(place):
    writer = place.writer(refs=6)
    writer.configure(("a",), num_keep_alive_refs=6, max_chunk_length=3)
    sizes = []
    for i in range(6):
        writer.append({"a": i})
        writer.create_item("t", 1.0, [writer.history["a"][-1:]])
        deadline = time.monotonic() + 5
        while writer.pending > (i + 1) % 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        sizes.append(writer.pending)
    assert sizes == [1, 2, 0, 1, 2, 0]


def test_close_ends_a_writer(place):
    writer = place.writer()
    fill(writer, 3)
    writer.close()
    writer.close()

    assert writer.episode_steps == 3 and writer.pending == 0
    for call in (lambda: writer.append({"a": np.float32(1)}), writer.flush, writer.end_episode,
                 lambda: writer.create_item("t", 1.0, [writer.history["a"][-1:]]), writer.why):
        with pytest.raises(RuntimeError, match="TrajectoryWriter::Close has been called."):
            call()


def test_a_writer_that_is_dropped_lets_its_items_go(place):
    writer = place.writer(refs=100)
    writer.configure(("a",), num_keep_alive_refs=100, max_chunk_length=100)
    writer.append({"a": 1})
    writer.create_item("t", 1.0, [writer.history["a"][:]])
    del writer
    gc.collect()
    assert place.size() == 0


def test_the_context_manager_flushes(place):
    with place.writer() as writer:
        fill(writer, 1)
        writer.create_item("t", 1.0, [writer.history["a"][:]])
    assert place.size() == 1
    fill(writer, 1)

    writer.create_item("t", 1.0, [writer.history["a"][:]])  # it is still open
    writer.flush()
    assert place.size() == 2


ENDS = [KeyError, errors.DeadlineExceededError, errors.StatusError, KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("error", ENDS)
def test_an_exception_ends_the_context_without_waiting(place, error, caplog):
    """Whatever ends the block: to wait for a table that is full would be to wait for ever."""
    with pytest.raises(error), caplog.at_level(logging.WARNING, logger="reprise"):
        with blocked(place) as blocked_writer, blocked_writer as writer:
            writer.flush(block_until_num_items=2)
            raise error("any")
    assert writer.pending == 0
    assert caplog.messages == ["TrajectoryWriter: an exception ended its `with`: 2 items were not "
                               "confirmed and dropped"]
    with pytest.raises(errors.StatusError, match="Close has been called"):
        writer.append({"a": 5})
    assert place.size("small") == 2


def test_an_exception_after_all_is_confirmed_says_nothing(place, caplog):
    with pytest.raises(KeyError), caplog.at_level(logging.WARNING, logger="reprise"):
        with place.writer() as writer:
            fill(writer, 1)
            writer.create_item("t", 1.0, [writer.history["a"][:]])
            writer.flush()
            raise KeyError("any")
    assert not caplog.messages and place.size() == 1


def test_one_dropped_item_is_said_in_the_singular(place, caplog):
    with pytest.raises(RuntimeError, match="nope"), place.writer(refs=9) as writer:
        writer.configure(("a",), num_keep_alive_refs=9, max_chunk_length=9)
        fill(writer, 1)
        writer.create_item("t", 1.0, [writer.history["a"][:]])
        place.client.reset("nope")
    assert place.size() == 0
    assert "1 item was not confirmed and dropped" in caplog.text


@contextlib.contextmanager
def interrupted(after_s=0.2):
    """Ctrl-C in a moment, which ends the block."""
    timer = threading.Timer(after_s, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


@pytest.mark.parametrize("where", ["body", "end"])
def test_ctrl_c_ends_a_context_that_waits(place, where, caplog):
    """In a flush of the block, or in that at its end: either way nothing is waited for again."""
    with interrupted():
        with blocked(place) as blocked_writer, blocked_writer as writer:
            if where == "body":
                writer.flush()
    assert "2 items were not confirmed and dropped" in caplog.text
    assert writer.pending == 0


def test_bounds_make_create_item_wait(place):
    writer = place.writer(refs=1, max_items=3)
    for i in range(5):
        writer.append({"a": i})
        if i < 4:
            writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    done = threading.Event()

    def create():
        writer.create_item("small", 1.0, [writer.history["a"][-1:]])
        done.set()

    writer.append({"a": 9})
    writer.create_item("small", 1.0, [writer.history["a"][-1:]])
    thread = threading.Thread(target=create)
    thread.start()
    assert not done.wait(0.1)
    assert [columns[0].tolist() for columns in place.read(2, "small")] == [[0], [1]]
    assert done.wait(WAIT_MS / 1000)
    thread.join()
    writer.close()


@pytest.mark.parametrize("options", [{"refs": 0}, {"refs": -1}, {"max_items": -1},
                                     {"max_bytes": -1}, {"refs": 1 << 40}], ids=repr)
def test_bad_options(local, options):
    with pytest.raises(ValueError, match="must be"):
        local.writer(**options)


def test_a_writer_of_a_server_that_is_not_there(tmp_path):
    client = _core.Client(f"unix:{tmp_path}/nobody")

    start = time.monotonic()
    with pytest.raises(errors.DeadlineExceededError):
        TrajectoryWriter(client, 1, timeout=0.2)
    assert time.monotonic() - start < 10
    writer = TrajectoryWriter(client, 1, validate=False)
    writer.append([1])
    writer.create_item("t", 1.0, [writer.history[0][:]])
    with pytest.raises(errors.DeadlineExceededError):
        writer.flush(timeout_ms=100)
    assert writer.pending == 1


def test_a_flush_that_waits_lets_other_threads_in(place):
    with blocked(place) as writer:
        failed = []

        def flush():
            try:
                writer.flush(timeout_ms=1500)
            except errors.DeadlineExceededError as error:
                failed.append(error)

        thread = threading.Thread(target=flush)
        thread.start()
        count, end = 0, time.monotonic() + 0.5
        while time.monotonic() < end:
            writer.append({"a": count})
            assert writer.history["a"][-1].numpy() == count
            count += 1
        place.read(2, "small")
        thread.join()
        assert count > 3 and not failed


def test_a_wait_lets_python_run(place):
    with blocked(place) as writer:
        thread = threading.Thread(target=lambda: pytest.raises(
            errors.DeadlineExceededError, writer.flush, timeout_ms=300))
        thread.start()
        turns = 0
        while thread.is_alive():
            turns += 1
        thread.join()
        assert turns > 1000


def test_ctrl_c_ends_a_wait(place):
    with blocked(place) as writer:
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            writer.flush()
        assert time.monotonic() - start < 5
        timer.join()
        writer.append({"a": 5})
        assert writer.history["a"][-1].numpy() == 5


def test_ctrl_c_ends_the_wait_for_a_server(tmp_path):
    client = _core.Client(f"unix:{tmp_path}/nobody")
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        TrajectoryWriter(client, 1)
    timer.join()


def test_threads_share_a_writer(place):
    writer = place.writer(refs=100)
    large = np.zeros(1 << 17, np.uint8)

    def append():
        for _ in range(50):
            writer.append({"x": large})

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.episode_steps == 200 and len(writer.history["x"]) == 200


def test_large_appends_of_several_threads_overlap(local):
    large = np.zeros(8 << 20, np.uint8)
    starts, spans = [], []

    def append():
        writer = local.writer(refs=1)
        writer.configure((0,), num_keep_alive_refs=1, max_chunk_length=1, codec="none")
        for _ in range(10):
            starts.append(time.perf_counter())
            start = starts[-1]
            writer.append([large])
            spans.append((start, time.perf_counter()))

    threads = [threading.Thread(target=append) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    shared = sum(any(a < start < b for start in starts) for a, b in spans)
    assert shared > len(spans) // 8  # none, if the GIL were kept


def processors_used(work, threads=8):
    """On how many processors threads are that do some work, in the mean: one, with the GIL kept."""
    used = []

    def measured():
        begun = time.thread_time()
        work()
        used.append(time.thread_time() - begun)

    workers = [threading.Thread(target=measured) for _ in range(threads)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(used) / (time.perf_counter() - begun)


def test_appends_of_eight_threads_take_more_than_one_processor(local):
    """Whenever others leave them as much: that is seen by what lets go of the GIL for certain."""
    large = np.zeros(8 << 20, np.uint8)
    idle = []  # what appends took while there was more than one to be had

    def append():
        writer = local.writer(refs=1)
        writer.configure((0,), num_keep_alive_refs=1, max_chunk_length=1, codec="none")
        for _ in range(10):
            writer.append([large])

    until = time.monotonic() + 20
    while time.monotonic() < until and len(idle) < 20:
        found = processors_used(append)
        if found >= 1.2:
            return
        if processors_used(lambda: hashlib.sha256(large)) >= 1.5:
            idle.append(found)
    if len(idle) < 5:
        pytest.skip("others use the processors")
    raise AssertionError(f"at most {max(idle):.2f} processors in {len(idle)} runs")


def test_writers_of_several_threads(place):
    def write(index):
        with place.writer(refs=2) as writer:
            for i in range(200):
                writer.append({"who": index, "i": i})
                writer.create_item("t", 1.0, {k: writer.history[k][-1] for k in ("who", "i")})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    rows = collections.defaultdict(list)
    for i, who in place.read(1600):
        rows[int(who)].append(int(i))
    assert rows == {who: list(range(200)) for who in range(8)}


def test_a_call_from_inside_a_call_is_refused(writer):
    class Sneaky:
        def __array__(self, *args, **kwargs):
            writer.append([1])
            return np.zeros(3)

    with pytest.raises(RuntimeError, match="busy"):
        writer.append([Sneaky()])
    writer.append([5])
    assert writer.episode_steps == 1


def test_a_fork_leaves_the_writer_with_the_parent(place):
    writer = place.writer()
    fill(writer, 2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = []
            for call in (lambda: fill(writer, 1), writer.flush, writer.end_episode,
                         lambda: writer.create_item("t", 1.0, [writer.history["a"][:]])):
                try:
                    call()
                    said.append("no error")
                except errors.StatusError as error:
                    said.append(error.code)
            del writer
            os.write(write, " ".join(said).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 1000).decode().split() == ["FAILED_PRECONDITION"] * 4
    os.close(read)

    writer.create_item("t", 1.0, [writer.history["a"][:]])
    writer.flush()
    assert place.size() == 1


def test_a_fork_while_the_writer_is_busy(place):
    with blocked(place) as writer:
        thread = threading.Thread(target=lambda: pytest.raises(
            errors.DeadlineExceededError, writer.flush, timeout_ms=500))
        thread.start()
        time.sleep(0.05)  # so that it most likely waits
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                writer.append({"a": 1})
            except errors.StatusError as error:
                os.write(write, error.code.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        assert os.read(read, 100) == b"FAILED_PRECONDITION"
        os.close(read)
        thread.join()


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_writers_and_their_parts_are_not_pickled(writer, take):
    fill(writer, 2)
    for part in (writer, writer.history["a"], writer.history["a"][:],
                 list(writer.history["a"])[0]):
        with pytest.raises(TypeError, match="pickle"):
            take(part)


def count_of(function, times=200):
    """How many objects and blocks more there are after that many calls."""
    for _ in range(20):
        function()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        function()
    gc.collect()
    return sys.getallocatedblocks() - before


def quietly(function, *errors_expected):
    def call():
        try:
            function()
        except errors_expected:
            return
        raise AssertionError("no error")
    return call


def test_nothing_leaks(local):
    writer = local.writer(refs=3)
    step = {"a": np.zeros(3, np.float32), "b": 1, "s": "text", "n": [1.5, Pair(True, None)]}
    writer.append(step)
    h = writer.history
    bad_step = dict(step, b=1.5)
    lost = h["a"][:]
    for _ in range(4):
        writer.append(step)

    cases = {
        "append": lambda: writer.append(step),
        "append dtype": quietly(lambda: writer.append(bad_step), ValueError),
        "append object": quietly(lambda: writer.append(dict(step, b=object())), TypeError),
        "history": lambda: writer.history,
        "history kept": lambda: [writer.history, writer.history],
        "slice": lambda: h["a"][-3:],
        "list": lambda: h["a"][[-1, -2]],
        "int": lambda: h["a"][-1],
        "numpy": lambda: [h["a"][-3:].numpy(), h["s"][-2:].numpy(), h["b"][-1].numpy()],
        "cells": lambda: TrajectoryColumn(list(h["a"][-3:])).shape,
        "none": quietly(lambda: h["a"][0], ValueError),
        "none slice": quietly(lambda: h["a"][:], ValueError),
        "none list": quietly(lambda: h["a"][[-1, 0]], ValueError),
        "range": quietly(lambda: h["a"][[10 ** 6]], IndexError),
        "type": quietly(lambda: h["a"]["x"], TypeError),
        "expired": quietly(lost.numpy, RuntimeError),
        "create expired": quietly(lambda: writer.create_item("t", 1.0, [lost]), ValueError),
        "create type": quietly(lambda: writer.create_item("t", 1.0, [1]), TypeError),
        "create empty": quietly(lambda: writer.create_item("t", 1.0, []), ValueError),
        "create table": quietly(lambda: writer.create_item("no", 1.0, [h["a"][-1]]),
                                ValueError),
        "create signature": quietly(lambda: writer.create_item("signed", 1.0, [h["a"][-1]]),
                                    ValueError),
        "create": lambda: writer.create_item("t", 1.0, {"x": h["a"][-2:], "y": h["s"][-1]}),
        "flush": writer.flush,
        "end": lambda: (writer.end_episode(), writer.append(step), writer.append(step),
                        writer.append(step)),
        "writer": lambda: local.writer().append(step),
        "structures": lambda: writer.append({f"k{time.monotonic_ns() % 50}": 1, **step}),
    }
    leaks = {name: count_of(case) for name, case in cases.items() if name != "structures"}
    assert {name: n for name, n in leaks.items() if n > 20} == {}


def test_references_to_what_was_appended_are_dropped(local):
    writer = local.writer(refs=2)
    array, key = np.zeros(1 << 17, np.uint8), "some key"
    writer.append({key: array})
    writer.history  # noqa: B018
    before = sys.getrefcount(array), sys.getrefcount(key)
    for _ in range(50):
        writer.append({key: array})
        writer.history[key][-1:]  # noqa: B018

    assert (sys.getrefcount(array), sys.getrefcount(key)) == before
    client = local.client
    column, before = writer.history[key][-1:], sys.getrefcount(client)
    del writer
    after = sys.getrefcount(client)
    assert after == before - 1 and len(column) == 1
