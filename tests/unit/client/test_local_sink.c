/* SPDX-License-Identifier: Apache-2.0 */
/* Items that are written to a store of this process: they are confirmed only after they are
 * inserted. */
#include <pthread.h>
#include <unistd.h>

#include "support/client_rig.h"
#include "support/fixture.h"
#include "table/table_log.h"

static void append(rp_test_client_rig *r, int count)
{
    while (count-- > 0) {
        int32_t x = (int32_t)rp_trajectory_writer_steps(r->writer);
        rp_value value = {0, "x", {RP_INT32, SCALAR, &x}};
        assert_ok_err(rp_trajectory_writer_append(r->writer, &value, 1, 0, NULL, &r->err),
                      &r->err);
    }
}

static uint64_t item(rp_test_client_rig *r, const char *table, double priority)
{
    uint64_t key = 0;
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};

    assert_true(rp_trajectory_writer_find(r->writer, 0, -1, &ref));
    assert_ok_err(rp_trajectory_writer_create_item(r->writer,
                                                   &(rp_new_item){table, priority, &column, 1},
                                                   rp_wait_none(), &key, &r->err),
                  &r->err);
    return key;
}

static rp_status flush(rp_test_client_rig *r, size_t leave, int64_t ms)
{
    return rp_trajectory_writer_flush(r->writer, leave, rp_wait_ms(ms), &r->err);
}

/* A table that takes one item more for each that is sampled. */
static rp_table *add_queue(rp_test_client_rig *r, int64_t size)
{
    rp_table_options o = rp_test_options("queue", RP_FIFO, RP_FIFO, size);
    rp_table *t = NULL;

    o.limiter = rp_limiter_queue(size);
    o.max_times_sampled = 1;
    assert_ok_err(rp_store_add_table(r->in.store, &o, &t, &r->err), &r->err);
    return t;
}

static void limiter_delays_confirmations_item_by_item(void **state)
{
    rp_test_client_rig r;
    rp_table *queue;
    uint64_t keys[10];
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    queue = add_queue(&r, 3);
    for (int i = 0; i < 10; i++) {
        append(&r, 1);
        keys[i] = item(&r, "queue", 1);
    }

    assert_ok_err(flush(&r, 7, 20000), &r.err); /* three fit */
    assert_fails(flush(&r, 6, 20), RP_DEADLINE, &r.err, "table 'queue'");
    for (int i = 0; i < 10; i++) {
        assert_true(rp_test_draw(queue).key == keys[i]); /* in order */
        assert_ok_err(flush(&r, i < 7 ? 6 - (size_t)i : 0, 20000), &r.err);
    }
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    rp_test_client_deinit(&r);
}

static void an_item_that_is_inserted_at_once_is_confirmed_at_once(void **state)
{
    rp_test_client_rig r;
    rp_column_options plain = {.chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}};
    rp_table *queue;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    queue = add_queue(&r, 2);
    assert_ok_err(rp_trajectory_writer_configure(r.writer, 0, "x", &plain, &r.err), &r.err);
    for (size_t i = 0; i < 4; i++) {
        append(&r, 1);
        (void)item(&r, "queue", 1);
        assert_int_equal(rp_trajectory_writer_pending(r.writer), i < 2 ? 0 : i - 1);
    }

    for (size_t i = 0; i < 2; i++) (void)rp_test_draw(queue);
    assert_ok_err(flush(&r, 0, 20000), &r.err); /* the job has inserted the last two */
    for (size_t i = 0; i < 2; i++) (void)rp_test_draw(queue);
    append(&r, 1);
    (void)item(&r, "queue", 1);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    rp_test_client_deinit(&r);
}

/* Creates items of uncompressed rows, which the caller's thread hands over. */
static void make_plain(rp_test_client_rig *r, const char *table, size_t count)
{
    rp_column_options plain = {.chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}};

    if (rp_trajectory_writer_steps(r->writer) == 0)
        assert_ok_err(rp_trajectory_writer_configure(r->writer, 0, "x", &plain, &r->err),
                      &r->err);
    for (size_t i = 0; i < count; i++) {
        append(r, 1);
        (void)item(r, table, 1);
    }
}

