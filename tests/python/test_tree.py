# SPDX-License-Identifier: Apache-2.0
"""Nests: flattened, compared and packed as dm-tree does it."""

import collections
import pickle
import types

import numpy as np
import pytest
from reprise import tree

Point = collections.namedtuple("Point", "x y")
Ordered = collections.OrderedDict


class Row(tuple):
    """A tuple that is not a named tuple."""


class Shelf(collections.abc.Mapping):
    """A mapping that is not a dict. It makes a new value whenever one is read."""

    def __init__(self, parts=()):
        self.parts = dict(parts)

    def __getitem__(self, key):
        return [self.parts[key]]

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)


# nest, its leaves, their paths
CASES = [
    (5, [5], [()]),
    (None, [None], [()]),
    ("text", ["text"], [()]),
    (b"text", [b"text"], [()]),
    (bytearray(b"text"), [bytearray(b"text")], [()]),
    ({1, 2}, [{1, 2}], [()]),
    ({}, [], []),
    ([], [], []),
    ((), [], []),
    ([{}, [()]], [], []),
    ([1, None, 2], [1, None, 2], [(0,), (1,), (2,)]),
    ((1, (2,), [3]), [1, 2, 3], [(0,), (1, 0), (2, 0)]),
    ({"b": 1, "a": 2}, [2, 1], [("a",), ("b",)]),
    ({2: "x", 1: "y", 10: "z"}, ["y", "x", "z"], [(1,), (2,), (10,)]),
    (Ordered([("z", 1), ("a", [2, 3])]), [2, 3, 1], [("a", 0), ("a", 1), ("z",)]),
    (Point(1, {"k": 2}), [1, 2], [("x",), ("y", "k")]),
    (Point(y=[3], x=0), [0, 3], [("x",), ("y", 0)]),
    (Row([1, 2]), [1, 2], [(0,), (1,)]),
    (collections.deque([1, 2]), [1, 2], [(0,), (1,)]),
    (range(3), [0, 1, 2], [(0,), (1,), (2,)]),
    (types.MappingProxyType({"b": 0, "a": 1}), [1, 0], [("a",), ("b",)]),
    (collections.defaultdict(list, a=1), [1], [("a",)]),
    (Shelf({"q": 7, "p": 8}), [8, 7], [("p", 0), ("q", 0)]),
    ({"é": 1, "z": 2, "\U0001f600": 3}, [2, 1, 3], [("z",), ("é",), ("\U0001f600",)]),
]
IDS = [repr(case[0])[:40] for case in CASES]


@pytest.mark.parametrize("nest, leaves, paths", CASES, ids=IDS)
def test_flatten(nest, leaves, paths):
    assert tree.flatten(nest) == leaves
    assert tree.Structure(nest).flatten(nest) == leaves
    assert tree.Structure(nest).leaf_count == len(leaves)


@pytest.mark.parametrize("nest, leaves, paths", CASES, ids=IDS)
def test_paths(nest, leaves, paths):
    assert tree.Structure(nest).paths() == paths
    assert tree.flatten_with_path(nest) == list(zip(paths, leaves))
    for i, path in enumerate(paths):
        assert tree.Structure(nest).path(i) == "/".join(str(step) for step in path)


@pytest.mark.parametrize("nest, leaves, paths", CASES, ids=IDS)
def test_dm_tree_agrees(nest, leaves, paths):
    theirs = pytest.importorskip("tree", reason="dm-tree is not installed")
    assert theirs.flatten(nest) == leaves
    if isinstance(nest, bytearray):
        pytest.skip("whose paths do not go with its leaves, for a bytearray")
    assert theirs.flatten_with_path(nest) == list(zip(paths, leaves))
    assert theirs.is_nested(nest) == tree.is_nested(nest)


@pytest.mark.parametrize("nest, leaves, paths", CASES, ids=IDS)
def test_pack_is_the_inverse(nest, leaves, paths):
    if isinstance(nest, (range, Shelf)):
        pytest.skip("types that cannot be made from their items")
    packed = tree.unflatten_as(nest, [str(x) for x in leaves])
    assert tree.flatten(packed) == [str(x) for x in leaves]
    if tree.is_nested(nest):
        assert type(packed) is type(nest)
        if isinstance(nest, collections.abc.Mapping):
            assert list(packed) == list(nest), "keys come in the order they had"


def test_a_mapping_whose_type_cannot_be_called_becomes_a_dict():
    class Odd(collections.OrderedDict):
        def __init__(self):
            super().__init__(a=1)

    assert type(tree.map_structure(lambda x: x, Odd())) is dict


def test_a_defaultdict_keeps_its_factory():
    nest = tree.map_structure(str, collections.defaultdict(list, a=1))
    assert nest == {"a": "1"} and nest["b"] == []


def test_structures_compare_by_value():
    a, b = tree.Structure({"x": 1, "y": [2]}), tree.Structure({"y": ["?"], "x": None})
    assert a == b and hash(a) == hash(b) and a != tree.Structure({"x": 1, "y": (2,)})
    assert a != "something else"
    assert tree.Structure({"x": 1}) == tree.Structure(Ordered(x=1)), "any mapping will do"


def test_named_tuples_of_one_name_are_alike():
    other = collections.namedtuple("Point", "x y")
    assert tree.Structure(Point(1, 2)) == tree.Structure(other(3, 4))
    assert tree.Structure(Point(1, 2)).flatten(other(3, 4)) == [3, 4]
    assert tree.Structure(Point(1, 2)) != tree.Structure((1, 2))
    for fields in ("x z", "x y z"):
        another = collections.namedtuple("Point", fields)
        nest = another(*range(len(another._fields)))
        assert tree.Structure(Point(1, 2)) != tree.Structure(nest)
        with pytest.raises((TypeError, ValueError)):
            tree.Structure(Point(1, 2)).flatten(nest)


