/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of the journal's records: written, read again, and in pieces. */
#include "durable/format/journal_records.h"

#include "chunk/trajectory.h"
#include "support/chunks.h"

static const rp_string name = {"some table", 10};

static rp_status location_of(void *ctx, rp_chunk *chunk, rp_disk_location *out)
{
    (void)ctx;
    *out = (rp_disk_location){3 + chunk->origin.key % 2, 1000 - chunk->origin.key,
                              (uint32_t)chunk->wire_bytes};
    return RP_OK;
}

static rp_status no_location(void *ctx, rp_chunk *chunk, rp_disk_location *out)
{
    (void)ctx, (void)chunk, (void)out;
    return RP_NO_RESOURCE;
}

typedef struct bench {
    rp_journal_encoder encoder;
    rp_buf out;
    rp_decoded_change decoded;
} bench;

static void bench_init(bench *b, const rp_allocator *alloc)
{
    rp_journal_encoder_init(&b->encoder, alloc);
    rp_buf_init(&b->out, alloc);
    rp_decoded_change_init(&b->decoded, alloc);
}

static void bench_deinit(bench *b)
{
    rp_journal_encoder_deinit(&b->encoder);
    rp_buf_deinit(&b->out);
    rp_decoded_change_deinit(&b->decoded);
}

/* There and back; no piece of it means anything. */
static void turn_around(bench *b, const rp_log_record *change)
{
    rp_record_kind kind = rp_journal_kind_of(change);
    rp_error err;

    rp_buf_clear(&b->out);
    assert_ok(rp_journal_encode(&b->encoder, name, change, location_of, NULL, &b->out));
    for (size_t size = 0; size < b->out.size; size++) {
        uint8_t *piece = malloc(size + 1); /* so that a look behind the end is seen */

        assert_non_null(piece);
        memcpy(piece, b->out.data, size);
        assert_int_equal(rp_decoded_change_read(&b->decoded, kind, piece, size, &err),
                         RP_CORRUPT);
        free(piece);
    }
    rp_buf_append(&b->out, "", 1);
    assert_int_equal(rp_decoded_change_read(&b->decoded, kind, b->out.data, b->out.size, &err),
                     RP_CORRUPT);
    b->out.size--;
    assert_ok_err(rp_decoded_change_read(&b->decoded, kind, b->out.data, b->out.size, &err),
                  &err);
    assert_int_equal(b->decoded.change.kind, change->kind);
    assert_int_equal(b->decoded.table.size, name.size);
    assert_memory_equal(b->decoded.table.data, name.data, name.size);
}

static void small_records_round_trip(void **state)
{
    static const rp_update updates[] = {{1, 0.5}, {UINT64_MAX, -1.5}};
    static const uint64_t keys[] = {0, UINT64_MAX, 5};
    rp_log_record sample = {.kind = RP_LOGGED_SAMPLE, .count = 1 << 20, .distinct = true};
    rp_log_record update = {
        .kind = RP_LOGGED_UPDATE, .updates = updates, .count = 2, .by_extension = true};
    rp_log_record gone = {.kind = RP_LOGGED_DELETE, .keys = keys, .count = 3};
    rp_log_record evict = {.kind = RP_LOGGED_EVICT, .count = 300};
    rp_log_record reset = {.kind = RP_LOGGED_RESET};
    rp_log_record renumber = {.kind = RP_LOGGED_RENUMBER};
    rp_log_record pause = {.kind = RP_LOGGED_PAUSE, .paused = 3};
    rp_log_record alter = {.kind = RP_LOGGED_ALTER,
                           .alter = {.which = 31,
                                     .max_times_sampled = 4,
                                     .max_size = 1 << 30,
                                     .max_bytes = UINT64_MAX,
                                     .limiter = {1.5, 7, -1e300, 1e300}}};
    bench b;

    (void)state;
    bench_init(&b, rp_allocator_default());
    turn_around(&b, &sample);
    assert_int_equal(b.decoded.change.count, 1 << 20);
    assert_true(b.decoded.change.distinct);
    turn_around(&b, &update);
    assert_true(b.decoded.change.by_extension);
    assert_memory_equal(b.decoded.updates, updates, sizeof updates);
    turn_around(&b, &gone);
    assert_memory_equal(b.decoded.keys, keys, sizeof keys);
    turn_around(&b, &evict);
    assert_int_equal(b.decoded.change.count, 300);
    turn_around(&b, &reset);
    turn_around(&b, &renumber);
    turn_around(&b, &pause);
    assert_int_equal(b.decoded.change.paused, 3);
    turn_around(&b, &alter);
    assert_int_equal(b.decoded.change.alter.which, 31);
    assert_int_equal(b.decoded.change.alter.max_times_sampled, 4);
    assert_int_equal(b.decoded.change.alter.max_size, 1 << 30);
    assert_true(b.decoded.change.alter.max_bytes == UINT64_MAX);
    assert_int_equal(b.decoded.change.alter.limiter.min_size, 7);
    assert_true(b.decoded.change.alter.limiter.max_diff == 1e300);
    bench_deinit(&b);
}

