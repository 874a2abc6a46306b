/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are left waiting: started, resumed, withdrawn, expired, closed. */
#include "support/fixture.h"
#include "table/op.h"
#include "table/table.h"

enum { MOST = 8 };

/* An operation with all it points at, and what became of it. */
typedef struct call {
    rp_op op;
    rp_insert items[MOST];
    rp_sample_options options;
    rp_sample samples[MOST];
    int calls; /* of on_done */
    size_t in; /* the last that on_progress said, and how often it was called */
    int progress;
    size_t turn; /* among all that were called */
} call;

static rp_test_bed bed;
static size_t turns;

static int set_up(void **state)
{
    (void)state;
    turns = 0;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_table *make_queue(int64_t size)
{
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    o.limiter = rp_limiter_queue(size);
    o.max_times_sampled = 1;
    return rp_test_bed_table(&bed, &o);
}

static void count_call(rp_op *op)
{
    call *c = op->user;

    c->calls++;
    c->turn = ++turns;
}

static void call_init(call *c, int64_t until_ns)
{
    memset(c, 0, sizeof *c);
    c->op = (rp_op){.until_ns = until_ns, .on_done = count_call, .user = c};
}

/* Both return what start returns. */
static bool start_insert(call *c, rp_table *t, uint64_t key, size_t count, int64_t until_ns)
{
    call_init(c, until_ns);
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = bed.plain};
    c->op.items = c->items;
    c->op.count = count;
    return rp_table_start_insert(t, &c->op);
}

static bool start_sample(call *c, rp_table *t, size_t count, size_t at_least, int64_t until_ns)
{
    call_init(c, until_ns);
    c->options = (rp_sample_options){.count = count, .at_least = at_least};
    c->op.options = &c->options;
    c->op.samples = c->samples;
    return rp_table_start_sample(t, &c->op);
}

static void expect_over(call *c, int calls, rp_status status, size_t done)
{
    assert_int_equal(c->calls, calls);
    assert_int_equal(c->op.status, status);
    assert_int_equal(c->op.done, done);
    if (c->op.samples != NULL) rp_samples_release(c->samples, done);
}

static void put(rp_table *t, uint64_t key)
{
    rp_test_put(t, key, 1, bed.plain);
}

static void operation_that_can_go_ahead_is_over_at_once(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call insert, sample;

    assert_true(start_insert(&insert, t, 1, 2, RP_FOREVER));
    assert_true(start_sample(&sample, t, 2, 0, RP_FOREVER));

    assert_true(sample.samples[0].key == 1 && sample.samples[1].key == 2);
    assert_false(sample.samples[0].rate_limited);
    expect_over(&insert, 0, RP_OK, 2);
    expect_over(&sample, 0, RP_OK, 2);
}

static void operation_with_bad_arguments_is_over_at_once(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call c;

    assert_true(start_sample(&c, t, 0, 0, RP_FOREVER));
    expect_over(&c, 0, RP_INVALID, 0);
    assert_non_null(strstr(c.op.error.text, "got 0"));
    call_init(&c, RP_FOREVER);
    c.op.items = c.items;
    c.op.count = 1; /* without a trajectory */
    assert_true(rp_table_start_insert(t, &c.op));
    expect_over(&c, 0, RP_INVALID, 0);
}

static void operation_that_may_wait_needs_an_on_done(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    rp_insert item = {.key = 2, .priority = 1, .trajectory = bed.plain};
    rp_sample_options one = {.count = 1};
    rp_sample s;
    rp_op insert = {.items = &item, .count = 1, .until_ns = RP_FOREVER};
    rp_op sample = {.options = &one, .samples = &s, .until_ns = 1};
    put(t, 1);
    rp_table_info before = rp_test_info_of(t);

    assert_true(rp_table_start_insert(t, &insert)); /* though it would not have to wait */
    assert_true(rp_table_start_sample(t, &sample));

    assert_true(insert.done == 0 && sample.done == 0);
    assert_fails(insert.status, RP_INVALID, &insert.error, "needs an on_done");
    assert_fails(sample.status, RP_INVALID, &sample.error, "needs an on_done");
    assert_unchanged(t, &before);
    insert.until_ns = RP_NOW; /* nobody will have to be told */
    assert_true(rp_table_start_insert(t, &insert));
    assert_true(insert.status == RP_OK && insert.done == 1);
}

