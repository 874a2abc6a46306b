/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small responses of a server, which reverb_messages.h and admin_messages.h write.
 * sample_response_read.h reads responses with chunks. Other headers read their own responses,
 * for example connection_messages.h and run_messages.h. Responses without fields, such as
 * ResetResponse, need no reader: a client ignores their bytes.
 *
 * Errors of readers: RP_CORRUPT (the bytes are not a message of the expected type),
 * RP_NO_RESOURCE (a limit, or memory). Strings borrow from the bytes read, unless a comment
 * says otherwise. Out-parameters are written on RP_OK only. */
#ifndef RP_WIRE_RESPONSES_H
#define RP_WIRE_RESPONSES_H

#include "reprise/table.h"

/* rp_wire_read_insert_response() checks an InsertStreamResponse and counts its keys. Afterwards
 * rp_wire_insert_response_keys() copies the keys of the same response to `keys`. */
RP_NODISCARD rp_status rp_wire_read_insert_response(const uint8_t *data, size_t size,
                                                    size_t *count, rp_error *err);
void rp_wire_insert_response_keys(const uint8_t *data, size_t size, uint64_t *keys);

/* Reads a CheckpointResponse: the path of the checkpoint, 0 to 4,096 bytes. */
RP_NODISCARD rp_status rp_wire_read_checkpoint_response(const uint8_t *data, size_t size,
                                                        rp_string *path, rp_error *err);

/* Reads an UpdateResponse or a DeleteResponse. `*found` is the number of keys that were found.
 */
RP_NODISCARD rp_status rp_wire_read_found(const uint8_t *data, size_t size, int64_t *found,
                                          rp_error *err);

enum {
    RP_WIRE_MAX_TABLES = 10000,
    RP_WIRE_MAX_TABLE_SIGNATURES_BYTES = 64 << 20, /* memory for the signatures of all tables */
};

/* A list of tables, which owns their names and signatures. */
typedef struct rp_wire_tables {
    rp_table_info *tables;
    size_t count;
    rp_allocator alloc; /* `alloc` and `bytes` are private */
    size_t bytes;
} rp_wire_tables;

/* Reads a ServerInfoResponse. Fields of rp_table_info that Reverb does not have are set to 0.
 * If `state_id` is not NULL, it receives the 128-bit tables_state_id of the response: the high
 * half in state_id[0], the low half in state_id[1]. An unknown selector, from a newer Reverb,
 * becomes RP_UNIFORM. A signature with values of an unknown kind is dropped. The caller owns
 * `*out`. */
RP_NODISCARD rp_status rp_wire_read_server_info(const rp_allocator *alloc, const uint8_t *data,
                                                size_t size, uint64_t state_id[2],
                                                rp_wire_tables **out, rp_error *err);

/* Reads the tables of a StatusResponse of reprise.v1: their names, and the fields of
 * rp_table_info that Reverb does not have. The other fields are 0. The caller owns `*out`. */
RP_NODISCARD rp_status rp_wire_read_status(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_wire_tables **out, rp_error *err);

void rp_wire_tables_free(rp_wire_tables *tables); /* NULL is fine */

/* Completes `tables`, a result of rp_wire_read_server_info(), with `status`, a result of
 * rp_wire_read_status(): copies the fields that only a StatusResponse has from each table of
 * `status` to the table of `tables` with the same name. */
void rp_wire_tables_merge(rp_wire_tables *tables, const rp_wire_tables *status);

typedef struct rp_wire_waiting {
    rp_string table, client; /* `client`: the address of the waiting client; empty: not known */
    uint64_t client_id;
    rp_waiting waiting; /* `waiting.why` is truncated to fit */
} rp_wire_waiting;

/* A list of blocked calls. The caller sets `calls` and `capacity`. */
typedef struct rp_wire_blocked {
    rp_wire_waiting *calls;
    size_t capacity;
    size_t count; /* number of calls read, at most `capacity` */
    size_t total; /* number of blocked calls on the server */
} rp_wire_blocked;

/* Reads as many calls of a WhyBlockedResponse as fit into `calls`, from the first on. `now_ns`
 * is the monotonic time; the relative deadlines of the response are added to it. On failure the
 * content of `calls` is undefined, and the other members of `out` are unchanged. */
RP_NODISCARD rp_status rp_wire_read_blocked(const uint8_t *data, size_t size, int64_t now_ns,
                                            rp_wire_blocked *out, rp_error *err);

#endif
