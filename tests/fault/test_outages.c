/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that die, hang and come back, connections that are cut in the middle of messages, and
 * forks, as a user of a client sees them: over every transport that has a server. Nothing may
 * hang longer than its timeout. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cutter.h"
#include "support/fixture.h"
#include "support/transports.h"

static const char table[] = "replay"; /* every server has it */
static const int64_t SLACK_NS = 8000000000;

enum { SERVERS = (1 << RP_TEST_WAYS) - 1 - (1 << RP_TEST_LOCAL) }; /* as ways */

static void for_all(rp_test_transport *t, void (*act)(rp_test_process *))
{
    for (size_t i = 0; i < t->server_count; i++) act(&t->servers[i]);
}

static void signal_all(rp_test_transport *t, int number)
{
    for (size_t i = 0; i < t->server_count; i++) {
        pid_t pid = t->servers[i].pid;
        int status = 0;

        assert_true(pid > 0); /* 0 would be all of us */
        assert_int_equal(kill(pid, number), 0);
        if (number != SIGSTOP) continue;
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid); /* it takes its time */
        assert_true(WIFSTOPPED(status));
    }
}

static void reset(rp_test_transport *t)
{
    assert_ok_err(rp_client_reset(t->client, table, rp_test_soon(), &t->err), &t->err);
}

static void write_items(rp_test_transport *t, rp_trajectory_writer *w, int32_t first,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rp_ref ref = rp_test_append(t, w, first + (int32_t)i);

        (void)rp_test_create(t, w, table, 1, &ref, 1);
    }
}

static void unconfirmed_items_survive_a_kill(rp_test_transport *t)
{
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    rp_client_table sum;
    int64_t before_ns;

    assert_ok_err(
        rp_client_pause_table(t->client, table, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    write_items(t, w, 0, 50);
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_ms(50), &t->err), RP_DEADLINE);
    for_all(t, rp_test_process_kill);
    write_items(t, w, 50, 10); /* nobody is there, and nobody waits */
    before_ns = rp_now_ns();
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_ms(100), &t->err), RP_DEADLINE);
    assert_true(rp_now_ns() - before_ns < SLACK_NS);
    assert_int_equal(rp_trajectory_writer_pending(w), 60);
    for_all(t, rp_test_process_start); /* empty, and not paused */
    rp_test_flush(t, w);
    sum = rp_test_table_sum(t, table);
    assert_int_equal(sum.info.size, 60);
    assert_int_equal(sum.info.inserts, 60); /* none twice */
    rp_trajectory_writer_free(w);
}

static void a_sampler_survives_a_kill(rp_test_transport *t)
{
    rp_sampler *sampler;
    rp_sample out[50];
    size_t n;

    reset(t);
    rp_test_fill_table(t, table, 0, 30, NULL);
    sampler = rp_test_sampler(t, table, 0);
    assert_ok_err(rp_sampler_next(sampler, out, 50, &n, rp_test_soon(), &t->err), &t->err);
    rp_samples_release(out, n);
    for_all(t, rp_test_process_kill);
    /* What was drawn ahead is given, then there is nothing. */
    for (int i = 0;; i++) {
        rp_status st = rp_sampler_next(sampler, out, 50, &n, rp_wait_ms(100), &t->err);

        assert_true(i < 100);
        if (st == RP_DEADLINE) break;
        assert_ok_err(st, &t->err);
        rp_samples_release(out, n);
    }
    for_all(t, rp_test_process_start);
    rp_test_fill_table(t, table, 1000, 5, NULL);
    assert_ok_err(rp_sampler_next(sampler, out, 50, &n, rp_test_soon(), &t->err), &t->err);
    for (size_t i = 0; i < n; i++) assert_true(rp_test_int_of(t, &out[i]) >= 1000);
    rp_samples_release(out, n);
    rp_sampler_free(sampler);
}

typedef struct load {
    rp_test_transport *t;
    atomic_bool stop;
    atomic_size_t written, read;
    rp_sampler *sampler;
    pthread_t writer, reader;
} load;

