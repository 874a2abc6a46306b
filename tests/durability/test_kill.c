/* SPDX-License-Identifier: Apache-2.0 */
/* Servers with a data directory, killed with SIGKILL under load and started again.
 *
 * Four writers insert, delete and set priorities, each over its own connection, and record what
 * is acknowledged. A third of the kills happens while checkpoints are written one after
 * another, and a third while the server recovers. After each kill the server must start. Its
 * table must have all acknowledged items with the correct bytes, and a prefix of each writer's
 * history without gaps. Without a journal, only items newer than the last finished checkpoint
 * may be missing.
 *
 *   test_kill checkpoint|interval|sync
 *
 * RP_TEST_SCALE multiplies the 100 kills; RP_TEST_SEED is the seed. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reprise/client.h"
#include "support/caller.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "util/clock.h"
#include "util/rng.h"
#include "wire/fields.h"
#include "wire/request_write.h"
#include "wire/sample_response_read.h"

enum {
    CYCLES = 100,
    WRITERS = 4,
    TABLE = 3000, /* items of the table; then the oldest are evicted */
    KEPT = 2400,  /* how many of a writer's newest items are checked */
    ROUND = 8,    /* items sent before the writer waits for them */
    PER_CYCLE = 600,
    AHEAD = 400, /* lead over the slowest writer, whose items must not be evicted */
    PEEKED = 600,
    SERVING_MS = 30000,
    BYTES = 64,
};

extern char **environ;

/* The history of a writer. Keys are (writer + 1) << 32 | n, n from 1. Every seventh item is
 * deleted after the next round, and every fifth gets another priority. */
typedef struct writer {
    struct rig *rig;
    size_t number;
    pthread_t thread;
    rp_rng rng;
    uint64_t sent, acked;        /* n of the last insert: sent, acknowledged */
    uint64_t checkpointed;       /* `acked` before the last finished checkpoint began */
    uint64_t deleted, undeleted; /* deletes are acknowledged, are sent up to this n */
    uint64_t updated;            /* updates are acknowledged up to this n */
} writer;

typedef struct rig {
    const char *mode;
    bool journal;
    char folder[64], data[96], log[96];
    pid_t pid;
    int port;
    writer writers[WRITERS];
    atomic_bool stopping;
    atomic_size_t finished_checkpoints;
    uint64_t acked_at_checkpoint[WRITERS];
    pthread_mutex_t mu; /* guards what is acknowledged, and the line above */
    rp_rng rng;
    size_t in_checkpoint, in_recovery, items;
    int64_t slowest_start_ns;
} rig;

static rig *the_rig; /* for the handler at exit */

static uint64_t key_of(const writer *w, uint64_t n)
{
    return (uint64_t)(w->number + 1) << 32 | n;
}

static void start(rig *r)
{
    char listen[64], data[128], durability[64], table[64];
    const char *arguments[] = {
        RP_TEST_REPRISE,        "serve",     listen, data, durability, table,
        "--checkpoint-every=0", "--loops=1", NULL};
    posix_spawn_file_actions_t actions;

    (void)snprintf(listen, sizeof listen, "--listen=127.0.0.1:%d", r->port);
    (void)snprintf(data, sizeof data, "--data=%s", r->data);
    (void)snprintf(durability, sizeof durability, "--durability=%s", r->mode);
    (void)snprintf(table, sizeof table, "--table=t:fifo:%d", TABLE);
    (void)unlink(r->log);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, 2, r->log,
                                                      O_WRONLY | O_CREAT | O_TRUNC, 0600),
                     0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 2, 1), 0);
    assert_int_equal(posix_spawn(&r->pid, RP_TEST_REPRISE, &actions, NULL,
                                 (char *const *)(uintptr_t)arguments, environ),
                     0);
    (void)posix_spawn_file_actions_destroy(&actions);
}

