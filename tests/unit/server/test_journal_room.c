/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that wait because the backlog of the journal is at its bound: the disk does not
 * respond until the test says so. */
#include "durable/durable_inside.h"
#include "server/core/server_state.h"
#include "server/metrics/metrics.h"
#include "store/store.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "support/sim_files.h"
#include "util/mutex.h"
#include "wire/request_write.h"

enum { BOUND = 20000, UPDATES = 64, MANY = 4000 };

/* A disk whose syncs do not end while it hangs. */
static struct {
    const rp_files_ops *real;
    rp_mutex mu;
    rp_cond cv;
    bool hangs;
} disk;

static rp_status sync_unless_hanging(rp_file *file, rp_error *err)
{
    rp_mutex_lock(&disk.mu);
    while (disk.hangs) (void)rp_cond_wait(&disk.cv, &disk.mu, RP_FOREVER);
    rp_mutex_unlock(&disk.mu);
    return disk.real->sync(file, err);
}

static void set_hanging(bool hangs)
{
    rp_mutex_lock(&disk.mu);
    disk.hangs = hangs;
    rp_cond_signal(&disk.cv);
    rp_mutex_unlock(&disk.mu);
}

typedef struct scene {
    rp_test_live live;
    rp_sim *sim;
    rp_files *files;
    rp_files_ops ops;
    rp_durable *durable;
    rp_test_client *client;
    rp_buf message;
} scene;

static scene stage;

/* A server with one item, and a disk that hangs from then on. */
static scene *begin(size_t queued_bytes)
{
    rp_durable_options options = {.directory = "room",
                                  .mode = RP_DURABLE_SYNC,
                                  .period_ns = RP_FOREVER,
                                  .keep = 1,
                                  .segment_bytes = 1 << 20};
    rp_durable_tuning tuning = {.max_backlog = BOUND};
    rp_server_options serving = {.loops = 1, .limits = {.queued_bytes = queued_bytes}};
    scene *s = &stage;
    rp_error err;

    *s = (scene){.sim = rp_sim_new()};
    s->files = rp_sim_mount(s->sim);
    disk.real = s->files->ops;
    rp_mutex_init(&disk.mu, RP_RANK_WAITER);
    rp_cond_init(&disk.cv);
    s->ops = *s->files->ops;
    s->ops.sync = sync_unless_hanging;
    s->files->ops = &s->ops;
    rp_test_live_init(&s->live, NULL);
    assert_ok_err(
        rp_durable_open_tuned(s->files, &options, &tuning, s->live.store, &s->durable, &err),
        &err);
    serving.durable = s->durable;
    assert_ok_err(rp_test_live_try(&s->live, &serving), &s->live.err);
    s->client = rp_test_live_connect(&s->live);
    assert_non_null(s->client);
    rp_buf_init(&s->message, rp_allocator_default());
    rp_test_insert_items(s->client, "replay", 1, 1, 10);
    set_hanging(true);
    return s;
}

static void end(scene *s)
{
    set_hanging(false);
    rp_test_client_free(s->client);
    rp_test_live_end(&s->live);
    assert_ok(rp_durable_close(s->durable, NULL));
    rp_test_live_stop(&s->live);
    rp_buf_deinit(&s->message);
    s->files->ops = disk.real;
    s->files->ops->free(s->files);
    rp_sim_free(s->sim);
    rp_cond_deinit(&disk.cv);
    rp_mutex_deinit(&disk.mu);
}

static rp_durable_info info_of(scene *s)
{
    rp_durable_info info;

    rp_durable_get_info(s->durable, &info);
    return info;
}

static rp_loop_metrics sums_of(scene *s)
{
    rp_loop_metrics sums;

    rp_metrics_sum(s->live.server->metrics, &sums);
    return sums;
}

static uint64_t waiting(scene *s)
{
    rp_loop_metrics sums = sums_of(s);

    return rp_counter_get(&sums.journal_waits);
}

static int64_t updates_made(scene *s)
{
    return rp_test_live_info(&s->live, "replay").updates;
}

/* Updates the item `count` times, in one call. */
static rp_test_stream *update(scene *s, size_t count, const char *timeout)
{
    const rp_test_header header = {"grpc-timeout", timeout};
    rp_test_stream *call = rp_test_client_open_with(s->client, RP_TEST_REPLAY "Update", &header,
                                                    timeout != NULL ? 1 : 0);
    rp_update updates[MANY];

    for (size_t i = 0; i < count; i++) updates[i] = (rp_update){1, 2.0};
    rp_wire_write_update(&s->message, "replay", updates, count);
    rp_test_stream_put(call, &s->message);
    rp_test_stream_end(call);
    return call;
}

/* Sends updates until one waits; `*made` are those that do not. Returns the one that waits. */
static rp_test_stream *fill(scene *s, int64_t *made)
{
    for (*made = 0; *made < 1000; ++*made) {
        rp_test_stream *call = update(s, UPDATES, NULL);

        for (int i = 0; i < 10000; i++) {
            if (updates_made(s) == (*made + 1) * UPDATES) break;
            if (waiting(s) > 0) return call;
            rp_test_client_step(s->client, 1);
        }
        assert_int_equal(updates_made(s), (*made + 1) * UPDATES);
    }
    fail_msg("no update waits");
    return NULL;
}