static void *write_on(void *user)
{
    load *l = user;
    rp_trajectory_writer *w = rp_test_writer(l->t, 4, 2);
    rp_error err = {0};

    for (int32_t i = 0; !atomic_load(&l->stop); i += 20) {
        write_items(l->t, w, i, 20);
        assert_ok_err(rp_trajectory_writer_flush(w, 1000, rp_test_soon(), &err), &err);
        atomic_fetch_add(&l->written, 20);
    }
    assert_ok_err(rp_trajectory_writer_flush(w, 0, rp_test_soon(), &err), &err);
    rp_trajectory_writer_free(w);
    return NULL;
}

static void *read_on(void *user)
{
    load *l = user;
    rp_sample out[50];
    rp_error err = {0};
    size_t n;

    while (!atomic_load(&l->stop)) {
        rp_status st = rp_sampler_next(l->sampler, out, 50, &n, rp_wait_ms(50), &err);

        if (st == RP_DEADLINE) continue;
        assert_ok_err(st, &err);
        atomic_fetch_add(&l->read, n);
        rp_samples_release(out, n);
    }
    return NULL;
}

static void await_more(atomic_size_t *count)
{
    size_t before = atomic_load(count);

    for (int ms = 0; atomic_load(count) == before; ms++) {
        assert_true(ms < RP_TEST_WAIT_MS);
        (void)usleep(1000);
    }
}

static void writers_and_samplers_survive_kills_under_load(rp_test_transport *t)
{
    load l = {.t = t};
    size_t kills = rp_test_scaled(6, 2);

    reset(t);
    l.sampler = rp_test_sampler(t, table, 0);
    assert_int_equal(pthread_create(&l.writer, NULL, write_on, &l), 0);
    assert_int_equal(pthread_create(&l.reader, NULL, read_on, &l), 0);
    for (size_t i = 0; i < kills; i++) {
        rp_test_process *server = &t->servers[i % t->server_count];

        await_more(&l.written);
        await_more(&l.read);
        rp_test_process_kill(server);
        rp_test_process_start(server);
    }
    await_more(&l.written);
    await_more(&l.read);
    atomic_store(&l.stop, true);
    assert_int_equal(pthread_join(l.writer, NULL), 0);
    assert_int_equal(pthread_join(l.reader, NULL), 0);
    rp_sampler_free(l.sampler);
}

static size_t tables_reached(rp_test_transport *t, bool shards[RP_TEST_SHARD_COUNT])
{
    rp_client_tables *tables = NULL;
    size_t size = 0;

    memset(shards, 0, RP_TEST_SHARD_COUNT * sizeof *shards);
    assert_ok_err(rp_client_get_tables(t->client, rp_test_soon(), &tables, &t->err), &t->err);
    for (size_t i = 0; i < tables->count; i++) {
        if (strcmp(tables->tables[i].info.name, table) != 0) continue;
        shards[tables->tables[i].shard] = tables->tables[i].info.size > 0;
        size += (size_t)tables->tables[i].info.size;
    }
    rp_client_tables_free(tables);
    return size;
}

/* Waits until the client has a connection to each shard: a new writer leaves out a shard that
 * has none. */
static void await_connections(rp_test_transport *t)
{
    char why[RP_ERROR_TEXT_BYTES];
    bool has[RP_TEST_SHARD_COUNT];

    for (size_t i = 0; i < rp_client_shard_count(t->client); i++)
        while (rp_client_why_away(t->client, i, why, sizeof why), why[0] != '\0')
            (void)tables_reached(t, has); /* connects */
}