static void items_are_handed_over_in_groups(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    r.writer->options.group = 4;
    make_plain(&r, "a", 6);
    assert_int_equal(rp_test_info(r.in.a).size, 4);
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 2);

    assert_ok_err(flush(&r, SIZE_MAX, 0), &r.err); /* does not wait */
    assert_int_equal(rp_test_info(r.in.a).size, 6);
    make_plain(&r, "a", 1);
    make_plain(&r, "b", 1); /* two tables in one group */
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    assert_int_equal(rp_test_info(r.in.a).size, 7);
    assert_int_equal(rp_test_info(r.in.b).size, 1);
    make_plain(&r, "a", 3); /* held when the writer is freed */
    rp_test_client_deinit(&r);
}

/* The writer makes its sink send after every RP_PUSH_ITEMS items, but between groups: runs of a
 * trainer are equal only if their groups are. */
static void items_before_a_group_do_not_divide_it(void **state)
{
    const size_t group = 100;
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    r.writer->options.group = group;
    make_plain(&r, "a", 2 * group - 1);
    assert_true(group < RP_PUSH_ITEMS && RP_PUSH_ITEMS < 2 * group);
    assert_int_equal(rp_test_info(r.in.a).inserts, group);
    assert_ok_err(flush(&r, SIZE_MAX, 0), &r.err);
    assert_int_equal(rp_test_info(r.in.a).inserts, 2 * group - 1);
    rp_test_client_deinit(&r);
}

/* A group that does not fit waits in one operation: its items are confirmed as soon as a caller
 * needs them, and at the latest when the last is in. */
static void a_group_that_waits_is_confirmed_in_parts(void **state)
{
    rp_test_client_rig r;
    rp_table *queue;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    r.writer->options.group = 8;
    queue = add_queue(&r, 3);
    make_plain(&r, "queue", 8);
    assert_int_equal(rp_test_info(queue).waiting_inserts, 1);
    assert_ok_err(flush(&r, 5, 20000), &r.err);
    assert_fails(flush(&r, 3, 20), RP_DEADLINE, &r.err, "table 'queue'");

    for (size_t i = 0; i < 2; i++) (void)rp_test_draw(queue);
    assert_ok_err(flush(&r, 3, 20000), &r.err);
    for (size_t i = 0; i < 3; i++) (void)rp_test_draw(queue);
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    rp_test_client_deinit(&r);
}

/* Draws an item when the writer waits, and another when the next report is there. */
static void *draw_two(void *rig)
{
    rp_test_client_rig *r = rig;
    rp_table *queue = rp_store_find_table(r->in.store, (rp_string){"queue", 5});

    for (size_t unsettled = 5; unsettled > 3; unsettled--) {
        bool is_time = false;

        while (!is_time) {
            (void)usleep(100);
            rp_mutex_lock(&r->writer->mu);
            is_time = r->writer->waiting && r->writer->set.count == unsettled;
            rp_mutex_unlock(&r->writer->mu);
        }
        (void)rp_test_draw(queue);
    }
    rp_table_unref(queue);
    return NULL;
}

/* Reports are kept back until there are enough of them, but how many bytes they free is not
 * known before. */
static void a_wait_for_bytes_ends_when_there_is_room(void **state)
{
    rp_test_client_rig r;
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};
    uint64_t key;
    pthread_t thread;
    rp_table *queue;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    r.writer->options.group = 8;
    queue = add_queue(&r, 3);
    make_plain(&r, "queue", 8);
    append(&r, 1);
    r.writer->options.max_bytes = r.writer->bytes / 8 * 4; /* room for a fourth item */
    assert_int_equal(pthread_create(&thread, NULL, draw_two, &r), 0);

    assert_true(rp_trajectory_writer_find(r.writer, 0, -1, &ref));
    assert_ok_err(rp_trajectory_writer_create_item(r.writer,
                                                   &(rp_new_item){"queue", 1, &column, 1},
                                                   rp_wait_ms(20000), &key, &r.err),
                  &r.err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rp_test_info(queue).inserts, 5);
    r.writer->options.max_bytes = SIZE_MAX;
    rp_test_client_deinit(&r);
}

static void a_group_without_memory_goes_to_the_job(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 1, false);
    r.writer->options.group = 3;
    r.sink->fail_puts = 1;
    make_plain(&r, "a", 4);
    assert_int_equal(flush(&r, 0, 1), RP_DEADLINE); /* the test settles none */
    rp_test_sink_await(r.sink, 4);
    for (size_t i = 1; i < 4; i++)
        assert_true((uint32_t)(r.sink->items[i].key - r.sink->items[i - 1].key) == 1);
    rp_test_client_deinit(&r);
}

