/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of proto/reprise/v1/rollouts.proto. Pure functions over bytes; what readers of
 * requests return borrows from the bytes read.
 *
 * Readers of requests return RP_INVALID (the message is malformed, or over a bound of
 * reprise/rollouts.h) and RP_NO_RESOURCE. Readers of responses return RP_CORRUPT instead of
 * RP_INVALID. */
#ifndef RP_ROLLOUTS_ROLLOUT_MESSAGES_H
#define RP_ROLLOUTS_ROLLOUT_MESSAGES_H

#include "reprise/rollout_calls.h"
#include "rollouts/rollouts.h"
#include "wire/message.h"

/* CreateRolloutsRequest. The options are owned: rp_rollout_options_free(). */
RP_NODISCARD rp_status rp_rollout_create_read(const rp_allocator *alloc, const uint8_t *data,
                                              size_t size, rp_string *name,
                                              rp_rollout_options **options, rp_error *err);
void rp_rollout_create_write(rp_buf *out, rp_string name, const rp_rollout_options *options);

/* DropRolloutsRequest, ListRolloutsRequest, PeekRolloutsRequest, ReadCursorRequest: the name of
 * the rollouts, and that of a group or a cursor. Either may be empty. */
typedef struct rp_rollout_names {
    rp_string rollouts, other;
} rp_rollout_names;

RP_NODISCARD rp_status rp_rollout_names_read(const uint8_t *data, size_t size,
                                             rp_rollout_names *out, rp_error *err);
void rp_rollout_names_write(rp_buf *out, const rp_rollout_names *names);

/* ApplyRolloutsRequest. */
typedef struct rp_rollout_apply {
    rp_string rollouts;
    rp_rollout_op op;
    int64_t timeout_ms; /* 0: the operation does not wait; < 0: as long as the server allows */
} rp_rollout_apply;

/* Call rp_rollout_op_deinit() for the operation after RP_OK. */
RP_NODISCARD rp_status rp_rollout_apply_read(const rp_allocator *alloc, const uint8_t *data,
                                             size_t size, rp_rollout_apply *out, rp_error *err);
void rp_rollout_apply_write(rp_buf *out, const rp_rollout_apply *apply);

/* Writes an ApplyRolloutsResponse, or a PeekRolloutsResponse, without its groups. */
void rp_rollout_result_write(rp_buf *out, const rp_rollout_result *result);

/* Writes the groups of a batch after the other fields, in steps. Large values are borrowed from
 * the batch, which has to stay until the message is released. Zero-initialise it and set the
 * first two fields. */
typedef struct rp_rollout_batch_writer {
    const rp_rollout_batch *batch;
    rp_message *message;
    size_t group, item; /* the next ones; private, as is the next */
    bool has_begun;
} rp_rollout_batch_writer;

/* The bytes of the message that the writer makes of a batch. If they are more than `most`,
 * returns any number that is. */
size_t rp_rollout_batch_measure(const rp_rollout_batch *batch, size_t most);
/* Writes items until about `bytes` are written. False if all are. */
bool rp_rollout_batch_step(rp_rollout_batch_writer *writer, size_t bytes);

/* An ApplyRolloutsResponse or a PeekRolloutsResponse. */
typedef struct rp_rollout_response {
    rp_rollout_outcome outcome;
    rp_rollout_fate fate;
    int64_t version;
    uint64_t removed;
    /* A copy of the groups, owned: rp_rollouts_draw_free(). NULL if the response has none. */
    rp_rollouts_draw *draw;
} rp_rollout_response;

RP_NODISCARD rp_status rp_rollout_response_read(const rp_allocator *alloc, const uint8_t *data,
                                                size_t size, rp_rollout_response *out,
                                                rp_error *err);

/* Writes one entry of a ListRolloutsResponse. */
void rp_rollout_entry_write(rp_buf *out, const rp_rollouts_entry *entry);
/* Reads a ListRolloutsResponse, and calls on_entry of `call` with each entry until one is
 * malformed. */
RP_NODISCARD rp_status rp_rollout_entries_read(const rp_allocator *alloc, const uint8_t *data,
                                               size_t size, const rp_rollouts_call *call,
                                               rp_error *err);

/* A ReadCursorResponse. */
void rp_rollout_cursor_write(rp_buf *out, const void *data, size_t size);
RP_NODISCARD rp_status rp_rollout_cursor_read(const uint8_t *data, size_t size, rp_bytes *out,
                                              rp_error *err);

#endif
