/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/zlib_stream.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "util/error.h"
#include "util/mem.h"

enum { BUFFER_BYTES = 1 << 16 };

/* zlib frees blocks without their size, so it is stored before each block. */
typedef union block {
    size_t size;
    max_align_t align;
} block;

static void *zlib_alloc(void *ctx, unsigned count, unsigned size)
{
    size_t bytes;
    block *b;

    if (!rp_size_mul(count, size, &bytes) || !rp_size_add(bytes, sizeof *b, &bytes))
        return Z_NULL;
    b = rp_alloc(ctx, bytes);
    if (b == NULL) return Z_NULL;
    b->size = bytes;
    return b + 1;
}

static void zlib_free(void *ctx, void *ptr)
{
    block *b = (block *)ptr - 1;

    rp_release(ctx, b, b->size);
}

typedef enum form {
    FORM_UNKNOWN,
    FORM_EMPTY,
    FORM_PLAIN,
    FORM_ZLIB,
    FORM_ENDED, /* zlib, and its end was read */
} form;

struct rp_inflater {
    rp_allocator alloc;
    rp_inflate_options options;
    form form;
    bool source_ended;
    z_stream z; /* next_in, avail_in: the unused part of `buffer` */
    bool has_z;
    uint64_t consumed, produced;
    uint8_t buffer[BUFFER_BYTES];
};

rp_status rp_inflater_new(const rp_allocator *alloc, const rp_inflate_options *options,
                          rp_inflater **out, rp_error *err)
{
    rp_inflater *z = rp_alloc_zero(alloc, sizeof *z);

    if (z == NULL) return rp_fail_memory(err, sizeof *z);
    z->alloc = *alloc;
    z->options = *options;
    z->z.next_in = z->buffer;
    *out = z;
    return RP_OK;
}

void rp_inflater_free(rp_inflater *z)
{
    rp_allocator alloc;

    if (z == NULL) return;
    alloc = z->alloc;
    if (z->has_z) (void)inflateEnd(&z->z);
    rp_release(&alloc, z, sizeof *z);
}

/* Refills the buffer, all of which was used. */
static rp_status refill(rp_inflater *z, rp_error *err)
{
    size_t got = 0;
    rp_status st;

    assert(z->z.avail_in == 0);
    if (z->source_ended) return RP_OK;
    st = z->options.source.read(z->options.source.ctx, z->buffer, sizeof z->buffer, &got, err);
    if (st != RP_OK) return st;
    assert(got <= sizeof z->buffer);
    z->consumed += got;
    z->source_ended = got < sizeof z->buffer;
    z->z.next_in = z->buffer;
    z->z.avail_in = (unsigned)got;
    return RP_OK;
}

static rp_status begin(rp_inflater *z, rp_error *err)
{
    size_t first;
    rp_status st = refill(z, err);

    assert(z->form == FORM_UNKNOWN && !z->has_z);
    if (st != RP_OK) return st;
    first = z->z.avail_in < RP_INFLATE_PEEK_BYTES ? z->z.avail_in : RP_INFLATE_PEEK_BYTES;
    if (first == 0) {
        z->form = FORM_EMPTY;
    } else if (z->options.is_plain != NULL && z->options.is_plain(z->buffer, first)) {
        z->form = FORM_PLAIN;
    } else {
        z->z.zalloc = zlib_alloc;
        z->z.zfree = zlib_free;
        z->z.opaque = &z->alloc;
        if (inflateInit(&z->z) != Z_OK) return rp_fail_memory(err, BUFFER_BYTES);
        z->has_z = true;
        z->form = FORM_ZLIB;
    }
    return RP_OK;
}

static rp_status read_plain(rp_inflater *z, uint8_t *dst, size_t size, size_t *got,
                            rp_error *err)
{
    while (*got < size) {
        size_t part = size - *got < z->z.avail_in ? size - *got : z->z.avail_in;
        rp_status st;

        if (part > 0) {
            memcpy(dst + *got, z->z.next_in, part);
            z->z.next_in += part;
            z->z.avail_in -= (unsigned)part;
            *got += part;
        } else if (z->source_ended) {
            break;
        } else {
            st = refill(z, err);
            if (st != RP_OK) return st;
        }
    }
    return RP_OK;
}

/* Checks that no bytes follow the end of the stream. */
static rp_status check_end(rp_inflater *z, rp_error *err)
{
    if (z->z.avail_in == 0) {
        rp_status st = refill(z, err);
        if (st != RP_OK) return st;
    }
    if (z->z.avail_in > 0)
        return rp_fail(err, RP_CORRUPT, "bytes follow the end of the zlib stream");
    return RP_OK;
}