static void waiting_sample_is_resumed_by_an_insert(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call c;

    assert_false(start_sample(&c, t, 2, 0, RP_FOREVER));
    assert_int_equal(rp_test_info_of(t).waiting_samples, 1);
    put(t, 1);
    assert_int_equal(c.calls, 0); /* one of two */
    put(t, 2);

    assert_true(c.samples[0].key == 1 && c.samples[1].key == 2);
    assert_true(c.samples[0].rate_limited && c.samples[1].rate_limited);
    expect_over(&c, 1, RP_OK, 2);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    put(t, 3);
    assert_int_equal(c.calls, 1);
}

static void waiting_insert_is_resumed_by_a_sample(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;

    assert_false(start_insert(&c, t, 1, 4, RP_FOREVER));
    assert_int_equal(c.op.done, 2);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 1);
    bed.wall_ns = 7777;
    assert_int_equal(rp_test_draw(t).key, 1);
    assert_int_equal(c.op.done, 3);
    assert_int_equal(rp_test_draw(t).key, 2);

    expect_over(&c, 1, RP_OK, 4);
    rp_sample s = rp_test_draw(t);
    assert_true(s.key == 3 && s.inserted_at_ns == 7777); /* the moment it went in */
}

static void waiting_insert_is_resumed_by_a_delete(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    o.limiter = (rp_limiter_options){1, 3, 0, 2};
    rp_table *t = rp_test_bed_table(&bed, &o);
    call c;
    for (uint64_t key = 1; key <= 3; key++) put(t, key);

    assert_false(start_insert(&c, t, 9, 1, RP_FOREVER));
    assert_ok(rp_table_delete(t, &(uint64_t){2}, 1, NULL, NULL)); /* below min_size again */

    expect_over(&c, 1, RP_OK, 1);
    assert_true(rp_test_has_key(t, 9));
}

static void waiting_calls_survive_a_reset(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call insert, sample;
    put(t, 1);

    assert_false(start_insert(&insert, t, 2, 1, RP_FOREVER));
    assert_ok(rp_table_reset(t, NULL));
    expect_over(&insert, 1, RP_OK, 1); /* there is room now */
    assert_int_equal(rp_test_draw(t).key, 2);
    assert_false(start_sample(&sample, t, 1, 0, RP_FOREVER));
    assert_ok(rp_table_reset(t, NULL));
    assert_int_equal(sample.calls, 0);
    put(t, 3);
    expect_over(&sample, 1, RP_OK, 1);
}

static void at_least_ends_a_sample_early(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c, at_once;

    assert_false(start_sample(&c, t, 4, 2, RP_FOREVER));
    put(t, 1);
    assert_int_equal(c.calls, 0);
    put(t, 2);
    expect_over(&c, 1, RP_OK, 2);
    for (uint64_t key = 3; key <= 5; key++) put(t, key);
    assert_true(start_sample(&at_once, t, 8, 2, RP_FOREVER)); /* all that can be had */
    expect_over(&at_once, 0, RP_OK, 3);
}

static double weights_when_told[MOST];

static void note_weights(rp_op *op)
{
    count_call(op);
    for (size_t i = 0; i < op->done; i++) weights_when_told[i] = op->samples[i].weight;
}

static bool start_weighed(call *c, rp_table *t, size_t count)
{
    call_init(c, 1000);
    c->options = (rp_sample_options){.count = count, .beta = 1};
    c->op.options = &c->options;
    c->op.samples = c->samples;
    c->op.on_done = note_weights;
    return rp_table_start_sample(t, &c->op);
}

