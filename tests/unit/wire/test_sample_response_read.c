/* SPDX-License-Identifier: Apache-2.0 */
/* The client's reader must read what the server's writer has written. */
#include "wire/sample_response_read.h"

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/hex.h"
#include "util/rng.h"
#include "wire/admin_messages.h"
#include "wire/fields.h"
#include "wire/sample_response.h"

enum { CHUNKS = 24, LARGE = 5 /* this chunk is large enough to stay in its block */ };

/* A reader, chunks to make samples of, and a message. */
typedef struct fixture {
    rp_sample_reader *reader;
    rp_chunk *chunks[CHUNKS];
    rp_sample samples[8];
    size_t sample_count;
    rp_message_pool pool;
    rp_buf message;
} fixture;

static void make_sample(fixture *f, const size_t *chunks, size_t count)
{
    rp_chunk_slice slices[2 * CHUNKS];
    rp_slices columns[CHUNKS];
    rp_sample *sample = &f->samples[f->sample_count++];

    *sample = (rp_sample){.key = 100 + f->sample_count,
                          .priority = 0.5,
                          .probability = 0.25,
                          .weight = 1,
                          .table_size = 9,
                          .inserted_at_ns = 1700000000000000042,
                          .times_sampled = (int32_t)f->sample_count,
                          .rate_limited = f->sample_count % 2 == 0};
    for (size_t i = 0; i < count; i++) {
        slices[2 * i] = (rp_chunk_slice){f->chunks[chunks[i]], 0, 1, 1};
        slices[2 * i + 1] = (rp_chunk_slice){f->chunks[chunks[i]], 0, 0, 2};
        columns[i] = (rp_slices){&slices[2 * i], i % 2 == 0 ? 1 : 2, i % 2 == 0};
    }
    assert_ok(
        rp_trajectory_new(rp_allocator_default(), columns, count, &sample->trajectory, NULL));
}

