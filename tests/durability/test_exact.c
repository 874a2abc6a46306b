/* SPDX-License-Identifier: Apache-2.0 */
/* Exact restore. For every sampler and limiter, with removers in turn, a store is filled at
 * random, saved and loaded, from checkpoints only and from a checkpoint and a journal. The
 * digests of both stores must be equal, and so must be all results of the same further
 * operations: keys, order, ties, probabilities to the bit, decisions of the limiter.
 * RP_TEST_SCALE multiplies the 20,000 operations of each. */
#include <stdio.h>
#include <string.h>

#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "table/snapshot/cut.h"
#include "util/rng.h"

enum { OPERATIONS = 20000, BEFORE = 3000, KEYS = 400, POOL = 64, MOST = 24, COMPARE = 997 };

typedef struct side {
    rp_files *files;
    rp_store *store;
    rp_durable *durable;
    rp_table *table;
    rp_trajectory *pool[POOL];
    int64_t wall_ns;
} side;

static int64_t read_wall(void *ctx)
{
    return *(int64_t *)ctx;
}

/* Makes trajectories to insert. A loaded chunk is another object than the saved one, so later
 * inserts must use chunks that are new to both sides. */
static void fill_pool(side *s, uint64_t first)
{
    rp_chunk *before = NULL;

    for (size_t i = 0; i < POOL; i++) {
        rp_chunk *chunk =
            rp_test_try_blob(rp_allocator_default(), first + i, 10 * first + i / 5,
                             20 + 11 * ((i + 1) / 3 % 7)); /* equal for joined chunks */
        rp_chunk *both[2] = {chunk, before};

        assert_non_null(chunk);
        rp_trajectory_unref(s->pool[i]);
        s->pool[i] = rp_test_try_join(rp_allocator_default(), both,
                                      before != NULL && i % 3 == 0 ? 2 : 1);
        assert_non_null(s->pool[i]);
        rp_chunk_unref(before);
        before = chunk;
    }
    rp_chunk_unref(before);
}

static void open_side(side *s, rp_sim *disk, const rp_table_options *table, rp_durability mode)
{
    rp_store_options store = {.seed = 11, .wall_ns = read_wall, .wall_ctx = &s->wall_ns};
    rp_durable_options options = {
        .directory = "exact", .mode = mode, .period_ns = RP_FOREVER, .segment_bytes = 1 << 16};
    rp_error err = {0};

    memset(s, 0, sizeof *s);
    s->files = rp_sim_mount(disk);
    fill_pool(s, 100);
    assert_ok_err(rp_store_new(&store, &s->store, &err), &err);
    assert_ok_err(rp_store_add_table(s->store, table, &s->table, &err), &err);
    assert_ok_err(rp_durable_open_on(s->files, &options, s->store, &s->durable, &err), &err);
    s->table = rp_test_table(s->store, table->name);
    assert_non_null(s->table);
}

static void close_side(side *s)
{
    rp_error err = {0};

    assert_true(rp_table_check(s->table));
    assert_ok_err(rp_durable_close(s->durable, &err), &err);
    for (size_t i = 0; i < POOL; i++) rp_trajectory_unref(s->pool[i]);
    rp_store_free(s->store);
    s->files->ops->free(s->files);
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return hash;
}
#define MIX(hash, value) ((hash) = mix((hash), &(value), sizeof(value)))

static uint64_t do_insert(side *s, rp_rng *rng, uint64_t hash)
{
    rp_insert items[MOST];
    size_t count = 1 + rp_rng_below(rng, MOST - 1), inserted = 0;
    rp_status st;

    for (size_t i = 0; i < count; i++)
        items[i] = (rp_insert){.key = rp_rng_below(rng, KEYS),
                               .priority = (double)rp_rng_below(rng, 12) / 4,
                               .flags = rp_rng_below(rng, 6) == 0 ? RP_INSERT_MAX_PRIORITY : 0,
                               .times_sampled = (int32_t)rp_rng_below(rng, 2),
                               .trajectory = s->pool[rp_rng_below(rng, POOL)]};
    st = rp_table_insert(s->table, items, count, rp_wait_none(), &inserted, NULL);
    MIX(hash, st);
    MIX(hash, inserted);
    return hash;
}

