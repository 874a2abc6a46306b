# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments, whose errors name the argument, its value and what belongs there."""

from __future__ import annotations

import functools
import operator
import sys
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar

from reprise import _core
from reprise.errors import UnknownColumnError

__all__ = ["advice", "check_leaf_count", "check_names", "check_pattern", "check_seconds", "differing_names",
           "differing_steps", "limiter_fields", "milliseconds", "name_columns", "need", "number", "suggest_names",
           "unknown_column", "whole_number"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def whole_number(name: str, value: Any, lowest: Optional[int] = None,
                 highest: Optional[int] = None) -> int:
    """Returns an integer as an int. TypeError, or ValueError if it is less than `lowest` or more
    than `highest`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if lowest is not None and number < lowest:
        raise ValueError(f"{name} must be >= {lowest}, got {number}")
    if highest is not None and number > highest:
        raise ValueError(f"{name} must be <= {highest}, got {number}")
    return number


def number(name: str, value: Any) -> float:
    """Returns a number as a float. TypeError for other objects, also for strings, which float() would
    convert."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be a number, got {value!r}")


def check_seconds(name: str, seconds: Optional[float]) -> None:
    """Raises TypeError or ValueError if a timeout is neither None nor a number of seconds."""
    if seconds is None:
        return
    if isinstance(seconds, (str, bytes)) or not hasattr(seconds, "__float__"):
        raise TypeError(f"{name} must be a number or None, got {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"{name} must be None or >= 0 seconds, got {seconds}")


def milliseconds(name: str, seconds: Optional[float]) -> int:
    """Converts seconds to milliseconds, rounded up. None, no timeout, becomes -1."""
    if seconds is None:
        return -1
    check_seconds(name, seconds)
    return int(min(-(-seconds * 1000 // 1), 2**53))


def advice(name: str, names: List[str]) -> str:
    """Returns the name among `names` that may be meant, or a list of them, for the end of an error."""
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {_listed(names)}"


# Options of rate limiters that are written as options of tables.
_OF_LIMITERS = {"min_size": "MinSize(...)", "min_size_to_sample": "MinSize(...)",
                "samples_per_insert": "SampleToInsertRatio(...)"}


def _unknown_option(what: str, given: Iterable[str], known: Iterable[str]) -> Optional[str]:
    """Returns a sentence on the first name that is not known, or None."""
    names = list(known)
    for name in given:
        if name in _OF_LIMITERS and "rate_limiter" in names:
            return (f"{what} has no option {name!r}: write "
                    f"rate_limiter=reprise.rate_limiters.{_OF_LIMITERS[name]}")
        if name not in names:
            return f"{what} has no option {name!r}: {advice(name, names)}"
    return None


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError if one of the names of options that were given is not known."""
    text = _unknown_option(what, given, known)
    if text is not None:
        raise TypeError(text)


def suggest_names(made: _Callable) -> _Callable:
    """Decorates a function, or a class for its constructor. A call with a keyword that it does not have
    raises TypeError with the nearest one. Python itself suggests keywords from version 3.13.

    The wrapper adds about half a microsecond to a call, so it is not for calls that a program makes
    for each step.
    """
    if isinstance(made, type):
        setattr(made, "__init__", suggest_names(made.__init__))  # type: ignore[misc]
        return made

    @functools.wraps(made)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return made(*args, **options)
        except TypeError as error:
            # Without a frame of the function, its arguments were refused.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            import inspect

            what = type(args[0]).__name__ if made.__name__ == "__init__" else made.__qualname__
            known = [name for name in inspect.signature(made).parameters
                     if name not in ("self", "cls")]
            text = _unknown_option(f"{what}()", options, known)
            if text is None and made.__name__ == "__init__":
                usage = getattr(args[0], "_usage", "")
                text = str(error).replace(f"{made.__qualname__}()", f"{what}()")
                text += f": {usage}" if usage else ""
            if text is None:
                raise
            raise TypeError(text) from None

    return call  # type: ignore[return-value]


def need(package: str, what: str) -> None:
    """Raises ModuleNotFoundError if a package is not installed that `what` needs. Imports nothing."""
    import importlib.util

    if package not in sys.modules and importlib.util.find_spec(package) is None:
        raise ModuleNotFoundError(
            f"{what} needs {package}, which is not installed: pip install {package}", name=package)


def unknown_column(what: str, name: Any, names: Iterable[Any]) -> UnknownColumnError:
    """Returns the error for a column that `what` does not have. `names` are those that it has."""
    known = [str(other) for other in names]
    near = advice(str(name), known)
    more = f" There are {_listed(known)}." if near.startswith("did") else ""
    return UnknownColumnError(f"{what} has no column {name!r}: {near}{more}")




def limiter_fields(limiter: Any) -> Any:
    """Returns the four numbers of a rate limiter, for the C extension."""
    internal = getattr(limiter, "internal_limiter", None)
    if isinstance(limiter, type) and internal is None and hasattr(limiter, "why"):
        raise TypeError(f"rate_limiter must be one of reprise.rate_limiters, got {limiter.__name__} "
                        f"without arguments: write {limiter.__name__}(...), such as MinSize(1)")
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

    # The C library has named the columns of a signature: "column 0 'obs'".
    return ValueError(re.sub(r"\bcolumn (\d+)\b(?! ')", name, str(error)))


_LISTED = 16  # names of columns that an error lists


def _joined(paths: Sequence[Tuple[Any, ...]]) -> str:
    return _listed(["/".join(str(part) for part in path) for path in paths])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _differ(ours: Sequence[Tuple[Any, ...]], theirs: Sequence[Tuple[Any, ...]]) -> Optional[int]:
    """Returns the first column of one that has another name than the column of the other at its position.

    Where one has names and the other has none, nothing is compared: a list may be an item of a table
    whose signature is a dict.
    """
    for at, (our, their) in enumerate(zip(ours, theirs)):
        for here, there in zip(our, their):
            if here != there:
                if isinstance(here, str) and isinstance(there, str):
                    return at
                break
    return None


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
    at = _differ(item, table) if len(item) == len(table) else None
    if at is None:
        return None
    # From "column" on this is the text of the C library (item_names.c).
    return (f"{what} has {_joined(item)}: column {at} is '{_joined([item[at]])}', the signature has "
            f"'{_joined([table[at]])}' there; the order is: {_joined(table)}")


def _other_keys(step: Sequence[Tuple[Any, ...]],
                before: Sequence[Tuple[Any, ...]], where: str) -> Optional[str]:
    """Returns a sentence on the first nest that has names in one of two steps and numbers in the
    other, or None."""
    for ours, theirs in zip(step, before):
        for depth, (here, there) in enumerate(zip(ours, theirs)):
            if here == there:
                continue
            if isinstance(here, str) != isinstance(there, str):
                now, was = ("a dict" if isinstance(key, str) else "a list" for key in (here, there))
                place = f"Field {ours[:depth]}" if depth else "the step"
                return (f"{place} was {was} in {where} but is {now} now: its values would be "
                        f"matched by position with {_joined(before)}")
            break
    return None


def differing_steps(structure: Any, first: Any) -> Optional[str]:
    """Compares the names of the columns of two steps. Returns a sentence, or None."""
    step, before = structure.paths(), first.paths()
    if _differ(step, before) is None:
        return _other_keys(step, before, "an earlier step")
    return f"the step has {_joined(step)}; earlier steps have {_joined(before)}"


def check_leaf_count(step: Any, count: int, reference: Optional[Sequence[Tuple[Any, ...]]]) -> None:
    """Raises ValueError if a step has fewer leaves than patterns need: they find a column by its position.

    Args:
      step: the `_core.Structure` of a step.
      count: how many leaves the patterns need.
      reference: the paths of the reference step; None if it is not known.
    """
    if step.leaf_count >= count:
        return
    advice = "each step must have all of these, with None for a value that is missing"
    if reference is None or not _joined(reference):
        raise ValueError(f"the step has {step.leaf_count} leaves; the patterns were made for steps with at "
                         f"least {count}: {advice}")
    has = _joined(step.paths()) or ("no columns" if step.leaf_count == 0 else "one leaf without a name")
    raise ValueError(f"the step has {has}; the patterns were made for steps with {_joined(reference)}: {advice}")


def check_pattern(step: Any, columns: Mapping[int, Tuple[Any, ...]]) -> None:
    """Raises ValueError if a step has other names than the reference step of a pattern, or a list
    where that has a dict.

    Args:
      step: the `_core.Structure` of a step.
      columns: the numbers of columns that the pattern uses, with their paths.
    """
    paths = step.paths()
    used = [number for number in sorted(columns) if number < len(paths)]
    expected = [columns[number] for number in used]
    if _differ([paths[number] for number in used], expected) is not None:
        raise ValueError(f"the step has {_joined(paths)}; the patterns were made for steps with "
                         f"{_joined(expected)}")
    text = _other_keys([paths[number] for number in used], expected,
                       "the reference step of the patterns")
    if text is not None:
        raise ValueError(text)