static rp_trajectory *make_trajectory(rp_chunk *const *chunks)
{
    rp_chunk_slice slices[] = {
        {chunks[0], 0, 1, 2}, {chunks[1], 0, 0, 3}, {chunks[1], 0, 2, 1}};
    rp_slices columns[] = {{slices, 2, false}, {slices + 2, 1, true}};
    rp_trajectory *trajectory = NULL;

    assert_ok(rp_trajectory_new(rp_allocator_default(), columns, 2, &trajectory, NULL));
    return trajectory;
}

static void expect_slice(const rp_decoded_change *decoded, uint32_t at, rp_chunk *chunk,
                         uint32_t offset, uint32_t length)
{
    const rp_decoded_slice *slice = &decoded->slices[at];
    rp_disk_location location;

    (void)location_of(NULL, chunk, &location);
    assert_int_equal(decoded->locations[slice->location].at.segment, location.segment);
    assert_int_equal(decoded->locations[slice->location].at.offset, location.offset);
    assert_int_equal(decoded->locations[slice->location].at.size, location.size);
    assert_int_equal(slice->column, 0);
    assert_int_equal(slice->offset, offset);
    assert_int_equal(slice->length, length);
}

static void insert_records_round_trip(void **state)
{
    rp_chunk *chunks[3];
    rp_trajectory *trajectories[2];
    rp_inserted items[4] = {{.key = 1, .priority = 1.25, .times_sampled = 3, .evicted = 300},
                            {.key = 2, .priority = 0},
                            {.key = UINT64_MAX, .priority = 7, .times_sampled = INT32_MAX},
                            {.key = 4, .priority = 9}};
    rp_log_record change = {
        .kind = RP_LOGGED_INSERT, .wall_ns = -5, .dead = 70000, .inserted = items, .count = 4};
    bench b;

    (void)state;
    bench_init(&b, rp_allocator_default());
    for (uint64_t i = 0; i < 3; i++) chunks[i] = rp_test_ints(i, RP_CODEC_NONE, 4, 1);
    for (size_t i = 0; i < 2; i++) trajectories[i] = make_trajectory(chunks + i);
    items[0].trajectory = items[3].trajectory = trajectories[0];
    items[2].trajectory = trajectories[1];
    turn_around(&b, &change);
    assert_int_equal(b.decoded.change.wall_ns, -5);
    assert_int_equal(b.decoded.change.dead, 70000);
    assert_int_equal(b.decoded.change.count, 4);
    assert_int_equal(b.decoded.location_count, 3); /* each once */
    assert_int_equal(b.decoded.slice_count, 9);
    for (size_t i = 0; i < 4; i++) {
        assert_true(b.decoded.inserted[i].key == items[i].key);
        assert_true(b.decoded.inserted[i].priority == items[i].priority);
        assert_int_equal(b.decoded.inserted[i].times_sampled, items[i].times_sampled);
        assert_int_equal(b.decoded.inserted[i].evicted, items[i].evicted);
        assert_null(b.decoded.inserted[i].trajectory);
        assert_int_equal(b.decoded.items[i].column_count, i == 1 ? 0 : 2);
    }
    expect_slice(&b.decoded, 0, chunks[0], 1, 2);
    expect_slice(&b.decoded, 1, chunks[1], 0, 3);
    expect_slice(&b.decoded, 2, chunks[1], 2, 1);
    expect_slice(&b.decoded, 3, chunks[1], 1, 2);
    expect_slice(&b.decoded, 4, chunks[2], 0, 3);
    assert_true(b.decoded.columns[b.decoded.items[2].first_column + 1].squeeze);
    assert_false(b.decoded.columns[b.decoded.items[2].first_column].squeeze);
    rp_buf_clear(&b.out);
    assert_int_equal(rp_journal_encode(&b.encoder, name, &change, no_location, NULL, &b.out),
                     RP_NO_RESOURCE);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(trajectories[i]);
    for (size_t i = 0; i < 3; i++) rp_chunk_unref(chunks[i]);
    bench_deinit(&b);
}

