# SPDX-License-Identifier: Apache-2.0
"""Specs of tensors (shape, dtype and name), and nests of specs.

A signature is a nest of `TensorSpec`. `convert` makes one from the specs of other libraries, which
it does not import: `tf.TensorSpec`, `dm_env.specs.Array`, the spaces of gymnasium, and
`jax.ShapeDtypeStruct`. It also takes arrays, and uses their shape and dtype.

    >>> import numpy as np
    >>> convert({"obs": np.zeros((84, 84), np.uint8), "reward": 0.0})
    {'obs': TensorSpec((84, 84), uint8), 'reward': TensorSpec((), float64)}

In a process that has imported TensorFlow, the functions that Reverb has too return `tf.TensorSpec`, as
in Reverb: see `as_reverb`. `convert` returns our own specs everywhere.
"""

from __future__ import annotations

import collections
import difflib
import operator
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from reprise import _core
from reprise._check import suggest_names

__all__ = ["BoundedTensorSpec", "TensorShape", "TensorSpec", "as_reverb", "convert", "is_spec"]


class TensorShape(tuple):
    """A tuple of sizes, where None is any size, with the usual two attributes of `tf.TensorShape`.

    >>> TensorShape((None, 3)).as_list()
    [None, 3]
    """

    __slots__ = ()

    def as_list(self) -> List[Optional[int]]:
        """Returns the sizes as a list."""
        return list(self)

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self)


Shape = Optional[TensorShape]


def _shape(shape: Any) -> Shape:
    """Returns a tuple of sizes, where None is any size, or None for any shape. A size of -1 becomes
    None."""
    if shape is None:
        return None
    if hasattr(shape, "as_list"):  # tf.TensorShape
        return None if shape.rank is None else _shape(shape.as_list())
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    dims = TensorShape(_size(size, shape) for size in shape)
    if any(d is not None and d < 0 for d in dims):
        raise ValueError(f"a dimension must be >= 0, or None, got shape {dims}")
    return dims


def _size(size: Any, shape: Any) -> Optional[int]:
    try:
        return None if size is None or size == -1 else operator.index(size)
    except TypeError:
        raise TypeError(f"a size must be an integer, or None for any size, got {size!r} in the shape "
                        f"{shape!r}") from None


def _check_order(shape: Any, dtype: Any) -> None:
    """Raises TypeError if the shape is no shape, for instance since it is the dtype."""
    if shape is None or hasattr(shape, "as_list") or isinstance(shape, (int, np.integer)):
        return
    if isinstance(shape, (str, bytes, type)) or not hasattr(shape, "__iter__"):
        sizes = dtype if isinstance(dtype, (tuple, list)) else (4,)
        raise TypeError("the shape comes before the dtype, as in "
                        f"TensorSpec({tuple(sizes)}, np.float32), got {shape!r} as the shape")


def _unknown_dtype(dtype: Any) -> TypeError:
    if not isinstance(dtype, str):
        return TypeError(f"a dtype is what numpy.dtype() takes, such as np.float32, got {dtype!r}")
    near = difflib.get_close_matches(dtype, _DTYPE_NAMES, 1)
    return TypeError(f"unknown dtype {dtype!r}"
                     + (f", did you mean {near[0]!r}?" if near else f": there are {', '.join(_DTYPE_NAMES)}"))


_DTYPE_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                "float16", "float32", "float64", "complex64", "complex128", "str")


def _dtype(dtype: Any) -> np.dtype:
    """Returns the NumPy dtype. `dtype` may also be one of TensorFlow or torch."""
    if hasattr(dtype, "as_numpy_dtype"):  # tf.DType
        dtype = dtype.as_numpy_dtype
    elif type(dtype).__module__ == "torch":
        dtype = str(dtype).rpartition(".")[2]
        if dtype == "bfloat16":
            import ml_dtypes
            dtype = ml_dtypes.bfloat16
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise _unknown_dtype(dtype) from None
    return np.dtype(object) if dtype.kind in "SUT" else dtype


def _dtype_text(dtype: np.dtype) -> str:
    return "string" if dtype == object else dtype.name


