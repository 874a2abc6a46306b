/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the disk tier serve loads in turn. */
#include "support/tier_rig.h"
#include "table/table.h"
#include "util/mutex.h"

enum { ROW = 4096, MEMORY = 1 << 20, CACHE = 256 << 10, ITEMS = 400, LARGE = 200, TURN = 8 };

/* A disk that does not read while it is closed. */
static struct {
    const rp_files_ops *real;
    rp_mutex mu;
    rp_cond cv;
    bool is_closed;
} gate;

static void pass_gate(void)
{
    rp_mutex_lock(&gate.mu);
    while (gate.is_closed) (void)rp_cond_wait(&gate.cv, &gate.mu, RP_FOREVER);
    rp_cond_signal(&gate.cv); /* each reader wakes the next */
    rp_mutex_unlock(&gate.mu);
}

static void set_gate(bool is_closed)
{
    rp_mutex_lock(&gate.mu);
    gate.is_closed = is_closed;
    rp_cond_signal(&gate.cv);
    rp_mutex_unlock(&gate.mu);
}

static rp_status read_gated(rp_file *file, uint64_t offset, void *data, size_t size,
                            size_t *got, rp_error *err)
{
    pass_gate();
    return gate.real->read(file, offset, data, size, got, err);
}

static rp_status read_into_gated(rp_file *file, uint64_t offset, const rp_read_part *parts,
                                 size_t count, size_t *got, rp_error *err)
{
    pass_gate();
    return gate.real->read_into(file, offset, parts, count, got, err);
}

/* A load, and how many chunks had been read when it was over. */
typedef struct load {
    rp_tier_load base; /* first */
    rp_tier_rig *rig;
    rp_sample samples[LARGE];
    uint64_t loads;
    atomic_bool is_over;
} load;

static void note(rp_tier_load *base)
{
    load *l = (load *)(void *)base;

    l->loads = rp_tier_rig_info(l->rig).loads;
    atomic_store(&l->is_over, true);
}

static void start(load *l, rp_tier_rig *rig, uint64_t first, size_t count)
{
    uint64_t keys[LARGE];
    size_t found;

    memset(l, 0, sizeof *l);
    l->rig = rig;
    l->base = (rp_tier_load){.samples = l->samples, .count = count, .on_done = note};
    for (size_t i = 0; i < count; i++) keys[i] = first + i;
    assert_ok(rp_table_peek_unread(rig->table, keys, count, l->samples, &found, NULL));
    assert_int_equal(found, count);
    assert_false(rp_tier_start_load(rig->tier, &l->base));
}

static void finish(load *l, size_t count)
{
    rp_tier_rig_await(atomic_load(&l->is_over));
    assert_ok(l->base.status);
    rp_samples_release(l->samples, count);
}

static void a_small_load_does_not_wait_for_large_ones(void **state)
{
    rp_table_options options = rp_test_options("t", RP_FIFO, RP_FIFO, 1 << 20);
    static load large, larger, small;
    rp_files_ops ops;
    rp_tier_rig rig;

    (void)state;
    rp_tier_rig_init(&rig, NULL, &options, MEMORY, CACHE);
    for (uint64_t key = 1; key < ITEMS + 200; key++)
        assert_ok(rp_tier_rig_put(&rig, key, ROW, 20000));
    gate.real = rig.files->ops;
    rp_mutex_init(&gate.mu, RP_RANK_WAITER);
    rp_cond_init(&gate.cv);
    ops = *rig.files->ops;
    ops.read = read_gated;
    ops.read_into = read_into_gated;
    rig.files->ops = &ops;
    set_gate(true);
    start(&large, &rig, 1, LARGE);
    start(&larger, &rig, LARGE + 1, LARGE - 1);
    start(&small, &rig, 2 * LARGE, 1);
    set_gate(false);
    finish(&small, 1);
    /* A turn of each large load and its own; with four readers, about one more. */
    assert_true(small.loads <= 4 * TURN);
    finish(&large, LARGE);
    finish(&larger, LARGE - 1);
    assert_true(large.loads > small.loads && larger.loads > small.loads);
    rig.files->ops = gate.real;
    rp_tier_rig_deinit(&rig);
    rp_cond_deinit(&gate.cv);
    rp_mutex_deinit(&gate.mu);
}

RP_TESTS(tier_turns)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_load_does_not_wait_for_large_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
