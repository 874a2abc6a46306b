/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of Reverb's two streams as a load generator needs them: built once, then only
 * their keys change.
 *
 * An item is a chunk of one row of float32 and a trajectory that takes this row. All random
 * numbers of a payload are the same for every item but for the first eight bytes, which hold
 * the item's key, so that whoever samples it can tell whether it got the bytes that belong to
 * it.
 *
 * Keys look random but are numbers in disguise: h2_key() and h2_key_number() are each other's
 * inverse. Their highest bit is set, so that each takes ten bytes. */
#ifndef BENCH_H2_LOAD_MESSAGE_H
#define BENCH_H2_LOAD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    H2_KEY_BYTES = 10,         /* of a key as it travels */
    H2_PREFIX_BYTES = 5,       /* of gRPC, before each message */
    H2_SHARE_FROM = 16 * 1024, /* payloads of this size are shared, not copied */
    H2_PAYLOAD_OWN = 64,       /* their bytes that are not shared: the key, and up to a line */
    H2_KEY_PLACES = 4,         /* where the key of an item stands */
};

uint64_t h2_key(uint64_t number);
uint64_t h2_key_number(uint64_t key);

/* Random floats of [0, 1), `bytes` (a multiple of 4) of them, the same in every call. To be
 * freed. */
uint8_t *h2_payload_new(size_t bytes);

/* A growing string of bytes. */
typedef struct h2_bytes {
    uint8_t *data;
    size_t size, capacity;
} h2_bytes;

void h2_bytes_deinit(h2_bytes *bytes);

/* What a message is about. */
typedef struct h2_shape {
    const uint8_t *payload; /* h2_payload_new(), borrowed for as long as messages are used */
    size_t payload_bytes;
    size_t items;       /* of one message */
    size_t table_count; /* items go to the tables "t0", "t1", ... in turn; at least 1 */
} h2_shape;

/* A run of bytes of a message: of the message's own ones, or of the shared payload. */
typedef struct h2_piece {
    bool shared;
    size_t at, size;
} h2_piece;

/* Messages in a row, each with its gRPC prefix. */
typedef struct h2_batch {
    h2_bytes own;      /* all that is not shared */
    size_t *key_at;    /* H2_KEY_PLACES for each item, of which the second is not a varint */
    size_t item_count; /* of all messages */
    size_t message_count;
    h2_piece *pieces;
    size_t piece_count;
    size_t size; /* of all pieces together */
} h2_batch;

/* `messages` InsertStreamRequests of this shape. */
void h2_batch_init_insert(h2_batch *batch, const h2_shape *shape, size_t messages);
void h2_batch_deinit(h2_batch *batch);

/* Gives the items the keys of the numbers from `first` on. */
void h2_batch_number(h2_batch *batch, uint64_t first);

/* Appends one SampleStreamResponse with its prefix, of `shape->items` samples, to `out`: the
 * items `first` and so on. The whole payload is in it, shared or not. */
void h2_append_sample_response(h2_bytes *out, const h2_shape *shape, uint64_t first);

/* Appends a SampleStreamRequest with its prefix. */
void h2_append_sample_request(h2_bytes *out, size_t table, size_t samples);

/* A varint of at most ten bytes. Returns what follows it, or NULL if it does not end before
 * `end`. */
const uint8_t *h2_read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value);

/* One field of a message. */
typedef struct h2_field {
    unsigned number, type;
    uint64_t value;      /* of a varint; the size of bytes */
    const uint8_t *data; /* of bytes, and of fixed ones */
} h2_field;

/* The next field. Returns what follows it, or NULL if it is not whole. */
const uint8_t *h2_read_field(const uint8_t *at, const uint8_t *end, h2_field *field);

/* True if these bytes are a SampleEntry that holds one whole item as h2_batch_number() made it:
 * chunk, key and trajectory belong together and every byte of the payload is right. */
bool h2_sample_entry_ok(const uint8_t *data, size_t size, const h2_shape *shape);

#endif
