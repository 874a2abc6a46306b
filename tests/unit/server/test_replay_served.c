/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of reprise.v1 on a real server: calls that wait, calls that are cancelled, requests
 * that are too large. Nothing is left behind. */
#include <stdio.h>
#include <unistd.h>

#include "chunk/protobuf.h"
#include "support/caller.h"
#include "support/fixture.h"
#include "wire/connection_messages.h"
#include "wire/fields.h"
#include "wire/request_write.h"
#include "wire/responses.h"

#define REPLAY "/reprise.v1.Replay/"

enum { SOON_MS = 100, OK = 0, CANCELLED = 1, BAD = 3, LATE = 4, MISSING = 5, FULL = 8 };

/* A store, a table 't' that samples in order, and a server of them. */
typedef struct stage {
    rp_test_bed bed;
    rp_table *table;
    rp_server *server;
    rp_test_caller *caller;
    rp_buf request;
} stage;

static void open_stage(stage *s, const rp_server_limits *limits)
{
    static const char *const address = "127.0.0.1:0";
    rp_server_options options = {.addresses = &address, .address_count = 1, .loops = 2};
    rp_table_options table = rp_test_options("t", RP_FIFO, RP_FIFO, 1000);

    rp_test_bed_init(&s->bed, NULL);
    s->table = rp_test_bed_table(&s->bed, &table);
    options.alloc = &s->bed.alloc;
    if (limits != NULL) options.limits = *limits;
    assert_ok_err(rp_server_start(s->bed.store, &options, &s->server, &s->bed.err),
                  &s->bed.err);
    s->caller = rp_test_caller_open(rp_server_port(s->server));
    rp_buf_init(&s->request, rp_allocator_default());
}

static void hang_up(stage *s)
{
    if (s->caller != NULL) rp_test_caller_close(s->caller);
    s->caller = NULL;
}

/* The store counts what it has given out: nothing may be left. */
static void close_stage(stage *s)
{
    hang_up(s);
    rp_server_free(s->server);
    rp_buf_deinit(&s->request);
    rp_test_bed_deinit(&s->bed);
}

/* A request that begins with the table's name. */
static rp_buf *ask(stage *s, const char *table)
{
    rp_buf_clear(&s->request);
    rp_wire_put_text(&s->request, 1, table);
    return &s->request;
}

static rp_buf *ask_for_samples(stage *s, int64_t count, int64_t timeout_ms)
{
    rp_buf *request = ask(s, "t");

    rp_wire_put_int(request, 2, count);
    if (timeout_ms >= 0) rp_wire_put_number_always(request, 4, (uint64_t)timeout_ms);
    return request;
}

static size_t begin(stage *s, const char *method, const char *timeout)
{
    return rp_test_call_start(s->caller, method, s->request.data, s->request.size, timeout);
}

static const rp_test_outcome *call(stage *s, const char *method)
{
    return rp_test_call_wait(s->caller, begin(s, method, NULL));
}

static void expect(const rp_test_outcome *outcome, int status, const char *part)
{
    if (outcome->status == status && strstr(outcome->text, part) != NULL) return;
    fail_msg("got %d, '%s'; expected %d with '%s'", outcome->status, outcome->text, status,
             part);
}

/* The number in a field of an answer. */
static uint64_t number_in(const rp_test_outcome *outcome, uint32_t field)
{
    rp_pb_reader reader = rp_pb_open(outcome->message.data, outcome->message.size);
    uint64_t value = 0;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == field) value = f.value;
    return value;
}

/* How often a field stands in an answer. */
static size_t count_of(const rp_test_outcome *outcome, uint32_t field)
{
    rp_pb_reader reader = rp_pb_open(outcome->message.data, outcome->message.size);
    size_t count = 0;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) count += f.number == field;
    return count;
}

static int64_t waiting_samples(stage *s)
{
    return rp_test_info_of(s->table).waiting_samples;
}

/* Waits until so many samples wait in the table. */
static void await_waiting(stage *s, int64_t count)
{
    for (int i = 0; i < 5000 && waiting_samples(s) != count; i++) {
        (void)rp_test_call_is_over(s->caller, 0, 1); /* it may be over already */
        (void)usleep(1000);
    }
    assert_int_equal(waiting_samples(s), count);
}

