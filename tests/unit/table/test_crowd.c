/* SPDX-License-Identifier: Apache-2.0 */
/* Many operations that wait at one table and end together. A few: test_parked.c. */
#include "support/fixture.h"
#include "table/op.h"

/* An operation with all it points at, and what became of it. */
typedef struct call {
    rp_op op;
    rp_sample_options options;
    rp_sample samples[2];
    int calls;   /* of on_done */
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

static rp_table *make_queue(void)
{
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);

    o.limiter = rp_limiter_queue(10);
    return rp_test_bed_table(&bed, &o);
}

static void count_call(rp_op *op)
{
    call *c = op->user;

    c->calls++;
    c->turn = ++turns;
}

/* Starts a sample that has to wait. */
static void start(call *c, rp_table *t, rp_sample_options options, void (*on_done)(rp_op *op))
{
    memset(c, 0, sizeof *c);
    c->options = options;
    c->op = (rp_op){.options = &c->options,
                    .samples = c->samples,
                    .until_ns = RP_FOREVER,
                    .on_done = on_done,
                    .user = c};
    assert_false(rp_table_start_sample(t, &c->op));
}

static void expect_cancelled(const call *c)
{
    assert_int_equal(c->calls, 1);
    assert_int_equal(c->op.status, RP_CANCELLED);
    assert_int_equal(c->op.done, 0);
}

enum { CROWD = 1300 };

static rp_table *crowded;    /* the table of the crowd */
static int64_t seen_waiting; /* when an owner looked last */
static size_t looks;         /* that saw fewer waiting than the one before */

/* The owner uses the table between the ends of others. */
static void look_when_done(rp_op *op)
{
    rp_table_info info = rp_test_info_of(crowded);
    int64_t waiting = info.waiting_samples + info.waiting_inserts;

    count_call(op);
    assert_true(waiting <= seen_waiting);
    looks += waiting < seen_waiting;
    seen_waiting = waiting;
}

static call *start_crowd(rp_table *t)
{
    call *c = calloc(CROWD, sizeof *c);

    assert_non_null(c);
    for (size_t i = 0; i < CROWD; i++)
        start(&c[i], t, (rp_sample_options){.count = 1}, look_when_done);
    crowded = t;
    seen_waiting = CROWD;
    looks = 0;
    return c;
}

static void expect_crowd_ended(call *c, const char *text)
{
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(c[i].turn, i + 1); /* in their order */
        assert_non_null(strstr(c[i].op.error.text, text));
        expect_cancelled(&c[i]);
    }
    assert_int_equal(seen_waiting, 0);
    assert_int_equal(looks, (CROWD + 255) / 256); /* 256 under one lock */
    free(c);
}

static void closing_ends_many_waiting_operations_in_pieces(void **state)
{
    (void)state;
    rp_table *t = make_queue();
    call *c = start_crowd(t);

    rp_table_close(t);

    expect_crowd_ended(c, "table 'q' was closed: sample waits for inserts");
}

static void dropping_ends_many_waiting_operations_in_pieces(void **state)
{
    (void)state;
    rp_table *t = rp_table_ref(make_queue());
    call *c = start_crowd(t);

    assert_ok_err(rp_store_drop_table(bed.store, (rp_string){"q", 1}, &bed.err), &bed.err);

    expect_crowd_ended(c, "table 'q' was dropped: sample waits for inserts");
    rp_table_unref(t);
}

/* Behind those that are ended first is one that could go on, and must not. */
static void no_operation_continues_in_a_table_being_closed(void **state)
{
    (void)state;
    enum { PIECE = 256 };
    rp_table *t = make_queue();
    call *c = calloc(PIECE + 1, sizeof *c), *last = &c[PIECE];
    assert_non_null(c);
    for (uint64_t key = 0; key < 3; key++) rp_test_put(t, key, 1, bed.plain);
    for (int i = 0; i < 2; i++) (void)rp_test_draw(t); /* the limiter allows one more */
    for (size_t i = 0; i < PIECE; i++)                 /* two at once */
        start(&c[i], t, (rp_sample_options){.count = 2, .at_least = 2, .distinct = true},
              count_call);
    start(last, t, (rp_sample_options){.count = 1}, count_call);

    rp_table_close(t);

    for (size_t i = 0; i <= PIECE; i++) expect_cancelled(&c[i]);
    assert_int_equal(rp_test_info_of(t).samples, 2);
    free(c);
}

static void an_ended_operation_knows_its_place_in_the_queue(void **state)
{
    (void)state;
    rp_table *t = make_queue();
    call *c = start_crowd(t);
    rp_waiting *out = calloc(CROWD, sizeof *out);
    assert_non_null(out);

    assert_int_equal(rp_table_waiting(t, out, CROWD), CROWD);
    assert_non_null(strstr(out[CROWD - 1].why, "1299 others wait ahead; sample waits"));
    assert_true(rp_op_withdraw(&c[CROWD - 1].op, RP_DEADLINE));
    assert_non_null(strstr(c[CROWD - 1].op.error.text, ": 1299 others wait ahead; sample"));
    assert_true(rp_op_withdraw(&c[0].op, RP_DEADLINE)); /* the first leaves no gap */
    assert_true(rp_op_withdraw(&c[CROWD - 2].op, RP_DEADLINE));
    assert_non_null(strstr(c[CROWD - 2].op.error.text, ": 1297 others wait ahead; sample"));

    assert_true(rp_op_withdraw(&c[10].op, RP_DEADLINE)); /* from the middle: a gap */
    assert_true(rp_op_withdraw(&c[100].op, RP_DEADLINE));
    assert_non_null(strstr(c[100].op.error.text, ": at most 99 others wait ahead; sample"));
    for (size_t i = 2; i < CROWD - 3; i++) /* fewer are left than the numbers say */
        if (c[i].op.parked) assert_true(rp_op_withdraw(&c[i].op, RP_DEADLINE));
    assert_true(rp_op_withdraw(&c[CROWD - 3].op, RP_DEADLINE));
    assert_non_null(
        strstr(c[CROWD - 3].op.error.text, ": at most 1 other waits ahead; sample"));
    assert_true(rp_op_withdraw(&c[1].op, RP_DEADLINE));
    assert_null(strstr(c[1].op.error.text, "ahead"));
    free(out);
    free(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(crowd)
{
    const struct CMUnitTest tests[] = {
        TEST(closing_ends_many_waiting_operations_in_pieces),
        TEST(dropping_ends_many_waiting_operations_in_pieces),
        TEST(no_operation_continues_in_a_table_being_closed),
        TEST(an_ended_operation_knows_its_place_in_the_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