/* A queue gives its first with probability 1: weights are 1 / size, divided by the largest. */
static void weights_of_a_sample_that_is_over_at_once_are_filled_in(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c;
    for (uint64_t key = 1; key <= 4; key++) put(t, key);

    assert_true(start_weighed(&c, t, 4));

    assert_true(c.samples[0].weight == 0.25 && c.samples[2].weight == 0.5);
    assert_true(c.samples[3].weight == 1);
    expect_over(&c, 0, RP_OK, 4);
}

static void weights_of_a_resumed_sample_are_those_of_the_whole_batch(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c;
    put(t, 1);
    put(t, 2);
    assert_false(start_weighed(&c, t, 3));

    put(t, 3);

    assert_true(weights_when_told[0] == 0.5 && weights_when_told[1] == 1);
    assert_true(weights_when_told[2] == 1);
    expect_over(&c, 1, RP_OK, 3);
}

static void weights_of_a_sample_that_ends_early_are_filled_in(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        call c;
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make_queue(5);
        put(t, 1);
        put(t, 2);
        assert_false(start_weighed(&c, t, 3));

        if (how == 0) assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
        if (how == 1) (void)rp_table_expire(t, 1000);
        if (how == 2) rp_table_close(t);

        assert_true(c.samples[0].weight == 0.5 && c.samples[1].weight == 1);
        expect_over(&c, how == 0 ? 0 : 1, RP_OK, 2);
    }
}

static void ignore_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx, (void)view, (void)events, (void)count;
}

/* The events of so many draws do not fit the room that the first insert made for them. */
static void partly_drawn_sample_that_lacks_memory_keeps_what_it_has_drawn(void **state)
{
    (void)state;
    static rp_sample drawn[200];
    rp_extension e = {.name = "ignore", .deferred = true, .on_events = ignore_events};
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    call c;
    o.limiter = rp_limiter_queue(1000);
    o.max_times_sampled = 1;
    o.extensions = &e;
    o.extension_count = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);
    put(t, 1);
    call_init(&c, RP_FOREVER);
    c.options = (rp_sample_options){.count = COUNT_OF(drawn)};
    c.op.options = &c.options;
    c.op.samples = drawn;
    assert_false(rp_table_start_sample(t, &c.op));
    assert_int_equal(c.op.done, 1);

    bed.oom.left = 0;
    put(t, 2);
    bed.oom.left = RP_TEST_OOM_UNLIMITED;

    assert_true(bed.oom.failed > 0);
    assert_true(c.calls == 1 && c.op.status == RP_OK);
    assert_true(c.op.done == 1 && drawn[0].key == 1);
    rp_samples_release(drawn, 1); /* the fixture counts what is left */
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    assert_int_equal(rp_test_draw(t).key, 2);
    assert_true(rp_table_check(t));
}

static void waiting_calls_are_served_in_order_of_arrival(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call samples[4], inserts[4];

    for (size_t i = 0; i < 4; i++) assert_false(start_sample(&samples[i], t, 1, 0, RP_FOREVER));
    for (uint64_t key = 1; key <= 4; key++) put(t, key);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(samples[i].turn, i + 1);
        assert_int_equal(samples[i].samples[0].key, i + 1);
        expect_over(&samples[i], 1, RP_OK, 1);
    }
    put(t, 5);
    put(t, 6);
    for (size_t i = 0; i < 4; i++)
        assert_false(start_insert(&inserts[i], t, 10 + i, 1, RP_FOREVER));
    for (uint64_t key = 5; key <= 6; key++) assert_int_equal(rp_test_draw(t).key, key);
    for (uint64_t key = 10; key < 14; key++) assert_int_equal(rp_test_draw(t).key, key);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(inserts[i].turn, 5 + i);
        expect_over(&inserts[i], 1, RP_OK, 1);
    }
}

