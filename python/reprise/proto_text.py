# SPDX-License-Identifier: Apache-2.0
"""Parses messages in protobuf's text format, for configurations."""

from __future__ import annotations

import ast
import re
from typing import Any

from reprise.protos import Field, Message

__all__ = ["parse_text"]

_TOKEN = re.compile(
    r"""\s*(?:\#[^\n]*\s*)*(?:
        (?P<word>[-+.\w]+) | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*') |
        (?P<mark>[{}<>:;,\[\]]) | (?P<end>\Z) | (?P<wrong>.))""",
    re.VERBOSE,
)


class _Text:
    """Reads a message in protobuf's text format, token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = [(m.lastgroup, m.group(m.lastgroup or 0)) for m in _TOKEN.finditer(text)]
        self._at = 0

    def take(self, *marks: str) -> str:
        """Consumes and returns the next token if it is one of the marks. Otherwise returns ""."""
        kind, token = self._tokens[self._at]
        if kind != "mark" or token not in marks:
            return ""
        self._at += 1
        return token

    def next(self, what: str) -> str:
        kind, token = self._tokens[self._at]
        if kind not in ("word", "text"):
            raise ValueError(f"expected {what}, found {token!r}" if token else f"no {what}")
        self._at += 1
        return token

    def message(self, message: Message, end: str) -> None:
        """Reads fields into a message, up to the mark `end`, or to the end of the text if that is
        ""."""
        while not (self.take(end) if end else self._tokens[self._at][0] == "end"):
            name = self.next("the name of a field" + (f" or {end}" if end else ""))
            field = message._field(name)
            colon = self.take(":")
            if not colon and not issubclass(field.kind, Message):
                raise ValueError(f"expected : after {name}")
            if field.repeated and self.take("["):
                while not self.take("]"):
                    getattr(message, name).append(self.value(field, name))
                    self.take(",")
            elif field.repeated:
                getattr(message, name).append(self.value(field, name))
            else:
                setattr(message, name, self.value(field, name))
            self.take(",", ";")

    def value(self, field: Field, name: str) -> Any:
        if issubclass(field.kind, Message):
            start = self.take("{", "<")
            if not start:
                raise ValueError(f"expected {{ after {name}")
            value = field.kind()
            self.message(value, "}" if start == "{" else ">")
            return value
        token = self.next(f"a value of {name}")
        if field.kind is str and token[0] in "\"'":
            return ast.literal_eval(token)
        if field.kind is bool and token in _BOOLS:
            return _BOOLS[token]
        if field.kind in (int, float):
            try:
                return int(token, 0) if field.kind is int else float(token)
            except ValueError:
                pass
        raise ValueError(f"{name} cannot be {token}")


_BOOLS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def parse_text(message: Message, text: str) -> Message:
    """Reads a message in protobuf's text format into `message`, and returns it.

    >>> from reprise.protos import KeyDistributionOptions
    >>> parse_text(KeyDistributionOptions(), "heap { min_heap: true }").heap.min_heap
    True
    """
    try:
        _Text(text).message(message, "")
    except AttributeError as error:
        raise ValueError(str(error)) from None
    return message
