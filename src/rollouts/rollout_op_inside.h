/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that check, copy and encode the options, names and columns of operations. Shared by
 * the rollout_*.c files of this directory. */
#ifndef RP_ROLLOUTS_ROLLOUT_OP_INSIDE_H
#define RP_ROLLOUTS_ROLLOUT_OP_INSIDE_H

#include "rollouts/rollout_item.h"

/* True if `name` is UTF-8 of 1 to RP_ROLLOUT_NAME_BYTES bytes without a zero byte. */
bool rp_rollout_is_name(rp_string name);
/* Checks a name as rp_rollout_is_name() does. For the text of the error, `what` says what the
 * name belongs to: "a group". RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_check_name(rp_string name, const char *what, rp_error *err);

/* Copies checked options and their names into one block. If the options have no consumer, the
 * copy has one, with an empty name and no columns. Returns owned, for
 * rp_rollout_options_free(). NULL if there is no memory. */
rp_rollout_options *rp_rollout_options_copy(const rp_allocator *alloc,
                                            const rp_rollout_options *options);
/* True if rp_rollout_options_copy() of `b` would have the same consumers as `a`, in the same
 * order. `a` is such a copy. */
bool rp_rollout_consumers_equal(const rp_rollout_options *a, const rp_rollout_options *b);

/* Checks the columns of an item: how many they are, each one, their sum of bytes, and that no
 * name occurs twice. RP_INVALID. */
RP_NODISCARD rp_status rp_rollout_check_columns(const rp_rollout_column *columns, size_t count,
                                                rp_error *err);

/* The bytes of a column's submessage, without its tag and length. */
size_t rp_rollout_column_size(const rp_rollout_column *column);
/* Appends a column as the field `number`. */
void rp_rollout_column_put(rp_buf *out, uint32_t number, const rp_rollout_column *column);

/* Counts the fields `number` of a message. False if it is malformed. */
bool rp_rollout_count_fields(const uint8_t *data, size_t size, uint32_t number, size_t *count);

#endif