static rp_status read_zlib(rp_inflater *z, uint8_t *dst, size_t size, size_t *got,
                           rp_error *err)
{
    while (*got < size) {
        size_t room = size - *got < UINT_MAX ? size - *got : UINT_MAX;
        rp_status st;
        int result;

        if (z->z.avail_in == 0) {
            st = refill(z, err);
            if (st != RP_OK) return st;
        }
        z->z.next_out = dst + *got;
        z->z.avail_out = (unsigned)room;
        result = inflate(&z->z, Z_NO_FLUSH);
        assert(z->z.avail_out <= room);
        *got += room - z->z.avail_out;
        if (result == Z_STREAM_END) {
            z->form = FORM_ENDED;
            return check_end(z, err);
        }
        if (result == Z_MEM_ERROR) return rp_fail_memory(err, BUFFER_BYTES);
        if (result == Z_BUF_ERROR) /* no input and no progress */
            return rp_fail(err, RP_CORRUPT, "the zlib stream is cut off");
        if (result != Z_OK)
            return rp_fail(err, RP_CORRUPT, "no zlib stream: %s",
                           z->z.msg != NULL ? z->z.msg : "it asks for a dictionary");
    }
    return RP_OK;
}

rp_status rp_inflater_read(void *ctx, void *dst, size_t size, size_t *got, rp_error *err)
{
    rp_inflater *z = ctx;
    rp_status st = RP_OK;

    *got = 0;
    if (z->form == FORM_UNKNOWN) st = begin(z, err);
    if (st == RP_OK && z->form == FORM_PLAIN)
        st = read_plain(z, dst, size, got, err);
    else if (st == RP_OK && z->form == FORM_ZLIB)
        st = read_zlib(z, dst, size, got, err);
    if (st != RP_OK) return st;
    z->produced += *got;
    if (z->options.max_bytes != 0 && z->produced > z->options.max_bytes)
        return rp_fail(err, RP_NO_RESOURCE, "the file has more than the %llu bytes allowed",
                       (unsigned long long)z->options.max_bytes);
    return RP_OK;
}

bool rp_inflater_is_compressed(const rp_inflater *z)
{
    return z->form == FORM_ZLIB || z->form == FORM_ENDED;
}

uint64_t rp_inflater_consumed(const rp_inflater *z)
{
    assert(z->consumed >= z->z.avail_in);
    return z->consumed - z->z.avail_in;
}

struct rp_deflater {
    rp_allocator alloc;
    rp_byte_sink sink;
    z_stream z;
    uint8_t buffer[BUFFER_BYTES];
};

rp_status rp_deflater_new(const rp_allocator *alloc, rp_byte_sink sink, rp_deflater **out,
                          rp_error *err)
{
    rp_deflater *z = rp_alloc_zero(alloc, sizeof *z);

    if (z == NULL) return rp_fail_memory(err, sizeof *z);
    z->alloc = *alloc;
    z->sink = sink;
    z->z.zalloc = zlib_alloc;
    z->z.zfree = zlib_free;
    z->z.opaque = &z->alloc;
    if (deflateInit(&z->z, Z_DEFAULT_COMPRESSION) != Z_OK) {
        rp_release(alloc, z, sizeof *z);
        return rp_fail_memory(err, BUFFER_BYTES);
    }
    z->z.next_out = z->buffer;
    z->z.avail_out = sizeof z->buffer;
    *out = z;
    return RP_OK;
}

void rp_deflater_free(rp_deflater *z)
{
    rp_allocator alloc;

    if (z == NULL) return;
    alloc = z->alloc;
    (void)deflateEnd(&z->z);
    rp_release(&alloc, z, sizeof *z);
}

static rp_status drain(rp_deflater *z, rp_error *err)
{
    size_t size = sizeof z->buffer - z->z.avail_out;
    rp_status st = size > 0 ? z->sink.write(z->sink.ctx, z->buffer, size, err) : RP_OK;

    z->z.next_out = z->buffer;
    z->z.avail_out = sizeof z->buffer;
    return st;
}

rp_status rp_deflater_write(void *ctx, const void *data, size_t size, rp_error *err)
{
    rp_deflater *z = ctx;
    const uint8_t *at = data;
    rp_status st;

    while (size > 0) {
        size_t part = size < UINT_MAX ? size : UINT_MAX;

        z->z.next_in = (uint8_t *)(uintptr_t)at; /* zlib does not write there */
        z->z.avail_in = (unsigned)part;
        while (z->z.avail_in > 0) {
            (void)deflate(&z->z, Z_NO_FLUSH); /* with input and space it cannot fail */
            if (z->z.avail_out > 0) continue;
            st = drain(z, err);
            if (st != RP_OK) return st;
        }
        at += part;
        size -= part;
    }
    return RP_OK;
}

rp_status rp_deflater_finish(rp_deflater *z, rp_error *err)
{
    int result;

    z->z.next_in = NULL;
    z->z.avail_in = 0;
    do {
        rp_status st;
        result = deflate(&z->z, Z_FINISH);
        st = drain(z, err);
        if (st != RP_OK) return st;
    } while (result == Z_OK);
    return RP_OK;
}
