/* SPDX-License-Identifier: Apache-2.0 */
/* Room beyond the limit queued_bytes (server/bounds/loans.h): when stalled peers have filled a
 * side of it, others continue, and peers that do not use their loan are closed. */
#include "support/full_queue.h"
#include "wire/fields.h"

enum { MIB = 1 << 20, PEERS = 24, LENT = RP_TEST_QUEUE_BYTES / 2, LONG_MS = 3600000 };

static void put_draw_until(rp_buf *out, int64_t count, int64_t timeout_ms)
{
    rp_wire_put_text(out, 1, "replay");
    rp_wire_put_int(out, 2, count);
    rp_wire_put_int(out, 3, 1); /* at_least */
    rp_wire_put_int(out, 4, timeout_ms);
}

/* Bytes that a side has lent. */
static size_t lent_of(rp_test_live *live, rp_queue_side side)
{
    rp_loans *loans = &live->server->budget.loans[side];

    rp_mutex_lock(&loans->lock);
    size_t bytes = loans->lent[RP_LOAN_ANY] + loans->lent[RP_LOAN_SMALL];
    rp_mutex_unlock(&loans->lock);
    return bytes;
}

static size_t lent(rp_test_live *live)
{
    return lent_of(live, RP_QUEUE_IN);
}

/* Writers that wait for a table fill the side of messages. Others still come in, with
 * messages that are larger than their share. */
static void messages_have_their_loan_in_a_full_queue(void **state)
{
    enum { OTHERS = 4 };
    rp_test_client *writers[RP_TEST_FILLERS], *others[OTHERS];
    rp_test_stream *calls[RP_TEST_FILLERS], *inserts[OTHERS];
    rp_buf request;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < OTHERS; i++) {
        assert_non_null(others[i] = rp_test_live_connect(&live));
        inserts[i] = rp_test_client_open(others[i], RP_TEST_REVERB "InsertStream");
        rp_test_put_insert(&request, "replay", (uint64_t)(i + 1), 2 * MIB);
        rp_test_stream_put(inserts[i], &request);
    }
    for (int i = 0; i < RP_TEST_STEPS && rp_test_live_info(&live, "replay").size < OTHERS;
         i++) {
        (void)rp_test_client_step(others[0], 5);
        rp_test_step_all(others, OTHERS);
        rp_test_step_all(writers, RP_TEST_FILLERS);
    }

    for (int i = 0; i < OTHERS; i++) assert_true(rp_test_await_confirmed(inserts[i], 1));
    assert_int_equal(rp_test_live_info(&live, "loans").samples, 0); /* they wait as before */
    rp_buf_deinit(&request);
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_free_all(others, OTHERS);
    rp_test_live_stop(&live);
}

/* A connection that has the loan begins messages on many calls: it may add one message, not
 * one for each call. */
static void a_loan_is_for_one_message(void **state)
{
    enum { BEGUN = 40 };
    static const uint8_t zeros[MIB];
    rp_test_client *writers[RP_TEST_FILLERS], *many;
    rp_test_stream *calls[RP_TEST_FILLERS];
    uint64_t most = 0;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    assert_non_null(many = rp_test_live_connect(&live));
    for (int i = 0; i < BEGUN; i++) {
        rp_test_stream *call = rp_test_client_open(many, RP_TEST_REVERB "InsertStream");
        rp_test_stream_send_raw(call, "\0\0\x20\0\0", 5); /* 2 MiB follow, it says */
        rp_test_stream_send_raw(call, zeros, sizeof zeros);
    }
    for (int i = 0; i < 200; i++) {
        (void)rp_test_client_step(many, 2);
        rp_test_step_all(writers, RP_TEST_FILLERS);
        if (rp_test_queued(&live) > most) most = rp_test_queued(&live);
    }

    assert_in_range(most, RP_TEST_FULL_SIDE,
                    2 * RP_TEST_QUEUE_BYTES); /* messages have half of it */
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_client_free(many);
    rp_test_live_stop(&live);
}

