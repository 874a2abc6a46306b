# SPDX-License-Identifier: Apache-2.0
"""Specs, conversion from other libraries, and signatures that servers return."""

import collections
import enum
import importlib.util
import pickle
import sys
import types

import numpy as np
import pytest
import reprise
from reprise import specs, structured, tree
from reprise._core import signature_roundtrip
from reprise.specs import BoundedTensorSpec, TensorSpec, convert

Point = collections.namedtuple("Point", "x y")


def test_a_spec_has_its_shape_dtype_and_name():
    spec = TensorSpec([None, 3], "float32", "positions")
    assert spec.shape == (None, 3) and spec.dtype == np.float32 and spec.name == "positions"
    assert repr(spec) == "TensorSpec((None, 3), float32, 'positions')"
    assert TensorSpec(()).dtype == np.float32 and TensorSpec(None).shape is None
    assert TensorSpec(5).shape == (5,) and TensorSpec((-1, 2)).shape == (None, 2)


@pytest.mark.parametrize("dtype", [str, bytes, object, "S3", "U5"])
def test_strings(dtype):
    assert TensorSpec((), dtype).dtype == object
    assert repr(TensorSpec((), dtype)) == "TensorSpec((), string)"


def test_specs_compare_by_value():
    assert TensorSpec((2,), int) == TensorSpec((2,), "int64")
    assert hash(TensorSpec((2,), int)) == hash(TensorSpec((2,), "int64"))
    for other in (TensorSpec((3,), int), TensorSpec((2,), "int32"), TensorSpec((2,), int, "a"),
                  BoundedTensorSpec((2,), int, 0, 1), "TensorSpec"):
        assert TensorSpec((2,), int) != other
    assert BoundedTensorSpec((), int, 0, 1) == BoundedTensorSpec((), int, 0, 1)
    assert BoundedTensorSpec((), int, 0, 1) != BoundedTensorSpec((), int, 0, 2)
    assert hash(BoundedTensorSpec((), int, 0, 1)) == hash(BoundedTensorSpec((), int, 0, 1))


def test_specs_cannot_be_changed():
    spec = BoundedTensorSpec((2,), int, 0, [1, 2])
    for name in ("shape", "dtype", "name", "minimum", "something"):
        with pytest.raises(AttributeError):
            setattr(spec, name, 1)
    with pytest.raises(ValueError):
        spec.maximum[0] = 5
    assert spec.maximum.tolist() == [1, 2] and spec.minimum.dtype == np.int64


@pytest.mark.parametrize("spec", [TensorSpec((None,), "uint8", "a"), TensorSpec(None, str),
                                  BoundedTensorSpec((2,), "f4", [0, 0], 1, "b")])
def test_specs_can_be_pickled(spec):
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_mistakes():
    with pytest.raises(ValueError, match=r"a dimension must be >= 0, or None, got shape \(-2,\)"):
        TensorSpec((-2,))
    with pytest.raises(TypeError):
        TensorSpec((), "no such dtype")


@pytest.mark.parametrize("value, fits", [
    (np.zeros((5, 3), np.float32), True), (np.zeros((5, 3)), False), (np.zeros(3, "f4"), False),
    (np.zeros((5, 4), "f4"), False), (TensorSpec((None, None), "f4"), True),
    (TensorSpec(None, "f4"), True),
])
def test_compatibility(value, fits):
    assert TensorSpec((None, 3), "float32").is_compatible_with(value) is fits


# Fakes of classes of other libraries, so that these need not be installed. Later tests use the real
# libraries if they are installed.

class Shape:
    """A fake of tf.TensorShape."""

    def __init__(self, dims):
        self.dims = dims
        self.rank = None if dims is None else len(dims)

    def as_list(self):
        if self.dims is None:
            raise ValueError("unknown")
        return list(self.dims)


