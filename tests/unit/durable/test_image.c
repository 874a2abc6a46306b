/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/format/image.h"

#include <math.h>

#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/fixture.h"
#include "util/rng.h"

static rp_image *new_image(const rp_allocator *alloc)
{
    rp_image *image = malloc(sizeof *image);

    assert_non_null(image);
    rp_image_init(image, alloc);
    return image;
}

static void free_image(rp_image *image)
{
    rp_image_deinit(image);
    free(image);
}

/* A block in which about `fill` of 256 slots are live, with up to `most` slices a column. */
static void make_block(rp_image *image, rp_rng *rng, uint32_t fill, uint64_t most)
{
    rp_image_clear(image);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        rp_image_slot *slot = &image->slots[i];
        uint64_t columns = 1 + rp_rng_below(rng, 3);

        if (rp_rng_below(rng, 256) >= fill) {
            slot->next = rp_rng_below(rng, 8) == 0 ? RP_SLOT_NONE : (uint32_t)rp_rng_next(rng);
            continue;
        }
        slot->live = true;
        slot->key = rp_rng_next(rng);
        slot->priority = rp_rng_unit(rng) * 100;
        slot->inserted_at_ns = (int64_t)rp_rng_next(rng);
        slot->sequence = rp_rng_next(rng) & RP_MAX_SEQUENCE;
        slot->turn = rp_rng_next(rng);
        slot->times_sampled = (int32_t)rp_rng_next(rng);
        for (uint64_t c = 0; c < columns; c++) {
            uint64_t slices = 1 + rp_rng_below(rng, most);

            rp_image_add_column(image, i, rp_rng_below(rng, 2) == 0);
            for (uint64_t k = 0; k < slices; k++) {
                rp_disk_location location = {1 + rp_rng_below(rng, 3),
                                             64 + 100 * rp_rng_below(rng, 50), 68};
                rp_image_add_slice(image,
                                   &(rp_image_slice){rp_image_add_location(image, &location),
                                                     (uint32_t)c, (uint32_t)rp_rng_next(rng),
                                                     1 + (uint32_t)rp_rng_below(rng, 1000)});
            }
        }
    }
}

static void assert_same_image(const rp_image *a, const rp_image *b)
{
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_image_slot *x = &a->slots[i], *y = &b->slots[i];

        assert_int_equal(x->live, y->live);
        if (!x->live) {
            assert_int_equal(x->next, y->next);
            continue;
        }
        assert_int_equal(x->key, y->key);
        assert_memory_equal(&x->priority, &y->priority, sizeof x->priority);
        assert_int_equal(x->inserted_at_ns, y->inserted_at_ns);
        assert_int_equal(x->sequence, y->sequence);
        assert_int_equal(x->turn, y->turn);
        assert_int_equal(x->times_sampled, y->times_sampled);
        assert_int_equal(x->column_count, y->column_count);
        for (uint32_t c = 0; c < x->column_count; c++) {
            const rp_image_column *p = &a->columns[x->first_column + c];
            const rp_image_column *q = &b->columns[y->first_column + c];

            assert_int_equal(p->squeeze, q->squeeze);
            assert_int_equal(p->slice_count, q->slice_count);
            assert_memory_equal(&a->slices[p->first_slice], &b->slices[q->first_slice],
                                p->slice_count * sizeof *a->slices);
        }
    }
    assert_int_equal(a->location_count, b->location_count);
    for (size_t i = 0; i < a->location_count; i++) {
        assert_int_equal(a->locations[i].segment, b->locations[i].segment);
        assert_int_equal(a->locations[i].offset, b->locations[i].offset);
        assert_int_equal(a->locations[i].size, b->locations[i].size);
    }
}

static void blocks_round_trip(void **state)
{
    rp_image *image = new_image(rp_allocator_default());
    rp_image *again = new_image(rp_allocator_default());
    rp_rng rng;
    rp_buf out;
    rp_error err;

    (void)state;
    rp_rng_init(&rng, 1);
    rp_buf_init(&out, rp_allocator_default());
    for (size_t round = 0; round < rp_test_part(200, 42); round++) {
        make_block(image, &rng, (uint32_t)rp_rng_below(&rng, 257), round % 7 == 0 ? 40 : 3);
        rp_buf_clear(&out);
        assert_ok(rp_image_write(image, &out));
        assert_ok_err(rp_image_read(again, out.data, out.size, &err), &err);
        assert_same_image(image, again);
    }
    rp_buf_deinit(&out);
    free_image(image);
    free_image(again);
}

/* What a table of small items costs, with a chunk for each, in the order of insertion, and with
 * slots that were taken again and again. */