/* What was with the one that is lost goes to the others; it is taken back when it is back. */
static void items_go_to_other_shards_after_one_is_lost(rp_test_transport *t)
{
    rp_trajectory_writer *w;
    bool has[RP_TEST_SHARD_COUNT];
    rp_sample out[200];

    reset(t);
    await_connections(t);
    w = rp_test_writer(t, 4, 1);
    write_items(t, w, 0, 30);
    rp_test_flush(t, w);
    assert_int_equal(tables_reached(t, has), 30);
    assert_true(has[0] && has[1] && has[2]);
    rp_test_process_kill(&t->servers[1]);
    write_items(t, w, 30, 60);
    /* What it is owed goes elsewhere when it has been away for half a minute. */
    assert_ok_err(rp_trajectory_writer_flush(w, 0, rp_wait_ms(90000), &t->err), &t->err);
    assert_int_equal(tables_reached(t, has), 80); /* ten are lost with it */
    assert_true(has[0] && !has[1] && has[2]);
    rp_test_draw_samples(t, table, 200, out);
    for (size_t i = 0; i < 200; i++) {
        int32_t x = rp_test_int_of(t, &out[i]);

        assert_true(x >= 0 && x < 90);
        assert_int_equal(out[i].table_size, 80);
    }
    assert_ok_err(rp_client_mutate(t->client, table,
                                   &(rp_mutation){.deletes = &out[0].key, .delete_count = 1},
                                   rp_test_soon(), &t->err),
                  &t->err);
    rp_samples_release(out, 200);
    assert_int_equal(tables_reached(t, has), 79);
    rp_test_process_start(&t->servers[1]);
    for (int i = 0; !has[1]; i++) {
        assert_true(i < 1000);
        write_items(t, w, 100 + i, 1);
        rp_test_flush(t, w);
        (void)tables_reached(t, has);
        (void)usleep(1000);
    }
    rp_trajectory_writer_free(w);
}

/* Everything that can wait, to be called with servers that do not answer. */
typedef struct waiters {
    rp_test_transport *t;
    rp_trajectory_writer *writer;
    rp_structured_writer *structured;
    rp_step_writer *steps;
    rp_batch_writer *batch;
    rp_sampler *sampler;
} waiters;

static void open_waiters(waiters *all, rp_test_transport *t)
{
    static const rp_pattern_node last = {.has_start = true, .start = -1};
    rp_pattern pattern = {.table = table, .nodes = &last, .node_count = 1};
    rp_trajectory_writer_options options = {.column = {.history = 4, .chunk_length = 1},
                                            .max_items = 1};
    rp_structured_writer_options structured = {.chunk_length = 1, .max_items = 1};
    rp_step_writer_options steps = {.max_sequence_length = 2, .max_in_flight = 1};
    rp_error *err = &t->err;

    *all = (waiters){.t = t};
    assert_ok_err(
        rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &all->writer, err), err);
    assert_ok_err(
        rp_structured_writer_new(t->client, &pattern, 1, &structured, &all->structured, err),
        err);
    assert_ok_err(rp_step_writer_new(t->client, &steps, rp_test_soon(), &all->steps, err), err);
    assert_ok_err(rp_batch_writer_new(t->client, 1, &pattern, 1, &structured, &all->batch, err),
                  err);
    all->sampler = rp_test_sampler(t, table, 0);
}

/* Each writer gets an item that is not confirmed: from then on it can only wait. */
static void fill_waiters(waiters *all)
{
    rp_test_transport *t = all->t;
    int32_t x = 1;
    rp_tensor step = rp_test_int(&x), rows = {RP_INT32, rp_test_shape(1, 1, 0), &x};

    write_items(t, all->writer, 0, 1);
    assert_ok_err(rp_structured_writer_append(all->structured, &(rp_value){0, NULL, step}, 1, 0,
                                              rp_test_soon(), &t->err),
                  &t->err);
    assert_ok_err(rp_step_writer_append(all->steps, &step, 1, &t->err), &t->err);
    assert_ok_err(
        rp_step_writer_create_item(all->steps, table, 1, 1, rp_test_soon(), NULL, &t->err),
        &t->err);
    assert_ok_err(rp_batch_writer_append(all->batch, &(rp_value){0, NULL, rows}, 1, NULL,
                                         rp_test_soon(), &t->err),
                  &t->err);
}

enum { WAITS = 15 };

