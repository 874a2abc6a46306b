# SPDX-License-Identifier: Apache-2.0
"""The small value classes that are in Reverb's compiled module.

Reverb's own tests, and some libraries, import the classes of selectors, rate limiters and chunkers
from `reverb.pybind`. Here they are plain Python. The other classes of that module are in
`reprise._core`, and can be imported from here under the same names.
"""

from __future__ import annotations

import operator
from typing import Any, Optional, Tuple

from reprise import protos
from reprise._check import number as _number
from reprise._check import suggest_names
from reprise._core import TableExtension

__all__ = [
    "AutoTunedChunkerOptions",
    "Checkpointer",
    "ChunkerOptions",
    "ConstantChunkerOptions",
    "FifoSelector",
    "HeapSelector",
    "ItemSelector",
    "LifoSelector",
    "PrioritizedSelector",
    "RateLimiter",
    "Sampler",
    "TableExtension",
    "UniformSelector",
    "create_default_checkpointer",
    "selector_from_proto",
]


_MAX_EXPONENT = 100  # RP_MAX_EXPONENT


class _Value:
    """A value: compared and hashed by its type and its `_fields()`."""

    def _fields(self) -> Tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return self._fields() == other._fields()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._fields()))


class ItemSelector(_Value):
    """Selects the item that a table samples or removes. Use the subclasses in `reprise.selectors`.
    """

    _name = ""
    _exponent = 0.0

    def __init__(self) -> None:
        if type(self) is ItemSelector:
            raise TypeError("ItemSelector is a base class: use those of reprise.selectors")

    def _fields(self) -> Tuple[Any, ...]:
        return (self._name, self._exponent)

    def __repr__(self) -> str:
        return type(self).__name__

    @property
    def options(self) -> protos.KeyDistributionOptions:
        """The selector as a message, as in a `TableInfo`."""
        return selector_options(self._name, self._exponent)


class FifoSelector(ItemSelector):
    """Selects the item that was inserted first."""

    _name = "fifo"


class LifoSelector(ItemSelector):
    """Selects the item that was inserted last."""

    _name = "lifo"


class UniformSelector(ItemSelector):
    """Selects any item, with equal probability."""

    _name = "uniform"


@suggest_names
class PrioritizedSelector(ItemSelector):
    """Selects an item with a probability proportional to `priority ** priority_exponent`.

    The exponent is from -100 to 100. With a negative one, a remover prefers items of low priority. An item of priority 0 is never selected, unless all priorities are 0: then all items are equally
    likely.
    """

    _name = "prioritized"

    def __init__(self, priority_exponent: float) -> None:
        super().__init__()
        self._exponent = _number("priority_exponent", priority_exponent)
        if not abs(self._exponent) <= _MAX_EXPONENT:
            raise ValueError(f"priority_exponent must be from -{_MAX_EXPONENT} to {_MAX_EXPONENT}, got "
                             f"{priority_exponent!r}; 0 is uniform, 0.6 is usual, 1 is proportional")

    def __repr__(self) -> str:
        return f"PrioritizedSelector(priority_exponent={self._exponent:g})"


@suggest_names
class HeapSelector(ItemSelector):
    """Selects the item of the lowest priority (`min_heap`), or of the highest.

    Of items with the same priority it selects the one whose priority was set least recently.
    """

    def __init__(self, min_heap: bool = True) -> None:
        super().__init__()
        self._name = "min_heap" if min_heap else "max_heap"

    def __repr__(self) -> str:
        return f"HeapSelector(sign={1 if self._name == 'min_heap' else -1})"


def selector_options(name: str, exponent: float = 0.0) -> protos.KeyDistributionOptions:
    """Returns the message for the selector that has this name in `reprise._core`."""
    options = protos.KeyDistributionOptions
    if name == "prioritized":
        weight = options.Prioritized(priority_exponent=exponent)
        return options(prioritized=weight)
    if name in ("min_heap", "max_heap"):
        heap = options.Heap(min_heap=name == "min_heap")
        return options(heap=heap, is_deterministic=True)
    return options(**{name: True}, is_deterministic=name != "uniform")


def selector(name: str, exponent: float = 0.0) -> ItemSelector:
    """Returns the selector that has this name in `reprise._core`."""
    if name == "prioritized":
        return PrioritizedSelector(exponent)
    if name in ("min_heap", "max_heap"):
        return HeapSelector(name == "min_heap")
    kinds = {"fifo": FifoSelector, "lifo": LifoSelector, "uniform": UniformSelector}
    return kinds[name]()


