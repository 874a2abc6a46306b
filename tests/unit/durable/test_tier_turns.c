/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the disk tier serve loads in turn. */
#include <limits.h>

#include "support/tier_rig.h"
#include "table/table.h"
#include "util/mutex.h"

enum { ROW = 4096, MEMORY = 1 << 20, CACHE = 256 << 10, ITEMS = 400, LARGE = 200, TURN = 8 };

/* A disk that allows so many reads. */
static struct {
    const rp_files_ops *real;
    rp_mutex mu;
    rp_cond cv;
    int left;
} gate;

static void pass_gate(void)
{
    rp_mutex_lock(&gate.mu);
    while (gate.left == 0) (void)rp_cond_wait(&gate.cv, &gate.mu, RP_FOREVER);
    gate.left--;
    rp_cond_signal(&gate.cv); /* each reader wakes the next */
    rp_mutex_unlock(&gate.mu);
}

static void set_gate(int left)
{
    rp_mutex_lock(&gate.mu);
    gate.left = left;
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

typedef struct load {
    rp_tier_load base; /* first */
    rp_sample samples[LARGE];
    atomic_bool is_over;
} load;

static void note(rp_tier_load *base)
{
    load *l = (load *)(void *)base;

    atomic_store(&l->is_over, true);
}

static void start(load *l, rp_tier_rig *rig, uint64_t first, size_t count)
{
    uint64_t keys[LARGE];
    size_t found;

    memset(l, 0, sizeof *l);
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
    set_gate(0);
    start(&large, &rig, 1, LARGE);
    start(&larger, &rig, LARGE + 1, LARGE - 1);
    start(&small, &rig, 2 * LARGE, 1);
    /* A turn of each large load, its own, and one more, since several threads read. */
    set_gate(4 * TURN);
    finish(&small, 1);
    assert_false(atomic_load(&large.is_over) || atomic_load(&larger.is_over));
    set_gate(INT_MAX);
    finish(&large, LARGE);
    finish(&larger, LARGE - 1);
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
