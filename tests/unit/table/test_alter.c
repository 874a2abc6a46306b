/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are changed while the table is in use. */
#include <math.h>

#include "support/fixture.h"
#include "table/op.h"
#include "table/table.h"

static rp_test_bed bed;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_table *make(const rp_table_options *options)
{
    return rp_test_bed_table(&bed, options);
}

/* A fifo table that holds `count` items with keys from 0. */
static rp_table *filled(int64_t max_size, uint64_t count)
{
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, max_size);
    rp_table *t = make(&o);

    for (uint64_t key = 0; key < count; key++) rp_test_put(t, key, 1, bed.plain);
    return t;
}

static void alter(rp_table *t, rp_table_alteration change)
{
    assert_ok_err(rp_table_alter(t, &change, &bed.err), &bed.err);
    assert_true(rp_table_check(t));
}

static rp_table_alteration size(int64_t max_size)
{
    return (rp_table_alteration){.which = RP_ALTER_MAX_SIZE, .max_size = max_size};
}

static rp_table_alteration bytes(uint64_t max_bytes)
{
    return (rp_table_alteration){.which = RP_ALTER_MAX_BYTES, .max_bytes = max_bytes};
}

static rp_table_alteration times(int32_t max_times_sampled)
{
    return (rp_table_alteration){.which = RP_ALTER_MAX_TIMES_SAMPLED,
                                 .max_times_sampled = max_times_sampled};
}

static rp_table_alteration limiter(rp_limiter_options options)
{
    return (rp_table_alteration){.which = RP_ALTER_LIMITER, .limiter = options};
}

static void only_selected_options_change(void **state)
{
    (void)state;
    rp_table *t = filled(100, 3);
    rp_table_alteration all = {RP_ALTER_MAX_SIZE | RP_ALTER_MAX_BYTES |
                                   RP_ALTER_MAX_TIMES_SAMPLED | RP_ALTER_LIMITER,
                               7, 70, 70000, rp_limiter_queue(50)};
    rp_table_alteration one;
    rp_table_info info;

    one = all;
    one.which = 0;
    alter(t, one);
    info = rp_test_info_of(t);
    assert_true(info.max_size == 100 && info.max_bytes == 0 && info.max_times_sampled == 0);
    assert_true(info.limiter.max_diff > 1e300);
    one.which = RP_ALTER_MAX_BYTES;
    alter(t, one);
    info = rp_test_info_of(t);
    assert_true(info.max_size == 100 && info.max_bytes == 70000 && info.max_times_sampled == 0);
    alter(t, all);

    info = rp_test_info_of(t);
    assert_true(info.max_size == 70 && info.max_bytes == 70000 && info.max_times_sampled == 7);
    assert_true(info.limiter.max_diff == 50 && info.limiter.min_size == 1);
    assert_true(info.size == 3 && info.inserts == 3 && info.evictions == 0);
}

static void bad_values_change_nothing(void **state)
{
    (void)state;
    rp_table *t = filled(100, 3);
    rp_table_info before = rp_test_info_of(t), after;
    rp_table_alteration good = {RP_ALTER_MAX_SIZE | RP_ALTER_MAX_BYTES |
                                    RP_ALTER_MAX_TIMES_SAMPLED | RP_ALTER_LIMITER,
                                1, 1, 1, rp_limiter_queue(5)};
    struct {
        rp_table_alteration change;
        const char *part;
    } bad[] = {
        {good, "max_size must be in 1 .. 2^30, got 0"},
        {good, "max_size must be in"},
        {good, "max_times_sampled must be >= 0, got -1"},
        {good, "samples_per_insert must be in 1e-12 .. 1e+09"},
        {good, "both wait for ever"},
        {good, "changes 0x2f are not all known"},
    };
    bad[0].change.max_size = 0;
    bad[1].change.max_size = ((int64_t)1 << 30) + 1;
    bad[2].change.max_times_sampled = -1;
    bad[3].change.limiter.samples_per_insert = NAN;
    bad[4].change.limiter.max_diff = 0.5;
    bad[5].change.which |= 0x20;

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_fails(rp_table_alter(t, &bad[i].change, &bed.err), RP_INVALID, &bed.err,
                     bad[i].part);

    after = rp_test_info_of(t);
    assert_unchanged(t, &before);
    assert_true(after.max_size == 100 && after.max_bytes == 0 && after.max_times_sampled == 0);
    assert_true(after.limiter.max_diff == before.limiter.max_diff);
}

