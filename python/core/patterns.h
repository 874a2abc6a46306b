/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the patterns of a structured writer from tuples. A pattern says which columns of which
 * steps make an item (reprise/structured_writer.h). */
#ifndef REPRISE_PYTHON_PATTERNS_H
#define REPRISE_PYTHON_PATTERNS_H

#include "core.h"

typedef struct core_patterns {
    rp_pattern *patterns;
    size_t count;
} core_patterns;

/* Reads a tuple of patterns. A pattern is (table, nodes, conditions, priority):
 *   a node is       (source, start or None, stop or None, step or None)
 *   a condition is  (left, column, compare, mod, value, inverse), where `left` is a value of
 *                   the enum rp_condition_left and `compare` is one of rp_condition_compare
 *   a priority is   (kind, value, max_priority_weight, column), where `kind` is a number of
 *                   rp_priority_kind
 * `*out` borrows strings from `obj`. The caller frees `*out` with core_patterns_free(). After a
 * failure `*out` is empty. */
int core_patterns_from(PyObject *obj, core_patterns *out);
void core_patterns_free(core_patterns *patterns);

#endif
