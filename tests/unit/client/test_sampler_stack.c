/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that are stacked as they arrive: their destination, their information, and the end of
 * the sequence. */
#include <math.h>
#include <unistd.h>

#include "chunk/trajectory.h"
#include "support/batch_bed.h"

enum { LARGE_BYTES = 8 * 4096 * 4, GROUP = (256 << 10) / LARGE_BYTES }; /* of add_large() */
static int32_t stacked[16 * 8 * 4096];

static int set_up_empty(void **state)
{
    memset(stacked, 0xee, sizeof stacked);
    return set_up(state);
}

static rp_status stack_at(size_t at, size_t size, rp_sample *samples, size_t *count)
{
    rp_stack_place places[2] = {{stacked + at * 8 * 4096, LARGE_BYTES}, {NULL, 0}};

    return rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, size}, count,
                            rp_wait_none(), &err);
}

/* The caller's places are filled and nothing is held; what was there when the wait ended is in
 * place as well. */
static void samples_are_stacked_as_they_come(void **state)
{
    rp_sample samples[16];
    size_t n;

    (void)state;
    add_large();
    open_sampler(NULL);
    for (int round = 0; round < 2; round++) {
        memset(stacked, 0xee, sizeof stacked);
        assert_int_equal(rp_test_give(&sources, 0, GROUP + 3), GROUP + 3);
        assert_fails(stack_at(0, 16, samples, &n), RP_DEADLINE, &err, "in time");
        assert_int_equal(n, GROUP + 3);
        expect_large(stacked, n);
        assert_int_equal(stacked[n * 8 * 4096], (int32_t)0xeeeeeeee);
        assert_int_equal(rp_test_give(&sources, 0, 16 - n), 16 - n);
        assert_ok_err(stack_at(GROUP + 3, 16 - n, samples + n, &n), &err);
        assert_int_equal(n, 16 - GROUP - 3);
        expect_large(stacked, 16);
        for (size_t i = 0; i < 16; i++) {
            assert_int_equal(samples[i].key, 16 * round + (int)i);
            assert_null(samples[i].trajectory);
            assert_true(rp_refcount_is_one(&items[i]->refs));
        }
    }
    assert_int_equal(stack_at(0, 1, samples, &n), RP_DEADLINE);
    assert_int_equal(n, 0);
}

static void weights_are_those_of_all_stacked_samples(void **state)
{
    rp_sampler_options o = {.beta = 1};
    rp_sample samples[16];
    size_t n;

    (void)state;
    add_large();
    open_sampler(&o);
    sources.all[0].probability = 0.5;
    assert_int_equal(rp_test_give(&sources, 0, 8), 8);
    sources.all[0].probability = 0.25;
    assert_int_equal(rp_test_give(&sources, 0, 8), 8);
    assert_ok_err(stack_at(0, 16, samples, &n), &err);
    for (size_t i = 0; i < 16; i++)
        assert_true(fabs(samples[i].weight - (i < 8 ? 0.5 : 1)) < 1e-9);
}

static void the_last_stack_may_be_smaller(void **state)
{
    rp_sampler_options o = {.max_samples = GROUP + 1};
    rp_sample samples[16];
    size_t n;

    (void)state;
    add_large();
    open_sampler(&o);
    assert_int_equal(rp_test_give(&sources, 0, 16), GROUP + 1);
    assert_ok_err(stack_at(0, 16, samples, &n), &err);
    assert_int_equal(n, GROUP + 1);
    expect_large(stacked, n);
    assert_fails(stack_at(0, 16, samples, &n), RP_PRECONDITION, &err, "over");
    assert_int_equal(n, 0);
}

