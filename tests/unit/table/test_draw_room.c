/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that reserve room before they draw: never more than there is, and all of it is
 * returned. */
#include "chunk/trajectory.h"
#include "store/store.h"
#include "support/fixture.h"
#include "support/recorder.h"
#include "table/account.h"
#include "table/op.h"
#include "table/table.h"

enum { PAYLOAD = 1000, MOST = 1024 };

/* Room of a fixed size. */
typedef struct fake_room {
    rp_draw_room room; /* first */
    size_t limit, used, most_used;
    size_t most_asked; /* in one call of take() */
} fake_room;

typedef struct stage {
    rp_test_bed bed;
    rp_table *table;
    fake_room room;
    rp_sample_options options;
    rp_sample samples[MOST];
    rp_op op;
    int done;
} stage;

static size_t take(rp_draw_room *room, size_t least, size_t most)
{
    fake_room *f = (fake_room *)(void *)room;
    size_t got = f->limit - f->used < most ? f->limit - f->used : most;

    assert_true(least >= 1 && least <= most);
    if (most > f->most_asked) f->most_asked = most;
    if (got < least) return 0;
    f->used += got;
    if (f->used > f->most_used) f->most_used = f->used;
    return got;
}

static void give(rp_draw_room *room, size_t bytes)
{
    fake_room *f = (fake_room *)(void *)room;

    assert_true(bytes <= f->used);
    f->used -= bytes;
}

static size_t left(const rp_draw_room *room)
{
    const fake_room *f = (const fake_room *)(const void *)room;

    return f->limit - f->used;
}

static void on_done(rp_op *op)
{
    ((stage *)op->user)->done++;
}

static void open_stage(stage *s, size_t limit, int32_t max_times_sampled)
{
    rp_table_options options = rp_test_options("t", RP_FIFO, RP_FIFO, 1000);

    options.max_times_sampled = max_times_sampled;
    rp_test_bed_init(&s->bed, NULL);
    s->table = rp_test_bed_table(&s->bed, &options);
    s->room = (fake_room){.room = {.take = take, .give = give, .left = left}, .limit = limit};
    s->done = 0;
}

static void close_stage(stage *s)
{
    assert_int_equal(s->room.used, 0);
    assert_true(s->room.most_used <= s->room.limit);
    rp_test_bed_deinit(&s->bed);
}

static void put(stage *s, uint64_t key, size_t bytes)
{
    rp_trajectory *t = rp_test_blob_trajectory(&s->bed.alloc, key, 1, bytes);

    rp_test_put(s->table, key, 1.0, t);
    rp_trajectory_unref(t);
}

static bool draw(stage *s, size_t count, size_t at_least, bool distinct, bool waits)
{
    s->options =
        (rp_sample_options){.count = count, .at_least = at_least, .distinct = distinct};
    s->op = (rp_op){.options = &s->options,
                    .samples = s->samples,
                    .room = &s->room.room,
                    .until_ns = waits ? RP_FOREVER : RP_NOW,
                    .on_done = on_done,
                    .user = s};
    return rp_table_start_sample(s->table, &s->op);
}

/* What is held is what the samples cost; then all is given back. */
static void expect_drawn(stage *s, size_t least, size_t most)
{
    size_t bytes = 0;

    assert_int_equal(s->op.status, RP_OK);
    assert_in_range(s->op.done, least, most);
    for (size_t i = 0; i < s->op.done; i++)
        bytes += rp_trajectory_cost(s->samples[i].trajectory);
    assert_int_equal(s->op.held_bytes, bytes);
    assert_int_equal(s->room.used, bytes);
    rp_samples_release(s->samples, s->op.done);
    give(&s->room.room, s->op.held_bytes);
}

static void draws_within_the_budget_are_unchanged(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, 1 << 20, 0);
    for (uint64_t key = 1; key <= 5; key++) put(&s, key, PAYLOAD);
    assert_true(draw(&s, 20, 0, false, false));
    expect_drawn(&s, 20, 20);
    assert_true(draw(&s, 20, 0, true, false));
    expect_drawn(&s, 5, 5);
    close_stage(&s);
}

static void a_sample_ends_when_the_budget_is_used_up(void **state)
{
    stage s;

    (void)state;
    for (int32_t times = 0; times <= 1; times++)
        for (int distinct = 0; distinct <= 1; distinct++) {
            open_stage(&s, 12000, times);
            for (uint64_t key = 1; key <= 40; key++) put(&s, key, PAYLOAD);
            assert_true(draw(&s, 40, 0, distinct != 0, true));
            assert_int_equal(rp_test_info_of(s.table).samples, s.op.done);
            expect_drawn(&s, 3, 7);
            close_stage(&s);
        }
}

