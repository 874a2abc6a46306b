/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as text and as JSON, and from JSON. Pure. */
#ifndef RP_CLI_TEXT_TENSOR_TEXT_H
#define RP_CLI_TEXT_TENSOR_TEXT_H

#include "cli/text/json_tree.h"
#include "cli/text/problem.h"
#include "cli/text/text_buffer.h"
#include "reprise/tensor.h"

/* Writes "[[1 2 3] [4 5 6]]". With more than `most` elements, writes only the first and last
 * few of each dimension, with "..." between. `most` 0: all elements. */
void rp_tensor_print(rp_text_buffer *out, const rp_tensor *tensor, size_t most);

/* Writes nested arrays. Numbers that JSON cannot express are strings ("NaN"); a complex number
 * is an array of two; half, bfloat16 and float8 are numbers. */
void rp_tensor_json(rp_text_buffer *out, const rp_tensor *tensor);

/* Returns the dtype of a value: int64, uint64, double, bool or string; RP_INVALID_DTYPE if it
 * has no elements or elements of different types. */
rp_dtype rp_json_dtype(const rp_json *value);

/* Creates a tensor of `dtype` from nested arrays, in memory of the arena. Error texts begin
 * with `name`.
 * RP_INVALID (ragged, an element of another type or out of range), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tensor_from_json(rp_arena *arena, const char *name,
                                           const rp_json *value, rp_dtype dtype, rp_tensor *out,
                                           rp_problem *problem);

/* Returns an element as a number: integers, all floats, booleans. 0 for others. */
double rp_element_number(rp_dtype dtype, const void *element);

#endif
