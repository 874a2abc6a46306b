/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

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

RP_TESTS(rollouts_wait)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_draw_waits_for_a_group, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_draws_get_one_group_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_waiting_draw_gets_the_group_of_an_expired_lease,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_ends_at_its_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wait_can_be_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closing_ends_all_waits, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
