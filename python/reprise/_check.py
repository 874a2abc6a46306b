# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, whose errors name the argument, its value and what belongs there."""

from __future__ import annotations

import operator
from typing import Any, Iterable, List, Mapping, Optional

__all__ = ["check_names", "limiter_fields", "name_columns", "whole_number"]


def whole_number(name: str, value: Any, lowest: Optional[int] = None) -> int:
    """Returns an integer as an int. TypeError, or ValueError if it is less than `lowest`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if lowest is not None and number < lowest:
        raise ValueError(f"{name} must be >= {lowest}, got {number}")
    return number


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError if one of the names of options that were given is not known."""
    names: List[str] = list(known)
    for name in given:
        if name not in names:
            import difflib

            near = difflib.get_close_matches(name, names, 1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise TypeError(f"{what} has no option {name!r}: {advice}")


def limiter_fields(limiter: Any) -> Any:
    """Returns the four numbers of a rate limiter, for the C extension."""
    internal = getattr(limiter, "internal_limiter", None)
    if internal is None:
        raise TypeError(
            "rate_limiter must be one of reprise.rate_limiters, such as MinSize(1), got "
            f"{limiter!r}"
        )
    return internal._fields()


def name_columns(error: ValueError, paths: Mapping[int, str]) -> ValueError:
    """Returns the error with the paths of columns after their numbers."""
    import re

    def name(found: "re.Match[str]") -> str:
        path = paths.get(int(found.group(1)))
        return found.group() if path is None else f"{found.group()} ({path!r})"

    return ValueError(re.sub(r"\bcolumn (\d+)", name, str(error)))