static void unselected_values_are_not_checked(void **state)
{
    (void)state;
    rp_table_alteration change = size(50); /* a limiter of zeroes beside it */

    alter(filled(100, 1), change);
}

static void closed_table_is_not_altered(void **state)
{
    (void)state;
    rp_table *t = filled(100, 1);
    rp_table_alteration change = size(50);
    rp_table_close(t);

    assert_fails(rp_table_alter(t, &change, &bed.err), RP_CANCELLED, &bed.err, "is closed");
    assert_int_equal(rp_test_info_of(t).max_size, 100);
}

static void smaller_table_evicts_by_its_remover(void **state)
{
    (void)state;
    rp_table *t = filled(1000, 1000);

    alter(t, size(300)); /* more than one block goes */

    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 300 && info.max_size == 300 && info.evictions == 700);
    assert_true(info.deletes == 700 && info.inserts == 1000);
    assert_false(rp_test_has_key(t, 699));
    assert_true(rp_test_has_key(t, 700) && rp_test_has_key(t, 999));
    rp_test_put(t, 5000, 1, bed.plain);
    assert_true(rp_test_info_of(t).size == 300 && !rp_test_has_key(t, 700));
}

static void larger_table_takes_more(void **state)
{
    (void)state;
    rp_table *t = filled(10, 10);

    alter(t, size(2000));
    for (uint64_t key = 10; key < 2000; key++) rp_test_put(t, key, 1, bed.plain);
    assert_true(rp_test_info_of(t).size == 2000 && rp_test_info_of(t).evictions == 0);
    rp_test_put(t, 2000, 1, bed.plain);

    assert_true(rp_test_info_of(t).size == 2000 && rp_test_info_of(t).evictions == 1);
}

static void soft_limit_that_comes_down_evicts_nothing(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("soft", RP_FIFO, RP_FIFO, 100);
    size_t removed;
    o.soft_limit = true;
    rp_table *t = make(&o);
    for (uint64_t key = 0; key < 100; key++) rp_test_put(t, key, 1, bed.plain);

    alter(t, size(40));

    assert_true(rp_test_info_of(t).size == 100 && rp_test_info_of(t).max_size == 40);
    assert_ok(rp_table_trim(t, &removed, NULL));
    assert_int_equal(removed, 60);
}

/* What a deferred extension sees while a table shrinks: no lock is held, others have a turn. */
typedef struct watcher {
    rp_table *table;
    size_t calls, most;
    int64_t last_max_size;
    bool fails; /* there is no memory after the first call */
} watcher;

static void watch(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    watcher *w = ctx;
    rp_table_info info;

    (void)view, (void)events;
    if (w->table == NULL) return;
    w->calls++;
    if (count > w->most) w->most = count;
    info = rp_test_info_of(w->table);
    assert_true(info.size <= info.max_size && info.max_size <= w->last_max_size);
    assert_true(rp_table_check(w->table)); /* T2 holds on the way */
    w->last_max_size = info.max_size;
    if (w->fails) bed.oom.left = 0;
}

static rp_table *watched(watcher *w, uint64_t count)
{
    rp_extension e = {.deferred = true, .ctx = w, .on_events = watch};
    rp_table_options o = rp_test_options("watched", RP_FIFO, RP_FIFO, 4000);
    rp_table *t;

    *w = (watcher){.last_max_size = 4000};
    o.extensions = &e;
    o.extension_count = 1;
    t = make(&o);
    for (uint64_t key = 0; key < count; key++) rp_test_put(t, key, 1, bed.plain);
    w->table = t;
    return t;
}

static void table_shrinks_a_few_hundred_items_at_a_time(void **state)
{
    (void)state;
    watcher w;
    rp_table *t = watched(&w, 3000);

    alter(t, size(10));

    assert_true(w.calls >= 2990 / 256 && w.most <= 256);
    assert_int_equal(rp_test_info_of(t).size, 10);
}

static void shrinking_without_memory_restores_the_bound(void **state)
{
    (void)state;
    watcher w;
    rp_table *t = watched(&w, 3000);
    rp_table_alteration change = {RP_ALTER_MAX_SIZE | RP_ALTER_MAX_TIMES_SAMPLED |
                                      RP_ALTER_LIMITER,
                                  3, 10, 0, rp_limiter_queue(5)};
    rp_table_info info;
    w.fails = true;

    rp_status st = rp_table_alter(t, &change, NULL);

    bed.oom.left = RP_TEST_OOM_UNLIMITED;
    w.fails = false;
    w.table = NULL;
    info = rp_test_info_of(t);
    assert_int_equal(st, RP_NO_RESOURCE);
    assert_true(info.size > 10 && info.size < 3000); /* it came half-way */
    assert_true(info.max_size == 4000 && info.max_times_sampled == 0);
    assert_true(info.limiter.max_diff > 1e300);
    assert_true(rp_table_check(t));
    alter(t, change);
    assert_int_equal(rp_test_info_of(t).size, 10);
}

