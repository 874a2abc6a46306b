/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tensors as text, writes them as JSON, and makes them from JSON. Pure functions. */
#ifndef RP_CLI_TEXT_TENSOR_TEXT_H
#define RP_CLI_TEXT_TENSOR_TEXT_H

#include "cli/text/json_tree.h"
#include "cli/text/problem.h"
#include "cli/text/text_buffer.h"
#include "reprise/tensor.h"

/* Writes a tensor as "[[1 2 3] [4 5 6]]". If it has more than `most` elements, writes only the
 * first and last few of each dimension, with "..." between them. If `most` is 0, writes all
 * elements. */
void rp_tensor_print(rp_text_buffer *out, const rp_tensor *tensor, size_t most);

/* Writes a tensor as nested JSON arrays. NaN and infinities become strings ("NaN"). A complex
 * number becomes an array of two numbers. */
void rp_tensor_json(rp_text_buffer *out, const rp_tensor *tensor);

/* Returns the dtype that fits the elements of a JSON value: int64, uint64, double, bool or
 * string. Returns RP_INVALID_DTYPE if the value has no elements, or elements of different
 * types. */
rp_dtype rp_json_dtype(const rp_json *value);

/* Creates a tensor of `dtype` from nested JSON arrays, in memory of the arena. Error texts
 * begin with `name`. Returns RP_INVALID if the arrays are ragged, or an element has another
 * type or is out of range. Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tensor_from_json(rp_arena *arena, const char *name,
                                           const rp_json *value, rp_dtype dtype, rp_tensor *out,
                                           rp_problem *problem);

/* Returns the value of an element that is an integer, a float of any size or a boolean. Returns
 * 0 for other dtypes. */
double rp_element_number(rp_dtype dtype, const void *element);

#endif
