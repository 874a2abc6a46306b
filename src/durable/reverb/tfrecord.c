/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/tfrecord.h"

#include <assert.h>
#include <inttypes.h>

#include "disk/record.h"
#include "util/error.h"
#include "util/little_endian.h"

enum { STEP_BYTES = 1 << 20 };

uint32_t rp_tfrecord_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint32_t masked(const void *data, size_t size)
{
    return rp_tfrecord_mask(rp_crc32c(0, data, size));
}

void rp_tfrecord_put_head(uint8_t out[RP_TFRECORD_HEAD_BYTES], uint64_t length)
{
    rp_put_u64(out, length);
    rp_put_u32(out + 8, masked(out, 8));
}

void rp_tfrecord_put_foot(uint8_t out[RP_TFRECORD_FOOT_BYTES], const void *data, size_t size)
{
    rp_put_u32(out, masked(data, size));
}

bool rp_tfrecord_get_head(const uint8_t head[RP_TFRECORD_HEAD_BYTES], uint64_t *length)
{
    *length = rp_get_u64(head);
    return rp_get_u32(head + 8) == masked(head, 8);
}

bool rp_tfrecord_check_data(const void *data, size_t size,
                            const uint8_t foot[RP_TFRECORD_FOOT_BYTES])
{
    return rp_get_u32(foot) == masked(data, size);
}

bool rp_tfrecord_is_plain(const uint8_t *first, size_t size)
{
    uint64_t length;

    return size >= RP_TFRECORD_HEAD_BYTES && rp_tfrecord_get_head(first, &length);
}

void rp_tfrecord_reader_init(rp_tfrecord_reader *r, const rp_allocator *alloc,
                             rp_byte_source source, size_t max_record)
{
    *r = (rp_tfrecord_reader){.source = source, .max_record = max_record};
    rp_buf_init(&r->buf, alloc);
}

void rp_tfrecord_reader_deinit(rp_tfrecord_reader *r)
{
    rp_buf_deinit(&r->buf);
}

static rp_status cut_off(rp_error *err)
{
    return rp_fail(err, RP_CORRUPT, "the file ends within it");
}

/* Appends `size` bytes to the buffer. */
static rp_status take(rp_tfrecord_reader *r, size_t size, rp_error *err)
{
    while (size > 0) {
        size_t step = size < STEP_BYTES ? size : STEP_BYTES, got = 0;
        uint8_t *at = rp_buf_reserve(&r->buf, step);
        rp_status st;

        if (at == NULL) return rp_fail_memory(err, step);
        st = r->source.read(r->source.ctx, at, step, &got, err);
        if (st != RP_OK) return st;
        assert(got <= step);
        if (got < step) return cut_off(err);
        r->buf.size += step;
        size -= step;
    }
    return RP_OK;
}

rp_status rp_tfrecord_next(rp_tfrecord_reader *r, const uint8_t **data, size_t *size,
                           rp_error *err)
{
    uint8_t head[RP_TFRECORD_HEAD_BYTES];
    uint64_t length;
    size_t got = 0;
    rp_status st = r->source.read(r->source.ctx, head, sizeof head, &got, err);

    if (st != RP_OK) return st;
    *data = NULL;
    *size = 0;
    if (got == 0) return RP_OK;
    r->count++;
    if (got < sizeof head) return cut_off(err);
    if (!rp_tfrecord_get_head(head, &length))
        return rp_fail(err, RP_CORRUPT, "the checksum of its length is wrong");
    if (length > r->max_record)
        return rp_fail(err, RP_NO_RESOURCE,
                       "it has %" PRIu64 " bytes, but at most %zu are allowed", length,
                       r->max_record);
    rp_buf_clear(&r->buf);
    st = take(r, (size_t)length + RP_TFRECORD_FOOT_BYTES, err);
    if (st != RP_OK) return st;
    if (!rp_tfrecord_check_data(r->buf.data, (size_t)length, r->buf.data + length))
        return rp_fail(err, RP_CORRUPT, "the checksum of its data is wrong");
    assert(r->buf.size == length + RP_TFRECORD_FOOT_BYTES);
    r->offset += sizeof head + length + RP_TFRECORD_FOOT_BYTES;
    *data = r->buf.data;
    *size = (size_t)length;
    return RP_OK;
}

rp_status rp_tfrecord_write(rp_byte_sink sink, const void *data, size_t size, rp_error *err)
{
    uint8_t head[RP_TFRECORD_HEAD_BYTES], foot[RP_TFRECORD_FOOT_BYTES];
    rp_status st;

    rp_tfrecord_put_head(head, size);
    rp_tfrecord_put_foot(foot, data, size);
    st = sink.write(sink.ctx, head, sizeof head, err);
    if (st == RP_OK && size > 0) st = sink.write(sink.ctx, data, size, err);
    if (st == RP_OK) st = sink.write(sink.ctx, foot, sizeof foot, err);
    return st;
}