static void fewer_bytes_evict_until_they_fit(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 1000);
    rp_table *t = make(&o);
    uint64_t each = 0;
    for (uint64_t key = 0; key < 600; key++) {
        rp_trajectory *blob = rp_test_blob_trajectory(&bed.alloc, 1000 + key, key, 100);
        each = rp_trajectory_cost(blob);
        rp_test_put(t, key, 1, blob);
        rp_trajectory_unref(blob);
    }

    alter(t, bytes(10 * each + 1));

    assert_true(rp_test_info_of(t).size == 10 && rp_test_info_of(t).bytes == 10 * each);
    assert_true(rp_test_has_key(t, 599) && !rp_test_has_key(t, 589));
    alter(t, bytes(1)); /* not even one fits */
    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_int_equal(rp_test_try_put(t, 1, 1, bed.plain, &bed.err), RP_NO_RESOURCE);
    alter(t, bytes(0));
    rp_test_put(t, 1, 1, bed.plain);
}

static void items_past_a_new_bound_go_at_their_next_sample(void **state)
{
    (void)state;
    rp_table *t = filled(10, 2);
    for (int i = 0; i < 5; i++) assert_int_equal(rp_test_draw(t).key, 0);

    alter(t, times(3));
    assert_int_equal(rp_test_info_of(t).size, 2);

    assert_true(rp_test_draw(t).key == 0 && !rp_test_has_key(t, 0));
    for (int i = 0; i < 3; i++) assert_int_equal(rp_test_draw(t).key, 1);
    assert_int_equal(rp_test_info_of(t).size, 0);
    alter(t, times(0));
    rp_test_put(t, 7, 1, bed.plain);
    for (int i = 0; i < 9; i++) assert_int_equal(rp_test_draw(t).key, 7);
}

typedef struct call {
    rp_op op;
    rp_insert items[3];
    rp_sample_options options;
    rp_sample samples[3];
    int calls;
} call;

static void count_call(rp_op *op)
{
    call *c = op->user;

    c->calls++;
    if (!op->is_insert) rp_samples_release(c->samples, op->done);
}

static bool start_insert(call *c, rp_table *t, uint64_t key, size_t count)
{
    *c = (call){.op = {.until_ns = RP_FOREVER, .on_done = count_call, .user = c}};
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = bed.plain};
    c->op.items = c->items;
    c->op.count = count;
    return rp_table_start_insert(t, &c->op);
}

static bool start_sample(call *c, rp_table *t, size_t count)
{
    *c = (call){.options = {.count = count},
                .op = {.until_ns = RP_FOREVER, .on_done = count_call, .user = c}};
    c->op.options = &c->options;
    c->op.samples = c->samples;
    return rp_table_start_sample(t, &c->op);
}

static void waiting_inserts_go_on_when_the_bound_allows_it(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 100);
    call c;
    o.limiter = rp_limiter_queue(2);
    rp_table *t = make(&o);
    for (uint64_t key = 0; key < 2; key++) rp_test_put(t, key, 1, bed.plain);
    assert_false(start_insert(&c, t, 10, 3));

    alter(t, limiter(rp_limiter_queue(4)));
    assert_true(c.calls == 0 && c.op.done == 2);
    alter(t, limiter(rp_limiter_queue(5)));

    assert_true(c.calls == 1 && c.op.status == RP_OK && c.op.done == 3);
}

static void waiting_samples_go_on_when_the_bound_allows_it(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 100);
    call c;
    o.limiter = rp_limiter_min_size(10);
    rp_table *t = make(&o);
    for (uint64_t key = 0; key < 5; key++) rp_test_put(t, key, 1, bed.plain);
    assert_false(start_sample(&c, t, 3));

    alter(t, limiter(rp_limiter_min_size(6)));
    assert_int_equal(c.calls, 0);
    alter(t, limiter(rp_limiter_min_size(5)));

    assert_true(c.calls == 1 && c.op.status == RP_OK && c.op.done == 3);
}

