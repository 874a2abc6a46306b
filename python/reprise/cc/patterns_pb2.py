# SPDX-License-Identifier: Apache-2.0
"""The messages for patterns, under the module name that they have in Reverb."""

from reprise.pattern_protos import Condition, PatternNode, Priority, StructuredWriterConfig

__all__ = ["Condition", "PatternNode", "Priority", "StructuredWriterConfig"]
