/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded decoder for lz4 blocks: it stops as soon as it has the requested bytes.
 *
 *   block      sequence*; the last one ends after its literals
 *   sequence   token | more length* | literals | offset, two bytes | more length*
 *   token      upper four bits: number of literals; lower four bits: length of the match - 4.
 *              If one of these is 15, further bytes ("more length") are added to it, up to and
 *              including the first that is not 255
 *
 * This decoder refuses an offset of 0, which the format forbids. The decoder of liblz4 accepts
 * an offset of 0 and copies uninitialised memory. So with liblz4, decoding the same block twice
 * could give different bytes.
 *
 * The function has no state. It checks every length before it uses the length. */
#ifndef RP_CHUNK_LZ4_DECODE_H
#define RP_CHUNK_LZ4_DECODE_H

#include "reprise/status.h"

/* Writes the first `want` of `raw_bytes` decoded bytes to `dst`, and never more: `dst` needs
 * room for `want` bytes. Returns RP_CORRUPT if the block is malformed or too short. If all
 * bytes are requested, also returns RP_CORRUPT for a block that is too long. After RP_CORRUPT
 * the contents of `dst` are undefined. */
RP_NODISCARD rp_status rp_lz4_decode(const uint8_t *src, size_t size, size_t raw_bytes,
                                     uint8_t *dst, size_t want);

#endif
