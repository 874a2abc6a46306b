/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/chunk_rekey.h"

#include "chunk/chunk.h"
#include "chunk/chunk_wire.h"
#include "chunk/protobuf.h"
#include "support/chunks.h"

enum { ROWS = 7, COLS = 5 };

static rp_chunk *rekeyed(const rp_chunk *chunk, uint64_t key)
{
    rp_chunk *copy = NULL;
    rp_error err = {0};

    assert_ok_err(rp_chunk_rekey(rp_allocator_default(), chunk, key, &copy, &err), &err);
    assert_int_equal(copy->origin.key, key);
    return copy;
}

static void rekeying_forth_and_back_gives_the_same_bytes(void **state)
{
    static const uint64_t keys[] = {0, 1, 127, 128, 1 << 20, UINT64_MAX};

    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *chunk = rp_test_ints(300, (rp_codec)codec, ROWS, COLS);

        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            rp_chunk *other = rekeyed(chunk, keys[i]), *back = rekeyed(other, 300);

            assert_int_equal(back->wire_bytes, chunk->wire_bytes);
            assert_memory_equal(back->wire, chunk->wire, chunk->wire_bytes);
            assert_int_equal(other->origin.episode, chunk->origin.episode);
            assert_int_equal(other->origin.last_step, chunk->origin.last_step);
            assert_int_equal(other->columns[0].stored_bytes, chunk->columns[0].stored_bytes);
            rp_chunk_unref(other);
            rp_chunk_unref(back);
        }
        rp_chunk_unref(chunk);
    }
}

/* Writers may put the fields of a message in any order. */
static void a_key_at_the_end_is_replaced(void **state)
{
    rp_chunk *chunk = rp_test_ints(0, RP_CODEC_SNAPPY, ROWS, COLS), *late = NULL, *other;
    uint8_t message[4096];
    size_t size = chunk->wire_bytes;

    (void)state;
    assert_true(size + 16 < sizeof message);
    memcpy(message, chunk->wire, size);
    size = (size_t)(rp_pb_put_varint_field(message + size, RP_PB_CHUNK_KEY, 9) - message);
    assert_ok(rp_chunk_parse(rp_allocator_default(), message, size, NULL, &late, NULL));
    assert_int_equal(late->origin.key, 9);
    other = rekeyed(late, 10);
    assert_int_equal(other->wire_bytes, late->wire_bytes);
    rp_chunk_unref(chunk);
    rp_chunk_unref(late);
    rp_chunk_unref(other);
}

static rp_status scenario(const rp_allocator *alloc)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, ROWS, COLS), *other = NULL;
    rp_status st = rp_chunk_rekey(alloc, chunk, 2, &other, NULL);

    rp_chunk_unref(other);
    rp_chunk_unref(chunk);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(scenario);
}

RP_TESTS(chunk_rekey)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rekeying_forth_and_back_gives_the_same_bytes),
        cmocka_unit_test(a_key_at_the_end_is_replaced),
        cmocka_unit_test(out_of_memory_is_a_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