@suggest_names
class TensorSpec:
    """The shape, the dtype and the optional name of a tensor. Immutable; compared by value.

    `shape` is a tuple in which None stands for any size, or None for any shape. `dtype` is
    anything that `numpy.dtype` takes; str, bytes and object are strings.

    >>> TensorSpec((None, 3), "float32", "positions")
    TensorSpec((None, 3), float32, 'positions')
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = np.float32, name: Optional[str] = None):
        _check_order(shape, dtype)
        object.__setattr__(self, "_shape", _shape(shape))
        object.__setattr__(self, "_dtype", _dtype(dtype))
        object.__setattr__(self, "_name", name)

    shape: Shape = property(lambda self: self._shape, doc="A tuple, or None for any shape.")
    dtype: np.dtype = property(lambda self: self._dtype, doc="A `numpy.dtype`.")
    name: Optional[str] = property(lambda self: self._name, doc="A str, or None.")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def _fields(self) -> Tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def __reduce__(self):
        return type(self), self._fields()

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return type(self) is type(other) and self._key() == other._key()

    def _key(self) -> Tuple[Any, ...]:
        return self._fields()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        name = "" if self._name is None else f", {self._name!r}"
        return f"{type(self).__name__}({self._shape}, {_dtype_text(self._dtype)}{name})"

    def is_compatible_with(self, value: Any) -> bool:
        """Returns True if an array or a spec has this dtype and a shape that matches this one.

        >>> TensorSpec((None, 2), "int32").is_compatible_with(np.zeros((5, 2), np.int32))
        True
        """
        if not isinstance(value, TensorSpec):
            value = convert(value)
        if self._dtype != value._dtype:
            return False
        if self._shape is None or value._shape is None:
            return True
        return len(self._shape) == len(value._shape) and all(
            a is None or b is None or a == b for a, b in zip(self._shape, value._shape))


@suggest_names
class BoundedTensorSpec(TensorSpec):
    """A `TensorSpec` whose values lie between `minimum` and `maximum`, both included.

    Servers store the shapes and dtypes of a signature, but not the bounds.
    """

    __slots__ = ("_maximum", "_minimum")

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any,
                 name: Optional[str] = None):
        super().__init__(shape, dtype, name)
        for slot, bound in (("_minimum", minimum), ("_maximum", maximum)):
            array = np.array(bound, dtype=self._dtype)
            array.flags.writeable = False
            object.__setattr__(self, slot, array)

    minimum: np.ndarray = property(lambda self: self._minimum, doc="An array, not writable.")
    maximum: np.ndarray = property(lambda self: self._maximum, doc="An array, not writable.")

    def _fields(self) -> Tuple[Any, ...]:
        return self._shape, self._dtype, self._minimum, self._maximum, self._name

    def _key(self) -> Tuple[Any, ...]:
        bounds = tuple((b.shape, b.tobytes()) for b in (self._minimum, self._maximum))
        return (self._shape, self._dtype, self._name) + bounds

    def __repr__(self) -> str:
        name = "" if self._name is None else f", {self._name!r}"
        return (f"{type(self).__name__}({self._shape}, {_dtype_text(self._dtype)}, "
                f"{self._minimum.tolist()}, {self._maximum.tolist()}{name})")


def is_spec(leaf: Any) -> bool:
    """Returns True for a spec of any library: an object with a shape and a dtype, but no data."""
    if isinstance(leaf, TensorSpec):
        return True
    return (hasattr(leaf, "shape") and hasattr(leaf, "dtype")
            and not isinstance(leaf, (np.ndarray, np.generic)) and not _has_data(leaf))


def _has_data(leaf: Any) -> bool:
    return hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__")


def _convert_spec(leaf: Any) -> TensorSpec:
    name = getattr(leaf, "name", None)
    name = name if isinstance(name, str) else None
    low, high = getattr(leaf, "minimum", None), getattr(leaf, "maximum", None)
    if low is None and high is None:  # gymnasium.spaces.Box
        low, high = getattr(leaf, "low", None), getattr(leaf, "high", None)
    if low is not None and high is not None and not callable(low):
        return BoundedTensorSpec(leaf.shape, leaf.dtype, low, high, name)
    return TensorSpec(leaf.shape, leaf.dtype, name)


def _convert_leaf(leaf: Any) -> TensorSpec:
    if isinstance(leaf, TensorSpec):
        return leaf
    if type(leaf).__name__ == "Text" and hasattr(leaf, "max_length"):  # gymnasium.spaces.Text
        return TensorSpec((), str)
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return _convert_spec(leaf)
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        array = np.asarray(leaf)
        return TensorSpec(array.shape, array.dtype)
    raise ValueError(f"Unsupported signature spec: {leaf!r} has no shape and no dtype")


def _plain(nest: Any) -> Any:
    """Converts gymnasium's spaces that contain spaces to dicts and tuples."""
    spaces = getattr(nest, "spaces", None)
    if spaces is not None and hasattr(nest, "contains"):
        nest = dict(spaces) if hasattr(spaces, "items") else tuple(spaces)
    if type(nest) is dict:
        return {key: _plain(value) for key, value in nest.items()}
    if type(nest) in (list, tuple):
        return type(nest)(_plain(value) for value in nest)
    return nest


