# SPDX-License-Identifier: Apache-2.0
"""Makes tables from messages, which are those of `reprise.protos` or protobuf's of the same names.

The command line has a different configuration, with more options: `reprise serve --help`.
"""

from __future__ import annotations

from typing import Any, List, Sequence

from reprise import pybind, rate_limiters, reverb_types, server

__all__ = ["rate_limiter_from_proto", "selector_from_proto", "tables_from_proto"]


def selector_from_proto(s: Any) -> reverb_types.SelectorType:
    """Returns the selector that a `KeyDistributionOptions` describes.

    Raises:
      ValueError: the boolean field that names the selector is false.
      NotImplementedError: the message names no selector.
    """
    return pybind.selector_from_options(s)


def rate_limiter_from_proto(proto: Any) -> rate_limiters.RateLimiter:
    """Returns the limiter that a `RateLimiterCheckpoint` describes."""
    return rate_limiters.RateLimiter(
        samples_per_insert=proto.samples_per_insert,
        min_size_to_sample=proto.min_size_to_sample,
        min_diff=proto.min_diff,
        max_diff=proto.max_diff,
    )


def tables_from_proto(configs: Sequence[Any]) -> List[server.Table]:
    """Returns new, empty tables for messages of type `PriorityTableCheckpoint`."""
    return [
        server.Table(
            name=config.table_name,
            sampler=selector_from_proto(config.sampler),
            remover=selector_from_proto(config.remover),
            max_size=config.max_size,
            rate_limiter=rate_limiter_from_proto(config.rate_limiter),
            max_times_sampled=config.max_times_sampled,
        )
        for config in configs
    ]
