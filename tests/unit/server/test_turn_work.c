/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages that complete at the same moment: a turn of the loop does some of their work,
 * and another call is answered before the last of them. */
#include <math.h>

#include "turn_fixture.h"
#include "wire/run_messages.h"

/* The messages: `count` keys of the table, from `first` on. */
typedef void put_message(rp_buf *out, uint64_t first, size_t count);

static void put_updates(rp_buf *out, uint64_t first, size_t count)
{
    rp_wire_put_text(out, 1, "t");
    for (size_t i = 0; i < count; i++) {
        size_t mark = rp_wire_begin(out, 2);
        rp_wire_put_number(out, 1, (first + i) % ITEMS);
        rp_wire_put_double(out, 2, 2.0);
        rp_wire_end(out, mark);
    }
}

static void put_keys(rp_buf *out, uint32_t field, uint64_t first, size_t count)
{
    uint64_t *keys = malloc(count * sizeof *keys);

    assert_non_null(keys);
    for (size_t i = 0; i < count; i++) keys[i] = first + ITEMS + i; /* there are none */
    rp_wire_put_packed(out, field, keys, count);
    free(keys);
}

static void put_unknown(rp_buf *out, uint64_t first, size_t count)
{
    rp_wire_put_text(out, 1, "t");
    put_keys(out, 2, first, count);
}

static void put_mutations(rp_buf *out, uint64_t first, size_t count)
{
    rp_wire_put_text(out, 1, "t");
    for (size_t i = 0; i < count / 2; i++) {
        size_t mark = rp_wire_begin(out, 2);
        rp_wire_put_number(out, 1, (first + i) % ITEMS);
        rp_wire_put_double(out, 2, 2.0);
        rp_wire_end(out, mark);
    }
    put_keys(out, 3, first, count / 2);
}

/* A report with as many actors as it may have. The server has none of these names. */
static void put_actors(rp_buf *out, uint64_t first, size_t count)
{
    static char names[RP_REPORT_ACTORS][24];
    static rp_run_actor actors[RP_REPORT_ACTORS];

    (void)count;
    for (size_t i = 0; i < RP_REPORT_ACTORS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", (size_t)first + i);
        actors[i] = (rp_run_actor){.name = {names[i], strlen(names[i])}};
    }
    rp_wire_write_report(
        out,
        &(rp_run_report){.run = {"run", 3}, .actors = actors, .actor_count = RP_REPORT_ACTORS});
}

/* A report with as many scalars as it may have. A search for a name compares many names: each
 * series is just before the one that was found last. */
static void put_scalars(rp_buf *out, uint64_t first, size_t count)
{
    static char names[128][8];
    static rp_scalar scalars[RP_REPORT_SCALARS];

    (void)count;
    for (size_t i = 0; i < RP_REPORT_SCALARS; i++) {
        size_t name = (first == 0 ? i : RP_REPORT_SCALARS - i) % 128;

        (void)snprintf(names[name], sizeof names[name], "%zu", name);
        scalars[i] = (rp_scalar){.name = {names[name], strlen(names[name])}};
    }
    rp_wire_write_report(out, &(rp_run_report){.run = {"run", 3},
                                               .scalars = scalars,
                                               .scalar_count = RP_REPORT_SCALARS});
}

/* Appends JUNK bytes: the same field again and again. */
static void put_many(rp_buf *out, const uint8_t *field, size_t size)
{
    static uint8_t bytes[JUNK];

    for (size_t at = 0; at < JUNK; at += size) memcpy(bytes + at, field, size);
    rp_buf_append(out, bytes, JUNK);
}

/* A message of unknown fields, which a parser skips. */
static void put_junk(rp_buf *out, uint64_t first, size_t count)
{
    static const uint8_t field[16] = {15 << 3 | 2, 14};

    (void)first, (void)count;
    put_many(out, field, sizeof field);
}

