/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small requests of Reverb's service, and writes its small responses.
 *
 * insert_request.h and sample_response.h have the messages with chunks. The functions depend
 * only on their arguments. Strings borrow from the bytes read. Errors of readers: RP_INVALID
 * (the message is malformed; a name is not text or has more than 255 bytes), RP_NO_RESOURCE
 * (too many keys). Out-parameters are written on RP_OK only. */
#ifndef RP_WIRE_REVERB_MESSAGES_H
#define RP_WIRE_REVERB_MESSAGES_H

#include "reprise/table.h"
#include "util/buf.h"

typedef struct rp_wire_sample_request {
    rp_string table;
    int64_t num_samples; /* as sent: not checked */
    bool has_timeout;    /* the message has a timeout; false means no limit */
    int64_t timeout_ms;  /* as sent: negative means no limit, 0 means no wait */
    rp_string lease;     /* SampleShared only: the id of the client's lease on the shared memory
                            (server/shm/lease.h); not checked */
    uint64_t lease_call; /* SampleShared only: the number that the client gave to the call */
} rp_wire_sample_request;

RP_NODISCARD rp_status rp_wire_read_sample_request(const uint8_t *data, size_t size,
                                                   rp_wire_sample_request *out, rp_error *err);

/* Borrows the whole message. The functions below copy updates and keys from it. */
typedef struct rp_wire_mutate_request {
    rp_string table;
    size_t update_count, delete_count;
    const uint8_t *data;
    size_t size;
} rp_wire_mutate_request;

/* Checks a whole MutatePrioritiesRequest and counts its updates and deletes. Returns
 * RP_NO_RESOURCE if the message has more than `max_keys` updates and deletes together. */
RP_NODISCARD rp_status rp_wire_read_mutate_request(const uint8_t *data, size_t size,
                                                   size_t max_keys, rp_wire_mutate_request *out,
                                                   rp_error *err);

/* rp_wire_mutate_updates() copies the update_count updates, rp_wire_mutate_deletes() the
 * delete_count keys to delete, in the order of the message. */
void rp_wire_mutate_updates(const rp_wire_mutate_request *request, rp_update *updates);
void rp_wire_mutate_deletes(const rp_wire_mutate_request *request, uint64_t *keys);

RP_NODISCARD rp_status rp_wire_read_reset_request(const uint8_t *data, size_t size,
                                                  rp_string *table, rp_error *err);
RP_NODISCARD rp_status rp_wire_read_initialize_request(const uint8_t *data, size_t size,
                                                       int64_t *pid, rp_string *table,
                                                       rp_error *err);

/* Each writer appends one message to `out`, and sets `out->bad` on failure (util/buf.h). The
 * responses of the service without a writer here are empty messages, or are written by
 * sample_response.h. */
void rp_wire_write_insert_response(rp_buf *out, const uint64_t *keys, size_t count);
/* state_id[0] is the high half of the state's id, state_id[1] the low half. */
void rp_wire_write_server_info(rp_buf *out, const uint64_t state_id[2],
                               const rp_table_info *tables, size_t count);
void rp_wire_write_checkpoint_response(rp_buf *out, const char *path);

#endif