/* An item that has no place is told of; those before its group are in theirs. */
static void items_must_fit_their_output(void **state)
{
    rp_sampler_options o = {.max_samples = 16};
    const rp_string word = {"ada", 3};
    rp_spec spec = {"s", RP_STRING, SCALAR};
    rp_stack_place places[2] = {{stacked, LARGE_BYTES}, {stacked, 404}};
    rp_chunk *chunk = rp_test_chunk(200, NULL, &spec, 1, &word);
    rp_sample samples[16];
    size_t n = 7;

    (void)state;
    add_large();
    rp_trajectory_unref(items[--item_count]);
    add_item(&chunk, 1, true);
    open_sampler(&o);
    assert_fails(stack_at(0, 0, samples, &n), RP_INVALID, &err, "1 .. 1048576 samples, got 0");
    assert_int_equal(n, 0);
    assert_fails(stack_at(0, (1 << 20) + 1, samples, &n), RP_INVALID, &err, "got 1048577");
    assert_int_equal(rp_test_give(&sources, 0, 16), 16);
    assert_fails(
        rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 1}, &n, rp_wait_none(), &err),
        RP_INVALID, &err, "item 0, column 1: 400 bytes but its place has 404");
    assert_int_equal(n, 0);
    places[0].item_bytes = SIZE_MAX;
    assert_fails(
        rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 2}, &n, rp_wait_none(), &err),
        RP_INVALID, &err, "too many");
    places[1].dst = NULL;
    assert_fails(
        rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 2}, &n, rp_wait_none(), &err),
        RP_INVALID, &err, "too many");
    assert_int_equal(n, 0);
    assert_fails(
        rp_sampler_stack(sampler, &(rp_stack){places, 0, samples, 2}, &n, rp_wait_none(), &err),
        RP_INVALID, &err, "no column has a place");
    assert_fails(stack_at(1, 15, samples, &n), RP_INVALID, &err,
                 "item 14: 1 column but there are places for 2");
    /* Those are not called the last, though the sampler is over. */
    assert_int_equal(n, 14 / GROUP * GROUP);
    for (size_t i = 1; i <= n; i++) assert_int_equal(stacked[i * 8 * 4096 + 7], 1000 * i + 7);
    rp_sampler_free(sampler);
    rp_test_sources_init(&sources, 1, bed.plain);
    sources.trajectories = &items[15];
    item_count = 1;
    open_sampler(NULL);
    item_count = 16;
    assert_int_equal(rp_test_give(&sources, 0, 1), 1);
    places[0] = (rp_stack_place){stacked, sizeof(rp_string)};
    assert_fails(
        rp_sampler_stack(sampler, &(rp_stack){places, 1, samples, 1}, &n, rp_wait_none(), &err),
        RP_INVALID, &err, "item 0, column 0: strings are not stacked as they come");
}

/* Bytes that look alike are not enough, whether they come together or not. */
static void items_must_look_like_the_first(void **state)
{
    static const float zeros[8 * 4096];
    rp_spec spec = {NULL, RP_FLOAT32, SHAPE(4096)}, wide = {NULL, RP_INT32, SHAPE(2 * 4096)};
    rp_stack_place place = {stacked, LARGE_BYTES};
    rp_sample samples[16];
    rp_chunk *chunk;
    size_t n;

    (void)state;
    for (uint64_t i = 0; i < GROUP; i++) add_ints(i, 8, 4096);
    chunk = rp_test_chunk(GROUP, NULL, &spec, 8, zeros);
    add_item(&chunk, 1, false);
    for (uint64_t i = 0; i < GROUP; i++) add_ints(i, 8, 4096);
    chunk = rp_test_chunk(GROUP, NULL, &wide, 4, zeros);
    add_item(&chunk, 1, false);
    open_sampler(NULL);
    assert_int_equal(rp_test_give(&sources, 0, 2 * GROUP + 2), 2 * GROUP + 2);
    assert_fails(rp_sampler_stack(sampler, &(rp_stack){&place, 1, samples, GROUP + 1}, &n,
                                  rp_wait_none(), &err),
                 RP_INVALID, &err, "item 2, column 0: dtype float but item 0 has int32");
    assert_int_equal(n, GROUP);
    assert_fails(rp_sampler_stack(sampler, &(rp_stack){&place, 1, samples, GROUP + 1}, &n,
                                  rp_wait_none(), &err),
                 RP_INVALID, &err, "item 2, column 0: shape");
    assert_int_equal(n, GROUP);
}

/* Without a place nothing is decoded, and what is told of samples is. */
static void all_columns_may_be_left_out(void **state)
{
    rp_stack_place places[2] = {{NULL, 0}, {NULL, 7}};
    rp_sample samples[16];
    size_t n;

    (void)state;
    add_large();
    open_sampler(NULL);
    assert_int_equal(rp_test_give(&sources, 0, 16), 16);
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 16}, &n,
                                   rp_wait_none(), &err),
                  &err);
    assert_int_equal(n, 16);
    assert_int_equal(samples[15].key, 15);
    assert_null(samples[15].trajectory);
}

static void an_item_may_be_larger_than_a_group(void **state)
{
    enum { COLS = 75 * 1024 };
    rp_stack_place place = {stacked, COLS * sizeof stacked[0]};
    rp_sample samples[3];
    size_t n;

    (void)state;
    assert_true(place.item_bytes > GROUP * LARGE_BYTES);
    for (uint64_t i = 0; i < 3; i++) add_ints(i, 1, COLS);
    open_sampler(NULL);
    assert_int_equal(rp_test_give(&sources, 0, 3), 3);
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){&place, 1, samples, 3}, &n,
                                   rp_wait_ms(5000), &err),
                  &err);
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < COLS; j++) assert_int_equal(stacked[i * COLS + j], 1000 * i + j);
}

