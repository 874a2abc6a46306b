/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a client reads in the memory of a server of this host, through the public API.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "reprise/sampler.h"
#include "server/core/server_state.h"
#include "support/live_server.h"

enum { LARGE = 100000, SMALL = 100 };

static rp_test_live live;
static rp_client *client;
static rp_error err;

static void start(const rp_server_options *options, bool shared_memory_off)
{
    const rp_client_options own = {.shared_memory_off = shared_memory_off};
    char address[112];

    rp_test_live_start(&live, options);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    assert_ok_err(rp_client_new(address, &own, &client, &err), &err);
}

static void stop(void)
{
    rp_client_free(client);
    client = NULL;
    rp_test_live_stop(&live);
}

static int set_up(void **state)
{
    (void)state;
    start(NULL, false);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stop();
    return 0;
}

/* Items whose bytes are the low byte of their key, inserted by somebody else. */
static void insert(uint64_t first, size_t count, size_t bytes)
{
    rp_test_client *other = rp_test_live_connect(&live);

    assert_non_null(other);
    rp_test_insert_items(other, "replay", first, count, bytes);
    rp_test_client_free(other);
}

static rp_sampler *sample(size_t in_flight, size_t streams)
{
    const rp_sampler_options options = {.table = "replay",
                                        .max_in_flight = in_flight,
                                        .streams = streams,
                                        .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler;

    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    return sampler;
}

static rp_batch *take(rp_sampler *sampler, size_t size)
{
    rp_batch *batch;

    assert_ok_err(rp_sampler_batch(sampler, size, RP_RAGGED_OFFSETS, true, rp_wait_ms(20000),
                                   &batch, &err),
                  &err);
    assert_int_equal(rp_batch_size(batch), size);
    return batch;
}

/* Every sample must be what was inserted under its key: rows of one byte value each. */
static void expect_right(rp_batch *batch)
{
    const rp_sample *samples = rp_batch_samples(batch);
    rp_decoder *decoder;
    uint8_t *rows = malloc(LARGE);

    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    for (size_t i = 0; i < rp_batch_size(batch); i++) {
        rp_slices slices = rp_trajectory_slices(samples[i].trajectory, 0);
        size_t bytes;

        assert_int_equal(slices.slice_count, 1);
        bytes = rp_chunk_get_column(slices.slices[0].chunk, 0)->raw_bytes;
        assert_true(bytes <= LARGE);
        assert_ok_err(rp_decoder_rows(decoder, slices.slices[0].chunk, (rp_row_range){0, 0, 1},
                                      rows, bytes, &err),
                      &err);
        if (!rp_test_is_all(rows, (uint8_t)samples[i].key, bytes)) fail_msg("sample %zu", i);
    }
    rp_decoder_free(decoder);
    free(rows);
}

static void expect_and_free(rp_batch *batch)
{
    expect_right(batch);
    rp_batch_free(batch);
}

static uint64_t held_bytes(void)
{
    return rp_counter_get(&rp_metrics_shared(live.server->metrics)->shared_held_bytes);
}

static rp_loop_metrics all;

/* A number over all loops. */
#define SUM(field) (rp_metrics_sum(live.server->metrics, &all), rp_counter_get(&all.field))

/* Of the chunks in it: samples that came together share them. */
static uint64_t bytes_of(const rp_batch *batch)
{
    const rp_sample *samples = rp_batch_samples(batch);
    uint64_t bytes = 0;

    for (size_t i = 0; i < rp_batch_size(batch); i++) {
        size_t j = 0;
        while (samples[j].trajectory->chunks[0] != samples[i].trajectory->chunks[0]) j++;
        if (j == i) bytes += samples[i].trajectory->chunks[0]->wire_bytes;
    }
    return bytes;
}

static void await_held(uint64_t bytes)
{
    for (int i = 0; i < 20000 && held_bytes() != bytes; i++) (void)usleep(1000);
    assert_int_equal(held_bytes(), bytes);
}

static uint64_t lease_count(void)
{
    return rp_counter_get(&rp_metrics_shared(live.server->metrics)->leases);
}

/* A lease is counted out a moment after the last of what it held. */
static void await_leases(uint64_t count)
{
    for (int i = 0; i < 20000 && lease_count() != count; i++) (void)usleep(1000);
    assert_int_equal(lease_count(), count);
}

static size_t arena_bytes(void)
{
    assert_ok_err(rp_shared_arena_check(live.server->arena, &err), &err);
    return rp_shared_arena_look(live.server->arena).used_bytes;
}

static void await_empty_arena(void)
{
    for (int i = 0; i < 20000 && arena_bytes() != 0; i++) (void)usleep(1000);
    assert_int_equal(arena_bytes(), 0);
}

static void large_chunks_are_read_in_place_and_small_ones_are_sent(void **state)
{
    (void)state;
    rp_sampler *sampler;
    const size_t batches = rp_test_length(10, 4);
    uint64_t written, shared;

    insert(1, 20, LARGE);
    written = SUM(bytes_written);
    sampler = sample(64, 1);
    for (size_t i = 0; i < batches; i++) expect_and_free(take(sampler, 50));
    assert_true(SUM(bytes_written) - written < 2 * LARGE);
    assert_int_equal(SUM(shared_refused_items),
                     0); /* the server refuses holds to a call that ends */
    rp_sampler_free(sampler);
    await_held(0);
    shared = SUM(shared_items);
    assert_true(shared >= 50 * batches);
    assert_ok_err(rp_client_reset(client, "replay", rp_wait_ms(20000), &err), &err);
    insert(101, 20, SMALL);
    sampler = sample(64, 1);
    expect_and_free(take(sampler, 50));
    rp_sampler_free(sampler);
    assert_int_equal(SUM(shared_items), shared);
}

static void several_streams_and_decoders_share_a_lease(void **state)
{
    (void)state;
    rp_sampler *samplers[2];

    insert(1, 30, LARGE);
    for (size_t i = 0; i < 2; i++) samplers[i] = sample(20, 3);
    for (size_t i = 0; i < rp_test_length(30, 10); i++) {
        rp_batch *batch = take(samplers[i % 2], 16);
        size_t bytes = 16 * LARGE;
        uint8_t *rows = malloc(bytes);

        assert_ok_err(rp_batch_decode(batch, (void *const *)&(void *){rows}, &bytes, &err),
                      &err);
        for (size_t j = 0; j < 16; j++) {
            assert_int_equal(rows[j * LARGE], (uint8_t)rp_batch_samples(batch)[j].key);
            assert_int_equal(rows[(j + 1) * LARGE - 1],
                             (uint8_t)rp_batch_samples(batch)[j].key);
        }
        rp_batch_free(batch);
        free(rows);
    }
    assert_int_equal(SUM(leases), 1);
    for (size_t i = 0; i < 2; i++) rp_sampler_free(samplers[i]);
    await_held(0);
}

/* The arena gets new parts while samples are on their way. */
static void a_sampler_follows_an_arena_that_grows(void **state)
{
    (void)state;
    size_t parts = 0;
    rp_sampler *sampler;

    insert(1, 10, LARGE);
    sampler = sample(10, 2);
    expect_and_free(take(sampler, 10));
    for (uint64_t i = 0; i < rp_test_length(6, 4); i++) {
        insert(11 + 100 * i, 100, LARGE);
        for (size_t j = 0; j < rp_test_length(5, 1); j++)
            expect_and_free(take(sampler, rp_test_length(50, 25)));
    }
    parts = rp_shared_arena_parts(live.server->arena);
    assert_int_equal(SUM(shared_refused_items), 0); /* before the sampler ends, as above */
    rp_sampler_free(sampler);
    assert_true(parts >= 3);
    await_held(0);
}

static void samples_stay_valid_when_the_table_drops_them(void **state)
{
    (void)state;
    rp_sampler *sampler;
    rp_batch *batch;

    insert(1, 10, LARGE);
    sampler = sample(10, 1);
    batch = take(sampler, 10);
    rp_sampler_free(sampler); /* with what it had drawn ahead */
    assert_ok_err(rp_client_reset(client, "replay", rp_wait_ms(20000), &err), &err);
    for (uint64_t i = 0; i < 5; i++) { /* whoever could write there would */
        insert(101 + 20 * i, 20, LARGE);
        assert_ok_err(rp_client_reset(client, "replay", rp_wait_ms(20000), &err), &err);
    }
    assert_true(held_bytes() >= bytes_of(batch)); /* the rest may go with what follows */
    assert_true(arena_bytes() > 0);
    expect_right(batch);
    rp_batch_free(batch);
    await_held(0);
    await_empty_arena();
}

static void samples_outlive_their_client(void **state)
{
    (void)state;
    rp_sample samples[8];
    size_t count = 0, bytes;
    rp_sampler *sampler;
    const uint8_t *wire;

    insert(1, 8, LARGE);
    sampler = sample(8, 1);
    assert_ok_err(rp_sampler_next(sampler, samples, 8, &count, rp_wait_ms(20000), &err), &err);
    rp_sampler_free(sampler);
    rp_client_free(client);
    client = NULL;
    assert_true(held_bytes() >= LARGE);
    for (size_t i = 0; i < count; i++) {
        rp_slices slices = rp_trajectory_slices(samples[i].trajectory, 0);
        wire = rp_chunk_wire(slices.slices[0].chunk, &bytes);
        assert_int_equal(wire[bytes / 2], (uint8_t)samples[i].key);
    }
    rp_samples_release(samples, count);
    await_held(0);
    await_leases(0);
}

static void unseen_samples_of_a_sampler_are_released(void **state)
{
    (void)state;
    insert(1, 10, LARGE);
    for (int i = 0; i < 30; i++) { /* ended at any moment */
        rp_sampler *sampler = sample(100, 2);
        if (i % 3 != 0) rp_batch_free(take(sampler, (size_t)i));
        rp_sampler_free(sampler);
    }
    await_held(0);
    await_leases(1);
}

static void a_rate_limiter_timeout_keeps_samples_valid(void **state)
{
    (void)state;
    const rp_sampler_options options = {
        .table = "queue", .max_in_flight = 10, .rate_limiter_timeout_ms = 1500};
    rp_test_client *other = rp_test_live_connect(&live);
    rp_sample samples[4], none;
    size_t count = 0, n;
    rp_sampler *sampler;
    const uint8_t *wire;

    rp_test_insert_items(other, "queue", 1, 3, LARGE);
    rp_test_client_free(other);
    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    while (count < 3) {
        assert_ok_err(
            rp_sampler_next(sampler, samples + count, 4 - count, &n, rp_wait_ms(20000), &err),
            &err);
        count += n;
    }
    assert_int_equal(rp_sampler_next(sampler, &none, 1, &n, rp_wait_ms(20000), &err),
                     RP_DEADLINE);
    rp_sampler_free(sampler);
    assert_true(held_bytes() >= 3 * LARGE);
    insert(50, 10, LARGE);
    for (size_t i = 0; i < 3; i++) {
        rp_slices slices = rp_trajectory_slices(samples[i].trajectory, 0);
        wire = rp_chunk_wire(slices.slices[0].chunk, &n);
        assert_int_equal(wire[n / 2], (uint8_t)samples[i].key);
    }
    rp_samples_release(samples, 3);
    await_held(0);
}

static void chunks_over_the_limit_are_sent_inline(void **state)
{
    (void)state;
    const rp_server_options options = {.limits = {.shared_held_bytes = 5 * LARGE}};
    rp_sampler *sampler;
    rp_batch *batch;

    start(&options, false);
    insert(1, 10, LARGE);
    sampler = sample(30, 1);
    batch = take(sampler, 25); /* more than may be held at once */
    assert_true(held_bytes() <= 5 * LARGE);
    assert_true(SUM(shared_items) >= 4);
    assert_true(SUM(shared_refused_items) >= 20);
    expect_right(batch);
    rp_batch_free(batch);
    for (int i = 0; i < 20; i++) { /* and it goes on in place */
        batch = take(sampler, 3);
        expect_right(batch);
        rp_batch_free(batch);
    }
    assert_true(SUM(shared_items) >= 8);
    rp_sampler_free(sampler);
    await_held(0);
    stop();
}

static void sampling_works_without_shared_memory(void **state)
{
    (void)state;
    const rp_server_options off = {.shared_memory_off = true};

    for (int i = 0; i < 2; i++) { /* the server does not offer it, the client does not ask */
        rp_sampler *sampler;
        rp_batch *batch;

        start(i == 0 ? &off : NULL, i == 1);
        insert(1, 10, LARGE);
        sampler = sample(10, 1);
        batch = take(sampler, 20);
        expect_right(batch);
        rp_batch_free(batch);
        assert_int_equal(SUM(shared_items), 0);
        assert_int_equal(SUM(leases), 0);
        rp_sampler_free(sampler);
        stop();
    }
}

static void a_restarted_server_is_shared_with_again(void **state)
{
    (void)state;
    rp_sampler *sampler;
    rp_batch *before, *after = NULL;

    insert(1, 10, LARGE);
    sampler = sample(10, 1);
    before = take(sampler, 10);
    rp_test_live_end(&live);
    assert_ok_err(rp_test_live_try(&live, NULL), &live.err);
    rp_table *table = rp_test_table(live.store, "replay");
    assert_non_null(table);
    insert(101, 10, LARGE); /* into a new arena; the old chunks lie in the old one */
    for (int i = 0; i < 1000 && SUM(shared_items) == 0; i++) {
        rp_batch_free(after);
        after = take(sampler, 10);
        expect_right(after);
    }
    assert_true(SUM(shared_items) > 0);
    expect_right(before); /* of a server that is gone */
    rp_batch_free(before);
    rp_batch_free(after);
    rp_sampler_free(sampler);
    await_held(0);
}

/* A client in a process of its own, which was forked before there were any threads. */
typedef struct other_process {
    pid_t pid;
    int in[2], out[2];
} other_process;

static void run_other(const other_process *p)
{
    const rp_sampler_options options = {
        .table = "replay", .max_in_flight = 20, .rate_limiter_timeout_ms = -1};
    char address[112];
    rp_client *c;
    rp_sampler *s;
    rp_batch *batch;

    if (read(p->in[0], address, sizeof address) <= 0) _exit(1);
    if (rp_client_new(address, NULL, &c, &err) != RP_OK) _exit(2);
    if (rp_sampler_new(c, &options, &s, &err) != RP_OK) _exit(3);
    if (rp_sampler_batch(s, 15, RP_RAGGED_REFUSE, true, rp_wait_ms(20000), &batch, &err) !=
        RP_OK)
        _exit(4);
    if (write(p->out[1], "x", 1) != 1) _exit(5);
    for (;;) (void)pause();
}

static other_process fork_other(void)
{
    other_process p;

    assert_int_equal(pipe(p.in), 0);
    assert_int_equal(pipe(p.out), 0);
    p.pid = fork();
    assert_true(p.pid >= 0);
    if (p.pid == 0) run_other(&p);
    return p;
}

static void a_client_that_is_killed_leaves_nothing_behind(void **state)
{
    (void)state;
    other_process p = fork_other();
    char address[112] = "", byte;

    rp_test_live_start(&live, NULL);
    insert(1, 10, LARGE);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    assert_int_equal(write(p.in[1], address, sizeof address), sizeof address);
    assert_int_equal(read(p.out[0], &byte, 1), 1);
    assert_true(held_bytes() >= LARGE);
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
    await_held(0);
    rp_test_client *other = rp_test_live_connect(&live);
    rp_buf reset;
    rp_buf_init(&reset, rp_allocator_default());
    rp_buf_append(&reset, "\n\6replay", 8);
    assert_int_equal(
        rp_test_client_unary(other, RP_TEST_REVERB "Reset", (const char *)reset.data, 8),
        RP_OK);
    rp_buf_deinit(&reset);
    rp_test_client_free(other);
    await_empty_arena();
    for (int i = 0; i < 2; i++) {
        (void)close(p.in[i]);
        (void)close(p.out[i]);
    }
    rp_test_live_stop(&live);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(shared_memory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_is_killed_leaves_nothing_behind), /* forks: first */
        TEST(large_chunks_are_read_in_place_and_small_ones_are_sent),
        TEST(several_streams_and_decoders_share_a_lease),
        TEST(a_sampler_follows_an_arena_that_grows),
        TEST(samples_stay_valid_when_the_table_drops_them),
        TEST(samples_outlive_their_client),
        TEST(unseen_samples_of_a_sampler_are_released),
        TEST(a_rate_limiter_timeout_keeps_samples_valid),
        cmocka_unit_test(chunks_over_the_limit_are_sent_inline),
        cmocka_unit_test(sampling_works_without_shared_memory),
        TEST(a_restarted_server_is_shared_with_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
