/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on a channel that are not unary: streams, servers that do not respond, waits for a
 * server. */
#include "client/channel/channel.h"

#include <sched.h>

#include "scripted.h"
#include "support/live_server.h"
#include "util/buf.h"

static const int64_t MS = 1000000;

/* A call, and what has been told of it. All of it belongs to the loop's thread but `seen`. */
typedef struct probe {
    rp_channel_call call; /* first */
    rp_channel *channel;
    rp_runtime *runtime;
    rp_buf request; /* sent on_begin, if there is one */
    bool half_close;
    bool begins_again; /* when it is unavailable */
    size_t begun, messages, bytes, ended;
    rp_status status;
    char text[256];
    atomic_size_t seen; /* how often something was told */
} probe;

static void on_begin(rp_channel_call *call)
{
    probe *p = (probe *)call;
    rp_message *message;

    p->begun++;
    if (p->request.size > 0) {
        message = rp_channel_new_message(p->channel);
        assert_non_null(message);
        rp_buf_append(&message->bytes, p->request.data, p->request.size);
        assert_true(rp_message_close(message));
        rp_channel_send(call, message);
    }
    if (p->half_close) rp_channel_half_close(call);
    atomic_fetch_add(&p->seen, 1);
}

static void on_message(rp_channel_call *call, const uint8_t *data, size_t size, rp_block *block)
{
    probe *p = (probe *)call;

    (void)data;
    (void)block;
    p->messages++;
    p->bytes += size;
    atomic_fetch_add(&p->seen, 1);
}

static void on_end(rp_channel_call *call, rp_status status, const char *text)
{
    probe *p = (probe *)call;

    p->ended++;
    p->status = status;
    (void)snprintf(p->text, sizeof p->text, "%s", text);
    atomic_fetch_add(&p->seen, 1);
    if (p->begins_again && status == RP_UNAVAILABLE) rp_channel_begin(p->channel, call);
}

static const rp_channel_call_class probe_class = {on_begin, on_message, NULL, on_end};

typedef struct stage {
    rp_runtime *runtime;
    rp_channel *channel;
    probe probe;
} stage;

static void open_stage(stage *s, const char *address, rp_channel_options options)
{
    rp_address parsed;
    rp_error err;

    memset(s, 0, sizeof *s);
    assert_ok_err(rp_address_parse(address, &parsed, &err), &err);
    options.text = address;
    options.address = &parsed;
    options.seed = 7;
    assert_ok_err(rp_runtime_get(&s->runtime, &err), &err);
    assert_ok_err(rp_channel_new(s->runtime, &options, &s->channel, &err), &err);
    s->probe.call.class = &probe_class;
    s->probe.call.deadline_ns = RP_FOREVER;
    s->probe.call.path = RP_TEST_REVERB "SampleStream";
    s->probe.channel = s->channel;
    s->probe.runtime = s->runtime;
    rp_buf_init(&s->probe.request, rp_allocator_default());
}

static void free_on_loop(void *arg)
{
    stage *s = arg;

    rp_channel_free(s->channel);
}

static void close_stage(stage *s)
{
    rp_runtime_run_on_loop(s->runtime, free_on_loop, s);
    rp_runtime_put(s->runtime);
    rp_buf_deinit(&s->probe.request);
}

static void begin_on_loop(void *arg)
{
    probe *p = arg;
    size_t seen = atomic_load(&p->seen);

    rp_channel_begin(p->channel, &p->call);
    assert_int_equal(atomic_load(&p->seen), seen); /* never from within */
}

static void begin(stage *s)
{
    rp_runtime_run_on_loop(s->runtime, begin_on_loop, &s->probe);
}

/* Copies what has been told so far. */
static void copy_on_loop(void *arg)
{
    probe **both = arg;

    memcpy(both[1], both[0], sizeof *both[0]);
}

static probe look(stage *s)
{
    probe copy;
    probe *both[2] = {&s->probe, &copy};

    rp_runtime_run_on_loop(s->runtime, copy_on_loop, both);
    return copy;
}

/* Waits until it has ended so often, twenty seconds at most. */
static probe await_ended(stage *s, size_t count)
{
    int64_t until_ns = rp_now_ns() + 20000 * MS;
    probe p = look(s);

    while (p.ended < count && rp_now_ns() < until_ns) {
        (void)sched_yield();
        p = look(s);
    }
    assert_true(p.ended >= count);
    return p;
}

static void *be_silent(void *arg)
{
    int fd = scripted_accept(arg);
    char rest[256];

    while (fd >= 0 && read(fd, rest, sizeof rest) > 0) continue;
    (void)close(fd);
    return NULL;
}

