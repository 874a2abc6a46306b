/* SPDX-License-Identifier: Apache-2.0 */
/* Parses signatures in a configuration file. A signature describes the columns of a table's
 * items. In YAML it consists of nested maps and lists, and each leaf describes a column:
 * "float32 [?, 84, 84]". */
#ifndef RP_CLI_TEXT_SIGNATURE_SPEC_H
#define RP_CLI_TEXT_SIGNATURE_SPEC_H

#include "cli/text/yaml_tree.h"
#include "reprise/tensor.h"

/* Returns the dtype with this name in NumPy ("float32") or TensorFlow ("float"). Returns
 * RP_INVALID_DTYPE if there is none. */
rp_dtype rp_dtype_parse(const char *name);
/* Returns NumPy's name of a dtype, or TensorFlow's if NumPy has none, as a static string.
 * Returns NULL if `dtype` is not a dtype. */
const char *rp_dtype_text(rp_dtype dtype);

/* Parses a leaf, such as "float32 [?, 84, 84]": a dtype, then the shape of the whole column,
 * whose first dimension is the number of rows. '?' stands for any size. Without a shape, the
 * leaf allows any shape. If the leaf is wrong, returns RP_INVALID and writes the reason to
 * `why`. Pure. */
RP_NODISCARD rp_status rp_spec_parse(const char *text, rp_spec *spec, char *why,
                                     size_t why_bytes);
/* Writes `spec` as a leaf, cut to fit `size` >= 1 bytes. Returns `text`. */
char *rp_spec_text(const rp_spec *spec, char *text, size_t size);

/* Creates the signature that a YAML node describes. Error texts begin with `key`. The caller
 * must release *out with rp_signature_unref(). Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_signature_from_yaml(rp_arena *arena, const char *key,
                                              const rp_yaml *node, rp_signature **out,
                                              rp_problem *problem);

#endif
