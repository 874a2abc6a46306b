/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the requests of a client. reverb_messages.h and admin_messages.h read them on the
 * server. Insert requests have a file of their own (insert_request_write.h).
 *
 * Each function appends one message to `out`. If an append fails, `out->bad` is set: test it
 * before sending. The arguments are not checked here, since the server checks what it receives.
 * ServerInfoRequest and CheckpointRequest are empty messages: there is nothing to append. */
#ifndef RP_WIRE_REQUEST_WRITE_H
#define RP_WIRE_REQUEST_WRITE_H

#include "reprise/table.h"
#include "util/buf.h"

/* `timeout_ms` is the longest wait for the rate limiter: negative waits for ever, 0 does not
 * wait. It is always sent. */
void rp_wire_write_sample_request(rp_buf *out, const char *table, int64_t num_samples,
                                  int64_t timeout_ms);
void rp_wire_write_mutate_request(rp_buf *out, const char *table, const rp_update *updates,
                                  size_t update_count, const uint64_t *deletes,
                                  size_t delete_count);
void rp_wire_write_reset_request(rp_buf *out, const char *table);
void rp_wire_write_initialize_request(rp_buf *out, int64_t pid, const char *table);

/* Call it after rp_wire_write_sample_request() to turn the request in `out` into a
 * SampleSharedRequest, for sampling through shared memory. Appends the id of the client's lease
 * on that memory, and `call`, the number of this call under the lease. */
void rp_wire_write_lease(rp_buf *out, const void *lease, size_t lease_bytes, uint64_t call);

/* Writes all options but the extensions and the seed, for which the message has no fields. */
void rp_wire_write_create_table(rp_buf *out, const rp_table_options *options);
void rp_wire_write_drop_table(rp_buf *out, const char *table);
/* If `change` has a limiter, all of the limiter's fields are sent. */
void rp_wire_write_alter_table(rp_buf *out, const char *table,
                               const rp_table_alteration *change);
/* Writes a PauseTableRequest or a ResumeTableRequest, which have the same fields. `sides` is
 * RP_SIDE_INSERTS, RP_SIDE_SAMPLES or both of them; 0 also means both. */
void rp_wire_write_pause_table(rp_buf *out, const char *table, uint32_t sides);
/* If `table` is NULL, asks for all tables. */
void rp_wire_write_why_blocked(rp_buf *out, const char *table, size_t max_calls);
/* If `table` is NULL, asks for all tables; with `without_tables`, for the state of the server
 * only. */
void rp_wire_write_status_request(rp_buf *out, const char *table, bool without_tables);

void rp_wire_write_peek(rp_buf *out, const char *table, const uint64_t *keys, size_t count,
                        bool with_data, bool cut_rows);
void rp_wire_write_update(rp_buf *out, const char *table, const rp_update *updates,
                          size_t count);
void rp_wire_write_delete(rp_buf *out, const char *table, const uint64_t *keys, size_t count);

/* Writes a SampleRequest of reprise's own service. (rp_wire_write_sample_request() writes the
 * SampleStreamRequest of Reverb.) If `timeout_ms` is negative, the server waits for ever. */
void rp_wire_write_draw(rp_buf *out, const char *table, const rp_sample_options *options,
                        int64_t timeout_ms, bool cut_rows);

#endif