static void an_item_of_one_column_takes_at_most_45_bytes(void **state)
{
    rp_image *image = new_image(rp_allocator_default());
    rp_rng rng;
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        rp_rng_init(&rng, 7);
        rp_image_clear(image);
        for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
            uint64_t nth = shuffled ? rp_rng_below(&rng, 1000000) : 5000000 + i;
            rp_disk_location location = {shuffled ? 1 + nth / 500000 : 9,
                                         64 + nth % 500000 * 440, 408};

            image->slots[i] = (rp_image_slot){
                .live = true,
                .key = rp_rng_next(&rng),
                .priority = rp_rng_unit(&rng),
                .inserted_at_ns = (int64_t)(1700000000000000000 + nth * 2000),
                .sequence = nth,
                .turn = 2 * nth,
                .times_sampled = 3,
            };
            rp_image_add_column(image, i, false);
            rp_image_add_slice(
                image, &(rp_image_slice){rp_image_add_location(image, &location), 0, 0, 1});
        }
        rp_buf_clear(&out);
        assert_ok(rp_image_write(image, &out));
        assert_true(out.size <= (shuffled ? 45 : 37) * RP_SLOTS_PER_BLOCK);
    }
    rp_buf_deinit(&out);
    free_image(image);
}

static void damaged_blocks_are_refused_or_are_blocks(void **state)
{
    rp_image *image = new_image(rp_allocator_default());
    rp_rng rng;
    rp_buf out;
    rp_error err;
    uint8_t *copy;

    (void)state;
    rp_rng_init(&rng, 3);
    rp_buf_init(&out, rp_allocator_default());
    make_block(image, &rng, 40, 2);
    assert_ok(rp_image_write(image, &out));
    copy = malloc(out.size);
    assert_non_null(copy);
    for (size_t size = 0; size < out.size; size += rp_test_length(rp_test_step(1, 3), 7)) {
        memcpy(copy, out.data, size); /* cut off: never a block */
        assert_int_equal(rp_image_read(image, copy, size, &err), RP_CORRUPT);
        assert_int_equal(image->location_count, 0);
    }
    for (size_t i = 0; i < 8 * out.size; i += rp_test_length(rp_test_step(1, 5), 13)) {
        rp_status st;

        memcpy(copy, out.data, out.size);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        st = rp_image_read(image, copy, out.size, &err);
        assert_true(st == RP_OK || st == RP_CORRUPT);
        for (size_t s = 0; s < image->slice_count; s++) {
            assert_true(image->slices[s].location < image->location_count);
            assert_true(image->slices[s].length > 0);
        }
    }
    free(copy);
    rp_buf_deinit(&out);
    free_image(image);
}

static void announced_counts_are_checked(void **state)
{
    static const uint8_t locations[] = {1, 0xff, 0xff, 0xff, 0xff, 0x0f};
    static const uint8_t slices[] = {1, 1, 2, 0x80, 1, 0x10, 1,    1,    2,    3, 4,
                                     5, 6, 7, 8,    1, 2,    3,    4,    5,    6, 7,
                                     8, 0, 0, 0,    0, 1,    0xfe, 0xff, 0x7f, 0};
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_image *image = new_image(&alloc);
    rp_error err;

    (void)state;
    assert_int_equal(rp_image_read(image, locations, sizeof locations, &err), RP_CORRUPT);
    assert_int_equal(rp_image_read(image, slices, sizeof slices, &err), RP_CORRUPT);
    assert_true(o.peak_bytes < 1 << 16);
    free_image(image);
    assert_int_equal(o.live, 0);
}

static rp_status round_trip(const rp_allocator *alloc)
{
    rp_image *image = new_image(alloc), *again = new_image(alloc);
    rp_rng rng;
    rp_buf out;
    rp_status st;

    rp_rng_init(&rng, 11);
    rp_buf_init(&out, alloc);
    make_block(image, &rng, 256, 8);
    st = rp_image_write(image, &out);
    if (st == RP_OK) st = rp_image_read(again, out.data, out.size, NULL);
    rp_buf_deinit(&out);
    free_image(image);
    free_image(again);
    return st;
}

static void blocks_survive_running_out_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(round_trip);
}