static void a_sample_over_the_budget_reports_the_lacking_bytes(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, 2000, 1);
    put(&s, 1, 5000);
    assert_true(draw(&s, 1, 0, false, true));
    assert_int_equal(s.op.status, RP_NO_RESOURCE);
    assert_in_range(s.op.lacked_bytes, 5000, 16383);
    assert_int_equal(s.op.held_bytes, 0);
    assert_int_equal(rp_test_info_of(s.table).size, 1);
    s.room.limit = s.op.lacked_bytes;
    assert_true(draw(&s, 1, 0, false, true));
    expect_drawn(&s, 1, 1);
    close_stage(&s);
}

static void a_waiting_sample_reserves_bytes_as_items_come(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, 12000, 1);
    assert_false(draw(&s, 40, 0, false, true));
    assert_int_equal(s.room.used, 0);
    put(&s, 1, PAYLOAD);
    put(&s, 2, PAYLOAD);
    assert_int_equal(s.done, 0);
    assert_in_range(s.room.used, 2 * PAYLOAD, 4 * PAYLOAD); /* what both cost */
    for (uint64_t key = 3; key <= 20; key++) put(&s, key, PAYLOAD);
    assert_int_equal(s.done, 1);
    assert_int_equal(rp_test_info_of(s.table).size, 20 - s.op.done);
    expect_drawn(&s, 3, 7);
    close_stage(&s);
}

static void a_withdrawn_sample_keeps_its_reserved_bytes(void **state)
{
    stage s;

    (void)state;
    open_stage(&s, 12000, 1);
    assert_false(draw(&s, 40, 0, false, true));
    put(&s, 1, PAYLOAD);
    assert_true(rp_op_withdraw(&s.op, RP_CANCELLED));
    expect_drawn(&s, 1, 1);
    close_stage(&s);
}

/* Many that wait and find no room do not end under one lock. */
static void samples_that_end_without_budget_count_as_work(void **state)
{
    enum { OPS = 5000 };
    rp_sample_options options = {.count = 1};
    rp_sample sample;
    static rp_op ops[OPS];
    stage s;

    (void)state;
    open_stage(&s, 100, 1);
    for (int i = 0; i < OPS; i++) {
        ops[i] = (rp_op){.options = &options,
                         .samples = &sample,
                         .room = &s.room.room,
                         .until_ns = RP_FOREVER,
                         .on_done = on_done,
                         .user = &s};
        assert_false(rp_table_start_sample(s.table, &ops[i]));
    }
    put(&s, 1, PAYLOAD);
    assert_int_equal(s.done, OPS);
    assert_int_equal(rp_test_info_of(s.table).size, 1);
    close_stage(&s);
}

/* Items leave with a distinct batch, so it has no more than may leave under one lock. */
static void a_distinct_batch_that_empties_a_table_is_bounded(void **state)
{
    enum { ITEMS = 20000 };
    rp_table_options options = rp_test_options("t", RP_UNIFORM, RP_FIFO, ITEMS);
    static rp_sample samples[ITEMS];
    const rp_sample_options all = {.count = ITEMS, .distinct = true};
    rp_trajectory *t;
    rp_table *table;
    rp_test_bed bed;
    size_t drawn;

    (void)state;
    options.max_times_sampled = 1;
    rp_test_bed_init(&bed, NULL);
    table = rp_test_bed_table(&bed, &options);
    t = rp_test_blob_trajectory(&bed.alloc, 1, 1, 10);
    for (uint64_t key = 1; key <= ITEMS; key++) rp_test_put(table, key, 1.0, t);
    rp_trajectory_unref(t);
    assert_ok(rp_table_sample(table, &all, samples, &drawn, rp_wait_none(), NULL));
    assert_int_equal(drawn, RP_BLOCK_CHUNKS);
    rp_samples_release(samples, drawn);
    assert_ok(rp_table_sample(table, &all, samples, &drawn, rp_wait_none(), NULL));
    assert_int_equal(drawn, ITEMS - RP_BLOCK_CHUNKS);
    rp_samples_release(samples, drawn);
    rp_test_bed_deinit(&bed);
}