static uint64_t do_sample(side *s, rp_rng *rng, uint64_t hash)
{
    rp_sample samples[MOST];
    rp_sample_options o = {.count = 1 + rp_rng_below(rng, MOST - 1),
                           .distinct = rp_rng_below(rng, 3) == 0,
                           .at_least = 1};
    size_t drawn = 0;
    rp_status st = rp_table_sample(s->table, &o, samples, &drawn, rp_wait_none(), NULL);

    MIX(hash, st);
    for (size_t i = 0; i < drawn; i++) {
        MIX(hash, samples[i].key);
        MIX(hash, samples[i].priority);
        MIX(hash, samples[i].probability);
        MIX(hash, samples[i].table_size);
        MIX(hash, samples[i].times_sampled);
        MIX(hash, samples[i].inserted_at_ns);
    }
    rp_samples_release(samples, drawn);
    return hash;
}

static uint64_t do_keys(side *s, rp_rng *rng, bool delete, uint64_t hash)
{
    rp_update updates[MOST];
    uint64_t keys[MOST];
    size_t count = 1 + rp_rng_below(rng, delete ? 5 : MOST - 1), found = 0;
    rp_status st;

    for (size_t i = 0; i < count; i++) {
        keys[i] = rp_rng_below(rng, KEYS);
        updates[i] = (rp_update){keys[i], (double)rp_rng_below(rng, 40) / 8};
    }
    st = delete ? rp_table_delete(s->table, keys, count, &found, NULL)
                : rp_table_update(s->table, updates, count, &found, NULL);
    MIX(hash, st);
    MIX(hash, found);
    return hash;
}

static uint64_t step(side *s, rp_rng *rng, uint64_t hash)
{
    uint64_t dice = rp_rng_below(rng, 1000);
    rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE};

    s->wall_ns += 3;
    if (dice < 420) return do_insert(s, rng, hash);
    if (dice < 760) return do_sample(s, rng, hash);
    if (dice < 900) return do_keys(s, rng, false, hash);
    if (dice < 985) return do_keys(s, rng, true, hash);
    if (dice < 998) {
        rp_status st;

        change.max_size = 100 + (int64_t)rp_rng_below(rng, 250);
        st = rp_table_alter(s->table, &change, NULL);
        MIX(hash, st);
    } else if (rp_rng_below(rng, 20) == 0) {
        rp_status st = rp_table_reset(s->table, NULL);
        MIX(hash, st);
    }
    return hash;
}

static rp_table_options options_of(unsigned sampler, unsigned limiter)
{
    rp_table_options o = rp_test_options("t", (rp_selector_kind)sampler,
                                         (rp_selector_kind)((sampler + 1 + limiter) % 6), 300);

    o.sampler.exponent = 0.6;
    o.remover.exponent = -0.4;
    if (limiter == 1) o.limiter = rp_limiter_ratio(1.5, 5, 80);
    if (limiter == 2) o.limiter = rp_limiter_queue(250);
    if (limiter == 3) o.limiter = rp_limiter_stack(250);
    if (limiter >= 2) o.max_times_sampled = 1;
    if (limiter == 1) o.max_times_sampled = 7;
    if (limiter % 2 == 1) o.max_bytes = 3000;
    return o;
}

static void compare(side *a, side *b, rp_rng *rng, size_t count)
{
    rp_rng other = *rng;
    uint64_t first = 1, second = 1;

    for (size_t i = 0; i < count; i++) {
        first = step(a, rng, first);
        second = step(b, &other, second);
        if (first != second) fail_msg("operation %zu differs", i);
        if (i % COMPARE == 0)
            assert_true(rp_table_digest(a->table) == rp_table_digest(b->table));
    }
    assert_true(rp_table_digest(a->table) == rp_table_digest(b->table));
}

