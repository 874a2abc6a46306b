/* SPDX-License-Identifier: Apache-2.0 */
/* One client in many threads, and in processes that fork. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client_fixture.h"
#include "scripted.h"
#include "support/certificates.h"

enum { THREADS = 50 };

static void *ask_often(void *arg)
{
    rp_error err;

    for (size_t i = 0; i < rp_test_length(40, 12); i++)
        assert_ok_err(ask(arg, soon(), &err), &err);
    return NULL;
}

static void try_many(const rp_server_options *options)
{
    pthread_t threads[THREADS];
    rp_test_live live;
    rp_client *client;

    rp_test_live_start(&live, options);
    client = client_of(&live, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, client), 0);
    for (int i = 0; i < THREADS; i++) (void)pthread_join(threads[i], NULL);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

static void fifty_threads_call_at_once(void **state)
{
    (void)state;
    try_many(NULL);
}

static void fifty_threads_share_three_streams(void **state)
{
    (void)state;
    try_many(&(rp_server_options){.limits.streams = 3});
}

#if !defined(RP_TEST_NO_FORK)
static int use_in_child(rp_client *client)
{
    rp_error err;

    for (int i = 0; i < 3; i++)
        if (ask(client, soon(), &err) != RP_OK) return 1;
    rp_client_free(client);
    return 0;
}

static void fork_and_use(rp_client *client)
{
    pid_t child = fork();
    int status = -1;

    assert_true(child >= 0);
    if (child == 0) _exit(use_in_child(client));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void try_fork(rp_test_live *live, const rp_client_options *options)
{
    rp_client *client = client_of(live, options);
    rp_error err;

    fork_and_use(client); /* before it has ever connected */
    assert_ok_err(ask(client, soon(), &err), &err);
    for (int i = 0; i < 5; i++) {
        fork_and_use(client);
        assert_ok_err(ask(client, soon(), &err), &err); /* the parent's connection is whole */
    }
    rp_client_free(client);
}

static void a_forked_child_reconnects(void **state)
{
    rp_test_skip_if_emulated();
    rp_test_live live;

    (void)state;
    rp_test_live_start(&live, NULL);
    try_fork(&live, NULL);
    rp_test_live_stop(&live);
}

static void a_forked_child_reconnects_under_tls(void **state)
{
    rp_test_skip_if_emulated();
    rp_test_certificates c;
    rp_server_options options = {0};
    rp_test_identity identity;
    rp_test_live live;

    (void)state;
    rp_test_certificates_init(&c);
    identity = rp_test_issue(&c, "server", "localhost", 9);
    options.security.certificate_file = identity.certificate;
    options.security.key_file = identity.key;
    rp_test_live_start(&live, &options);
    try_fork(&live, &(rp_client_options){.ca_file = c.ca});
    rp_test_live_stop(&live);
    rp_test_certificates_deinit(&c);
}

typedef struct busy {
    rp_client *client;
    atomic_bool stop;
    atomic_size_t calls;
} busy;

static void *keep_busy(void *arg)
{
    busy *b = arg;
    rp_error err;

    while (!atomic_load(&b->stop)) {
        assert_ok_err(ask(b->client, soon(), &err), &err);
        atomic_fetch_add(&b->calls, 1);
    }
    return NULL;
}

static void a_fork_in_the_middle_of_calls(void **state)
{
    rp_test_skip_if_emulated();
    busy b = {.stop = false};
    pthread_t threads[3];
    rp_test_live live;

    (void)state;
    rp_test_live_start(&live, NULL);
    b.client = client_of(&live, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &b), 0);
    while (atomic_load(&b.calls) < 10) (void)sched_yield();
    for (int i = 0; i < 20; i++) fork_and_use(b.client);
    atomic_store(&b.stop, true);
    for (int i = 0; i < 3; i++) (void)pthread_join(threads[i], NULL);
    rp_client_free(b.client);
    rp_test_live_stop(&live);
}

/* A child that never uses its client does not keep the parent's connection open. */
static void a_forked_child_holds_no_connection(void **state)
{
    rp_test_skip_if_emulated();
    int out[2], status;
    char byte, rest[256];
    rp_client *client;
    scripted s;
    rp_error err;
    pid_t child;
    int fd;

    (void)state;
    scripted_start(&s, NULL);
    client = new_client(s.address, NULL);
    assert_int_equal(ask(client, rp_wait_ms(50), &err), RP_DEADLINE); /* connected, no more */
    fd = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pipe(out), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* lives until the parent is done */
        (void)close(out[1]);
        (void)!read(out[0], &byte, 1);
        _exit(0);
    }
    rp_client_free(client);
    while (read(fd, rest, sizeof rest) > 0) continue; /* comes to its end */
    (void)close(fd);
    (void)close(out[1]);
    (void)close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    scripted_stop(&s);
}
#endif

RP_TESTS(client_threads)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_threads_call_at_once),
        cmocka_unit_test(fifty_threads_share_three_streams),
#if !defined(RP_TEST_NO_FORK)
        cmocka_unit_test(a_forked_child_reconnects),
        cmocka_unit_test(a_forked_child_reconnects_under_tls),
        cmocka_unit_test(a_fork_in_the_middle_of_calls),
        cmocka_unit_test(a_forked_child_holds_no_connection),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
