/* SPDX-License-Identifier: Apache-2.0 */
#include "client/channel/runtime.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"
#include "util/mem.h"

static rp_runtime *get(void)
{
    rp_runtime *r = NULL;
    rp_error err;

    assert_ok_err(rp_runtime_get(&r, &err), &err);
    return r;
}

static void users_share_one_runtime(void **state)
{
    rp_runtime *a = get(), *b = get();

    (void)state;
    assert_ptr_equal(a, b);
    assert_true(rp_runtime_workers(a) >= 1 && rp_runtime_workers(a) <= 4);
    rp_runtime_put(a);
    a = get();
    assert_ptr_equal(a, b);
    rp_runtime_put(a);
    rp_runtime_put(b);
    rp_runtime_put(NULL);
}

typedef struct counted_job {
    rp_job job;
    atomic_size_t *done;
} counted_job;

static void count_job(rp_job *job)
{
    atomic_fetch_add(((counted_job *)job)->done, 1);
}

static void all_jobs_run_before_the_runtime_ends(void **state)
{
    enum { JOBS = 1000 };
    static counted_job jobs[JOBS];
    atomic_size_t done = 0;
    rp_runtime *r = get();

    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (counted_job){{.run = count_job}, &done};
        rp_runtime_submit(r, &jobs[i].job);
    }
    rp_runtime_put(r);
    assert_int_equal(done, JOBS);
}

static void note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
}

static void run_on_loop_uses_one_other_thread(void **state)
{
    pthread_t first, second;
    rp_runtime *r = get();

    (void)state;
    rp_runtime_run_on_loop(r, note_thread, &first);
    rp_runtime_run_on_loop(r, note_thread, &second);
    assert_true(pthread_equal(first, second));
    assert_false(pthread_equal(first, pthread_self()));
    rp_runtime_put(r);
}

static void note_signals(void *arg)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, arg);
}

static void runtime_threads_block_signals(void **state)
{
    rp_runtime *r = get();
    sigset_t set;

    (void)state;
    rp_runtime_run_on_loop(r, note_signals, &set);
    assert_int_equal(sigismember(&set, SIGTERM), 1);
    assert_int_equal(sigismember(&set, SIGINT), 1);
    rp_runtime_put(r);
}

typedef struct ending {
    rp_at_turn_end end;
    rp_runtime *runtime;
    struct ending *next;
    int runs;
} ending;

static void on_end(rp_at_turn_end *end)
{
    ending *e = (ending *)end;

    e->runs++;
    if (e->next != NULL && e->next->runs == 0)
        rp_runtime_at_turn_end(e->runtime, &e->next->end);
}

static void ask_for_ends(void *arg)
{
    ending *e = arg;

    rp_runtime_at_turn_end(e[0].runtime, &e[0].end);
    rp_runtime_at_turn_end(e[0].runtime, &e[0].end);
    rp_runtime_at_turn_end(e[0].runtime, &e[2].end);
    rp_runtime_forget_turn_end(e[0].runtime, &e[2].end);
    rp_runtime_forget_turn_end(e[0].runtime, &e[2].end);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void turn_end_callbacks_run_once(void **state)
{
    rp_runtime *r = get();
    ending e[3] = {{{.run = on_end}, r, NULL, 0},
                   {{.run = on_end}, r, NULL, 0},
                   {{.run = on_end}, r, NULL, 0}};

    (void)state;
    e[0].next = &e[1];
    rp_runtime_run_on_loop(r, ask_for_ends, e);
    rp_runtime_run_on_loop(r, nothing, NULL); /* the turn is over */
    assert_int_equal(e[0].runs, 1);
    assert_int_equal(e[1].runs, 1);
    assert_int_equal(e[2].runs, 0);
    rp_runtime_put(r);
}

#if !defined(RP_TEST_NO_FORK)
static void in_child(rp_runtime *parents, uint64_t generation)
{
    rp_runtime *r = NULL;
    pthread_t thread;

    if (rp_runtime_generation() == generation) _exit(1);
    if (rp_runtime_get(&r, NULL) != RP_OK || r == parents) _exit(2);
    rp_runtime_run_on_loop(r, note_thread, &thread);
    rp_runtime_put(r);
    rp_runtime_put(parents); /* nothing: they are the parent's */
    _exit(0);
}

static void fork_once(rp_runtime *r)
{
    uint64_t generation = rp_runtime_generation();
    pid_t child = fork();
    int status = -1;

    assert_true(child >= 0);
    if (child == 0) in_child(r, generation);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rp_runtime_generation(), generation);
}

typedef struct restless {
    atomic_bool stop;
    rp_runtime *runtime;
} restless;

/* Takes and gives back references, submits jobs, allocates: all that takes a lock. */
static void *be_restless(void *arg)
{
    restless *r = arg;

    while (!atomic_load(&r->stop)) {
        rp_runtime *mine = get();
        atomic_size_t done = 0;
        counted_job job = {{.run = count_job}, &done};

        rp_runtime_submit(mine, &job.job);
        rp_runtime_lock_clients();
        rp_runtime_unlock_clients();
        rp_runtime_run_on_loop(mine, nothing, NULL);
        while (atomic_load(&done) == 0) (void)sched_yield();
        rp_runtime_put(mine);
    }
    return NULL;
}

static void a_forked_child_has_its_own_threads(void **state)
{
    rp_test_skip_if_emulated();
    rp_runtime *r = get();

    (void)state;
    fork_once(r);
    rp_runtime_put(r);
}

static void a_fork_may_come_at_any_moment(void **state)
{
    rp_test_skip_if_emulated();
    enum { THREADS = 3, FORKS = 60 };
    restless r = {.stop = false};
    pthread_t threads[THREADS];

    (void)state;
    r.runtime = get();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_restless, &r), 0);
    for (int i = 0; i < FORKS; i++) fork_once(r.runtime);
    atomic_store(&r.stop, true);
    for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    rp_runtime_put(r.runtime);
}
#endif

RP_TESTS(runtime)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_share_one_runtime),
        cmocka_unit_test(all_jobs_run_before_the_runtime_ends),
        cmocka_unit_test(run_on_loop_uses_one_other_thread),
        cmocka_unit_test(runtime_threads_block_signals),
        cmocka_unit_test(turn_end_callbacks_run_once),
#if !defined(RP_TEST_NO_FORK)
        cmocka_unit_test(a_forked_child_has_its_own_threads),
        cmocka_unit_test(a_fork_may_come_at_any_moment),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
