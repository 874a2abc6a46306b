/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a table of four times max_memory: the bytes that are allocated for the store,
 * its tier, its segments and its chunks stay within max_memory and the documented overhead
 * (durable/tier/tier.h). Resident memory of the process is not measured, since the C library
 * keeps freed memory for a while. */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "durable/tier/tier.h"
#include "support/fixture.h"
#include "util/mem.h"

enum {
    PAYLOAD = 48000,
    BATCH = 16,
    TRIES = 500, /* a millisecond each */
    /* For an item of one chunk with one column: 320 bytes of chunk, 64 of the tier's, 64 of its
     * place, 80 of trajectory, 64 of slot, and about 60 in the table's map and selectors. */
    METADATA_BYTES = 660,
    /* Buffers of the segment writer and arrays of the tier, 1.5 MiB; the samples in the test's
     * hands, and one chunk for each thread that reads, 1.2 MiB each. */
    FIXED_BYTES = 4 << 20,
};

static size_t max_memory(void)
{
    return rp_test_length(64 << 20, 24 << 20);
}

/* Counts the bytes that are allocated. */
typedef struct counter {
    atomic_size_t now, peak;
    pthread_t main;
    atomic_bool holds; /* other threads that free a chunk's bytes wait */
} counter;

/* Arrays are of round sizes. */
static bool is_payload(size_t size)
{
    return size > PAYLOAD / 2 && size % 64 != 0;
}

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    const rp_allocator *alloc = rp_allocator_default();
    counter *c = ctx;
    size_t now, peak = atomic_load(&c->peak);
    void *result;

    while (atomic_load(&c->holds) && new_size == 0 && is_payload(old_size) &&
           !pthread_equal(pthread_self(), c->main))
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    result = alloc->resize(alloc->ctx, ptr, old_size, new_size);
    if (result == NULL && new_size > 0) return NULL;
    now = atomic_fetch_add(&c->now, new_size - old_size) + new_size - old_size;
    while (now > peak && now < SIZE_MAX / 2 &&
           !atomic_compare_exchange_weak(&c->peak, &peak, now)) {}
    return result;
}

static rp_status put(rp_table *table, const rp_allocator *alloc, uint64_t key, int64_t wait_ms)
{
    size_t payload = PAYLOAD / 2 + (size_t)(key * 2654435761u % PAYLOAD); /* of all sizes */
    rp_insert item = {.key = key,
                      .priority = 1,
                      .trajectory = rp_test_blob_trajectory(alloc, key, key / 100, payload)};
    rp_status st = rp_table_insert(table, &item, 1, rp_wait_ms(wait_ms), NULL, NULL);

    rp_trajectory_unref(item.trajectory);
    return st;
}

static void draw(rp_table *table)
{
    rp_sample_options options = {.count = BATCH};
    rp_sample samples[BATCH];
    size_t drawn;

    assert_ok(rp_table_sample(table, &options, samples, &drawn, rp_wait_none(), NULL));
    rp_samples_release(samples, drawn);
}

typedef struct fixture {
    counter counted;
    rp_allocator alloc;
    char directory[32];
    rp_files *files;
    rp_segments *segments;
    rp_store *store;
    rp_tier *tier;
    rp_table *table;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    rp_store_options store_options = {.alloc = &f->alloc};
    rp_table_options table_options = rp_test_options("t", RP_UNIFORM, RP_FIFO, 1 << 30);
    rp_segments_options segments_options = {.alloc = &f->alloc, .next_number = 1};
    rp_tier_options options = {.max_memory = max_memory()};
    rp_error err;

    assert_non_null(f);
    f->counted.main = pthread_self();
    f->alloc = (rp_allocator){count_resize, &f->counted};
    (void)snprintf(f->directory, sizeof f->directory, "tier_memory_XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    assert_ok(rp_files_open_directory(rp_allocator_default(), f->directory, &f->files, &err));
    segments_options.files = f->files;
    assert_ok(rp_segments_new(&segments_options, &f->segments, &err));
    assert_ok(rp_store_new(&store_options, &f->store, &err));
    assert_ok(rp_store_add_table(f->store, &table_options, &f->table, &err));
    options.store = f->store;
    options.segments = f->segments;
    assert_ok(rp_tier_new(&options, &f->tier, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[64];

    rp_tier_free(f->tier);
    rp_store_free(f->store);
    rp_segments_free(f->segments);
    assert_int_equal(atomic_load(&f->counted.now), 0);
    f->files->ops->free(f->files);
    (void)snprintf(command, sizeof command, "rm -r %s", f->directory);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void expect_at_most(const fixture *f, size_t limit, uint64_t items)
{
    size_t allowed = limit + items * METADATA_BYTES + FIXED_BYTES;
    size_t peak = atomic_load(&f->counted.peak);

    print_message("# %llu items: %zu KiB, of %zu allowed\n", (unsigned long long)items,
                  peak >> 10, allowed >> 10);
    assert_true(peak <= allowed);
    assert_true(peak >= limit / 2); /* it measures something */
}

static void test_resident_memory_stays_within_the_configured_bytes(void **state)
{
    uint64_t count = 4 * max_memory() / PAYLOAD, key = 0;
    fixture *f = *state;

    rp_test_skip_if_emulated();
    while (key < count / 2) assert_ok(put(f->table, &f->alloc, ++key, 60000));
    for (int i = 0; i < 200; i++) draw(f->table); /* the read cache is full then */
    while (key < count) {
        for (int i = 0; i < 32; i++) assert_ok(put(f->table, &f->alloc, ++key, 60000));
        draw(f->table);
    }
    expect_at_most(f, max_memory(), count);
}

/* The spiller cannot free anything, as if it did not get to run: nobody takes the room that it
 * is about to make. */
static void test_memory_is_free_when_it_is_freed_issue_20(void **state)
{
    fixture *f = *state;
    uint64_t key = 0;

    rp_test_skip_if_emulated();
    atomic_store(&f->counted.holds, true);
    for (int tries = 0; tries < TRIES; tries++) /* one that waits is told when room is made */
        while (put(f->table, &f->alloc, key + 1, 1) == RP_OK) key++;
    atomic_store(&f->counted.holds, false);
    expect_at_most(f, max_memory() - max_memory() / 8, key);
    assert_ok(put(f->table, &f->alloc, key + 1, 60000));
}

RP_TESTS(tier_memory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resident_memory_stays_within_the_configured_bytes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_is_free_when_it_is_freed_issue_20, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
