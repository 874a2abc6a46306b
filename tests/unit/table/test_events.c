/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of extensions, when they are called, and what they may do. */
#include <pthread.h>

#include "support/fixture.h"
#include "table/table.h"

enum { MOST = 4096 };

typedef struct record {
    rp_event events[MOST]; /* without trajectories */
    size_t count, batches, largest_batch;
    bool had_view;
    rp_table *table; /* to call from a deferred one */
    int64_t size_seen;
} record;

static rp_test_bed bed;
static record recorded;

static int set_up(void **state)
{
    (void)state;
    memset(&recorded, 0, sizeof recorded);
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static void note(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    record *r = ctx;

    r->batches++;
    r->had_view = view != NULL;
    if (count > r->largest_batch) r->largest_batch = count;
    if (view != NULL) r->size_seen = rp_view_size(view);
    for (size_t i = 0; i < count; i++) {
        assert_true((events[i].trajectory == NULL) == (events[i].kind == RP_EVENT_RESET));
        if (events[i].trajectory != NULL)
            assert_int_equal(rp_trajectory_column_count(events[i].trajectory), 1);
        if (r->count < MOST) r->events[r->count++] = events[i];
    }
}

static rp_table *make(rp_extension *extensions, size_t count, int64_t max_size)
{
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, max_size);
    o.extensions = extensions;
    o.extension_count = count;
    o.max_times_sampled = 2;
    return rp_test_bed_table(&bed, &o);
}

static void expect_event(size_t i, rp_event_kind kind, uint64_t key, double priority,
                         int32_t times)
{
    assert_true(i < recorded.count);
    assert_int_equal(recorded.events[i].kind, kind);
    assert_int_equal(recorded.events[i].key, key);
    assert_true(recorded.events[i].priority == priority);
    assert_int_equal(recorded.events[i].times_sampled, times);
}

/* The same story for both kinds of extension. */
static void tell_a_story(bool deferred)
{
    rp_extension e = {
        .name = "note", .deferred = deferred, .ctx = &recorded, .on_events = note};
    rp_table *t = make(&e, 1, 2);

    rp_test_put(t, 1, 1.5, bed.plain);                                /* 0 */
    rp_test_put(t, 2, 2, bed.plain);                                  /* 1 */
    rp_test_put(t, 2, 3, bed.plain);                                  /* 2: existing key */
    rp_test_put(t, 3, 4, bed.plain);                                  /* 3, 4: evicts 1 */
    assert_ok(rp_table_update(t, &(rp_update){3, 5}, 1, NULL, NULL)); /* 5 */
    (void)rp_test_draw(t);                                            /* 6 */
    (void)rp_test_draw(t);                                            /* 7, 8: often enough */
    assert_ok(rp_table_delete(t, &(uint64_t){3}, 1, NULL, NULL));     /* 9 */
    assert_ok(rp_table_reset(t, NULL));                               /* 10 */

    assert_int_equal(recorded.count, 11);
    assert_int_equal(recorded.had_view, !deferred);
    expect_event(0, RP_EVENT_INSERT, 1, 1.5, 0);
    expect_event(1, RP_EVENT_INSERT, 2, 2, 0);
    expect_event(2, RP_EVENT_UPDATE, 2, 3, 0);
    expect_event(3, RP_EVENT_INSERT, 3, 4, 0);
    expect_event(4, RP_EVENT_DELETE, 1, 1.5, 0);
    expect_event(5, RP_EVENT_UPDATE, 3, 5, 0);
    expect_event(6, RP_EVENT_SAMPLE, 2, 3, 1);
    expect_event(7, RP_EVENT_SAMPLE, 2, 3, 2);
    expect_event(8, RP_EVENT_DELETE, 2, 3, 2);
    expect_event(9, RP_EVENT_DELETE, 3, 5, 0);
    expect_event(10, RP_EVENT_RESET, 0, 0, 0);
}

static void atomic_extension_gets_every_event_in_order(void **state)
{
    (void)state;
    tell_a_story(false);
}

static void deferred_extension_gets_every_event_in_order(void **state)
{
    (void)state;
    tell_a_story(true);
}

static void peeks_and_refused_calls_are_no_events(void **state)
{
    (void)state;
    rp_extension e = {.name = "note", .ctx = &recorded, .on_events = note};
    rp_table *t = make(&e, 1, 5);
    rp_sample_options one = {.count = 1};
    rp_sample s;
    size_t n;

    (void)rp_test_has_key(t, 1);
    assert_int_equal(rp_table_sample(t, &one, &s, &n, rp_wait_none(), NULL), RP_DEADLINE);
    assert_int_equal(rp_test_try_put(t, 1, 1, NULL, NULL), RP_INVALID);
    assert_ok(rp_table_update(t, &(rp_update){9, 1}, 1, NULL, NULL));
    assert_ok(rp_table_delete(t, &(uint64_t){9}, 1, NULL, NULL));

    assert_int_equal(recorded.count, 0);
}

