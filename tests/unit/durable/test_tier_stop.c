/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier stops while its spiller releases chunks. */
#include <pthread.h>
#include <unistd.h>

#include "durable/tier/tier_inside.h"
#include "support/tier_rig.h"

enum { ROW = 4096, MEMORY = 1 << 20, CACHE = 256 << 10, ITEMS = 200 };

/* An allocator that holds up the spiller at its first free, until the tier stops. */
static struct {
    rp_allocator inner;
    rp_tier *tier;
    atomic_bool is_armed, has_stopped_here, is_reset;
} spy;

static bool is_stopping(rp_tier *tier)
{
    bool stopping;

    rp_mutex_lock(&tier->mu);
    stopping = tier->stopping;
    rp_mutex_unlock(&tier->mu);
    return stopping;
}

static void *watched_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (ptr != NULL && new_size == 0 && atomic_load(&spy.is_armed) &&
        pthread_equal(pthread_self(), spy.tier->spiller) &&
        atomic_exchange(&spy.is_armed, false)) {
        atomic_store(&spy.has_stopped_here, true);
        while (!is_stopping(spy.tier)) (void)usleep(1000);
    }
    return spy.inner.resize(spy.inner.ctx, ptr, old_size, new_size);
}

static void await_idle_spiller(rp_tier *tier)
{
    for (bool waits = false; !waits;) {
        rp_mutex_lock(&tier->mu);
        waits = tier->spiller_waits;
        rp_mutex_unlock(&tier->mu);
        if (!waits) (void)usleep(1000);
    }
}

static void *free_after_reset(void *user)
{
    while (!atomic_load(&spy.is_reset) || !atomic_load(&spy.has_stopped_here))
        (void)usleep(1000);
    rp_tier_free(user);
    return NULL;
}

static void a_tier_stops_while_its_spiller_releases_the_cache(void **state)
{
    rp_table_options options = rp_test_options("t", RP_FIFO, RP_FIFO, 1 << 20);
    rp_tier_rig rig;
    pthread_t thread;

    (void)state;
    memset(&spy, 0, sizeof spy);
    rp_tier_rig_init(&rig, NULL, &options, MEMORY, CACHE);
    spy.inner = rig.tier->alloc;
    rig.tier->alloc = (rp_allocator){.resize = watched_resize};
    for (uint64_t key = 1; key < ITEMS; key++)
        assert_ok(rp_tier_rig_put(&rig, key, ROW, 20000));
    for (uint64_t key = 1; key < ITEMS; key++) { /* fills the read cache */
        rp_sample sample;
        size_t found = 0;

        assert_ok(rp_table_peek(rig.table, &key, 1, &sample, &found, NULL));
        assert_int_equal(found, 1);
        rp_samples_release(&sample, 1);
    }
    assert_true(rp_tier_rig_info(&rig).cached_bytes > 0);
    await_idle_spiller(rig.tier);
    spy.tier = rig.tier;
    atomic_store(&spy.is_armed, true);
    assert_int_equal(pthread_create(&thread, NULL, free_after_reset, rig.tier), 0);
    assert_ok(rp_table_reset(rig.table, NULL)); /* the spiller releases the cached chunks */
    atomic_store(&spy.is_reset, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rig.tier = NULL;
    rp_tier_rig_deinit(&rig);
}

RP_TESTS(tier_stop)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tier_stops_while_its_spiller_releases_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