/* A log whose changes are safe when the test says so. */
typedef struct slow_log {
    rp_table_log log; /* first */
    atomic_uint_fast64_t lsn, safe;
    atomic_bool fails; /* it cannot write */
} slow_log;

static uint64_t on_changed(rp_table_log *log, const rp_table *table,
                           const rp_log_record *change)
{
    (void)table, (void)change;
    return atomic_fetch_add(&((slow_log *)log)->lsn, 1) + 1;
}

static rp_status on_prepare(rp_table_log *log, rp_trajectory *const *list, size_t count,
                            uint64_t *claimed, rp_error *err)
{
    (void)log, (void)list, (void)count, (void)claimed, (void)err;
    return RP_OK;
}

static bool is_behind(const rp_table_log *log, bool is_insert)
{
    (void)log;
    (void)is_insert;
    return false;
}

static rp_status on_wait(rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err)
{
    slow_log *slow = (slow_log *)log;

    (void)err;
    while (atomic_load(&slow->safe) < lsn) {
        if (atomic_load(&slow->fails)) return RP_UNAVAILABLE;
        if (rp_now_ns() > wait.until_ns) return RP_DEADLINE;
    }
    return RP_OK;
}

static void begin_log(rp_test_client_rig *r, slow_log *slow)
{
    *slow = (slow_log){.log = {.prepare = on_prepare,
                               .changed = on_changed,
                               .is_behind = is_behind,
                               .wait = on_wait}};
    rp_table_set_log(r->in.a, &slow->log);
}

/* Waits until the job, which has its own thread, has inserted so many items. */
static void await_size(rp_table *table, int64_t size)
{
    for (int i = 0; i < 60000 && rp_test_info(table).size != size; i++) (void)usleep(1000);
    assert_int_equal(rp_test_info(table).size, size);
}

static void with_a_journal_items_are_confirmed_when_safe(void **state)
{
    rp_test_client_rig r;
    slow_log slow;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    begin_log(&r, &slow);
    append(&r, 1);
    (void)item(&r, "a", 1);

    assert_int_equal(flush(&r, 0, 200), RP_DEADLINE);
    await_size(r.in.a, 1);
    atomic_store(&slow.fails, true);
    assert_int_equal(flush(&r, 0, 200), RP_DEADLINE);
    atomic_store(&slow.safe, 100);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    rp_table_set_log(r.in.a, NULL);
    rp_test_client_deinit(&r);
}

static void a_sink_is_closed_although_the_journal_cannot_write(void **state)
{
    rp_test_client_rig r;
    slow_log slow;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    begin_log(&r, &slow);
    append(&r, 1);
    (void)item(&r, "a", 1);
    assert_int_equal(flush(&r, 0, 100), RP_DEADLINE);
    atomic_store(&slow.fails, true);
    rp_trajectory_writer_free(r.writer);
    r.writer = NULL;
    assert_int_equal(rp_test_info(r.in.a).size, 1);
    rp_table_set_log(r.in.a, NULL);
    rp_test_client_deinit(&r);
}

static void other_tables_are_not_delayed(void **state)
{
    rp_test_client_rig r;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    (void)add_queue(&r, 1);
    append(&r, 1);
    (void)item(&r, "queue", 1);
    (void)item(&r, "queue", 1);
    (void)item(&r, "a", 1);
    (void)item(&r, "b", 1);

    assert_ok_err(flush(&r, 1, 20000), &r.err);
    assert_int_equal(rp_test_info(r.in.a).size, 1);
    assert_int_equal(rp_test_info(r.in.b).size, 1);
    rp_test_client_deinit(&r); /* takes back the one that waits */
}

static void bad_item_is_refused_alone(void **state)
{
    rp_table_options o = rp_test_options("weighed", RP_PRIORITIZED, RP_FIFO, 100);
    rp_test_client_rig r;
    rp_table *t = NULL;
    (void)state;
    rp_test_client_init(&r, 10, 5, true);
    assert_ok_err(rp_store_add_table(r.in.store, &o, &t, &r.err), &r.err);
    append(&r, 1);
    for (int i = 0; i < 9; i++) (void)item(&r, "weighed", i == 4 || i == 6 ? -1 : 1);

    assert_fails(flush(&r, 0, 20000), RP_INVALID, &r.err, "2 items were refused, the first: ");
    assert_int_equal(rp_test_info(t).size, 7);
    assert_ok_err(flush(&r, 0, 20000), &r.err);
    rp_test_client_deinit(&r);
}