static void both_queues_push_each_other_on(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call insert, sample;

    assert_false(start_insert(&insert, t, 1, 6, RP_FOREVER)); /* one at a time fits */
    assert_true(start_sample(&sample, t, 6, 6, RP_FOREVER) || sample.calls == 1);

    for (size_t i = 0; i < 6; i++) assert_int_equal(sample.samples[i].key, i + 1);
    expect_over(&insert, 1, RP_OK, 6);
    rp_samples_release(sample.samples, 6);
    assert_int_equal(rp_test_info_of(t).size, 0);
}

static void nobody_overtakes_a_queue_not_even_without_waiting(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call first, impatient;
    assert_false(start_sample(&first, t, 4, 0, RP_FOREVER));
    put(t, 1); /* goes to the first in line */

    assert_true(start_sample(&impatient, t, 1, 0, RP_NOW));

    expect_over(&impatient, 0, RP_DEADLINE, 0);
    assert_non_null(strstr(impatient.op.error.text, "1 others wait ahead; sample waits"));
    assert_true(rp_op_withdraw(&first.op, RP_CANCELLED));
    expect_over(&first, 0, RP_OK, 1);
}

static void insert_without_waiting_does_not_overtake_either(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call first;
    put(t, 1);
    assert_false(start_insert(&first, t, 2, 1, RP_FOREVER));

    assert_fails(
        rp_test_try_put(t, 3, 1, bed.plain, &bed.err), RP_DEADLINE, &bed.err,
        "1 others wait ahead; insert waits for samples: (1 inserts + 1) * 1 - 0 samples = 2 "
        "is over max_diff 1");

    assert_int_equal(rp_test_draw(t).key, 1);
    expect_over(&first, 1, RP_OK, 1);
}

static void withdrawn_operation_is_over_without_a_call(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call insert, sample;
    assert_false(start_sample(&sample, t, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&sample.op, RP_CANCELLED));
    assert_false(rp_op_withdraw(&sample.op, RP_CANCELLED)); /* only once */
    expect_over(&sample, 0, RP_CANCELLED, 0);
    assert_non_null(strstr(sample.op.error.text, "table 'q' wait was ended: sample waits"));
    assert_false(start_insert(&insert, t, 1, 3, RP_FOREVER));
    assert_true(rp_op_withdraw(&insert.op, RP_DEADLINE));
    expect_over(&insert, 0, RP_DEADLINE, 2); /* what went in stays in */
    assert_non_null(strstr(insert.op.error.text, "timed out"));
    assert_int_equal(rp_test_info_of(t).size, 2);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
    assert_int_equal(rp_test_draw(t).key, 1);
}

static void withdrawn_sample_keeps_what_it_has_drawn(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;
    assert_false(start_sample(&c, t, 3, 0, RP_FOREVER));
    put(t, 1);

    assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));

    expect_over(&c, 0, RP_OK, 1);
}

static void operation_that_is_over_cannot_be_withdrawn(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call done, at_once;
    assert_false(start_sample(&done, t, 1, 0, RP_FOREVER));
    put(t, 1);
    assert_true(start_insert(&at_once, t, 2, 1, RP_FOREVER));

    assert_false(rp_op_withdraw(&done.op, RP_CANCELLED));
    assert_false(rp_op_withdraw(&at_once.op, RP_CANCELLED));

    expect_over(&done, 1, RP_OK, 1);
    expect_over(&at_once, 0, RP_OK, 1);
}

static void withdrawal_from_the_middle_keeps_the_line(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c[5];
    for (size_t i = 0; i < 5; i++) assert_false(start_sample(&c[i], t, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&c[2].op, RP_CANCELLED));
    assert_true(rp_op_withdraw(&c[4].op, RP_CANCELLED)); /* the last */
    assert_true(rp_op_withdraw(&c[0].op, RP_CANCELLED)); /* the first */
    put(t, 1);
    put(t, 2);

    assert_true(c[1].turn == 1 && c[3].turn == 2);
    expect_over(&c[1], 1, RP_OK, 1);
    expect_over(&c[3], 1, RP_OK, 1);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
}

