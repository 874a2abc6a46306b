/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/byte_stream.h"

#include <assert.h>
#include <string.h>

rp_status rp_memory_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err)
{
    rp_memory_stream *s = ctx;
    size_t left = (size_t)(s->end - s->at);

    assert(s->at <= s->end);
    (void)err;
    *got = size < left ? size : left;
    if (*got > 0) memcpy(dst, s->at, *got);
    s->at += *got;
    return RP_OK;
}

rp_status rp_file_stream_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err)
{
    rp_file_stream *s = ctx;
    rp_status st = s->file->files->ops->read(s->file, s->position, dst, size, got, err);

    assert(st != RP_OK || *got <= size);
    if (st == RP_OK) s->position += *got;
    return st;
}

rp_status rp_file_stream_write(void *ctx, const void *data, size_t size, rp_error *err)
{
    rp_file_stream *s = ctx;
    const rp_bytes part = {data, size};
    rp_status st = s->file->files->ops->write(s->file, s->position, &part, 1, err);

    if (st == RP_OK) s->position += size;
    return st;
}
