/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store that is larger than memory: checkpoints of chunks that are already on disk,
 * and recovery within max_memory, with and without a journal. */
#include <unistd.h>

#include "reprise/durable.h"
#include "rollouts/rollout_set.h"
#include "store/store.h"
#include "support/tier_rig.h"

enum { MEMORY = 1 << 20, ROW = 3000, ITEMS = 600 };

typedef struct stage {
    rp_store *store;
    rp_table *table;
    rp_durable *durable;
    rp_error err;
} stage;

static void open_stage(stage *s, const char *directory, rp_durability mode, uint64_t max_memory)
{
    rp_table_options table = rp_test_options("t", RP_UNIFORM, RP_FIFO, 1 << 20);
    rp_durable_options options = {.directory = directory,
                                  .mode = mode,
                                  .period_ns = RP_FOREVER,
                                  .segment_bytes = 1 << 20,
                                  .max_memory = max_memory,
                                  .checkpoint_at_end = mode == RP_DURABLE_CHECKPOINT};
    rp_store_options store = {.seed = 9};

    assert_ok(rp_store_new(&store, &s->store, NULL));
    assert_ok(rp_store_add_table(s->store, &table, &s->table, NULL));
    assert_ok_err(rp_durable_open(&options, s->store, &s->durable, &s->err), &s->err);
}

/* With a disk tier, rollouts take a third of the memory. */
static void check_rollouts(stage *s, uint64_t max_memory)
{
    assert_int_equal(rp_rollout_set_most_bytes(rp_store_rollouts(s->store)),
                     rp_rollout_set_default_bytes(max_memory));
}

static void close_stage(stage *s)
{
    assert_ok_err(rp_durable_close(s->durable, &s->err), &s->err);
    rp_store_free(s->store);
}

static void fill(stage *s, uint64_t from, uint64_t to)
{
    for (uint64_t key = from; key < to; key++) {
        rp_insert item = {.key = key,
                          .priority = 1,
                          .trajectory = rp_tier_rig_item(rp_allocator_default(), key, ROW),
                          .flags = RP_INSERT_TAKE};
        assert_ok_err(rp_table_insert(s->table, &item, 1, rp_wait_ms(20000), NULL, &s->err),
                      &s->err);
    }
}

/* All but every seventh key are there. */
static void check(stage *s, uint64_t to, uint64_t limit)
{
    rp_durable_info info;

    for (uint64_t key = 1; key < to; key++) {
        rp_sample sample;
        size_t found = 0;

        assert_ok_err(rp_table_peek(s->table, &key, 1, &sample, &found, &s->err), &s->err);
        assert_int_equal(found, key % 7 != 0);
        if (found == 0) continue;
        rp_tier_rig_assert(sample.trajectory, &key, 1, ROW);
        rp_samples_release(&sample, 1);
    }
    if (limit == 0) return;
    rp_durable_get_info(s->durable, &info);
    assert_true(info.resident_bytes <= limit);
    assert_true(info.spilled_bytes > limit);
    assert_true(info.loads > 0);
}

static void drop_sevenths(stage *s, uint64_t to)
{
    for (uint64_t key = 7; key < to; key += 7)
        assert_ok(rp_table_delete(s->table, &key, 1, NULL, NULL));
}

static void run(rp_durability mode)
{
    char directory[] = "tier_durable_XXXXXX", command[64];
    stage s = {0};

    assert_non_null(mkdtemp(directory));
    open_stage(&s, directory, mode, MEMORY);
    check_rollouts(&s, MEMORY);
    fill(&s, 1, ITEMS);
    assert_ok_err(rp_durable_checkpoint(s.durable, rp_wait_ms(60000), NULL, 0, &s.err), &s.err);
    fill(&s, ITEMS, ITEMS + 100);
    drop_sevenths(&s, ITEMS + 100);
    check(&s, ITEMS + 100, MEMORY);
    close_stage(&s);

    open_stage(&s, directory, mode, MEMORY);
    check(&s, ITEMS + 100, MEMORY);
    fill(&s, ITEMS + 100, 2 * ITEMS);
    drop_sevenths(&s, 2 * ITEMS);
    assert_ok_err(rp_durable_checkpoint(s.durable, rp_wait_ms(60000), NULL, 0, &s.err), &s.err);
    check(&s, 2 * ITEMS, MEMORY);
    close_stage(&s);

    open_stage(&s, directory, mode, 0); /* and all of it in memory again */
    check(&s, 2 * ITEMS, 0);
    check_rollouts(&s, 0);
    close_stage(&s);
    (void)snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

static void test_checkpoints(void **state)
{
    (void)state;
    run(RP_DURABLE_CHECKPOINT);
}

static void test_journal(void **state)
{
    (void)state;
    run(RP_DURABLE_INTERVAL);
}

RP_TESTS(tier_durable)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
