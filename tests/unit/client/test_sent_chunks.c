/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/sent_chunks.h"

#include "chunk/chunk.h"
#include "support/chunks.h"

/* A trajectory of one column, of the only row of each chunk. */
static rp_trajectory *trajectory_of(rp_chunk *const *chunks, size_t count)
{
    rp_chunk_slice slices[8];
    rp_slices column = {slices, count, false};
    rp_trajectory *out = NULL;

    assert_true(count <= COUNT_OF(slices));
    for (size_t i = 0; i < count; i++) slices[i] = (rp_chunk_slice){chunks[i], 0, 0, 1};
    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &out, NULL));
    return out;
}

/* Sends an item; returns how many chunks had to go with it. */
static size_t use(rp_sent_chunks *sent, rp_trajectory *t)
{
    size_t missing = 0;

    assert_true(rp_sent_chunks_reserve(sent, t->chunk_count));
    for (size_t i = 0; i < t->chunk_count; i++)
        if (!rp_sent_chunks_use(sent, t->chunks[i], rp_refcount_is_one(&t->refs))) missing++;
    return missing;
}

static void confirm(rp_sent_chunks *sent, rp_trajectory *t)
{
    rp_sent_chunks_on_confirmed(sent, t);
    rp_trajectory_unref(t);
}

static size_t kept(rp_sent_chunks *sent)
{
    const uint64_t *keys;
    size_t count = rp_sent_chunks_keep(sent, &keys);

    for (size_t i = 0; i < count; i++)
        assert_int_equal(keys[i], sent->entries[i].chunk->origin.key);
    return count;
}

static void a_chunk_of_a_single_item_is_not_recorded(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 1, 1);
    rp_trajectory *t = trajectory_of(&chunk, 1);
    rp_sent_chunks sent;

    (void)state;
    rp_chunk_unref(chunk);
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    assert_int_equal(use(&sent, t), 1);
    assert_int_equal(sent.count, 0);
    assert_int_equal(kept(&sent), 0);
    confirm(&sent, t);
    rp_sent_chunks_deinit(&sent);
}

/* A writer's history slides over ten chunks, an item of three each time: a chunk goes out once,
 * and is kept exactly while the history has it, whether items are confirmed or not. */
static void overlapping_items(void **state, bool confirms)
{
    rp_trajectory *waiting[16];
    rp_chunk *history[3] = {0};
    rp_sent_chunks sent;

    (void)state;
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    for (uint64_t key = 0; key < 16; key++) {
        rp_chunk_unref(history[0]);
        history[0] = history[1];
        history[1] = history[2];
        history[2] = rp_test_ints(key, RP_CODEC_NONE, 1, 1);
        if (history[0] == NULL) continue;
        waiting[key] = trajectory_of(history, 3);
        assert_int_equal(use(&sent, waiting[key]), key == 2 ? 3 : 1);
        assert_int_equal(kept(&sent), 3);
        if (confirms) confirm(&sent, waiting[key]);
        assert_int_equal(kept(&sent), 3);
    }
    for (size_t i = 0; i < 3; i++) rp_chunk_unref(history[i]);
    assert_int_equal(kept(&sent), 0);
    for (size_t i = 2; i < 16 && !confirms; i++) confirm(&sent, waiting[i]);
    rp_sent_chunks_deinit(&sent);
}

static void overlapping_items_confirmed_at_once(void **state)
{
    overlapping_items(state, true);
}

static void overlapping_items_confirmed_late(void **state)
{
    overlapping_items(state, false);
}

/* An item that waits to be sent keeps what it needs. */
static void an_item_that_waits_keeps_its_chunks(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 1, 1);
    rp_trajectory *first = trajectory_of(&chunk, 1), *second = trajectory_of(&chunk, 1);
    rp_sent_chunks sent;

    (void)state;
    rp_chunk_unref(chunk);
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    assert_int_equal(use(&sent, first), 1);
    assert_int_equal(kept(&sent), 1);
    confirm(&sent, first);
    assert_int_equal(kept(&sent), 1);
    assert_int_equal(use(&sent, second), 0);
    assert_int_equal(kept(&sent), 0);
    assert_false(rp_sent_chunks_has(&sent, chunk));
    confirm(&sent, second);
    rp_sent_chunks_deinit(&sent);
}

/* Two items with one trajectory between them: bytes may be wasted, but nothing is kept for
 * ever and no count runs below 0. */
