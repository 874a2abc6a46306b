/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_set.h"
#include "store/store.h"
#include "support/rollout_rig.h"

typedef struct recorder {
    rp_rollout_log log; /* first */
    uint64_t lsn;
    char kinds[16];
} recorder;

static rp_test_oom oom;
static rp_allocator alloc;
static rp_rollout_set *set;
static rp_error err;
static recorder records;

static uint64_t add(struct rp_rollout_log *log, char kind)
{
    recorder *r = (recorder *)(void *)log;

    if (r->lsn < sizeof r->kinds - 1) r->kinds[r->lsn] = kind;
    return ++r->lsn;
}

static uint64_t on_changed(struct rp_rollout_log *log, const rp_rollouts *r,
                           const rp_rollout_op *op, const rp_buf *encoded)
{
    (void)encoded;
    (void)r;
    return add(log, rp_rollout_op_name(op->kind)[0]);
}

static uint64_t on_created(struct rp_rollout_log *log, const rp_rollouts *r,
                           const rp_rollout_options *options)
{
    (void)r;
    (void)options;
    return add(log, 'C');
}

static uint64_t on_dropped(struct rp_rollout_log *log, const rp_rollouts *r)
{
    (void)r;
    return add(log, 'D');
}

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    set = rp_rollout_set_new(&alloc, 3);
    records = (recorder){.log = {on_changed, on_created, on_dropped}};
    return set != NULL ? 0 : 1;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_rollout_set_free(set);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static rp_status create(const char *name, uint64_t max_bytes, rp_rollouts **out)
{
    rp_rollout_options o = rp_test_rollout_options(1);

    o.max_bytes = max_bytes;
    return rp_rollout_set_create(set, rp_test_text(name), &o, out, NULL, &err);
}

static void rollouts_are_found_by_name(void **state)
{
    (void)state;
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT], *b;
    assert_ok(create("b", 10, &b));
    assert_ok(create("a", 10, NULL));

    assert_int_equal(create("a", 10, NULL), RP_EXISTS);
    assert_ptr_equal(rp_rollout_set_find(set, rp_test_text("b")), b);
    assert_null(rp_rollout_set_find(set, rp_test_text("c")));
    assert_int_equal(rp_rollout_set_list(set, all), 2);
    assert_int_equal(rp_rollouts_name(all[0]).data[0], 'a');
    for (int i = 0; i < 2; i++) rp_rollouts_unref(all[i]);
    rp_rollouts_unref(b); /* of find */
    rp_rollouts_unref(b); /* of create */
}

static void dropped_rollouts_are_closed(void **state)
{
    (void)state;
    rp_rollout_op op = {.kind = RP_ROLLOUT_PUT, .group = {"g", 1}};
    rp_rollout_result result;
    rp_rollouts *r;
    assert_ok(create("a", 10000, &r));
    assert_ok(rp_rollouts_apply(r, &op, &result, &err));

    assert_ok(rp_rollout_set_drop(set, rp_test_text("a"), NULL, &err));

    assert_int_equal(rp_rollouts_apply(r, &op, &result, &err), RP_CANCELLED);
    assert_int_equal(rp_rollout_set_drop(set, rp_test_text("a"), NULL, &err), RP_NOT_FOUND);
    rp_rollouts_unref(r);
}

static void the_bytes_of_all_are_bounded(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    rp_rollout_op op = {.kind = RP_ROLLOUT_CONFIGURE, .options = &o};
    rp_rollout_result result;
    rp_rollouts *r;
    rp_rollout_set_set_most_bytes(set, 100);
    assert_ok(create("a", 60, &r));

    assert_fails(create("b", 41, NULL), RP_NO_RESOURCE, &err, "exceed the limit of 100");
    assert_ok(create("b", 40, NULL));
    o.max_bytes = 61;
    assert_int_equal(rp_rollouts_apply(r, &op, &result, &err), RP_NO_RESOURCE);
    o.max_bytes = 50;
    assert_ok(rp_rollouts_apply(r, &op, &result, &err));
    assert_ok(create("c", 10, NULL));
    assert_ok(rp_rollout_set_drop(set, rp_test_text("b"), NULL, &err));
    assert_ok(create("d", 40, NULL));
    rp_rollouts_unref(r);
}