/* Sends the prefix of a message of so many bytes, and some of them. */
static void begin_message(rp_test_stream *call, uint32_t bytes, const uint8_t *data,
                          size_t size)
{
    const uint8_t prefix[] = {0, (uint8_t)(bytes >> 24), (uint8_t)(bytes >> 16),
                              (uint8_t)(bytes >> 8), (uint8_t)bytes};

    rp_test_stream_send_raw(call, prefix, sizeof prefix);
    rp_test_stream_send_raw(call, data, size);
}

/* Two connections have a loan each and begin a second message, so that their loans have to grow
 * past what may be lent. All messages come in, one connection after the other. */
static void turns_that_grow_do_not_block_each_other(void **state)
{
    enum { WRITERS = 2, BOTH = 2, BEGUN = MIB };
    rp_test_client *fillers[RP_TEST_FILLERS], *writers[WRITERS];
    rp_test_stream *calls[RP_TEST_FILLERS], *inserts[WRITERS][BOTH];
    rp_buf requests[WRITERS][BOTH];
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_test_fill_with_messages(&live, fillers, calls, MIB);
    for (int i = 0; i < WRITERS; i++) {
        assert_non_null(writers[i] = rp_test_live_connect(&live));
        for (int j = 0; j < BOTH; j++) {
            inserts[i][j] = rp_test_client_open(writers[i], RP_TEST_REVERB "InsertStream");
            rp_buf_init(&requests[i][j], rp_allocator_default());
            rp_test_put_insert(&requests[i][j], "replay", (uint64_t)(BOTH * i + j + 1),
                               3 * MIB);
        }
    }
    for (int j = 0; j < BOTH; j++) { /* all messages are begun before one is whole */
        /* Less than they begin: some of it has ordinary room. */
        size_t least = j == 0 ? 5 * MIB : LENT + 1;

        for (int i = 0; i < WRITERS; i++)
            begin_message(inserts[i][j], (uint32_t)requests[i][j].size, requests[i][j].data,
                          BEGUN);
        for (int i = 0; i < RP_TEST_STEPS && lent(&live) < least; i++) {
            (void)rp_test_client_step(writers[0], 1);
            rp_test_step_all(writers, WRITERS);
            rp_test_step_all(fillers, RP_TEST_FILLERS);
        }
        assert_in_range(lent(&live), least, 2 * LENT);
    }
    for (int i = 0; i < WRITERS; i++)
        for (int j = 0; j < BOTH; j++)
            rp_test_stream_send_raw(inserts[i][j], requests[i][j].data + BEGUN,
                                    requests[i][j].size - BEGUN);
    for (int i = 0;
         i < RP_TEST_STEPS && rp_test_live_info(&live, "replay").size < WRITERS * BOTH; i++) {
        (void)rp_test_client_step(writers[0], 1);
        rp_test_step_all(writers, WRITERS);
    }

    assert_int_equal(rp_test_live_info(&live, "replay").size, WRITERS * BOTH);
    for (int i = 0; i < WRITERS; i++)
        for (int j = 0; j < BOTH; j++) rp_buf_deinit(&requests[i][j]);
    rp_test_free_all(fillers, RP_TEST_FILLERS);
    rp_test_free_all(writers, WRITERS);
    rp_test_live_stop(&live);
}

/* A connection whose calls take turns to send, so that always one of its messages is
 * incomplete, does not keep its loan for ever. */
static void a_loan_passes_to_the_next_connection(void **state)
{
    enum { BOTH = 2, SENDS = 4000 };
    rp_test_client *writers[RP_TEST_FILLERS], *greedy, *other;
    rp_test_stream *calls[RP_TEST_FILLERS], *both[BOTH], *insert;
    rp_buf request, second;
    size_t half;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 4000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    rp_buf_init(&request, rp_allocator_default());
    rp_buf_init(&second, rp_allocator_default());
    assert_non_null(greedy = rp_test_live_connect(&live));
    for (int i = 0; i < BOTH; i++)
        both[i] = rp_test_client_open(greedy, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&request, "replay", 1, MIB);
    half = request.size / 2;
    begin_message(both[0], (uint32_t)request.size, request.data, half);
    for (int i = 0; i < RP_TEST_STEPS && lent(&live) == 0; i++)
        (void)rp_test_client_step(greedy, 1);
    assert_non_null(other = rp_test_live_connect(&live));
    insert = rp_test_client_open(other, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&second, "replay", 2, LENT - 1000); /* has no room beside the others */
    rp_test_stream_put(insert, &second);
    for (int i = 0; i < RP_TEST_STEPS && rp_test_confirmed(insert) == 0; i++) {
        if (!greedy->is_closed && i < SENDS) {
            begin_message(both[(i + 1) % 2], (uint32_t)request.size, request.data, half);
            rp_test_stream_send_raw(both[i % 2], request.data + half, request.size - half);
            (void)rp_test_client_step(greedy, 2);
        }
        (void)rp_test_client_step(other, (int)rp_test_step(2, 15));
        rp_test_step_all(writers, RP_TEST_FILLERS);
    }

    assert_int_equal(rp_test_confirmed(insert), 1);
    rp_buf_deinit(&request);
    rp_buf_deinit(&second);
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_client_free(greedy);
    rp_test_client_free(other);
    rp_test_live_stop(&live);
}

