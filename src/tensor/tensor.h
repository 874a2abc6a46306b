/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about dtypes and signatures that only the library asks. */
#ifndef RP_TENSOR_TENSOR_H
#define RP_TENSOR_TENSOR_H

#include "reprise/tensor.h"

/* Returns true for the eight plain integer types, the ones that delta encoding changes. */
bool rp_dtype_is_integer(rp_dtype dtype);

/* Returns the bytes of memory that a signature takes, 0 for NULL. */
size_t rp_signature_bytes(const rp_signature *signature);

#endif
