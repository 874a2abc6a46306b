/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of chunks (chunk_api.h). If a writer's chunks have one uncompressed column, their
 * messages differ only in the head (key and range of steps) and in the rows. A template stores
 * the parts of the message that do not change, and the result of parsing them. With a template,
 * the next chunk is built by copying three parts, or parsed by comparing two parts, instead of
 * field by field.
 *
 *   | head | before | rows | after |
 *
 * A template owns no memory. A zeroed template matches no message.
 *
 * Invariant: before_bytes and after_bytes are at most RP_TEMPLATE_BYTES. */
#ifndef RP_CHUNK_TEMPLATE_H
#define RP_CHUNK_TEMPLATE_H

#include "chunk/chunk_wire.h"
#include "util/bytes.h"

enum { RP_TEMPLATE_BYTES = 64 };

typedef struct rp_chunk_template {
    size_t rows_bytes; /* 0: the template matches no message */
    size_t before_bytes, after_bytes;
    uint8_t before[RP_TEMPLATE_BYTES], after[RP_TEMPLATE_BYTES];
    rp_codec codec;
    rp_chunk_column column;
    rp_column_place place; /* its offsets are relative to the end of the head */
} rp_chunk_template;

/* Makes the template match chunks like `chunk`. If the chunk is not suitable, does nothing. */
void rp_chunk_template_set(rp_chunk_template *template, const rp_chunk *chunk);

/* Makes a chunk with this origin and with the template->rows_bytes bytes at `rows`. The caller
 * owns the result. Returns NULL if there is no memory. */
rp_chunk *rp_chunk_template_make(const rp_chunk_template *template, const rp_allocator *alloc,
                                 const rp_chunk_origin *origin, const uint8_t *rows);

/* Does the same as rp_chunk_parse(), but is faster if the message matches the template. If the
 * message does not match, updates the template. `head` is the result of rp_chunk_wire_peek()
 * for the message. */
RP_NODISCARD rp_status rp_chunk_template_parse(rp_chunk_template *template,
                                               const rp_allocator *alloc, rp_bytes wire,
                                               const rp_chunk_head *head,
                                               const rp_chunk_limits *limits, rp_chunk **out,
                                               rp_error *err);

#endif