enum { HOGS = 4 };

/* Connects a peer that begins the largest message there may be, sends some of it, and stops. */
static rp_test_client *connect_hog(rp_test_live *live, size_t sent)
{
    static const uint8_t zeros[MIB];
    rp_test_client *hog = rp_test_live_connect(live);

    assert_non_null(hog);
    begin_message(rp_test_client_open(hog, RP_TEST_REVERB "InsertStream"), LENT, zeros, sent);
    return hog;
}

/* Messages that are begun and do not arrive have no loan: nobody has to wait for them. */
static void stalled_messages_get_no_loan(void **state)
{
    rp_test_client *writers[RP_TEST_FILLERS], *hogs[HOGS], *writer;
    rp_test_stream *calls[RP_TEST_FILLERS], *insert;
    rp_test_live live;
    rp_buf request;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    for (int i = 0; i < HOGS; i++) hogs[i] = connect_hog(&live, 100);
    for (int i = 0; i < 100; i++) { /* they may ask for a loan several times */
        rp_test_step_all(hogs, HOGS);
        (void)rp_test_client_step(hogs[0], 5);
    }
    rp_buf_init(&request, rp_allocator_default());
    assert_non_null(writer = rp_test_live_connect(&live));
    insert = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&request, "replay", 1, MIB);
    rp_test_stream_put(insert, &request);

    assert_true(rp_test_await_confirmed(insert, 1));
    assert_int_equal(rp_test_refused(&live, RP_REFUSED_SLOW_MESSAGE), 0);
    rp_buf_deinit(&request);
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_free_all(hogs, HOGS);
    rp_test_client_free(writer);
    rp_test_live_stop(&live);
}

/* Peers send enough to have a loan, stop, and connect again when they are closed. A writer
 * waits for those that came before it, once. */