static void large_batches_are_reported_in_pieces(void **state)
{
    (void)state;
    for (int deferred = 0; deferred < 2; deferred++) {
        rp_extension e = {.deferred = deferred == 1, .ctx = &recorded, .on_events = note};
        rp_insert *items = calloc(1000, sizeof *items);
        rp_table_options o = rp_test_options(deferred == 0 ? "a" : "d", RP_FIFO, RP_FIFO, 100);
        assert_non_null(items);
        o.extensions = &e;
        o.extension_count = 1;
        rp_table *t = rp_test_bed_table(&bed, &o);
        for (size_t i = 0; i < 1000; i++)
            items[i] = (rp_insert){.key = i, .priority = 1, .trajectory = bed.plain};
        memset(&recorded, 0, sizeof recorded);

        assert_ok(rp_table_insert(t, items, 1000, rp_wait_none(), NULL, NULL));

        assert_int_equal(recorded.count, 1900); /* 1000 inserts, 900 evictions */
        if (deferred == 0) assert_true(recorded.largest_batch <= 256);
        for (size_t i = 0, inserts = 0, deletes = 0; i < 1900; i++) {
            if (recorded.events[i].kind == RP_EVENT_INSERT)
                assert_int_equal(recorded.events[i].key, inserts++);
            else
                assert_int_equal(recorded.events[i].key, deletes++);
        }
        free(items);
    }
}

static void several_extensions_are_called_in_their_order(void **state)
{
    (void)state;
    static record second;
    rp_extension e[] = {{.name = "a", .ctx = &recorded, .on_events = note},
                        {.name = "b", .deferred = true, .ctx = &second, .on_events = note}};
    memset(&second, 0, sizeof second);
    rp_table *t = make(e, 2, 5);

    rp_test_put(t, 1, 1, bed.plain);
    (void)rp_test_draw(t);

    assert_true(recorded.count == 2 && second.count == 2);
    assert_true(recorded.had_view && !second.had_view);
}

static void halve(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    double priority = -1;

    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != RP_EVENT_INSERT) continue;
        assert_true(rp_view_priority(view, events[i].key, &priority));
        assert_true(priority == events[i].priority);
        assert_true(rp_view_update(view, events[i].key, priority / 2));
        assert_false(rp_view_update(view, events[i].key, -1)); /* it cannot have that */
        assert_false(rp_view_update(view, 12345, 1));
        assert_false(rp_view_priority(view, 12345, &priority));
    }
}

static void priorities_set_by_an_atomic_extension_are_the_first_seen(void **state)
{
    (void)state;
    rp_extension e = {.name = "halve", .on_events = halve};
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 10);
    o.extensions = &e;
    o.extension_count = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);

    rp_test_put(t, 1, 6, bed.plain);
    rp_test_put(t, 2, 2, bed.plain);

    rp_sample s = rp_test_draw(t);
    assert_true(s.priority == (s.key == 1 ? 3 : 1));
    assert_true(s.probability == (s.key == 1 ? 0.75 : 0.25));
    assert_int_equal(rp_test_info_of(t).updates, 0);
    assert_true(rp_table_check(t));
}

static void set_to_100(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == RP_EVENT_INSERT)
            (void)rp_view_update(view, events[i].key, 100); /* if it is still there */
}

static void count_done(rp_op *op)
{
    ++*(int *)op->user;
}

/* The second item goes in and out again before the lock is left. */
static void atomic_extension_is_called_between_two_waiting_operations(void **state)
{
    (void)state;
    rp_extension e = {.name = "set", .on_events = set_to_100};
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 10);
    rp_insert items[] = {{.key = 1, .priority = 1, .trajectory = bed.plain},
                         {.key = 2, .priority = 1, .trajectory = bed.plain}};
    rp_sample_options two = {.count = 2};
    rp_sample s[2];
    int inserted = 0, drawn = 0;
    rp_op insert = {.items = items,
                    .count = 2,
                    .until_ns = RP_FOREVER,
                    .on_done = count_done,
                    .user = &inserted};
    rp_op sample = {.options = &two,
                    .samples = s,
                    .until_ns = RP_FOREVER,
                    .on_done = count_done,
                    .user = &drawn};
    o.limiter = rp_limiter_queue(1);
    o.max_times_sampled = 1;
    o.extensions = &e;
    o.extension_count = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);
    assert_false(rp_table_start_insert(t, &insert)); /* one of two */

    assert_false(rp_table_start_sample(t, &sample)); /* one of two, then both go on */

    assert_true(inserted == 1 && drawn == 1 && sample.status == RP_OK && sample.done == 2);
    assert_true(s[0].key == 1 && s[0].priority == 100);
    assert_true(s[1].key == 2 && s[1].priority == 100);
    rp_samples_release(s, 2);
}