def tf_like(shape, dtype, **more):
    dtype = types.SimpleNamespace(as_numpy_dtype=dtype)
    return types.SimpleNamespace(shape=Shape(shape), dtype=dtype, **more)


class Space:
    def contains(self, x):
        return False


class Box(Space):
    def __init__(self, low, high, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)


class Discrete(Space):
    shape, dtype = (), np.dtype("int64")


class Dict(Space, collections.abc.Mapping):
    def __init__(self, spaces):
        self.spaces = spaces

    __getitem__ = lambda self, key: self.spaces[key]
    __iter__ = lambda self: iter(self.spaces)
    __len__ = lambda self: len(self.spaces)


class Tuple(Space, collections.abc.Sequence):
    def __init__(self, spaces):
        self.spaces = tuple(spaces)

    __getitem__ = lambda self, i: self.spaces[i]
    __len__ = lambda self: len(self.spaces)


class Text(Space):
    max_length = 5
    shape = dtype = None


def test_like_tensorflow():
    assert convert(tf_like((None, 2), np.int32, name="a")) == TensorSpec((None, 2), "int32", "a")
    assert convert(tf_like(None, np.bool_, name=None)) == TensorSpec(None, bool)
    assert convert(tf_like((), np.float32, name=None, minimum=0, maximum=[1])) == \
        BoundedTensorSpec((), "float32", 0, [1])
    assert convert(tf_like((), object, name=None)).dtype == object


def test_like_dm_env():
    array = types.SimpleNamespace(shape=(3,), dtype=np.dtype("f8"), name="obs")
    assert convert({"a": array}) == {"a": TensorSpec((3,), float, "obs")}


def test_like_gymnasium():
    space = Dict({"b": Box(0, 255, (4, 4), "u1"), "a": Tuple([Discrete(), Text()])})
    assert convert(space) == {"b": BoundedTensorSpec((4, 4), "u1", np.zeros((4, 4)),
                                                     np.full((4, 4), 255)),
                              "a": (TensorSpec((), "int64"), TensorSpec((), str))}
    assert type(convert(space)) is dict and type(convert(space)["a"]) is tuple
    assert convert([space])[0] == convert(space)


def test_arrays_stand_for_themselves():
    nest = {"a": np.zeros((2, 3), "f4"), "b": [1, 2.0, True, "x", np.int8(1)], "c": Point(0, 1j)}
    assert convert(nest) == {
        "a": TensorSpec((2, 3), "f4"),
        "b": [TensorSpec((), "i8"), TensorSpec((), "f8"), TensorSpec((), "?"),
              TensorSpec((), str), TensorSpec((), "i1")],
        "c": Point(TensorSpec((), "i8"), TensorSpec((), "c16")),
    }


def test_specs_of_reprise_are_unchanged():
    nest = [TensorSpec(()), {"a": BoundedTensorSpec((), "f4", 0, 1)}]
    assert convert(nest) == nest and convert(None) is None and convert({}) == {}


def test_other_leaves_are_refused():
    for leaf in (None, object(), enum, {1, 2}):
        with pytest.raises(ValueError, match="Unsupported signature spec: "):
            convert({"a": leaf})


def test_is_spec():
    assert specs.is_spec(TensorSpec(())) and specs.is_spec(tf_like((), int, name=None))
    assert not specs.is_spec(np.zeros(2)) and not specs.is_spec(np.float32(1))
    assert not specs.is_spec(1.0)


class FakeSpec:
    def __init__(self, shape, dtype, name):
        self.fields = shape, dtype, name

    def __eq__(self, other):
        return self.fields == other.fields


def fake_tensorflow(**names):
    """A module with the names that specs.as_reverb() uses. Its dtypes are texts."""
    def as_dtype(dtype):
        if dtype == np.uint64:
            raise TypeError("no such dtype")
        return f"tf.{dtype}"

    module = types.ModuleType("tensorflow")
    vars(module).update({"TensorSpec": FakeSpec, "as_dtype": as_dtype, "string": "tf.string", **names})
    return module