static void a_dropped_table_refuses_items(void **state)
{
    rp_test_client_rig r;
    rp_table *queue;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    queue = add_queue(&r, 1);
    append(&r, 1);
    for (int i = 0; i < 3; i++) (void)item(&r, "queue", 1);
    assert_ok_err(flush(&r, 2, 20000), &r.err);

    (void)queue;
    assert_ok(rp_store_drop_table(r.in.store, (rp_string){"queue", 5}, &r.err));
    assert_fails(
        flush(&r, 0, 20000), RP_NOT_FOUND, &r.err,
        "2 items were refused, the first: Priority table queue was not found; the tables "
        "are: ");
    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    (void)item(&r, "queue", 1); /* the writer has seen the table and does not ask again */
    assert_fails(flush(&r, 0, 20000), RP_NOT_FOUND, &r.err,
                 "Priority table queue was not found; the tables are: ");
    rp_test_client_deinit(&r);
}

static void data_is_not_copied(void **state)
{
    rp_test_client_rig r;
    rp_trajectory *t, *u;
    uint64_t a, b;
    (void)state;
    rp_test_client_init(&r, 10, 1, true);
    append(&r, 1);
    a = item(&r, "a", 1);
    b = item(&r, "b", 1);
    assert_ok_err(flush(&r, 0, 20000), &r.err);

    t = rp_test_peek(&r.in, r.in.a, a);
    u = rp_test_peek(&r.in, r.in.b, b);
    assert_ptr_equal(rp_trajectory_get_chunk(t, 0), rp_trajectory_get_chunk(u, 0));
    rp_trajectory_unref(t);
    rp_trajectory_unref(u);
    rp_test_client_deinit(&r);
}

enum { WRITERS = 4, STEPS = 2000 };

typedef struct one_writer {
    rp_test_client_rig rig; /* only what the helpers above use */
    size_t items;
    pthread_t thread;
} one_writer;

static void *write_steps(void *user)
{
    one_writer *w = user;
    rp_test_client_rig *r = &w->rig;
    int32_t got;

    for (int i = 0; i < STEPS; i++) {
        rp_ref ref;
        append(r, 1);
        (void)item(r, i % 2 == 0 ? "a" : "queue", 1);
        w->items++;
        if (i % 7 == 0 && i % 100 > 5) { /* so that it is of this episode */
            assert_true(rp_trajectory_writer_find(r->writer, 0, -5, &ref));
            assert_ok(rp_trajectory_writer_copy(r->writer, ref, &got, sizeof got, NULL));
            assert_int_equal(got, rp_trajectory_writer_steps(r->writer) - 5);
        }
        if (i % 100 == 99)
            assert_ok_err(rp_trajectory_writer_end_episode(r->writer, i % 200 == 99,
                                                           rp_wait_ms(60000), &r->err),
                          &r->err);
    }
    return NULL;
}

static void *sample_all(void *user)
{
    rp_sample_options options = {.count = 1};
    rp_sample sample;
    size_t drawn;

    for (int i = 0; i < WRITERS * STEPS / 2; i++) {
        assert_ok(rp_table_sample(user, &options, &sample, &drawn, rp_wait_ms(60000), NULL));
        rp_samples_release(&sample, drawn);
    }
    return NULL;
}

