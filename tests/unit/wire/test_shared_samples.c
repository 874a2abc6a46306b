/* SPDX-License-Identifier: Apache-2.0 */
/* Samples whose chunks are in shared memory: written and read again, also from servers that
 * send invalid references. */
#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "util/mem.h"
#include "wire/fields.h"
#include "wire/sample_response.h"
#include "wire/sample_response_read.h"

enum { MEMORY = 1 << 16, COLUMNS = 1000 };

/* Both sides in one process: the memory, and the holds that have been taken. */
typedef struct both {
    rp_allocator alloc;
    uint8_t *memory;
    size_t known; /* bytes of it that the reader sees */
    size_t holds, refs, taken;
    rp_message_pool pool;
    rp_message *reply;
    rp_sample_reader *reader;
    rp_shared_source source;
    rp_trajectory *trajectory;
} both;

typedef struct one_hold {
    both *b;
    size_t refs;
} one_hold;

static const uint8_t *find(void *ctx, uint64_t offset, uint64_t size)
{
    both *b = ctx;

    return offset <= b->known && size <= b->known - offset ? b->memory + offset : NULL;
}

static void *take(void *ctx, uint64_t id)
{
    both *b = ctx;
    one_hold *h = rp_alloc(&b->alloc, sizeof *h);

    if (h == NULL) return NULL;
    assert_int_not_equal(id, 0);
    *h = (one_hold){b, 1};
    b->holds++;
    b->taken++;
    return h;
}

static void ref(void *hold)
{
    ((one_hold *)hold)->refs++;
}

