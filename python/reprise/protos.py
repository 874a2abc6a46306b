# SPDX-License-Identifier: Apache-2.0
"""Messages with the interface of protobuf's, without protobuf.

A `TableInfo` has members that are protobuf messages in Reverb. Here they are instances of the
classes below, which have the usual part of the interface: fields as attributes, `HasField`,
`WhichOneof`, `SerializeToString`, `FromString`, `CopyFrom`, equality, and a text form. Serialized
messages have protobuf's wire format.

>>> options = KeyDistributionOptions(prioritized=KeyDistributionOptions.Prioritized(
...     priority_exponent=0.5))
>>> options.WhichOneof("distribution"), options.HasField("fifo")
('prioritized', False)
>>> KeyDistributionOptions.FromString(options.SerializeToString()) == options
True
"""

from __future__ import annotations

import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Type, TypeVar, Union

M = TypeVar("M", bound="Message")

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("the message ends inside a number")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value & ((1 << 64) - 1), at


def read_fields(data: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """Yields the fields of a serialized message: pairs of a number and a raw value."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, at = _read_varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} is unknown")
        if size > len(data) - at:
            raise ValueError("the message ends inside a field")
        yield tag >> 3, data[at : at + size]
        at += size


def signed(value: int) -> int:
    """Converts a raw varint to a signed number."""
    return value - (1 << 64) if value >= 1 << 63 else value


class Field(NamedTuple):
    """A field of a message. `kind` is int, bool, float, str or a class of messages."""

    number: int
    kind: Any
    oneof: Optional[str] = None
    repeated: bool = False


_DEFAULTS: Dict[type, Any] = {int: 0, bool: False, float: 0.0, str: ""}


class Message:
    """The base of the messages below. A subclass lists its fields in `FIELDS`."""

    FIELDS: Dict[str, Field] = {}
    __slots__ = ("_values", "_parent")

    def __init__(self, **values: Any) -> None:
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_parent", None)
        for name, value in values.items():
            if isinstance(value, (list, tuple)):
                getattr(self, name).extend(value)
            else:
                setattr(self, name, value)

    def _field(self, name: str) -> Field:
        try:
            return self.FIELDS[name]
        except KeyError:
            raise AttributeError(
                f"{type(self).__name__} has no field {name!r}: it has {', '.join(self.FIELDS)}"
            ) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        field = self._field(name)
        if name in self._values:
            return self._values[name]
        if field.repeated:
            return self._values.setdefault(name, [])
        if issubclass(field.kind, Message):
            child = field.kind()  # _put() makes it a member when one of its fields is set
            object.__setattr__(child, "_parent", (self, name))
            return child
        return _DEFAULTS[field.kind]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field(name)
        if field.repeated:
            raise AttributeError(f"{name} is repeated: append to it")
        if issubclass(field.kind, Message):
            if not isinstance(value, field.kind):
                raise TypeError(f"{name} must be a {field.kind.__name__}, got {value!r}")
        elif field.kind is str:
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a str, got {value!r}")
        else:
            value = field.kind(value)
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        field = self.FIELDS[name]
        if field.oneof is not None:
            for other, its in self.FIELDS.items():
                if its.oneof == field.oneof:
                    self._values.pop(other, None)
        self._values[name] = value
        if self._parent is not None:
            parent, my_name = self._parent
            object.__setattr__(self, "_parent", None)
            parent._put(my_name, self)

    def ListFields(self) -> List[Tuple[str, Any]]:
        """Returns the fields that are set, in order of number: pairs of a name and a value."""
        found = []
        for name, field in sorted(self.FIELDS.items(), key=lambda item: item[1].number):
            if name not in self._values:
                continue
            value = self._values[name]
            if field.repeated:
                if value:
                    found.append((name, value))
            elif isinstance(value, Message) or field.oneof is not None:
                found.append((name, value))
            elif value != _DEFAULTS[field.kind]:
                found.append((name, value))
        return found

    def HasField(self, name: str) -> bool:
        """Returns whether a field is set, which must be a message or a member of a oneof."""
        field = self.FIELDS.get(name)
        if field is None or field.repeated:
            raise ValueError(f"{type(self).__name__} has no field {name!r} that can be absent")
        if field.oneof is None and not issubclass(field.kind, Message):
            raise ValueError(f"{name!r} is never absent")
        return name in self._values

    def WhichOneof(self, oneof: str) -> Optional[str]:
        """Returns the name of the member of a oneof that is set, or None."""
        members = [name for name, field in self.FIELDS.items() if field.oneof == oneof]
        if not members:
            raise ValueError(f"{type(self).__name__} has no oneof {oneof!r}")
        return next((name for name in members if name in self._values), None)

    def Clear(self) -> None:
        self._values.clear()

    def CopyFrom(self: M, other: M) -> None:
        if other is not self:
            self.Clear()
            self.MergeFromString(other.SerializeToString())

    def SerializeToString(self) -> bytes:
        out = []
        for name, value in self.ListFields():
            field = self.FIELDS[name]
            for one in value if field.repeated else (value,):
                out.append(_encode(field, one))
        return b"".join(out)

    @classmethod
    def FromString(cls: Type[M], data: bytes) -> M:
        message = cls()
        message.MergeFromString(data)
        return message

    def ParseFromString(self, data: bytes) -> None:
        self.Clear()
        self.MergeFromString(data)

    def MergeFromString(self, data: bytes) -> None:
        names = {field.number: name for name, field in self.FIELDS.items()}
        for number, raw in read_fields(bytes(data)):
            name = names.get(number)
            if name is None:
                continue
            value = _decode(self.FIELDS[name], raw)
            if self.FIELDS[name].repeated:
                getattr(self, name).append(value)
            else:
                self._put(name, value)

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return self.ListFields() == other.ListFields()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return (_from_string, (type(self), self.SerializeToString()))

    def __deepcopy__(self: M, memo: Any) -> M:
        return type(self).FromString(self.SerializeToString())

    def __repr__(self) -> str:
        return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, value in self.ListFields():
            for one in value if self.FIELDS[name].repeated else (value,):
                if isinstance(one, Message):
                    yield f"{name} {{"
                    for line in one._lines():
                        yield "  " + line
                    yield "}"
                else:
                    yield f"{name}: {_text(one)}"


def _from_string(cls: Type[Message], data: bytes) -> Message:
    return cls.FromString(data)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _encode(field: Field, value: Any) -> bytes:
    if isinstance(value, Message):
        data = value.SerializeToString()
    elif isinstance(value, str):
        data = value.encode()
    elif field.kind is float:
        return _varint(field.number << 3 | _FIXED64) + struct.pack("<d", value)
    else:
        return _varint(field.number << 3 | _VARINT) + _varint(int(value))
    return _varint(field.number << 3 | _BYTES) + _varint(len(data)) + data


def _decode(field: Field, raw: Union[int, bytes]) -> Any:
    if isinstance(raw, int):
        if field.kind not in (int, bool):
            raise ValueError(f"field {field.number} is a number, and should not be")
        return bool(raw) if field.kind is bool else signed(raw)
    if field.kind is float and len(raw) == 8:
        return struct.unpack("<d", raw)[0]
    if field.kind is str:
        return raw.decode()
    if issubclass(field.kind, Message):
        return field.kind.FromString(raw)
    raise ValueError(f"field {field.number} is of another type")


class _Prioritized(Message):
    __slots__ = ()
    FIELDS = {"priority_exponent": Field(1, float)}


class _Heap(Message):
    __slots__ = ()
    FIELDS = {"min_heap": Field(1, bool)}


class KeyDistributionOptions(Message):
    """The selector of a sampler or a remover."""

    __slots__ = ()
    Prioritized = _Prioritized
    Heap = _Heap
    FIELDS = {
        "fifo": Field(1, bool, "distribution"),
        "uniform": Field(2, bool, "distribution"),
        "prioritized": Field(3, _Prioritized, "distribution"),
        "heap": Field(4, _Heap, "distribution"),
        "lifo": Field(6, bool, "distribution"),
        "is_deterministic": Field(7, bool),
    }


class RateLimiterCallStats(Message):
    """The number of calls that the limiter has admitted since the table was created or reset."""

    __slots__ = ()
    FIELDS = {"completed": Field(2, int)}


class RateLimiterInfo(Message):
    """The settings of a rate limiter, and how many inserts and samples it has admitted."""

    __slots__ = ()
    FIELDS = {
        "samples_per_insert": Field(1, float),
        "min_diff": Field(2, float),
        "max_diff": Field(3, float),
        "min_size_to_sample": Field(4, int),
        "insert_stats": Field(5, RateLimiterCallStats),
        "sample_stats": Field(6, RateLimiterCallStats),
    }


class TableWorkerTime(Message):
    """The times of a table's worker thread in Reverb. Our tables have no such thread: all are 0."""

    __slots__ = ()
    FIELDS = {
        "running_ms": Field(1, int),
        "sampling_ms": Field(2, int),
        "inserting_ms": Field(3, int),
        "sleeping_ms": Field(4, int),
        "waiting_for_sampling_ms": Field(5, int),
        "waiting_for_inserts_ms": Field(6, int),
    }


class RateLimiterCheckpoint(Message):
    """A rate limiter in a configuration or a checkpoint."""

    __slots__ = ()
    FIELDS = {
        "samples_per_insert": Field(2, float),
        "min_diff": Field(3, float),
        "max_diff": Field(4, float),
        "min_size_to_sample": Field(5, int),
        "sample_count": Field(6, int),
        "insert_count": Field(7, int),
        "delete_count": Field(8, int),
    }


class PriorityTableCheckpoint(Message):
    """A table in a configuration or a checkpoint, without its items."""

    __slots__ = ()
    FIELDS = {
        "table_name": Field(1, str),
        "rate_limiter": Field(3, RateLimiterCheckpoint),
        "sampler": Field(4, KeyDistributionOptions),
        "remover": Field(5, KeyDistributionOptions),
        "max_size": Field(6, int),
        "max_times_sampled": Field(7, int),
        "num_deleted_episodes": Field(8, int),
        "num_unique_samples": Field(10, int),
    }


class ReverbServerConfig(Message):
    """The configuration of a server: its tables and its port."""

    __slots__ = ()
    FIELDS = {
        "tables": Field(1, PriorityTableCheckpoint, repeated=True),
        "port": Field(2, int),
    }
