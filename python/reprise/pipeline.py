# SPDX-License-Identifier: Apache-2.0
"""A dataset of NumPy arrays that has the usual methods of `tf.data.Dataset`."""

from __future__ import annotations

import abc
import itertools
from typing import Any, Callable, Iterable, Iterator, List, Optional

import numpy as np

from reprise import specs, tree

__all__ = ["Pipeline"]


class Pipeline(metaclass=abc.ABCMeta):
    """A dataset of NumPy arrays that has the usual methods of `tf.data.Dataset`:
    `as_numpy_iterator`, `batch`, `cache`, `element_spec`, `filter`, `map`, `prefetch`, `repeat`,
    `skip`, `take`, `unbatch` and `with_options`.

    `make` returns a new iterator over the elements each time it is called.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], element_spec: Any = None):
        self._make = make
        self._element_spec = element_spec

    def __iter__(self) -> Iterator[Any]:
        return self._make()

    @property
    def element_spec(self) -> Any:
        """A nest of `reprise.TensorSpec`; None after `map`."""
        return self._element_spec

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The same as `iter`, since all elements are NumPy arrays."""
        return iter(self)

    def batch(self, batch_size: int, drop_remainder: bool = False, **unused: Any) -> Pipeline:
        """Stacks `batch_size` elements at a time. The last batch may be smaller."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, got {batch_size}")

        def make() -> Iterator[Any]:
            elements = iter(self)
            while True:
                group = list(itertools.islice(elements, batch_size))
                if not group or (drop_remainder and len(group) < batch_size):
                    return
                yield tree.map_structure(lambda *leaves: np.stack(leaves), *group)

        first = int(batch_size) if drop_remainder else None
        return Pipeline(make, _with_dimension(self._element_spec, first))

    def unbatch(self) -> Pipeline:
        """The opposite of `batch`."""

        def make() -> Iterator[Any]:
            for element in self:
                shape, leaves = tree.Structure(element), tree.flatten(element)
                for i in range(len(leaves[0])):
                    yield shape.pack([leaf[i] for leaf in leaves])

        spec = self._element_spec
        if spec is not None:
            spec = tree.map_structure(lambda s: specs.TensorSpec(s.shape[1:], s.dtype), spec)
        return Pipeline(make, spec)

    def take(self, count: int) -> Pipeline:
        """The first `count` elements; -1: all."""
        if count < 0:
            return self
        return Pipeline(lambda: _first(self, count), self._element_spec)

    def skip(self, count: int) -> Pipeline:
        """All but the first `count` elements."""
        return Pipeline(lambda: itertools.islice(iter(self), count, None), self._element_spec)

    def map(self, map_func: Callable[..., Any], *unused: Any, **unused_too: Any) -> Pipeline:
        """Applies `map_func` to every element. The parts of a plain tuple are its arguments."""

        def call(element: Any) -> Any:
            return map_func(*element) if type(element) is tuple else map_func(element)

        return Pipeline(lambda: map(call, iter(self)))

    def filter(self, predicate: Callable[..., Any]) -> Pipeline:
        """Keeps the elements for which the predicate is true."""
        return Pipeline(lambda: filter(predicate, iter(self)), self._element_spec)

    def repeat(self, count: Optional[int] = None) -> Pipeline:
        """Repeats the elements `count` times; None and -1: without end."""

        def make() -> Iterator[Any]:
            forever = count is None or count < 0
            for _ in itertools.count() if forever else range(count):
                yield from iter(self)

        return Pipeline(make, self._element_spec)

    def prefetch(self, buffer_size: Any = None, **unused: Any) -> Pipeline:
        """Returns this dataset: samples are always prefetched."""
        return self

    def cache(self, filename: str = "") -> Pipeline:
        """Keeps the elements of the first complete iteration in memory, for later iterations. Use
        `take` to limit their number."""
        if filename:
            raise ValueError(f"elements are cached in memory only, not in {filename!r}")
        kept: Optional[List[Any]] = None

        def make() -> Iterator[Any]:
            nonlocal kept
            if kept is not None:
                yield from kept
                return
            seen = []
            for element in self:
                seen.append(element)
                yield element
            kept = seen

        return Pipeline(make, self._element_spec)

    def with_options(self, *unused: Any) -> Pipeline:
        """Returns this dataset: the options have no effect."""
        return self


def _first(elements: Iterable[Any], count: int) -> Iterator[Any]:
    """Yields the first `count` elements. Draws no element more than that."""
    if count > 0:
        for i, element in enumerate(elements, 1):
            yield element
            if i == count:
                return


def _with_dimension(spec: Any, first: Optional[int]) -> Any:
    if spec is None:
        return None

    def stacked(leaf: specs.TensorSpec) -> specs.TensorSpec:
        shape = None if leaf.shape is None else (first, *leaf.shape)
        return specs.TensorSpec(shape, leaf.dtype)

    return tree.map_structure(stacked, spec)
