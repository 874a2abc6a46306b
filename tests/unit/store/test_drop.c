/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are dropped while other threads use them. */
#include "store/store.h"
#include "support/fixture.h"
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

static rp_string text(const char *s)
{
    return (rp_string){s, strlen(s)};
}

static rp_table *add(const char *name)
{
    rp_table_options o = rp_test_options(name, RP_UNIFORM, RP_FIFO, 100);
    return rp_test_bed_table(&bed, &o);
}

/* Makes a table and returns a reference. */
static rp_table *add_held(const char *name)
{
    return rp_table_ref(add(name));
}

static void drop(const char *name)
{
    assert_ok_err(rp_store_drop_table(bed.store, text(name), &bed.err), &bed.err);
}

static uint64_t store_bytes(void)
{
    rp_store_info info;

    rp_store_get_info(bed.store, &info);
    return info.bytes;
}

static void every_call_on_a_dropped_table_is_cancelled(void **state)
{
    (void)state;
    rp_table *t = add_held("a");
    rp_insert item = {.key = 1, .priority = 1, .trajectory = bed.plain};
    rp_sample_options one = {.count = 1};
    rp_sample sample;
    uint64_t key = 1;
    size_t n;
    rp_op op = {.items = &item, .count = 1, .until_ns = RP_NOW};
    rp_test_put(t, 1, 1, bed.plain);

    drop("a");

    assert_fails(rp_table_insert(t, &item, 1, rp_wait_forever(), &n, &bed.err), RP_CANCELLED,
                 &bed.err, "table 'a' was dropped");
    assert_fails(rp_table_sample(t, &one, &sample, &n, rp_wait_forever(), &bed.err),
                 RP_CANCELLED, &bed.err, "table 'a' was dropped");
    assert_fails(rp_table_update(t, &(rp_update){1, 2}, 1, &n, &bed.err), RP_CANCELLED,
                 &bed.err, "was dropped");
    assert_fails(rp_table_delete(t, &key, 1, &n, &bed.err), RP_CANCELLED, &bed.err,
                 "was dropped");
    assert_fails(rp_table_peek(t, &key, 1, &sample, &n, &bed.err), RP_CANCELLED, &bed.err,
                 "was dropped");
    assert_fails(rp_table_trim(t, &n, &bed.err), RP_CANCELLED, &bed.err, "was dropped");
    assert_fails(rp_table_reset(t, &bed.err), RP_CANCELLED, &bed.err, "was dropped");
    assert_true(rp_table_start_insert(t, &op) && op.status == RP_CANCELLED);
    assert_true(rp_test_info_of(t).closed && rp_test_info_of(t).size == 0);
    assert_int_equal(rp_table_waiting(t, NULL, 0), 0);
    assert_string_equal(rp_table_name(t), "a");
    assert_true(rp_table_check(t));
    rp_table_close(t);
    rp_table_unref(t);
}

static void a_name_is_free_once_its_table_is_dropped(void **state)
{
    (void)state;
    rp_table *first = add_held("b"), *listed[3] = {NULL};
    (void)add("a");
    (void)add("c");

    assert_fails(rp_store_drop_table(bed.store, text("x"), &bed.err), RP_NOT_FOUND, &bed.err,
                 "Priority table x was not found; the tables are: b, a, c");
    drop("b");
    assert_fails(rp_store_drop_table(bed.store, text("b"), &bed.err), RP_NOT_FOUND, &bed.err,
                 "Priority table b was not found; the tables are: ");
    assert_null(rp_test_table(bed.store, "b"));
    rp_table *second = add("b");

    assert_ptr_not_equal(first, second);
    assert_ptr_equal(rp_test_table(bed.store, "b"), second);
    rp_test_put(second, 1, 1, bed.plain);
    assert_int_equal(rp_test_info_of(first).size, 0);
    assert_int_equal(rp_store_tables(bed.store, listed, 3),
                     3); /* in the order they were made */
    assert_string_equal(rp_table_name(listed[0]), "a");
    assert_string_equal(rp_table_name(listed[1]), "c");
    assert_ptr_equal(listed[2], second);
    rp_table_unref(first);
}

