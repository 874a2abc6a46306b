/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/zlib_stream.h"

#include <string.h>

#include "support/unit.h"
#include "util/buf.h"
#include "util/rng.h"

static rp_status append(void *ctx, const void *data, size_t size, rp_error *err)
{
    (void)err;
    rp_buf_append(ctx, data, size);
    return RP_OK;
}

/* Bytes that compress a little. */
static rp_buf some_bytes(size_t size)
{
    rp_rng rng;
    rp_buf out;

    rp_rng_init(&rng, 1);
    rp_buf_init(&out, rp_allocator_default());
    assert_non_null(rp_buf_reserve(&out, size + 1));
    for (size_t i = 0; i < size; i++) out.data[i] = (uint8_t)(rp_rng_next(&rng) & 0x3f);
    out.size = size;
    return out;
}

static rp_status compress_into(const rp_allocator *alloc, const rp_buf *bytes, rp_buf *out)
{
    rp_deflater *z = NULL;
    rp_status st = rp_deflater_new(alloc, (rp_byte_sink){append, out}, &z, NULL);

    /* In pieces of odd sizes. */
    for (size_t at = 0, n = 1; st == RP_OK && at < bytes->size; at += n, n = n * 3 + 1) {
        if (n > bytes->size - at) n = bytes->size - at;
        st = rp_deflater_write(z, bytes->data + at, n, NULL);
    }
    if (st == RP_OK) st = rp_deflater_finish(z, NULL);
    rp_deflater_free(z);
    return st;
}

static rp_buf compress(const rp_buf *bytes)
{
    rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    assert_ok(compress_into(rp_allocator_default(), bytes, &out));
    return out;
}

/* Reads all of a stream in pieces of `step` bytes. */
static rp_status read_all(const rp_allocator *alloc, const void *data, size_t size,
                          uint64_t max_bytes, bool (*is_plain)(const uint8_t *, size_t),
                          size_t step, rp_buf *out, rp_error *err)
{
    rp_memory_stream stream = {data, (const uint8_t *)data + size};
    const rp_inflate_options options = {{rp_memory_stream_read, &stream}, max_bytes, is_plain};
    rp_inflater *z = NULL;
    size_t got = step;
    rp_status st = rp_inflater_new(alloc, &options, &z, err);

    while (st == RP_OK && got == step) {
        uint8_t *at = rp_buf_reserve(out, step);
        assert_non_null(at);
        st = rp_inflater_read(z, at, step, &got, err);
        if (st == RP_OK) out->size += got;
    }
    if (st == RP_OK) assert_int_equal(rp_inflater_consumed(z), size);
    rp_inflater_free(z);
    return st;
}

static void written_bytes_are_read_back(void **state)
{
    static const size_t sizes[] = {0, 1, 100, 65536, 300000};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t step = 7; step < 100000; step = step * 50 + 1) {
            rp_buf bytes = some_bytes(sizes[i]), packed = compress(&bytes), out;
            rp_error err = {0};

            rp_buf_init(&out, rp_allocator_default());
            assert_ok_err(read_all(rp_allocator_default(), packed.data, packed.size, 0, NULL,
                                   step, &out, &err),
                          &err);
            assert_int_equal(out.size, bytes.size);
            assert_memory_equal(out.data, bytes.data, bytes.size);
            rp_buf_deinit(&out);
            rp_buf_deinit(&packed);
            rp_buf_deinit(&bytes);
        }
}

static bool begins_with_plain(const uint8_t *first, size_t size)
{
    return size >= 5 && memcmp(first, "plain", 5) == 0;
}

static void uncompressed_files_are_read_as_they_are(void **state)
{
    static const char text[] = "plain text, with nothing to inflate";
    rp_error err = {0};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    assert_ok(read_all(rp_allocator_default(), text, sizeof text, 0, begins_with_plain, 8, &out,
                       &err));
    assert_int_equal(out.size, sizeof text);
    assert_string_equal(out.data, text);
    rp_buf_clear(&out);
    assert_fails(read_all(rp_allocator_default(), text, sizeof text, 0, NULL, 8, &out, &err),
                 RP_CORRUPT, &err, "no zlib stream");
    rp_buf_deinit(&out);
}

static void an_empty_file_is_an_empty_stream(void **state)
{
    rp_error err = {0};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    assert_ok(read_all(rp_allocator_default(), "", 0, 0, begins_with_plain, 8, &out, &err));
    assert_int_equal(out.size, 0);
    rp_buf_deinit(&out);
}

static void a_truncated_stream_is_damaged(void **state)
{
    rp_buf bytes = some_bytes(500), packed = compress(&bytes), out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (size_t size = 1; size < packed.size; size++) {
        rp_error err = {0};

        rp_buf_clear(&out);
        assert_fails(
            read_all(rp_allocator_default(), packed.data, size, 0, NULL, 64, &out, &err),
            RP_CORRUPT, &err, "is cut off");
    }
    rp_buf_deinit(&out);
    rp_buf_deinit(&packed);
    rp_buf_deinit(&bytes);
}

static void trailing_bytes_are_damage(void **state)
{
    rp_buf bytes = some_bytes(500), packed = compress(&bytes), out;
    rp_error err = {0};

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_buf_append(&packed, "x", 1);
    assert_fails(
        read_all(rp_allocator_default(), packed.data, packed.size, 0, NULL, 64, &out, &err),
        RP_CORRUPT, &err, "follow the end");
    rp_buf_deinit(&out);
    rp_buf_deinit(&packed);
    rp_buf_deinit(&bytes);
}

static void a_decompression_bomb_is_stopped_at_the_limit(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_buf zeroes, packed, out;
    rp_error err = {0};

    (void)state;
    rp_buf_init(&zeroes, rp_allocator_default());
    assert_non_null(rp_buf_reserve(&zeroes, 4 << 20));
    memset(zeroes.data, 0, 4 << 20);
    zeroes.size = 4 << 20;
    packed = compress(&zeroes);
    assert_true(packed.size < 8192);

    rp_buf_init(&out, rp_allocator_default());
    assert_fails(read_all(&alloc, packed.data, packed.size, 100000, NULL, 4096, &out, &err),
                 RP_NO_RESOURCE, &err, "more than the 100000 bytes allowed");
    assert_true(out.size <= 100000);
    assert_true(o.peak_bytes < 200000);
    assert_int_equal(o.live, 0);
    rp_buf_deinit(&out);
    rp_buf_deinit(&packed);
    rp_buf_deinit(&zeroes);
}

static rp_status there_and_back(const rp_allocator *alloc)
{
    rp_buf bytes = some_bytes(1000), packed, out;
    rp_error err = {0};
    rp_status st;

    rp_buf_init(&packed, rp_allocator_default());
    rp_buf_init(&out, rp_allocator_default());
    st = compress_into(alloc, &bytes, &packed);
    if (st == RP_OK) st = read_all(alloc, packed.data, packed.size, 0, NULL, 64, &out, &err);
    rp_buf_deinit(&out);
    rp_buf_deinit(&packed);
    rp_buf_deinit(&bytes);
    return st;
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(there_and_back);
}

RP_TESTS(zlib_stream)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_bytes_are_read_back),
        cmocka_unit_test(uncompressed_files_are_read_as_they_are),
        cmocka_unit_test(an_empty_file_is_an_empty_stream),
        cmocka_unit_test(a_truncated_stream_is_damaged),
        cmocka_unit_test(trailing_bytes_are_damage),
        cmocka_unit_test(a_decompression_bomb_is_stopped_at_the_limit),
        cmocka_unit_test(no_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