static int set_up(void **state)
{
    static const size_t one[] = {0}, few[] = {1, 2, LARGE, 3}, same[] = {2, LARGE, 0, 2};
    static const size_t all[] = {0,  1,  2,  3,  4,  6,  7,  8,  9,  10, 11, 12,
                                 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (size_t i = 0; i < CHUNKS; i++)
        f->chunks[i] = rp_test_ints(i + 1, RP_CODEC_NONE, 3, i == LARGE ? 5000 : 2);
    make_sample(f, one, 1);
    make_sample(f, few, 4);
    make_sample(f, same, 4);
    make_sample(f, all, COUNT_OF(all));
    make_sample(f, one, 1);
    rp_message_pool_init(&f->pool, rp_allocator_default());
    rp_buf_init(&f->message, rp_allocator_default());
    assert_ok(rp_sample_reader_new(rp_allocator_default(), NULL, &f->reader, NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    rp_sample_reader_free(f->reader);
    for (size_t i = 0; i < f->sample_count; i++) rp_trajectory_unref(f->samples[i].trajectory);
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(f->chunks[i]);
    rp_buf_deinit(&f->message);
    rp_message_pool_deinit(&f->pool);
    free(f);
    return 0;
}

/* Moves what a reply holds to the end of `out`. */
static void take(fixture *f, rp_message *reply, rp_buf *out)
{
    const uint8_t *data;

    assert_true(rp_message_close(reply));
    (void)rp_message_take(reply, RP_GRPC_PREFIX, &data);
    while (rp_message_remaining(reply) > 0) {
        size_t size = rp_message_take(reply, SIZE_MAX, &data);
        rp_buf_append(out, data, size);
    }
    rp_message_release(&f->pool, reply);
    assert_false(out->bad);
}

static void write_entry(fixture *f, size_t sample, size_t first, size_t count)
{
    rp_message *reply = rp_message_new(&f->pool);

    assert_true(rp_sample_entry_append(reply, &f->samples[sample], "t", 1, first, count, NULL));
    take(f, reply, &f->message);
}

static void write_whole(fixture *f, size_t sample)
{
    write_entry(f, sample, 0, f->samples[sample].trajectory->chunk_count);
}

static void expect_trajectory(const rp_trajectory *got, const rp_trajectory *expected)
{
    assert_int_equal(got->column_count, expected->column_count);
    assert_int_equal(got->chunk_count, expected->chunk_count);
    for (size_t i = 0; i < got->chunk_count; i++) {
        assert_int_equal(got->chunks[i]->wire_bytes, expected->chunks[i]->wire_bytes);
        assert_memory_equal(got->chunks[i]->wire, expected->chunks[i]->wire,
                            got->chunks[i]->wire_bytes);
    }
    for (size_t i = 0; i < got->column_count; i++) {
        rp_slices a = rp_trajectory_slices(got, i), b = rp_trajectory_slices(expected, i);
        assert_int_equal(a.slice_count, b.slice_count);
        assert_int_equal(a.squeeze, b.squeeze);
        for (size_t k = 0; k < a.slice_count; k++) {
            assert_true(a.slices[k].chunk->origin.key == b.slices[k].chunk->origin.key);
            assert_true(a.slices[k].offset == b.slices[k].offset &&
                        a.slices[k].length == b.slices[k].length &&
                        a.slices[k].column == b.slices[k].column);
        }
    }
}

static void expect_sample(const rp_sample *got, const rp_sample *expected)
{
    assert_true(got->key == expected->key && got->priority == expected->priority);
    assert_true(got->probability == expected->probability && got->weight == expected->weight);
    assert_true(got->table_size == expected->table_size);
    assert_true(got->inserted_at_ns == expected->inserted_at_ns);
    assert_int_equal(got->times_sampled, expected->times_sampled);
    assert_int_equal(got->rate_limited, expected->rate_limited);
    expect_trajectory(got->trajectory, expected->trajectory);
}

static void release(rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(samples[i].trajectory);
}

static void samples_of_one_message_come_in_order(void **state)
{
    fixture *f = *state;
    rp_sample out[8];
    size_t count;

    for (size_t i = 0; i < f->sample_count; i++) write_whole(f, i);
    for (size_t capacity = 1; capacity <= 8; capacity++) {
        size_t at = 0;
        rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
        do {
            assert_ok(rp_sample_reader_next(f->reader, out, capacity, &count, NULL));
            for (size_t i = 0; i < count; i++) expect_sample(&out[i], &f->samples[at++]);
            release(out, count);
        } while (count > 0);
        assert_int_equal(at, f->sample_count);
        assert_false(rp_sample_reader_is_within(f->reader));
    }
}

static void an_empty_message_has_no_samples(void **state)
{
    fixture *f = *state;
    rp_sample out;
    size_t count = 7;

    rp_sample_reader_open(f->reader, NULL, 0, NULL);
    assert_ok(rp_sample_reader_next(f->reader, &out, 1, &count, NULL));
    assert_int_equal(count, 0);
}

static void chunks_that_samples_share_are_parsed_once(void **state)
{
    fixture *f = *state;
    rp_sample out[8];
    size_t count;

    for (size_t i = 0; i < f->sample_count; i++) write_whole(f, i);
    rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
    assert_ok(rp_sample_reader_next(f->reader, out, 8, &count, NULL));
    assert_int_equal(count, f->sample_count);
    assert_ptr_equal(out[0].trajectory->chunks[0], out[4].trajectory->chunks[0]);
    assert_ptr_equal(out[1].trajectory->chunks[1], out[2].trajectory->chunks[0]);
    assert_ptr_equal(out[1].trajectory->chunks[2], out[2].trajectory->chunks[1]);
    release(out, count);
}

/* A key is its writer's choice: items of two writers may have different chunks under one key.
 */
static void a_chunk_of_other_bytes_is_another_chunk(void **state)
{
    fixture *f = *state;
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    const rp_spec spec = {"x", RP_INT32, SHAPE(2)};
    const int32_t numbers[6] = {7, 7, 7, 7, 7, 7};
    rp_chunk *others[] = {rp_test_ints(1, RP_CODEC_NONE, 3, 4),
                          rp_test_chunk(1, &options, &spec, 3, numbers)};

    assert_int_not_equal(others[0]->wire_bytes, f->chunks[0]->wire_bytes);
    assert_int_equal(others[1]->wire_bytes, f->chunks[0]->wire_bytes);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        rp_chunk_slice slice = {others[i], 0, 1, 1};
        rp_slices column = {&slice, 1, true};
        rp_sample out[2];
        size_t count;

        rp_trajectory_unref(f->samples[4].trajectory);
        assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1,
                                    &f->samples[4].trajectory, NULL));
        rp_buf_clear(&f->message);
        write_whole(f, 0);
        write_whole(f, 4);
        rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
        assert_ok(rp_sample_reader_next(f->reader, out, 2, &count, NULL));
        assert_int_equal(count, 2);
        expect_sample(&out[0], &f->samples[0]);
        expect_sample(&out[1], &f->samples[4]);
        release(out, count);
        rp_chunk_unref(others[i]);
    }
}

