/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the HTTP/2 frames in a stream of bytes.
 *
 * nghttp2 reports no DATA frame on a stream that has ended: it skips the frame. The meter sees
 * every frame, so the frames that were skipped are those that it has counted and nghttp2 has
 * not reported. It reads frame heads only; the cost is that of reading 9 bytes a frame.
 *
 * A plain value; zero with `skip` set to the bytes before the first frame. */
#ifndef RP_WIRE_FRAME_METER_H
#define RP_WIRE_FRAME_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RP_FRAME_HEAD_BYTES = 9,
    RP_FRAME_LEAST_COST = 256, /* of a DATA frame, in bytes: a small one is work as well */
};

/* DATA frames, summed. */
typedef struct rp_data_sum {
    uint64_t frames; /* all of them */
    uint64_t empty;  /* those without payload that do not end their stream */
    uint64_t cost;   /* of the others: their bytes, RP_FRAME_LEAST_COST each at least */
} rp_data_sum;

typedef struct rp_frame_meter {
    uint64_t frames; /* of any type */
    rp_data_sum data;
    size_t skip; /* bytes before the next head */
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
