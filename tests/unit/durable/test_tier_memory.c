/* SPDX-License-Identifier: Apache-2.0 */
/* What a table of four times max_memory takes: the memory of the process, as the system counts
 * it, within 5 % of max_memory and what is known to come on top (durable/tier.h). */
#include <sys/stat.h>
#include <unistd.h>

#include "durable/tier.h"
#include "support/fixture.h"
#include "util/mem.h"

enum {
    MEMORY = 64 << 20,
    PAYLOAD = 12000,
    BATCH = 16,
    /* For an item of one chunk with one column: 320 bytes of chunk, 64 of the tier's, 64 of its
     * place, 80 of trajectory, 64 of slot, and about 60 in the table's map and selectors. */
    METADATA_BYTES = 660,
};

/* Bytes of this process in memory. */
static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0, all = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &all, &pages), 2);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void note(size_t *peak)
{
    size_t now = resident();

    if (now > *peak) *peak = now;
}

static void fill(rp_table *table, size_t count, size_t *peak)
{
    for (uint64_t key = 1; key <= count; key++) {
        size_t payload = PAYLOAD / 2 + (size_t)(key * 2654435761u % PAYLOAD); /* of all sizes */
        rp_insert item = {.key = key,
                          .priority = 1,
                          .trajectory = rp_test_blob_trajectory(rp_allocator_default(), key,
                                                                key / 100, payload),
                          .flags = RP_INSERT_TAKE};

        assert_ok(rp_table_insert(table, &item, 1, rp_wait_ms(60000), NULL, NULL));
        if (key % 64 == 0) note(peak);
    }
}

static void draw(rp_table *table, size_t *peak)
{
    rp_sample_options options = {.count = BATCH};
    rp_sample samples[BATCH];
    size_t drawn;

    for (int i = 0; i < 2000; i++) {
        assert_ok(rp_table_sample(table, &options, samples, &drawn, rp_wait_none(), NULL));
        rp_samples_release(samples, drawn);
        if (i % 8 == 0) note(peak);
    }
}

static void test_memory_is_what_was_asked_for(void **state)
{
    size_t count = 4 * (size_t)MEMORY / PAYLOAD, before, peak = 0, allowed;
    rp_table_options table_options = rp_test_options("t", RP_UNIFORM, RP_FIFO, 1 << 30);
    rp_segments_options segments_options = {.alloc = rp_allocator_default(), .next_number = 1};
    rp_tier_options options = {.max_memory = MEMORY};
    char directory[] = "tier_memory_XXXXXX", command[64];
    rp_table *table;
    rp_error err;

    (void)state;
    if (RP_SANITIZED) skip();
    rp_test_skip_if_emulated();
    assert_non_null(mkdtemp(directory));
    assert_ok(rp_files_open_directory(rp_allocator_default(), directory,
                                      &segments_options.files, &err));
    assert_ok(rp_segments_new(&segments_options, &options.segments, &err));
    assert_ok(rp_store_new(NULL, &options.store, &err));
    assert_ok(rp_store_add_table(options.store, &table_options, &table, &err));
    rp_tier *tier = NULL;
    assert_ok(rp_tier_new(&options, &tier, &err));
    before = resident();
    fill(table, count, &peak);
    draw(table, &peak);
    allowed = MEMORY + MEMORY / 20 + count * METADATA_BYTES;
    print_message("# %zu items: %zu MiB, of %zu allowed\n", count, (peak - before) >> 20,
                  allowed >> 20);
    assert_true(peak - before <= allowed);
    assert_true(peak - before >= MEMORY / 2); /* it measures something */
    rp_tier_free(tier);
    rp_store_free(options.store);
    rp_segments_free(options.segments);
    segments_options.files->ops->free(segments_options.files);
    (void)snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
