/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts of a store of this process whose journal never makes a record safe. */
#include <pthread.h>
#include <stdatomic.h>

#include "rollouts/rollout_set.h"
#include "store/rollout_journal.h"
#include "store/store.h"
#include "support/fixture.h"

typedef struct journal {
    rp_rollout_journal calls; /* first */
    rp_rollout_log log;
    atomic_int waits, admissions;
    atomic_bool is_cancelled, is_full;
} journal;

static journal j;

static rp_status admit(rp_rollout_journal *calls, const rp_rollout_op *op, uint64_t *claimed,
                       rp_error *err)
{
    (void)calls, (void)op;
    atomic_fetch_add(&j.admissions, 1);
    *claimed = 0;
    if (!atomic_load(&j.is_full)) return RP_OK;
    if (err != NULL) *err = (rp_error){.code = RP_NO_RESOURCE, .text = "the disk is full"};
    return RP_NO_RESOURCE;
}

static void unclaim(rp_rollout_journal *calls, uint64_t claimed)
{
    (void)calls, (void)claimed;
}

static rp_status await(rp_rollout_journal *calls, uint64_t lsn, rp_wait wait, rp_error *err)
{
    (void)calls, (void)lsn, (void)wait;
    atomic_fetch_add(&j.waits, 1);
    *err = (rp_error){.code = atomic_load(&j.is_cancelled) ? RP_CANCELLED : RP_DEADLINE};
    return err->code;
}

static uint64_t last(rp_rollout_journal *calls)
{
    (void)calls;
    return 1;
}

static uint64_t on_changed(rp_rollout_log *log, const rp_rollouts *rollouts,
                           const rp_rollout_op *op, const rp_buf *encoded)
{
    (void)encoded;
    (void)log, (void)rollouts, (void)op;
    return 1;
}

static void begin(rp_test_bed *bed, rp_client **client)
{
    rp_test_bed_init(bed, NULL);
    assert_ok(rp_client_local(bed->store, NULL, client, &bed->err));
    j = (journal){.calls = {admit, unclaim, await, last}, .log = {.changed = on_changed}};
}

static void end(rp_test_bed *bed, rp_client *client)
{
    rp_store_set_rollout_journal(bed->store, NULL);
    rp_client_free(client);
    rp_test_bed_deinit(bed);
}

static rp_status make_call(rp_client *client, rp_rollouts_call call)
{
    rp_error err;

    call.rollouts = (rp_string){"r", 1};
    return rp_client_rollouts(client, &call, (rp_wait){RP_FOREVER, NULL}, &err);
}

static rp_rollout_options options(void)
{
    rp_rollout_options o;

    rp_rollout_options_init(&o);
    return o;
}

typedef struct drawing {
    rp_client *client;
    rp_status status;
} drawing;

static void *run_draw(void *arg)
{
    drawing *d = arg;

    d->status = make_call(d->client, (rp_rollouts_call){.action = RP_ROLLOUTS_DRAW,
                                                        .groups = 1,
                                                        .ttl_ns = INT64_C(1) << 50});
    return NULL;
}

static void a_cancelled_draw_releases_its_lease(void **state)
{
    (void)state;
    rp_rollout_options o = options();
    rp_test_bed bed;
    rp_rollout_info info;
    rp_rollouts *rollouts;
    drawing d = {0};
    pthread_t thread;

    begin(&bed, &d.client);
    assert_ok(
        make_call(d.client, (rp_rollouts_call){.action = RP_ROLLOUTS_CREATE, .options = &o}));
    assert_ok(
        make_call(d.client, (rp_rollouts_call){.action = RP_ROLLOUTS_PUT, .group = {"g", 1}}));
    rollouts = rp_rollout_set_find(rp_store_rollouts(bed.store), (rp_string){"r", 1});
    rp_rollouts_set_log(rollouts, &j.log);
    rp_store_set_rollout_journal(bed.store, &j.calls);
    assert_int_equal(pthread_create(&thread, NULL, run_draw, &d), 0);
    while (atomic_load(&j.waits) == 0) continue;
    rp_rollouts_get_info(rollouts, &info);
    assert_int_equal(info.consumers[0].drawn, 1);
    atomic_store(&j.is_cancelled, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(d.status, RP_CANCELLED);
    rp_rollouts_get_info(rollouts, &info);
    assert_int_equal(info.consumers[0].leased, 0);
    assert_int_equal(info.consumers[0].ready, 1);
    rp_rollouts_set_log(rollouts, NULL);
    rp_rollouts_unref(rollouts);
    end(&bed, d.client);
}

static void a_creation_asks_the_journal_for_room(void **state)
{
    (void)state;
    rp_rollout_options o = options();
    rp_test_bed bed;
    rp_client *client;
    const rp_rollouts_call create = {.action = RP_ROLLOUTS_CREATE, .options = &o};

    begin(&bed, &client);
    rp_store_set_rollout_journal(bed.store, &j.calls);
    atomic_store(&j.is_full, true);
    assert_int_equal(make_call(client, create), RP_NO_RESOURCE);
    assert_int_equal(atomic_load(&j.admissions), 1);
    assert_null(rp_rollout_set_find(rp_store_rollouts(bed.store), (rp_string){"r", 1}));
    atomic_store(&j.is_full, false);
    assert_ok(make_call(client, create));
    end(&bed, client);
}

RP_TESTS(rollouts_local)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_draw_releases_its_lease),
        cmocka_unit_test(a_creation_asks_the_journal_for_room),
    };
    return cmocka_run_group_tests_name("rollouts_local", tests, NULL, NULL);
}