static void the_number_of_rollouts_is_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < RP_ROLLOUT_SET_COUNT; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "%d", i);
        assert_ok(create(name, 1, NULL));
    }

    assert_fails(create("one more", 1, NULL), RP_NO_RESOURCE, &err, "256 rollouts");
}

static void the_log_gets_what_changes_in_order(void **state)
{
    (void)state;
    rp_rollout_op op = {.kind = RP_ROLLOUT_RESERVE, .group = {"g", 1}, .ttl_ns = 1};
    rp_rollout_result result;
    uint64_t lsn = 0;
    rp_rollouts *r;
    rp_rollout_set_set_log(set, &records.log);
    assert_ok(create("a", 10000, &r));

    assert_ok(rp_rollouts_apply(r, &op, &result, &err));
    assert_int_equal(result.lsn, 2);
    op.kind = RP_ROLLOUT_ACK; /* fails: not logged */
    assert_int_equal(rp_rollouts_apply(r, &op, &result, &err), RP_NOT_FOUND);
    op.kind = RP_ROLLOUT_ABORT;
    assert_ok(rp_rollouts_apply(r, &op, &result, &err));
    assert_ok(rp_rollouts_apply(r, &op, &result, &err)); /* changes nothing */
    assert_int_equal(result.lsn, 3);
    assert_ok(rp_rollout_set_drop(set, rp_test_text("a"), &lsn, &err));

    assert_int_equal(lsn, 4);
    assert_string_equal(records.kinds, "CraD");
    rp_rollouts_unref(r);
}

static void count_watch(void *ctx, rp_rollouts *r)
{
    rp_rollout_info info;

    rp_rollouts_get_info(r, &info); /* without the lock */
    ++*(int *)ctx;
}

static void the_watch_is_called_when_waits_may_end(void **state)
{
    (void)state;
    rp_rollout_op op = {.kind = RP_ROLLOUT_RESERVE, .group = {"g", 1}, .ttl_ns = 1};
    rp_rollout_result result;
    rp_rollouts *r;
    int calls = 0;
    rp_rollout_set_set_watch(set, count_watch, &calls);
    assert_ok(create("a", 10000, &r));

    assert_ok(rp_rollouts_apply(r, &op, &result, &err));
    assert_int_equal(calls, 0); /* a reservation releases nothing */
    op.kind = RP_ROLLOUT_PUT;
    assert_ok(rp_rollouts_apply(r, &op, &result, &err));
    assert_int_equal(calls, 1);
    rp_rollouts_unref(r);
}

static void all_rollouts_take_a_third_by_default(void **state)
{
    (void)state;
    const rp_store_options options = {.max_bytes = 90000};
    rp_store *store;

    assert_true(rp_rollout_set_most_bytes(set) <= RP_ROLLOUT_SET_BYTES);
    assert_int_equal(rp_rollout_set_most_bytes(set), rp_rollout_set_default_bytes(0));
    assert_int_equal(rp_rollout_set_default_bytes(90001), 30000);
    assert_ok(rp_store_new(&options, &store, &err));
    assert_int_equal(rp_rollout_set_most_bytes(rp_store_rollouts(store)), 30000);
    rp_store_free(store);
}

static void a_closed_set_refuses_new_rollouts(void **state)
{
    (void)state;
    rp_rollout_set_close(set);

    assert_int_equal(create("a", 10, NULL), RP_CANCELLED);
}

RP_TESTS(rollout_set)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rollouts_are_found_by_name, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(dropped_rollouts_are_closed, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(the_bytes_of_all_are_bounded, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(the_number_of_rollouts_is_bounded, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(the_log_gets_what_changes_in_order, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(the_watch_is_called_when_waits_may_end, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(all_rollouts_take_a_third_by_default, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(a_closed_set_refuses_new_rollouts, set_up,
                                        nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
