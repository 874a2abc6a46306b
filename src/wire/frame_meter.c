/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame_meter.h"

#include <string.h>

enum { DATA = 0, END_STREAM = 1 };

static void count(rp_frame_meter *meter, const uint8_t *head)
{
    size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | (size_t)head[2];

    meter->frames++;
    meter->skip = length;
    if (head[3] == DATA) rp_data_sum_add(&meter->data, length, (head[4] & END_STREAM) != 0);
}

void rp_frame_meter_feed(rp_frame_meter *meter, const uint8_t *data, size_t size)
{
    for (;;) {
        size_t n = meter->skip < size ? meter->skip : size;

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
