/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the requests of the services in proto/reprise/v1, and writes their responses.
 *
 * The functions depend only on their arguments. Strings borrow from the bytes read. Errors of
 * readers: RP_INVALID (the message is malformed; a name is not text or has more than 255
 * bytes), RP_NO_RESOURCE (too many keys). Unless a comment says otherwise, numbers are returned
 * as they were sent, and the caller must check them. Responses without a writer in this file
 * are empty messages. */
#ifndef RP_WIRE_ADMIN_MESSAGES_H
#define RP_WIRE_ADMIN_MESSAGES_H

#include "chunk/chunk_api.h"
#include "reprise/table.h"
#include "util/buf.h"
#include "wire/message.h"

/* A limiter in a request. The request may have only some of its fields; `has_...` shows
 * which. */
typedef struct rp_wire_limiter {
    bool has_samples_per_insert, has_min_size, has_min_diff, has_max_diff;
    rp_limiter_options value;
} rp_wire_limiter;

/* Copies the fields that the request has into `options`. */
void rp_wire_limiter_apply(const rp_wire_limiter *limiter, rp_limiter_options *options);

/* A TableOptions message. If the message lacks a field, the member has the default of the
 * field. */
typedef struct rp_wire_table_options {
    rp_string name;
    rp_selector_options sampler, remover;
    rp_limiter_options limiter;
    int64_t max_size;
    uint64_t max_bytes;
    int32_t max_times_sampled;
    bool soft_limit;
    const uint8_t *signature; /* serialised, for rp_wire_read_signature(); or NULL */
    size_t signature_size;
} rp_wire_table_options;

/* Reads a CreateTableRequest. Also returns RP_INVALID if the request has no options, or if its
 * sampler or remover has no kind. */
RP_NODISCARD rp_status rp_wire_read_create_table(const uint8_t *data, size_t size,
                                                 rp_wire_table_options *out, rp_error *err);

/* Reads a DropTableRequest. */
RP_NODISCARD rp_status rp_wire_read_drop_table(const uint8_t *data, size_t size,
                                               rp_string *table, rp_error *err);

/* An AlterTableRequest. It changes only those fields of the table that the request has. */
typedef struct rp_wire_alter_table {
    rp_string table;
    bool has_max_size, has_max_bytes, has_max_times_sampled;
    int64_t max_size;
    uint64_t max_bytes;
    int32_t max_times_sampled;
    rp_wire_limiter limiter; /* only the fields that the request has */
    bool recenter;
} rp_wire_alter_table;

RP_NODISCARD rp_status rp_wire_read_alter_table(const uint8_t *data, size_t size,
                                                rp_wire_alter_table *out, rp_error *err);

/* A PauseTableRequest or a ResumeTableRequest. The reader returns RP_INVALID for an unknown
 * side. */
typedef struct rp_wire_pause_table {
    rp_string table;
    bool inserts, samples;
} rp_wire_pause_table;

RP_NODISCARD rp_status rp_wire_read_pause_table(const uint8_t *data, size_t size,
                                                rp_wire_pause_table *out, rp_error *err);

/* Reads a WhyBlockedRequest. If `*table` is empty, all tables are meant. `*max_calls` is in
 * [1, 1000]: 0 becomes 100, and larger numbers become 1000. */
RP_NODISCARD rp_status rp_wire_read_why_blocked(const uint8_t *data, size_t size,
                                                rp_string *table, size_t *max_calls,
                                                rp_error *err);

/* The client that made a waiting call. */
typedef struct rp_wire_caller {
    const char *address; /* NULL: not known */
    uint64_t id; /* id of its connection; 0: the call is from the server's own process */
} rp_wire_caller;

/* Both functions append to a WhyBlockedResponse. The caller appends any number of waiting
 * calls, then their total number. Deadlines are sent relative to `now_ns`, the monotonic time.
 */
void rp_wire_write_waiting_call(rp_buf *out, const char *table, const rp_waiting *waiting,
                                const rp_wire_caller *caller, int64_t now_ns);
void rp_wire_write_waiting_total(rp_buf *out, size_t total);

/* Appends a table to a StatusResponse, which may have any number of tables. durability_wire.h
 * writes the other fields of the response. */
void rp_wire_write_table_status(rp_buf *out, const rp_table_info *table);

/* A PeekRequest, UpdateRequest or DeleteRequest. The struct borrows the bytes of the message.
 * Later the caller copies the `count` keys or updates (at most `max_keys`) with
 * rp_wire_request_keys() or rp_wire_request_updates(). */
typedef struct rp_wire_keys_request {
    rp_string table;
    size_t count;
    bool with_data, cut_rows; /* only in a PeekRequest */
    const uint8_t *data;
    size_t size;
} rp_wire_keys_request;

RP_NODISCARD rp_status rp_wire_read_peek(const uint8_t *data, size_t size, size_t max_keys,
                                         rp_wire_keys_request *out, rp_error *err);
RP_NODISCARD rp_status rp_wire_read_update_request(const uint8_t *data, size_t size,
                                                   size_t max_keys, rp_wire_keys_request *out,
                                                   rp_error *err);
RP_NODISCARD rp_status rp_wire_read_delete(const uint8_t *data, size_t size, size_t max_keys,
                                           rp_wire_keys_request *out, rp_error *err);

void rp_wire_request_keys(const rp_wire_keys_request *request, uint64_t *keys);
void rp_wire_request_updates(const rp_wire_keys_request *request, rp_update *updates);

/* Writes an UpdateResponse or a DeleteResponse. `found` is the number of keys that were found.
 */
void rp_wire_write_found(rp_buf *out, size_t found);

typedef struct rp_wire_draw_request {
    rp_string table;
    int64_t count, at_least;
    bool has_timeout;   /* false means no limit */
    int64_t timeout_ms; /* negative means no limit, 0 means no wait */
    bool distinct, cut_rows;
    double beta;
} rp_wire_draw_request;

/* Reads a SampleRequest. */
RP_NODISCARD rp_status rp_wire_read_draw(const uint8_t *data, size_t size,
                                         rp_wire_draw_request *out, rp_error *err);

/* rp_wire_add_chunk() and rp_wire_add_entry() append a chunk or an entry to a PeekResponse or
 * SampleResponse. They may be called in any order. The reply can borrow the chunk's bytes, so
 * the caller must make the reply hold a trajectory that refers to the chunk
 * (rp_message_hold()). An entry borrows nothing. `table` is the name of the table. Returns
 * false if there is no memory. */
bool rp_wire_add_chunk(rp_message *reply, const rp_chunk *chunk);
bool rp_wire_add_entry(rp_message *reply, const rp_sample *sample, const char *table);

#endif