/* Puts an item with a chunk of its own of so many bytes into the table. */
static void put_blob(stage *s, uint64_t key, size_t bytes)
{
    rp_trajectory *trajectory = rp_test_blob_trajectory(&s->bed.alloc, key, 1, bytes);

    rp_test_put(s->table, key, 1.0, trajectory);
    rp_trajectory_unref(trajectory);
}

static void create(stage *s, const char *name, int64_t max_size)
{
    size_t mark;

    rp_buf_clear(&s->request);
    mark = rp_wire_begin(&s->request, 1);
    rp_wire_put_text(&s->request, 1, name);
    rp_wire_put_int(&s->request, 4, max_size);
    rp_wire_end(&s->request, mark);
}

static void tables_are_created_and_dropped(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    create(&s, "new", 5);
    expect(call(&s, REPLAY "CreateTable"), OK, "");
    assert_non_null(rp_test_table(s.bed.store, "new"));
    expect(call(&s, REPLAY "CreateTable"), 6, "new");
    create(&s, "none", 0);
    expect(call(&s, REPLAY "CreateTable"), BAD, "max_size");
    (void)ask(&s, "new");
    expect(call(&s, REPLAY "DropTable"), OK, "");
    assert_null(rp_test_table(s.bed.store, "new"));
    expect(call(&s, REPLAY "DropTable"), MISSING, "Priority table new was not found");
    close_stage(&s);
}

static void there_are_no_more_tables_than_the_limit_says(void **state)
{
    const rp_server_limits limits = {.tables = 3};
    char name[16];
    stage s;

    (void)state;
    open_stage(&s, &limits);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            (void)snprintf(name, sizeof name, "table %d", i);
            create(&s, name, 5);
            expect(call(&s, REPLAY "CreateTable"), OK, "");
        }
        create(&s, "one more", 5);
        expect(call(&s, REPLAY "CreateTable"), FULL, "there are 3 tables, the limit is 3");
        for (int i = 0; i < 2; i++) {
            (void)snprintf(name, sizeof name, "table %d", i);
            (void)ask(&s, name);
            expect(call(&s, REPLAY "DropTable"), OK, "");
        }
    }
    close_stage(&s);
}

static void a_table_is_changed_paused_and_resumed(void **state)
{
    rp_table_info info;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t key = 1; key <= 5; key++) rp_test_put(s.table, key, 1.0, s.bed.plain);
    rp_wire_put_int(ask(&s, "t"), 2, 3);
    expect(call(&s, REPLAY "AlterTable"), OK, "");
    info = rp_test_info_of(s.table);
    assert_true(info.max_size == 3 && info.size == 3 && info.limiter.min_size == 1);
    rp_wire_put_int(ask(&s, "t"), 2, 0);
    expect(call(&s, REPLAY "AlterTable"), OK, ""); /* 0 was not sent: nothing to do */
    rp_buf_clear(&s.request);
    rp_wire_put_text(&s.request, 1, "t");
    rp_wire_put_number_always(&s.request, 2, 0);
    expect(call(&s, REPLAY "AlterTable"), BAD, "max_size");
    rp_wire_put_int(ask(&s, "t"), 2, 2);
    expect(call(&s, REPLAY "PauseTable"), OK, "");
    assert_int_equal(rp_test_info_of(s.table).paused, RP_SIDE_SAMPLES);
    (void)ask_for_samples(&s, 1, 0);
    expect(call(&s, REPLAY "Sample"), LATE, "paused");
    (void)ask(&s, "t");
    expect(call(&s, REPLAY "ResumeTable"), OK, "");
    assert_int_equal(rp_test_info_of(s.table).paused, 0);
    rp_wire_put_int(ask(&s, "t"), 2, 7);
    expect(call(&s, REPLAY "PauseTable"), BAD, "side");
    close_stage(&s);
}

static void items_are_found_by_key(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t key = 1; key <= 3; key++) rp_test_put(s.table, key, 1.0, s.bed.plain);
    rp_wire_put_packed(ask(&s, "t"), 2, (const uint64_t[]){3, 9, 1}, 3);
    assert_int_equal(count_of(call(&s, REPLAY "Peek"), 2), 2);
    rp_wire_put_number(&s.request, 3, 1);
    assert_int_equal(count_of(call(&s, REPLAY "Peek"), 1), 1); /* both have one chunk */
    expect(call(&s, REPLAY "Delete"), OK, "");
    assert_false(rp_test_has_key(s.table, 3));
    assert_true(rp_test_has_key(s.table, 2));
    (void)ask(&s, "t");
    expect(call(&s, REPLAY "Peek"), OK, ""); /* no key, no item */
    expect(call(&s, REPLAY "Delete"), OK, "");
    expect(call(&s, REPLAY "Update"), OK, "");
    close_stage(&s);
}

