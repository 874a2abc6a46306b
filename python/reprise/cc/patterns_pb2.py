# SPDX-License-Identifier: Apache-2.0
"""The messages of patterns, by the name Reverb has for their module."""

from reprise.pattern_protos import Condition, PatternNode, Priority, StructuredWriterConfig

__all__ = ["Condition", "PatternNode", "Priority", "StructuredWriterConfig"]
