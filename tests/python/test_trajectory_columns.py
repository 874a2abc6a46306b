# SPDX-License-Identifier: Apache-2.0
"""Columns of a trajectory writer: sequences of cells, which expire."""

import numpy as np
import pytest

from trajectory_place import fill, local, place, writer  # noqa: F401: fixtures

from reprise.trajectory_writer import TrajectoryColumn


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


def test_columns_refuse_invalid_cells(writer):
    fill(writer, 3)
    cells = list(writer.history["a"][:])

    with pytest.raises(ValueError, match="exactly one data reference when squeeze set, got 3"):
        TrajectoryColumn(cells, squeeze=True)
    with pytest.raises(ValueError, match=r"None data references: TrajectoryColumn at path "
                                         r"\('a', 0\) got None as reference 0"):
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


def test_an_expired_column_cannot_be_read(local):
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
