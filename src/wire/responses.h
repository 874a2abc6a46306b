/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small responses, which reverb_messages.h and admin_messages.h write. Responses with
 * chunks are read by sample_response_read.h. Other responses are empty: their bytes are
 * ignored.
 *
 * Statuses: RP_CORRUPT (not such a message), RP_NO_RESOURCE (a limit, or memory). Strings are
 * borrowed from the bytes read, unless noted. Out-parameters are written on RP_OK only. */
#ifndef RP_WIRE_RESPONSES_H
#define RP_WIRE_RESPONSES_H

#include "reprise/table.h"

/* InsertStreamResponse: counts its keys; copies them. */
RP_NODISCARD rp_status rp_wire_read_insert_response(const uint8_t *data, size_t size,
                                                    size_t *count, rp_error *err);
void rp_wire_insert_response_keys(const uint8_t *data, size_t size, uint64_t *keys);

/* CheckpointResponse: the path of the checkpoint. 0 to 4,096 bytes. */
RP_NODISCARD rp_status rp_wire_read_checkpoint_response(const uint8_t *data, size_t size,
                                                        rp_string *path, rp_error *err);

/* UpdateResponse and DeleteResponse. */
RP_NODISCARD rp_status rp_wire_read_found(const uint8_t *data, size_t size, int64_t *found,
                                          rp_error *err);

enum {
    RP_WIRE_MAX_TABLES = 10000,
    RP_WIRE_MAX_TABLE_SIGNATURES_BYTES = 64 << 20, /* of all tables, in memory */
};

/* A list of tables with names and signatures of its own. */
typedef struct rp_wire_tables {
    rp_table_info *tables;
    size_t count;
    rp_allocator alloc; /* private, as is `bytes` */
    size_t bytes;
} rp_wire_tables;

/* ServerInfoResponse. Fields that Reverb does not have are 0. `state_id` (may be NULL): the
 * high half, then the low. An unknown selector, of a newer Reverb, becomes RP_UNIFORM. A
 * signature of unknown values is dropped. Returns owned. */
RP_NODISCARD rp_status rp_wire_read_server_info(const rp_allocator *alloc, const uint8_t *data,
                                                size_t size, uint64_t state_id[2],
                                                rp_wire_tables **out, rp_error *err);

/* StatusResponse of reprise.v1: the name, and the fields that Reverb does not have; the rest is
 * 0. Returns owned. */
RP_NODISCARD rp_status rp_wire_read_status(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_wire_tables **out, rp_error *err);

void rp_wire_tables_free(rp_wire_tables *tables); /* NULL is fine */

/* Copies the fields of `status` into the tables of the same names. */
void rp_wire_tables_merge(rp_wire_tables *tables, const rp_wire_tables *status);

typedef struct rp_wire_waiting {
    rp_string table;
    rp_waiting waiting; /* `why` cut to fit */
} rp_wire_waiting;

/* A list of blocked calls. The caller sets `calls` and `capacity`. */
typedef struct rp_wire_blocked {
    rp_wire_waiting *calls;
    size_t capacity;
    size_t count; /* calls read, at most `capacity` */
    size_t total; /* blocked calls, read or not */
} rp_wire_blocked;

/* WhyBlockedResponse: reads the first calls, as many as fit. `now_ns` is the monotonic time, to
 * which deadlines are added. `out` is unchanged on failure, but for the content of `calls`. */
RP_NODISCARD rp_status rp_wire_read_blocked(const uint8_t *data, size_t size, int64_t now_ns,
                                            rp_wire_blocked *out, rp_error *err);

#endif
