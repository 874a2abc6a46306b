/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded decoder for raw snappy blocks: it stops as soon as it has the bytes asked for.
 *
 *   block     varint32 n (bytes when decoded), then elements until n bytes are there
 *   element   low two bits of its tag
 *             00  literal   length - 1 in the upper six bits; 60..63: in 1..4 bytes that follow
 *             01  copy      length 4..11 in bits 2..4, offset: bits 5..7 and one byte
 *             10  copy      length - 1 in the upper six bits, offset in two bytes
 *             11  copy      the same, offset in four bytes
 *
 * Pure functions: bytes in, bytes out, every length checked before it is used. */
#ifndef RP_CHUNK_SNAPPY_DECODE_H
#define RP_CHUNK_SNAPPY_DECODE_H

#include "reprise/status.h"

/* Reads the varint in front: the decoded length in `*raw_bytes` and its own size in
 * `*head_bytes`. False if it is cut off or does not fit 32 bits. */
bool rp_snappy_head(const uint8_t *src, size_t size, size_t *raw_bytes, size_t *head_bytes);

/* If the block is one literal that holds all `raw_bytes` bytes, returns where they begin; they
 * end with the block. NULL if it is anything else. Looks at ten bytes at most. */
const uint8_t *rp_snappy_literal(const uint8_t *src, size_t size, size_t raw_bytes);

/* Bytes in front of a literal that holds `raw_bytes` (< 2^32) bytes: the varint and the tag. */
size_t rp_snappy_literal_head_size(size_t raw_bytes);
/* Writes them and returns the end of them. */
uint8_t *rp_snappy_put_literal_head(uint8_t *at, size_t raw_bytes);

/* Writes the first `want` of `raw_bytes` decoded bytes to `dst`, which has room for `want` and
 * is never written past that. RP_CORRUPT, with `dst` in any state, if the block does not
 * declare `raw_bytes`, is malformed, ends early, or, when all is wanted, goes on for longer. */
RP_NODISCARD rp_status rp_snappy_decode(const uint8_t *src, size_t size, size_t raw_bytes,
                                        uint8_t *dst, size_t want);

#endif