static void large_chunks_stay_in_the_block(void **state)
{
    fixture *f = *state;
    rp_block *block;
    rp_sample out[2];
    const rp_chunk *large;
    size_t count;

    write_whole(f, 1);
    write_whole(f, 2);
    block = rp_block_new(rp_allocator_default(), f->message.size);
    assert_non_null(block);
    memcpy(block->data, f->message.data, f->message.size);
    block->size = f->message.size;
    rp_sample_reader_open(f->reader, block->data, block->size, block);
    assert_ok(rp_sample_reader_next(f->reader, out, 2, &count, NULL));
    assert_int_equal(count, 2);
    rp_block_unref(block); /* the chunk holds it now */
    large = out[0].trajectory->chunks[2];
    assert_true(large->adopted && large->wire >= block->data &&
                large->wire < block->data + block->size);
    assert_ptr_equal(large, out[1].trajectory->chunks[1]);
    assert_false(out[0].trajectory->chunks[0]->adopted);
    release(out, 1);
    expect_sample(&out[1], &f->samples[2]);
    release(out + 1, 1);
}

static void a_sample_may_come_in_pieces_over_messages(void **state)
{
    fixture *f = *state;
    size_t chunk_count = f->samples[3].trajectory->chunk_count, count;
    rp_sample out[2];

    for (size_t piece = 1; piece <= chunk_count; piece++)
        for (size_t first = 0; first < chunk_count; first += piece) {
            size_t n = chunk_count - first < piece ? chunk_count - first : piece;
            rp_buf_clear(&f->message);
            write_entry(f, 3, first, n);
            rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
            assert_ok(rp_sample_reader_next(f->reader, out, 2, &count, NULL));
            memset(f->message.data, 0xee, f->message.size); /* nothing of it is kept */
            assert_int_equal(count, first + n == chunk_count);
            assert_int_equal(rp_sample_reader_is_within(f->reader), count == 0);
            if (count == 1) expect_sample(&out[0], &f->samples[3]);
            release(out, count);
        }
}

static void an_incomplete_sample_can_be_discarded(void **state)
{
    fixture *f = *state;
    rp_sample out[2];
    size_t count;

    write_entry(f, 3, 0, 5);
    rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
    assert_ok(rp_sample_reader_next(f->reader, out, 2, &count, NULL));
    assert_true(count == 0 && rp_sample_reader_is_within(f->reader));
    rp_sample_reader_reset(f->reader);
    assert_false(rp_sample_reader_is_within(f->reader));
    rp_buf_clear(&f->message);
    write_whole(f, 0);
    rp_sample_reader_open(f->reader, f->message.data, f->message.size, NULL);
    assert_ok(rp_sample_reader_next(f->reader, out, 2, &count, NULL));
    assert_int_equal(count, 1);
    expect_sample(&out[0], &f->samples[0]);
    release(out, 1);
}

