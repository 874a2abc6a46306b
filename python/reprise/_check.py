# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, whose errors name the argument, its value and what belongs there."""

from __future__ import annotations

import operator
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from reprise import _core

__all__ = ["check_names", "check_pattern", "differing_names", "differing_steps", "limiter_fields", "name_columns", "whole_number"]


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


_LISTED = 16  # names of columns that an error lists


def _joined(paths: Sequence[Tuple[Any, ...]]) -> str:
    names = ["/".join(str(part) for part in path) for path in paths]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _differ(ours: Sequence[Tuple[Any, ...]], theirs: Sequence[Tuple[Any, ...]]) -> bool:
    """True if a column of one has another name than the column of the other at its position.

    Where one has names and the other has none, nothing is compared: a list may be an item of a table
    whose signature is a dict.
    """
    for our, their in zip(ours, theirs):
        for here, there in zip(our, their):
            if here != there:
                if isinstance(here, str) and isinstance(there, str):
                    return True
                break
    return False


def differing_names(structure: Any, signature: Any, what: str = "the item") -> Optional[str]:
    """Compares the names of the columns of an item with those of a signature.

    Args:
      structure: the `_core.Structure` of an item.
      signature: the table's signature, a nest of specs, or None.

    Returns:
      A sentence on the names that differ, or None.
    """
    if signature is None:
        return None
    item, table = structure.paths(), _core.Structure(signature).paths()
    # Other numbers of columns are refused with an error that says more.
    if len(item) != len(table) or not _differ(item, table):
        return None
    return (f"{what} has {_joined(item)}; the table's signature has {_joined(table)}. Columns are "
            "matched by position, so each must have the name that the signature has for it")


def differing_steps(structure: Any, first: Any) -> Optional[str]:
    """Compares the names of the columns of two steps. Returns a sentence, or None."""
    step, before = structure.paths(), first.paths()
    if not _differ(step, before):
        return None
    return f"the step has {_joined(step)}; earlier steps have {_joined(before)}"


def check_pattern(step: Any, columns: Mapping[int, Tuple[Any, ...]]) -> None:
    """Raises ValueError if a step has other names than the reference step of a pattern.

    Args:
      step: the `_core.Structure` of a step.
      columns: the numbers of columns that the pattern uses, with their paths.
    """
    paths = step.paths()
    used = [number for number in sorted(columns) if number < len(paths)]
    expected = [columns[number] for number in used]
    if _differ([paths[number] for number in used], expected):
        raise ValueError(f"the step has {_joined(paths)}; the patterns were made for steps with "
                         f"{_joined(expected)}")
