# SPDX-License-Identifier: Apache-2.0
"""Nests: structures of dicts, lists and tuples, by the rules of dm-tree.

Dicts and other mappings are flattened in the order of their sorted keys, and lists, tuples and
named tuples in their own order. Any other object, such as None or a string, is a leaf. The
functions have the same names and arguments as in dm-tree, which has more of them.

    >>> flatten({"b": 2, "a": [0, 1]})
    [0, 1, 2]
    >>> map_structure(lambda x: x + 1, {"b": 2, "a": [0, 1]})
    {'b': 3, 'a': [1, 2]}
"""

from __future__ import annotations

import collections.abc
from typing import Any, Callable, Iterable, List, Sequence, Tuple

from reprise._core import Structure, flatten, is_nested

__all__ = [
    "Structure",
    "assert_same_structure",
    "flatten",
    "flatten_up_to",
    "flatten_with_path",
    "is_nested",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_path",
    "unflatten_as",
]

Nest = Any
Path = Tuple[Any, ...]


def unflatten_as(structure: Nest, flat_sequence: Iterable[Any]) -> Nest:
    """Returns a nest like `structure` with the leaves of `flat_sequence`.

    >>> unflatten_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    return Structure(structure).pack(list(flat_sequence))


def _columns(structures: Sequence[Nest], check_types: bool) -> Tuple[Structure, List[List[Any]]]:
    """Returns the structure of the first nest, and the leaves of each nest."""
    if not structures:
        raise ValueError("at least one nest is needed")
    shape = Structure(structures[0])
    if check_types:
        return shape, [shape.flatten(s) for s in structures]
    depths = [len(path) for path in shape.paths()]
    for other in structures[1:]:
        if [len(path) for path in Structure(other).paths()] != depths:
            shape.flatten(other)  # raises an error that says how they differ
    return shape, [flatten(s) for s in structures]


def map_structure(func: Callable[..., Any], *structures: Nest, check_types: bool = True) -> Nest:
    """Applies `func` to the leaves of nests of one structure; returns a nest of the results.

    >>> map_structure(max, {"a": 1, "b": 5}, {"a": 3, "b": 4})
    {'a': 3, 'b': 5}
    """
    shape, columns = _columns(structures, check_types)
    return shape.pack([func(*leaves) for leaves in zip(*columns)])


def flatten_with_path(structure: Nest) -> List[Tuple[Path, Any]]:
    """Returns the leaves, each with its path: a tuple of keys and indices.

    >>> flatten_with_path({"a": [7, 8]})
    [(('a', 0), 7), (('a', 1), 8)]
    """
    return list(zip(Structure(structure).paths(), flatten(structure)))


def map_structure_with_path(func: Callable[..., Any], *structures: Nest,
                            check_types: bool = True) -> Nest:
    """Calls `func(path, *leaves)` for each leaf. Returns a nest of the results like the first nest.
    """
    shape, columns = _columns(structures, check_types)
    return shape.pack([func(*row) for row in zip(shape.paths(), *columns)])


def assert_same_structure(a: Nest, b: Nest, check_types: bool = True) -> None:
    """Raises ValueError if the nests differ in structure, and TypeError if they differ in type, as
    a list and a tuple do. Mappings of different types are equal if they have the same keys."""
    _columns((a, b), check_types)


def _children(nest: Nest) -> Sequence[Tuple[Any, Any]]:
    """Returns the parts of a nest in flattened order, each with its key."""
    if isinstance(nest, collections.abc.Mapping):
        return [(key, nest[key]) for key in sorted(nest)]
    fields = getattr(type(nest), "_fields", None) if isinstance(nest, tuple) else None
    return list(zip(fields, nest)) if fields is not None else list(enumerate(nest))


def flatten_up_to(shallow_structure: Nest, input_structure: Nest) -> List[Any]:
    """Returns the parts of `input_structure` at the leaves of `shallow_structure`.

    >>> flatten_up_to({"a": 0, "b": 0}, {"a": [1, 2], "b": 3})
    [[1, 2], 3]
    """
    if not is_nested(shallow_structure):
        return [input_structure]
    if not is_nested(input_structure):
        raise TypeError(f"expected a nest like {shallow_structure!r}, got {input_structure!r}")
    shallow, deep = _children(shallow_structure), _children(input_structure)
    mappings = [isinstance(s, collections.abc.Mapping)
                for s in (shallow_structure, input_structure)]
    if not all(mappings) and type(shallow_structure) is not type(input_structure):
        raise TypeError(f"expected a {type(shallow_structure).__name__}, "
                        f"got {type(input_structure).__name__}")
    if [key for key, _ in shallow] != [key for key, _ in deep]:
        raise ValueError(f"the two structures have other keys: {[k for k, _ in shallow]} and "
                         f"{[k for k, _ in deep]}")
    return [x for (_, s), (_, d) in zip(shallow, deep) for x in flatten_up_to(s, d)]


def map_structure_up_to(shallow_structure: Nest, func: Callable[..., Any],
                        *structures: Nest) -> Nest:
    """Applies `func` to the parts of the nests at the leaves of `shallow_structure`."""
    if not structures:
        raise ValueError("map_structure_up_to needs at least one nest")
    columns = [flatten_up_to(shallow_structure, s) for s in structures]
    return unflatten_as(shallow_structure, [func(*row) for row in zip(*columns)])
