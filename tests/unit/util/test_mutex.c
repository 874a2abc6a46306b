/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/clock.h"
#include "util/mutex.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child that runs `scenario` ends: the signal that killed it, or 0. */
static int signal_of(void (*scenario)(void))
{
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        scenario();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void skip_without_debug_checks(void)
{
#ifdef NDEBUG
    skip();
#endif
}

static void take_upwards(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_STORE);
    rp_mutex_init(&b, RP_RANK_TABLE);

    for (int i = 0; i < 20; i++) {
        rp_mutex_lock(&a);
        rp_mutex_lock(&b);
        rp_mutex_unlock(i % 2 == 0 ? &a : &b); /* in any order */
        rp_mutex_unlock(i % 2 == 0 ? &b : &a);
    }
    rp_mutex_deinit(&a);
    rp_mutex_deinit(&b);
}

static void take_downwards(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_STORE);
    rp_mutex_init(&b, RP_RANK_TABLE);
    rp_mutex_lock(&b);
    rp_mutex_lock(&a);
}

static void take_one_rank_twice(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_TABLE);
    rp_mutex_init(&b, RP_RANK_TABLE);
    rp_mutex_lock(&a);
    rp_mutex_lock(&b);
}

static void take_many_of_one_rank(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    enum { MANY = 40 }; /* more than ranks can be held */
    rp_mutex all[MANY], above;
    rp_mutex_init(&above, RP_RANK_BUDGET);
    for (int i = 0; i < MANY; i++) rp_mutex_init(&all[i], RP_RANK_TABLE);

    for (int round = 0; round < 3; round++) {
        rp_mutex_lock(&all[0]);
        for (int i = 1; i < MANY; i++)
            if (i % 2 == 0)
                rp_mutex_lock_beside(&all[i]);
            else if (!rp_mutex_try_lock_beside(&all[i]))
                abort();
        rp_mutex_lock(&above);
        for (int i = 0; i < MANY; i++) rp_mutex_unlock(&all[i]);
        rp_mutex_unlock_and_pause(&above);
    }
}

static void take_beside_nothing(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a;
    rp_mutex_init(&a, RP_RANK_TABLE);
    rp_mutex_lock_beside(&a);
}

static void take_beside_another_rank(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_STORE);
    rp_mutex_init(&b, RP_RANK_TABLE);
    rp_mutex_lock(&a);
    rp_mutex_lock_beside(&b);
}

static void take_one_rank_again_while_one_of_several_is_left(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_TABLE);
    rp_mutex_init(&b, RP_RANK_TABLE);
    rp_mutex_lock(&a);
    rp_mutex_lock_beside(&b);
    rp_mutex_unlock(&b);
    rp_mutex_lock(&b);
}

static void unlock_what_is_not_held(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a;
    rp_mutex_init(&a, RP_RANK_TABLE);
    rp_mutex_unlock(&a);
}

static void take_down_after_letting_go(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex a, b;
    rp_mutex_init(&a, RP_RANK_STORE);
    rp_mutex_init(&b, RP_RANK_TABLE);
    rp_mutex_lock(&b);
    rp_mutex_unlock(&b);
    rp_mutex_lock(&a);
    rp_mutex_unlock(&a);
}

static void ranks_may_be_taken_upwards(void **state)
{
    (void)state;
    assert_int_equal(signal_of(take_upwards), 0);
    assert_int_equal(signal_of(take_down_after_letting_go), 0);
}

static void lower_rank_under_a_higher_one_aborts(void **state)
{
    (void)state;
    skip_without_debug_checks();
    assert_int_equal(signal_of(take_downwards), SIGABRT);
}

static void same_rank_twice_aborts(void **state)
{
    (void)state;
    skip_without_debug_checks();
    assert_int_equal(signal_of(take_one_rank_twice), SIGABRT);
}

static void several_of_one_rank_may_be_taken_beside_each_other(void **state)
{
    (void)state;
    assert_int_equal(signal_of(take_many_of_one_rank), 0);
    skip_without_debug_checks();
    assert_int_equal(signal_of(take_beside_nothing), SIGABRT);
    assert_int_equal(signal_of(take_beside_another_rank), SIGABRT);
    assert_int_equal(signal_of(take_one_rank_again_while_one_of_several_is_left), SIGABRT);
}