static void tables_are_found_by_names_without_a_terminator(void **state)
{
    (void)state;
    rp_table *t = add("ab"), *found;

    found = rp_store_find_table(bed.store, (rp_string){"abc", 2});
    assert_ptr_equal(found, t);
    assert_null(rp_store_find_table(bed.store, (rp_string){"abc", 3}));
    assert_null(rp_store_find_table(bed.store, (rp_string){"abc", 1}));
    assert_null(rp_store_find_table(bed.store, (rp_string){"", 0}));
    assert_null(rp_store_find_table(bed.store, (rp_string){"ab\0c", 4}));
    rp_table_unref(found);
    rp_table_unref(NULL);
}

static void tables_can_be_listed_as_references(void **state)
{
    (void)state;
    rp_table *held[2] = {NULL};
    (void)add("a");
    (void)add("b");
    (void)add("c");

    assert_int_equal(rp_store_find_tables(bed.store, held, 2), 3);
    drop("a");
    drop("b");

    assert_true(rp_test_info_of(held[0]).closed && rp_test_info_of(held[1]).closed);
    assert_string_equal(rp_table_name(held[1]), "b");
    for (size_t i = 0; i < 2; i++) rp_table_unref(held[i]);
}

static void a_closed_store_drops_nothing(void **state)
{
    (void)state;
    rp_table *t = add("a");

    rp_store_close(bed.store);

    assert_fails(rp_store_drop_table(bed.store, text("a"), &bed.err), RP_PRECONDITION, &bed.err,
                 "closed");
    assert_ptr_equal(rp_test_table(bed.store, "a"), t);
}

typedef struct waiter {
    rp_op op;
    rp_insert item;
    rp_sample_options options;
    rp_sample sample;
    int calls;
} waiter;

static void count_call(rp_op *op)
{
    ((waiter *)op->user)->calls++;
}

static void call_and_unref(rp_op *op)
{
    count_call(op);
    rp_table_unref(op->table);
}

static bool start_sample(waiter *x, rp_table *t)
{
    *x = (waiter){.options = {.count = 1}};
    x->op = (rp_op){.options = &x->options,
                    .samples = &x->sample,
                    .until_ns = RP_FOREVER,
                    .on_done = count_call,
                    .user = x};
    return rp_table_start_sample(t, &x->op);
}

static bool start_insert(waiter *x, rp_table *t, uint64_t key, rp_trajectory *trajectory)
{
    *x = (waiter){.item = {.key = key, .priority = 1, .trajectory = trajectory}};
    x->op = (rp_op){.items = &x->item,
                    .count = 1,
                    .until_ns = RP_FOREVER,
                    .on_done = count_call,
                    .user = x};
    return rp_table_start_insert(t, &x->op);
}

static void a_drop_ends_all_waits(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("full", RP_FIFO, RP_FIFO, 10);
    rp_table *empty = add_held("empty"), *full;
    waiter sample, insert;
    o.limiter = rp_limiter_queue(1);
    full = rp_table_ref(rp_test_bed_table(&bed, &o));
    rp_test_put(full, 1, 1, bed.plain);
    assert_false(start_sample(&sample, empty));
    assert_false(start_insert(&insert, full, 2, bed.plain));
    sample.op.on_done = insert.op.on_done =
        call_and_unref; /* no other thread uses the call yet */

    drop("empty");
    drop("full");

    assert_true(sample.calls == 1 && sample.op.status == RP_CANCELLED);
    assert_non_null(strstr(sample.op.error.text, "table 'empty' was dropped"));
    assert_true(insert.calls == 1 && insert.op.status == RP_CANCELLED && insert.op.done == 0);
    assert_non_null(strstr(insert.op.error.text, "table 'full' was dropped"));
}

