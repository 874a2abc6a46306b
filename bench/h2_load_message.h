/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of InsertStream and SampleStream for the load generator (h2_load.h). The
 * messages are built once. After that only their keys change.
 *
 * An item is a chunk (serialised rows) with one row of float32, and a trajectory that consists
 * of this row. The payload of an item (the bytes of the row) begins with the item's key, in
 * eight bytes. The rest is the same random numbers in all items. So a client that samples an
 * item can check every byte.
 *
 * Keys look random. h2_key() computes them from consecutive numbers, and h2_key_number() is its
 * inverse. The highest bit of a key is set, so that each key takes ten bytes as a varint. */
#ifndef BENCH_H2_LOAD_MESSAGE_H
#define BENCH_H2_LOAD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    H2_KEY_BYTES = 10,         /* bytes of a serialised key */
    H2_PREFIX_BYTES = 5,       /* bytes of the gRPC prefix of each message */
    H2_SHARE_FROM = 16 * 1024, /* payloads of this size and more are not copied into a message;
                                  all messages refer to one payload */
    H2_PAYLOAD_OWN = 64,       /* first bytes of a shared payload, which are copied because they
                                  contain the key */
    H2_KEY_PLACES = 4, /* number of places in a message where the key of an item occurs */
};

uint64_t h2_key(uint64_t number);
uint64_t h2_key_number(uint64_t key);

/* Makes `bytes` (a multiple of 4) bytes of random floats in [0, 1), the same in every call. The
 * caller must free them. */
uint8_t *h2_payload_new(size_t bytes);

/* A growing string of bytes. */
typedef struct h2_bytes {
    uint8_t *data;
    size_t size, capacity;
} h2_bytes;

void h2_bytes_deinit(h2_bytes *bytes);

/* The contents of a message. */
typedef struct h2_shape {
    const uint8_t *payload; /* result of h2_payload_new(), borrowed as long as messages are
                               used */
    size_t payload_bytes;
    size_t items;       /* number of items in one message */
    size_t table_count; /* items go to the tables "t0", "t1", ... in turn; at least 1 */
} h2_shape;

/* Consecutive bytes of a message: in `own` of the batch, or in the shared payload. */
typedef struct h2_piece {
    bool shared;
    size_t at, size;
} h2_piece;

/* Consecutive messages, each with its gRPC prefix. */
typedef struct h2_batch {
    h2_bytes own;      /* all bytes that are not shared */
    size_t *key_at;    /* for each item, the H2_KEY_PLACES offsets of its key in `own`. At the
                          second offset, in the payload, the key has eight bytes; at the others it
                          is a varint */
    size_t item_count; /* number of items in all messages */
    size_t message_count;
    h2_piece *pieces;
    size_t piece_count;
    size_t size; /* bytes of all pieces together */
} h2_batch;

/* Builds `messages` InsertStreamRequests of this shape. */
void h2_batch_init_insert(h2_batch *batch, const h2_shape *shape, size_t messages);
void h2_batch_deinit(h2_batch *batch);

/* Gives the items the keys h2_key(first), h2_key(first + 1), ... */
void h2_batch_number(h2_batch *batch, uint64_t first);

/* Appends one SampleStreamResponse with its prefix to `out`. Its `shape->items` samples are the
 * items with the keys h2_key(first), h2_key(first + 1), ... Payloads of any size are copied. */
void h2_append_sample_response(h2_bytes *out, const h2_shape *shape, uint64_t first);

/* Appends a SampleStreamRequest for `samples` samples of a table, with its prefix. */
void h2_append_sample_request(h2_bytes *out, size_t table, size_t samples);

/* Reads a varint of at most ten bytes. Returns the address after the varint, or NULL if the
 * varint does not end before `end`. */
const uint8_t *h2_read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value);

/* One field of a message. */
typedef struct h2_field {
    unsigned number, type;
    uint64_t value;      /* value of a varint, or size of a bytes field */
    const uint8_t *data; /* the data of a bytes field or fixed-size field */
} h2_field;

/* Reads the next field. Returns the address after the field, or NULL if the field is
 * incomplete. */
const uint8_t *h2_read_field(const uint8_t *at, const uint8_t *end, h2_field *field);

/* Returns true if the bytes are a SampleEntry with one whole item of the load generator: chunk,
 * key and trajectory belong together, and every byte of the payload is correct. */
bool h2_sample_entry_ok(const uint8_t *data, size_t size, const h2_shape *shape);

#endif