static void those_behind_a_withdrawn_operation_go_on(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call greedy, modest;
    call_init(&greedy, RP_FOREVER);
    greedy.options = (rp_sample_options){.count = 3, .distinct = true};
    greedy.op.options = &greedy.options;
    greedy.op.samples = greedy.samples;
    rp_table_options o = rp_test_options("d", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(9);
    rp_table *d = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 1; key <= 3; key++) put(d, key);
    (void)rp_test_draw(d);
    (void)rp_test_draw(d);
    assert_false(rp_table_start_sample(d, &greedy.op)); /* three items, one sample allowed */
    assert_false(start_sample(&modest, d, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&greedy.op, RP_CANCELLED));

    expect_over(&modest, 1, RP_OK, 1);
    (void)t;
}

static void expired_operations_end_with_what_they_have(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call none, some, insert;
    assert_false(start_sample(&some, t, 3, 0, 100));
    put(t, 1);
    assert_false(start_sample(&none, t, 1, 0, 200));
    assert_int_equal(rp_table_expire(t, 99), 100);
    assert_true(some.calls == 0 && none.calls == 0);

    assert_int_equal(rp_table_expire(t, 100), 200);
    expect_over(&some, 1, RP_OK, 1);
    assert_int_equal(rp_table_expire(t, 5000), RP_FOREVER);
    expect_over(&none, 1, RP_DEADLINE, 0);
    assert_non_null(strstr(none.op.error.text, "table 'q' timed out: sample waits for inserts: "
                                               "the table has 0 items, min_size is 1"));
    assert_false(start_insert(&insert, t, 5, 5, 300));
    assert_int_equal(rp_table_expire(t, 300), RP_FOREVER);
    expect_over(&insert, 1, RP_DEADLINE, 2);
    assert_true(rp_test_has_key(t, 5) && rp_test_has_key(t, 6) && !rp_test_has_key(t, 7));
}

static void expiry_lets_those_behind_go_on(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(9);
    rp_table *t = rp_test_bed_table(&bed, &o);
    call greedy, modest;
    for (uint64_t key = 1; key <= 3; key++) put(t, key);
    (void)rp_test_draw(t);
    call_init(&greedy, 50);
    greedy.options = (rp_sample_options){.count = 3, .distinct = true};
    greedy.op.options = &greedy.options;
    greedy.op.samples = greedy.samples;
    assert_false(rp_table_start_sample(t, &greedy.op));
    assert_false(start_sample(&modest, t, 1, 0, 1000));

    (void)rp_table_expire(t, 60);

    expect_over(&greedy, 1, RP_DEADLINE, 0);
    expect_over(&modest, 1, RP_OK, 1);
    assert_int_equal(rp_table_expire(t, 60), RP_FOREVER);
}

static void close_ends_every_wait(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call samples[3], partial, late;
    assert_false(start_sample(&partial, t, 2, 0, RP_FOREVER));
    put(t, 1);
    for (size_t i = 0; i < 3; i++) assert_false(start_sample(&samples[i], t, 1, 0, RP_FOREVER));

    rp_table_close(t);

    expect_over(&partial, 1, RP_OK, 1); /* what was drawn is handed over */
    for (size_t i = 0; i < 3; i++) {
        expect_over(&samples[i], 1, RP_CANCELLED, 0);
        assert_non_null(strstr(samples[i].op.error.text, "table 'q' was closed"));
    }
    assert_true(start_insert(&late, t, 5, 1, RP_FOREVER));
    expect_over(&late, 0, RP_CANCELLED, 0);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
}

static void close_ends_waiting_inserts(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call a, b;
    assert_false(start_insert(&a, t, 1, 2, RP_FOREVER));
    assert_false(start_insert(&b, t, 8, 1, RP_FOREVER));

    rp_store_close(bed.store);

    expect_over(&a, 1, RP_CANCELLED, 1);
    expect_over(&b, 1, RP_CANCELLED, 0);
}