/* Of the items that are there. */
static void the_largest_chunk_count_of_an_item_is_known(void **state)
{
    rp_trajectory *items[5];
    rp_test_bed bed;
    rp_account a;
    rp_budget *b;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    b = rp_budget_new(&bed.alloc, 0, RP_BUDGET_EVICT);
    rp_account_init(&a, b, 1, &bed.alloc, 1);
    assert_ok(rp_account_reserve(&a, 100));
    assert_int_equal(rp_account_most_chunks(&a), 0);
    for (size_t i = 0; i < 5; i++) {
        items[i] = rp_test_blob_trajectory(&bed.alloc, i + 1, 1, 10);
        rp_account_add(&a, items[i]);
    }
    for (size_t gone = 0; gone < 5; gone++) {
        assert_int_equal(rp_account_most_chunks(&a), 1);
        rp_account_remove(&a, items[gone]);
        rp_trajectory_unref(items[gone]);
    }
    assert_int_equal(rp_account_most_chunks(&a), 0);
    rp_account_settle(&a, 0);
    rp_account_deinit(&a);
    rp_budget_unref(b);
    rp_test_bed_deinit(&bed);
}

/* Items count by what they cost: a large one that is not drawn makes no batch smaller. */
static void a_large_item_does_not_make_batches_smaller(void **state)
{
    static const size_t large[] = {1 << 20, 33 << 20};
    enum { ITEMS = 900, WANTED = 500 };
    stage s;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int32_t times = 0; times <= 1; times++)
            for (int distinct = 0; distinct <= 1; distinct++) {
                if (!rp_test_chosen((size_t)(i + times + distinct), 2)) continue;
                open_stage(&s, 4 << 20, times); /* fifo: the large one comes last */
                for (uint64_t key = 1; key <= ITEMS; key++) put(&s, key, PAYLOAD);
                put(&s, ITEMS + 1, large[i]);
                assert_true(draw(&s, WANTED, WANTED, distinct != 0, false));
                expect_drawn(&s, WANTED, WANTED);
                close_stage(&s);
            }
}

/* It is drawn before an item for which there is no room, not instead of it. */
static void a_batch_ends_before_the_item_over_the_budget(void **state)
{
    stage s;

    (void)state;
    for (int32_t times = 0; times <= 1; times++) {
        open_stage(&s, 100000, times);
        for (uint64_t key = 1; key <= 40; key++) put(&s, key, key == 30 ? 200000 : PAYLOAD);
        assert_true(draw(&s, 40, 40, true, false));
        assert_in_range(s.op.lacked_bytes, 200000, 201000);
        expect_drawn(&s, 29, 29);
        close_stage(&s);
    }
}

/* A seeded table of items of many sizes; some have a priority of 0. */
static void open_seeded(stage *s, rp_selector_kind sampler)
{
    rp_table_options options = rp_test_options("t", sampler, RP_FIFO, 1000);

    options.seed = 7;
    rp_test_bed_init(&s->bed, NULL);
    s->table = rp_test_bed_table(&s->bed, &options);
    s->room = (fake_room){.room = {.take = take, .give = give, .left = left}, .limit = 20000};
    s->done = 0;
    for (uint64_t key = 1; key <= 200; key++) {
        size_t bytes = key % 10 == 0 ? 30000 : key * 20;
        rp_trajectory *t = rp_test_blob_trajectory(&s->bed.alloc, key, 1, bytes);

        rp_test_put(s->table, key, key % 3 == 0 ? 0 : (double)(key * 7 % 50), t);
        rp_trajectory_unref(t);
    }
}

static size_t cost_of_drawn(const stage *s)
{
    size_t bytes = 0;

    for (size_t i = 0; i < s->op.done; i++)
        bytes += rp_trajectory_cost(s->samples[i].trajectory);
    return bytes;
}

/* Draws from `cut` as far as there is room, and then as many from `whole`, where there is room
 * for all: what was picked without room leaves no trace. */
static void expect_alike(stage *cut, stage *whole, size_t count, bool distinct)
{
    size_t limit = cut->room.limit;

    (void)draw(cut, count, 1, distinct, false);
    if (cut->op.done == 0) { /* with room for the first one it is drawn */
        assert_int_equal(cut->op.status, RP_NO_RESOURCE);
        cut->room.limit = cut->op.lacked_bytes;
        (void)draw(cut, 1, 1, distinct, false);
        cut->room.limit = limit;
    }
    assert_true(cut->op.done > 0);
    assert_int_equal(cut->op.held_bytes, cost_of_drawn(cut));
    (void)draw(whole, cut->op.done, 1, distinct, false);
    assert_int_equal(whole->op.done, cut->op.done);
    for (size_t i = 0; i < cut->op.done; i++) {
        assert_int_equal(cut->samples[i].key, whole->samples[i].key);
        assert_true(cut->samples[i].probability == whole->samples[i].probability);
    }
    rp_samples_release(cut->samples, cut->op.done);
    give(&cut->room.room, cut->op.held_bytes);
    rp_samples_release(whole->samples, whole->op.done);
    give(&whole->room.room, whole->op.held_bytes);
}

