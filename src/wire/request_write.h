/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the requests of a client, except insert requests (insert_request_write.h). The server
 * reads them with reverb_messages.h and admin_messages.h.
 *
 * Each function but rp_wire_write_lease() appends one message to `out`. If there is no memory,
 * `out->bad` is set: the caller must test `out->bad` before it sends the message. The arguments
 * are not checked here, since the server checks every request. ServerInfoRequest and
 * CheckpointRequest are empty messages, so they need no function. */
#ifndef RP_WIRE_REQUEST_WRITE_H
#define RP_WIRE_REQUEST_WRITE_H

#include "reprise/table.h"
#include "util/buf.h"

/* `timeout_ms` is the longest wait for the rate limiter: negative means no limit, 0 means no
 * wait. It is always sent. */
void rp_wire_write_sample_request(rp_buf *out, const char *table, int64_t num_samples,
                                  int64_t timeout_ms);
void rp_wire_write_mutate_request(rp_buf *out, const char *table, const rp_update *updates,
                                  size_t update_count, const uint64_t *deletes,
                                  size_t delete_count);
void rp_wire_write_reset_request(rp_buf *out, const char *table);
void rp_wire_write_initialize_request(rp_buf *out, int64_t pid, const char *table);

/* Turns the request in `out`, which rp_wire_write_sample_request() has written, into a
 * SampleSharedRequest, for sampling through shared memory. Appends the id of the client's lease
 * on that memory (server/shm/lease.h), and `call`, the number that the client gives to this
 * call. */
void rp_wire_write_lease(rp_buf *out, const void *lease, size_t lease_bytes, uint64_t call);

/* Writes all options but the extensions and the seed, for which the message has no fields. */
void rp_wire_write_create_table(rp_buf *out, const rp_table_options *options);
void rp_wire_write_drop_table(rp_buf *out, const char *table);
/* If `change` has a limiter, all fields of the limiter are sent. */
void rp_wire_write_alter_table(rp_buf *out, const char *table,
                               const rp_table_alteration *change);
/* Writes a PauseTableRequest or a ResumeTableRequest, which have the same fields. `sides` is
 * RP_SIDE_INSERTS, RP_SIDE_SAMPLES or both of them; 0 also means both. */
void rp_wire_write_pause_table(rp_buf *out, const char *table, uint32_t sides);
/* If `table` is NULL, asks for all tables. */
void rp_wire_write_why_blocked(rp_buf *out, const char *table, size_t max_calls);
/* If `table` is NULL, asks for all tables. With `without_tables`, asks only for the state of
 * the server. */
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