static rp_status read_hex(fixture *f, const char *hex, rp_error *err)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_sample out[4];
    size_t count = 9;
    rp_status st;

    rp_sample_reader_open(f->reader, b.data, b.size, NULL);
    st = rp_sample_reader_next(f->reader, out, 4, &count, err);
    if (st == RP_OK)
        release(out, count);
    else
        assert_int_equal(count, 0);
    rp_sample_reader_reset(f->reader);
    return st;
}

#define CHUNK                                                                                  \
    "0801 1204 08071802 2a26 0a24 0809 1204 12020803 221a 185c"                                \
    "0000000000000000 0100000000000000 0200000000000000 3001 3818"

static void inconsistent_samples_are_corrupt(void **state)
{
    static const struct {
        const char *hex, *part;
    } wrong[] = {
        {"0a", "SampleStreamResponse"},
        {"0a01 0a", "SampleEntry"},
        {"0a00", "does not begin with its info"},
        {"0a36 1234" CHUNK, "does not begin with its info"},
        {"0a02 0a00", "without an item"},
        {"0a03 0a01 0a", "SampleInfo"},
        {"0a06 0a04 0a02 0802", "no columns"},
        /* its chunk does not come */
        {"0a12 0a0e 0a0c 0802 4208 0a06 0a04 08011803 1801", "chunk 1 did not come"},
        /* two infos */
        {"0a20 0a0e 0a0c 0802 4208 0a06 0a04 08011803 0a0e 0a0c 0802 4208 0a06 0a04 08011803",
         "two infos"},
        /* rows that are not there */
        {"0a48 0a0e 0a0c 0802 4208 0a06 0a04 08011804 1234" CHUNK "1801", "which has 3"},
        {"0a48 0a0e 0a0c 0802 4208 0a06 0a04 08011800 1234" CHUNK "1801", "length must be"},
        /* a chunk that is none */
        {"0a15 0a0e 0a0c 0802 4208 0a06 0a04 08011803 1201 08 1801", ""},
    };
    fixture *f = *state;
    rp_error err = {0};

    assert_ok_err(
        read_hex(f, "0a48 0a0e 0a0c 0802 4208 0a06 0a04 08011803 1234" CHUNK "1801", &err),
        &err);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_fails(read_hex(f, wrong[i].hex, &err), RP_CORRUPT, &err, wrong[i].part);
}

static void an_unused_chunk_is_dropped(void **state)
{
    /* the first sample comes with a chunk it does not refer to; the next refers to it, and has
     * it too */
    static const char other[] = "0802 1204 08071802 2a26 0a24 0809 1204 12020803 221a 185c"
                                "0000000000000000 0100000000000000 0200000000000000 3001 3818";
    char hex[1024];
    fixture *f = *state;

    (void)snprintf(hex, sizeof hex,
                   "0a7e 0a0e 0a0c 0802 4208 0a06 0a04 08011803 1234 %s 1234 %s 1801"
                   "0a48 0a0e 0a0c 0803 4208 0a06 0a04 08021803 1234 %s 1801",
                   CHUNK, other, other);
    assert_ok(read_hex(f, hex, NULL));
}

static size_t decoded_bytes(const rp_trajectory *trajectory)
{
    size_t bytes = 0;

    for (size_t i = 0; i < trajectory->column_count; i++)
        bytes += rp_trajectory_get_column(trajectory, i).bytes;
    return bytes;
}

