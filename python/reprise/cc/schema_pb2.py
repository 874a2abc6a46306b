# SPDX-License-Identifier: Apache-2.0
"""The messages in a `TableInfo`, under the module name that they have in Reverb."""

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
