/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the HTTP/2 frames in the bytes that a peer sends on a connection. A server uses the
 * counts to find nuisances (h2.h) that nghttp2 does not report.
 *
 * nghttp2 does not report DATA frames on an ended stream to its callbacks. The meter counts
 * every DATA frame. So its count minus the number of reported DATA frames is the number of DATA
 * frames on ended streams.
 *
 * nghttp2 does not report dynamic table size updates of HPACK (RFC 7541, section 6.3) either.
 * Any number of them can precede the first field of a header block. The meter counts these
 * updates.
 *
 * Cost: the meter reads the 9 header bytes of each frame. Of a header block it also reads the
 * bytes before the first field and one byte of this field.
 *
 * Invariants:
 *   M1  head_bytes < RP_FRAME_HEAD_BYTES between calls, and is 0 unless skip is 0;
 *   M2  block_left <= skip while at_start.
 *
 * Zero-initialise an rp_frame_meter and set `skip` to the number of bytes before the first
 * frame. */
#ifndef RP_WIRE_H2_FRAME_METER_H
#define RP_WIRE_H2_FRAME_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_FRAME_HEAD_BYTES = 9,
    RP_FRAME_LEAST_COST = 256, /* least cost of a DATA frame in bytes, since each frame takes
                                  work */
    RP_BLOCK_TABLE_SIZES = 2,  /* size updates that a header block may need (RFC 7541, 4.2) */
};

/* Sums over DATA frames. */
typedef struct rp_data_sum {
    uint64_t frames; /* number of DATA frames */
    uint64_t empty;  /* number of DATA frames without payload that do not end their stream */
    uint64_t cost;   /* sum of rp_data_cost() of the frames that are not in `empty` */
} rp_data_sum;

typedef struct rp_frame_meter {
    uint64_t frames;      /* number of frames of any type */
    uint64_t table_sizes; /* size updates beyond those that their header blocks may need */
    rp_data_sum data;
    size_t skip; /* bytes before the next frame header */

    /* The header block that is being received: */
    size_t block_left;    /* bytes of the frame still to come, up to the end of the block */
    uint8_t prefix_left;  /* bytes of the frame still to come before the block: the frame's
                             priority fields */
    uint8_t needed_sizes; /* size updates that the block may still need */
    bool at_start;        /* no field of the block has arrived */
    bool is_padded;       /* the next byte is the length of the padding */
    bool in_size;         /* the next byte belongs to a size update */

    uint8_t head[RP_FRAME_HEAD_BYTES];
    uint8_t head_bytes; /* bytes of `head` that have arrived */
} rp_frame_meter;

/* The cost of a DATA frame with `length` bytes. */
static inline size_t rp_data_cost(size_t length)
{
    return length > RP_FRAME_LEAST_COST ? length : RP_FRAME_LEAST_COST;
}

/* Adds a DATA frame of `length` bytes. `ends` is true if the frame ends its stream. */
static inline void rp_data_sum_add(rp_data_sum *sum, size_t length, bool ends)
{
    sum->frames++;
    if (length == 0 && !ends)
        sum->empty++;
    else
        sum->cost += rp_data_cost(length);
}

/* Counts the frames whose headers end within these bytes. The bytes must follow the bytes of
 * the previous call on the connection. */
void rp_frame_meter_feed(rp_frame_meter *meter, const uint8_t *data, size_t size);

#endif