static void changes_wait_while_the_backlog_is_at_its_bound(void **state)
{
    scene *s = begin(16 << 20);
    rp_test_stream *waits, *late[20];
    rp_durable_info before, after;
    int64_t made;

    (void)state;
    waits = fill(s, &made);
    before = info_of(s);
    assert_int_equal(before.max_backlog_bytes, BOUND);
    assert_true(before.backlog_bytes >= BOUND);
    for (int i = 0; i < 20; i++) late[i] = update(s, UPDATES, i % 2 == 0 ? "50m" : NULL);
    for (int i = 0; i < 20; i += 2) {
        assert_true(rp_test_stream_wait(late[i]));
        assert_int_equal(late[i]->status, RP_DEADLINE);
        assert_non_null(strstr(late[i]->text, "the journal is behind"));
    }
    after = info_of(s);
    assert_int_equal(after.lsn, before.lsn);
    assert_int_equal(after.backlog_bytes, before.backlog_bytes);
    assert_int_equal(updates_made(s), made * UPDATES);
    assert_int_equal(waiting(s), 11);
    set_hanging(false);
    assert_true(rp_test_stream_wait(waits));
    assert_int_equal(waits->status, RP_OK);
    for (int i = 1; i < 20; i += 2) {
        assert_true(rp_test_stream_wait(late[i]));
        assert_int_equal(late[i]->status, RP_OK);
    }
    assert_int_equal(updates_made(s), (made + 11) * UPDATES);
    assert_int_equal(waiting(s), 0);
    end(s);
}

/* Every method that changes something waits, and a call that is cancelled changes nothing. */
static void every_kind_of_change_waits(void **state)
{
    const rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE, .max_size = 100};
    const rp_table_options table = rp_test_options("new", RP_FIFO, RP_FIFO, 5);
    const uint64_t key = 1;
    scene *s = begin(16 << 20);
    rp_test_stream *calls[8];
    uint64_t lsn;
    int64_t made;
    static const char *const paths[8] = {
        RP_TEST_REPLAY "Delete",      RP_TEST_REVERB "MutatePriorities",
        RP_TEST_REPLAY "AlterTable",  RP_TEST_REPLAY "PauseTable",
        RP_TEST_REPLAY "ResumeTable", RP_TEST_REVERB "Reset",
        RP_TEST_REPLAY "CreateTable", RP_TEST_REPLAY "DropTable",
    };

    (void)state;
    (void)fill(s, &made);
    lsn = info_of(s).lsn;
    for (int i = 0; i < 8; i++) {
        calls[i] = rp_test_client_open(s->client, paths[i]);
        switch (i) {
        case 0: rp_wire_write_delete(&s->message, "replay", &key, 1); break;
        case 1: rp_test_put_update(&s->message, "replay", 1, 3.0); break;
        case 2: rp_wire_write_alter_table(&s->message, "replay", &change); break;
        case 3:
        case 4: rp_wire_write_pause_table(&s->message, "replay", RP_SIDE_SAMPLES); break;
        case 5: rp_wire_write_reset_request(&s->message, "replay"); break;
        case 6: rp_wire_write_create_table(&s->message, &table); break;
        default: rp_wire_write_drop_table(&s->message, "replay");
        }
        rp_test_stream_put(calls[i], &s->message);
        rp_test_stream_end(calls[i]);
        for (int n = 0; n < 10000 && waiting(s) < (uint64_t)i + 2; n++)
            rp_test_client_step(s->client, 1);
        assert_int_equal(waiting(s), i + 2);
    }
    for (int i = 0; i < 8; i++) rp_test_stream_reset(calls[i], 8);
    for (int n = 0; n < 10000 && waiting(s) > 1; n++) rp_test_client_step(s->client, 1);
    assert_int_equal(waiting(s), 1);
    assert_int_equal(info_of(s).lsn, lsn);
    assert_int_equal(rp_test_live_info(&s->live, "replay").size, 1);
    end(s);
}

/* Waiting messages do not fill the budget of queued bytes: the next ones are refused. */
static void calls_that_do_not_fit_are_refused(void **state)
{
    scene *s = begin(256 << 10);
    rp_test_stream *waits, *call;
    rp_loop_metrics sums;
    int64_t made;

    (void)state;
    waits = fill(s, &made);
    call = update(s, MANY, NULL); /* over a quarter of the side */
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_UNAVAILABLE);
    assert_non_null(strstr(call->text, "the journal is behind"));
    sums = sums_of(s);
    assert_int_equal(rp_counter_get(&sums.refusals[RP_REFUSED_JOURNAL]), 1);
    assert_int_equal(waiting(s), 1);
    set_hanging(false);
    assert_true(rp_test_stream_wait(waits));
    assert_int_equal(waits->status, RP_OK);
    assert_int_equal(updates_made(s), (made + 1) * UPDATES);
    end(s);
}

RP_TESTS(journal_room)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_wait_while_the_backlog_is_at_its_bound),
        cmocka_unit_test(every_kind_of_change_waits),
        cmocka_unit_test(calls_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