def convert(nest: Any) -> Any:
    """Returns a nest of `TensorSpec` for a nest of objects that have a shape and a dtype.

    None stays None. Raises ValueError for a leaf that is neither a spec nor an array.
    """
    if nest is None:
        return None
    nest = _plain(nest)
    shape = _core.Structure(nest)
    return shape.pack([_convert_leaf(leaf) for leaf in shape.flatten(nest)])


def _loaded_tensorflow() -> Any:
    """Returns the module if the process has imported TensorFlow, otherwise None. Imports nothing: a
    module of `importlib.util.LazyLoader` would be loaded by the first look at it."""
    module = sys.modules.get("tensorflow")
    if module is None or type(module).__module__ == "importlib.util":
        return None
    names = ("TensorSpec", "as_dtype", "string")  # a module that is being imported lacks some
    return module if all(hasattr(module, name) for name in names) else None


def as_reverb(nest: Any) -> Any:
    """Returns a nest of our specs as Reverb would return it to this process.

    With TensorFlow imported, that is a nest of `tf.TensorSpec` with the same shapes, dtypes and names.
    Otherwise, or if TensorFlow lacks one of the dtypes, it is the nest itself. `TableInfo.signature`
    and `structured.infer_signature` are such nests.
    """
    tensorflow = _loaded_tensorflow()
    if nest is None or tensorflow is None:
        return nest
    shape = _core.Structure(nest)
    try:
        return shape.pack([_tensorflow_spec(tensorflow, leaf) for leaf in shape.flatten(nest)])
    except TypeError:  # of as_dtype()
        return nest


def _tensorflow_spec(tensorflow: Any, spec: TensorSpec) -> Any:
    is_string = spec.dtype == np.dtype(object)
    dtype = tensorflow.string if is_string else tensorflow.as_dtype(spec.dtype)
    return tensorflow.TensorSpec(spec.shape, dtype, spec.name)


# The C extension calls these functions to make nests from signatures of a server.

Pairs = List[Tuple[Any, Any]]
_named_tuples: Dict[Tuple[str, Tuple[str, ...]], type] = {}


def _list(pairs: Pairs) -> List[Any]:
    return [value for _, value in pairs]


def _tuple(pairs: Pairs) -> Tuple[Any, ...]:
    return tuple(value for _, value in pairs)


def _dict(pairs: Pairs) -> Dict[str, Any]:
    return dict(pairs)


def _named_tuple(name: Optional[str], pairs: Pairs) -> Any:
    """Returns a named tuple. Calls with the same name and fields use the same class."""
    fields = tuple(key for key, _ in pairs)
    key = (name or "Nest", fields)
    if key not in _named_tuples:
        try:
            _named_tuples[key] = collections.namedtuple(key[0], fields)
        except ValueError:  # the name from a server may not be a Python identifier
            return _dict(pairs)
    return _named_tuples[key](*_tuple(pairs))