static void bytes_of_a_dropped_table_leave_the_budget(void **state)
{
    (void)state;
    rp_table *a = add_held("a"), *b = add("b");
    rp_trajectory *shared = rp_test_blob_trajectory(&bed.alloc, 5, 5, 100);
    rp_test_put(a, 1, 1, bed.plain);
    rp_test_put(a, 2, 1, shared);
    rp_test_put(b, 2, 1, shared);

    drop("a");

    assert_int_equal(store_bytes(), rp_trajectory_cost(shared));
    assert_int_equal(rp_test_info_of(a).bytes, 0);
    drop("b");
    assert_int_equal(store_bytes(), 0);
    rp_table_unref(a);
    rp_trajectory_unref(shared);
}

static void a_drop_unblocks_inserts_that_wait_for_bytes(void **state)
{
    (void)state;
    rp_store_options o = {.policy = RP_BUDGET_BLOCK,
                          .max_bytes = 2 * rp_trajectory_cost(bed.plain)};
    rp_trajectory *blobs[5];
    rp_table *tables[3];
    waiter x[3];
    rp_test_bed_deinit(&bed);
    rp_test_bed_init(&bed, &o);
    for (size_t i = 0; i < 5; i++)
        blobs[i] = rp_test_blob_trajectory(&bed.alloc, 10 + i, 1, 16);
    rp_table *full = add("full");
    for (uint64_t i = 0; i < 2; i++) rp_test_put(full, i, 1, blobs[i]);
    for (size_t i = 0; i < 3; i++) {
        tables[i] = add_held(i == 0 ? "a" : i == 1 ? "b" : "c");
        assert_false(start_insert(&x[i], tables[i], 9, blobs[2 + i]));
    }

    drop("b"); /* from the middle of the line */
    assert_true(x[1].calls == 1 && x[1].op.status == RP_CANCELLED);
    assert_true(x[0].calls == 0 && x[2].calls == 0);
    drop("full");

    assert_true(x[0].calls == 1 && x[0].op.status == RP_OK);
    assert_true(x[2].calls == 1 && x[2].op.status == RP_OK);
    assert_int_equal(store_bytes(), o.max_bytes);
    for (size_t i = 0; i < 3; i++) rp_table_unref(tables[i]);
    for (size_t i = 0; i < 5; i++) rp_trajectory_unref(blobs[i]);
}

static void items_are_freed_at_once_even_if_the_table_is_held(void **state)
{
    (void)state;
    rp_test_oom own = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&own);
    rp_table *t = add_held("a");
    for (uint64_t key = 0; key < 70; key++) {
        rp_trajectory *blob = rp_test_blob_trajectory(&alloc, key, 1, 30);
        rp_test_put(t, key, 1, blob);
        rp_trajectory_unref(blob);
    }
    assert_true(own.live > 0);

    drop("a");

    assert_int_equal(own.live, 0);
    rp_table_unref(t);
}

/* What a reference keeps does not depend on how many items there were. */
static void indexes_are_freed_at_once_even_if_the_table_is_held(void **state)
{
    enum { ITEMS = 5000, LEFT = 32 << 10 };
    const rp_selector_kind samplers[] = {RP_UNIFORM, RP_PRIORITIZED, RP_MIN_HEAP, RP_FIFO};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(samplers); i++) {
        rp_table_options o = rp_test_options("a", samplers[i], RP_MAX_HEAP, ITEMS);
        rp_table *t = rp_table_ref(rp_test_bed_table(&bed, &o));
        size_t before = bed.oom.live_bytes;

        for (uint64_t key = 0; key < ITEMS; key++) rp_test_put(t, key, 1, bed.plain);
        assert_true(bed.oom.live_bytes > before + 100 * (size_t)ITEMS);
        drop("a");
        assert_true(bed.oom.live_bytes <= before + LEFT);
        assert_true(rp_table_check(t));
        rp_table_unref(t);
    }
}

