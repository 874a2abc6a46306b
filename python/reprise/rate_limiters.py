# SPDX-License-Identifier: Apache-2.0
"""Rate limiters, which decide when inserts and samples may proceed.

A limiter uses three counts of its table: inserts I, samples S and deletes D.

- n samples may be drawn if I - D >= min_size_to_sample
  and I * samples_per_insert - S - n >= min_diff;
- n items may be inserted if I + n - D <= min_size_to_sample
  or (I + n) * samples_per_insert - S <= max_diff.

Calls that may not proceed wait, in order of arrival. `limiter.why()` lists them, with the
reasons. A limiter belongs to one table.

>>> SampleToInsertRatio(samples_per_insert=4.0, min_size_to_sample=100, error_buffer=40.0)
RateLimiter(samples_per_insert=4, min_diff_=360, max_diff=440, min_size_to_sample=100)
"""

from __future__ import annotations

import abc
import sys
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from reprise import pybind
from reprise._check import number, suggest_names, whole_number
from reprise._log import logger

if TYPE_CHECKING:
    from reprise.server import Table, Waiting

__all__ = ["MinSize", "Queue", "RateLimiter", "SampleToInsertRatio", "Stack"]


@suggest_names
class RateLimiter(metaclass=abc.ABCMeta):
    """A limiter with four given numbers. The subclasses compute them for the usual cases.

    The numbers are checked when a table is made with the limiter, which raises ValueError if they
    are invalid. `samples_per_insert` must be from 1e-12 to 1e9, `min_size_to_sample` >= 1,
    `min_diff` at most 2**53, `max_diff` at least -2**53, and the bounds far enough apart that
    inserts and samples never wait at the same time. A bound beyond -2**53 or 2**53, such as an
    infinite one, is no bound.
    """

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        min_diff: float,
        max_diff: float,
    ) -> None:
        self._samples_per_insert = samples_per_insert
        self._min_size_to_sample = min_size_to_sample
        self._min_diff = min_diff
        self._max_diff = max_diff
        self._table: Optional[weakref.ref[Table]] = None
        self.internal_limiter = pybind.RateLimiter(
            samples_per_insert=samples_per_insert,
            min_size_to_sample=min_size_to_sample,
            min_diff=min_diff,
            max_diff=max_diff,
        )

    def why(self) -> List[Waiting]:
        """Returns the calls that wait at the limiter's table now, and what would release them.

        Empty if no call waits, or if the limiter has no table.
        """
        table = self._table() if self._table is not None else None
        return [] if table is None else table.why()

    def __repr__(self) -> str:
        return repr(self.internal_limiter)

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, _table=None)


@suggest_names
class MinSize(RateLimiter):
    """Samples wait until the table holds `min_size_to_sample` items; inserts never wait."""

    def __init__(self, min_size_to_sample: int) -> None:
        if whole_number("min_size_to_sample", min_size_to_sample) < 1:
            raise ValueError(
                f"min_size_to_sample ({min_size_to_sample}) must be a positive integer"
            )
        super().__init__(
            samples_per_insert=1.0,
            min_size_to_sample=min_size_to_sample,
            min_diff=-sys.float_info.max,
            max_diff=sys.float_info.max,
        )


def _narrow(error_buffer: Any, width: float, least: float) -> str:
    """Says what error_buffer must be instead. `least` is the least number, half of the least width."""
    if isinstance(error_buffer, (tuple, list)):
        return f"Its width is {width:g} and must be at least {2 * least:g}."
    return f"It is {width / 2:g} and must be at least {least:g}."


@suggest_names
class SampleToInsertRatio(RateLimiter):
    """Keeps the ratio of samples to inserts near `samples_per_insert`.

    While the table has fewer than `min_size_to_sample` items, all inserts proceed and all samples
    wait. After that, the error `inserts * samples_per_insert - samples` is kept in a range: a call
    that would move the error out of the range waits.

    Args:
      samples_per_insert: how often an item is sampled on average before it is removed.
      min_size_to_sample: how many items the table must have before the first sample.
      error_buffer: the range of the error. A pair is (lowest, highest). A number e is the range
        from `center - e` to `center + e`, where center is
        `samples_per_insert * min_size_to_sample`. The wider the range, the less actors and
        learners wait for each other.

    Raises:
      ValueError: samples_per_insert is not > 0, min_size_to_sample is not >= 1, or the range is
        so narrow or so high that inserts and samples would wait for each other. If the range is
        so low that a single thread may block itself, a warning is logged.
    """

    def __init__(
        self,
        samples_per_insert: float,
        min_size_to_sample: int,
        error_buffer: Union[float, Tuple[float, float]],
    ) -> None:
        start = number("samples_per_insert", samples_per_insert) * whole_number(
            "min_size_to_sample", min_size_to_sample)
        bounds: Any = error_buffer
        try:
            lowest, highest = bounds
        except TypeError:
            error = number("error_buffer", bounds)
            lowest, highest = start - error, start + error
        except ValueError:
            raise ValueError("error_buffer must be a number, or a pair (lowest, highest), got "
                             f"{error_buffer!r}") from None
        for name, value in (("samples_per_insert", samples_per_insert), ("error_buffer", lowest),
                            ("error_buffer", highest)):
            if value != value:
                raise ValueError(f"{name} must be a number, got nan")
        min_diff = number("the lowest of error_buffer", lowest)
        max_diff = number("the highest of error_buffer", highest)

        if samples_per_insert <= 0:
            raise ValueError(f"samples_per_insert ({samples_per_insert}) must be > 0")
        if not 1e-12 <= samples_per_insert <= 1e9:
            raise ValueError(
                f"samples_per_insert ({samples_per_insert}) must be from 1e-12 to 1e9")
        if max_diff - min_diff < 2 * max(1.0, samples_per_insert):
            raise ValueError(
                "The size of error_buffer must be >= max(1.0, samples_per_insert) as "
                "smaller values could completely block samples and/or insert calls. "
                + _narrow(error_buffer, max_diff - min_diff, max(1.0, samples_per_insert))
            )
        if max_diff < start:
            logger().warning(
                "The range covered by error_buffer is below samples_per_insert * "
                "min_size_to_sample: a program that does not sample and insert at the same "
                "time will block once it has inserted min_size_to_sample items."
            )
        if min_diff > start:
            raise ValueError(
                "The range covered by error_buffer is above samples_per_insert * "
                "min_size_to_sample. This will result in a deadlock as soon as "
                "min_size_to_sample items have been inserted."
            )
        if min_size_to_sample < 1:
            raise ValueError(
                f"min_size_to_sample ({min_size_to_sample}) must be a positive integer"
            )
        super().__init__(
            samples_per_insert=samples_per_insert,
            min_size_to_sample=min_size_to_sample,
            min_diff=min_diff,
            max_diff=max_diff,
        )


@suggest_names
class Queue(RateLimiter):
    """Each item is sampled once, and at most `size` items wait to be sampled. For `Table.queue`."""

    def __init__(self, size: int) -> None:
        super().__init__(
            samples_per_insert=1.0, min_size_to_sample=1, min_diff=0.0,
            max_diff=whole_number("size", size, 1),
        )


@suggest_names
class Stack(RateLimiter):
    """Each item is sampled once, and at most `size` items wait to be sampled. For `Table.stack`."""

    def __init__(self, size: int) -> None:
        super().__init__(
            samples_per_insert=1.0, min_size_to_sample=1, min_diff=0.0,
            max_diff=whole_number("size", size, 1),
        )
