/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded decoder for raw snappy blocks: it stops as soon as it has the requested bytes.
 *
 *   block     varint32 n (decoded size), then elements until n bytes are decoded
 *   element   low two bits of its tag
 *             00  literal   length - 1 in the upper six bits; 60..63: in 1..4 bytes that follow
 *             01  copy      length 4..11 in bits 2..4, offset: bits 5..7 and one byte
 *             10  copy      length - 1 in the upper six bits, offset in two bytes
 *             11  copy      the same, offset in four bytes
 *
 * The functions have no state. They check every length before they use it. */
#ifndef RP_CHUNK_SNAPPY_DECODE_H
#define RP_CHUNK_SNAPPY_DECODE_H

#include "reprise/status.h"

/* Reads the varint at the beginning of a block. Sets `*raw_bytes` to the decoded length and
 * `*head_bytes` to the size of the varint. Returns false if the varint is truncated or does not
 * fit into 32 bits. */
bool rp_snappy_head(const uint8_t *src, size_t size, size_t *raw_bytes, size_t *head_bytes);

/* If the whole block is one literal of `raw_bytes` bytes, returns the address of these bytes.
 * Otherwise returns NULL. Reads at most ten bytes. */
const uint8_t *rp_snappy_literal(const uint8_t *src, size_t size, size_t raw_bytes);

/* Returns the size of the header (varint and tag) of a block that is one literal of `raw_bytes`
 * (< 2^32) bytes. */
size_t rp_snappy_literal_head_size(size_t raw_bytes);
/* Writes the header (varint and tag) of a block that is one literal, and returns the address
 * after the header. */
uint8_t *rp_snappy_put_literal_head(uint8_t *at, size_t raw_bytes);

/* Writes the first `want` of `raw_bytes` decoded bytes to `dst`, and never more: `dst` needs
 * room for `want` bytes. Returns RP_CORRUPT if the block does not declare `raw_bytes`, is
 * malformed, or is too short. If all bytes are requested, also returns RP_CORRUPT for a block
 * that is too long. After RP_CORRUPT the contents of `dst` are undefined. */
RP_NODISCARD rp_status rp_snappy_decode(const uint8_t *src, size_t size, size_t raw_bytes,
                                        uint8_t *dst, size_t want);

#endif
