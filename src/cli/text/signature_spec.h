/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures as they stand in a configuration: maps and lists with leaves such as
 * "float32 [?, 84, 84]". */
#ifndef RP_CLI_TEXT_SIGNATURE_SPEC_H
#define RP_CLI_TEXT_SIGNATURE_SPEC_H

#include "cli/text/yaml_tree.h"
#include "reprise/tensor.h"

/* A dtype by name: NumPy's ("float32") or TensorFlow's ("float"). RP_INVALID_DTYPE if there is
 * none. */
rp_dtype rp_dtype_parse(const char *name);
/* NumPy's name where it has one. Static; NULL if it is no dtype. */
const char *rp_dtype_text(rp_dtype dtype);

/* One leaf: a dtype, then the shape of the whole column, rows first; '?' is any size, and
 * without a shape any will do. RP_INVALID with what is wrong in `why`; pure. */
RP_NODISCARD rp_status rp_spec_parse(const char *text, rp_spec *spec, char *why,
                                     size_t why_bytes);
/* Writes it back and returns `text`; cut to fit. `size` >= 1. */
char *rp_spec_text(const rp_spec *spec, char *text, size_t size);

/* The signature that a node describes; `key` leads messages. Returns owned: drop it with
 * rp_signature_unref(). RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_signature_from_yaml(rp_arena *arena, const char *key,
                                              const rp_yaml *node, rp_signature **out,
                                              rp_problem *problem);

#endif
