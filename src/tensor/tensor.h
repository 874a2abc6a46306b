/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of dtypes (element types) and signatures (the tensors of a step,
 * reprise/tensor.h), for the library only. */
#ifndef RP_TENSOR_TENSOR_H
#define RP_TENSOR_TENSOR_H

#include "reprise/tensor.h"

/* Returns true for the eight plain integer types, to which delta encoding applies. */
bool rp_dtype_is_integer(rp_dtype dtype);

/* Writes an error text that begins with `what`, the name of the column, and says that `dtype`
 * is not one of rp_dtype. Returns RP_INVALID. */
rp_status rp_refuse_dtype(const char *what, rp_dtype dtype, rp_error *err);
/* Writes an error text that begins with `what` and says that `rank` is not in [0, most].
 * Returns RP_INVALID. */
rp_status rp_refuse_rank(const char *what, int32_t rank, int32_t most, rp_error *err);

/* Returns the number of bytes of memory that a signature takes. Returns 0 if `signature` is
 * NULL. */
size_t rp_signature_bytes(const rp_signature *signature);

#endif
