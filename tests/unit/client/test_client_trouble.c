/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that cannot be reached, stop, restart or send too little; waits that end; shards;
 * calls without memory. Every wait is bounded, so no test can hang. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "client_fixture.h"
#include "reprise/rollout_calls.h"
#include "reprise/sampler.h"
#include "scripted.h"

static const int64_t MS = 1000000;

/* A port that nobody listens on. */
static int free_port(void)
{
    scripted s;

    scripted_start(&s, NULL);
    scripted_stop(&s);
    return s.port;
}

static void an_absent_server_is_unavailable_at_once(void **state)
{
    char address[64];
    rp_client *client;
    rp_error err;
    int64_t then = rp_now_ns();

    (void)state;
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    client = new_client(address, NULL);
    assert_fails(ask(client, rp_wait_forever(), &err), RP_UNAVAILABLE, &err, address);
    assert_fails(ask(client, rp_wait_forever(), &err), RP_UNAVAILABLE, &err, "refused");
    rp_client_free(client);
    client = new_client("unix:/nowhere/at/all", NULL);
    assert_fails(ask(client, rp_wait_forever(), &err), RP_UNAVAILABLE, &err, "/nowhere");
    rp_client_free(client);
    assert_true(rp_now_ns() - then < 10000 * MS);
}

static void shards_that_are_left_out_are_counted(void **state)
{
    char addresses[128], why[RP_ERROR_TEXT_BYTES];
    rp_test_live live;
    rp_client *client;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(addresses, sizeof addresses, "127.0.0.1:%d,127.0.0.1:%d", live.port,
                   free_port());
    client = new_client(addresses, NULL);
    assert_int_equal(rp_client_why_away(client, SIZE_MAX, why, sizeof why), 0);
    for (uint64_t calls = 1; calls <= 3; calls++) {
        assert_ok_err(rp_client_reset(client, "replay", soon(), &err), &err);
        assert_int_equal(rp_client_why_away(client, 0, why, sizeof why), 0);
        assert_string_equal(why, "");
        assert_int_equal(rp_client_why_away(client, 1, why, sizeof why), calls);
        assert_true(why[0] != '\0');
        assert_int_equal(rp_client_why_away(client, SIZE_MAX, why, sizeof why), calls);
        assert_string_equal(why, "");
    }
    rp_client_free(client);
    rp_test_live_stop(&live);
}

static void an_unknown_host_name_is_unavailable(void **state)
{
    rp_client *client = new_client("no-such-name.invalid:80", NULL);
    rp_error err;

    (void)state;
    assert_fails(ask(client, soon(), &err), RP_UNAVAILABLE, &err, "no-such-name.invalid");
    rp_client_free(client);
    /* One that is being looked up when its client is freed is nobody's trouble. */
    client = new_client("other-name.invalid:80", NULL);
    assert_int_not_equal(ask(client, rp_wait_ms(1), &err), RP_OK);
    rp_client_free(client);
}

static void pauses_grow_between_attempts(void **state)
{
    const rp_client_options options = {.retry_min_ms = 50, .retry_max_ms = 100};
    char address[64];
    rp_client *client;
    int64_t then;
    rp_error err;

    (void)state;
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
    client = new_client(address, &options);
    then = rp_now_ns();
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask(client, rp_wait_forever(), &err), RP_UNAVAILABLE);
    /* Four pauses, of at least half of 50, 100, 100 and 100 ms. */
    assert_true(rp_now_ns() - then >= 174 * MS);
    rp_client_free(client);
}

static void never(void *ctx, const rp_rollouts_entry *entry)
{
    (void)ctx, (void)entry;
}

static void a_server_that_sends_no_greeting_times_out(void **state)
{
    const rp_client_options options = {.connect_timeout_ms = 100};
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, NULL);
    client = new_client(s.address, &options);
    assert_fails(ask(client, rp_wait_forever(), &err), RP_UNAVAILABLE, &err,
                 "does not respond within");
    rp_client_free(client);
    /* The same, if the deadline comes first. */
    client = new_client(s.address, NULL);
    for (int64_t ms = 50; ms <= 5000; ms *= 10) { /* a busy machine connects later */
        assert_int_equal(ask(client, rp_wait_ms(ms), &err), RP_DEADLINE);
        if (strstr(err.text, "no connection in time") == NULL) break;
    }
    assert_non_null(strstr(
        err.text, "does not respond: is it stopped or overloaded, or no server of gRPC?"));
    rp_client_free(client);
    scripted_stop(&s);
}

