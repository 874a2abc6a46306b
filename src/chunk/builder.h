/* SPDX-License-Identifier: Apache-2.0 */
/* Appending in two steps, for whoever appends a row to several builders or to none of them. */
#ifndef RP_CHUNK_BUILDER_H
#define RP_CHUNK_BUILDER_H

#include "reprise/chunk.h"

/* Checks a row and makes room for it; the first half of rp_chunk_builder_append(), with its
 * statuses. Nothing is appended yet. */
RP_NODISCARD rp_status rp_chunk_builder_reserve(rp_chunk_builder *builder, const rp_tensor *row,
                                                rp_error *err);

/* Appends the row that was reserved last, since when nothing else happened to the builder.
 * Cannot fail. */
void rp_chunk_builder_commit(rp_chunk_builder *builder, const rp_tensor *row);

#endif
