/* SPDX-License-Identifier: Apache-2.0 */
/* Servers killed under load, with SIGKILL, and started again, empty, where they were.
 *
 * One thread puts items without end, a source samples; again and again a server is killed in
 * the middle. What a sink was told is in, in one life of a server, must be there; every item is
 * told of once; nothing hangs. RP_TEST_SCALE multiplies the 20 kills. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/sampler/remote_source.h"
#include "client/sink/shard_sink.h"
#include "support/caller.h"
#include "support/fixture.h"
#include "support/streams.h"
#include "util/rng.h"
#include "wire/request_write.h"
#include "wire/sample_response_read.h"

enum {
    KILLS = 20,
    MAX_SHARDS = 3,
    MAX_KEYS = 128 << 20,
    UNSETTLED = 20000,
    BATCH = 64,
    PEEKED = 5000, /* keys in one call */
    WAIT_MS = 60000,
};

/* One server, and what is known of its life. */
typedef struct shard {
    struct rig *rig;
    pid_t pid;
    int port;
    rp_test_line line;
    rp_sink *sink;
    uint64_t *confirmed; /* keys, in this life */
    size_t count, capacity;
} shard;

typedef struct rig {
    shard shards[MAX_SHARDS];
    size_t shard_count;
    rp_sink *sink;
    pthread_mutex_t mu; /* guards what shards have confirmed, and times */
    uint8_t *times;     /* each key was told of */
    size_t wrong;       /* told of with another status than RP_OK */
    atomic_size_t put, settled;
    atomic_bool stopping;
    pthread_t putter;
    rp_rng rng;
} rig;

extern char **environ;
static pid_t children[MAX_SHARDS];

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void start_server(shard *s)
{
    char program[] = RP_TEST_REPRISE, serve[] = "serve", listen[64];
    char table[] = "--table=replay:uniform:10000000", loops[] = "--loops=2";
    char *arguments[] = {program, serve, listen, table, loops, NULL};
    posix_spawn_file_actions_t actions;

    (void)snprintf(listen, sizeof listen, "--listen=127.0.0.1:%d", s->port);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    for (int fd = 1; fd <= 2; fd++)
        assert_int_equal(
            posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0), 0);
    assert_int_equal(posix_spawn(&s->pid, program, &actions, NULL, arguments, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    children[s - s->rig->shards] = s->pid;
}

static void kill_server(shard *s)
{
    int status;

    assert_int_equal(kill(s->pid, SIGKILL), 0);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_true(WIFSIGNALED(status));
    children[s - s->rig->shards] = 0;
}

static int kill_children(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAX_SHARDS; i++)
        if (children[i] > 0) {
            (void)kill(children[i], SIGKILL);
            (void)waitpid(children[i], NULL, 0);
        }
    return 0;
}

static void on_settled(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text)
{
    shard *s = user;
    rig *r = s->rig;

    (void)text;
    (void)pthread_mutex_lock(&r->mu);
    if (s->count + count > s->capacity) {
        s->capacity = 2 * (s->count + count);
        s->confirmed = realloc(s->confirmed, s->capacity * sizeof *s->confirmed);
    }
    for (size_t i = 0; i < count; i++) {
        r->times[keys[i]]++;
        if (status == RP_OK) s->confirmed[s->count++] = keys[i];
    }
    if (status != RP_OK) r->wrong += count;
    (void)pthread_mutex_unlock(&r->mu);
    atomic_fetch_add(&r->settled, count);
}

static size_t confirmed(shard *s)
{
    size_t count;

    (void)pthread_mutex_lock(&s->rig->mu);
    count = s->count;
    (void)pthread_mutex_unlock(&s->rig->mu);
    return count;
}

/* What there is to be known when something hangs. */
static void explain(rig *r)
{
    char text[256];

    print_error("%zu put, %zu settled\n", atomic_load(&r->put), atomic_load(&r->settled));
    for (size_t i = 0; i < r->shard_count; i++) {
        rp_sink *sink = r->shards[i].sink;
        sink->class->why(sink, text, sizeof text);
        print_error("shard %zu: %zu confirmed, away since %lld, %s\n", i,
                    confirmed(&r->shards[i]), (long long)rp_remote_sink_away_since(sink), text);
    }
}

