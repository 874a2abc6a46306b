/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs for the payloads of journal records. docs/checkpoint.md specifies the bytes. A record
 * is one change of a table, with the name of the table. A record of inserts also has the disk
 * locations of the chunks. Every record can be decoded without the records before it. The
 * functions access only memory of the caller. Decoding malicious bytes is safe. */
#ifndef RP_DURABLE_FORMAT_JOURNAL_RECORDS_H
#define RP_DURABLE_FORMAT_JOURNAL_RECORDS_H

#include "disk/segments.h"
#include "table/table_log.h"
#include "util/buf.h"

enum {
    RP_JOURNAL_MAX_ITEMS = RP_LOG_BATCH, /* inserts, updates or deletes in one record */
};

rp_record_kind rp_journal_kind_of(const rp_log_record *change);

/* Finds the disk location at which a chunk is, or will be when it is written.
 * Errors: RP_NO_RESOURCE. */
typedef rp_status rp_locate_chunk(void *ctx, rp_chunk *chunk, rp_disk_location *out);

typedef struct rp_logged_location {
    rp_disk_location at;
    uint64_t key; /* key of the chunk: detects another valid chunk at the location */
} rp_logged_location;

/* Scratch memory for encoding, reused for one record after another. Only one thread may use it.
 * Invariants:
 *
 *   E1  location_count <= location_capacity, and the index has at least two entries for each
 *       location;
 *   E2  index_capacity is 0 or a power of two;
 *   E3  an entry of the index is valid if its `turn` equals the encoder's `turn`. */
typedef struct rp_journal_encoder {
    rp_logged_location *locations;
    size_t location_count, location_capacity;
    struct {
        const rp_chunk *chunk;
        uint32_t location;
        uint32_t turn;
    } * index; /* open addressing over the chunks of one record */
    size_t index_capacity;
    uint32_t turn; /* number of records of inserts encoded */
    rp_allocator alloc;
} rp_journal_encoder;

void rp_journal_encoder_init(rp_journal_encoder *e, const rp_allocator *alloc);
void rp_journal_encoder_deinit(rp_journal_encoder *e);

/* Appends the payload of a change. Calls location_of(ctx, ...) for the location of each chunk.
 * Errors: RP_NO_RESOURCE (no memory, or `location_of` has returned it). */
RP_NODISCARD rp_status rp_journal_encode(rp_journal_encoder *e, rp_string table,
                                         const rp_log_record *change,
                                         rp_locate_chunk *location_of, void *ctx, rp_buf *out);

typedef struct rp_decoded_slice {
    uint32_t location; /* index in the locations */
    uint32_t column, offset, length;
} rp_decoded_slice;

typedef struct rp_decoded_column {
    uint32_t first_slice, slice_count;
    bool squeeze;
} rp_decoded_column;

/* The columns of an inserted item. If column_count is 0, the record only updates the priority
 * of an existing item. */
typedef struct rp_decoded_item {
    uint32_t first_column, column_count;
} rp_decoded_item;

/* A decoded change, with the arrays to which it refers. The struct is too large for a stack.
 * `table` borrows from the bytes that were read. */
typedef struct rp_decoded_change {
    rp_string table;
    rp_log_record change; /* inserted[i].trajectory is NULL; items[i] has the columns */
    rp_inserted inserted[RP_JOURNAL_MAX_ITEMS];
    rp_decoded_item items[RP_JOURNAL_MAX_ITEMS];
    rp_update updates[RP_JOURNAL_MAX_ITEMS];
    uint64_t keys[RP_JOURNAL_MAX_ITEMS];
    rp_logged_location *locations;
    rp_decoded_column *columns;
    rp_decoded_slice *slices;
    size_t location_count, column_count, slice_count;
    /* private */
    size_t location_capacity, column_capacity, slice_capacity;
    rp_allocator alloc;
} rp_decoded_change;

void rp_decoded_change_init(rp_decoded_change *decoded, const rp_allocator *alloc);
void rp_decoded_change_deinit(rp_decoded_change *decoded);

/* Reads the payload of a change: RP_RECORD_INSERT to RP_RECORD_PAUSE, or RP_RECORD_RENUMBER.
 * The result takes at most 64 times the memory of the payload. Checks that the numbers fit
 * their types, that slices have a location and at least one row, and that no bytes remain.
 * rp_table_redo() checks whether the change is possible. Errors: RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoded_change_read(rp_decoded_change *decoded, rp_record_kind kind,
                                              const uint8_t *data, size_t size, rp_error *err);

/* Append and read the payload of an RP_RECORD_DROP, which is the name of the table. Errors:
 * RP_CORRUPT. */
void rp_journal_encode_drop(rp_string table, rp_buf *out);
RP_NODISCARD rp_status rp_journal_read_drop(const uint8_t *data, size_t size, rp_string *out,
                                            rp_error *err);

#endif