static void keys_are_counted_against_their_limit(void **state)
{
    const rp_server_limits limits = {.keys = 10};
    const uint64_t keys[11] = {1, 2, 3};
    stage s;

    (void)state;
    open_stage(&s, &limits);
    rp_wire_put_packed(ask(&s, "t"), 2, keys, 11);
    expect(call(&s, REPLAY "Peek"), FULL, "more than 10 keys");
    expect(call(&s, REPLAY "Delete"), FULL, "more than 10 keys");
    rp_wire_put_packed(ask(&s, "t"), 2, keys, 10);
    expect(call(&s, REPLAY "Peek"), OK, "");
    (void)ask_for_samples(&s, 11, 0);
    expect(call(&s, REPLAY "Sample"), FULL, "count must be <= 10");
    close_stage(&s);
}

static rp_wire_tables *status_of(stage *s, const char *table)
{
    const rp_test_outcome *outcome;
    rp_wire_tables *list = NULL;

    rp_buf_clear(&s->request);
    rp_wire_write_status_request(&s->request, table, false);
    outcome = call(s, REPLAY "Status");
    expect(outcome, OK, "");
    assert_ok(rp_wire_read_status(rp_allocator_default(), outcome->message.data,
                                  outcome->message.size, &list, NULL));
    return list;
}

static void status_describes_one_table_or_all(void **state)
{
    rp_table_options other = rp_test_options("other", RP_PRIORITIZED, RP_FIFO, 10);
    rp_wire_tables *list;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    other.sampler.exponent = 1;
    other.max_bytes = 1 << 20;
    rp_test_put(rp_test_bed_table(&s.bed, &other), 1, 2.5, s.bed.plain);
    assert_ok(rp_table_pause(s.table, RP_SIDE_SAMPLES, NULL));
    list = status_of(&s, "other");
    assert_int_equal(list->count, 1);
    assert_string_equal(list->tables[0].name, "other");
    assert_true(list->tables[0].total_weight == 2.5 && list->tables[0].size == 1);
    assert_true(list->tables[0].max_bytes == 1 << 20 && list->tables[0].bytes > 0);
    rp_wire_tables_free(list);
    list = status_of(&s, NULL);
    assert_int_equal(list->count, 2);
    assert_int_equal(list->tables[0].paused | list->tables[1].paused, RP_SIDE_SAMPLES);
    rp_wire_tables_free(list);
    (void)ask(&s, "nope");
    expect(call(&s, REPLAY "Status"), MISSING, "nope");
    rp_buf_clear(&s.request);
    rp_buf_append(&s.request, "\x0a", 1);
    expect(call(&s, REPLAY "Status"), BAD, "StatusRequest");
    close_stage(&s);
}

static void connections_are_listed(void **state)
{
    rp_wire_connection list[4];
    rp_wire_connections found = {.list = list, .capacity = 4};
    const rp_test_outcome *outcome;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_clear(&s.request);
    (void)call(&s, REPLAY "Clients"); /* its bytes are counted before the next one is read */
    outcome = call(&s, REPLAY "Clients");
    expect(outcome, OK, "");
    assert_ok(
        rp_wire_read_connections(outcome->message.data, outcome->message.size, &found, NULL));
    assert_true(found.count == 1 && found.total == 1);
    assert_true(list[0].is_caller && list[0].calls == 2 && list[0].bytes_in > 0);
    assert_memory_equal(list[0].protocol.data, "HTTP/2", 6);
    assert_memory_equal(list[0].address.data, "127.0.0.1:", 10);
    close_stage(&s);
}