/* An item whose trajectory is repeated: only the last one counts. */
static void put_repeated(rp_buf *out, uint64_t first, size_t count)
{
    static const uint8_t empty[] = {8 << 3 | 2, 0},
                         tail[] = {0x42, 8, 10, 6, 10, 4, 8, 1, 24, 1};
    size_t mark;

    (void)count;
    rp_test_put_chunk(out, 1, 8);
    mark = rp_wire_begin(out, 2);
    rp_wire_put_number(out, 1, first + ITEMS);
    rp_wire_put_text(out, 2, "t");
    rp_wire_put_double(out, 5, 1.0);
    put_many(out, empty, sizeof empty);
    rp_buf_append(out, tail, sizeof tail);
    rp_wire_end(out, mark);
}

/* Opens a call and sends its message, without the last byte. */
static rp_test_stream *send_most(stage *s, const char *path, const rp_buf *message)
{
    rp_test_stream *call = rp_test_client_open(s->peer, path);
    uint8_t prefix[5] = {0, (uint8_t)(message->size >> 24), (uint8_t)(message->size >> 16),
                         (uint8_t)(message->size >> 8), (uint8_t)message->size};

    assert_true(!message->bad && s->call_count < CALLS);
    rp_test_stream_send_raw(call, prefix, sizeof prefix);
    rp_test_stream_send_raw(call, message->data, message->size - 1);
    s->sent += sizeof prefix + message->size - 1;
    s->calls[s->call_count++] = call;
    return call;
}

/* Has CALLS messages arrive at the server, each without its last byte. */
static void prepare(stage *s, const char *path, put_message *put, uint8_t *last)
{
    rp_buf out;

    rp_buf_init(&out, &s->bed.alloc);
    for (size_t i = 0; i < CALLS; i++) {
        put(&out, i * KEYS, KEYS);
        (void)send_most(s, path, &out);
        last[i] = out.data[out.size - 1];
        rp_buf_clear(&out);
    }
    rp_buf_deinit(&out);
    run_until(s, has_arrived);
    s->changed = count_changes(s);
    s->most_change = 0;
    s->most_ended = 0;
}

static void send_last(stage *s, const uint8_t *last)
{
    for (size_t i = 0; i < s->call_count; i++) {
        rp_test_stream_send_raw(s->calls[i], &last[i], 1);
        rp_test_stream_end(s->calls[i]);
    }
}

static void messages_that_complete_together_take_many_turns(void **state)
{
    static const struct {
        const char *path;
        put_message *put;
    } kinds[] = {
        {RP_TEST_REPLAY "Update", put_updates},
        {RP_TEST_REPLAY "Delete", put_unknown},
        {RP_TEST_REPLAY "Peek", put_unknown},
        {RP_TEST_REVERB "MutatePriorities", put_mutations},
        {RP_TEST_REVERB "InsertStream", put_items},
    };

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t last[CALLS];
        stage s;

        open_stage(&s, NULL);
        prepare(&s, kinds[k].path, kinds[k].put, last);
        send_last(&s, last);
        ask(&s);
        run_until(&s, has_ended);

        for (size_t i = 0; i < CALLS; i++) assert_int_equal(s.calls[i]->status, RP_OK);
        assert_int_equal(s.asked->status, RP_OK);
        if (kinds[k].put == put_items) { /* four items count as one key */
            assert_true(s.most_change <= 4 * A_TURN + KEYS + 1);
        } else {
            assert_true(s.most_change <= A_TURN + KEYS + 1);
            assert_true(s.most_ended <= A_TURN / KEYS + 2); /* one more by the bystander */
        }
        assert_true(s.open_when_answered > CALLS / 2); /* it did not wait for them */
        close_stage(&s);
    }
}

/* A short report may have much work: the search for names that are not at the expected place.
 */
static void names_of_reports_count_as_work(void **state)
{
    static const struct {
        put_message *put;
        size_t a_turn;                                   /* reports of one turn */
    } kinds[] = {{put_actors, 2 * 8}, {put_scalars, 4}}; /* the first are small requests */

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t last[CALLS];
        stage s;

        open_stage(&s, NULL);
        prepare(&s, "/reprise.v1.Runs/LogScalars", kinds[k].put, last);
        send_last(&s, last);
        ask(&s);
        run_until(&s, has_ended);

        for (size_t i = 0; i < CALLS; i++) assert_int_equal(s.calls[i]->status, RP_OK);
        assert_int_equal(s.asked->status, RP_OK);
        assert_true(s.most_ended <= kinds[k].a_turn + 2); /* one more by the bystander */
        close_stage(&s);
    }
}