static void one_trajectory_sent_twice(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 1, 1);
    rp_trajectory *t = trajectory_of(&chunk, 1);
    rp_sent_chunks sent;

    (void)state;
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    (void)rp_trajectory_ref(t);
    assert_int_equal(use(&sent, t), 1);
    assert_int_equal(kept(&sent), 1); /* we hold it */
    assert_int_equal(use(&sent, t), 0);
    assert_int_equal(kept(&sent), 0); /* counted twice */
    assert_int_equal(use(&sent, t), 1);
    confirm(&sent, t);
    confirm(&sent, t);
    assert_int_equal(kept(&sent), 1);
    rp_chunk_unref(chunk);
    assert_int_equal(kept(&sent), 0);
    rp_sent_chunks_deinit(&sent);
}

static void the_oldest_chunks_are_dropped_over_the_bound(void **state)
{
    enum { BYTES = 5 << 20, COUNT = 8 };
    rp_spec spec = {"x", RP_UINT8, SHAPE(BYTES)};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    uint8_t *data = calloc(1, BYTES);
    rp_chunk *chunks[COUNT];
    rp_sent_chunks sent;
    rp_trajectory *t;

    (void)state;
    assert_non_null(data);
    for (uint64_t i = 0; i < COUNT; i++) chunks[i] = rp_test_chunk(i, &options, &spec, 1, data);
    free(data);
    t = trajectory_of(chunks, COUNT);
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    assert_int_equal(use(&sent, t), COUNT);
    assert_int_equal(kept(&sent), 6);
    assert_false(rp_sent_chunks_has(&sent, chunks[0]));
    assert_false(rp_sent_chunks_has(&sent, chunks[1]));
    assert_true(rp_sent_chunks_has(&sent, chunks[2]));
    assert_true(sent.bytes <= RP_KEPT_BYTES);
    confirm(&sent, t);
    for (size_t i = 0; i < COUNT; i++) rp_chunk_unref(chunks[i]);
    rp_sent_chunks_deinit(&sent);
}

/* Against the plain rule: kept is what the history has, and each chunk is found or not. */
static void random_histories(void **state)
{
    enum { WINDOW = 40, ITEMS = 3000 };
    rp_chunk *window[WINDOW] = {0};
    rp_trajectory *waiting[64] = {0};
    rp_sent_chunks sent;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 5);
    rp_sent_chunks_init(&sent, rp_allocator_default(), 3);
    for (uint64_t key = 0; key < ITEMS; key++) {
        size_t at = rp_rng_below(&rng, WINDOW), count = 1 + rp_rng_below(&rng, 8);
        size_t place = rp_rng_below(&rng, COUNT_OF(waiting));
        rp_chunk *chosen[8];

        rp_chunk_unref(window[at]);
        window[at] = rp_test_ints(key, RP_CODEC_NONE, 1, 1);
        if (key < WINDOW * 10) continue;
        for (size_t i = 0; i < count; i++) {
            chosen[i] = window[(at + i) % WINDOW];
            assert_non_null(chosen[i]);
        }
        if (waiting[place] != NULL) confirm(&sent, waiting[place]);
        waiting[place] = trajectory_of(chosen, count);
        (void)use(&sent, waiting[place]);
        (void)kept(&sent);
        for (size_t i = 0; i < count; i++) assert_true(rp_sent_chunks_has(&sent, chosen[i]));
        for (size_t i = 0; i < sent.count; i++) {
            size_t w = 0;
            while (w < WINDOW && window[w] != sent.entries[i].chunk) w++;
            assert_true(w < WINDOW);
        }
    }
    for (size_t i = 0; i < COUNT_OF(waiting); i++)
        if (waiting[i] != NULL) confirm(&sent, waiting[i]);
    for (size_t i = 0; i < WINDOW; i++) rp_chunk_unref(window[i]);
    assert_int_equal(kept(&sent), 0);
    rp_sent_chunks_deinit(&sent);
}

RP_TESTS(sent_chunks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_of_a_single_item_is_not_recorded),
        cmocka_unit_test(overlapping_items_confirmed_at_once),
        cmocka_unit_test(overlapping_items_confirmed_late),
        cmocka_unit_test(an_item_that_waits_keeps_its_chunks),
        cmocka_unit_test(one_trajectory_sent_twice),
        cmocka_unit_test(the_oldest_chunks_are_dropped_over_the_bound),
        cmocka_unit_test(random_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