static void items_picked_over_the_budget_leave_no_trace(void **state)
{
    static const rp_selector_kind kinds[] = {RP_FIFO, RP_LIFO, RP_UNIFORM, RP_PRIORITIZED,
                                             RP_MAX_HEAP};
    stage cut, whole;

    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        open_seeded(&cut, kinds[kind]);
        open_seeded(&whole, kinds[kind]);
        whole.room.limit = 1 << 30;
        for (size_t i = 1; i <= 200; i++) {
            cut.room.limit = i % 7 == 0 ? 400000 : 20000; /* some have nearly all */
            expect_alike(&cut, &whole, i, true);
            expect_alike(&cut, &whole, i, false);
        }
        assert_true(rp_table_check(cut.table));
        cut.room.limit = 1 << 30;
        close_stage(&cut);
        close_stage(&whole);
    }
}

/* Items are weighed when they are picked: what was asked of the room tells how many were. */
static void no_more_items_are_picked_than_the_budget_could_hold(void **state)
{
    static const size_t limits[] = {0, 1, 2000, 12000};
    enum { ITEMS = 900 };
    rp_table_options options = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, ITEMS);
    size_t each;
    stage s;

    (void)state;
    open_stage(&s, 0, 0);
    options.name = "many";
    s.table = rp_test_bed_table(&s.bed, &options);
    for (uint64_t key = 1; key <= ITEMS; key++) put(&s, key, PAYLOAD);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int distinct = 0; distinct <= 1; distinct++) {
            s.room.limit = limits[i];
            s.room.most_asked = 0;
            assert_true(draw(&s, ITEMS, 1, distinct != 0, false));
            if (s.op.done > 0) expect_drawn(&s, 1, 7);
            each = s.op.lacked_bytes; /* all items cost as much */
            assert_in_range(each, PAYLOAD, 2 * PAYLOAD);
            assert_in_range(s.room.most_asked, each,
                            each * (limits[i] / RP_ITEM_FIXED_BYTES + 1));
        }
    assert_true(rp_table_check(s.table));
    close_stage(&s);
}

/* A batch is one change, however little room the largest item leaves. */
static void a_batch_is_one_log_record(void **state)
{
    rp_test_recorder recorder;
    stage s;

    (void)state;
    open_stage(&s, 4 << 20, 0);
    for (uint64_t key = 1; key <= 900; key++) put(&s, key, PAYLOAD);
    put(&s, 901, 3 << 20);
    rp_test_recorder_init(&recorder, &s.bed.plain, 1);
    rp_store_set_log(s.bed.store, &recorder.log);
    assert_true(draw(&s, 512, 512, false, false));
    assert_int_equal(recorder.count, 1);
    assert_int_equal(recorder.told[0].change.count, 512);
    expect_drawn(&s, 512, 512);
    rp_store_set_log(s.bed.store, NULL);
    rp_test_recorder_deinit(&recorder);
    close_stage(&s);
}

RP_TESTS(draw_room)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_within_the_budget_are_unchanged),
        cmocka_unit_test(a_sample_ends_when_the_budget_is_used_up),
        cmocka_unit_test(a_sample_over_the_budget_reports_the_lacking_bytes),
        cmocka_unit_test(a_waiting_sample_reserves_bytes_as_items_come),
        cmocka_unit_test(a_withdrawn_sample_keeps_its_reserved_bytes),
        cmocka_unit_test(samples_that_end_without_budget_count_as_work),
        cmocka_unit_test(a_distinct_batch_that_empties_a_table_is_bounded),
        cmocka_unit_test(the_largest_chunk_count_of_an_item_is_known),
        cmocka_unit_test(a_large_item_does_not_make_batches_smaller),
        cmocka_unit_test(a_batch_ends_before_the_item_over_the_budget),
        cmocka_unit_test(items_picked_over_the_budget_leave_no_trace),
        cmocka_unit_test(no_more_items_are_picked_than_the_budget_could_hold),
        cmocka_unit_test(a_batch_is_one_log_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
