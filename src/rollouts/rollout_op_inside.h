/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that check, copy and encode the names, columns and options in operations on rollout
 * buffers (rollout_op.h), for the files of this directory. */
#ifndef RP_ROLLOUTS_ROLLOUT_OP_INSIDE_H
#define RP_ROLLOUTS_ROLLOUT_OP_INSIDE_H

#include "rollouts/rollout_item.h"

/* Returns true if `name` is UTF-8 of 1 to RP_ROLLOUT_NAME_BYTES bytes and contains no zero
 * byte. */
bool rp_rollout_is_name(rp_string name);
/* Returns RP_OK if rp_rollout_is_name() is true, otherwise RP_INVALID. The error text contains
 * `what`, the kind of object that has the name, such as "a group". */
RP_NODISCARD rp_status rp_rollout_check_name(rp_string name, const char *what, rp_error *err);

/* Copies checked options and their names into one block, which the caller must release with
 * rp_rollout_options_free(). If the options contain no consumer, the copy contains one with an
 * empty name that needs no columns. Returns NULL if memory runs out. */
rp_rollout_options *rp_rollout_options_copy(const rp_allocator *alloc,
                                            const rp_rollout_options *options);
/* Returns true if a copy of `b` (rp_rollout_options_copy()) would have the same consumers as
 * `a`, in the same order. `a` must itself be such a copy. */
bool rp_rollout_consumers_equal(const rp_rollout_options *a, const rp_rollout_options *b);

/* Checks the columns of an item: their number, each column, the sum of their bytes, and that no
 * two have the same name. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_check_columns(const rp_rollout_column *columns, size_t count,
                                                rp_error *err);

/* Returns the size in bytes of a column's submessage, without its tag and length. */
size_t rp_rollout_column_size(const rp_rollout_column *column);
/* Appends a column as a submessage in the field `number`. */
void rp_rollout_column_put(rp_buf *out, uint32_t number, const rp_rollout_column *column);

/* Counts how often the field `number` occurs in a message. Returns false if the message is
 * malformed. */
bool rp_rollout_count_fields(const uint8_t *data, size_t size, uint32_t number, size_t *count);

#endif
