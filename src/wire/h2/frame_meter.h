/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the HTTP/2 frames in a stream of bytes.
 *
 * nghttp2 reports no DATA frame on a stream that has ended: it skips the frame. The meter sees
 * every frame, so the frames that were skipped are those that it has counted and nghttp2 has
 * not reported.
 *
 * nghttp2 reports no dynamic table size update of HPACK (RFC 7541, section 6.3) either. They
 * stand before the first field of a header block, in any number. The meter counts them there.
 *
 * The cost is that of reading 9 bytes a frame, and of a header block what is before its first
 * field and one byte more.
 *
 * A plain value; zero with `skip` set to the bytes before the first frame. */
#ifndef RP_WIRE_H2_FRAME_METER_H
#define RP_WIRE_H2_FRAME_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_FRAME_HEAD_BYTES = 9,
    RP_FRAME_LEAST_COST = 256, /* of a DATA frame, in bytes: a small one is work as well */
    RP_BLOCK_TABLE_SIZES = 2,  /* size updates that a header block may need (RFC 7541, 4.2) */
};

/* DATA frames, summed. */
typedef struct rp_data_sum {
    uint64_t frames; /* all of them */
    uint64_t empty;  /* those without payload that do not end their stream */
    uint64_t cost;   /* of the others: their bytes, RP_FRAME_LEAST_COST each at least */
} rp_data_sum;

typedef struct rp_frame_meter {
    uint64_t frames;      /* of any type */
    uint64_t table_sizes; /* size updates beyond those that their header blocks may need */
    rp_data_sum data;
    size_t skip; /* bytes before the next head */

    /* the header block that is coming */
    size_t block_left;    /* bytes of the frame that belong to it, and what precedes it there */
    uint8_t prefix_left;  /* bytes of the frame before it: its priority */
    uint8_t needed_sizes; /* size updates that it may still need */
    bool at_start;        /* no field of it has come */
    bool is_padded;       /* the length of the padding is to come */
    bool in_size;         /* the last size update goes on */

    uint8_t head[RP_FRAME_HEAD_BYTES];
    uint8_t head_bytes; /* that have come */
} rp_frame_meter;

/* What a DATA frame costs. */
static inline size_t rp_data_cost(size_t length)
{
    return length > RP_FRAME_LEAST_COST ? length : RP_FRAME_LEAST_COST;
}

/* Adds a DATA frame; `ends`: its stream. */
static inline void rp_data_sum_add(rp_data_sum *sum, size_t length, bool ends)
{
    sum->frames++;
    if (length == 0 && !ends)
        sum->empty++;
    else
        sum->cost += rp_data_cost(length);
}

/* Counts the frames whose heads end within these bytes, which follow those of the last call. */
void rp_frame_meter_feed(rp_frame_meter *meter, const uint8_t *data, size_t size);

#endif