static void messages_that_stall_lose_their_loan(void **state)
{
    rp_test_client *writers[RP_TEST_FILLERS], *hogs[HOGS], *writer;
    rp_test_stream *calls[RP_TEST_FILLERS], *insert;
    int closed = 0;
    rp_test_live live;
    rp_buf request;

    (void)state;
    rp_test_start_queue(&live, 16000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    for (int i = 0; i < HOGS; i++) hogs[i] = connect_hog(&live, 64 << 10);
    for (int i = 0; i < RP_TEST_STEPS && lent(&live) < LENT / 2; i++) { /* until a hog has it */
        rp_test_step_all(hogs, HOGS);
        (void)rp_test_client_step(hogs[0], 1);
    }
    rp_buf_init(&request, rp_allocator_default());
    assert_non_null(writer = rp_test_live_connect(&live));
    insert = rp_test_client_open(writer, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&request, "replay", 1, MIB);
    rp_test_stream_put(insert, &request);
    for (int i = 0; i < RP_TEST_STEPS && rp_test_confirmed(insert) == 0 && !writer->is_closed;
         i++) {
        (void)rp_test_client_step(writer, 2);
        for (int j = 0; j < HOGS; j++)
            if (hogs[j]->is_closed) {
                closed++;
                rp_test_client_free(hogs[j]);
                hogs[j] = connect_hog(&live, 64 << 10);
            }
        rp_test_step_all(hogs, HOGS);
    }

    assert_int_equal(rp_test_confirmed(insert), 1);
    assert_in_range(closed, 0, HOGS);
    rp_buf_deinit(&request);
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_free_all(hogs, HOGS);
    rp_test_client_free(writer);
    rp_test_live_stop(&live);
}

/* Fills the windows of calls that wait for the table "loans", while another call of the same
 * connection has a loan; then the call gives its message up. */
static rp_test_client *fill_windows(rp_test_live *live, uint64_t key)
{
    enum { PAUSED = 2, WINDOW = 3500000 };
    static const uint8_t zeros[WINDOW];
    rp_test_client *client = rp_test_live_connect(live);
    rp_test_stream *paused[PAUSED], *large;
    int64_t waiting = rp_test_live_info(live, "loans").waiting_inserts;
    rp_buf request;

    assert_non_null(client);
    rp_buf_init(&request, rp_allocator_default());
    for (int i = 0; i < PAUSED; i++) {
        paused[i] = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
        rp_test_put_insert(&request, "loans", key + (uint64_t)i, 64);
        rp_test_stream_put(paused[i], &request);
    }
    for (int i = 0;
         i < RP_TEST_STEPS && rp_test_live_info(live, "loans").waiting_inserts == waiting; i++)
        (void)rp_test_client_step(client, 1);
    large = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
    begin_message(large, LENT - MIB, zeros, 64 << 10);
    for (int i = 0; i < 2000 && lent(live) == 0; i++) (void)rp_test_client_step(client, 5);
    for (int i = 0; i < PAUSED; i++) begin_message(paused[i], WINDOW, zeros, WINDOW);
    for (int i = 0; i < 200 && !client->is_closed; i++) (void)rp_test_client_step(client, 5);
    rp_test_stream_reset(large, 8);
    (void)rp_test_client_step(client, 5);
    rp_buf_deinit(&request);
    return client;
}

/* What calls that are paused have come to hold by a loan is lent as long as they hold it: the
 * next connection does not add as much again. */
static void windows_of_paused_calls_are_not_filled_by_loans(void **state)
{
    enum { MANY = 4, MOST = RP_TEST_FULL_SIDE + 2 * LENT };
    rp_test_client *writers[RP_TEST_FILLERS], *many[MANY];
    rp_test_stream *calls[RP_TEST_FILLERS];
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_test_fill_with_messages(&live, writers, calls, MIB);
    for (int i = 0; i < MANY; i++) {
        many[i] = fill_windows(&live, 1000 * (uint64_t)(i + 1));
        assert_in_range(rp_test_queued(&live), RP_TEST_FULL_SIDE, MOST);
    }
    rp_test_free_all(many, MANY);
    rp_test_free_all(writers, RP_TEST_FILLERS);
    rp_test_live_stop(&live);
}

/* Draws `count` items, distinct ones, in one call. Returns how many came. */
static size_t draw(rp_test_client *client, int64_t count)
{
    rp_test_stream *call = rp_test_client_open(client, RP_TEST_REPLAY "Sample");
    rp_buf request;
    size_t bytes;

    rp_buf_init(&request, rp_allocator_default());
    put_draw_until(&request, count, 60000);
    rp_wire_put_int(&request, 5, 1);
    rp_test_stream_put(call, &request);
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_OK);
    bytes = call->in.size;
    rp_buf_deinit(&request);
    return bytes / MIB;
}

/* Answers that are not read fill their side. Learners that read have their samples, one item at
 * a time. */