static void rollouts_end_with_their_wait(void **state)
{
    const rp_rollouts_action actions[] = {RP_ROLLOUTS_RESERVE, RP_ROLLOUTS_DRAW,
                                          RP_ROLLOUTS_LIST};
    const rp_client_options options = {.connect_timeout_ms = 9000};
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, NULL);
    client = new_client(s.address, &options);
    /* The attempt to connect ends after all waits: its text would be another. */
    for (size_t i = 0; i < 3; i++)
        for (int ms = 0; ms <= 50; ms += 50) {
            rp_rollouts_call call = {.action = actions[i],
                                     .rollouts = {"r", 1},
                                     .group = {"g", 1},
                                     .groups = 1,
                                     .ttl_ns = 1000 * MS,
                                     .on_entry = never};

            assert_fails(rp_client_rollouts(client, &call, rp_wait_ms(ms), &err), RP_DEADLINE,
                         &err, "does not respond: is it stopped");
            assert_false(call.is_sent);
        }
    rp_client_free(client);
    scripted_stop(&s);
}

static void *hang_up(void *arg)
{
    int fd;

    while ((fd = scripted_accept(arg)) >= 0) (void)close(fd);
    return NULL;
}

static void a_server_that_greets_and_hangs_up_is_not_retried_at_once(void **state)
{
    const rp_client_options options = {.retry_min_ms = 1, .retry_max_ms = 5};
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, hang_up);
    client = new_client(s.address, &options);
    assert_int_equal(ask(client, rp_wait_ms(10000), &err), RP_UNAVAILABLE);
    rp_client_free(client);
    scripted_stop(&s);
}

static void *speak_nonsense(void *arg)
{
    scripted *s = arg;
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        char end[64];

        (void)!send(fd, "220 mail.example ESMTP\r\n", 24, MSG_NOSIGNAL);
        while (read(fd, end, sizeof end) > 0) continue;
        (void)close(fd);
    }
    return NULL;
}

static void a_server_of_another_protocol_is_unavailable(void **state)
{
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, speak_nonsense);
    client = new_client(s.address, NULL);
    assert_fails(ask(client, soon(), &err), RP_UNAVAILABLE, &err, "HTTP/2");
    rp_client_free(client);
    scripted_stop(&s);
}

static void *say_half(void *arg)
{
    static const char part[] = "\0\0\0\0\x64half of it";
    int fd = scripted_accept(arg);
    uint32_t stream = scripted_await_call(fd);
    char rest[256];

    if (stream != 0) {
        scripted_frame(fd, HEADERS, END_HEADERS, stream, SCRIPTED_HEAD,
                       sizeof SCRIPTED_HEAD - 1);
        scripted_frame(fd, DATA, 0, stream, part, sizeof part - 1);
    }
    while (read(fd, rest, sizeof rest) > 0) continue;
    (void)close(fd);
    return NULL;
}

static void half_a_response_is_awaited_until_the_deadline(void **state)
{
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, say_half);
    client = new_client(s.address, NULL);
    assert_fails(ask(client, rp_wait_ms(200), &err), RP_DEADLINE, &err, s.address);
    rp_client_free(client);
    scripted_stop(&s);
}

typedef struct firing {
    rp_cancel *cancel;
    int64_t after_ms;
} firing;

static void *fire_later(void *arg)
{
    firing *f = arg;

    (void)usleep((useconds_t)f->after_ms * 1000);
    rp_cancel_fire(f->cancel);
    return NULL;
}

static void expect_cancelled(rp_client *client)
{
    firing f = {.after_ms = 50};
    int64_t then = rp_now_ns();
    pthread_t thread;
    rp_error err;

    assert_ok(rp_cancel_new(&f.cancel));
    assert_int_equal(pthread_create(&thread, NULL, fire_later, &f), 0);
    assert_fails(ask(client, (rp_wait){RP_FOREVER, f.cancel}, &err), RP_CANCELLED, &err,
                 "cancelled");
    assert_true(rp_now_ns() - then < 5000 * MS);
    (void)pthread_join(thread, NULL);
    /* One that is fired already ends the next one before it begins. */
    assert_int_equal(ask(client, (rp_wait){RP_FOREVER, f.cancel}, &err), RP_CANCELLED);
    rp_cancel_free(f.cancel);
}

static void a_wait_can_be_cancelled(void **state)
{
    rp_client *client;
    scripted s;

    (void)state;
    scripted_start(&s, say_half);
    client = new_client(s.address, NULL);
    expect_cancelled(client);
    rp_client_free(client);
    scripted_stop(&s);
}