static void a_silent_peer_is_pinged_and_disconnected(void **state)
{
    const rp_channel_options options = {.ping_ns = 30 * MS, .ping_timeout_ns = 30 * MS};
    int64_t then = rp_now_ns();
    scripted server;
    stage s;
    probe p;

    (void)state;
    scripted_start(&server, be_silent);
    open_stage(&s, server.address, options);
    begin(&s);
    p = await_ended(&s, 1);
    assert_int_equal(p.status, RP_UNAVAILABLE);
    assert_non_null(strstr(p.text, "sign of life"));
    assert_true(rp_now_ns() - then >= 60 * MS);
    assert_int_equal(p.begun, 1);
    close_stage(&s);
    scripted_stop(&server);
}

static void *answer_pings(void *arg)
{
    enum { PINGS = 5 };
    int fd = scripted_accept(arg), pings = 0;
    uint32_t stream = scripted_await_call(fd);
    uint8_t head[9], body[256];

    while (stream != 0 && pings < PINGS && scripted_read(fd, head, sizeof head)) {
        if (!scripted_read(fd, body, head[2])) break;
        if (head[3] != PING) continue;
        scripted_frame(fd, PING, ACK, 0, body, 8);
        pings++;
    }
    scripted_end(fd, stream, "6");
    while (read(fd, body, sizeof body) > 0) continue;
    (void)close(fd);
    return NULL;
}

static void a_peer_that_answers_pings_is_kept(void **state)
{
    const rp_channel_options options = {.ping_ns = 10 * MS, .ping_timeout_ns = 10000 * MS};
    scripted server;
    stage s;

    (void)state;
    scripted_start(&server, answer_pings);
    open_stage(&s, server.address, options);
    begin(&s);
    assert_int_equal(await_ended(&s, 1).status, RP_EXISTS);
    close_stage(&s);
    scripted_stop(&server);
}

static void calls_wait_for_a_server(void **state)
{
    const rp_channel_options options = {.retry_min_ns = MS, .retry_max_ns = 2 * MS};
    char address[128], why[256];
    rp_test_live live;
    stage s;
    probe p;

    (void)state;
    rp_test_live_init(&live, NULL);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    open_stage(&s, address, options);
    s.probe.begins_again = true;
    rp_test_put_sample(&s.probe.request, "replay", 1, 0);
    s.probe.half_close = true;
    begin(&s);
    do {
        rp_channel_why(s.channel, why, sizeof why);
    } while (why[0] == '\0');
    assert_non_null(strstr(why, address));
    assert_false(rp_channel_is_connected(s.channel));
    assert_true(rp_channel_is_unix(s.channel));
    assert_int_equal(look(&s).ended, 0);
    assert_ok_err(rp_test_live_try(&live, NULL), &live.err);
    p = await_ended(&s, 1); /* the table is empty, and no time to wait */
    assert_int_equal(p.status, RP_DEADLINE);
    assert_true(rp_channel_is_connected(s.channel));
    rp_channel_why(s.channel, why, sizeof why);
    assert_string_equal(why, "");
    close_stage(&s);
    rp_test_live_stop(&live);
}

static void a_stream_outlives_its_server(void **state)
{
    char address[128];
    rp_test_live live;
    stage s;
    probe p;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    open_stage(&s, address, (rp_channel_options){.retry_min_ns = MS, .retry_max_ns = 5 * MS});
    s.probe.begins_again = true;
    rp_test_put_sample(&s.probe.request, "queue", 1, -1);
    begin(&s);
    for (size_t i = 1; i <= 3; i++) {
        assert_true(rp_test_live_await(&live, "queue", 0, 1));
        rp_test_live_end(&live);
        (void)await_ended(&s, i);
        assert_ok_err(rp_test_live_try(&live, NULL), &live.err);
    }
    assert_true(rp_test_live_await(&live, "queue", 0, 1));
    p = look(&s);
    assert_true(p.begun >= 4); /* a server that goes may still refuse some */
    assert_int_equal(p.status, RP_UNAVAILABLE);
    close_stage(&s); /* ends it */
    assert_int_equal(s.probe.status, RP_CANCELLED);
    rp_test_live_stop(&live);
}

static void a_call_restarts_after_its_server_drained(void **state)
{
    char address[128];
    rp_test_live live;
    stage s;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    open_stage(&s, address, (rp_channel_options){.retry_min_ns = MS, .retry_max_ns = 5 * MS});
    s.probe.begins_again = true;
    rp_test_put_sample(&s.probe.request, "queue", 1, -1);
    begin(&s);
    assert_true(rp_test_live_await(&live, "queue", 0, 1));
    rp_server_drain(live.server, 50);
    (void)await_ended(&s, 1);
    rp_test_live_end(&live);
    assert_ok_err(rp_test_live_try(&live, NULL), &live.err);
    assert_true(rp_test_live_await(&live, "queue", 0, 1));
    close_stage(&s);
    rp_test_live_stop(&live);
}

