# SPDX-License-Identifier: Apache-2.0
"""The data that can be stored: dtypes, strings, shapes, nests; and signatures that restrict it."""

import collections

import numpy as np
import pytest

from reverb_suite.helpers import assert_same, sample, size
from reverb_suite.implementation import Spec, table

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool", "complex64", "complex128"]
Pair = collections.namedtuple("Pair", ["left", "right"])


def trajectory(client, data, name="t"):
    with client.trajectory_writer(1) as writer:
        writer.append({"x": data})
        writer.create_item(name, 1.0, {"x": writer.history["x"][-1:]})


def legacy(client, data, name="t"):
    with client.writer(1) as writer:
        writer.append({"x": data})
        writer.create_item(name, 1, 1.0)


WRITERS = {"TrajectoryWriter": trajectory, "Writer": legacy}


def numbers(dtype):
    """Returns different values of a dtype."""
    if dtype == "bool":
        return np.array([[True, False], [False, True]])
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([[limits.min, limits.max], [0, 7]], dtype)
    if np.dtype(dtype).kind == "c":
        return np.array([[1 + 2j, -3j], [np.nan, np.inf]], dtype)
    return np.array([[1.5, -0.0, np.nan], [np.inf, -np.inf, np.finfo(dtype).tiny]], dtype)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(serve, writer, dtype):
    client = serve()
    WRITERS[writer](client, numbers(dtype))
    assert_same(sample(client).data[0], numbers(dtype)[None])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(serve, dtype):
    client = serve()
    client.insert(numbers(dtype).reshape(-1)[0], {"t": 1.0})
    assert_same(sample(client).data[0], numbers(dtype).reshape(-1)[:1])


@pytest.mark.parametrize("value, dtype", [(1, np.int64), (1.5, np.float64), (True, np.bool_),
                                          (1 + 2j, np.complex128), ([1, 2], None)])
def test_python_numbers(serve, value, dtype):
    client = serve()
    client.insert(value, {"t": 1.0})
    data = sample(client).data
    if dtype is None:
        assert [column.dtype for column in data] == [np.int64, np.int64]
    else:
        assert_same(data[0], np.array([value], dtype))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (2, 3, 4, 5), (1, 1, 1, 1, 1)])
def test_shapes(serve, shape):
    client = serve()
    data = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    trajectory(client, data)
    assert_same(sample(client).data[0], data[None])


@pytest.mark.parametrize("layout", [
    lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], np.asfortranarray,
    lambda a: np.broadcast_to(a[0], (3, 4)),
], ids=["transposed", "strided", "reversed", "fortran", "broadcast"])
def test_layouts(serve, layout):
    client = serve()
    data = layout(np.arange(16, dtype=np.float32).reshape(4, 4))
    trajectory(client, data)
    assert_same(sample(client).data[0], np.ascontiguousarray(data)[None])


@pytest.mark.reverb_differs("bytes of the other order are taken as they are")
def test_the_other_byte_order(serve):
    client = serve()
    data = np.arange(5, dtype=">f4")
    trajectory(client, data)
    np.testing.assert_array_equal(sample(client).data[0], data[None])


@pytest.mark.parametrize("text", [
    "plain", "", "grüße 日本", b"bytes \xff\x01", "x" * 1000, np.array("numpy"),
], ids=["plain", "empty", "unicode", "bytes", "long", "numpy"])
@pytest.mark.parametrize("writer", WRITERS)
def test_strings(serve, writer, text):
    client = serve()
    WRITERS[writer](client, text)
    got = sample(client).data[0]
    assert got.shape == (1,)
    expected = text if isinstance(text, bytes) else str(text).encode()
    assert bytes(got[0]) == expected


@pytest.mark.parametrize("array", [
    np.array([["a", "bcd"], ["", "e"]]), np.array([b"ab", b"c"]),
    np.array(["short", "a much longer one"], object), np.array([b"\x00\x01", b"z"], object),
], ids=["unicode", "bytes", "objects", "zeros"])
def test_arrays_of_strings(serve, array):
    client = serve()
    trajectory(client, array)
    assert_same(sample(client).data[0], array[None])


def test_strings_over_several_steps(serve):
    client = serve()
    with client.trajectory_writer(3) as writer:
        for text in ("one", "two", "three"):
            writer.append({"x": text})
        writer.create_item("t", 1.0, {"x": writer.history["x"][:]})
    assert_same(sample(client).data[0], np.array([b"one", b"two", b"three"]))


NESTS = {
    "leaf": (1, [1]),
    "list": ([1, 2], [1, 2]),
    "tuple": ((1, 2), [1, 2]),
    "dict": ({"b": 2, "a": 1}, [1, 2]),
    "named tuple": (Pair(left=1, right=2), [1, 2]),
    "ordered dict": (collections.OrderedDict([("b", 2), ("a", 1)]), [1, 2]),
    "deep": ({"z": [3, (4, 5)], "a": {"c": 2, "b": 1}}, [1, 2, 3, 4, 5]),
    "named tuple of dicts": (Pair({"y": 2, "x": 1}, [3]), [1, 2, 3]),
    "integer keys": ({2: 20, 1: 10}, [10, 20]),
}


