# SPDX-License-Identifier: Apache-2.0
"""TrajectoryColumn, and the history of a writer."""

import numpy as np
import pytest

from reverb_suite.implementation import reverb


@pytest.fixture
def history(serve):
    writer = serve().trajectory_writer(6)
    for i in range(6):
        writer.append({"x": np.full((2, 3), i, np.float32), "n": np.int64(i)})
    yield writer.history
    writer.close()


def test_a_cut_is_a_column(history):
    assert isinstance(history["x"][-2:], reverb.TrajectoryColumn)
    assert isinstance(history["x"][-1], reverb.TrajectoryColumn)
    assert isinstance(history["x"][[0, 1]], reverb.TrajectoryColumn)


def test_length(history):
    assert len(history["x"]) == 6
    assert len(history["x"][-2:]) == 2
    assert len(history["x"][-1]) == 1
    assert len(history["x"][[0, 2, 4]]) == 3


def test_length_counts_from_the_start_of_the_episode(serve):
    writer = serve().trajectory_writer(2)
    for i in range(5):
        writer.append([i])
    assert len(writer.history[0]) == 5
    writer.close()


def test_shape(history):
    assert tuple(history["x"][-2:].shape) == (2, 2, 3)
    assert tuple(history["x"][-1].shape) == (2, 3)
    assert tuple(history["n"][-1].shape) == ()
    assert tuple(history["n"][:].shape) == (6,)


@pytest.mark.parametrize("name, dtype", [("x", np.float32), ("n", np.int64)])
def test_dtype(history, name, dtype):
    assert history[name][-2:].dtype == dtype
    assert history[name][-1].dtype == dtype


def test_numpy(history):
    np.testing.assert_array_equal(history["n"][-3:].numpy(), [3, 4, 5])
    np.testing.assert_array_equal(history["n"][[5, 0]].numpy(), [5, 0])
    np.testing.assert_array_equal(history["n"][::2].numpy(), [0, 2, 4])
    assert history["n"][-1].numpy() == 5
    assert history["x"][-2:].numpy().shape == (2, 2, 3)
    assert history["x"][-2:].numpy().dtype == np.float32


def test_is_squeezed(history):
    assert history["n"][-1].is_squeezed
    assert not history["n"][-1:].is_squeezed
    assert not history["n"][[-1]].is_squeezed


def test_columns_of_columns(history):
    column = history["n"][-4:]
    np.testing.assert_array_equal(column[1:3].numpy(), [3, 4])
    np.testing.assert_array_equal(column[[0, 3]].numpy(), [2, 5])
    assert column[0].numpy() == 2 and column[0].is_squeezed
    assert column[-1].numpy() == 5


@pytest.mark.parametrize("index", ["a", 1.5, None])
def test_indices_of_columns(history, index):
    with pytest.raises(TypeError):
        history["n"][-4:][index]


def test_index_beyond_a_column(history):
    with pytest.raises(IndexError):
        history["n"][-2:][2]


def test_a_column_from_cells(history):
    cells = list(history["n"][-2:])
    assert len(cells) == 2
    made = reverb.TrajectoryColumn(cells)
    np.testing.assert_array_equal(made.numpy(), [4, 5])
    squeezed = reverb.TrajectoryColumn(cells[:1], squeeze=True)
    assert squeezed.numpy() == 4 and squeezed.is_squeezed


def test_cells_of_several_cuts(history):
    made = reverb.TrajectoryColumn([*history["n"][[0]], *history["n"][[3]]])
    np.testing.assert_array_equal(made.numpy(), [0, 3])


@pytest.mark.parametrize("count", [0, 2])
def test_squeeze_wants_one_cell(history, count):
    cells = list(history["n"][-2:])[:count]
    with pytest.raises(ValueError, match="exactly one data reference when squeeze set"):
        reverb.TrajectoryColumn(cells, squeeze=True)


def test_a_column_containing_none_is_refused():
    with pytest.raises(ValueError, match="TrajectoryColumns cannot contain any None"):
        reverb.TrajectoryColumn([None])


def test_the_path_is_in_the_message(serve):
    writer = serve().trajectory_writer(1)
    writer.append({"a": {"b": 1}})
    writer.append({"a": {"b": 2}})
    with pytest.raises(ValueError, match="'a', 'b'"):
        writer.history["a"]["b"][-2:]
    writer.close()


def test_cells_of_a_column(history):
    (cell,) = history["n"][-1]
    assert not cell.expired
    assert cell.numpy() == 5
    assert cell.dtype == np.int64
    assert tuple(cell.shape) == ()


def test_numpy_of_an_expired_column_fails(serve):
    writer = serve().trajectory_writer(2)
    writer.append({"a": 1})
    column = writer.history["a"][-1:]
    writer.append({"a": 2})
    assert column.numpy().tolist() == [1]
    writer.append({"a": 3})
    with pytest.raises(RuntimeError, match="expired data references"):
        column.numpy()
    writer.close()


def test_the_end_of_an_episode_expires_columns(serve):
    writer = serve().trajectory_writer(2)
    writer.append({"a": 1})
    column = writer.history["a"][-1:]
    writer.end_episode()
    with pytest.raises(RuntimeError, match="expired"):
        column.numpy()
    writer.close()


def test_numpy_after_a_flush(serve):
    """After the flush, the rows are in a chunk."""
    writer = serve().trajectory_writer(4)
    for i in range(3):
        writer.append({"a": np.int64(i)})
    writer.create_item("t", 1.0, {"a": writer.history["a"][:]})
    writer.flush()
    np.testing.assert_array_equal(writer.history["a"][:].numpy(), [0, 1, 2])
    writer.close()
