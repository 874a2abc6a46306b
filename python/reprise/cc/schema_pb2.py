# SPDX-License-Identifier: Apache-2.0
"""The messages of `TableInfo`, by the name Reverb has for their module: `reprise.protos`."""

from reprise.protos import (
    KeyDistributionOptions,
    RateLimiterCallStats,
    RateLimiterInfo,
    TableWorkerTime,
)

__all__ = [
    "KeyDistributionOptions",
    "RateLimiterCallStats",
    "RateLimiterInfo",
    "TableWorkerTime",
]