static bool read_log(const rig *r, char *text, size_t size)
{
    int fd = open(r->log, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;

    if (fd >= 0) (void)close(fd);
    text[n > 0 ? n : 0] = 0;
    return strstr(text, "event=serving") != NULL;
}

static void await_serving(rig *r)
{
    int64_t started = rp_now_ns();
    char text[16384];

    for (int ms = 0; !read_log(r, text, sizeof text); ms++) {
        int status = 0;

        if (ms == SERVING_MS || waitpid(r->pid, &status, WNOHANG) != 0) {
            r->pid = 0;
            fail_msg("the server does not come back (%d): %s\nthe data is in %s", status, text,
                     r->data);
        }
        (void)usleep(1000);
    }
    if (rp_now_ns() - started > r->slowest_start_ns)
        r->slowest_start_ns = rp_now_ns() - started;
    r->port = (int)strtol(strstr(strstr(text, "event=serving"), "127.0.0.1:") + 10, NULL, 10);
}

static void slay(rig *r)
{
    int status = 0;

    assert_int_equal(kill(r->pid, SIGKILL), 0);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    r->pid = 0;
    if (!WIFSIGNALED(status)) {
        char text[16384];
        (void)read_log(r, text, sizeof text);
        fail_msg("the server had ended by itself: %s", text);
    }
}

static int bury(void **state)
{
    (void)state;
    if (the_rig != NULL && the_rig->pid > 0) {
        (void)kill(the_rig->pid, SIGKILL);
        (void)waitpid(the_rig->pid, NULL, 0);
        the_rig->pid = 0;
    }
    return 0;
}

/* Waits for messages of a stream. Adds the number of confirmed keys to `*count`. */
static bool await_confirmed(rp_test_stream *stream, size_t *message, size_t *count,
                            size_t wanted)
{
    while (*count < wanted) {
        if (stream->is_over || !rp_test_client_step(stream->client, 100)) return false;
        for (; *message < stream->message_count; (*message)++) {
            size_t size;
            const uint8_t *data = rp_test_stream_message(stream, *message, &size);
            rp_pb_reader reader = rp_pb_open(data, size);
            rp_pb_field field;

            while (rp_pb_next(&reader, &field) == RP_PB_FIELD)
                if (!rp_wire_count_numbers(&field, count)) return false;
        }
    }
    return true;
}

static double priority_of(uint64_t n)
{
    return 1.0 + (double)(n % 1000);
}

/* Deletes and updates some confirmed items. */
static bool change_some(writer *w, rp_test_client *client, rp_buf *message)
{
    uint64_t keys[ROUND * 2];
    rp_update updates[ROUND * 2];
    size_t count = 0, update_count = 0;
    uint64_t up_to = w->acked;

    for (uint64_t n = w->deleted + 1; n <= up_to && count < ROUND; n++)
        if (n % 7 == 0) keys[count++] = key_of(w, n);
    for (uint64_t n = w->updated + 1; n <= up_to && update_count < ROUND; n++)
        if (n % 5 == 0 && n % 7 != 0)
            updates[update_count++] = (rp_update){key_of(w, n), priority_of(n)};
    if (count == ROUND || update_count == ROUND) return true; /* the rest follows later */
    w->undeleted = up_to;
    if (count > 0) {
        rp_buf_clear(message);
        rp_wire_write_delete(message, "t", keys, count);
        if (rp_test_client_unary(client, RP_TEST_REPLAY "Delete", message->data,
                                 message->size) != RP_OK)
            return false;
    }
    w->deleted = up_to;
    if (update_count > 0) {
        rp_buf_clear(message);
        rp_wire_write_update(message, "t", updates, update_count);
        if (rp_test_client_unary(client, RP_TEST_REPLAY "Update", message->data,
                                 message->size) != RP_OK)
            return false;
    }
    w->updated = up_to;
    return true;
}

static bool is_ahead(writer *w)
{
    uint64_t slowest = UINT64_MAX;

    (void)pthread_mutex_lock(&w->rig->mu);
    for (size_t i = 0; i < WRITERS; i++)
        if (w->rig->writers[i].acked < slowest) slowest = w->rig->writers[i].acked;
    (void)pthread_mutex_unlock(&w->rig->mu);
    return w->sent > slowest + AHEAD;
}

static void *write_items(void *user)
{
    writer *w = user;
    rp_test_client *client = rp_test_client_new(NULL);
    uint64_t last = w->sent + PER_CYCLE;
    size_t seen = 0, confirmed = 0, wanted = 0;
    rp_test_stream *stream;
    rp_buf message;

    rp_buf_init(&message, rp_allocator_default());
    if (rp_test_client_connect(client, w->rig->port)) {
        stream = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
        while (!atomic_load(&w->rig->stopping) && w->sent < last) {
            size_t count = 1 + rp_rng_below(&w->rng, ROUND);

            if (is_ahead(w)) {
                (void)usleep(1000);
                continue;
            }
            for (size_t i = 0; i < count; i++) {
                w->sent++;
                rp_test_put_insert(&message, "t", key_of(w, w->sent), BYTES);
                rp_test_stream_put(stream, &message);
            }
            wanted += count;
            if (!await_confirmed(stream, &seen, &confirmed, wanted)) break;
            (void)pthread_mutex_lock(&w->rig->mu);
            w->acked = w->sent;
            (void)pthread_mutex_unlock(&w->rig->mu);
            if (rp_rng_below(&w->rng, 3) == 0 && !change_some(w, client, &message)) break;
        }
    }
    rp_buf_deinit(&message);
    rp_test_client_free(client);
    return NULL;
}

/* Requests checkpoints, one after another. */
static void *write_checkpoints(void *user)
{
    rig *r = user;
    rp_test_client *client = rp_test_client_new(NULL);

    if (rp_test_client_connect(client, r->port))
        while (!atomic_load(&r->stopping)) {
            uint64_t acked[WRITERS];

            (void)pthread_mutex_lock(&r->mu);
            for (size_t i = 0; i < WRITERS; i++) acked[i] = r->writers[i].acked;
            (void)pthread_mutex_unlock(&r->mu);
            if (rp_test_client_unary(client, RP_TEST_REVERB "Checkpoint", "", 0) != RP_OK)
                break;
            memcpy(r->acked_at_checkpoint, acked, sizeof acked);
            atomic_fetch_add(&r->finished_checkpoints, 1);
        }
    rp_test_client_free(client);
    return NULL;
}

static rp_status read_row(const rp_trajectory *trajectory, uint8_t row[BYTES])
{
    rp_decoder *decoder = NULL;
    rp_status st = rp_decoder_new(rp_allocator_default(), 0, &decoder);

    if (st == RP_OK) st = rp_decoder_stack(decoder, &trajectory, 1, 0, row, BYTES, NULL);
    rp_decoder_free(decoder);
    return st;
}

/* Reads `count` items of a writer, from n = `from` on: sets `present[i]` and `priorities[i]`.
 */
static void peek(const writer *w, rp_test_caller *caller, uint64_t from, size_t count,
                 bool *present, double *priorities)
{
    static rp_sample samples[PEEKED];
    uint64_t keys[PEEKED];
    const rp_test_outcome *outcome;
    rp_sample_reader *reader = NULL;
    rp_sample_list list = {.samples = samples, .capacity = PEEKED};
    rp_buf request;
    rp_error err = {0};

    for (size_t i = 0; i < count; i++) keys[i] = key_of(w, from + i);
    memset(present, 0, count * sizeof *present);
    rp_buf_init(&request, rp_allocator_default());
    rp_wire_write_peek(&request, "t", keys, count, true, false);
    outcome = rp_test_call(caller, RP_TEST_REPLAY "Peek", request.data, request.size);
    rp_buf_deinit(&request);
    assert_int_equal(outcome->status, RP_OK);
    assert_ok(rp_sample_reader_new(rp_allocator_default(), NULL, &reader, NULL));
    assert_ok_err(rp_sample_reader_batch(reader, outcome->message.data, outcome->message.size,
                                         true, &list, &err),
                  &err);
    for (size_t i = 0; i < list.count; i++) {
        uint64_t n = samples[i].key & UINT32_MAX;
        uint8_t row[BYTES];

        assert_in_range(n, from, from + count - 1);
        present[n - from] = true;
        priorities[n - from] = samples[i].priority;
        assert_ok(read_row(samples[i].trajectory, row));
        for (size_t b = 0; b < BYTES; b++) assert_int_equal(row[b], (uint8_t)samples[i].key);
    }
    rp_samples_release(samples, list.count);
    rp_sample_reader_free(reader);
}

/* Checks that the table has a prefix of the writer's history, as long as promised, except for
 * items that were deleted or evicted. */
static void check_writer(rig *r, writer *w, rp_test_caller *caller, bool *full)
{
    uint64_t first = w->sent > KEPT ? w->sent - KEPT + 1 : 1, newest = 0, oldest = 0;
    uint64_t promised = r->journal ? w->acked : w->checkpointed;
    size_t count = (size_t)(w->sent + 1 - first);
    bool *present = calloc(count + 1, sizeof *present);
    double *priorities = calloc(count + 1, sizeof *priorities);

    assert_non_null(present);
    assert_non_null(priorities);
    for (size_t at = 0; at < count; at += PEEKED)
        peek(w, caller, first + at, count - at < PEEKED ? count - at : PEEKED, present + at,
             priorities + at);
    for (size_t i = 0; i < count; i++)
        if (present[i]) {
            if (oldest == 0) oldest = first + i;
            newest = first + i;
        }
    /* The last item may be one that was deleted. */
    if (newest < promised && promised >= first &&
        (newest + 1 < promised || promised % 7 != 0 || promised > w->undeleted))
        fail_msg("%s: writer %zu: %llu acknowledged, but the newest there is %llu (of %llu "
                 "sent); the data is in %s",
                 r->mode, w->number, (unsigned long long)promised, (unsigned long long)newest,
                 (unsigned long long)w->sent, r->data);
    for (uint64_t n = oldest; n != 0 && n <= newest; n++) {
        bool may_be_gone = n % 7 == 0 && n <= w->undeleted;
        bool must_be_gone = r->journal && n % 7 == 0 && n <= w->deleted;

        if (!present[n - first] && !may_be_gone)
            fail_msg("%s: writer %zu: a hole at %llu of %llu to %llu", r->mode, w->number,
                     (unsigned long long)n, (unsigned long long)oldest,
                     (unsigned long long)newest);
        if (present[n - first] && must_be_gone)
            fail_msg("%s: writer %zu: %llu is back", r->mode, w->number, (unsigned long long)n);
        if (present[n - first] && r->journal && n % 5 == 0 && n % 7 != 0 && n <= w->updated)
            assert_true(priorities[n - first] == priority_of(n));
    }
    if (oldest > first && !*full)
        fail_msg("%s: writer %zu: the oldest is %llu, and the table not full", r->mode,
                 w->number, (unsigned long long)oldest);
    /* The writer continues after the items that are in the table, and sends the others again.
     */
    w->sent = w->acked = newest;
    if (w->deleted > newest) w->deleted = newest;
    if (w->undeleted > newest) w->undeleted = newest;
    if (w->updated > newest) w->updated = newest;
    if (w->checkpointed > newest) w->checkpointed = newest;
    r->items += count;
    free(present);
    free(priorities);
}

static void check(rig *r)
{
    rp_test_caller *caller = rp_test_caller_open(r->port);
    char address[64];
    rp_client_tables *tables = NULL;
    rp_client *client = NULL;
    rp_error err = {0};
    bool full;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", r->port);
    assert_ok_err(rp_client_new(address, NULL, &client, &err), &err);
    assert_ok_err(rp_client_get_tables(client, rp_wait_forever(), &tables, &err), &err);
    assert_int_equal(tables->count, 1);
    /* Items are evicted from a full table only; other items took the space of deleted ones. */
    full = tables->tables[0].info.evictions > 0;
    rp_client_tables_free(tables);
    rp_client_free(client);
    for (size_t i = 0; i < WRITERS; i++) check_writer(r, &r->writers[i], caller, &full);
    rp_test_caller_close(caller);
}

static void live_and_die(rig *r, size_t cycle)
{
    bool with_checkpoints = cycle % 3 == 1 || (!r->journal && cycle % 3 == 0);
    int64_t life_ms = 5 + (int64_t)rp_rng_below(&r->rng, 396);
    size_t before = atomic_load(&r->finished_checkpoints);
    pthread_t checkpoints;

    atomic_store(&r->stopping, false);
    for (size_t i = 0; i < WRITERS; i++) {
        r->acked_at_checkpoint[i] = r->writers[i].checkpointed;
        assert_int_equal(
            pthread_create(&r->writers[i].thread, NULL, write_items, &r->writers[i]), 0);
    }
    if (with_checkpoints)
        assert_int_equal(pthread_create(&checkpoints, NULL, write_checkpoints, r), 0);
    (void)usleep((useconds_t)(life_ms * 1000));
    slay(r);
    atomic_store(&r->stopping, true);
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(r->writers[i].thread, NULL), 0);
    if (with_checkpoints) assert_int_equal(pthread_join(checkpoints, NULL), 0);
    if (atomic_load(&r->finished_checkpoints) > before)
        for (size_t i = 0; i < WRITERS; i++)
            r->writers[i].checkpointed = r->acked_at_checkpoint[i];
    if (with_checkpoints) r->in_checkpoint++;
    start(r);
    if (cycle % 3 == 2) { /* kill it again, before it has started */
        char text[16384];

        (void)usleep((useconds_t)rp_rng_below(&r->rng, 12000));
        if (!read_log(r, text, sizeof text)) r->in_recovery++;
        slay(r);
        start(r);
    }
    await_serving(r);
    check(r);
}

