/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an InsertStreamRequest without copying it. A client inserts items with this message.
 *
 *   InsertStreamRequest   1 ChunkData, repeated   2 PrioritizedItem, repeated
 *                         3 keep_chunk_keys, packed or not
 *   PrioritizedItem       1 key  2 table  5 priority  6 times_sampled  8 FlatTrajectory
 *   FlatTrajectory        1 Column, repeated
 *   Column                1 ChunkSlice, repeated   2 squeeze
 *   ChunkSlice            1 chunk_key  2 offset  3 length  4 index
 *
 * The fields of a message may be in any order, but its chunks have to be handled before its
 * items. So the message is read more than once: the first pass counts its parts and checks the
 * limits, and a further pass for each kind reads the parts of that kind. Nothing is copied or
 * allocated; all results borrow the bytes. */
#ifndef RP_WIRE_INSERT_REQUEST_H
#define RP_WIRE_INSERT_REQUEST_H

#include "chunk/protobuf.h"
#include "reprise/trajectory.h"

typedef struct rp_insert_limits {
    size_t chunk_bytes, items, columns, slices, keys;
} rp_insert_limits;

/* The limit that a message exceeds. */
typedef enum rp_insert_excess {
    RP_EXCESS_NONE,
    RP_EXCESS_CHUNK_BYTES,
    RP_EXCESS_ITEMS,
    RP_EXCESS_COLUMNS,
    RP_EXCESS_SLICES,
    RP_EXCESS_CHUNKS,
    RP_EXCESS_KEYS,
} rp_insert_excess;

typedef struct rp_insert_request {
    const uint8_t *data;
    size_t size;
    size_t chunk_count, item_count, keep_count;
    rp_insert_excess excess; /* written even on an error */
} rp_insert_request;

/* Makes the first pass. Errors: RP_INVALID (the message is malformed), RP_NO_RESOURCE (a limit
 * is exceeded; the error text names the kind of part, the count and the limit). */
RP_NODISCARD rp_status rp_insert_request_read(const uint8_t *data, size_t size,
                                              const rp_insert_limits *limits,
                                              rp_insert_request *out, rp_error *err);

/* To read all chunks or all items, the caller opens a reader with rp_insert_request_parts(). It
 * then calls rp_insert_request_next_chunk() or rp_insert_request_next_item() until the result
 * is false. */
static inline rp_pb_reader rp_insert_request_parts(const rp_insert_request *request)
{
    return rp_pb_open(request->data, request->size);
}
bool rp_insert_request_next_chunk(rp_pb_reader *reader, const uint8_t **data, size_t *size);
bool rp_insert_request_next_item(rp_pb_reader *reader, const uint8_t **data, size_t *size);

/* Copies the keep_count keys to `keys`: the keys of the chunks that the stream keeps for later
 * messages. */
void rp_insert_request_keep(const rp_insert_request *request, uint64_t *keys);

/* A column of an item. In the array of slices, the slices of a column follow those of the
 * previous column. */
typedef struct rp_wire_column {
    uint32_t slice_count;
    bool squeeze;
} rp_wire_column;

typedef struct rp_wire_slice {
    uint64_t chunk_key;
    uint32_t offset, length, index;
} rp_wire_slice;

/* An item. Its columns and slices are in the caller's arrays (rp_wire_item_arrays). */
typedef struct rp_wire_item {
    uint64_t key;
    rp_string table;
    double priority;
    int32_t times_sampled;
    int64_t inserted_at_ns; /* only in messages that servers send */
    size_t column_count, slice_count;
    rp_insert_excess excess; /* written even on an error */
} rp_wire_item;

/* Arrays for the columns and slices of an item. */
typedef struct rp_wire_item_arrays {
    rp_wire_column *columns;
    size_t max_columns;
    rp_wire_slice *slices;
    size_t max_slices;
} rp_wire_item_arrays;

/* Reads an item. Errors: RP_INVALID (malformed, a negative offset or length, no columns, a
 * column without slices), RP_NO_RESOURCE (an array is too small). */
RP_NODISCARD rp_status rp_wire_item_read(const uint8_t *data, size_t size,
                                         const rp_wire_item_arrays *arrays, rp_wire_item *out,
                                         rp_error *err);
/* As rp_wire_item_read(), but an item without columns is allowed: old checkpoints have items
 * without a trajectory. */
RP_NODISCARD rp_status rp_wire_item_read_any(const uint8_t *data, size_t size,
                                             const rp_wire_item_arrays *arrays,
                                             rp_wire_item *out, rp_error *err);

#endif