static rp_table *chain_table;
static call chain[3];

static void start_the_next(rp_op *op)
{
    call *c = op->user;

    count_call(op);
    rp_samples_release(c->samples, op->done);
    if (c == &chain[2]) return;
    c++;
    assert_false(start_sample(c, chain_table, 1, 0, RP_FOREVER));
    c->op.on_done = start_the_next;           /* nobody else is here yet */
    if (c == &chain[2]) put(chain_table, 77); /* even something that ends it at once */
}

static void callback_may_start_other_operations(void **state)
{
    (void)state;
    chain_table = make_queue(3);
    assert_false(start_sample(&chain[0], chain_table, 1, 0, RP_FOREVER));
    chain[0].op.on_done = start_the_next;

    put(chain_table, 1);
    assert_true(chain[0].calls == 1 && chain[1].calls == 0);
    put(chain_table, 2);

    assert_true(chain[1].calls == 1 && chain[2].calls == 1);
    assert_int_equal(rp_test_info_of(chain_table).size, 0);
}

static int depth, deepest;

static void feed_the_next(rp_op *op)
{
    call *c = op->user;

    if (++depth > deepest) deepest = depth;
    count_call(op);
    rp_samples_release(c->samples, op->done);
    put(chain_table, 1 + turns);
    depth--;
}

static void callbacks_that_end_other_operations_do_not_nest(void **state)
{
    (void)state;
    enum { WAITERS = 5000 };
    call *c = calloc(WAITERS, sizeof *c);
    assert_non_null(c);
    chain_table = make_queue(3);
    depth = deepest = 0;
    for (size_t i = 0; i < WAITERS; i++) {
        assert_false(start_sample(&c[i], chain_table, 1, 0, RP_FOREVER));
        c[i].op.on_done = feed_the_next;
    }

    put(chain_table, 1);

    assert_int_equal(deepest, 1);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_true(c[i].calls == 1 && c[i].turn == i + 1);
        assert_true(c[i].op.status == RP_OK && c[i].samples[0].key == i + 1);
    }
    assert_int_equal(rp_test_info_of(chain_table).waiting_samples, 0);
    assert_int_equal(rp_test_draw(chain_table).key, WAITERS + 1); /* what the last one put */
    free(c);
}

static void operation_can_be_started_again_once_over(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;
    assert_false(start_sample(&c, t, 1, 0, RP_FOREVER));

    for (uint64_t key = 1; key <= 3; key++) {
        put(t, key);
        assert_true(c.calls == (int)key && c.samples[0].key == key);
        rp_samples_release(c.samples, 1);
        assert_false(rp_table_start_sample(t, &c.op));
    }

    assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
}

static void offer(call *c, rp_table *t, uint64_t key, size_t count)
{
    call_init(c, 1000);
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i,
                                  .priority = 1,
                                  .trajectory = rp_test_blob_trajectory(&bed.alloc, i, 1, 20),
                                  .flags = RP_INSERT_TAKE};
    c->op.items = c->items;
    c->op.count = count;
    assert_false(rp_table_start_insert(t, &c->op));
}

/* However the wait ends, what did not go in is still the owner's, and nothing else. */
static void offered_references_are_taken_as_far_as_a_waiting_insert_got(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        call c;
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make_queue(2);
        offer(&c, t, 1, 6); /* two go in at once */
        (void)rp_test_draw(t);
        assert_int_equal(c.op.done, 3);

        if (how == 0) assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
        if (how == 1) (void)rp_table_expire(t, 1000);
        if (how == 2) rp_table_close(t);
        while (how == 3 && c.calls == 0) (void)rp_test_draw(t);

        assert_int_equal(c.op.done, how == 3 ? 6 : 3);
        for (size_t i = c.op.done; i < 6; i++) rp_trajectory_unref(c.items[i].trajectory);
    }
}