static void samples_have_their_loan_in_a_full_queue(void **state)
{
    enum { READERS = 7 };
    rp_test_client *readers[READERS], *learner;
    rp_test_stream *calls[READERS], *samples;
    rp_test_live live;
    rp_buf request;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    assert_non_null(learner = rp_test_live_connect(&live));
    rp_test_insert_items(learner, "replay", 1, 4, MIB);
    rp_test_fill_with_answers(&live, readers, calls, READERS, 1, RP_TEST_FULL_SIDE);
    samples = rp_test_client_open(learner, RP_TEST_REVERB "SampleStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_sample(&request, "replay", 3, -2);
    rp_test_stream_put(samples, &request);
    assert_true(rp_test_stream_wait_messages(samples, 3));
    assert_int_equal(draw(learner, 4), 1);

    assert_int_equal(rp_test_refused(&live, RP_REFUSED_STALL), 0);
    rp_buf_deinit(&request);
    rp_test_free_all(readers, READERS);
    rp_test_client_free(learner);
    rp_test_live_stop(&live);
}

/* Has a learner ask for a sample. One that was closed, as its own thread was slow, connects. */
static void ask_again(rp_test_live *live, rp_test_client **learner, rp_test_stream **samples)
{
    rp_buf request;

    if (*samples != NULL && !(*learner)->is_closed) return;
    if ((*learner)->is_closed) {
        rp_test_client_free(*learner);
        assert_non_null(*learner = rp_test_live_connect(live));
    }
    *samples = rp_test_client_open(*learner, RP_TEST_REVERB "SampleStream");
    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_sample(&request, "replay", 1, -2);
    rp_test_stream_put(*samples, &request);
    rp_buf_deinit(&request);
}

/* Readers have all loans that there are, take nothing, and connect again when they are closed.
 * A learner waits for those that came before it, once. */
static void readers_that_read_nothing_lose_their_loan(void **state)
{
    rp_test_client *readers[PEERS], *learner;
    rp_test_stream *calls[PEERS], *samples = NULL;
    int closed = 0;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 16000);
    assert_non_null(learner = rp_test_live_connect(&live));
    rp_test_insert_items(learner, "replay", 1, 1, MIB);
    rp_test_fill_with_answers(&live, readers, calls, PEERS, 1, RP_TEST_FULL_SIDE);
    for (int i = 0; i < RP_TEST_STEPS && (samples == NULL || samples->message_count == 0);
         i++) {
        ask_again(&live, &learner, &samples);
        (void)rp_test_client_step(learner, 2);
        for (int j = 0; j < PEERS; j++)
            if (readers[j]->is_closed) {
                closed++;
                rp_test_client_free(readers[j]);
                readers[j] = rp_test_connect_reader(&live, &calls[j], 1);
            }
        rp_test_step_all(readers, PEERS);
    }

    assert_int_equal(samples->message_count, 1);
    assert_in_range(closed, 0, 2 * PEERS);
    rp_test_free_all(readers, PEERS);
    rp_test_client_free(learner);
    rp_test_live_stop(&live);
}

/* Readers that take a few bytes now and then are ended once another sample waits for the room
 * of their answers. */
static void readers_that_read_too_slowly_lose_their_loan(void **state)
{
    rp_test_client *readers[PEERS], *learner;
    rp_test_stream *calls[PEERS], *samples = NULL;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 4000);
    assert_non_null(learner = rp_test_live_connect(&live));
    rp_test_insert_items(learner, "replay", 1, 1, MIB);
    rp_test_fill_with_answers(&live, readers, calls, PEERS, 64, RP_TEST_FULL_SIDE);
    for (int i = 0; i < RP_TEST_STEPS && (samples == NULL || samples->message_count == 0);
         i++) {
        ask_again(&live, &learner, &samples);
        (void)rp_test_client_step(learner, 5);
        for (int j = 0; j < PEERS; j++)
            if (!readers[j]->is_closed && calls[j]->unread > 0)
                rp_test_stream_read(calls[j], calls[j]->unread); /* 64 bytes at most */
        rp_test_step_all(readers, PEERS);
    }

    assert_int_equal(samples->message_count, 1);
    assert_true(rp_test_refused(&live, RP_REFUSED_STALL) > 0);
    rp_test_free_all(readers, PEERS);
    rp_test_client_free(learner);
    rp_test_live_stop(&live);
}

/* Samples that are not read fill the queue, and have all loans that there are: a call that
 * waits for its room ends in time. */
static void a_sample_that_waits_for_budget_times_out(void **state)
{
    rp_test_client *readers[PEERS], *client;
    rp_test_stream *calls[PEERS], *call;
    rp_buf request;
    rp_test_live live;

    (void)state;
    rp_test_start_queue(&live, 600000, 600000);
    rp_buf_init(&request, rp_allocator_default());
    assert_non_null(client = rp_test_live_connect(&live));
    rp_test_insert_items(client, "replay", 1, 1, MIB);
    rp_test_fill_with_answers(&live, readers, calls, PEERS, 1, RP_TEST_FULL_SIDE + LENT - MIB);
    put_draw_until(&request, 1, 200);
    call = rp_test_client_open(client, RP_TEST_REPLAY "Sample");
    rp_test_stream_put(call, &request);
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));

    assert_int_equal(call->status, RP_DEADLINE);
    assert_non_null(strstr(call->text, "queued_bytes"));
    rp_buf_deinit(&request);
    rp_test_free_all(readers, PEERS);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* The connections that wait for a loan to draw at least so many bytes: their number, and since
 * when the last of them has waited. */
