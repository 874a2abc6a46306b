/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <unistd.h>

#include "support/rollout_rig.h"

static rp_test_rollouts t;

/* A thread that draws one group. */
typedef struct drawer {
    pthread_t thread;
    rp_wait wait;
    rp_status status;
    rp_error err;
    uint64_t lease;
} drawer;

static void *draw(void *arg)
{
    drawer *d = arg;
    rp_rollout_op op = {.kind = RP_ROLLOUT_DRAW, .groups = 1, .ttl_ns = INT64_C(1) << 50};
    rp_rollout_result result;

    d->status = rp_rollouts_apply_wait(t.r, &op, d->wait, &result, &d->err);
    d->lease = result.batch != NULL ? result.batch->lease : 0;
    rp_rollout_batch_free(result.batch);
    return NULL;
}

static void start(drawer *d, rp_wait wait)
{
    *d = (drawer){.wait = wait};
    assert_int_equal(pthread_create(&d->thread, NULL, draw, d), 0);
}

static int set_up(void **state)
{
    rp_rollout_options o = rp_test_rollout_options(1);

    (void)state;
    rp_test_rollouts_init(&t, &o);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_rollouts_deinit(&t);
    return 0;
}

static void a_draw_waits_for_a_group(void **state)
{
    (void)state;
    drawer d;
    start(&d, rp_wait_forever());

    assert_ok(rp_test_put(&t, "g", 0, 0, 1));

    assert_int_equal(pthread_join(d.thread, NULL), 0);
    assert_ok_err(d.status, &d.err);
    assert_true(d.lease > 0);
}

static void many_draws_get_one_group_each(void **state)
{
    (void)state;
    drawer d[4];
    for (int i = 0; i < 4; i++) start(&d[i], rp_wait_forever());

    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};

        assert_ok(rp_test_put(&t, name, 0, 0, 1));
    }

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(d[i].thread, NULL), 0);
        assert_ok_err(d[i].status, &d[i].err);
        assert_true(d[i].lease > 0);
        for (int k = 0; k < i; k++) assert_true(d[k].lease != d[i].lease);
    }
}

static void a_waiting_draw_gets_the_group_of_an_expired_lease(void **state)
{
    (void)state;
    drawer d;
    assert_ok(rp_test_put(&t, "g", 0, 0, 1));
    assert_ok(rp_test_draw(&t, "", 1, 1000000)); /* by a consumer that dies: 1 ms */

    start(&d, rp_wait_forever());

    assert_int_equal(pthread_join(d.thread, NULL), 0);
    assert_ok_err(d.status, &d.err);
    assert_true(d.lease > 1);
    assert_int_equal(rp_test_rollout_info(&t).expired_leases, 1);
}

/* Who waits, for what, and since when, also before this call. */
static void operations_that_wait_are_described(void **state)
{
    (void)state;
    rp_rollout_op put = {.kind = RP_ROLLOUT_PUT, .waited_ns = INT64_C(5000000000)};
    rp_rollout_parked parked = {.client = 7,
                                .waiting = {.limit = RP_ROLLOUT_BY_GROUPS, .have = 3}};
    uint64_t clients[2] = {1, 1};
    rp_waiting waiting[2];
    rp_error err;
    drawer d;
    start(&d, rp_wait_forever());
    while (rp_rollouts_waiting(t.r, NULL, NULL, 0) == 0) (void)usleep(1000);
    rp_rollouts_park(t.r, &parked, &put, RP_FOREVER);

    assert_int_equal(rp_rollouts_waiting(t.r, waiting, clients, 1), 2);
    assert_int_equal(rp_rollouts_waiting(t.r, waiting, clients, 2), 2);

    assert_true(waiting[0].is_insert && waiting[0].wanted == 1 && clients[0] == 7);
    assert_true(waiting[0].waiting_ns >= put.waited_ns);
    assert_non_null(strstr(waiting[0].why, "3 groups, max_groups is"));
    assert_true(!waiting[1].is_insert && waiting[1].wanted == 1 && clients[1] == 0);
    assert_true(waiting[1].until_ns == RP_FOREVER);
    assert_non_null(strstr(waiting[1].why, "0 groups are ready"));
    assert_int_equal(rp_rollouts_why(t.r, &parked, &err), RP_DEADLINE);
    assert_string_equal(err.text, waiting[0].why);

    rp_rollouts_unpark(t.r, &parked);
    assert_ok(rp_test_put(&t, "g", 0, 0, 1));
    assert_int_equal(pthread_join(d.thread, NULL), 0);
    assert_ok_err(d.status, &d.err);
    assert_int_equal(rp_rollouts_waiting(t.r, NULL, NULL, 0), 0);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    drawer d;

    start(&d, rp_wait_ms(2));

    assert_int_equal(pthread_join(d.thread, NULL), 0);
    assert_fails(d.status, RP_DEADLINE, &d.err, "the draw needs 1");
}

