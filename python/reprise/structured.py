# SPDX-License-Identifier: Apache-2.0
"""Items by patterns: `reprise.structured_writer` under its public name."""

from reprise.structured_writer import (
    BatchWriter,
    Condition,
    ConditionProto,
    Config,
    Pattern,
    PatternTransform,
    ReferenceStep,
    StructuredWriter,
    constant_priority_fn,
    create_config,
    create_reference_step,
    infer_signature,
    pattern_from_transform,
    td_error,
    unpack_pattern,
)

__all__ = [
    "BatchWriter",
    "Condition",
    "ConditionProto",
    "Config",
    "Pattern",
    "PatternTransform",
    "ReferenceStep",
    "StructuredWriter",
    "constant_priority_fn",
    "create_config",
    "create_reference_step",
    "infer_signature",
    "pattern_from_transform",
    "td_error",
    "unpack_pattern",
]
