/* SPDX-License-Identifier: Apache-2.0 */
/* The small responses, read: what reverb_calls.h and replay_calls.h write. Those with chunks
 * are read by sample_response_read.h. Responses that are not here are empty: any bytes will do.
 *
 * Statuses: RP_CORRUPT (not such a message), RP_NO_RESOURCE (a limit, or memory). Strings are
 * borrowed from the bytes read, unless said otherwise. Out-parameters are written on RP_OK
 * only. */
#ifndef RP_WIRE_ANSWERS_H
#define RP_WIRE_ANSWERS_H

#include "reprise/table.h"

/* InsertStreamResponse: how many keys are in it, and copying so many. */
RP_NODISCARD rp_status rp_wire_read_insert_response(const uint8_t *data, size_t size,
                                                    size_t *count, rp_error *err);
void rp_wire_insert_response_keys(const uint8_t *data, size_t size, uint64_t *keys);

/* CheckpointResponse: where the checkpoint is. Up to 4,096 bytes, perhaps none. */
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
    rp_allocator alloc; /* private, as is what follows */
    size_t bytes;
} rp_wire_tables;

/* ServerInfoResponse. What Reverb does not tell is 0. `state_id` (may be NULL): the high half,
 * then the low. A selector that is not known, as a Reverb of tomorrow may have, is RP_UNIFORM.
 * A signature that cannot be read, as it holds values we have no use for, is left out. Returns
 * owned. */
RP_NODISCARD rp_status rp_wire_read_server_info(const rp_allocator *alloc, const uint8_t *data,
                                                size_t size, uint64_t state_id[2],
                                                rp_wire_tables **out, rp_error *err);

/* StatusResponse of our own service: name and all that Reverb does not tell; the rest is 0.
 * Returns owned. */
RP_NODISCARD rp_status rp_wire_read_status(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_wire_tables **out, rp_error *err);

void rp_wire_tables_free(rp_wire_tables *tables); /* NULL is fine */

/* Sets in `tables` what `status` tells of the tables of the same names. */
void rp_wire_tables_merge(rp_wire_tables *tables, const rp_wire_tables *status);

typedef struct rp_wire_waiting {
    rp_string table;
    rp_waiting waiting; /* `why` cut to fit */
} rp_wire_waiting;

/* WhyBlockedResponse: the first `capacity` calls of it; `*count` is how many those are,
 * `*total` how many wait. `now_ns` is the monotonic clock, on which their deadlines are put. */
RP_NODISCARD rp_status rp_wire_read_blocked(const uint8_t *data, size_t size, int64_t now_ns,
                                            rp_wire_waiting *out, size_t capacity,
                                            size_t *count, size_t *total, rp_error *err);

#endif
