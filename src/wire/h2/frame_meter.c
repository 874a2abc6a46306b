/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/h2/frame_meter.h"

#include <assert.h>
#include <string.h>

enum { DATA = 0, HEADERS = 1, CONTINUATION = 9 };
enum { END_STREAM = 0x1, PADDED = 0x8, PRIORITY = 0x20 };
enum { PRIORITY_BYTES = 5 };

static void begin_block(rp_frame_meter *meter, uint8_t flags)
{
    meter->is_padded = (flags & PADDED) != 0;
    meter->prefix_left = (flags & PRIORITY) != 0 ? PRIORITY_BYTES : 0;
    meter->needed_sizes = RP_BLOCK_TABLE_SIZES;
    meter->at_start = true;
    meter->in_size = false;
}

static void count(rp_frame_meter *meter, const uint8_t *head)
{
    size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | (size_t)head[2];

    meter->frames++;
    meter->skip = length;
    meter->block_left = length;
    if (head[3] == DATA) rp_data_sum_add(&meter->data, length, (head[4] & END_STREAM) != 0);
    if (head[3] == HEADERS)
        begin_block(meter, head[4]);
    else if (head[3] != CONTINUATION)
        meter->at_start = false;
}

/* Counts the size updates in bytes of a frame, until the first field of its header block. */
static void count_table_sizes(rp_frame_meter *meter, const uint8_t *data, size_t size)
{
    for (; size > 0 && meter->at_start && meter->block_left > 0; data++, size--) {
        meter->block_left--;
        if (meter->is_padded) {
            meter->is_padded = false;
            meter->block_left -= *data < meter->block_left ? *data : meter->block_left;
        } else if (meter->prefix_left > 0) {
            meter->prefix_left--;
        } else if (meter->in_size) {
            meter->in_size = (*data & 0x80) != 0;
        } else if ((*data & 0xe0) == 0x20) {
            meter->in_size = (*data & 0x1f) == 0x1f;
            if (meter->needed_sizes > 0)
                meter->needed_sizes--;
            else
                meter->table_sizes++;
        } else {
            meter->at_start = false;
        }
    }
}

void rp_frame_meter_feed(rp_frame_meter *meter, const uint8_t *data, size_t size)
{
    assert(meter->head_bytes < RP_FRAME_HEAD_BYTES); /* M1 */
    assert(meter->head_bytes == 0 || meter->skip == 0);
    for (;;) {
        size_t n = meter->skip < size ? meter->skip : size;

        if (meter->at_start) count_table_sizes(meter, data, n);
        meter->skip -= n;
        data += n;
        size -= n;
        if (size == 0) return;
        if (meter->head_bytes == 0 && size >= RP_FRAME_HEAD_BYTES) {
            count(meter, data);
            n = RP_FRAME_HEAD_BYTES;
        } else {
            n = RP_FRAME_HEAD_BYTES - (size_t)meter->head_bytes;
            if (n > size) n = size;
            memcpy(meter->head + meter->head_bytes, data, n);
            meter->head_bytes = (uint8_t)(meter->head_bytes + n);
            if (meter->head_bytes < RP_FRAME_HEAD_BYTES) return;
            meter->head_bytes = 0;
            count(meter, meter->head);
        }
        data += n;
        size -= n;
    }
}