static uint32_t least_held;

static void note_held(void)
{
    uint32_t held = rp_refcount_get(&items[0]->refs) - 1;

    if (held < least_held) least_held = held;
}

/* However little of them is stacked: they may have much that is left out. */
static void few_samples_are_held_at_a_time(void **state)
{
    enum { SIZE = 600, HELD = 256 };
    static rp_sample samples[SIZE];
    rp_sampler_options o = {.max_in_flight = SIZE};
    rp_stack_place place = {NULL, 0};
    size_t given = 0, n;

    (void)state;
    add_ints(1, 1, 1);
    open_sampler(&o);
    while (given < SIZE) given += rp_test_give(&sources, 0, SIZE - given);
    least_held = UINT32_MAX;
    sources.all[0].on_want = note_held;
    assert_ok_err(rp_sampler_stack(sampler, &(rp_stack){&place, 1, samples, SIZE}, &n,
                                   rp_wait_none(), &err),
                  &err);
    assert_int_equal(n, SIZE);
    assert_true(least_held <= SIZE - HELD);
    sources.all[0].on_want = NULL;
}

typedef struct stacker {
    pthread_t thread;
    rp_status status;
    size_t count;
} stacker;

static void *stack_for_ever(void *arg)
{
    stacker *t = arg;
    rp_stack_place places[2] = {{stacked, LARGE_BYTES}, {NULL, 0}};
    rp_sample samples[16];

    t->status = rp_sampler_stack(sampler, &(rp_stack){places, 2, samples, 16}, &t->count,
                                 rp_wait_forever(), NULL);
    return NULL;
}

/* Freeing it ends the wait with what is in place, and waits for whoever is still in there. */
static void a_sampler_may_be_freed_meanwhile(void **state)
{
    (void)state;
    add_large();
    for (int i = 0; i < 20; i++) {
        stacker t = {.count = 99};

        rp_test_sources_init(&sources, 1, bed.plain);
        sources.trajectories = items;
        open_sampler(NULL);
        assert_int_equal(pthread_create(&t.thread, NULL, stack_for_ever, &t), 0);
        rp_test_await_line(sampler, 1);
        assert_int_equal(rp_test_give(&sources, 0, GROUP + 1), GROUP + 1);
        (void)usleep((useconds_t)(i * 50));
        rp_sampler_free(sampler);
        sampler = NULL;
        assert_int_equal(pthread_join(t.thread, NULL), 0);
        assert_int_equal(t.status, RP_CANCELLED);
        assert_true(t.count <= GROUP + 1);
        expect_large(stacked, t.count);
    }
}

static rp_status stack_large(const rp_allocator *alloc)
{
    rp_sampler_options o = {.table = "t", .rate_limiter_timeout_ms = -1};
    rp_stack_place places[2] = {{stacked, LARGE_BYTES}, {NULL, 0}};
    rp_sampler_feed feed;
    rp_sample samples[16];
    rp_sampler *s = NULL;
    size_t n = 0;
    rp_status st;

    rp_test_sources_init(&sources, 1, bed.plain);
    sources.trajectories = items;
    sources.trajectory_count = item_count;
    feed = rp_test_sources_feed(&sources, 5);
    memset(stacked, 0xee, sizeof stacked);
    st = rp_sampler_open(alloc, runtime, &feed, &o, &s, &err);
    if (st != RP_OK) return st;
    (void)rp_test_give(&sources, 0, 16);
    st = rp_sampler_stack(s, &(rp_stack){places, 2, samples, 16}, &n, rp_wait_none(), &err);
    expect_large(stacked, n);
    rp_sampler_free(s);
    for (int i = 0; i < 10000 && ((const rp_test_oom *)alloc->ctx)->live > 0; i++)
        (void)usleep(1000);
    return st;
}

static void stacking_survives_a_lack_of_memory(void **state)
{
    (void)state;
    add_large();
    rp_test_survives_oom(stack_large);
}

RP_TESTS(sampler_stack)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up_empty, tear_down)
        T(samples_are_stacked_as_they_come),   T(weights_are_those_of_all_stacked_samples),
        T(the_last_stack_may_be_smaller),      T(items_must_fit_their_output),
        T(items_must_look_like_the_first),     T(all_columns_may_be_left_out),
        T(an_item_may_be_larger_than_a_group), T(few_samples_are_held_at_a_time),
        T(a_sampler_may_be_freed_meanwhile),   T(stacking_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