@pytest.mark.parametrize("name", NESTS)
def test_nests_are_flattened(serve, name):
    nest, expected = NESTS[name]
    client = serve()
    client.insert(nest, {"t": 1.0})
    assert [int(column[0]) for column in sample(client).data] == expected


@pytest.mark.parametrize("name", [n for n in NESTS if n != "integer keys"])
def test_nests_of_steps(serve, name):
    nest, expected = NESTS[name]
    client = serve()
    with client.trajectory_writer(1) as writer:
        writer.append(nest)

        def last(history):
            if isinstance(history, dict):
                return {key: last(value) for key, value in history.items()}
            if isinstance(history, tuple) and hasattr(history, "_fields"):
                return type(history)(*map(last, history))
            if isinstance(history, (list, tuple)):
                return type(history)(map(last, history))
            return history[-1:]

        writer.create_item("t", 1.0, last(writer.history))
    assert [int(column[0]) for column in sample(client).data] == expected


SIGNATURE = {"a": Spec([None, 2], "float32"), "b": Spec([None], "int64"), "c": Spec([], "bool")}


def signed(client, cut=None, **changes):
    """Inserts an item that matches SIGNATURE, except for `changes`."""
    row = {"a": np.zeros(2, np.float32), "b": np.int64(1), "c": np.bool_(True), **changes}
    with client.trajectory_writer(3) as writer:
        for _ in range(3):
            writer.append(row)
        h = writer.history
        writer.create_item("t", 1.0, (cut or (lambda h: {
            "a": h["a"][-3:], "b": h["b"][-2:], "c": h["c"][-1]}))(h))


def test_an_item_that_fits(serve):
    client = serve(table(signature=SIGNATURE))
    signed(client)
    one = sample(client, unpack_as_table_signature=True)
    assert set(one.data) == {"a", "b", "c"}
    assert one.data["a"].shape == (3, 2) and one.data["b"].shape == (2,)
    assert one.data["c"].shape == ()


@pytest.mark.parametrize("changes", [
    {"a": np.zeros(2, np.float64)}, {"b": np.int32(1)}, {"a": np.zeros(3, np.float32)},
    {"b": np.zeros(1, np.int64)}, {"c": np.float32(1)},
], ids=["float64", "int32", "wider", "deeper", "no bool"])
def test_an_item_that_does_not_fit(serve, changes):
    client = serve(table(signature=SIGNATURE))
    with pytest.raises(ValueError):
        signed(client, **changes)
    assert size(client) == 0


@pytest.mark.parametrize("cut", [
    lambda h: {"a": h["a"][-3:], "b": h["b"][-2:]},
    lambda h: {"a": h["a"][-3:], "b": h["b"][-2:], "c": h["c"][-1], "d": h["c"][-1]},
    lambda h: {"a": h["a"][-1], "b": h["b"][-2:], "c": h["c"][-1]},
    lambda h: {"a": h["a"][-3:], "b": h["b"][-2:], "c": h["c"][-1:]},
], ids=["too few", "too many", "squeezed", "not squeezed"])
def test_a_trajectory_that_does_not_fit(serve, cut):
    client = serve(table(signature=SIGNATURE))
    with pytest.raises(ValueError):
        signed(client, cut)
    assert size(client) == 0


def test_a_signature_error_names_the_expected_dtype_and_shape(serve):
    client = serve(table(signature={"a": Spec([None, 2], "float32")}))
    with client.trajectory_writer(1) as writer:
        writer.append({"a": np.zeros(2, np.float64)})
        with pytest.raises(ValueError) as raised:
            writer.create_item("t", 1.0, {"a": writer.history["a"][-1:]})
    for word in ("double", "float", "[1,2]", "[?,2]", "t"):
        assert word in str(raised.value), word


def test_names_of_columns_are_not_compared(serve):
    """Only the order of columns is compared: the signature applies to the flattened item."""
    client = serve(table(signature={"a": Spec([None], "int64")}))
    with client.trajectory_writer(1) as writer:
        writer.append({"z": np.int64(4)})
        writer.create_item("t", 1.0, [writer.history["z"][-1:]])
    assert_same(sample(client, unpack_as_table_signature=True).data["a"], np.array([4]))


def test_a_fixed_length(serve):
    client = serve(table(signature=[Spec([2], "int64")]))
    with client.trajectory_writer(3) as writer:
        for i in range(3):
            writer.append([np.int64(i)])
        with pytest.raises(ValueError):
            writer.create_item("t", 1.0, [writer.history[0][-3:]])
        writer.create_item("t", 1.0, [writer.history[0][-2:]])
    assert_same(sample(client).data[0], np.array([1, 2]))


def test_strings_in_signatures(serve):
    client = serve(table(signature={"s": Spec([None], "string")}))
    with client.trajectory_writer(1) as writer:
        writer.append({"s": "text", "n": 1})
        with pytest.raises(ValueError):
            writer.create_item("t", 1.0, {"s": writer.history["n"][-1:]})
        writer.create_item("t", 1.0, {"s": writer.history["s"][-1:]})
    assert_same(sample(client).data[0], np.array([b"text"]))