def selector_from_options(options: Any) -> ItemSelector:
    """Returns the selector of a `KeyDistributionOptions`, which is ours or protobuf's."""
    kind = options.WhichOneof("distribution")
    if kind == "prioritized":
        return PrioritizedSelector(options.prioritized.priority_exponent)
    if kind == "heap":
        return HeapSelector(options.heap.min_heap)
    if kind is None:
        raise NotImplementedError(f"distribution={kind}")
    if not getattr(options, kind):
        raise ValueError(f"distribution={kind} but the associated boolean value is false.")
    return selector(kind)


def selector_from_proto(serialized: bytes) -> ItemSelector:
    """Returns the selector of a serialized `KeyDistributionOptions`."""
    return selector_from_options(protos.KeyDistributionOptions.FromString(serialized))


class RateLimiter(_Value):
    """The four numbers of a rate limiter. Use the classes of `reprise.rate_limiters` instead."""

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        min_diff: float,
        max_diff: float,
    ) -> None:
        self.samples_per_insert = _number("samples_per_insert", samples_per_insert)
        self.min_size_to_sample = operator.index(min_size_to_sample)
        self.min_diff = _number("min_diff", min_diff)
        self.max_diff = _number("max_diff", max_diff)

    def _fields(self) -> Tuple[float, int, float, float]:
        return (self.samples_per_insert, self.min_size_to_sample, self.min_diff, self.max_diff)

    def __repr__(self) -> str:
        return (
            f"RateLimiter(samples_per_insert={self.samples_per_insert:g}, "
            f"min_diff_={self.min_diff:g}, max_diff={self.max_diff:g}, "
            f"min_size_to_sample={self.min_size_to_sample})"
        )


class ChunkerOptions(_Value):
    """Decides how many steps of a column a chunk has."""


class ConstantChunkerOptions(ChunkerOptions):
    """A chunk has `max_chunk_length` steps; the last of an episode may have fewer."""

    def __init__(self, max_chunk_length: int, num_keep_alive_refs: int) -> None:
        self.max_chunk_length = operator.index(max_chunk_length)
        self.num_keep_alive_refs = operator.index(num_keep_alive_refs)

    def _fields(self) -> Tuple[Any, ...]:
        return (self.max_chunk_length, self.num_keep_alive_refs)

    def __repr__(self) -> str:
        return (
            f"ConstantChunkerOptions(max_chunk_length={self.max_chunk_length}, "
            f"num_keep_alive_refs={self.num_keep_alive_refs})"
        )


class AutoTunedChunkerOptions(ChunkerOptions):
    """The length of chunks is tuned to the data while it is written."""

    def __init__(self, num_keep_alive_refs: int, throughput_weight: float = 1.0) -> None:
        self.num_keep_alive_refs = operator.index(num_keep_alive_refs)
        self.throughput_weight = _number("throughput_weight", throughput_weight)

    def _fields(self) -> Tuple[Any, ...]:
        return (self.num_keep_alive_refs, self.throughput_weight)

    def __repr__(self) -> str:
        return (
            f"AutoTunedChunkerOptions(num_keep_alive_refs={self.num_keep_alive_refs}, "
            f"throughput_weight={self.throughput_weight:g})"
        )


class Sampler:
    """Only a constant: the samples of Reverb's sampler begin with five tensors of information."""

    NUM_INFO_TENSORS = 5


class Checkpointer(_Value):
    """The directory of a checkpointer, returned by `CheckpointerBase.internal_checkpointer()`."""

    def __init__(self, path: str, group: str = "", fallback: Optional[str] = None) -> None:
        self.path = path
        self.group = group
        self.fallback_checkpoint_path = fallback

    def _fields(self) -> Tuple[Any, ...]:
        return (self.path, self.group, self.fallback_checkpoint_path)

    def __repr__(self) -> str:
        return f"Checkpointer(root_dir={self.path}, group={self.group})"


def create_default_checkpointer(
    name: str, group: str = "", fallback_checkpoint_path: Optional[str] = None
) -> Checkpointer:
    return Checkpointer(name, group, fallback_checkpoint_path)


_IN_CORE = ("Client", "Server", "StructuredWriter", "TrajectoryWriter")


def __getattr__(name: str) -> Any:
    if name in _IN_CORE:
        from reprise import _core

        return getattr(_core, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