static int waiting_to_draw(rp_test_live *live, size_t least, int64_t *since_ns)
{
    rp_loans *loans = &live->server->budget.loans[RP_QUEUE_OUT];
    int count = 0;

    *since_ns = 0;
    rp_mutex_lock(&loans->lock);
    for (const rp_loan *loan = loans->line.first; loan != NULL; loan = loan->next) {
        if (loan->bytes < least) continue;
        *since_ns = loan->since_ns;
        count++;
    }
    rp_mutex_unlock(&loans->lock);
    return count;
}

/* Steps until so many connections wait. Returns since when the last one has. */
static int64_t await_line(rp_test_live *live, rp_test_client *client, size_t least, int count)
{
    int64_t since_ns;

    for (int i = 0; i < RP_TEST_STEPS && waiting_to_draw(live, least, &since_ns) != count; i++)
        (void)rp_test_client_step(client, 1);
    assert_int_equal(waiting_to_draw(live, least, &since_ns), count);
    return since_ns;
}

/* Connects a learner, and readers that take nothing and have all room for samples and all
 * loans. The table "large" has an item of 2 MiB, so that its loan differs from theirs. */
static rp_test_client *start_full(rp_test_live *live, rp_test_client **readers)
{
    const rp_table_options large = {.name = "large",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 4};
    rp_test_stream *calls[PEERS];
    rp_test_client *learner;

    rp_test_start_queue(live, 600000, LONG_MS);
    assert_ok(rp_store_add_table(live->store, &large, NULL, NULL));
    assert_non_null(learner = rp_test_live_connect(live));
    rp_test_insert_items(learner, "replay", 1, 1, MIB);
    rp_test_insert_items(learner, "large", 2, 1, 2 * MIB);
    rp_test_fill_with_answers(live, readers, calls, PEERS, 1, RP_TEST_FULL_SIDE + LENT - MIB);
    for (int i = 0; i < RP_TEST_STEPS && lent_of(live, RP_QUEUE_OUT) + MIB <= LENT; i++)
        (void)rp_test_client_step(readers[0], 1);
    assert_true(lent_of(live, RP_QUEUE_OUT) + MIB > LENT);
    return learner;
}

static rp_test_stream *ask_for_sample(rp_test_client *client, const char *table)
{
    rp_test_stream *call = rp_test_client_open(client, RP_TEST_REVERB "SampleStream");
    rp_buf request;

    rp_buf_init(&request, rp_allocator_default());
    rp_test_put_sample(&request, table, 1, -2);
    rp_test_stream_put(call, &request);
    rp_buf_deinit(&request);
    return call;
}

/* A connection that waits for a loan and has ordinary room before does not wait any more. */
static void a_connection_with_budget_leaves_the_queue_of_loans(void **state)
{
    rp_test_client *readers[PEERS], *learner;
    rp_test_stream *sample;
    rp_test_live live;

    (void)state;
    learner = start_full(&live, readers);
    sample = ask_for_sample(learner, "large");
    (void)await_line(&live, learner, 2 * (size_t)MIB, 1);
    rp_test_free_all(readers, PEERS);
    assert_true(rp_test_stream_wait_messages(sample, 1));

    (void)await_line(&live, learner, 0, 0);
    rp_test_client_free(learner);
    rp_test_live_stop(&live);
}

/* Other calls of a connection that waits for a loan to draw are answered. As its peer takes the
 * answers, it keeps its place. */