/* The n-th call that waits. */
static rp_status wait_for(waiters *all, size_t n, rp_wait wait)
{
    rp_error *err = &all->t->err;
    rp_client *client = all->t->client;
    int32_t x = 2;
    rp_tensor step = rp_test_int(&x), rows = {RP_INT32, rp_test_shape(1, 1, 0), &x};
    rp_value value = {0, NULL, step}, values = {0, NULL, rows};
    rp_client_tables *tables = NULL;
    rp_client_blocked blocked = {0};
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};
    rp_sample out;
    rp_batch *batch = NULL;
    size_t count;

    switch (n) {
    case 0: return rp_trajectory_writer_flush(all->writer, 0, wait, err);
    case 1: return rp_trajectory_writer_end_episode(all->writer, false, wait, err);
    case 2:
        ref = rp_test_append(all->t, all->writer, x);
        return rp_trajectory_writer_create_item(
            all->writer, &(rp_new_item){table, 1, &column, 1}, wait, NULL, err);
    case 3: return rp_structured_writer_flush(all->structured, 0, wait, err);
    case 4: return rp_structured_writer_end_episode(all->structured, true, wait, err);
    case 5: return rp_structured_writer_append(all->structured, &value, 1, 0, wait, err);
    case 6: return rp_step_writer_flush(all->steps, wait, err);
    case 7: return rp_step_writer_create_item(all->steps, table, 1, 1, wait, NULL, err);
    case 8: return rp_batch_writer_flush(all->batch, wait, err);
    case 9: return rp_batch_writer_append(all->batch, &values, 1, NULL, wait, err);
    case 10: return rp_sampler_next(all->sampler, &out, 1, &count, wait, err);
    case 11:
        return rp_sampler_batch(all->sampler, 2, RP_RAGGED_REFUSE, true, wait, &batch, err);
    case 12: return rp_client_get_tables(client, wait, &tables, err);
    case 13:
        return rp_client_mutate(client, table,
                                &(rp_mutation){.deletes = &(uint64_t){1}, .delete_count = 1},
                                wait, err);
    default: return rp_client_why_blocked(client, table, &blocked, wait, err);
    }
}

static void close_waiters(waiters *all)
{
    int64_t before_ns = rp_now_ns();

    rp_trajectory_writer_free(all->writer);
    rp_structured_writer_free(all->structured);
    rp_step_writer_free(all->steps);
    rp_batch_writer_free(all->batch);
    rp_sampler_free(all->sampler);
    assert_true(rp_now_ns() - before_ns < SLACK_NS);
}

static void no_wait_is_longer_than_its_timeout(rp_test_transport *t)
{
    waiters all;

    reset(t);
    open_waiters(&all, t);
    signal_all(t, SIGSTOP);
    fill_waiters(&all);
    for (size_t n = 0; n < WAITS; n++) {
        int64_t before_ns = rp_now_ns(), took_ns;
        rp_status st = wait_for(&all, n, rp_wait_ms(60));

        took_ns = rp_now_ns() - before_ns;
        if (st != RP_DEADLINE) fail_msg("wait %zu: %s: %s", n, rp_status_name(st), t->err.text);
        if (took_ns < 59000000 || took_ns > SLACK_NS)
            fail_msg("wait %zu took %lld ms", n, (long long)took_ns / 1000000);
    }
    close_waiters(&all); /* does not wait for servers */
    signal_all(t, SIGCONT);
    assert_ok_err(rp_client_reset(t->client, table, rp_test_soon(), &t->err), &t->err);
}

static void *fire(void *cancel)
{
    (void)usleep(20000);
    rp_cancel_fire(cancel);
    return NULL;
}

/* Ctrl-C, in every call that waits. */
static void every_wait_can_be_cancelled(rp_test_transport *t)
{
    waiters all;

    reset(t);
    open_waiters(&all, t);
    signal_all(t, SIGSTOP);
    fill_waiters(&all);
    for (size_t n = 0; n < WAITS; n++) {
        rp_wait wait = {RP_FOREVER, NULL};
        pthread_t thread;
        rp_status st;

        assert_ok(rp_cancel_new(&wait.cancel));
        assert_int_equal(pthread_create(&thread, NULL, fire, wait.cancel), 0);
        st = wait_for(&all, n, wait);
        assert_int_equal(pthread_join(thread, NULL), 0);
        rp_cancel_free(wait.cancel);
        if (st != RP_CANCELLED)
            fail_msg("wait %zu: %s: %s", n, rp_status_name(st), t->err.text);
    }
    signal_all(t, SIGCONT);
    /* All of them go on as if nothing had been. */
    rp_test_flush(t, all.writer);
    assert_ok_err(rp_structured_writer_flush(all.structured, 0, rp_test_soon(), &t->err),
                  &t->err);
    assert_ok_err(rp_step_writer_flush(all.steps, rp_test_soon(), &t->err), &t->err);
    assert_ok_err(rp_batch_writer_flush(all.batch, rp_test_soon(), &t->err), &t->err);
    close_waiters(&all);
    reset(t);
}