def test_structures_can_be_pickled():
    shape = tree.Structure({"b": [1, Point(2, ())], "a": Ordered(z=1, y=2)})
    copy = pickle.loads(pickle.dumps(shape))
    assert copy == shape and copy.paths() == shape.paths()
    assert repr(copy) == repr(shape) and "Ellipsis" in repr(shape)


@pytest.mark.parametrize("a, b, error", [
    ([1], (1,), TypeError),
    ([1, 2], (1,), TypeError),
    ([1, 2], [1], ValueError),
    ([1], [1, 2], ValueError),
    ({"a": 1}, {"b": 1}, ValueError),
    ({"a": 1}, {"a": 1, "b": 1}, ValueError),
    ({"a": 1}, {"a": [1]}, ValueError),
    ({"a": [1]}, {"a": 1}, ValueError),
    (1, [1], ValueError),
    ({"a": 1}, [1], TypeError),
    (Point(1, 2), (1, 2), TypeError),
])
def test_nests_that_differ(a, b, error):
    for call in (tree.assert_same_structure, lambda a, b: tree.Structure(a).flatten(b),
                 lambda a, b: tree.map_structure(lambda x, y: x, a, b)):
        with pytest.raises(error, match="don't have the same nested structure"):
            call(a, b)


def test_types_need_not_be_checked():
    assert tree.map_structure(max, [1, 5], (3, 4), check_types=False) == [3, 5]
    tree.assert_same_structure([1], (1,), check_types=False)
    with pytest.raises(ValueError):
        tree.assert_same_structure([1], [[1]], check_types=False)


def test_map_structure_with_path():
    nest = {"a": [1, 2], "b": 3}
    paths = tree.map_structure_with_path(lambda path, x: (path, x).__repr__(), nest)
    assert paths == {"a": ["(('a', 0), 1)", "(('a', 1), 2)"], "b": "(('b',), 3)"}


def test_flatten_and_map_up_to_a_shallow_structure():
    assert tree.flatten_up_to({"a": 0, "b": [0]}, {"b": [[5]], "a": (1, 2)}) == [(1, 2), [5]]
    assert tree.map_structure_up_to([0, 0], len, [(1,), (1, 2)]) == [1, 2]
    for shallow, deep, error in [({"a": 0}, {"a": 0, "b": 0}, ValueError), ([0], (0,), TypeError),
                                 ([0], 0, TypeError)]:
        with pytest.raises(error):
            tree.flatten_up_to(shallow, deep)


def test_errors_name_their_cause():
    with pytest.raises(TypeError, match="sortable keys only, got .*'a'"):
        tree.flatten({1: 0, "a": 0})
    with pytest.raises(ValueError, match="2 leaves cannot be packed with 3"):
        tree.unflatten_as([0, 0], [1, 2, 3])
    with pytest.raises(IndexError, match="no leaf 1 among 1"):
        tree.Structure([0]).path(1)
    with pytest.raises(ValueError, match="at least one nest"):
        tree.map_structure(len)


def nested(depth):
    nest = 0
    for _ in range(depth):
        nest = [nest]
    return nest


def test_depth_is_bounded():
    assert tree.flatten(nested(64)) == [0]
    with pytest.raises(ValueError, match="at most 64 levels"):
        tree.flatten(nested(65))
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="at most 64 levels"):
        tree.Structure(loop)
    with pytest.raises(ValueError):
        tree.Structure([[0]]).flatten(loop)


def test_many_leaves():
    nest = {f"{i:05}": [i, i] for i in range(1000)}
    assert tree.flatten(nest) == [i for i in range(1000) for _ in range(2)]
    assert tree.map_structure(lambda x: x, nest) == nest


def test_errors_raised_by_containers_propagate():
    class Broken(Shelf):
        def __getitem__(self, key):
            raise ZeroDivisionError(key)

    class Short(Shelf):
        def __getitem__(self, key):
            raise KeyError(key)

    with pytest.raises(ZeroDivisionError):
        tree.flatten(Broken({"a": 1}))
    with pytest.raises(ZeroDivisionError):
        tree.Structure({"a": 1}).flatten(Broken({"a": 1}))
    with pytest.raises(KeyError, match="a"):
        tree.flatten(Short({"a": 1}))


def test_a_nest_may_change_while_it_is_flattened():
    """Leaves are referenced, not borrowed: a key that clears the dict meanwhile does no harm."""

    class Thief(str):
        victim = None
        __hash__ = str.__hash__

        def __eq__(self, other):
            if Thief.victim is not None:
                Thief.victim.clear()
            return str.__eq__(self, other)

    shape = tree.Structure({"a": 0, "b": 0})
    for _ in range(100):
        nest = {"a": np.zeros(3), Thief("b"): np.ones(3)}
        Thief.victim = nest
        try:
            shape.flatten(nest)
        except (ValueError, KeyError, RuntimeError):
            pass
        Thief.victim = None


def test_arrays_and_scalars_are_leaves():
    leaves = [np.zeros((2, 2)), np.float32(1), True, 3.5, 2j, np.array(["a"]), memoryview(b"ab")]
    assert all(a is b for a, b in zip(tree.flatten(leaves), leaves))
    assert not any(tree.is_nested(x) for x in leaves)