static void each_limit_holds_at_its_edge(void **state)
{
    fixture *f = *state;
    size_t chunks = f->samples[3].trajectory->chunk_count;
    size_t slices = chunks + chunks / 2;
    rp_sample_limits exact = rp_sample_limits_default(), limits;
    rp_sample out[2];
    size_t count;
    rp_error err = {0};

    exact.chunks = exact.columns = chunks;
    exact.slices = slices;
    exact.bytes = f->samples[3].trajectory->bytes;
    exact.item_bytes = decoded_bytes(f->samples[3].trajectory);
    write_whole(f, 3);
    for (int which = 0; which < 7; which++) {
        rp_sample_reader *reader;
        limits = exact;
        if (which == 1) limits.chunks--;
        if (which == 2) limits.columns--;
        if (which == 3) limits.slices--;
        if (which == 4) limits.bytes--;
        if (which == 5) limits.chunk.max_wire_bytes = 10;
        if (which == 6) limits.item_bytes--;
        assert_ok(rp_sample_reader_new(rp_allocator_default(), &limits, &reader, NULL));
        rp_sample_reader_open(reader, f->message.data, f->message.size, NULL);
        if (which == 0) {
            assert_ok_err(rp_sample_reader_next(reader, out, 2, &count, &err), &err);
            assert_int_equal(count, 1);
            release(out, 1);
        } else {
            assert_fails(rp_sample_reader_next(reader, out, 2, &count, &err), RP_NO_RESOURCE,
                         &err, "");
        }
        rp_sample_reader_free(reader);
    }
}

/* Reads any bytes; whatever is handed out must be whole. */
static void try_bytes(fixture *f, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    rp_sample out[8];
    rp_sample_list list = {.samples = out, .capacity = 8};
    size_t count = 0;
    rp_status st;

    assert_non_null(copy);
    if (size > 0) memcpy(copy, data, size);
    rp_sample_reader_open(f->reader, copy, size, NULL);
    st = rp_sample_reader_next(f->reader, out, 8, &count, NULL);
    assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    for (size_t i = 0; i < count; i++) assert_true(out[i].trajectory->column_count > 0);
    release(out, count);
    rp_sample_reader_reset(f->reader);
    st = rp_sample_reader_batch(f->reader, copy, size, true, &list, NULL);
    assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
    release(out, list.count);
    free(copy);
}

static void damaged_messages_do_no_harm(void **state)
{
    fixture *f = *state;
    rp_rng rng;
    uint8_t *damaged;

    write_whole(f, 0);
    write_whole(f, 3);
    write_whole(f, 4);
    for (size_t size = 0; size <= f->message.size; size++) try_bytes(f, f->message.data, size);
    rp_rng_init(&rng, 3);
    damaged = malloc(f->message.size);
    assert_non_null(damaged);
    for (size_t round = 0; round < rp_test_length(20000, 3000); round++) {
        size_t changes = 1 + rp_rng_below(&rng, 3);
        memcpy(damaged, f->message.data, f->message.size);
        for (size_t i = 0; i < changes; i++)
            damaged[rp_rng_below(&rng, f->message.size)] ^=
                (uint8_t)(1u << rp_rng_below(&rng, 8));
        try_bytes(f, damaged, f->message.size);
    }
    free(damaged);
}

/* A SampleResponse of all samples: every chunk once, then the entries. */
static void write_batch(fixture *f)
{
    rp_message *reply = rp_message_new(&f->pool);

    for (size_t i = 0; i < f->sample_count; i++) {
        f->samples[i].weight = 1.0 / (double)(i + 1);
        assert_true(rp_wire_add_entry(reply, &f->samples[i], "t"));
    }
    for (size_t i = 0; i < CHUNKS; i++) assert_true(rp_wire_add_chunk(reply, f->chunks[i]));
    take(f, reply, &f->message);
}