NEST = {"a": [TensorSpec((None, 2), "u1", "x")], "b": Point(TensorSpec(None, str), TensorSpec(()))}


def test_specs_for_a_process_with_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", fake_tensorflow())
    made = specs.as_reverb(NEST)
    assert made == {"a": [FakeSpec((None, 2), "tf.uint8", "x")],
                    "b": Point(FakeSpec(None, "tf.string", None), FakeSpec((), "tf.float32", None))}
    assert type(made["b"]) is Point and type(made["a"]) is list
    assert specs.as_reverb(TensorSpec((), int)) == FakeSpec((), "tf.int64", None)
    assert specs.as_reverb(None) is None


@pytest.mark.parametrize("module", [None, types.ModuleType("tensorflow")])
def test_specs_for_a_process_without_tensorflow(monkeypatch, module):
    """The module may also be None, or have been imported in part."""
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    assert specs.as_reverb(NEST) is NEST
    monkeypatch.delitem(sys.modules, "tensorflow")
    assert specs.as_reverb(NEST) is NEST


def test_specs_that_tensorflow_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", fake_tensorflow())
    nest = [TensorSpec((), "u8"), TensorSpec((), "u1")]
    assert specs.as_reverb(nest) is nest


def test_a_lazy_tensorflow_is_not_loaded(monkeypatch, tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise RuntimeError('it was loaded')\n")
    found = importlib.util.spec_from_file_location("tensorflow", tmp_path / "tensorflow.py")
    found.loader = importlib.util.LazyLoader(found.loader)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    assert specs.as_reverb(NEST) is NEST
    with pytest.raises(RuntimeError, match="it was loaded"):
        module.TensorSpec


def test_signatures_in_a_process_with_tensorflow(monkeypatch):
    """The functions of Reverb return TensorFlow's specs, and our own functions ours."""
    signature = {"x": TensorSpec((2, None), "f4", "x")}
    table = reprise.Table.queue("queue", 10, signature=signature)
    server = reprise.Server([table])
    client = server.localhost_client()
    pattern = structured.pattern_from_transform(signature, lambda step: {"y": step["x"][-3:]})
    config = structured.create_config(pattern, "queue")
    monkeypatch.setitem(sys.modules, "tensorflow", fake_tensorflow())

    theirs = {"x": FakeSpec((2, None), "tf.float32", "x")}
    assert table.info.signature == theirs
    assert client.server_info()["queue"].signature == theirs
    assert structured.infer_signature([config], signature) == {
        "y": FakeSpec((3, 2, None), "tf.float32", "y")}
    assert client.details()["queue"]["signature"] == table.details["signature"] == signature
    assert client.sampler("queue", 1).signature() == signature
    client.insert({"x": np.zeros((2, 5), np.float32)}, {"queue": 1.0})
    [sample] = client.sample("queue", emit_timesteps=False, unpack_as_table_signature=True)
    assert sample.data["x"].shape == (1, 2, 5)
    server.stop()


def test_the_real_tensorflow():
    tf = pytest.importorskip("tensorflow")
    assert convert(tf.TensorSpec((None, 2), tf.uint8, "x")) == TensorSpec((None, 2), "u1", "x")
    assert convert(tf.TensorSpec((), tf.string)).dtype == object


def test_the_real_gymnasium():
    spaces = pytest.importorskip("gymnasium").spaces
    space = spaces.Dict(o=spaces.Box(-1, 1, (3,), np.float32), a=spaces.Discrete(4),
                        m=spaces.MultiBinary(3), t=spaces.Tuple([spaces.Text(3)]))
    got = convert(space)
    assert got["o"].shape == (3,) and got["a"] == TensorSpec((), "int64")
    assert got["m"] == TensorSpec((3,), "int8") and got["t"] == (TensorSpec((), str),)


def test_the_real_dm_env():
    env = pytest.importorskip("dm_env")
    got = convert([env.specs.Array((2,), np.float32, "x"), env.specs.DiscreteArray(5)])
    assert got[0] == TensorSpec((2,), "f4", "x") and got[1].maximum == 4


def test_the_real_torch():
    torch = pytest.importorskip("torch")
    assert convert(torch.zeros(2, 3)) == TensorSpec((2, 3), "f4")


@pytest.mark.parametrize("nest", [
    TensorSpec((), "f4"),
    TensorSpec((None, 84, 84), "u1", "frames"),
    TensorSpec(None, str),
    [TensorSpec(()), TensorSpec((1,))],
    (TensorSpec(()), [TensorSpec((2,), bool)]),
    {"a": TensorSpec(()), "b": {"c": TensorSpec((), "i8"), "é": TensorSpec((), "c8")}},
    [{}, TensorSpec(()), ()],
], ids=str)
def test_signatures_come_back(nest):
    got = signature_roundtrip(nest)
    assert tree.Structure(got) == tree.Structure(nest)
    for mine, theirs in zip(tree.flatten(nest), tree.flatten(got)):
        assert theirs.shape == mine.shape and theirs.dtype == mine.dtype
        assert mine.name is None or theirs.name == mine.name


def test_named_tuples_come_back_as_such():
    got = signature_roundtrip(Point(TensorSpec(()), TensorSpec((2,))))
    assert type(got).__name__ == "Point" and got._fields == ("x", "y") and got.y.shape == (2,)
    assert type(signature_roundtrip(got)) is type(got)


def test_none_and_nothing_are_no_signature():
    assert signature_roundtrip(None) is None and signature_roundtrip({}) is None


def test_bounds_are_not_kept():
    assert signature_roundtrip(BoundedTensorSpec((), "f4", 0, 1)) == TensorSpec((), "f4")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                   "uint32", "uint64", "float16", "float32", "float64",
                                   "complex64", "complex128", "object"])