static void echo(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    record *r = ctx;

    (void)view;
    for (size_t i = 0; i < count; i++) {
        r->count++;
        if (events[i].kind == RP_EVENT_INSERT && events[i].key < 50) /* calls its own table */
            rp_test_put(r->table, events[i].key + 1, 1, events[i].trajectory);
    }
}

static void deferred_extension_may_call_its_own_table(void **state)
{
    (void)state;
    rp_extension e = {.name = "echo", .deferred = true, .ctx = &recorded, .on_events = echo};
    recorded.table = make(&e, 1, 100);

    rp_test_put(recorded.table, 1, 1, bed.plain);

    assert_int_equal(rp_test_info_of(recorded.table).size, 50); /* 1 .. 50 */
    assert_int_equal(recorded.count, 50);
    assert_true(rp_table_check(recorded.table));
}

/* What came of calling a table whose deferred extension is behind. */
static struct {
    rp_status from_outside, insert, sample;
    rp_error outside_err;
    rp_sample drawn;
} late;

static void *insert_from_outside(void *arg)
{
    late.from_outside = rp_test_try_put(arg, 3, 1, bed.plain, &late.outside_err);
    return NULL;
}

/* Makes its own table as late as it can be, and calls it all the same. */
static void fall_behind(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    record *r = ctx;
    rp_sample_options one = {.count = 1};
    rp_update again[256];
    pthread_t other;
    size_t n;

    (void)view, (void)events;
    r->count += count;
    if (r->batches++ > 0) return;
    for (size_t i = 0; i < COUNT_OF(again); i++) again[i] = (rp_update){1, 2};
    for (size_t i = 0; i <= RP_MAX_DEFERRED_EVENTS; i += COUNT_OF(again))
        assert_ok(rp_table_update(r->table, again, COUNT_OF(again), NULL, NULL));
    assert_int_equal(pthread_create(&other, NULL, insert_from_outside, r->table), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    late.insert = rp_test_try_put(r->table, 2, 1, bed.plain, NULL);
    late.sample = rp_table_sample(r->table, &one, &late.drawn, &n, rp_wait_none(), NULL);
}

static void deferred_extension_that_is_behind_does_not_wait_for_itself(void **state)
{
    (void)state;
    rp_extension e = {
        .name = "slow", .deferred = true, .ctx = &recorded, .on_events = fall_behind};
    memset(&late, 0, sizeof late);
    recorded.table = make(&e, 1, 100);

    rp_test_put(recorded.table, 1, 1, bed.plain);

    rp_samples_release(&late.drawn, 1);
    assert_fails(late.from_outside, RP_DEADLINE, &late.outside_err, "deferred extensions are");
    assert_ok(late.insert);
    assert_ok(late.sample);
    assert_true(rp_test_has_key(recorded.table, 2) && late.drawn.key == 1);
    rp_table_info info = rp_test_info_of(recorded.table);
    assert_true(info.waiting_inserts == 0 && info.waiting_samples == 0);
    assert_int_equal(recorded.count, info.updates + 3); /* two inserts, one sample: all told */
}

static void events_keep_trajectories_of_deleted_items_alive(void **state)
{
    (void)state;
    rp_extension e = {.name = "note", .deferred = true, .ctx = &recorded, .on_events = note};
    rp_table *t = make(&e, 1, 1);
    rp_trajectory *own;

    for (uint64_t key = 1; key <= 20; key++) { /* `note` looks at each of them */
        own = rp_test_blob_trajectory(&bed.alloc, key, key, 20);
        rp_test_put(t, key, 1, own);
        rp_trajectory_unref(own);
    }

    assert_int_equal(recorded.count, 39);
}

static int freed;

static void note_free(void *ctx)
{
    (void)ctx;
    freed++;
}

static void extensions_are_freed_with_their_table(void **state)
{
    (void)state;
    rp_extension e[] = {
        {.on_events = note, .ctx = &recorded, .free = note_free},
        {.on_events = note, .ctx = &recorded, .free = note_free, .deferred = true},
        {.on_events = note, .ctx = &recorded}};
    freed = 0;
    (void)make(e, 3, 5);

    rp_test_bed_deinit(&bed);
    rp_test_bed_init(&bed, NULL);

    assert_int_equal(freed, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(events)
{
    const struct CMUnitTest tests[] = {
        TEST(atomic_extension_gets_every_event_in_order),
        TEST(deferred_extension_gets_every_event_in_order),
        TEST(peeks_and_refused_calls_are_no_events),
        TEST(large_batches_are_reported_in_pieces),
        TEST(several_extensions_are_called_in_their_order),
        TEST(priorities_set_by_an_atomic_extension_are_the_first_seen),
        TEST(atomic_extension_is_called_between_two_waiting_operations),
        TEST(deferred_extension_may_call_its_own_table),
        TEST(deferred_extension_that_is_behind_does_not_wait_for_itself),
        TEST(events_keep_trajectories_of_deleted_items_alive),
        TEST(extensions_are_freed_with_their_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
