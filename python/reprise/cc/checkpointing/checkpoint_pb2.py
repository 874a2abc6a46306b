# SPDX-License-Identifier: Apache-2.0
"""Tables as configurations have them, by the name Reverb has for their module."""

from reprise.protos import PriorityTableCheckpoint, RateLimiterCheckpoint

__all__ = ["PriorityTableCheckpoint", "RateLimiterCheckpoint"]
