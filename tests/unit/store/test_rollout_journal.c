/* SPDX-License-Identifier: Apache-2.0 */
/* A journal of rollouts that ends while threads wait for it: nobody uses it afterwards. */
#include "store/rollout_journal.h"

#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"
#include "support/fixture.h"
#include "util/clock.h"

typedef struct journal {
    rp_rollout_journal calls; /* first */
    rp_mutex mu;
    atomic_int *waits; /* begun */
} journal;

static rp_status refuse(rp_rollout_journal *calls, const rp_rollout_op *op, uint64_t *claimed,
                        rp_error *err)
{
    (void)calls, (void)op, (void)claimed;
    if (err != NULL) *err = (rp_error){.code = RP_UNAVAILABLE};
    return RP_UNAVAILABLE;
}

static void unclaim(rp_rollout_journal *calls, uint64_t claimed)
{
    (void)calls, (void)claimed;
}

static rp_status wait_until(rp_rollout_journal *calls, uint64_t lsn, rp_wait wait,
                            rp_error *err)
{
    journal *j = (journal *)(void *)calls;

    (void)lsn;
    atomic_fetch_add(j->waits, 1);
    while (rp_now_ns() < wait.until_ns) { /* uses the journal all the time */
        rp_mutex_lock(&j->mu);
        rp_mutex_unlock(&j->mu);
    }
    if (err != NULL) *err = (rp_error){.code = RP_DEADLINE};
    return RP_DEADLINE;
}

static uint64_t last(rp_rollout_journal *calls)
{
    (void)calls;
    return 6;
}

typedef struct waiter {
    rp_store *store;
    pthread_t thread;
    bool admits;
    rp_status status;
} waiter;

static void *run(void *arg)
{
    const rp_rollout_op op = {.kind = RP_ROLLOUT_PUT};
    const rp_wait forever = {RP_FOREVER, NULL};
    waiter *w = arg;
    uint64_t claimed;

    if (w->admits)
        w->status = rp_store_rollouts_admit_wait(w->store, &op, forever, &claimed, NULL);
    else
        w->status = rp_store_rollouts_wait(w->store, 5, forever, NULL);
    return NULL;
}

static void wait_while_it_ends(bool admits, rp_status expected)
{
    rp_test_bed bed;
    atomic_int waits = 0;
    waiter w = {.admits = admits};
    journal *j = test_calloc(1, sizeof *j);

    rp_test_bed_init(&bed, NULL);
    *j = (journal){.calls = {refuse, unclaim, wait_until, last}, .waits = &waits};
    rp_mutex_init(&j->mu, RP_RANK_JOURNAL);
    rp_store_set_rollout_journal(bed.store, &j->calls);
    w.store = bed.store;
    assert_int_equal(pthread_create(&w.thread, NULL, run, &w), 0);
    while (atomic_load(&waits) < 2) continue;
    rp_store_set_rollout_journal(bed.store, NULL);
    rp_mutex_deinit(&j->mu);
    memset(&j->calls, 0, sizeof j->calls);
    test_free(j);
    assert_int_equal(pthread_join(w.thread, NULL), 0);
    assert_int_equal(w.status, expected);
    rp_test_bed_deinit(&bed);
}

static void an_admission_ends_with_the_journal(void **state)
{
    (void)state;
    wait_while_it_ends(true, RP_OK); /* without a journal all operations are admitted */
}

static void a_wait_for_a_record_ends_with_the_journal(void **state)
{
    (void)state;
    wait_while_it_ends(false, RP_UNAVAILABLE);
}

RP_TESTS(rollout_journal)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_admission_ends_with_the_journal),
        cmocka_unit_test(a_wait_for_a_record_ends_with_the_journal),
    };
    return cmocka_run_group_tests_name("rollout_journal", tests, NULL, NULL);
}
