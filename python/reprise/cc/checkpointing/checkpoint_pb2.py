# SPDX-License-Identifier: Apache-2.0
"""The messages for tables in configurations, under the module name that they have in Reverb."""

from reprise.protos import PriorityTableCheckpoint, RateLimiterCheckpoint

__all__ = ["PriorityTableCheckpoint", "RateLimiterCheckpoint"]
