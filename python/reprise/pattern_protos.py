# SPDX-License-Identifier: Apache-2.0
"""Reverb's messages for patterns, without protobuf (see `reprise.protos`).

>>> node = PatternNode(flat_source_index=1, start=-3, stop=-1)
>>> node.HasField("stop"), node.HasField("step")
(True, False)
>>> PatternNode.FromString(node.SerializeToString()) == node
True
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from reprise import _core, specs
from reprise.protos import Field, Message

__all__ = ["Condition", "PatternNode", "Priority", "StructuredValue", "StructuredWriterConfig"]


class _Message(Message):
    """A message whose constructor takes None for a field that is not set."""

    __slots__ = ()

    def __init__(self, **values: Any) -> None:
        given = {name: value for name, value in values.items() if value is not None}
        super().__init__(**given)



class PatternNode(_Message):
    """Rows of one column, counted back from the latest step.

    If only `stop` is set, the node is the row at `stop`, without a step dimension. If `start` is
    set, it is the slice `start:stop:step`. A node that was made of a reference step has the path of
    the column in that step, and the paths of all its columns, which are not fields of the message.
    """

    __slots__ = ("_path", "_reference")
    FIELDS = {
        "flat_source_index": Field(1, int),
        "start": Field(2, int, "start_or_none"),
        "stop": Field(3, int, "stop_or_none"),
        "step": Field(4, int, "step_or_none"),
    }


class _ModuloEq(_Message):
    __slots__ = ()
    FIELDS = {"mod": Field(1, int), "eq": Field(2, int)}


class Condition(_Message):
    """A condition for applying a pattern: compares the value named by `left` with a number."""

    __slots__ = ()
    ModuloEq = _ModuloEq
    FIELDS = {
        "step_index": Field(1, bool, "left"),
        "steps_since_applied": Field(2, bool, "left"),
        "buffer_length": Field(3, bool, "left"),
        "is_end_episode": Field(4, bool, "left"),
        "eq": Field(5, int, "cmp"),
        "ge": Field(6, int, "cmp"),
        "mod_eq": Field(7, _ModuloEq, "cmp"),
        "inverse": Field(8, bool),
        "flat_source_index": Field(9, int, "left"),
    }


class _ConstantPriorityFn(_Message):
    __slots__ = ()
    FIELDS = {"value": Field(1, float)}


class _TDError(_Message):
    __slots__ = ()
    FIELDS = {"max_priority_weight": Field(1, float), "flat_source_index": Field(2, int)}


class Priority(_Message):
    """The priority of an item: a constant, or computed from a column of it."""

    __slots__ = ()
    ConstantPriorityFn = _ConstantPriorityFn
    TDError = _TDError
    FIELDS = {
        "constant_fn": Field(1, _ConstantPriorityFn, "priority_fn"),
        "td_error": Field(2, _TDError, "priority_fn"),
    }


class _NoneValue(_Message):
    __slots__ = ()


class StructuredValue(_Message):
    """A nest without its leaves."""

    __slots__ = ()
    FIELDS: Dict[str, Field] = {}  # set below, since the type contains itself


class _Pair(_Message):
    __slots__ = ()
    FIELDS = {"key": Field(1, str), "value": Field(2, StructuredValue)}


class _Values(_Message):
    __slots__ = ()
    FIELDS = {"values": Field(1, StructuredValue, repeated=True)}


class _Dict(_Message):
    __slots__ = ()
    FIELDS = {"fields": Field(1, _Pair, repeated=True)}


class _NamedTuple(_Message):
    __slots__ = ()
    FIELDS = {"name": Field(1, str), "values": Field(2, _Pair, repeated=True)}


StructuredValue.FIELDS.update(
    none_value=Field(1, _NoneValue, "kind"),
    list_value=Field(51, _Values, "kind"),
    tuple_value=Field(52, _Values, "kind"),
    dict_value=Field(53, _Dict, "kind"),
    named_tuple_value=Field(54, _NamedTuple, "kind"),
)


def _pairs(items: List[Tuple[str, Any]]) -> List[_Pair]:
    return [_Pair(key=key, value=encode_structure(child)) for key, child in items]


def encode_structure(nest: Any) -> StructuredValue:
    """Encodes the structure of a nest. The values of its leaves are ignored."""
    if not _core.is_nested(nest):
        return StructuredValue(none_value=_NoneValue())
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        pairs = _pairs(list(zip(nest._fields, nest)))
        name = type(nest).__name__
        return StructuredValue(named_tuple_value=_NamedTuple(name=name, values=pairs))
    if isinstance(nest, (list, tuple)):
        values = _Values(values=[encode_structure(child) for child in nest])
        if isinstance(nest, list):
            return StructuredValue(list_value=values)
        return StructuredValue(tuple_value=values)
    items = [(key, nest[key]) for key in sorted(nest)]
    return StructuredValue(dict_value=_Dict(fields=_pairs(items)))


def decode_structure(value: Any) -> Any:
    """Returns the nest, with None for every leaf. Named tuples get a class of the encoded name."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [decode_structure(child) for child in value.list_value.values]
    if kind == "tuple_value":
        return tuple(decode_structure(child) for child in value.tuple_value.values)
    if kind == "dict_value":
        fields = value.dict_value.fields
        return {pair.key: decode_structure(pair.value) for pair in fields}
    if kind == "named_tuple_value":
        parts = value.named_tuple_value
        pairs = [(pair.key, decode_structure(pair.value)) for pair in parts.values]
        return specs._named_tuple(parts.name, pairs)
    return None


class StructuredWriterConfig(_Message):
    """A pattern, the table of its items, the conditions under which they are made, their priority.
    """

    __slots__ = ()
    FIELDS = {
        "flat": Field(1, PatternNode, repeated=True),
        "pattern_structure": Field(2, StructuredValue),
        "table": Field(3, str),
        "priority": Field(4, Priority),
        "conditions": Field(5, Condition, repeated=True),
    }
