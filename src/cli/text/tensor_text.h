/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as people and machines read them, and back. Pure. */
#ifndef RP_CLI_TEXT_TENSOR_TEXT_H
#define RP_CLI_TEXT_TENSOR_TEXT_H

#include "cli/text/json_tree.h"
#include "cli/text/problem.h"
#include "cli/text/sheet.h"
#include "reprise/tensor.h"

/* Writes "[[1 2 3] [4 5 6]]". With more than `most` elements only the first and the last few
 * along each dimension, and "..." between. `most` 0: all of them. */
void rp_tensor_print(rp_sheet *out, const rp_tensor *tensor, size_t most);

/* Writes nested arrays. Numbers that JSON has not are strings ("NaN"); a complex number is an
 * array of two; types without a C type (half, bfloat16, float8) are numbers all the same. */
void rp_tensor_json(rp_sheet *out, const rp_tensor *tensor);

/* The dtype that suits a value: int64, uint64, double, bool or string; RP_INVALID_DTYPE if it
 * has no element, or different ones. */
rp_dtype rp_json_dtype(const rp_json *value);

/* Reads nested arrays as a tensor of `dtype`; the elements are the arena's. `name` leads
 * messages. RP_INVALID (ragged, an element of another type or out of range), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tensor_from_json(rp_arena *arena, const char *name,
                                           const rp_json *value, rp_dtype dtype, rp_tensor *out,
                                           rp_problem *problem);

/* One element as a number: integers, floats of every kind, booleans. 0 for others. */
double rp_element_number(rp_dtype dtype, const void *element);

#endif