static void unref(void *hold)
{
    one_hold *h = hold;
    both *b = h->b;

    if (--h->refs > 0) return;
    b->holds--;
    rp_release(&b->alloc, h, sizeof *h);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* A trajectory of one chunk in the memory and one that is not. */
static rp_status make_trajectory(both *b)
{
    rp_chunk *far = NULL, *near = NULL, *copy = NULL;
    rp_slices columns[2];
    rp_chunk_slice slices[2];
    rp_status st = rp_test_try_ints(&b->alloc, 1, RP_CODEC_NONE, 2, COLUMNS, &far);

    if (st == RP_OK) st = rp_test_try_ints(&b->alloc, 2, RP_CODEC_NONE, 2, 3, &near);
    if (st == RP_OK) {
        memcpy(b->memory + 64, far->wire, far->wire_bytes);
        b->known = 64 + far->wire_bytes;
        st = rp_chunk_adopt(&b->alloc, b->memory + 64, far->wire_bytes, NULL,
                            &(rp_chunk_owner){nothing, NULL}, &copy, NULL);
    }
    if (st == RP_OK) {
        slices[0] = (rp_chunk_slice){copy, 0, 0, 2};
        slices[1] = (rp_chunk_slice){near, 0, 0, 1};
        columns[0] = (rp_slices){&slices[0], 1, false};
        columns[1] = (rp_slices){&slices[1], 1, false};
        st = rp_trajectory_new(&b->alloc, columns, 2, &b->trajectory, NULL);
    }
    rp_chunk_unref(far);
    rp_chunk_unref(near);
    rp_chunk_unref(copy);
    return st;
}

static rp_status set_up(both *b, const rp_allocator *alloc)
{
    rp_status st;

    *b = (both){.alloc = *alloc};
    b->memory = calloc(1, MEMORY);
    assert_non_null(b->memory);
    b->source = (rp_shared_source){find, take, ref, unref, b};
    rp_message_pool_init(&b->pool, &b->alloc);
    st = rp_sample_reader_new(&b->alloc, NULL, &b->reader, NULL);
    if (st == RP_OK) st = make_trajectory(b);
    if (st == RP_OK) {
        b->reply = rp_message_new(&b->pool);
        if (b->reply == NULL) st = RP_NO_RESOURCE;
    }
    if (st == RP_OK) rp_sample_reader_share(b->reader, &b->source);
    return st;
}

static void tear_down(both *b)
{
    rp_sample_reader_free(b->reader);
    rp_trajectory_unref(b->trajectory);
    rp_message_release(&b->pool, b->reply);
    rp_message_pool_deinit(&b->pool);
    assert_int_equal(b->holds, 0);
    free(b->memory);
}

static bool append(both *b, uint64_t hold)
{
    const rp_sample sample = {.key = 5, .priority = 1, .trajectory = b->trajectory};
    const rp_sample_shared shared = {b->memory, MEMORY, 4096, hold};

    return rp_sample_entry_append(b->reply, &sample, "t", 1, 0, b->trajectory->chunk_count,
                                  &shared);
}

static rp_status read(both *b, rp_sample *out, size_t capacity, size_t *count, rp_error *err)
{
    rp_sample_reader_open(b->reader, b->reply->bytes.data + RP_GRPC_PREFIX,
                          b->reply->bytes.size - RP_GRPC_PREFIX, NULL);
    return rp_sample_reader_next(b->reader, out, capacity, count, err);
}

static void large_chunks_stay_where_they_are(void **state)
{
    (void)state;
    rp_sample samples[4];
    size_t count;
    rp_error err;
    both b;

    assert_ok(set_up(&b, rp_allocator_default()));
    assert_true(append(&b, 1));
    assert_true(append(&b, 2)); /* the same chunk: it is there already */
    assert_true(b.reply->bytes.size < 1000);
    assert_int_equal(b.reply->borrowed, 0);
    assert_ok_err(read(&b, samples, 4, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(b.taken, 2);
    assert_int_equal(b.holds, 1); /* the second has nothing of its own */
    for (size_t i = 0; i < 2; i++) {
        rp_trajectory *t = samples[i].trajectory;
        assert_int_equal(t->chunk_count, 2);
        assert_ptr_equal(rp_trajectory_slices(t, 0).slices[0].chunk->wire, b.memory + 64);
    }
    rp_trajectory_unref(samples[0].trajectory);
    assert_int_equal(b.holds, 1);
    rp_trajectory_unref(samples[1].trajectory);
    assert_int_equal(b.holds, 0);
    tear_down(&b);
}

static void a_reader_that_shares_nothing_refuses_holds(void **state)
{
    (void)state;
    rp_sample sample;
    size_t count;
    rp_error err;
    both b;

    assert_ok(set_up(&b, rp_allocator_default()));
    assert_true(append(&b, 1));
    rp_sample_reader_share(b.reader, NULL);
    assert_fails(read(&b, &sample, 1, &count, &err), RP_CORRUPT, &err, "not shared");
    tear_down(&b);
}

static void missing_chunks_are_refused(void **state)
{
    (void)state;
    rp_sample sample;
    size_t count;
    rp_error err;
    both b;

    assert_ok(set_up(&b, rp_allocator_default()));
    assert_true(append(&b, 1));
    b.known--;
    assert_fails(read(&b, &sample, 1, &count, &err), RP_CORRUPT, &err, "not in the memory");
    b.known++;
    memset(b.memory + 64, 0xff, 20); /* what stands there is no chunk */
    assert_int_equal(read(&b, &sample, 1, &count, &err), RP_CORRUPT);
    assert_int_equal(count, 0);
    tear_down(&b);
}

/* Hand-made entries: an info that is right, then what the test says. */
static void put_entry(both *b, void (*put)(rp_buf *out))
{
    const rp_sample sample = {.key = 5, .priority = 1, .trajectory = b->trajectory};
    rp_buf *out = &b->reply->bytes;
    size_t mark = rp_wire_begin(out, 1), size = rp_sample_info_size(&sample, 1);
    uint8_t *info = malloc(size);

    assert_ptr_equal(rp_sample_info_write(info, &sample, "t", 1), info + size);
    rp_wire_put_bytes(out, 1, info, size);
    put(out);
    rp_wire_end(out, mark);
    free(info);
}

static void put_two_holds(rp_buf *out)
{
    rp_wire_put_number(out, 4, 1);
    rp_wire_put_number(out, 4, 2);
}

static void put_no_hold(rp_buf *out)
{
    size_t mark = rp_wire_begin(out, 5);

    rp_wire_put_number(out, 1, 64);
    rp_wire_put_number(out, 2, 100);
    rp_wire_end(out, mark);
}

static void put_far_away(rp_buf *out)
{
    size_t mark;

    rp_wire_put_number(out, 4, 1);
    mark = rp_wire_begin(out, 5);
    rp_wire_put_number(out, 1, UINT64_MAX - 10);
    rp_wire_put_number(out, 2, 100);
    rp_wire_end(out, mark);
}

static void put_broken_place(rp_buf *out)
{
    rp_wire_put_number(out, 4, 1);
    rp_wire_put_bytes(out, 5, "\x08\xff", 2);
}

static void put_missing_chunk(rp_buf *out)
{
    rp_wire_put_number(out, 4, 1);
    rp_wire_put_number(out, 3, 1);
}

static void inconsistent_entries_are_refused(void **state)
{
    (void)state;
    static const struct {
        void (*put)(rp_buf *out);
        const char *part;
    } cases[] = {
        {put_two_holds, "a second one"},     {put_no_hold, "nothing holds"},
        {put_far_away, "not in the memory"}, {put_broken_place, "SharedChunk"},
        {put_missing_chunk, "did not come"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_sample sample;
        size_t count;
        rp_error err;
        both b;

        assert_ok(set_up(&b, rp_allocator_default()));
        put_entry(&b, cases[i].put);
        assert_fails(read(&b, &sample, 1, &count, &err), RP_CORRUPT, &err, cases[i].part);
        assert_int_equal(b.holds, 0);
        tear_down(&b);
    }
}

static rp_status write_and_read(const rp_allocator *alloc)
{
    rp_sample samples[2];
    size_t count = 0;
    rp_error err;
    both b;
    rp_status st = set_up(&b, alloc);

    if (st == RP_OK && !(append(&b, 1) && append(&b, 2))) st = RP_NO_RESOURCE;
    if (st == RP_OK) st = read(&b, samples, 2, &count, &err);
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(samples[i].trajectory);
    tear_down(&b);
    return st;
}

static void memory_that_runs_out_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(write_and_read);
}

RP_TESTS(shared_samples)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_chunks_stay_where_they_are),
        cmocka_unit_test(a_reader_that_shares_nothing_refuses_holds),
        cmocka_unit_test(missing_chunks_are_refused),
        cmocka_unit_test(inconsistent_entries_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