/* Bytes count as work even if they mean nothing, whichever call they are for. */
static void bytes_of_messages_count_as_work(void **state)
{
    static const struct {
        const char *path;
        put_message *put;
    } kinds[] = {
        {RP_TEST_REVERB "InsertStream", put_repeated},
        {RP_TEST_REVERB "SampleStream", put_junk},
        {RP_TEST_REVERB "Reset", put_junk},
        {RP_TEST_REVERB "InitializeConnection", put_junk},
        {RP_TEST_REPLAY "Update", put_junk},
        {RP_TEST_REPLAY "Sample", put_junk},
        {RP_TEST_REPLAY "CreateTable", put_junk},
        {RP_TEST_REPLAY "AlterTable", put_junk},
    };

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint8_t last[CALLS];
        stage s;

        open_stage(&s, NULL);
        prepare(&s, kinds[k].path, kinds[k].put, last);
        send_last(&s, last);
        ask(&s);
        run_until(&s, has_ended);

        assert_true(s.most_ended <= A_TURN / (JUNK / UNIT_BYTES) + 2);
        assert_true(s.open_when_answered > 0);
        assert_int_equal(s.asked->status, RP_OK);
        if (kinds[k].put == put_repeated)
            assert_int_equal(rp_test_info_of(s.table).inserts, ITEMS + CALLS);
        close_stage(&s);
    }
}

/* The bytes that wait are counted until their call continues, or its connection ends. */
static void deferred_messages_count_in_queued_bytes(void **state)
{
    uint8_t last[CALLS];
    int64_t updates;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    prepare(&s, RP_TEST_REPLAY "Update", put_updates, last);
    send_last(&s, last);
    ask(&s);
    run_until(&s, has_greeted); /* a turn that reads the last bytes */
    run_until(&s, has_greeted);
    assert_true(rp_counter_get(&s.worker->metrics->queued_bytes) > s.sent / 2);

    rp_test_client_free(s.peer);
    s.peer = NULL;
    run_until(&s, has_ended);
    updates = rp_test_info_of(s.table).updates;
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    assert_true(updates < CALLS * KEYS / 2); /* the rest was not applied */
    close_stage(&s);
}