static void open_rig(rig *r, const char *mode)
{
    const char *seed = getenv("RP_TEST_SEED"), *base = getenv("RP_TEST_FOLDER");

    memset(r, 0, sizeof *r);
    r->mode = mode;
    r->journal = strcmp(mode, "checkpoint") != 0;
    (void)snprintf(r->folder, sizeof r->folder, "%s/reprise-kill-XXXXXX",
                   base != NULL ? base : ".");
    assert_non_null(mkdtemp(r->folder));
    (void)snprintf(r->data, sizeof r->data, "%s/data", r->folder);
    (void)snprintf(r->log, sizeof r->log, "%s/log", r->folder);
    assert_int_equal(pthread_mutex_init(&r->mu, NULL), 0);
    rp_rng_init(&r->rng, seed != NULL ? strtoull(seed, NULL, 0) : 1);
    for (size_t i = 0; i < WRITERS; i++) {
        r->writers[i] = (writer){.rig = r, .number = i};
        rp_rng_init(&r->writers[i].rng, 77 + i);
    }
    the_rig = r;
}

static void close_rig(rig *r)
{
    char command[160];

    if (r->pid > 0) slay(r);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", r->folder);
    assert_int_equal(system(command), 0);
    (void)pthread_mutex_destroy(&r->mu);
    the_rig = NULL;
}

static const char *mode_name;

static void acknowledged_changes_survive_kills(void **state)
{
    size_t cycles = rp_test_scaled(CYCLES, 6);
    static rig r;

    (void)state;
    open_rig(&r, mode_name);
    start(&r);
    await_serving(&r);
    for (size_t i = 0; i < cycles; i++) live_and_die(&r, i);
    print_message("# %s: %zu kills, %zu of them while checkpoints were written (%zu finished), "
                  "%zu more in recovery; %zu items looked at; up again within %lld ms\n",
                  r.mode, cycles, r.in_checkpoint, atomic_load(&r.finished_checkpoints),
                  r.in_recovery, r.items, (long long)(r.slowest_start_ns / 1000000));
    assert_true(r.items > cycles);
    close_rig(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(acknowledged_changes_survive_kills, bury),
    };

    mode_name = argc > 1 ? argv[1] : "sync";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
