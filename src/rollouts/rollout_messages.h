/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the protobuf messages about rollout buffers
 * (proto/reprise/v1/rollouts.proto). The functions have no state. The result of reading a
 * request borrows from the bytes of the request.
 *
 * If a message is malformed or exceeds a bound of reprise/rollouts.h, a reader of requests
 * returns RP_INVALID, and a reader of responses returns RP_CORRUPT. A reader returns
 * RP_NO_RESOURCE if memory runs out. */
#ifndef RP_ROLLOUTS_ROLLOUT_MESSAGES_H
#define RP_ROLLOUTS_ROLLOUT_MESSAGES_H

#include "reprise/rollout_calls.h"
#include "rollouts/rollouts.h"
#include "wire/message.h"

/* CreateRolloutsRequest. The caller must release *options with rp_rollout_options_free(). */
RP_NODISCARD rp_status rp_rollout_create_read(const rp_allocator *alloc, const uint8_t *data,
                                              size_t size, rp_string *name,
                                              rp_rollout_options **options, rp_error *err);
void rp_rollout_create_write(rp_buf *out, rp_string name, const rp_rollout_options *options);

/* DropRolloutsRequest, ListRolloutsRequest, PeekRolloutsRequest and ReadCursorRequest: the name
 * of a rollout buffer, and the name of a group or a cursor. Each name may be empty. */
typedef struct rp_rollout_names {
    rp_string rollouts, other;
} rp_rollout_names;

RP_NODISCARD rp_status rp_rollout_names_read(const uint8_t *data, size_t size,
                                             rp_rollout_names *out, rp_error *err);
void rp_rollout_names_write(rp_buf *out, const rp_rollout_names *names);

/* ApplyRolloutsRequest: an operation on a rollout buffer (rollout_op.h). */
typedef struct rp_rollout_apply {
    rp_string rollouts; /* name of the buffer */
    rp_rollout_op op;
    int64_t timeout_ms; /* the longest wait. 0: none; negative: as long as the server permits */
} rp_rollout_apply;

/* After RP_OK, the caller must call rp_rollout_op_deinit() for out->op. */
RP_NODISCARD rp_status rp_rollout_apply_read(const rp_allocator *alloc, const uint8_t *data,
                                             size_t size, rp_rollout_apply *out, rp_error *err);
void rp_rollout_apply_write(rp_buf *out, const rp_rollout_apply *apply);

/* Writes an ApplyRolloutsResponse or a PeekRolloutsResponse, except for its groups. */
void rp_rollout_result_write(rp_buf *out, const rp_rollout_result *result);

/* Writes the groups of a batch in steps to the message that rp_rollout_result_write() began.
 * The message borrows large values from the batch, so the caller must keep the batch until the
 * message is released. The caller must zero-initialise the struct and set the first two
 * fields. */
typedef struct rp_rollout_batch_writer {
    const rp_rollout_batch *batch;
    rp_message *message;
    size_t group, item; /* private: the next group and item to write */
    bool has_begun;     /* private */
} rp_rollout_batch_writer;

/* Returns the number of bytes that the writer adds to the message for a batch. If that is more
 * than `most`, the result can be any number above `most`. */
size_t rp_rollout_batch_measure(const rp_rollout_batch *batch, size_t most);
/* Writes items until this call has written about `bytes` bytes. Returns false once all items
 * are written. */
bool rp_rollout_batch_step(rp_rollout_batch_writer *writer, size_t bytes);

/* An ApplyRolloutsResponse or a PeekRolloutsResponse that was read. */
typedef struct rp_rollout_response {
    rp_rollout_outcome outcome;
    rp_rollout_fate fate;
    int64_t version;
    uint64_t removed; /* number of groups that the operation removed */
    /* A copy of the groups, which the caller must release with rp_rollouts_draw_free(). NULL if
     * the response has no groups. */
    rp_rollouts_draw *draw;
} rp_rollout_response;

RP_NODISCARD rp_status rp_rollout_response_read(const rp_allocator *alloc, const uint8_t *data,
                                                size_t size, rp_rollout_response *out,
                                                rp_error *err);

/* Writes one entry of a ListRolloutsResponse. */
void rp_rollout_entry_write(rp_buf *out, const rp_rollouts_entry *entry);
/* Reads a ListRolloutsResponse. Calls call->on_entry with each entry, and stops at the first
 * malformed entry. */
RP_NODISCARD rp_status rp_rollout_entries_read(const rp_allocator *alloc, const uint8_t *data,
                                               size_t size, const rp_rollouts_call *call,
                                               rp_error *err);

/* ReadCursorResponse: the bytes of a cursor. */
void rp_rollout_cursor_write(rp_buf *out, const void *data, size_t size);
RP_NODISCARD rp_status rp_rollout_cursor_read(const uint8_t *data, size_t size, rp_bytes *out,
                                              rp_error *err);

#endif
