/* SPDX-License-Identifier: Apache-2.0 */
/* The small messages of Reverb's service: reads requests, writes responses.
 *
 * Messages that carry chunks have files of their own (insert_request.h, sample_response.h). All
 * functions are pure functions over bytes. Strings are borrowed from the bytes read. Readers
 * return RP_INVALID (the message is malformed; a name is not text or has more than 255 bytes)
 * and RP_NO_RESOURCE (too many keys). Out-parameters are written on RP_OK only. */
#ifndef RP_WIRE_REVERB_MESSAGES_H
#define RP_WIRE_REVERB_MESSAGES_H

#include "reprise/table.h"
#include "util/buf.h"

typedef struct rp_wire_sample_request {
    rp_string table;
    int64_t num_samples; /* as sent: any number */
    bool has_timeout;    /* the message has a timeout; false: wait without a limit */
    int64_t timeout_ms;  /* as sent: negative waits without a limit, 0 does not wait */
    rp_string lease;     /* SampleShared only: the id of the client's lease on the shared memory
                            (server/shm/lease.h); any bytes */
    uint64_t lease_call; /* SampleShared only: the number that the client gave to the call */
} rp_wire_sample_request;

RP_NODISCARD rp_status rp_wire_read_sample_request(const uint8_t *data, size_t size,
                                                   rp_wire_sample_request *out, rp_error *err);

/* Borrows the whole message, from which updates and keys are then copied. */
typedef struct rp_wire_mutate_request {
    rp_string table;
    size_t update_count, delete_count;
    const uint8_t *data;
    size_t size;
} rp_wire_mutate_request;

/* Checks all of a MutatePrioritiesRequest and counts its updates and deletes, which may be
 * `max_keys` together at most. */
RP_NODISCARD rp_status rp_wire_read_mutate_request(const uint8_t *data, size_t size,
                                                   size_t max_keys, rp_wire_mutate_request *out,
                                                   rp_error *err);

/* Copy the update_count updates, or the delete_count keys, in the order of the message. */
void rp_wire_mutate_updates(const rp_wire_mutate_request *request, rp_update *updates);
void rp_wire_mutate_deletes(const rp_wire_mutate_request *request, uint64_t *keys);

RP_NODISCARD rp_status rp_wire_read_reset_request(const uint8_t *data, size_t size,
                                                  rp_string *table, rp_error *err);
RP_NODISCARD rp_status rp_wire_read_initialize_request(const uint8_t *data, size_t size,
                                                       int64_t *pid, rp_string *table,
                                                       rp_error *err);

/* Each writer appends one message to `out`, which records failures (util/buf.h). The other
 * responses of the service are empty. */
void rp_wire_write_insert_response(rp_buf *out, const uint64_t *keys, size_t count);
/* `state_id` is the high half, then the low half. */
void rp_wire_write_server_info(rp_buf *out, const uint64_t state_id[2],
                               const rp_table_info *tables, size_t count);
void rp_wire_write_checkpoint_response(rp_buf *out, const char *path);

#endif