static void waiting_calls_can_be_asked_what_they_wait_for(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    rp_waiting out[4];
    call samples[2], insert;
    memset(out, 0, sizeof out);
    assert_int_equal(rp_table_waiting(t, out, 4), 0);
    assert_false(start_sample(&samples[0], t, 3, 0, 12345));
    put(t, 1);
    assert_false(start_sample(&samples[1], t, 2, 1, RP_FOREVER));

    assert_int_equal(rp_table_waiting(t, out, 4), 2);
    assert_true(!out[0].is_insert && out[0].wanted == 3 && out[0].done == 1);
    assert_true(out[0].until_ns == 12345 && out[0].waiting_ns >= 0);
    assert_string_equal(out[0].why,
                        "sample waits for inserts: the table has 0 items, min_size is "
                        "1; 1 more inserts would release it");
    assert_string_equal(out[1].why,
                        "1 others wait ahead; sample waits for inserts: the table has 0 items, "
                        "min_size is 1; 1 more inserts would release it");
    assert_true(rp_op_withdraw(&samples[0].op, RP_OK) && rp_op_withdraw(&samples[1].op, RP_OK));
    rp_samples_release(samples[0].samples, 1);

    assert_false(start_insert(&insert, t, 10, 3, RP_FOREVER));
    assert_int_equal(rp_table_waiting(t, out, 4), 1);
    assert_true(out[0].is_insert && out[0].wanted == 3 && out[0].done == 2);
    assert_non_null(strstr(out[0].why,
                           "(3 inserts + 1) * 1 - 1 samples = 3 is over max_diff 2; 1 more "
                           "samples would release it"));
    assert_true(rp_op_withdraw(&insert.op, RP_CANCELLED));
}

static void waiting_lists_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c[3];
    rp_waiting out[3];
    for (size_t i = 0; i < 3; i++) assert_false(start_sample(&c[i], t, 1 + i, 0, RP_FOREVER));
    out[2].wanted = 99;

    assert_int_equal(rp_table_waiting(t, out, 2), 3);

    assert_true(out[0].wanted == 1 && out[1].wanted == 2 && out[2].wanted == 99);
    assert_int_equal(rp_table_waiting(t, NULL, 0), 3);
    for (size_t i = 0; i < 3; i++) assert_true(rp_op_withdraw(&c[i].op, RP_CANCELLED));
}

static void sleep_ms(int64_t ms)
{
    int64_t until_ns = rp_now_ns() + ms * 1000000;
    while (rp_now_ns() < until_ns) {}
}

static void info_says_how_long_calls_wait_and_have_waited(void **state)
{
    (void)state;
    enum { MS = 1000000 };
    rp_table *t = make_queue(2);
    rp_table_info info = rp_test_info_of(t);
    call c[2], insert;
    int64_t before_ns = rp_now_ns(), bound_ns;
    assert_true(info.sample_waits.longest_ns == 0 && info.sample_waits.total_ns == 0);
    assert_true(info.sample_waits.parked == 0 && info.insert_waits.parked == 0);

    assert_false(start_sample(&c[0], t, 1, 0, RP_FOREVER));
    sleep_ms(4);
    assert_false(start_sample(&c[1], t, 1, 0, RP_FOREVER));
    sleep_ms(2);
    info = rp_test_info_of(t);
    bound_ns = rp_now_ns() - before_ns;
    assert_true(info.waiting_samples == 2 && info.sample_waits.parked == 2);
    assert_in_range(info.sample_waits.longest_ns, 6 * MS, bound_ns);
    assert_in_range(info.sample_waits.total_ns, 8 * MS, 2 * bound_ns - 4 * MS);
    put(t, 1); /* ends the first wait */
    info = rp_test_info_of(t);
    assert_true(info.sample_waits.longest_ns < rp_now_ns() - before_ns - 3 * MS);
    assert_in_range(info.sample_waits.total_ns, 8 * MS, 2 * (rp_now_ns() - before_ns));
    assert_true(rp_op_withdraw(&c[1].op, RP_CANCELLED));
    info = rp_test_info_of(t);
    sleep_ms(2);

    assert_ok(rp_table_reset(t, NULL)); /* these figures stay */
    assert_true(rp_test_info_of(t).sample_waits.total_ns == info.sample_waits.total_ns);
    assert_true(rp_test_info_of(t).sample_waits.parked == 2);
    assert_int_equal(rp_test_info_of(t).sample_waits.longest_ns, 0);
    assert_int_equal(rp_test_info_of(t).insert_waits.parked, 0);
    assert_false(start_insert(&insert, t, 1, 3, RP_FOREVER));
    sleep_ms(1);
    rp_table_close(t);
    assert_true(rp_test_info_of(t).insert_waits.parked == 1);
    assert_in_range(rp_test_info_of(t).insert_waits.total_ns, 1 * MS, rp_now_ns() - before_ns);
    rp_samples_release(c[0].samples, 1);
}

