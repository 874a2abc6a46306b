# SPDX-License-Identifier: Apache-2.0
"""How arrays are converted when they are written and sampled: _core.as_sampled()."""

import array
import subprocess
import sys

import numpy as np
import pytest
from reprise._core import as_sampled

PLAIN = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_plain_dtypes(dtype, shape):
    given = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    got = as_sampled(given)
    assert got.dtype == dtype and got.shape == shape and got.flags.c_contiguous
    np.testing.assert_array_equal(got, given)
    assert got is not given and not np.shares_memory(got, given)


@pytest.mark.parametrize("dtype", ["longlong", "ulonglong", "intp", "long"])
def test_other_names_of_the_integers(dtype):
    assert as_sampled(np.ones(2, dtype)).dtype.itemsize == 8


@pytest.mark.parametrize("name, made", [
    ("transposed", lambda: np.arange(12.0).reshape(3, 4).T),
    ("strided", lambda: np.arange(12)[::-2]),
    ("fortran", lambda: np.asfortranarray(np.arange(12).reshape(3, 4))),
    ("broadcast", lambda: np.broadcast_to(np.arange(3), (4, 3))),
    ("unaligned", lambda: np.frombuffer(b"x" + np.arange(4.0).tobytes(), np.uint8)[1:]
     .view("f8")),
    ("big endian", lambda: np.arange(5).astype(">i4")),
    ("big endian strided", lambda: np.arange(8).astype(">f8")[::2]),
    ("read only", lambda: np.frombuffer(b"abcd", np.uint8)),
])
def test_layouts(name, made):
    given = made()
    got = as_sampled(given)
    assert got.dtype == given.dtype.newbyteorder("=") and got.flags.c_contiguous
    np.testing.assert_array_equal(got, given)


@pytest.mark.parametrize("given, dtype", [
    (1, "int64"), (-2**63, "int64"), (2**64 - 1, "uint64"), (1.5, "float64"), (True, "bool"),
    (1j, "complex128"), (np.float32(2), "float32"), (np.uint8(3), "uint8"),
    ([1, 2], "int64"), ([1.0, 2], "float64"), (((True,),), "bool"),
    (array.array("f", [1, 2]), "float32"), (memoryview(b"ab"), "uint8"),
])
def test_scalars_and_lists_become_arrays(given, dtype):
    got = as_sampled(given)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.asarray(given))


@pytest.mark.parametrize("given, bytes_", [
    ("text", b"text"), (b"\x00\xff\x00", b"\x00\xff\x00"), ("", b""), ("é\U0001f600", None),
])
def test_a_string_is_sampled_as_bytes(given, bytes_):
    got = as_sampled(np.array(given, object))
    assert got.dtype == object and got.shape == ()
    assert got.item() == (given.encode() if bytes_ is None else bytes_)


def test_string_arrays():
    for given in (np.array(["a", "bcd", ""]), np.array([b"a", b"bcd", b""]),
                  np.array(["a", b"bcd", ""], object), ["a", "bcd", ""]):
        got = as_sampled(given)
        assert got.dtype == object and got.tolist() == [b"a", b"bcd", b""]
    assert as_sampled(np.array([["a", "b"], ["c", "d"]])[:, 1]).tolist() == [b"b", b"d"]
    assert as_sampled(np.empty((0, 2), object)).shape == (0, 2)


def test_string_dtype_of_numpy_2():
    strings = pytest.importorskip("numpy.dtypes")
    if not hasattr(strings, "StringDType"):
        pytest.skip("NumPy 1 has none")
    given = np.array(["a", "much longer than the others"], strings.StringDType())
    assert as_sampled(given).tolist() == [b"a", b"much longer than the others"]


@pytest.mark.parametrize("given", [
    np.zeros(2, "datetime64[s]"), np.zeros(2, "timedelta64[s]"), np.zeros(2, "longdouble"),
    np.zeros(2, [("a", "i4"), ("b", "f4")]), np.zeros(2, "V3"),
], ids=str)
def test_unsupported_dtypes_are_refused(given):
    with pytest.raises(TypeError, match="has no place here"):
        as_sampled(given)


def test_objects_must_be_strings():
    with pytest.raises(TypeError, match="must hold str or bytes, got int"):
        as_sampled(np.array(["a", 1], object))
    with pytest.raises(TypeError, match="got NoneType"):
        as_sampled(np.empty(2, object))
    with pytest.raises(UnicodeEncodeError):
        as_sampled(np.array(["\ud800"], object))


def test_rank_is_bounded():
    with pytest.raises(ValueError, match="at most 8 dimensions here, got 9"):
        as_sampled(np.zeros((1,) * 9))


def test_errors_raised_by_values_propagate():
    class Broken:
        def __array__(self, *args, **kwargs):
            raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        as_sampled(Broken())


def test_objects_that_are_arrays_elsewhere():
    class Elsewhere:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3, dtype=np.float32)

    got = as_sampled(Elsewhere())
    assert got.dtype == np.float32 and got.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4"])
def test_dtypes_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = np.array([0, 1, 2, 3]).astype(getattr(ml_dtypes, name))
    got = as_sampled(given)
    assert got.dtype == given.dtype
    assert got.astype(np.float32).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name, raw", [("qint8", "i1"), ("quint8", "u1"), ("qint16", "i2"),
                                       ("quint16", "u2"), ("qint32", "i4")])
def test_quantized_dtypes_of_tensorflow(name, raw):
    given = np.array([(1,), (2,)], [(name, raw)])
    got = as_sampled(given)
    assert got.dtype == given.dtype and got[name].tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [
    [("qint32", "i1")], [("qint8", "i4")], [("qint32", ">i4")], [("qint32", "f4")],
    [("qint32", "i1", 4)], {"names": ["qint8"], "formats": ["i1"], "itemsize": 4},
], ids=str)
def test_structures_that_are_only_called_like_a_quantized_dtype(dtype):
    with pytest.raises(TypeError, match="has no place here"):
        as_sampled(np.zeros(4096, dtype))


def test_ml_dtypes_is_looked_up_once():
    pytest.importorskip("ml_dtypes")
    code = """if True:
        import sys
        import ml_dtypes, numpy as np
        from reprise._core import as_sampled
        given, asked, error = np.ones(2, ml_dtypes.bfloat16), [], KeyboardInterrupt
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "ml_dtypes":
                    asked.append(name)
                    raise error
        sys.meta_path.insert(0, Finder())
        del sys.modules["ml_dtypes"]
        try:
            as_sampled(given)
        except KeyboardInterrupt:
            asked.append("stopped")
        error = ImportError
        print([str(as_sampled(given).dtype) for _ in range(3)], asked)
        """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=120)
    assert done.stderr == ""
    assert done.stdout.strip() == (
        "['uint16', 'uint16', 'uint16'] ['ml_dtypes', 'stopped', 'ml_dtypes']")


def test_subclasses_of_arrays():
    class Special(np.ndarray):
        pass

    got = as_sampled(np.arange(4).view(Special))
    assert type(got) is np.ndarray and got.tolist() == [0, 1, 2, 3]
