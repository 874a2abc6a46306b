/* SPDX-License-Identifier: Apache-2.0 */
/* Codec for the payloads of the journal records of rollouts. Rollouts are a named buffer of
 * groups of items (reprise/rollouts.h). docs/checkpoint.md specifies the bytes. Each payload
 * begins with the name of the rollouts:
 *
 *   RP_RECORD_ROLLOUTS_CREATE   name, options (rp_rollout_options_write())
 *   RP_RECORD_ROLLOUTS_OP       name, operation (rp_rollout_op_write())
 *   RP_RECORD_ROLLOUTS_DROP     name
 *
 * The functions access only memory of the caller. Decoding malicious bytes is safe. */
#ifndef RP_DURABLE_FORMAT_ROLLOUT_RECORDS_H
#define RP_DURABLE_FORMAT_ROLLOUT_RECORDS_H

#include "disk/record.h"
#include "rollouts/rollout_op.h"

/* A payload, split into the name and the rest. Both fields borrow from the payload. */
typedef struct rp_rollout_record {
    rp_string name;
    rp_bytes body; /* options, an operation, or nothing */
} rp_rollout_record;

/* Returns true for the three kinds above. */
bool rp_rollout_record_is(rp_record_kind kind);

/* Appends the name with which a payload begins. */
void rp_rollout_record_write_name(rp_buf *out, rp_string name);

/* Splits a payload. The body of an RP_RECORD_ROLLOUTS_DROP must be empty; other bodies are not
 * checked. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_rollout_record_read(rp_record_kind kind, const uint8_t *data,
                                              size_t size, rp_rollout_record *out,
                                              rp_error *err);

#endif