static rp_table_state some_state(rp_signature *signature)
{
    rp_table_state s = {
        .options = {.name = "replay",
                    .sampler = {RP_PRIORITIZED, 0.7},
                    .remover = {RP_FIFO, 0},
                    .limiter = {1.5, 10, -3.25, INFINITY},
                    .max_size = 1000,
                    .max_bytes = 123456789,
                    .max_times_sampled = 7,
                    .soft_limit = true,
                    .signature = signature},
        .limiter = {{1.5, 10, -3.25, INFINITY}, 100, 50, 20, 0.125, -3.375, INFINITY},
        .rng = {{1, 2, 3, UINT64_MAX}},
        .max_priority = 17.5,
        .updates = 5,
        .evictions = 6,
        .unique_samples = 40,
        .deleted_episodes = 3,
        .next_sequence = 101,
        .next_turn = 106,
        .paused = RP_SIDE_SAMPLES,
        .times_altered = true,
        .slot_capacity = 256,
        .slots_used = 90,
        .live = 80,
        .first_free = 12,
        .set_counts = {4, 0},
    };
    return s;
}

static rp_signature *some_signature(const rp_allocator *alloc)
{
    const rp_spec columns[] = {{"a", RP_FLOAT32, {.rank = 2, .dims = {-1, 4}}},
                               {"b", RP_STRING, {.rank = 1, .dims = {-1}}}};
    rp_signature *signature = NULL;

    return rp_signature_flat(alloc, columns, 2, &signature, NULL) == RP_OK ? signature : NULL;
}

static void the_state_of_a_table_round_trips_to_the_bit(void **state)
{
    for (int with = 0; with < 2; with++) {
        rp_signature *signature = with ? some_signature(rp_allocator_default()) : NULL;
        rp_table_state before = some_state(signature), after;
        rp_error err;
        rp_buf out, again;
        bool same;

        (void)state;
        rp_buf_init(&out, rp_allocator_default());
        rp_buf_init(&again, rp_allocator_default());
        rp_image_write_table(&out, &before);
        assert_ok_err(
            rp_image_read_table(rp_allocator_default(), out.data, out.size, &after, &err),
            &err);
        assert_string_equal(after.options.name, "replay");
        assert_ok(rp_image_same_signature(rp_allocator_default(), before.options.signature,
                                          after.options.signature, &same));
        assert_true(same);
        assert_memory_equal(&before.limiter, &after.limiter, sizeof before.limiter);
        assert_int_equal(before.next_turn, after.next_turn);
        rp_image_write_table(&again, &after);
        assert_int_equal(out.size, again.size);
        assert_memory_equal(out.data, again.data, out.size);
        rp_image_release_table(rp_allocator_default(), &after);
        rp_buf_deinit(&out);
        rp_buf_deinit(&again);
        rp_signature_unref(signature);
    }
}

static void damaged_states_are_refused_or_are_states(void **state)
{
    rp_signature *signature = some_signature(rp_allocator_default());
    rp_table_state s = some_state(signature), read;
    rp_error err;
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_image_write_table(&out, &s);
    for (size_t i = 0; i < 8 * out.size; i++) {
        rp_status st;

        out.data[i / 8] ^= (uint8_t)(1 << i % 8);
        st = rp_image_read_table(rp_allocator_default(), out.data, out.size, &read, &err);
        assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
        if (st == RP_OK) rp_image_release_table(rp_allocator_default(), &read);
        out.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    rp_buf_deinit(&out);
    rp_signature_unref(signature);
}

static rp_status state_round_trip(const rp_allocator *alloc)
{
    rp_signature *signature = some_signature(alloc);
    rp_table_state s, read;
    rp_status st = RP_NO_RESOURCE;
    rp_buf out;

    if (signature == NULL) return st;
    s = some_state(signature);
    rp_buf_init(&out, alloc);
    rp_image_write_table(&out, &s);
    if (!out.bad) st = rp_image_read_table(alloc, out.data, out.size, &read, NULL);
    if (st == RP_OK) rp_image_release_table(alloc, &read);
    rp_buf_deinit(&out);
    rp_signature_unref(signature);
    return st;
}

static void states_survive_running_out_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(state_round_trip);
}

enum { CHUNKS = 40, ROWS = 300 };

/* An item with random slices of random chunks. */
static rp_trajectory *make_item(rp_rng *rng, rp_chunk *const *chunks)
{
    static rp_chunk_slice slices[CHUNKS][100];
    rp_slices columns[CHUNKS];
    size_t count = 1 + rp_rng_below(rng, CHUNKS), few = 1 + rp_rng_below(rng, CHUNKS);
    rp_trajectory *out = NULL;

    for (size_t c = 0; c < count; c++) {
        size_t n = rp_rng_below(rng, 4) == 0 ? 1 + rp_rng_below(rng, 100) : 1;

        for (size_t i = 0; i < n; i++) {
            uint32_t offset = (uint32_t)rp_rng_below(rng, ROWS);

            slices[c][i] =
                (rp_chunk_slice){.chunk = chunks[rp_rng_below(rng, few)],
                                 .offset = offset,
                                 .length = 1 + (uint32_t)rp_rng_below(rng, ROWS - offset)};
        }
        columns[c] = (rp_slices){slices[c], n, false};
    }
    assert_ok(rp_trajectory_new(rp_allocator_default(), columns, count, &out, NULL));
    return out;
}