static void await_confirmed(shard *s, size_t count)
{
    int ms = 0;

    for (; ms < WAIT_MS && confirmed(s) < count; ms++) (void)usleep(1000);
    if (ms == WAIT_MS) explain(s->rig);
    assert_true(ms < WAIT_MS);
}

static void *put_items(void *user)
{
    rig *r = user;
    uint64_t key = 0;

    while (!atomic_load(&r->stopping)) {
        rp_sink_item items[BATCH];

        if (key - atomic_load(&r->settled) > UNSETTLED) {
            (void)usleep(500);
            continue;
        }
        assert_true(key + BATCH < MAX_KEYS);
        for (size_t i = 0; i < BATCH; i++) items[i] = rp_test_sink_item("replay", key++, 400);
        assert_ok(r->sink->class->put(r->sink, items, BATCH, NULL));
        atomic_store(&r->put, key);
        (void)usleep(200); /* a load, not a race */
    }
    return NULL;
}

/* How many of these keys the server has. */
static size_t peek(rp_test_caller *caller, rp_sample_reader *reader, const uint64_t *keys,
                   size_t count)
{
    static rp_sample samples[PEEKED];
    const rp_test_outcome *outcome;
    rp_sample_list list = {.samples = samples, .capacity = PEEKED};
    rp_buf request;
    rp_error err = {0};

    rp_buf_init(&request, rp_allocator_default());
    rp_wire_write_peek(&request, "replay", keys, count, false, false);
    outcome = rp_test_call(caller, "/reprise.v1.Replay/Peek", request.data, request.size);
    assert_int_equal(outcome->status, RP_OK);
    assert_ok_err(rp_sample_reader_batch(reader, outcome->message.data, outcome->message.size,
                                         false, &list, &err),
                  &err);
    rp_buf_deinit(&request);
    return list.count;
}

/* Everything that this life of the server has confirmed is in its table. */
static void check_life(shard *s)
{
    rp_test_caller *caller = rp_test_caller_open(s->port);
    rp_sample_reader *reader = NULL;
    size_t count = confirmed(s), most = (RP_TEST_CALLS - 1) * (size_t)PEEKED;
    size_t done = count > most ? count - most : 0; /* the latest, if there are many */
    uint64_t *keys = malloc(count * sizeof *keys);

    assert_non_null(keys);
    (void)pthread_mutex_lock(&s->rig->mu);
    memcpy(keys, s->confirmed, count * sizeof *keys);
    (void)pthread_mutex_unlock(&s->rig->mu);
    assert_ok(rp_sample_reader_new(rp_allocator_default(), NULL, &reader, NULL));
    while (done < count) {
        size_t n = count - done < PEEKED ? count - done : PEEKED;
        assert_int_equal(peek(caller, reader, keys + done, n), n);
        done += n;
    }
    rp_sample_reader_free(reader);
    rp_test_caller_close(caller);
    free(keys);
}

/* One life of one server, and its end under load. */
static void live_and_die(rig *r, size_t round)
{
    shard *s = &r->shards[rp_rng_below(&r->rng, r->shard_count)];
    bool is_noticed = round % 3 != 2;

    await_confirmed(s, 1 + rp_rng_below(&r->rng, 3000));
    check_life(s);
    kill_server(s);
    if (is_noticed) {
        for (int ms = 0; rp_remote_sink_away_since(s->sink) == 0; ms++) {
            assert_true(ms < WAIT_MS);
            (void)usleep(1000);
        }
        (void)pthread_mutex_lock(&r->mu);
        s->count = 0; /* nothing of the old life can come any more */
        (void)pthread_mutex_unlock(&r->mu);
        start_server(s);
        return;
    }
    start_server(s); /* before anybody knows: what comes now may be of either life */
    await_confirmed(s, confirmed(s) + UNSETTLED / 10);
    kill_server(s);
    while (rp_remote_sink_away_since(s->sink) == 0) (void)usleep(1000);
    (void)pthread_mutex_lock(&r->mu);
    s->count = 0;
    (void)pthread_mutex_unlock(&r->mu);
    start_server(s);
}