static void a_batch_shares_its_chunks(void **state)
{
    fixture *f = *state;
    rp_sample out[8];
    rp_sample_list list = {.samples = out, .capacity = 8};
    rp_error err = {0};

    write_batch(f);
    assert_ok_err(
        rp_sample_reader_batch(f->reader, f->message.data, f->message.size, true, &list, &err),
        &err);
    assert_int_equal(list.count, f->sample_count);
    for (size_t i = 0; i < list.count; i++) expect_sample(&out[i], &f->samples[i]);
    assert_ptr_equal(out[0].trajectory->chunks[0], out[3].trajectory->chunks[0]);
    release(out, list.count);
    list.capacity = 4;
    assert_fails(
        rp_sample_reader_batch(f->reader, f->message.data, f->message.size, true, &list, &err),
        RP_NO_RESOURCE, &err, "more than 4 items");
    assert_int_equal(list.count, 0);
}

static void a_peek_without_data_has_no_trajectories(void **state)
{
    fixture *f = *state;
    rp_sample out[8];
    rp_sample_list list = {.samples = out, .capacity = 8};
    rp_message *reply = rp_message_new(&f->pool);
    rp_error err = {0};

    f->samples[1].weight = f->samples[1].probability = 0;
    assert_true(rp_wire_add_entry(reply, &f->samples[1], "t"));
    take(f, reply, &f->message);
    assert_ok(rp_sample_reader_batch(f->reader, f->message.data, f->message.size, false, &list,
                                     NULL));
    assert_int_equal(list.count, 1);
    assert_true(out[0].key == f->samples[1].key && out[0].trajectory == NULL);
    assert_true(out[0].weight == 0);
    assert_fails(
        rp_sample_reader_batch(f->reader, f->message.data, f->message.size, true, &list, &err),
        RP_CORRUPT, &err, "did not come");
}

static fixture *staged; /* for scenarios, which have no state */

static rp_status read_both(const rp_allocator *alloc)
{
    rp_sample_reader *reader = NULL;
    rp_sample out[8];
    size_t count = 0;
    rp_status st = rp_sample_reader_new(alloc, NULL, &reader, NULL);

    if (st != RP_OK) return st;
    rp_sample_reader_open(reader, staged->message.data, staged->message.size, NULL);
    st = rp_sample_reader_next(reader, out, 8, &count, NULL);
    if (st == RP_OK) {
        release(out, count);
    } else { /* the reader can still be used */
        rp_sample_reader_open(reader, staged->message.data, staged->message.size, NULL);
        if (rp_sample_reader_next(reader, out, 8, &count, NULL) == RP_OK) release(out, count);
    }
    rp_sample_reader_free(reader);
    return st;
}