static void a_deferred_call_keeps_its_deadline_and_can_be_cancelled(void **state)
{
    const rp_test_header timeout = {"grpc-timeout", "1u"};
    rp_test_stream *late, *cancelled;
    uint8_t last[CALLS];
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    prepare(&s, RP_TEST_REPLAY "Update", put_updates, last);
    rp_buf_init(&out, &s.bed.alloc);
    send_last(&s, last);
    late = rp_test_client_open_with(s.peer, RP_TEST_REPLAY "Update", &timeout, 1);
    rp_test_put_update(&out, "t", 1, 3.0);
    rp_test_stream_put(late, &out);
    cancelled = rp_test_client_open(s.peer, RP_TEST_REPLAY "Update");
    rp_test_put_update(&out, "t", 1, 3.0);
    rp_test_stream_put(cancelled, &out);
    run_until(&s, has_greeted);
    run_until(&s, has_greeted);
    assert_false(cancelled->is_over);
    rp_test_stream_reset(cancelled, NGHTTP2_CANCEL);
    run_until(&s, has_ended);

    assert_int_equal(late->status, RP_DEADLINE);
    assert_int_equal(cancelled->message_count, 0);
    for (size_t i = 0; i < CALLS; i++) assert_int_equal(s.calls[i]->status, RP_OK);
    assert_int_equal(rp_test_info_of(s.table).updates, CALLS * KEYS);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static void messages_of_a_deferred_stream_stay_in_order(void **state)
{
    enum { MESSAGES = 50 };
    rp_test_stream *stream;
    uint8_t last[CALLS];
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    prepare(&s, RP_TEST_REPLAY "Update", put_updates, last);
    rp_buf_init(&out, &s.bed.alloc);
    send_last(&s, last);
    stream = rp_test_client_open(s.peer, RP_TEST_REVERB "InsertStream");
    for (uint64_t key = 1; key <= MESSAGES; key++) {
        rp_test_put_insert(&out, "q", key, 8);
        rp_test_stream_put(stream, &out);
    }
    rp_test_stream_end(stream);
    run_until(&s, has_ended);

    assert_int_equal(stream->status, RP_OK);
    assert_int_equal(rp_test_confirmed(stream), MESSAGES);
    for (uint64_t key = 1; key <= MESSAGES; key++)
        assert_int_equal(rp_test_draw(s.queue).key, key);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static void a_large_call_is_done_in_pieces(void **state)
{
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_updates(&out, 0, MANY);
    call = call_once(&s, RP_TEST_REPLAY "Update", &out);

    assert_int_equal(call->status, RP_OK);
    assert_true(s.most_change <= A_TURN);
    assert_int_equal(rp_test_info_of(s.table).updates, MANY);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static void a_bad_update_at_the_end_changes_nothing(void **state)
{
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_updates(&out, 0, MANY);
    rp_test_put_update(&out, "t", 1, NAN);
    call = call_once(&s, RP_TEST_REPLAY "Update", &out);

    assert_int_equal(call->status, RP_INVALID);
    assert_int_equal(rp_test_info_of(s.table).updates, 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static void put_alter(rp_buf *out, int64_t max_size)
{
    rp_wire_put_text(out, 1, "t");
    rp_wire_put_int(out, 2, max_size);
}

static void a_lower_bound_evicts_in_pieces(void **state)
{
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t key = ITEMS; key < MANY; key++) rp_test_put(s.table, key, 1, s.bed.plain);
    rp_buf_init(&out, &s.bed.alloc);
    put_alter(&out, 10);
    call = call_once(&s, RP_TEST_REPLAY "AlterTable", &out);

    assert_int_equal(call->status, RP_OK);
    assert_true(s.most_change <= A_TURN + 256);
    assert_int_equal(rp_test_info_of(s.table).size, 10);
    assert_int_equal(rp_test_info_of(s.table).max_size, 10);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static bool has_evicted(stage *s)
{
    return rp_test_info_of(s->table).size < MANY;
}

static void bounds_are_restored_if_their_call_ends(void **state)
{
    rp_test_stream *call;
    rp_table_info info;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    for (uint64_t key = ITEMS; key < MANY; key++) rp_test_put(s.table, key, 1, s.bed.plain);
    rp_buf_init(&out, &s.bed.alloc);
    put_alter(&out, 10);
    call = rp_test_client_open(s.peer, RP_TEST_REPLAY "AlterTable");
    rp_test_stream_put(call, &out);
    run_until(&s, has_evicted);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    run_until(&s, has_ended);

    info = rp_test_info_of(s.table);
    assert_int_equal(info.max_size, 1 << 20);
    assert_true(info.size > 10);
    assert_true(rp_table_check(s.table));
    rp_buf_deinit(&out);
    close_stage(&s);
}

RP_TESTS(turn_work)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_that_complete_together_take_many_turns),
        cmocka_unit_test(names_of_reports_count_as_work),
        cmocka_unit_test(bytes_of_messages_count_as_work),
        cmocka_unit_test(deferred_messages_count_in_queued_bytes),
        cmocka_unit_test(a_deferred_call_keeps_its_deadline_and_can_be_cancelled),
        cmocka_unit_test(messages_of_a_deferred_stream_stay_in_order),
        cmocka_unit_test(a_large_call_is_done_in_pieces),
        cmocka_unit_test(a_bad_update_at_the_end_changes_nothing),
        cmocka_unit_test(a_lower_bound_evicts_in_pieces),
        cmocka_unit_test(bounds_are_restored_if_their_call_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
