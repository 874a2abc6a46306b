# SPDX-License-Identifier: Apache-2.0
"""`TableInfo`, the information on a table; and names for type hints."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from reprise import protos, pybind, specs

__all__ = ["SelectorType", "SpecNest", "TableInfo"]

Fifo = pybind.FifoSelector
Heap = pybind.HeapSelector
Lifo = pybind.LifoSelector
Prioritized = pybind.PrioritizedSelector
Uniform = pybind.UniformSelector

# Any of these selectors.
SelectorType = pybind.ItemSelector
# A nest of reprise.specs.TensorSpec, or of any specs that reprise.specs.convert() accepts.
SpecNest = Any


@dataclasses.dataclass
class TableInfo:
    """A table at one moment: its settings and its counts.

    `sampler_options`, `remover_options`, `rate_limiter_info` and `table_worker_time` have the
    attributes of Reverb's messages of that name (see `reprise.protos`). For example,
    `info.rate_limiter_info.insert_stats.completed` is how many items have been inserted.
    `signature` is a nest of `reprise.specs.TensorSpec`, or None. In a process that has imported
    TensorFlow, it is a nest of `tf.TensorSpec`.
    """

    name: str
    sampler_options: protos.KeyDistributionOptions
    remover_options: protos.KeyDistributionOptions
    max_size: int
    max_times_sampled: int
    rate_limiter_info: protos.RateLimiterInfo
    signature: Optional[SpecNest]
    current_size: int
    num_episodes: int
    num_deleted_episodes: int
    num_unique_samples: int
    table_worker_time: protos.TableWorkerTime

    @classmethod
    def from_dict(cls, info: Mapping[str, Any]) -> TableInfo:
        """Makes one from the dict of `reprise._core`."""
        spi, min_size, min_diff, max_diff = info["limiter"]
        return cls(
            name=info["name"],
            sampler_options=pybind.selector_options(*info["sampler"]),
            remover_options=pybind.selector_options(*info["remover"]),
            max_size=info["max_size"],
            max_times_sampled=info["max_times_sampled"],
            rate_limiter_info=protos.RateLimiterInfo(
                samples_per_insert=spi,
                min_diff=min_diff,
                max_diff=max_diff,
                min_size_to_sample=min_size,
                insert_stats=protos.RateLimiterCallStats(completed=info["inserts"]),
                sample_stats=protos.RateLimiterCallStats(completed=info["samples"]),
            ),
            signature=specs.as_reverb(info["signature"]),
            current_size=info["size"],
            num_episodes=info["episodes"],
            num_deleted_episodes=info["deleted_episodes"],
            num_unique_samples=info["unique_samples"],
            table_worker_time=protos.TableWorkerTime(),
        )

    @classmethod
    def from_serialized_proto(cls, proto_string: bytes) -> TableInfo:
        """Parses a serialized message `TableInfo` of Reverb."""
        values: Dict[str, Any] = {name: kind() for name, kind in _FIELDS.values()}
        for number, raw in protos.read_fields(proto_string):
            if number not in _FIELDS:
                continue
            name, kind = _FIELDS[number]
            if isinstance(raw, int):
                values[name] = protos.signed(raw)
            elif number == 6:
                values[name] = specs.as_reverb(decode_structure(raw))
            elif issubclass(kind, protos.Message):
                values[name] = kind.FromString(raw)
            else:
                values[name] = raw.decode()
        return cls(**values)


_FIELDS: Dict[int, Tuple[str, Any]] = {
    1: ("sampler_options", protos.KeyDistributionOptions),
    2: ("remover_options", protos.KeyDistributionOptions),
    3: ("max_size", int),
    4: ("max_times_sampled", int),
    5: ("rate_limiter_info", protos.RateLimiterInfo),
    6: ("signature", type(None)),
    7: ("current_size", int),
    8: ("name", str),
    9: ("num_episodes", int),
    10: ("num_deleted_episodes", int),
    11: ("num_unique_samples", int),
    12: ("table_worker_time", protos.TableWorkerTime),
}

# The NumPy dtype for each number of a TensorFlow dtype that NumPy has too.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "object",
    8: "complex64",
    9: "int64",
    10: "bool",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
# Those that ml_dtypes has.
_EXTENDED = {14: "bfloat16", 24: "float8_e5m2", 25: "float8_e4m3fn"}


def _only(data: bytes) -> Dict[int, Any]:
    """Returns the fields of a message in which each number occurs at most once."""
    return dict(protos.read_fields(data))


def _decode_shape(data: bytes) -> Optional[List[Optional[int]]]:
    dims: List[Optional[int]] = []
    for number, raw in protos.read_fields(data):
        if number == 3 and raw:
            return None
        if number == 2:
            assert isinstance(raw, bytes)
            size = protos.signed(_only(raw).get(1, 0))
            dims.append(None if size < 0 else size)
    return dims


def _dtype(number: int) -> np.dtype:
    if number in _EXTENDED:
        try:
            import ml_dtypes
        except ImportError:
            raise ValueError(f"a spec has the dtype {_EXTENDED[number]}, for which ml_dtypes must be "
                             "installed") from None
        return np.dtype(getattr(ml_dtypes, _EXTENDED[number]))
    if number not in _DTYPES:
        raise ValueError(f"a spec has the dtype {number}, which NumPy has not")
    return np.dtype(_DTYPES[number])


def _decode_spec(data: bytes) -> specs.TensorSpec:
    fields = _only(data)
    name = fields[1].decode() if 1 in fields else None
    shape = _decode_shape(fields.get(2, b""))
    return specs.TensorSpec(shape, _dtype(fields.get(3, 0)), name)


def _pairs(values: Sequence[bytes]) -> Dict[str, Any]:
    found = {}
    for value in values:
        fields = _only(value)
        found[fields.get(1, b"").decode()] = decode_structure(fields.get(2, b""))
    return found


def decode_structure(data: bytes) -> Any:
    """Decodes a serialized `tensorflow.StructuredValue` to a nest of specs."""
    for number, raw in protos.read_fields(data):
        if number in (33, 35):
            return _decode_spec(bytes(raw))
        if number not in (51, 52, 53, 54):
            raise ValueError(f"a signature has a node of kind {number}, which is no spec")
        parts = list(protos.read_fields(bytes(raw)))
        if number == 51:
            return [decode_structure(bytes(value)) for _, value in parts]
        if number == 52:
            return tuple(decode_structure(bytes(value)) for _, value in parts)
        if number == 53:
            return _pairs([bytes(value) for _, value in parts])
        name = next(bytes(value).decode() for key, value in parts if key == 1)
        fields = _pairs([bytes(value) for key, value in parts if key == 2])
        return specs._named_tuple(name, list(fields.items()))
    return None