static void open_rig(rig *r, size_t shard_count)
{
    rp_shard_options options = {.seed = 5};
    rp_sink *sinks[MAX_SHARDS];

    *r = (rig){.shard_count = shard_count};
    assert_int_equal(pthread_mutex_init(&r->mu, NULL), 0);
    r->times = calloc(MAX_KEYS, 1);
    assert_non_null(r->times);
    rp_rng_init(&r->rng, 9 + shard_count);
    for (size_t i = 0; i < shard_count; i++) {
        shard *s = &r->shards[i];
        rp_sink_events events = {on_settled, s};
        char address[64];

        s->rig = r;
        s->port = free_port();
        start_server(s);
        (void)snprintf(address, sizeof address, "127.0.0.1:%d", s->port);
        rp_test_line_open(&s->line, address);
        assert_ok(rp_remote_sink_new(s->line.channel, s->line.runtime, &s->line.alloc, &events,
                                     &s->sink, NULL));
        sinks[i] = s->sink;
    }
    assert_ok(rp_shard_sink_new(sinks, shard_count, r->shards[0].line.runtime,
                                rp_allocator_default(), &options, &r->sink, NULL));
    assert_int_equal(pthread_create(&r->putter, NULL, put_items, r), 0);
}

static void close_rig(rig *r)
{
    size_t put;

    atomic_store(&r->stopping, true);
    assert_int_equal(pthread_join(r->putter, NULL), 0);
    put = atomic_load(&r->put);
    for (int ms = 0; atomic_load(&r->settled) < put; ms++) {
        if (ms == WAIT_MS) explain(r);
        assert_true(ms < WAIT_MS);
        (void)usleep(1000);
    }
    for (size_t i = 0; i < r->shard_count; i++) check_life(&r->shards[i]);
    r->sink->class->close(r->sink);
    assert_int_equal(r->wrong, 0);
    assert_int_equal(atomic_load(&r->settled), put);
    for (size_t key = 0; key < put; key++) assert_int_equal(r->times[key], 1);
    for (size_t i = 0; i < r->shard_count; i++) {
        kill_server(&r->shards[i]);
        rp_test_line_close(&r->shards[i].line);
        free(r->shards[i].confirmed);
    }
    free(r->times);
    (void)pthread_mutex_destroy(&r->mu);
}

static void every_item_is_confirmed_once_over_kills_of_one_server(void **state)
{
    rp_source_options options = {.table = "replay", .rate_limiter_timeout_ms = -1};
    size_t kills = rp_test_scaled(KILLS, 3), wanted = 0;
    rp_test_drawn drawn;
    rp_source_events events;
    rp_source *source;
    rig r;

    (void)state;
    open_rig(&r, 1);
    rp_test_drawn_init(&drawn);
    events = rp_test_drawn_events(&drawn);
    assert_ok(rp_remote_source_new(r.shards[0].line.channel, r.shards[0].line.runtime,
                                   &r.shards[0].line.alloc, &options, &events, &source, NULL));
    for (size_t i = 0; i < kills; i++) {
        source->class->want(source, 500);
        wanted += 500;
        live_and_die(&r, i);
    }
    assert_true(rp_test_drawn_await(&drawn, wanted));
    assert_int_equal(rp_test_drawn_count(&drawn), wanted);
    assert_int_equal(drawn.ends, 0);
    source->class->close(source);
    close_rig(&r);
    rp_test_drawn_deinit(&drawn);
}

static void every_item_is_confirmed_once_over_kills_of_three_shards(void **state)
{
    size_t kills = rp_test_scaled(KILLS, 3);
    rig r;

    (void)state;
    open_rig(&r, 3);
    for (size_t i = 0; i < kills; i++) live_and_die(&r, i);
    close_rig(&r);
}

RP_TESTS(kill)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_item_is_confirmed_once_over_kills_of_one_server,
                                  kill_children),
        cmocka_unit_test_teardown(every_item_is_confirmed_once_over_kills_of_three_shards,
                                  kill_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