static void a_wait_can_be_cancelled(void **state)
{
    (void)state;
    rp_wait wait = rp_wait_forever();
    drawer d;
    assert_ok(rp_cancel_new(&wait.cancel));
    start(&d, wait);

    rp_cancel_fire(wait.cancel);

    assert_int_equal(pthread_join(d.thread, NULL), 0);
    assert_int_equal(d.status, RP_CANCELLED);
    rp_cancel_free(wait.cancel);
}

static void closing_ends_all_waits(void **state)
{
    (void)state;
    drawer d[3];
    for (int i = 0; i < 3; i++) start(&d[i], rp_wait_forever());

    rp_rollouts_close(t.r);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(d[i].thread, NULL), 0);
        assert_int_equal(d[i].status, RP_CANCELLED);
    }
}

enum { MANY = 2 * RP_ROLLOUT_STEP + 7 };

static _Atomic int wrong; /* results that no thread may see */
static _Atomic bool is_over;

static void note(rp_status st, const rp_rollout_result *result)
{
    if ((st != RP_OK && st != RP_DEADLINE) || result->goes_on) atomic_fetch_add(&wrong, 1);
}

static void *draw_and_acknowledge(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        rp_rollout_op op = {.kind = RP_ROLLOUT_DRAW, .groups = 100, .ttl_ns = INT64_C(1) << 50};
        rp_rollout_result result;
        rp_status st = rp_rollouts_apply(t.r, &op, &result, NULL);

        note(st, &result);
        if (st != RP_OK) continue;
        for (size_t i = 0; i < result.batch->count; i++)
            if (result.batch->version > result.batch->groups[i].first_version + 1)
                atomic_fetch_add(&wrong, 1); /* a stale one was drawn */
        op = (rp_rollout_op){.kind = RP_ROLLOUT_ACK, .lease = result.batch->lease};
        rp_rollout_batch_free(result.batch);
        note(rp_rollouts_apply(t.r, &op, &result, NULL), &result);
    }
    return NULL;
}

static void *make_images(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        uint64_t digest;

        if (rp_rollouts_digest(t.r, &digest) != RP_OK) atomic_fetch_add(&wrong, 1);
        (void)rp_rollouts_expire(t.r, 1);
    }
    return NULL;
}

static void threads_work_between_the_steps_of_an_advance(void **state)
{
    void *(*const work[])(void *) = {draw_and_acknowledge, draw_and_acknowledge, make_images,
                                     make_images};
    const int64_t advances = (int64_t)rp_test_length(6, 2);
    rp_rollout_options o = rp_test_rollout_options(1);
    pthread_t threads[COUNT_OF(work)];
    rp_rollout_info info;

    (void)state;
    o.max_staleness = 1;
    assert_ok(
        rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_CONFIGURE, .options = &o}));
    atomic_store(&is_over, false);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work[i], NULL), 0);
    for (int64_t version = 0; version < 2 * advances; version += 2) {
        rp_rollout_result result;
        rp_rollout_op op = {.kind = RP_ROLLOUT_ADVANCE, .version = version + 2};

        for (int i = 0; i < MANY; i++) {
            char name[24];
            rp_rollout_op put = {
                .kind = RP_ROLLOUT_PUT, .first_version = version, .last_version = version};

            (void)snprintf(name, sizeof name, "%d.%d", (int)version, i);
            put.group = rp_test_text(name);
            assert_ok(rp_rollouts_apply(t.r, &put, &result, NULL));
        }
        assert_ok(rp_rollouts_apply(t.r, &op, &result, NULL));
        assert_false(result.goes_on);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(atomic_load(&wrong), 0);
    rp_rollouts_get_info(t.r, &info);
    assert_int_equal(info.stale + info.acknowledged, advances * MANY);
    assert_int_equal(info.groups, 0);
    assert_true(rp_rollouts_check(t.r));
}

RP_TESTS(rollouts_wait)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_draw_waits_for_a_group, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_draws_get_one_group_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_waiting_draw_gets_the_group_of_an_expired_lease,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_ends_at_its_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operations_that_wait_are_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_can_be_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closing_ends_all_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_work_between_the_steps_of_an_advance, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