static void cancel_on_loop(void *arg)
{
    probe *p = arg;

    rp_channel_cancel(&p->call);
    rp_channel_cancel(&p->call); /* nothing the second time */
}

static void a_cancelled_call_is_forgotten(void **state)
{
    char address[128];
    rp_test_live live;
    stage s;

    (void)state;
    rp_test_live_start(&live, NULL);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    open_stage(&s, address, (rp_channel_options){0});
    begin(&s);
    rp_runtime_run_on_loop(s.runtime, cancel_on_loop, &s.probe); /* before or after it began */
    rp_test_put_sample(&s.probe.request, "queue", 1, -1);
    begin(&s);
    assert_true(rp_test_live_await(&live, "queue", 0, 1));
    rp_runtime_run_on_loop(s.runtime, cancel_on_loop, &s.probe);
    assert_true(rp_test_live_await(&live, "queue", 0, 0)); /* the server hears of it */
    assert_int_equal(look(&s).ended, 0);
    close_stage(&s);
    assert_int_equal(s.probe.ended, 0);
    rp_test_live_stop(&live);
}

static void the_client_enforces_deadlines_itself(void **state)
{
    scripted server;
    stage s;
    probe p;

    (void)state;
    scripted_start(&server, be_silent);
    open_stage(&s, server.address, (rp_channel_options){0});
    s.probe.call.deadline_ns = rp_now_ns() + 1000 * MS;
    begin(&s);
    p = await_ended(&s, 1);
    assert_int_equal(p.status, RP_DEADLINE);
    assert_int_equal(p.begun, 1);
    close_stage(&s);
    scripted_stop(&server);
}

static void *know_nothing(void *arg)
{
    scripted *s = arg;
    int fd = scripted_accept(s);
    uint32_t stream;

    if (fd < 0) return NULL;
    if ((stream = scripted_await_call(fd)) != 0) scripted_end(fd, stream, "12");
    if ((stream = scripted_await_call(fd)) != 0) scripted_end(fd, stream, "13");
    (void)scripted_await_call(fd);
    (void)close(fd);
    return NULL;
}

static void a_status_without_a_message_gets_one(void **state)
{
    scripted server;
    char expected[256];
    stage s;
    probe p;

    (void)state;
    scripted_start(&server, know_nothing);
    open_stage(&s, server.address, (rp_channel_options){0});
    begin(&s);
    p = await_ended(&s, 1);
    assert_int_equal(p.status, RP_UNIMPLEMENTED);
    (void)snprintf(expected, sizeof expected, "%s has no call %sSampleStream", server.address,
                   RP_TEST_REVERB);
    assert_string_equal(p.text, expected);
    begin(&s);
    p = await_ended(&s, 2);
    assert_int_equal(p.status, RP_INTERNAL);
    (void)snprintf(expected, sizeof expected, "%s gives no reason for ending %sSampleStream",
                   server.address, RP_TEST_REVERB);
    assert_string_equal(p.text, expected);
    close_stage(&s);
    scripted_stop(&server);
}

static void large_responses_are_read_whole(void **state)
{
    enum { BYTES = 5 << 20 };
    rp_trajectory *t;
    char address[128];
    rp_test_live live;
    stage s;
    probe p;

    (void)state;
    rp_test_live_start(&live, NULL);
    t = rp_test_blob_trajectory(&live.alloc, 1, 1, BYTES);
    rp_test_put(rp_test_table(live.store, "replay"), 1, 1.0, t);
    rp_trajectory_unref(t);
    (void)snprintf(address, sizeof address, "unix:%s", live.path);
    open_stage(&s, address, (rp_channel_options){0});
    rp_test_put_sample(&s.probe.request, "replay", 20, -1);
    s.probe.half_close = true;
    begin(&s);
    p = await_ended(&s, 1);
    assert_int_equal(p.status, RP_OK);
    assert_true(p.bytes >= (size_t)20 * BYTES);
    close_stage(&s);
    /* An answer that is too large ends the call, and is not read. */
    open_stage(&s, address, (rp_channel_options){.message_bytes = 1 << 20});
    rp_test_put_sample(&s.probe.request, "replay", 20, -1);
    begin(&s);
    assert_int_equal(await_ended(&s, 1).status, RP_NO_RESOURCE);
    close_stage(&s);
    rp_test_live_stop(&live);
}

RP_TESTS(channel)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_peer_is_pinged_and_disconnected),
        cmocka_unit_test(a_peer_that_answers_pings_is_kept),
        cmocka_unit_test(calls_wait_for_a_server),
        cmocka_unit_test(a_stream_outlives_its_server),
        cmocka_unit_test(a_call_restarts_after_its_server_drained),
        cmocka_unit_test(a_cancelled_call_is_forgotten),
        cmocka_unit_test(the_client_enforces_deadlines_itself),
        cmocka_unit_test(a_status_without_a_message_gets_one),
        cmocka_unit_test(large_responses_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
