/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a client: what reverb_messages.h and admin_messages.h read. Insert requests
 * have a file of their own (insert_request_write.h).
 *
 * Each appends one message to `out`, mostly the &reply->bytes of a reply; look at
 * `out->bad` at the end. Nothing is checked: the server does. ServerInfoRequest and
 * CheckpointRequest are empty messages: there is nothing to append. */
#ifndef RP_WIRE_REQUEST_WRITE_H
#define RP_WIRE_REQUEST_WRITE_H

#include "reprise/table.h"
#include "util/buf.h"

/* `timeout_ms` is sent in every case: negative is for ever, 0 not at all. */
void rp_wire_write_sample_request(rp_buf *out, const char *table, int64_t num_samples,
                                  int64_t timeout_ms);
void rp_wire_write_mutate_request(rp_buf *out, const char *table, const rp_update *updates,
                                  size_t update_count, const uint64_t *deletes,
                                  size_t delete_count);
void rp_wire_write_reset_request(rp_buf *out, const char *table);
void rp_wire_write_initialize_request(rp_buf *out, int64_t pid, const char *table);

/* What makes a SampleSharedRequest of it: the lease, and the number of the call. */
void rp_wire_write_lease(rp_buf *out, const void *lease, size_t lease_bytes, uint64_t call);

/* All but the extensions and the seed, which are the server's. */
void rp_wire_write_create_table(rp_buf *out, const rp_table_options *options);
void rp_wire_write_drop_table(rp_buf *out, const char *table);
/* Of a limiter, all fields are sent. */
void rp_wire_write_alter_table(rp_buf *out, const char *table,
                               const rp_table_alteration *change);
/* PauseTableRequest and ResumeTableRequest. RP_SIDE_...; none stands for both. */
void rp_wire_write_pause_table(rp_buf *out, const char *table, uint32_t sides);
/* NULL: all tables. */
void rp_wire_write_why_blocked(rp_buf *out, const char *table, size_t max_calls);
/* `without_tables`: of none of them. */
void rp_wire_write_status_request(rp_buf *out, const char *table, bool without_tables);

void rp_wire_write_peek(rp_buf *out, const char *table, const uint64_t *keys, size_t count,
                        bool with_data, bool cut_rows);
void rp_wire_write_update(rp_buf *out, const char *table, const rp_update *updates,
                          size_t count);
void rp_wire_write_delete(rp_buf *out, const char *table, const uint64_t *keys, size_t count);

/* SampleRequest; `timeout_ms` negative: for ever. */
void rp_wire_write_draw(rp_buf *out, const char *table, const rp_sample_options *options,
                        int64_t timeout_ms, bool cut_rows);

#endif