static void a_sample_waits_until_there_is_an_item(void **state)
{
    rp_wire_waiting waiting;
    rp_wire_blocked blocked = {.calls = &waiting, .capacity = 1};
    const rp_test_outcome *why;
    size_t sample;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 2, 60000);
    sample = begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    (void)ask(&s, "t");
    why = call(&s, REPLAY "WhyBlocked");
    assert_int_equal(number_in(why, 2), 1);
    assert_int_equal(count_of(why, 1), 1);
    assert_ok(rp_wire_read_blocked(why->message.data, why->message.size, 0, &blocked, NULL));
    assert_memory_equal(waiting.client.data, "127.0.0.1:", 10);
    assert_true(waiting.client_id > 0);
    assert_false(rp_test_call_is_over(s.caller, sample, SOON_MS));
    rp_test_put(s.table, 1, 1.0, s.bed.plain);
    assert_int_equal(count_of(rp_test_call_wait(s.caller, sample), 2), 2);
    close_stage(&s);
}

static void a_sample_waits_no_longer_than_its_timeout(void **state)
{
    int64_t began_ns;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 1, 0);
    expect(call(&s, REPLAY "Sample"), LATE, "would have to wait");
    (void)ask_for_samples(&s, 1, 50);
    began_ns = rp_now_ns();
    expect(call(&s, REPLAY "Sample"), LATE, "table 't' timed out");
    assert_true(rp_now_ns() - began_ns >= 50 * 1000000);
    (void)ask_for_samples(&s, 1, -1);
    expect(rp_test_call_wait(s.caller, begin(&s, REPLAY "Sample", "50m")), LATE, "Deadline");
    assert_int_equal(waiting_samples(&s), 0);
    close_stage(&s);
}

static void a_waiting_call_ends_with_its_table(void **state)
{
    size_t samples[5];
    stage s;

    (void)state;
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 1, -1);
    for (int i = 0; i < 5; i++) samples[i] = begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 5);
    (void)ask(&s, "t");
    expect(call(&s, REPLAY "DropTable"), OK, "");
    for (int i = 0; i < 5; i++) expect(rp_test_call_wait(s.caller, samples[i]), CANCELLED, "t");
    close_stage(&s);
}

static void a_waiting_call_may_be_cancelled(void **state)
{
    size_t sample;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 1, -1);
    sample = begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    rp_test_call_cancel(s.caller, sample);
    await_waiting(&s, 0);
    rp_test_put(s.table, 1, 1.0, s.bed.plain);
    assert_int_equal(rp_test_info_of(s.table).samples, 0);
    close_stage(&s);
}

static void a_waiting_call_ends_with_its_connection_and_with_the_server(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 1, -1);
    (void)begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    hang_up(&s);
    for (int i = 0; i < 5000 && waiting_samples(&s) > 0; i++) (void)usleep(1000);
    assert_int_equal(waiting_samples(&s), 0);
    s.caller = rp_test_caller_open(rp_server_port(s.server));
    (void)begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    close_stage(&s); /* the caller first */
    open_stage(&s, NULL);
    (void)ask_for_samples(&s, 1, -1);
    (void)begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    rp_server_free(s.server);
    s.server = NULL;
    assert_int_equal(waiting_samples(&s), 0);
    close_stage(&s);
}

/* Inserts, deadlines and calls that are taken back, all at the same time. */
static void waits_may_end_in_any_way_at_once(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t round = 0; round < 20; round++) {
        size_t samples[3];
        hang_up(&s);
        s.caller = rp_test_caller_open(rp_server_port(s.server));
        (void)ask_for_samples(&s, 1, 1 + (int64_t)(round % 5));
        for (int i = 0; i < 3; i++) samples[i] = begin(&s, REPLAY "Sample", NULL);
        (void)rp_test_call_is_over(s.caller, samples[0], (int)(round % 4));
        rp_test_put(s.table, round, 1.0, s.bed.plain);
        rp_test_call_cancel(s.caller, samples[1]);
        (void)rp_test_call_wait(s.caller, samples[0]);
        (void)rp_test_call_wait(s.caller, samples[2]);
        assert_ok(rp_table_reset(s.table, NULL));
    }
    close_stage(&s);
}