/* A client of one server behind a wire that breaks. */
static rp_client *client_behind(rp_test_transport *t, const rp_test_cutter *cutter)
{
    rp_client_options options = {.alloc = &t->alloc, .retry_min_ms = 1, .retry_max_ms = 5};
    rp_client *client = NULL;
    char address[64];

    if (t->way == RP_TEST_TLS) options.ca_file = t->certificates.ca;
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", cutter->port);
    assert_ok_err(rp_client_new(address, &options, &client, &t->err), &t->err);
    return client;
}

/* Messages that are cut anywhere are sent again, whole; nothing is lost and nothing doubled. */
static void items_survive_connections_cut_within_messages(rp_test_transport *t)
{
    enum { ITEMS = 200, WORDS = 64 };
    rp_client *through, *direct = t->client;
    rp_trajectory_writer *w;
    rp_test_cutter cutter;
    rp_sampler *sampler;
    size_t n;

    reset(t);
    rp_test_cutter_start(&cutter, t->servers[0].port, 4000, 40000);
    t->client = through = client_behind(t, &cutter);
    w = rp_test_writer(t, 4, 1);
    for (int32_t i = 0; i < ITEMS; i++) {
        int32_t words[WORDS];
        rp_value value = {0, NULL, {RP_INT32, rp_test_shape(1, WORDS, 0), words}};
        rp_ref ref;

        for (int32_t k = 0; k < WORDS; k++) words[k] = i * (k * 7919 + 1);
        assert_ok_err(rp_trajectory_writer_append(w, &value, 1, 0, &ref, &t->err), &t->err);
        (void)rp_test_create(t, w, table, 1, &ref, 1);
        /* Or one message would be larger than what the wire ever carries. */
        if (i % 10 == 9) rp_test_flush(t, w);
    }
    rp_trajectory_writer_free(w);
    t->client = direct;
    assert_int_equal(rp_test_table_sum(t, table).info.size, ITEMS);
    assert_int_equal(rp_test_table_sum(t, table).info.inserts, ITEMS);
    t->client = through;
    /* Few at a time, for the same reason. */
    assert_ok_err(rp_sampler_new(through,
                                 &(rp_sampler_options){.table = table,
                                                       .max_samples = 1000,
                                                       .max_in_flight = 5,
                                                       .rate_limiter_timeout_ms = -1},
                                 &sampler, &t->err),
                  &t->err);
    for (size_t done = 0; done < 1000; done += n) {
        rp_sample out[20];

        assert_ok_err(rp_sampler_next(sampler, out, 20, &n, rp_test_soon(), &t->err), &t->err);
        for (size_t i = 0; i < n; i++) {
            const rp_trajectory *trajectory = out[i].trajectory;
            rp_decoder *decoder = NULL;
            int32_t words[WORDS];

            assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
            assert_ok_err(
                rp_decoder_stack(decoder, &trajectory, 1, 0, words, sizeof words, &t->err),
                &t->err);
            for (int32_t k = 0; k < WORDS; k++)
                assert_int_equal(words[k], words[0] * (k * 7919 + 1));
            rp_decoder_free(decoder);
        }
        rp_samples_release(out, n);
    }
    assert_true(atomic_load(&cutter.cuts) > 5);
    rp_sampler_free(sampler);
    rp_client_free(through);
    t->client = direct;
    rp_test_cutter_stop(&cutter);
}

