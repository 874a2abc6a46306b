/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs for the messages of a dm-reverb checkpoint (proto/reverb/checkpoint.proto). The
 * decoders also read the old forms of items and chunks, which dm-reverb wrote before 2021. The
 * results of the decoders borrow from the bytes that were read. */
#ifndef RP_DURABLE_REVERB_REVERB_WIRE_H
#define RP_DURABLE_REVERB_REVERB_WIRE_H

#include "chunk/chunk.h"
#include "reprise/table.h"
#include "util/buf.h"
#include "wire/insert_request.h"

/* PriorityTableCheckpoint. */
typedef struct rp_reverb_table {
    rp_string name;
    rp_selector_options sampler, remover;
    rp_limiter_options limiter;
    int64_t inserts, samples, deletes;
    int64_t max_size;
    int32_t max_times_sampled;
    int64_t deleted_episodes, unique_samples;
    const uint8_t *signature; /* a serialised signature; NULL: none */
    size_t signature_size;
    size_t old_items; /* number of items inside the message itself, which only the old form
                         has */
} rp_reverb_table;

/* Reads the message. Errors: RP_CORRUPT (malformed; no name; an unknown sampler or remover; a
 * negative count). */
RP_NODISCARD rp_status rp_reverb_table_read(const uint8_t *data, size_t size,
                                            rp_reverb_table *out, rp_error *err);
/* Finds the next item in a PriorityTableCheckpoint, over whose bytes `reader` was opened.
 * Returns false at the end. */
RP_NODISCARD bool rp_reverb_table_next_item(rp_pb_reader *reader, const uint8_t **data,
                                            size_t *size);
/* Appends the message. `signature` may be NULL; table->signature is ignored. */
void rp_reverb_table_write(rp_buf *out, const rp_reverb_table *table,
                           const rp_signature *signature);

typedef enum rp_reverb_form {
    RP_REVERB_NEITHER = 0,
    RP_REVERB_NEW = 1,
    RP_REVERB_OLD = 2,
    RP_REVERB_BOTH = 3,
} rp_reverb_form;

/* The old form of a trajectory: `length` rows of every column. The rows begin at row `offset`
 * of the first chunk, and continue in the following chunks. */
typedef struct rp_reverb_span {
    int32_t offset, length;
    size_t key_count; /* number of keys of chunks, in field 3 */
} rp_reverb_span;

/* Determines the form of an item. For the old form, fills in `span`. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_reverb_item_form(const uint8_t *data, size_t size,
                                           rp_reverb_form *form, rp_reverb_span *span,
                                           rp_error *err);
/* Copies the key_count keys of an item in the old form. */
void rp_reverb_item_keys(const uint8_t *data, size_t size, uint64_t *keys);

typedef struct rp_reverb_item {
    uint64_t key;
    double priority;
    int32_t times_sampled;
    int64_t inserted_at_ns;
    const rp_trajectory *trajectory;
} rp_reverb_item;

/* Appends a PrioritizedItem. */
void rp_reverb_item_write(rp_buf *out, const char *table, const rp_reverb_item *item);

/* Determines the form of a chunk. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_reverb_chunk_form(const uint8_t *data, size_t size,
                                            rp_reverb_form *form, rp_error *err);
/* Converts a ChunkData of the old form to the new form, and appends it. */
void rp_reverb_chunk_modernise(rp_buf *out, const uint8_t *data, size_t size);

/* Makes a chunk that dm-reverb can read. If dm-reverb can read the codec of `chunk`, `*out` is
 * a reference to `chunk`. Otherwise it is a new chunk with the same rows. The caller owns
 * `*out`. `decoder` is scratch. Errors: RP_UNIMPLEMENTED (columns of different lengths),
 * RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_reverb_chunk_for(const rp_allocator *alloc, rp_decoder *decoder,
                                           rp_chunk *chunk, rp_chunk **out, rp_error *err);

enum { RP_REVERB_NAME_BYTES = 64 };

/* Writes the name of the folder of a checkpoint: the time in UTC in the format of Abseil. This
 * is RFC 3339 with as many decimals of the seconds as needed. Returns `out`. */
char *rp_reverb_name(char out[RP_REVERB_NAME_BYTES], int64_t wall_ns);

#endif
