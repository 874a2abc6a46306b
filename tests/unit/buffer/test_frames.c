/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer/frames.h"
#include "support/unit.h"
#include "util/rng.h"

enum { SIZE = 7056 };

static void fill(char *frame, size_t size, uint64_t seed)
{
    rp_rng rng;

    rp_rng_init(&rng, seed);
    for (size_t i = 0; i < size; i++) frame[i] = (char)rp_rng_next(&rng);
}

static void equal_frames_are_kept_once(void **state)
{
    (void)state;
    char frame[SIZE], out[SIZE];
    uint32_t first, again, other;
    rp_frames f;

    assert_ok(rp_frames_init(&f, rp_allocator_default(), SIZE, 100));
    fill(frame, SIZE, 1);
    assert_ok(rp_frames_put(&f, frame, &first));
    assert_ok(rp_frames_put(&f, frame, &again));
    frame[SIZE - 1] ^= 1;
    assert_ok(rp_frames_put(&f, frame, &other));

    assert_int_equal(first, again);
    assert_int_not_equal(first, other);
    rp_frames_copy(&f, other, out);
    assert_memory_equal(out, frame, SIZE);
    assert_true(rp_frames_check(&f, first) && rp_frames_check(&f, other));
    rp_frames_deinit(&f);
}

static void equal_pieces_are_kept_once(void **state)
{
    (void)state;
    char frame[SIZE];
    uint32_t slot;
    rp_frames f;

    assert_ok(rp_frames_init(&f, rp_allocator_default(), SIZE, 100));
    fill(frame, SIZE, 1);
    assert_ok(rp_frames_put(&f, frame, &slot));
    assert_int_equal(f.pieces.next, f.piece_count);
    frame[0] ^= 1; /* the first piece only */
    assert_ok(rp_frames_put(&f, frame, &slot));

    assert_int_equal(f.pieces.next, f.piece_count + 1);
    rp_frames_deinit(&f);
}

/* Frames that change a little each time, and every size of frame that ends unevenly. */
static void kept_frames_round_trip_for_every_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 336, 577, 864, 865, 7056, 100801};

    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t size = sizes[s], kept = 50;
        size_t rounds = (size > 10000 ? 3000 : 12000) / rp_test_step(1, 8);
        char *frame = calloc(1, size), *ring = calloc(kept, size), *out = malloc(size);
        uint32_t slots[50];
        uint64_t marks[50];
        rp_rng rng;
        rp_frames f;
        assert_true(frame != NULL && ring != NULL && out != NULL);
        rp_rng_init(&rng, s);
        assert_ok(rp_frames_init(&f, rp_allocator_default(), size, kept + 1));

        for (size_t i = 0; i < rounds; i++) {
            size_t place = i % kept;
            frame[rp_rng_below(&rng, size)] = (char)rp_rng_next(&rng);
            marks[place] = rp_frames_mark(&f);
            assert_ok(rp_frames_put(&f, frame, &slots[place]));
            memcpy(ring + place * size, frame, size);
            if (i + 1 < kept) continue;
            rp_frames_release(&f, marks[(i + 1) % kept]);
            for (size_t k = 0; k < kept; k += 1 + rp_rng_below(&rng, kept)) {
                assert_true(rp_frames_check(&f, slots[k]));
                rp_frames_copy(&f, slots[k], out);
                assert_memory_equal(out, ring + k * size, size);
            }
        }
        assert_true(f.frames.next - f.frames.tail <= kept + f.frames.window);
        rp_frames_deinit(&f);
        free(frame);
        free(ring);
        free(out);
    }
}

static void undone_frames_are_not_matched_later(void **state)
{
    (void)state;
    char a[SIZE], b[SIZE], out[SIZE];
    uint32_t slot;
    rp_frames f;
    fill(a, SIZE, 1);
    fill(b, SIZE, 2);
    assert_ok(rp_frames_init(&f, rp_allocator_default(), SIZE, 100));

    assert_ok(rp_frames_put(&f, a, &slot));
    rp_frames_undo(&f, 0, 0);
    assert_ok(rp_frames_put(&f, b, &slot)); /* takes the place of the other */
    assert_ok(rp_frames_put(&f, a, &slot)); /* its hash is known, for what is b now */

    rp_frames_copy(&f, slot, out);
    assert_memory_equal(out, a, SIZE);
    rp_frames_deinit(&f);
}

static void cleared_frames_are_not_found(void **state)
{
    (void)state;
    char a[SIZE], out[SIZE];
    uint32_t slot;
    rp_frames f;
    fill(a, SIZE, 1);
    assert_ok(rp_frames_init(&f, rp_allocator_default(), SIZE, 100));

    assert_ok(rp_frames_put(&f, a, &slot));
    rp_frames_clear(&f);
    assert_false(rp_frames_check(&f, slot));
    assert_ok(rp_frames_put(&f, a, &slot));

    assert_true(rp_frames_check(&f, slot));
    rp_frames_copy(&f, slot, out);
    assert_memory_equal(out, a, SIZE);
    rp_frames_deinit(&f);
}

static rp_status put_some(const rp_allocator *alloc)
{
    static char frame[SIZE];
    rp_frames f;
    rp_status st = rp_frames_init(&f, alloc, SIZE, 2000);

    if (st != RP_OK) return st;
    for (uint64_t i = 0; i < 1500 && st == RP_OK; i++) {
        uint32_t slot;
        memcpy(frame, &i, sizeof i);
        memcpy(frame + 3500, &i, sizeof i);
        st = rp_frames_put(&f, frame, &slot);
        if (st == RP_OK) assert_true(rp_frames_check(&f, slot));
    }
    rp_frames_deinit(&f);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(put_some);
}

RP_TESTS(frames)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_frames_are_kept_once),
        cmocka_unit_test(equal_pieces_are_kept_once),
        cmocka_unit_test(kept_frames_round_trip_for_every_size),
        cmocka_unit_test(undone_frames_are_not_matched_later),
        cmocka_unit_test(cleared_frames_are_not_found),
        cmocka_unit_test(out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