#if !defined(RP_TEST_NO_FORK)
/* What a child does with what its parent left it. 0 if all is well. */
static int use_in_child(rp_test_transport *t, rp_trajectory_writer *w, rp_sampler *sampler,
                        rp_batch *batch)
{
    rp_trajectory_writer_options options = {.column = {.history = 2, .chunk_length = 1}};
    rp_trajectory_writer *own = NULL;
    int32_t x = 77;
    rp_value value = {0, NULL, rp_test_int(&x)};
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};
    rp_sample out;
    size_t n;

    if (rp_trajectory_writer_append(w, &value, 1, 0, &ref, NULL) != RP_PRECONDITION) return 1;
    if (rp_trajectory_writer_flush(w, 0, rp_test_soon(), NULL) != RP_PRECONDITION) return 2;
    if (rp_sampler_next(sampler, &out, 1, &n, rp_test_soon(), NULL) != RP_PRECONDITION)
        return 3;
    if (rp_batch_decode(batch, (void *[]){NULL}, (size_t[]){0}, NULL) != RP_PRECONDITION)
        return 10;
    rp_batch_free(batch);
    rp_trajectory_writer_free(w);
    rp_sampler_free(sampler);
    if (rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &own, NULL) != RP_OK)
        return 4;
    if (rp_trajectory_writer_append(own, &value, 1, 0, &ref, NULL) != RP_OK) return 5;
    if (rp_trajectory_writer_create_item(own, &(rp_new_item){table, 1, &column, 1},
                                         rp_test_soon(), NULL, NULL) != RP_OK)
        return 6;
    if (rp_trajectory_writer_flush(own, 0, rp_test_soon(), NULL) != RP_OK) return 7;
    rp_trajectory_writer_free(own);
    if (rp_sampler_new(t->client,
                       &(rp_sampler_options){.table = table, .rate_limiter_timeout_ms = -1},
                       &sampler, NULL) != RP_OK)
        return 8;
    if (rp_sampler_next(sampler, &out, 1, &n, rp_test_soon(), NULL) != RP_OK) return 9;
    rp_samples_release(&out, 1);
    rp_sampler_free(sampler);
    return 0;
}

static void a_fork_leaves_the_parent_working(rp_test_transport *t)
{
    enum { FORKS = 5 };
    rp_trajectory_writer *w;
    rp_sampler *sampler;
    rp_batch *batch;
    rp_sample out;
    size_t n;

    reset(t);
    rp_test_fill_table(t, table, 0, 10, NULL);
    w = rp_test_writer(t, 4, 1);
    sampler = rp_test_sampler(t, table, 0);
    for (int32_t i = 0; i < FORKS; i++) {
        int status = -1;
        pid_t child;

        assert_ok_err(rp_sampler_batch(sampler, 4, RP_RAGGED_REFUSE, true, rp_test_soon(),
                                       &batch, &t->err),
                      &t->err);
        write_items(t, w, 10 * i, 10); /* some of them are under way */
        child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(use_in_child(t, w, sampler, batch));
        write_items(t, w, 10 * i, 10);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        rp_batch_free(batch);
        assert_ok_err(rp_sampler_next(sampler, &out, 1, &n, rp_test_soon(), &t->err), &t->err);
        rp_samples_release(&out, n);
    }
    rp_test_flush(t, w);
    assert_int_equal(rp_test_table_sum(t, table).info.inserts, 10 + FORKS * 21);
    rp_sampler_free(sampler);
    rp_trajectory_writer_free(w);
}
#endif

RP_TESTS(outages)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE_OVER(SERVERS, unconfirmed_items_survive_a_kill),
        RP_TEST_CASE_OVER(SERVERS, a_sampler_survives_a_kill),
        RP_TEST_CASE_OVER(SERVERS, writers_and_samplers_survive_kills_under_load),
        RP_TEST_CASE_OVER(1 << RP_TEST_SHARDS, items_go_to_other_shards_after_one_is_lost),
        RP_TEST_CASE_OVER(SERVERS, no_wait_is_longer_than_its_timeout),
        RP_TEST_CASE_OVER(SERVERS, every_wait_can_be_cancelled),
        RP_TEST_CASE_OVER(1 << RP_TEST_TCP | 1 << RP_TEST_TLS,
                          items_survive_connections_cut_within_messages),
#if !defined(RP_TEST_NO_FORK)
        RP_TEST_CASE_OVER(SERVERS, a_fork_leaves_the_parent_working),
#endif
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