static void a_response_over_the_limit_is_refused(void **state)
{
    const rp_server_limits limits = {.message_bytes = 100000};
    stage s;

    (void)state;
    open_stage(&s, &limits);
    for (uint64_t key = 1; key <= 4; key++) put_blob(&s, key, 40000);
    (void)ask_for_samples(&s, 1, 0);
    expect(call(&s, REPLAY "Sample"), OK, "");
    rp_wire_put_packed(ask(&s, "t"), 2, (const uint64_t[]){1, 2, 3, 4}, 4);
    expect(call(&s, REPLAY "Peek"), OK, "");
    rp_wire_put_number(&s.request, 3, 1);
    expect(call(&s, REPLAY "Peek"), FULL, "the limit message_bytes of 100000");
    close_stage(&s);
}

static void responses_wait_for_a_slow_reader(void **state)
{
    const rp_server_limits limits = {.connection_queued_bytes = 1 << 20};
    enum { CALLS = 40 };
    size_t samples[CALLS];
    int64_t drawn;
    stage s;

    (void)state;
    open_stage(&s, &limits);
    put_blob(&s, 1, 2 << 20);
    (void)ask_for_samples(&s, 1, 0);
    for (int i = 0; i < CALLS; i++) samples[i] = begin(&s, REPLAY "Sample", NULL);
    for (int i = 0; i < 2000 && rp_test_info_of(s.table).samples == 0; i++)
        (void)rp_test_call_is_over(s.caller, samples[0], 1);
    drawn = rp_test_info_of(s.table).samples;
    assert_true(drawn >= 1 && drawn < CALLS); /* the others wait for room */
    for (int i = 0; i < CALLS; i++) {
        const rp_test_outcome *outcome = rp_test_call_wait(s.caller, samples[i]);
        expect(outcome, OK, "");
        assert_true(outcome->message.size > 2 << 20);
    }
    close_stage(&s);
}

static void a_call_may_be_cancelled_while_its_response_is_made(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t key = 1; key <= 200; key++) put_blob(&s, key, 5000);
    for (int i = 0; i < 20; i++) {
        size_t sample;
        (void)ask_for_samples(&s, 100000, 0); /* some 20 MB, in some 30 steps */
        sample = begin(&s, REPLAY "Sample", NULL);
        (void)rp_test_call_is_over(s.caller, sample, i % 8);
        if (i < 19)
            rp_test_call_cancel(s.caller, sample);
        else
            expect(rp_test_call_wait(s.caller, sample), OK, "");
    }
    close_stage(&s);
}

/* Makes 't' of a stage a table that hands out each item once. */
static void make_queue(stage *s)
{
    const rp_table_alteration change = {.which = RP_ALTER_MAX_TIMES_SAMPLED,
                                        .max_times_sampled = 1};

    assert_ok_err(rp_table_alter(s->table, &change, &s->bed.err), &s->bed.err);
}

/* A call waits for more items than ever come. What it has drawn has left the table, so it may
 * hold no more than queued_bytes allows; then it is answered. */
static void a_waiting_draw_stays_within_the_queue_budget(void **state)
{
    enum { ITEMS = 100, BYTES = 256 << 10, LIMIT = 8 << 20 };
    const rp_server_limits limits = {.queued_bytes = LIMIT};
    const rp_test_outcome *outcome;
    rp_table_info info;
    size_t sample;
    stage s;

    (void)state;
    open_stage(&s, &limits);
    make_queue(&s);
    (void)ask_for_samples(&s, 10000, -1);
    sample = begin(&s, REPLAY "Sample", NULL);
    await_waiting(&s, 1);
    for (uint64_t key = 1; key <= ITEMS; key++) put_blob(&s, key, BYTES);
    info = rp_test_info_of(s.table);
    assert_in_range(info.samples * BYTES, LIMIT / 4, LIMIT);
    assert_int_equal(info.size, ITEMS - info.samples);
    outcome = rp_test_call_wait(s.caller, sample);
    expect(outcome, OK, "");
    assert_int_equal(count_of(outcome, 2), info.samples);
    close_stage(&s);
}

/* Asks for all items of a queue until it has them, with less room than they need. */
static void expect_all_items(const rp_server_limits *limits, size_t bytes)
{
    enum { ITEMS = 12 };
    size_t found = 0, calls = 0;
    stage s;

    open_stage(&s, limits);
    make_queue(&s);
    for (uint64_t key = 1; key <= ITEMS; key++) put_blob(&s, key, bytes);
    for (; calls < ITEMS && rp_test_info_of(s.table).size > 0; calls++) {
        const rp_test_outcome *outcome;

        (void)ask_for_samples(&s, ITEMS, 0);
        outcome = call(&s, REPLAY "Sample");
        expect(outcome, OK, "");
        found += count_of(outcome, 2);
    }
    assert_int_equal(found, ITEMS);
    assert_true(calls > 1);
    close_stage(&s);
}