static rp_status read_one_batch(const rp_allocator *alloc)
{
    rp_sample_reader *reader = NULL;
    rp_sample out[8];
    rp_sample_list list = {.samples = out, .capacity = 8};
    rp_status st = rp_sample_reader_new(alloc, NULL, &reader, NULL);

    if (st != RP_OK) return st;
    st = rp_sample_reader_batch(reader, staged->message.data, staged->message.size, true, &list,
                                NULL);
    release(out, list.count);
    rp_sample_reader_free(reader);
    return st;
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    staged = *state;
    write_whole(staged, 1);
    write_whole(staged, 3);
    rp_test_survives_oom(read_both);
    rp_buf_clear(&staged->message);
    write_batch(staged);
    rp_test_survives_oom(read_one_batch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Reads the one sample of a batch without data: `info`, put into an entry, and that into one.
 */
static rp_status read_info(fixture *f, const uint8_t *info, size_t size, rp_sample *out)
{
    uint8_t message[160] = {0x12, (uint8_t)(size + 2), 0x0a, (uint8_t)size};
    rp_sample_list list = {.samples = out, .capacity = 1};

    assert_true(size < 120);
    memcpy(message + 4, info, size);
    memset(out, 0, sizeof *out);
    return rp_sample_reader_batch(f->reader, message, size + 4, false, &list, NULL);
}

/* Fields in the order of their numbers are read in another way than others: an unknown field at
 * the end, which changes nothing, makes the difference. */
static void an_info_reads_the_same_with_fields_in_any_order(void **state)
{
    const rp_test_bytes whole = rp_test_bytes_of(
        "0a2c 08ffeeddccbbaa99888701 29000000000000f03f 3005 3a08 088094ebdc03 1007"
        "420a 0a08 0a06 0803 1001 1802 11000000000000d03f 18c09a0c 2001");
    const size_t tries = rp_test_length(300000, 30000);
    fixture *f = *state;
    size_t good = 0;
    rp_rng rng;

    rp_rng_init(&rng, 8);
    for (size_t i = 0; i < tries; i++) {
        uint8_t bytes[128];
        rp_sample one, other;

        memcpy(bytes, whole.data, whole.size);
        for (uint64_t n = rp_rng_below(&rng, 3); n > 0; n--)
            bytes[rp_rng_below(&rng, whole.size)] = (uint8_t)rp_rng_next(&rng);
        if (read_info(f, bytes, whole.size, &one) != RP_OK) continue;
        good++;
        memcpy(bytes + whole.size, "\x7a", 2); /* field 15, no bytes */
        assert_ok(read_info(f, bytes, whole.size + 2, &other));
        assert_true(one.key == other.key && one.table_size == other.table_size &&
                    one.inserted_at_ns == other.inserted_at_ns &&
                    one.times_sampled == other.times_sampled &&
                    one.rate_limited == other.rate_limited);
        assert_memory_equal(&one.priority, &other.priority, sizeof(double));
        assert_memory_equal(&one.probability, &other.probability, sizeof(double));
    }
    assert_true(good > tries / 4);
}

static void infos_in_another_order_are_read(void **state)
{
    /* An item of one slice; its length stands before it. */
    static const char item[] = "0a17 0805 29000000000000f03f 3005 4208 0a06 0a04 08031802 ";
    static const struct {
        const char *before, *after; /* the item */
        double probability;
        int64_t table_size;
        bool rate_limited;
    } infos[] = {
        {"", "11000000000000d03f 1809 2001", 0.25, 9, true},
        {"", "1809 11000000000000d03f", 0.25, 9, false},
        {"", "11000000000000d03f 11000000000000e03f 1809", 0.5, 9, false},
        {"", "11000000000000d03f 1809 1808", 0.25, 8, false},
        {"2001 1809 11000000000000d03f ", "", 0.25, 9, true},
        {"", "7a00 1809", 0, 9, false},
        {"", "1809 7a00", 0, 9, false},
    };
    fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(infos); i++) {
        char hex[256];
        rp_test_bytes b;
        rp_sample sample;

        (void)snprintf(hex, sizeof hex, "%s%s%s", infos[i].before, item, infos[i].after);
        b = rp_test_bytes_of(hex);
        assert_ok(read_info(f, b.data, b.size, &sample));
        assert_int_equal(sample.key, 5);
        assert_int_equal(sample.times_sampled, 5);
        assert_true(sample.priority == 1 && sample.probability == infos[i].probability);
        assert_int_equal(sample.table_size, infos[i].table_size);
        assert_int_equal(sample.rate_limited, infos[i].rate_limited);
    }
}

RP_TESTS(sample_response_read)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_of_one_message_come_in_order),
        TEST(an_empty_message_has_no_samples),
        TEST(chunks_that_samples_share_are_parsed_once),
        TEST(a_chunk_of_other_bytes_is_another_chunk),
        TEST(large_chunks_stay_in_the_block),
        TEST(a_sample_may_come_in_pieces_over_messages),
        TEST(an_incomplete_sample_can_be_discarded),
        TEST(inconsistent_samples_are_corrupt),
        TEST(an_unused_chunk_is_dropped),
        TEST(each_limit_holds_at_its_edge),
        TEST(damaged_messages_do_no_harm),
        TEST(a_batch_shares_its_chunks),
        TEST(a_peek_without_data_has_no_trajectories),
        TEST(running_out_of_memory_leaves_nothing_behind),
        TEST(an_info_reads_the_same_with_fields_in_any_order),
        TEST(infos_in_another_order_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