static void other_responses_do_not_cost_the_place_in_the_queue(void **state)
{
    enum { INSERTS = 8 };
    const rp_table_options notes = {.name = "notes",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 100};
    rp_test_client *readers[PEERS], *learner;
    int64_t since_ns;
    rp_test_live live;

    (void)state;
    learner = start_full(&live, readers);
    assert_ok(rp_store_add_table(live.store, &notes, NULL, NULL));
    (void)ask_for_sample(learner, "large");
    since_ns = await_line(&live, learner, 2 * (size_t)MIB, 1);
    for (int i = 0; i < INSERTS; i++) {
        rp_test_insert_items(learner, "notes", (uint64_t)(i + 10), 1, 64);
        assert_int_equal(await_line(&live, learner, 2 * (size_t)MIB, 1), since_ns);
    }
    rp_test_free_all(readers, PEERS);
    rp_test_client_free(learner);
    rp_test_live_stop(&live);
}

/* A call that has drawn an item by a loan waits for its table, until it goes on with what it
 * has. Its peer has nothing to take meanwhile, so it is not too slow. */
static void a_reader_without_pending_data_is_not_behind(void **state)
{
    enum { READERS = RP_TEST_FULL_SIDE / MIB };
    const rp_table_options pairs = {.name = "pairs",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_queue(4),
                                    .max_times_sampled = 1,
                                    .max_size = 4};
    const rp_table_options large = {.name = "large",
                                    .sampler = {.kind = RP_FIFO},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = 4};
    rp_test_client *readers[READERS], *learner, *other;
    rp_test_stream *calls[READERS], *pair;
    rp_test_live live;
    rp_buf request;

    (void)state;
    rp_test_start_queue(&live, 600000, 16000);
    assert_ok(rp_store_add_table(live.store, &pairs, NULL, NULL));
    assert_ok(rp_store_add_table(live.store, &large, NULL, NULL));
    assert_non_null(learner = rp_test_live_connect(&live));
    assert_non_null(other = rp_test_live_connect(&live));
    rp_test_insert_items(learner, "replay", 1, 1, MIB);
    rp_test_insert_items(learner, "pairs", 100, 1, MIB);
    rp_test_insert_items(learner, "large", 200, 1, LENT - MIB);
    rp_test_fill_with_answers(&live, readers, calls, READERS, 1, RP_TEST_FULL_SIDE);
    rp_buf_init(&request, rp_allocator_default());
    pair = rp_test_client_open(learner, RP_TEST_REPLAY "Sample");
    rp_wire_put_text(&request, 1, "pairs");
    rp_wire_put_int(&request, 2, 2);
    rp_wire_put_int(&request, 3, 2); /* at_least: there is one */
    rp_test_stream_put(pair, &request);
    rp_test_stream_end(pair);
    for (int i = 0; i < RP_TEST_STEPS && rp_test_live_info(&live, "pairs").samples == 0; i++)
        (void)rp_test_client_step(learner, 1);
    (void)ask_for_sample(other, "large"); /* has no room beside that */
    for (int i = 0; i < RP_TEST_STEPS && !pair->is_over && !learner->is_closed; i++) {
        (void)rp_test_client_step(learner, 1);
        rp_test_step_all(&other, 1);
    }

    assert_false(learner->is_closed);
    assert_true(pair->is_over);
    assert_int_equal(pair->status, RP_OK);
    rp_buf_deinit(&request);
    rp_test_free_all(readers, READERS);
    rp_test_client_free(learner);
    rp_test_client_free(other);
    rp_test_live_stop(&live);
}

RP_TESTS(queue_loans)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_have_their_loan_in_a_full_queue),
        cmocka_unit_test(a_loan_is_for_one_message),
        cmocka_unit_test(turns_that_grow_do_not_block_each_other),
        cmocka_unit_test(a_loan_passes_to_the_next_connection),
        cmocka_unit_test(stalled_messages_get_no_loan),
        cmocka_unit_test(messages_that_stall_lose_their_loan),
        cmocka_unit_test(windows_of_paused_calls_are_not_filled_by_loans),
        cmocka_unit_test(samples_have_their_loan_in_a_full_queue),
        cmocka_unit_test(readers_that_read_nothing_lose_their_loan),
        cmocka_unit_test(readers_that_read_too_slowly_lose_their_loan),
        cmocka_unit_test(a_sample_that_waits_for_budget_times_out),
        cmocka_unit_test(a_connection_with_budget_leaves_the_queue_of_loans),
        cmocka_unit_test(other_responses_do_not_cost_the_place_in_the_queue),
        cmocka_unit_test(a_reader_without_pending_data_is_not_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
