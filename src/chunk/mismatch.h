/* SPDX-License-Identifier: Apache-2.0 */
/* The error text for a column with the wrong dtype or shape:
 *
 *   column 0 'obs': got dtype float64 but expected int64
 *   column 0 'obs': got shape [2] but expected [?] */
#ifndef RP_CHUNK_MISMATCH_H
#define RP_CHUNK_MISMATCH_H

#include "reprise/tensor.h"

/* Returns RP_OK if column `index`, which has `dtype` and `shape`, fits `expected`. Otherwise
 * returns RP_INVALID with an error text as above. The name of the column is expected->name,
 * which may be NULL. */
RP_NODISCARD rp_status rp_column_match(size_t index, rp_dtype dtype, const rp_shape *shape,
                                       const rp_spec *expected, rp_error *err);

#endif