static void set_extremes(rp_image_slot *slot, rp_rng *rng)
{
    slot->live = true;
    slot->key = rp_rng_next(rng);
    slot->inserted_at_ns = (int64_t)rp_rng_next(rng);
    slot->sequence = rp_rng_next(rng) & RP_MAX_SEQUENCE;
    slot->turn = rp_rng_next(rng);
    slot->times_sampled = (int32_t)rp_rng_next(rng);
}

/* Locations as far apart as they can be. */
static void add_slices(rp_image *image, size_t slot, const rp_trajectory *t, rp_rng *rng)
{
    for (size_t c = 0; c < t->column_count; c++) {
        rp_slices column = rp_trajectory_slices(t, c);

        rp_image_add_column(image, slot, true);
        for (size_t i = 0; i < column.slice_count; i++) {
            const rp_chunk_slice *s = &column.slices[i];
            uint64_t key = s->chunk->origin.key;
            rp_disk_location at = {1 + (key % 2) * (UINT32_MAX - 1), 64 + (key << 24),
                                   RP_MAX_RECORD_BYTES - (uint32_t)rp_rng_below(rng, 2)};

            rp_image_add_slice(image, &(rp_image_slice){rp_image_add_location(image, &at),
                                                        s->column, s->offset, s->length});
        }
    }
}

/* The size of the reserve depends on this bound. */
static void a_block_is_no_larger_than_its_items_say(void **state)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_image *image = new_image(alloc);
    rp_rng rng;
    rp_chunk *chunks[CHUNKS];
    rp_buf out;

    (void)state;
    rp_rng_init(&rng, 11);
    rp_buf_init(&out, alloc);
    for (size_t i = 0; i < CHUNKS; i++) chunks[i] = rp_test_ints(i, RP_CODEC_NONE, ROWS, 1);
    for (int round = 0; round < 20; round++) {
        uint64_t table = 0, most;

        assert_ok(rp_image_table_bytes(alloc, NULL, &table));
        most = table; /* for the part of the block without items */
        rp_image_clear(image);
        rp_buf_clear(&out);
        for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
            rp_trajectory *t;

            image->slots[i].next = UINT32_MAX - 2;
            if (rp_rng_below(&rng, 20) < (uint64_t)round) continue;
            t = make_item(&rng, chunks);
            set_extremes(&image->slots[i], &rng);
            add_slices(image, i, t, &rng);
            most += rp_trajectory_image(t) - RP_IMAGE_SETS_BYTES;
            rp_trajectory_unref(t);
        }
        assert_ok(rp_image_write(image, &out));
        assert_true(out.size + RP_RECORD_HEADER_BYTES <= most);
        assert_true(3 * out.size > most - table); /* and it is not far off */
    }
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(chunks[i]);
    rp_buf_deinit(&out);
    free_image(image);
}

static void a_table_is_no_larger_than_its_bound(void **state)
{
    rp_table_state table = {.options = rp_test_options("t", RP_UNIFORM, RP_FIFO, INT64_MAX)};
    rp_spec spec = {"column", RP_FLOAT32, {.rank = 0}};
    uint64_t most = 0;
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    assert_ok(
        rp_signature_flat(rp_allocator_default(), &spec, 1, &table.options.signature, NULL));
    table.options.max_times_sampled = INT32_MAX;
    table.first_free = UINT32_MAX;
    rp_image_write_table(&out, &table);
    assert_ok(rp_image_table_bytes(rp_allocator_default(), table.options.signature, &most));
    assert_true(out.size + RP_RECORD_HEADER_BYTES + 10 + 2048 <= most);
    rp_signature_unref(table.options.signature);
    rp_buf_deinit(&out);
}

RP_TESTS(image)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_round_trip),
        cmocka_unit_test(an_item_of_one_column_takes_at_most_45_bytes),
        cmocka_unit_test(damaged_blocks_are_refused_or_are_blocks),
        cmocka_unit_test(announced_counts_are_checked),
        cmocka_unit_test(blocks_survive_running_out_of_memory),
        cmocka_unit_test(the_state_of_a_table_round_trips_to_the_bit),
        cmocka_unit_test(damaged_states_are_refused_or_are_states),
        cmocka_unit_test(states_survive_running_out_of_memory),
        cmocka_unit_test(a_block_is_no_larger_than_its_items_say),
        cmocka_unit_test(a_table_is_no_larger_than_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