static void writers_do_not_delay_each_other(void **state)
{
    static one_writer writers[WRITERS];
    rp_test_client_rig r;
    rp_table *queue;
    pthread_t sampler;
    (void)state;
    rp_test_client_open_store(&r);
    queue = add_queue(&r, 10);

    for (int i = 0; i < WRITERS; i++) {
        rp_trajectory_writer_options o = {
            .column = {.history = 20, .chunk_length = i, .chunk = {.delta = true}},
            .max_items = 500};
        rp_writer_parts parts = rp_test_client_parts(&r);
        rp_sink_events events;
        rp_sink *sink;
        parts.seed = 100 + (uint64_t)i;
        writers[i].rig = (rp_test_client_rig){0};
        assert_ok(rp_trajectory_writer_open(&parts, &o, &writers[i].rig.writer, &r.err));
        events = rp_trajectory_writer_events(writers[i].rig.writer);
        assert_ok(
            rp_local_sink_open(&r.in.alloc, r.in.store, r.runtime, &events, &sink, &r.err));
        rp_trajectory_writer_attach(writers[i].rig.writer, sink);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_steps, &writers[i]), 0);
    }
    assert_int_equal(pthread_create(&sampler, NULL, sample_all, queue), 0);
    for (int i = 0; i < WRITERS; i++) (void)pthread_join(writers[i].thread, NULL);
    (void)pthread_join(sampler, NULL);
    for (int i = 0; i < WRITERS; i++) rp_trajectory_writer_free(writers[i].rig.writer);
    assert_int_equal(rp_test_info(r.in.a).inserts, WRITERS * STEPS / 2);
    assert_int_equal(rp_test_info(queue).inserts, WRITERS * STEPS / 2);
    rp_test_client_deinit(&r);
}

/* What a sink has reported, and on which threads. */
typedef struct reports {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    pthread_t own;
    size_t count, on_own_thread;
    bool in_order;
} reports;

static void on_settled(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text)
{
    reports *r = user;

    assert_ok(status);
    (void)text;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < count; i++) r->in_order &= keys[i] == r->count++;
    if (pthread_equal(r->own, pthread_self())) r->on_own_thread += count;
    pthread_cond_signal(&r->cv);
    pthread_mutex_unlock(&r->mu);
}

/* A thread that samples or resumes a table has work of its own. */
static void a_guest_leaves_most_batches_to_the_job(void **state)
{
    enum { COUNT = 1000 };
    rp_test_client_rig r;
    reports all = {.own = pthread_self(), .in_order = true};
    rp_sink_events events = {on_settled, &all};
    rp_test_bed bed;
    rp_sink *sink;
    (void)state;
    rp_test_client_open_store(&r);
    rp_test_bed_init(&bed, NULL);
    pthread_mutex_init(&all.mu, NULL);
    pthread_cond_init(&all.cv, NULL);
    assert_ok(rp_local_sink_open(&r.in.alloc, r.in.store, r.runtime, &events, &sink, &r.err));
    assert_ok_err(rp_table_pause(r.in.a, RP_SIDE_INSERTS, &r.err), &r.err);
    for (uint64_t i = 0; i < COUNT; i++) {
        rp_sink_item item = {i, "a", 1, rp_trajectory_ref(bed.plain)};

        assert_ok_err(sink->class->put(sink, &item, 1, &r.err), &r.err);
    }
    assert_int_equal(all.count, 0);

    assert_ok_err(rp_table_resume(r.in.a, RP_SIDE_INSERTS, &r.err), &r.err);
    pthread_mutex_lock(&all.mu);
    while (all.count < COUNT) pthread_cond_wait(&all.cv, &all.mu);
    pthread_mutex_unlock(&all.mu);
    assert_true(all.on_own_thread > 0 && all.on_own_thread <= 128);
    assert_true(all.in_order);
    assert_int_equal(rp_test_info(r.in.a).inserts, COUNT);
    sink->class->close(sink);
    rp_test_client_deinit(&r);
    rp_test_bed_deinit(&bed);
}

RP_TESTS(local_sink)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limiter_delays_confirmations_item_by_item),
        cmocka_unit_test(an_item_that_is_inserted_at_once_is_confirmed_at_once),
        cmocka_unit_test(with_a_journal_items_are_confirmed_when_safe),
        cmocka_unit_test(a_sink_is_closed_although_the_journal_cannot_write),
        cmocka_unit_test(other_tables_are_not_delayed),
        cmocka_unit_test(items_are_handed_over_in_groups),
        cmocka_unit_test(items_before_a_group_do_not_divide_it),
        cmocka_unit_test(a_group_that_waits_is_confirmed_in_parts),
        cmocka_unit_test(a_wait_for_bytes_ends_when_there_is_room),
        cmocka_unit_test(a_group_without_memory_goes_to_the_job),
        cmocka_unit_test(bad_item_is_refused_alone),
        cmocka_unit_test(a_dropped_table_refuses_items),
        cmocka_unit_test(data_is_not_copied),
        cmocka_unit_test(writers_do_not_delay_each_other),
        cmocka_unit_test(a_guest_leaves_most_batches_to_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
