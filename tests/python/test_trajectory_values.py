# SPDX-License-Identifier: Apache-2.0
"""Reads back what a trajectory writer writes: slices, values, codecs."""

import numpy as np
import pytest

from trajectory_place import fill, local, place, WAIT_MS, writer  # noqa: F401: fixtures

from reprise import _core
from reprise.trajectory_writer import TrajectoryColumn


SLICES = [slice(None), slice(-1, None), slice(-3, None), slice(2, 5), slice(None, 4),
          slice(None, -2), slice(None, None, 2), slice(1, None, 3), slice(None, None, -1),
          slice(-1, -5, -1), slice(6, 1, -2), slice(5, None, -1), slice(None, 3, -1),
          slice(0, 8), slice(3, 100), slice(7, 8)]


@pytest.mark.parametrize("picked", SLICES, ids=str)
def test_a_slice_reads_back_its_rows(local, picked):
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
def test_a_list_of_indices_reads_back_its_rows(local, rows, length):
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


def test_appended_values_are_copied(writer):
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
