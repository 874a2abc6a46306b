/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of one column whose rows stand plain in the message differ, from one to the next of a
 * writer's, in the head of the message (key and range) and in the rows. A mould keeps the rest
 * of one of them, and what reading it gave. Building or reading the next one then takes a copy
 * and two comparisons instead of a walk through the message.
 *
 *   | head | before | rows | after |
 *
 * A plain value; all zero it fits nothing. */
#ifndef RP_CHUNK_MOULD_H
#define RP_CHUNK_MOULD_H

#include "chunk/chunk_wire.h"

enum { RP_MOULD_BYTES = 64 };

typedef struct rp_chunk_mould {
    size_t rows_bytes; /* 0: it fits nothing */
    size_t before_bytes, after_bytes;
    uint8_t before[RP_MOULD_BYTES], after[RP_MOULD_BYTES];
    rp_codec codec;
    rp_chunk_column column;
    rp_column_place place; /* counted from the end of the head */
} rp_chunk_mould;

/* Takes the form of a chunk; one that is not fit for a mould leaves it as it is. */
void rp_chunk_mould_take(rp_chunk_mould *mould, const rp_chunk *chunk);

/* A chunk of that origin with these rows, as many bytes as the mould says. NULL: no memory. */
rp_chunk *rp_chunk_mould_cast(const rp_chunk_mould *mould, const rp_allocator *alloc,
                              const rp_chunk_origin *origin, const uint8_t *rows);

/* The same as rp_chunk_parse(), faster if the message fits the mould, which takes its form if
 * not. `head` is what rp_chunk_wire_peek() says of the message. */
RP_NODISCARD rp_status rp_chunk_mould_parse(rp_chunk_mould *mould, const rp_allocator *alloc,
                                            const uint8_t *wire, size_t size,
                                            const rp_chunk_head *head,
                                            const rp_chunk_limits *limits, rp_chunk **out,
                                            rp_error *err);

#endif