static void *hold_a_while(void *arg) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex *locks = arg;

    rp_mutex_lock(&locks[0]);
    assert_false(rp_mutex_try_lock_beside(&locks[1]));
    rp_mutex_unlock(&locks[0]);
    return NULL;
}

static void trylock_of_a_taken_lock_does_not_wait(void **state) RP_NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    rp_mutex locks[2];
    pthread_t other;
    for (int i = 0; i < 2; i++) rp_mutex_init(&locks[i], RP_RANK_TABLE);
    rp_mutex_lock(&locks[1]);

    assert_int_equal(pthread_create(&other, NULL, hold_a_while, locks), 0);
    assert_int_equal(pthread_join(other, NULL), 0); /* or it would never end */

    rp_mutex_unlock(&locks[1]);
    for (int i = 0; i < 2; i++) rp_mutex_deinit(&locks[i]);
}

static void unlocking_a_lock_that_is_not_held_aborts(void **state)
{
    (void)state;
    skip_without_debug_checks();
    assert_int_equal(signal_of(unlock_what_is_not_held), SIGABRT);
}

static void
wait_ends_at_its_deadline_on_the_monotonic_clock(void **state) RP_NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    rp_mutex m;
    rp_cond c;
    int64_t start = rp_now_ns(), until = start + 20000000;
    bool in_time = true;
    rp_mutex_init(&m, RP_RANK_WAITER);
    rp_cond_init(&c);

    rp_mutex_lock(&m);
    while (in_time) in_time = rp_cond_wait(&c, &m, until);
    assert_true(rp_now_ns() >= until);
    while (rp_cond_wait(&c, &m, -5)) {} /* long past: at once */
    rp_mutex_unlock(&m);

    assert_true(rp_now_ns() - start < 10000000000);
    rp_cond_deinit(&c);
    rp_mutex_deinit(&m);
}

typedef struct bell {
    rp_mutex mu;
    rp_cond cv;
    bool rung;
} bell;

static void *ring(void *arg) RP_NO_THREAD_SAFETY_ANALYSIS
{
    bell *b = arg;

    rp_mutex_lock(&b->mu);
    b->rung = true;
    rp_cond_signal(&b->cv);
    rp_mutex_unlock(&b->mu);
    return NULL;
}

static void wait_ends_with_a_signal(void **state) RP_NO_THREAD_SAFETY_ANALYSIS
{
    (void)state;
    bell b = {.rung = false};
    pthread_t ringer;
    rp_mutex_init(&b.mu, RP_RANK_WAITER);
    rp_cond_init(&b.cv);

    rp_mutex_lock(&b.mu);
    assert_int_equal(pthread_create(&ringer, NULL, ring, &b), 0);
    while (!b.rung) assert_true(rp_cond_wait(&b.cv, &b.mu, INT64_MAX));
    rp_mutex_unlock(&b.mu);

    assert_int_equal(pthread_join(ringer, NULL), 0);
    rp_cond_deinit(&b.cv);
    rp_mutex_deinit(&b.mu);
}

static void clocks_go_forward_and_seeds_differ(void **state)
{
    (void)state;
    int64_t first = rp_now_ns(), second = rp_now_ns();
    uint64_t a = rp_system_seed(), b = rp_system_seed();

    assert_true(second >= first && first > 0);
    assert_true(rp_wall_ns(NULL) > 1600000000000000000); /* after 2020 */
    assert_true(a != 0 && b != 0 && a != b);
}

RP_TESTS(mutex)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_may_be_taken_upwards),
        cmocka_unit_test(lower_rank_under_a_higher_one_aborts),
        cmocka_unit_test(same_rank_twice_aborts),
        cmocka_unit_test(several_of_one_rank_may_be_taken_beside_each_other),
        cmocka_unit_test(trylock_of_a_taken_lock_does_not_wait),
        cmocka_unit_test(unlocking_a_lock_that_is_not_held_aborts),
        cmocka_unit_test(wait_ends_at_its_deadline_on_the_monotonic_clock),
        cmocka_unit_test(wait_ends_with_a_signal),
        cmocka_unit_test(clocks_go_forward_and_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