static void explain(const char *what, side *s)
{
    rp_table_info i = rp_test_info_of(s->table);

    print_error("%s: %lld items of %lld, %lld inserts, %lld samples, %lld deletes, %lld "
                "updates, %lld evictions, %lld and %lld episodes, %lld sampled, %llu bytes, "
                "largest %g, total %.17g, difference %g, paused %u\n",
                what, (long long)i.size, (long long)i.max_size, (long long)i.inserts,
                (long long)i.samples, (long long)i.deletes, (long long)i.updates,
                (long long)i.evictions, (long long)i.episodes, (long long)i.deleted_episodes,
                (long long)i.unique_samples, (unsigned long long)i.bytes, i.max_priority,
                i.total_weight, i.limiter_diff, i.paused);
}

static void save_and_load(unsigned sampler, unsigned limiter, rp_durability mode)
{
    rp_table_options options = options_of(sampler, limiter);
    rp_sim *disk = rp_sim_new(), *image;
    rp_error err = {0};
    rp_rng rng;
    side a, b;

    rp_rng_init(&rng, 31 * sampler + limiter + 1);
    open_side(&a, disk, &options, mode);
    for (size_t i = 0; i < BEFORE; i++) (void)step(&a, &rng, 1);
    assert_ok_err(rp_durable_checkpoint(a.durable, rp_wait_forever(), NULL, 0, &err), &err);
    if (mode == RP_DURABLE_CHECKPOINT) { /* an incremental checkpoint with the few changes */
        for (size_t i = 0; i < 5; i++) (void)do_keys(&a, &rng, false, 1);
        assert_ok_err(rp_durable_checkpoint(a.durable, rp_wait_forever(), NULL, 0, &err), &err);
    } else { /* the rest is in the journal */
        for (size_t i = 0; i < BEFORE / 10; i++) (void)step(&a, &rng, 1);
        /* Samples do not wait for the journal, but a pause does. */
        assert_ok(rp_table_pause(a.table, RP_SIDE_SAMPLES, NULL));
        assert_ok(rp_table_resume(a.table, RP_SIDE_SAMPLES, NULL));
    }
    image = rp_sim_copy(disk);
    options.max_size = 1; /* the saved size is used, since it is larger */
    open_side(&b, image, &options, mode);
    b.wall_ns = a.wall_ns;
    if (rp_table_digest(a.table) != rp_table_digest(b.table)) {
        explain("saved", &a);
        explain("loaded", &b);
        fail_msg("sampler %s, limiter %u, mode %d: not the same",
                 rp_selector_name((rp_selector_kind)sampler), limiter, (int)mode);
    }
    /* Later operations are not written. */
    assert_ok_err(rp_durable_close(a.durable, &err), &err);
    assert_ok_err(rp_durable_close(b.durable, &err), &err);
    a.durable = b.durable = NULL;
    fill_pool(&a, 1000);
    fill_pool(&b, 1000);
    compare(&a, &b, &rng, rp_test_scaled(OPERATIONS, 500));
    close_side(&a);
    close_side(&b);
    rp_sim_free(disk);
    rp_sim_free(image);
}

static void a_store_loaded_from_checkpoints_continues_exactly(void **state)
{
    (void)state;
    for (unsigned sampler = 0; sampler < 6; sampler++)
        for (unsigned limiter = 0; limiter < 4; limiter++)
            save_and_load(sampler, limiter, RP_DURABLE_CHECKPOINT);
}

static void a_store_redone_from_its_journal_continues_exactly(void **state)
{
    (void)state;
    for (unsigned sampler = 0; sampler < 6; sampler++)
        for (unsigned limiter = 0; limiter < 4; limiter++)
            save_and_load(sampler, limiter, RP_DURABLE_INTERVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_loaded_from_checkpoints_continues_exactly),
        cmocka_unit_test(a_store_redone_from_its_journal_continues_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