static void a_table_may_outlive_its_store(void **state)
{
    (void)state;
    rp_table *t = add_held("a"), *gone = add_held("b");
    rp_trajectory *own = rp_test_blob_trajectory(rp_allocator_default(), 3, 3, 50);
    rp_test_put(t, 1, 1, own);
    rp_trajectory_unref(own);
    drop("b");
    rp_trajectory_unref(bed.plain);

    rp_store_free(bed.store);

    assert_fails(rp_table_reset(t, &bed.err), RP_CANCELLED, &bed.err, "was dropped");
    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_true(bed.oom.live > 0);
    rp_table_unref(gone);
    rp_table_unref(t);
    assert_int_equal(bed.oom.live, 0); /* the budget too */
    rp_test_bed_init(&bed, NULL);
}

/* A number that was another's must not bring the other's counts with it. */
static void numbers_of_dropped_tables_are_used_again(void **state)
{
    (void)state;
    uint64_t each = rp_trajectory_cost(bed.plain);
    rp_table *kept = add("kept");
    rp_test_put(kept, 1, 1, bed.plain);

    for (int i = 0; i < 5000; i++) { /* more than there are numbers */
        rp_table *a = add("a"), *b = add("b");
        rp_test_put(a, 1, 1, bed.plain);
        rp_test_put(b, 1, 1, bed.plain);
        if (i % 2 == 0) rp_test_put(b, 2, 1, bed.plain);
        assert_true(rp_test_info_of(a).bytes == each && rp_test_info_of(b).bytes >= each);
        drop(i % 3 == 0 ? "a" : "b");
        assert_true(rp_table_check(i % 3 == 0 ? b : a));
        drop(i % 3 == 0 ? "b" : "a");
        assert_int_equal(store_bytes(), each);
    }
    assert_true(rp_table_check(kept));
}

static int freed;

static void note_free(void *ctx)
{
    (void)ctx;
    freed++;
}

static int told;

static void note_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx, (void)view, (void)events;
    told += (int)count;
}

static void a_drop_frees_extensions_last_and_sends_them_no_event(void **state)
{
    (void)state;
    rp_extension e = {.on_events = note_events, .free = note_free};
    rp_table_options o = rp_test_options("a", RP_FIFO, RP_FIFO, 10);
    o.extensions = &e;
    o.extension_count = 1;
    rp_table *t = rp_table_ref(rp_test_bed_table(&bed, &o));
    freed = told = 0;
    rp_test_put(t, 1, 1, bed.plain);
    assert_int_equal(told, 1);

    drop("a");
    assert_int_equal(freed, 0);
    rp_table_unref(t);

    assert_true(freed == 1 && told == 1);
}

static void copies_for_a_dropped_table_are_counted_as_dropped(void **state)
{
    (void)state;
    rp_extension e;
    rp_table_options o = rp_test_options("a", RP_FIFO, RP_FIFO, 10);
    int64_t copied, dropped;
    assert_ok(rp_insert_on_sample_extension(&bed.alloc, add("copies"), 0, &e, NULL));
    o.extensions = &e;
    o.extension_count = 1;
    o.max_times_sampled = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 0; key < 2; key++) rp_test_put(t, key, 1, bed.plain);
    (void)rp_test_draw(t);

    drop("copies"); /* the extension has a reference */
    (void)rp_test_draw(t);

    rp_insert_on_sample_read(&e, &copied, &dropped);
    assert_true(copied == 1 && dropped == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(drop)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_on_a_dropped_table_is_cancelled),
        TEST(a_name_is_free_once_its_table_is_dropped),
        TEST(tables_are_found_by_names_without_a_terminator),
        TEST(tables_can_be_listed_as_references),
        TEST(a_closed_store_drops_nothing),
        TEST(a_drop_ends_all_waits),
        TEST(bytes_of_a_dropped_table_leave_the_budget),
        TEST(a_drop_unblocks_inserts_that_wait_for_bytes),
        TEST(items_are_freed_at_once_even_if_the_table_is_held),
        TEST(indexes_are_freed_at_once_even_if_the_table_is_held),
        TEST(a_table_may_outlive_its_store),
        TEST(numbers_of_dropped_tables_are_used_again),
        TEST(a_drop_frees_extensions_last_and_sends_them_no_event),
        TEST(copies_for_a_dropped_table_are_counted_as_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