static void drawn_samples_are_sent_despite_the_message_limit(void **state)
{
    const rp_server_limits limits = {.message_bytes = 100000}, tight = {.message_bytes = 10000};

    (void)state;
    expect_all_items(&limits, 40000);
    expect_all_items(&tight, 40000); /* one item is over the limit */
}

static void drawn_samples_are_sent_despite_a_small_queue_budget(void **state)
{
    const rp_server_limits limits = {.queued_bytes = 1 << 20}, tight = {.queued_bytes = 60000};

    (void)state;
    expect_all_items(&limits, 200000);
    expect_all_items(&tight, 200000);
}

static void a_call_has_exactly_one_message(void **state)
{
    static const char *const methods[] = {REPLAY "Sample", REPLAY "Peek", REPLAY "Update",
                                          REPLAY "CreateTable", REPLAY "WhyBlocked"};
    size_t number;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        number = rp_test_call_open(s.caller, methods[i]);
        rp_test_call_send(s.caller, number, NULL, 0, true);
        expect(rp_test_call_wait(s.caller, number), BAD, "without a request message");
    }
    (void)ask_for_samples(&s, 1, -1);
    number = rp_test_call_open(s.caller, methods[0]);
    rp_test_call_send(s.caller, number, s.request.data, s.request.size, false);
    rp_test_call_send(s.caller, number, s.request.data, s.request.size, true);
    expect(rp_test_call_wait(s.caller, number), BAD, "more than one request message");
    close_stage(&s);
}

static void bytes_that_are_no_request_are_refused(void **state)
{
    static const char *const methods[] = {
        "Sample",     "Peek",      "Update",     "Delete",     "CreateTable",
        "WhyBlocked", "DropTable", "AlterTable", "PauseTable", "ResumeTable"};
    char path[64];
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        (void)snprintf(path, sizeof path, REPLAY "%s", methods[i]);
        expect(rp_test_call(s.caller, path, "\xff\xff\xff", 3), BAD, "");
    }
    (void)ask_for_samples(&s, -5, 0);
    expect(call(&s, REPLAY "Sample"), BAD, "count must be >= 1, got -5");
    rp_wire_put_int(ask_for_samples(&s, 5, 0), 3, 6);
    expect(call(&s, REPLAY "Sample"), BAD, "at_least must be from 0 to count");
    rp_wire_put_double(ask_for_samples(&s, 5, 0), 6, -1.0);
    expect(call(&s, REPLAY "Sample"), BAD, "beta");
    close_stage(&s);
}

RP_TESTS(replay_served)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_created_and_dropped),
        cmocka_unit_test(there_are_no_more_tables_than_the_limit_says),
        cmocka_unit_test(a_table_is_changed_paused_and_resumed),
        cmocka_unit_test(items_are_found_by_key),
        cmocka_unit_test(keys_are_counted_against_their_limit),
        cmocka_unit_test(status_describes_one_table_or_all),
        cmocka_unit_test(connections_are_listed),
        cmocka_unit_test(a_sample_waits_until_there_is_an_item),
        cmocka_unit_test(a_sample_waits_no_longer_than_its_timeout),
        cmocka_unit_test(a_waiting_call_ends_with_its_table),
        cmocka_unit_test(a_waiting_call_may_be_cancelled),
        cmocka_unit_test(a_waiting_call_ends_with_its_connection_and_with_the_server),
        cmocka_unit_test(waits_may_end_in_any_way_at_once),
        cmocka_unit_test(a_response_over_the_limit_is_refused),
        cmocka_unit_test(responses_wait_for_a_slow_reader),
        cmocka_unit_test(a_call_may_be_cancelled_while_its_response_is_made),
        cmocka_unit_test(a_waiting_draw_stays_within_the_queue_budget),
        cmocka_unit_test(drawn_samples_are_sent_despite_the_message_limit),
        cmocka_unit_test(drawn_samples_are_sent_despite_a_small_queue_budget),
        cmocka_unit_test(a_call_has_exactly_one_message),
        cmocka_unit_test(bytes_that_are_no_request_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