def test_dtypes_come_back(dtype):
    assert signature_roundtrip(TensorSpec((2,), dtype)) == TensorSpec((2,), dtype)


@pytest.mark.parametrize("nest, error, text", [
    ({1: TensorSpec(())}, TypeError, "a key of a signature must be a str, got 1"),
    (TensorSpec((), "M8[s]"), TypeError, "has no place here"),
    (TensorSpec((1,) * 9), ValueError, "at most 8 dimensions, got 9"),
    (TensorSpec((), name=5), TypeError, "name of a spec"),
    ([1], AttributeError, "shape"),
])
def test_mistakes_in_signatures(nest, error, text):
    with pytest.raises(error, match=text):
        signature_roundtrip(nest)


def test_convert_imports_no_framework():
    script = "import sys, reprise; reprise.specs.convert([1.0]); print(*sys.modules)"
    import subprocess
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=120, check=True)
    assert not {"tensorflow", "torch", "jax", "gymnasium", "dm_env"} & set(done.stdout.split())


def test_every_key_comes_back_as_it_was():
    nest = {"": TensorSpec(()), "a": {"": TensorSpec((2,))}}
    assert signature_roundtrip(nest) == nest


@pytest.mark.parametrize("nest", [
    {"a\0b": TensorSpec(())}, [TensorSpec((), np.int32, "a\0b")],
], ids=["key", "name"])
def test_text_with_a_null_character_is_refused(nest):
    with pytest.raises(ValueError, match="null character"):
        signature_roundtrip(nest)


def test_a_shape_is_a_tuple_with_names_of_tensorflow():
    shape = specs.TensorSpec((None, 3), np.int32).shape
    assert shape == (None, 3) and isinstance(shape, tuple) and repr(shape) == "(None, 3)"
    assert shape.as_list() == [None, 3] and shape.rank == 2
    assert type(shape)(shape) == shape and pickle.loads(pickle.dumps(shape)) == shape
    assert specs.TensorSpec(shape, np.int32).shape == shape