/* A queue that gets smaller keeps what is in it, and in order. */
static void smaller_queue_waits_until_it_has_emptied(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 100);
    o.limiter = rp_limiter_queue(5);
    o.max_times_sampled = 1;
    rp_table *t = make(&o);
    for (uint64_t key = 0; key < 5; key++) rp_test_put(t, key, 1, bed.plain);

    alter(t, limiter(rp_limiter_queue(2)));

    for (uint64_t key = 0; key < 3; key++) {
        assert_int_equal(rp_test_try_put(t, 50, 1, bed.plain, NULL), RP_DEADLINE);
        assert_int_equal(rp_test_draw(t).key, key);
    }
    assert_int_equal(rp_test_try_put(t, 50, 1, bed.plain, NULL), RP_DEADLINE);
    assert_int_equal(rp_test_draw(t).key, 3);
    rp_test_put(t, 50, 1, bed.plain);
    assert_int_equal(rp_test_draw(t).key, 4);
}

/* A table that went its own way for long, and is then to keep a ratio. */
static void recentered_limiter_lets_both_sides_go_on(void **state)
{
    (void)state;
    for (int recenter = 0; recenter < 2; recenter++) {
        char name[2] = {(char)('a' + recenter), 0};
        rp_table_options o = rp_test_options(name, RP_FIFO, RP_FIFO, 1000);
        rp_table_alteration change = limiter(rp_limiter_ratio(4, 10, 8));
        rp_table *t = make(&o);
        for (uint64_t key = 0; key < 500; key++) rp_test_put(t, key, 1, bed.plain);
        for (int i = 0; i < 100; i++) (void)rp_test_draw(t);

        if (recenter) change.which |= RP_ALTER_RECENTER;
        alter(t, change);

        assert_int_equal(rp_table_can_insert(t, 1), recenter);
        assert_true(rp_table_can_sample(t, 1));
        if (!recenter) continue;
        for (uint64_t key = 500; key < 502; key++) rp_test_put(t, key, 1, bed.plain);
        assert_fails(rp_test_try_put(t, 600, 1, bed.plain, &bed.err), RP_DEADLINE, &bed.err,
                     "- 100 samples - 1860 carried = 52 is over max_diff 48; 4 more samples");
        for (int i = 0; i < 16; i++) (void)rp_test_draw(t);
        assert_false(rp_table_can_sample(t, 1));
        assert_ok(rp_table_reset(t, NULL)); /* carries nothing */
        for (uint64_t key = 0; key < 12; key++) rp_test_put(t, key, 1, bed.plain);
        assert_false(rp_table_can_insert(t, 1));
    }
}

/* Fresh, a recentered table is as one that was made like this. */
static void recentering_an_empty_table_changes_nothing(void **state)
{
    (void)state;
    rp_table *t = filled(1000, 0);
    rp_table_alteration change = limiter(rp_limiter_ratio(2, 20, 10));
    change.which |= RP_ALTER_RECENTER;

    alter(t, change);

    for (uint64_t key = 0; key < 25; key++) rp_test_put(t, key, 1, bed.plain);
    assert_fails(rp_test_try_put(t, 600, 1, bed.plain, &bed.err), RP_DEADLINE, &bed.err,
                 "(25 inserts + 1) * 2 - 0 samples = 52 is over max_diff 50");
    for (int i = 0; i < 20; i++) (void)rp_test_draw(t);
    assert_false(rp_table_can_sample(t, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(alter)
{
    const struct CMUnitTest tests[] = {
        TEST(only_selected_options_change),
        TEST(bad_values_change_nothing),
        TEST(unselected_values_are_not_checked),
        TEST(closed_table_is_not_altered),
        TEST(smaller_table_evicts_by_its_remover),
        TEST(larger_table_takes_more),
        TEST(soft_limit_that_comes_down_evicts_nothing),
        TEST(table_shrinks_a_few_hundred_items_at_a_time),
        TEST(shrinking_without_memory_restores_the_bound),
        TEST(fewer_bytes_evict_until_they_fit),
        TEST(items_past_a_new_bound_go_at_their_next_sample),
        TEST(waiting_inserts_go_on_when_the_bound_allows_it),
        TEST(waiting_samples_go_on_when_the_bound_allows_it),
        TEST(smaller_queue_waits_until_it_has_emptied),
        TEST(recentered_limiter_lets_both_sides_go_on),
        TEST(recentering_an_empty_table_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