static void info_says_where_the_limiter_stands(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("r", RP_FIFO, RP_FIFO, 100);
    rp_table_alteration change = {.which = RP_ALTER_LIMITER | RP_ALTER_RECENTER};
    o.limiter = rp_limiter_ratio(2.5, 2, 10);
    rp_table *t = rp_test_bed_table(&bed, &o);

    for (uint64_t key = 1; key <= 3; key++) put(t, key);
    (void)rp_test_draw(t);
    assert_true(rp_test_info_of(t).limiter_diff == 3 * 2.5 - 1);
    change.limiter = rp_limiter_ratio(1, 2, 50);
    assert_ok(rp_table_alter(t, &change, NULL));

    assert_true(rp_test_info_of(t).limiter_diff == 2); /* half-way between -48 and 52 */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(parked)
{
    const struct CMUnitTest tests[] = {
        TEST(operation_that_can_go_ahead_is_over_at_once),
        TEST(operation_with_bad_arguments_is_over_at_once),
        TEST(operation_that_may_wait_needs_an_on_done),
        TEST(waiting_sample_is_resumed_by_an_insert),
        TEST(waiting_insert_is_resumed_by_a_sample),
        TEST(waiting_insert_is_resumed_by_a_delete),
        TEST(waiting_calls_survive_a_reset),
        TEST(at_least_ends_a_sample_early),
        TEST(weights_of_a_sample_that_is_over_at_once_are_filled_in),
        TEST(weights_of_a_resumed_sample_are_those_of_the_whole_batch),
        TEST(weights_of_a_sample_that_ends_early_are_filled_in),
        TEST(partly_drawn_sample_that_lacks_memory_keeps_what_it_has_drawn),
        TEST(waiting_calls_are_served_in_order_of_arrival),
        TEST(both_queues_push_each_other_on),
        TEST(nobody_overtakes_a_queue_not_even_without_waiting),
        TEST(insert_without_waiting_does_not_overtake_either),
        TEST(withdrawn_operation_is_over_without_a_call),
        TEST(withdrawn_sample_keeps_what_it_has_drawn),
        TEST(operation_that_is_over_cannot_be_withdrawn),
        TEST(withdrawal_from_the_middle_keeps_the_line),
        TEST(those_behind_a_withdrawn_operation_go_on),
        TEST(expired_operations_end_with_what_they_have),
        TEST(expiry_lets_those_behind_go_on),
        TEST(close_ends_every_wait),
        TEST(close_ends_waiting_inserts),
        TEST(callback_may_start_other_operations),
        TEST(callbacks_that_end_other_operations_do_not_nest),
        TEST(operation_can_be_started_again_once_over),
        TEST(offered_references_are_taken_as_far_as_a_waiting_insert_got),
        TEST(waiting_calls_can_be_asked_what_they_wait_for),
        TEST(waiting_lists_no_more_than_there_is_room_for),
        TEST(info_says_how_long_calls_wait_and_have_waited),
        TEST(info_says_where_the_limiter_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