/* Whatever a bit is turned to: an error, or values within bounds (fuzz_journal.c says which).
 */
static void records_with_flipped_bits_are_errors_or_within_bounds(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 4, 1), *both[2] = {chunk, chunk};
    rp_trajectory *trajectory = make_trajectory(both);
    rp_inserted item = {.key = 1, .priority = 1, .trajectory = trajectory};
    rp_log_record change = {.kind = RP_LOGGED_INSERT, .inserted = &item, .count = 1};
    bench b;

    (void)state;
    bench_init(&b, rp_allocator_default());
    turn_around(&b, &change);
    for (size_t bit = 0; bit < 8 * b.out.size; bit++) {
        rp_status st;

        b.out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        st = rp_decoded_change_read(&b.decoded, RP_RECORD_INSERT, b.out.data, b.out.size, NULL);
        assert_true(st == RP_OK || st == RP_CORRUPT);
        b.out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (int kind = 0; kind < 70; kind++)
        if (kind != RP_RECORD_INSERT)
            assert_int_equal(rp_decoded_change_read(&b.decoded, (rp_record_kind)kind,
                                                    b.out.data, b.out.size, NULL),
                             RP_CORRUPT);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    bench_deinit(&b);
}

static void drop_records_hold_a_name(void **state)
{
    rp_string back;
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_journal_encode_drop(name, &out);
    assert_ok(rp_journal_read_drop(out.data, out.size, &back, NULL));
    assert_int_equal(back.size, name.size);
    assert_memory_equal(back.data, name.data, name.size);
    for (size_t size = 0; size < out.size; size++)
        assert_int_equal(rp_journal_read_drop(out.data, size, &back, NULL), RP_CORRUPT);
    out.data[3] = 0; /* a name has no zero in it */
    assert_int_equal(rp_journal_read_drop(out.data, out.size, &back, NULL), RP_CORRUPT);
    rp_buf_deinit(&out);
}

static rp_status encode_and_read(const rp_allocator *alloc)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, 4, 1), *both[2] = {chunk, chunk};
    rp_trajectory *trajectory = make_trajectory(both);
    rp_inserted item = {.key = 1, .priority = 1, .trajectory = trajectory};
    rp_log_record change = {.kind = RP_LOGGED_INSERT, .inserted = &item, .count = 1};
    bench *b = malloc(sizeof *b);
    rp_status st;

    assert_non_null(b);
    bench_init(b, alloc);
    st = rp_journal_encode(&b->encoder, name, &change, location_of, NULL, &b->out);
    if (st == RP_OK)
        st = rp_decoded_change_read(&b->decoded, RP_RECORD_INSERT, b->out.data, b->out.size,
                                    NULL);
    bench_deinit(b);
    free(b);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    return st;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    rp_test_survives_oom(encode_and_read);
}

RP_TESTS(journal_records)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_records_round_trip),
        cmocka_unit_test(insert_records_round_trip),
        cmocka_unit_test(records_with_flipped_bits_are_errors_or_within_bounds),
        cmocka_unit_test(drop_records_hold_a_name),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
