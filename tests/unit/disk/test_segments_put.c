/* SPDX-License-Identifier: Apache-2.0 */
/* Putting many chunks under one lock. test_segments_trouble.c does so on disks that fail. */
#include "support/segments_rig.h"

enum { MANY = 256 };

static void chunks_put_together_are_written_once_in_their_order(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *a = rp_rig_chunk(1, 100), *b = rp_rig_chunk(2, 500), *c = rp_rig_chunk(3, 50);
    rp_chunk *chunks[] = {a, b, a, c, c};
    rp_disk_location first, of_a, of_b, of_c;
    uint64_t bytes = 0;

    (void)state;
    assert_ok(rp_segments_put_chunk(rig.segments, b, &first));
    assert_ok(rp_segments_put_chunks(rig.segments, chunks, COUNT_OF(chunks), &bytes));
    assert_int_equal(bytes, 2 * 32 + a->wire_bytes + c->wire_bytes);
    assert_int_equal(rp_segments_queued(rig.segments), bytes + 32 + b->wire_bytes);
    assert_true(rp_segments_locate(rig.segments, a, &of_a));
    assert_true(rp_segments_locate(rig.segments, b, &of_b));
    assert_true(rp_segments_locate(rig.segments, c, &of_c));
    assert_int_equal(of_b.segment, first.segment);
    assert_int_equal(of_b.offset, first.offset);
    assert_int_equal(of_a.offset, of_b.offset + 32 + b->wire_bytes);
    assert_int_equal(of_c.offset, of_a.offset + 32 + a->wire_bytes);
    assert_int_equal(rp_refcount_get(&a->refs), 2);
    assert_ok(rp_segments_put_chunks(rig.segments, chunks, COUNT_OF(chunks), &bytes));
    assert_int_equal(bytes, 0);
    assert_ok(rp_segments_sync(rig.segments, NULL));
    rp_rig_check(&rig);
    assert_true(rp_segments_has_stored(rig.segments, a));
    assert_int_equal(rp_refcount_get(&a->refs), 1);
    assert_ok(rp_rig_compare(rig.segments, &of_a, a, NULL));
    assert_ok(rp_rig_compare(rig.segments, &of_c, c, NULL));
    for (size_t i = 0; i < 3; i++) rp_chunk_unref((rp_chunk *[]){a, b, c}[i]);
    rp_rig_close(&rig);
}

static void many_chunks_are_put_together(void **state)
{
    rp_rig rig = rp_rig_open(rp_sim_new(), 1);
    rp_chunk *chunks[MANY];
    rp_disk_location location;
    uint64_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(chunks); i++) chunks[i] = rp_rig_chunk(i, 100 + i % 300);
    assert_ok(rp_segments_put_chunks(rig.segments, chunks, COUNT_OF(chunks), &bytes));
    assert_int_equal(rp_segments_queued(rig.segments), bytes);
    assert_true(bytes > 4 * RP_RIG_SEGMENT_BYTES); /* several segments */
    assert_ok(rp_segments_sync(rig.segments, NULL));
    rp_rig_check(&rig);
    for (size_t i = 0; i < COUNT_OF(chunks); i++) {
        assert_true(rp_segments_locate(rig.segments, chunks[i], &location));
        assert_ok(rp_rig_compare(rig.segments, &location, chunks[i], NULL));
        rp_chunk_unref(chunks[i]);
    }
    assert_ok(rp_segments_put_chunks(rig.segments, chunks, 0, &bytes));
    assert_int_equal(bytes, 0);
    rp_rig_close(&rig);
}

RP_TESTS(segments_put)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_put_together_are_written_once_in_their_order),
        cmocka_unit_test(many_chunks_are_put_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