static void *give_up_soon(void *arg)
{
    rp_test_live *live = ((void **)arg)[0];

    assert_true(rp_test_live_await(live, "replay", 0, 1)); /* the sampler waits */
    rp_test_live_end(live);
    rp_client_give_up(((void **)arg)[1]);
    return NULL;
}

/* Without it a server that has gone is waited for: it may come back. */
static void closing_a_client_ends_its_waits(void **state)
{
    const rp_sampler_options options = {.table = "replay", .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;
    rp_test_live live;
    rp_client *client;
    rp_sample sample;
    pthread_t thread;
    size_t count;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    client = client_of(&live, NULL);
    assert_ok_err(rp_sampler_new(client, &options, &sampler, &err), &err);
    assert_int_equal(pthread_create(&thread, NULL, give_up_soon, (void *[]){&live, client}), 0);

    assert_fails(rp_sampler_next(sampler, &sample, 1, &count, soon(), &err), RP_CANCELLED, &err,
                 "the client gave up: this program stopped the server, or called "
                 "rp_client_give_up()");
    (void)pthread_join(thread, NULL);
    assert_fails(ask(client, soon(), &err), RP_CANCELLED, &err, "gave up"); /* and later */

    rp_sampler_free(sampler);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

static void *chatter(void *arg)
{
    int fd = scripted_accept(arg);
    uint32_t stream = scripted_await_call(fd);

    /* Never an answer, and never silence. */
    while (stream != 0) {
        char ignored[256];
        ssize_t n;

        scripted_frame(fd, PING, 0, 0, "nothing!", 8);
        n = recv(fd, ignored, sizeof ignored, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) break;
        (void)usleep(50);
    }
    (void)close(fd);
    return NULL;
}

static void a_wait_can_be_cancelled_during_other_calls(void **state)
{
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, chatter);
    client = new_client(s.address, NULL);
    assert_int_equal(ask(client, rp_wait_ms(30), &err), RP_DEADLINE); /* connected */
    expect_cancelled(client);
    rp_client_free(client);
    scripted_stop(&s);
}

/* Hangs up before it has greeted, so that the client will make pauses; then on every second
 * call. */
static void *hang_up_on_calls(void *arg)
{
    int fd = accept4(((scripted *)arg)->listener, NULL, NULL, SOCK_CLOEXEC);

    (void)close(fd);
    while ((fd = scripted_accept(arg)) >= 0) {
        if (scripted_await_call(fd) != 0) (void)scripted_await_call(fd);
        (void)close(fd);
    }
    return NULL;
}

static int64_t processor_ns(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void a_closed_connection_uses_no_processor_time(void **state)
{
    const rp_client_options options = {.retry_min_ms = 400, .retry_max_ms = 400};
    rp_client *client;
    scripted s;
    rp_error err;
    int64_t then, used;

    (void)state;
    scripted_start(&s, hang_up_on_calls);
    client = new_client(s.address, &options);
    assert_int_equal(ask(client, rp_wait_ms(20000), &err), RP_UNAVAILABLE);
    assert_int_equal(ask(client, rp_wait_ms(1000), &err), RP_DEADLINE); /* connected */
    then = rp_now_ns();
    used = processor_ns();
    assert_int_equal(ask(client, rp_wait_ms(800), &err), RP_DEADLINE); /* sent, and again */
    used = processor_ns() - used;
    assert_true(rp_now_ns() - then >= 180 * MS); /* there was a pause, */
    assert_true(used < 100 * MS);                /* in which nobody was busy */
    rp_client_free(client);
    scripted_stop(&s);
}

static void a_call_with_no_wait_is_deadline_exceeded(void **state)
{
    rp_client *client = new_client("127.0.0.1:1", NULL);
    rp_error err;

    (void)state;
    assert_int_equal(ask(client, rp_wait_none(), &err), RP_DEADLINE);
    rp_client_free(client);
}

static void restart(rp_test_live *live)
{
    char address[64];
    const char *addresses[] = {address};
    rp_server_options options = {.addresses = addresses, .address_count = 1};

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", live->port);
    rp_test_live_end(live);
    assert_ok_err(rp_test_live_try(live, &options), &live->err);
}

static void a_server_may_be_restarted_between_calls(void **state)
{
    rp_test_live live;
    rp_client *client;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    client = client_of(&live, NULL);
    for (int i = 0; i < 10; i++) {
        assert_ok_err(ask(client, soon(), &err), &err);
        restart(&live);
    }
    rp_test_live_end(&live);
    assert_int_equal(ask(client, soon(), &err), RP_UNAVAILABLE);
    assert_int_equal(ask(client, soon(), &err), RP_UNAVAILABLE);
    assert_ok_err(rp_test_live_try(&live, NULL), &live.err); /* elsewhere */
    assert_int_equal(ask(client, soon(), &err), RP_UNAVAILABLE);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

/* Says goodbye after the first call, which it answers only when the second has come on a new
 * connection. */
static void *say_goodbye(void *arg)
{
    static const uint8_t goodbye[8] = {0, 0, 0, 1};
    int first = scripted_accept(arg), second;
    uint32_t one = scripted_await_call(first), two;
    char rest[256];

    scripted_frame(first, GOAWAY, 0, 0, goodbye, sizeof goodbye);
    second = scripted_accept(arg);
    two = scripted_await_call(second);
    scripted_end(second, two, "5");
    scripted_end(first, one, "7");
    while (read(first, rest, sizeof rest) > 0) continue; /* the client closes it */
    (void)close(first);
    while (read(second, rest, sizeof rest) > 0) continue;
    (void)close(second);
    return NULL;
}

typedef struct asker {
    rp_client *client;
    rp_status status;
} asker;

static void *reset_one(void *arg)
{
    asker *a = arg;
    rp_error err;

    a->status = rp_client_reset(a->client, "x", soon(), &err);
    return NULL;
}

static void after_goaway_new_calls_use_a_new_connection(void **state)
{
    asker first;
    rp_status second;
    pthread_t thread;
    scripted s;
    rp_error err;

    (void)state;
    scripted_start(&s, say_goodbye);
    first = (asker){.client = new_client(s.address, NULL)};
    assert_int_equal(pthread_create(&thread, NULL, reset_one, &first), 0);
    /* Either may come first. */
    second = rp_client_reset(first.client, "y", soon(), &err);
    (void)pthread_join(thread, NULL);
    assert_int_equal(first.status + second, RP_NOT_FOUND + RP_DENIED);
    rp_client_free(first.client);
    scripted_stop(&s);
}

static void a_dead_shard_is_skipped(void **state)
{
    char addresses[128];
    rp_client_tables *tables = NULL;
    rp_test_live live;
    rp_client *client;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(addresses, sizeof addresses, "127.0.0.1:%d, 127.0.0.1:%d", free_port(),
                   live.port);
    client = new_client(addresses, NULL);
    assert_int_equal(rp_client_shard_count(client), 2);
    assert_ok_err(rp_client_get_tables(client, soon(), &tables, &err), &err);
    assert_int_equal(tables->count, 4);
    for (size_t i = 0; i < tables->count; i++) assert_int_equal(tables->tables[i].shard, 1);
    rp_client_tables_free(tables);
    assert_ok_err(rp_client_reset(client, "replay", soon(), &err), &err);
    assert_fails(rp_client_reset(client, "nowhere", soon(), &err), RP_NOT_FOUND, &err,
                 "nowhere");
    rp_test_live_end(&live);
    assert_int_equal(rp_client_reset(client, "replay", soon(), &err), RP_UNAVAILABLE);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

/* The next attempt to connect is an hour away. Calls do not wait for it, and one of them makes
 * it when its time has come. */
static void no_call_waits_for_a_shard_that_is_away(void **state)
{
    const rp_client_options slow = {.retry_min_ms = 3600000, .retry_max_ms = 3600000};
    const rp_client_options quick = {.retry_min_ms = 1, .retry_max_ms = 1};
    rp_client_tables *tables = NULL;
    char addresses[256];
    rp_test_live live;
    rp_client *client;
    size_t shards = 0;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(addresses, sizeof addresses, "127.0.0.1:%d,unix:%s", free_port(), live.path);
    client = new_client(addresses, &slow);
    for (int i = 0; i < 3; i++)
        assert_ok_err(rp_client_reset(client, "replay", rp_wait_forever(), &err), &err);
    rp_client_free(client);

    /* Both shards are one server, of which the first address begins to work later. */
    (void)snprintf(addresses, sizeof addresses, "unix:%s.later,unix:%s", live.path, live.path);
    client = new_client(addresses, &quick);
    assert_ok_err(rp_client_reset(client, "replay", rp_wait_forever(), &err), &err);
    (void)snprintf(addresses, sizeof addresses, "%s.later", live.path);
    assert_int_equal(link(live.path, addresses), 0);
    while (shards < 2) {
        assert_ok_err(rp_client_get_tables(client, rp_wait_forever(), &tables, &err), &err);
        shards = tables->count / 4;
        rp_client_tables_free(tables);
    }
    assert_int_equal(unlink(addresses), 0);
    rp_client_free(client);
    rp_test_live_stop(&live);
}

static void a_silent_shard_is_skipped(void **state)
{
    char addresses[160];
    rp_test_live live;
    rp_client *client;
    scripted s;
    rp_error err;

    (void)state;
    rp_test_live_start(&live, NULL);
    scripted_start(&s, NULL);
    (void)snprintf(addresses, sizeof addresses, "%s,unix:%s", s.address, live.path);
    client = new_client(addresses, NULL);
    assert_ok_err(rp_client_reset(client, "replay", rp_wait_ms(300), &err), &err);
    rp_client_free(client);
    scripted_stop(&s);
    rp_test_live_stop(&live);
}

static void calls_go_to_all_shards(void **state)
{
    char addresses[128];
    rp_client_tables *tables = NULL;
    rp_test_live one, two;
    rp_client *client;
    rp_error err;

    (void)state;
    rp_test_live_start(&one, NULL);
    rp_test_live_start(&two, NULL);
    (void)snprintf(addresses, sizeof addresses, "127.0.0.1:%d,unix:%s", one.port, two.path);
    client = new_client(addresses, NULL);
    assert_ok_err(rp_client_get_tables(client, soon(), &tables, &err), &err);
    assert_int_equal(tables->count, 8);
    assert_int_equal(tables->tables[3].shard, 0);
    assert_int_equal(tables->tables[4].shard, 1);
    rp_client_tables_free(tables);
    assert_ok_err(rp_client_pause_table(client, "replay", RP_SIDE_SAMPLES, soon(), &err), &err);
    assert_int_equal(rp_test_live_info(&one, "replay").paused, RP_SIDE_SAMPLES);
    assert_int_equal(rp_test_live_info(&two, "replay").paused, RP_SIDE_SAMPLES);
    rp_client_free(client);
    rp_test_live_stop(&one);
    rp_test_live_stop(&two);
}

/* A call with room for some allocations: it works, or says that there is no memory, and the
 * client is as good as before once there is some. */
static void calls_survive_failed_allocations(void **state)
{
    rp_test_live live;
    rp_error err;
    size_t room;

    (void)state;
    rp_test_live_start(&live, NULL);
    for (room = 0; room < 500; room++) {
        rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        rp_client *client = client_of(&live, &(rp_client_options){.alloc = &alloc});
        rp_status st;

        atomic_store(&o.left, room);
        st = ask(client, soon(), &err);
        atomic_store(&o.left, RP_TEST_OOM_UNLIMITED);
        if (st != RP_OK && st != RP_NO_RESOURCE && st != RP_UNAVAILABLE)
            fail_msg("%s: %s", rp_status_name(st), err.text);
        assert_ok_err(ask(client, soon(), &err), &err);
        rp_client_free(client);
        assert_int_equal(o.live, 0);
        if (st == RP_OK && atomic_load(&o.failed) == 0) break;
    }
    assert_true(room > 10 && room < 500);
    rp_test_live_stop(&live);
}

RP_TESTS(client_trouble)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_server_is_unavailable_at_once),
        cmocka_unit_test(shards_that_are_left_out_are_counted),
        cmocka_unit_test(an_unknown_host_name_is_unavailable),
        cmocka_unit_test(pauses_grow_between_attempts),
        cmocka_unit_test(a_server_that_sends_no_greeting_times_out),
        cmocka_unit_test(rollouts_end_with_their_wait),
        cmocka_unit_test(a_server_that_greets_and_hangs_up_is_not_retried_at_once),
        cmocka_unit_test(a_server_of_another_protocol_is_unavailable),
        cmocka_unit_test(half_a_response_is_awaited_until_the_deadline),
        cmocka_unit_test(a_wait_can_be_cancelled),
        cmocka_unit_test(closing_a_client_ends_its_waits),
        cmocka_unit_test(a_wait_can_be_cancelled_during_other_calls),
        cmocka_unit_test(a_closed_connection_uses_no_processor_time),
        cmocka_unit_test(a_call_with_no_wait_is_deadline_exceeded),
        cmocka_unit_test(a_server_may_be_restarted_between_calls),
        cmocka_unit_test(after_goaway_new_calls_use_a_new_connection),
        cmocka_unit_test(a_dead_shard_is_skipped),
        cmocka_unit_test(no_call_waits_for_a_shard_that_is_away),
        cmocka_unit_test(a_silent_shard_is_skipped),
        cmocka_unit_test(calls_go_to_all_shards),
        cmocka_unit_test(calls_survive_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
