/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of tables, calls by key, calls for the whole table. Inserts: test_operation.c.
 * Samples: test_operation_sample.c. */
#include <float.h>
#include <math.h>

#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"

enum { MANY = 5000 };

static rp_test_bed bed;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_table *make(rp_selector_kind sampler, rp_selector_kind remover, int64_t max_size)
{
    rp_table_options o = rp_test_options("t", sampler, remover, max_size);
    return rp_test_bed_table(&bed, &o);
}

static void put(rp_table *t, uint64_t key, double priority)
{
    rp_test_put(t, key, priority, bed.plain);
}

static void expect_refused(const rp_table_options *o, const char *part)
{
    rp_table *t = NULL;
    rp_error err = {0};

    assert_fails(rp_store_add_table(bed.store, o, &t, &err), RP_INVALID, &err, part);
    assert_null(t);
    assert_int_equal(rp_store_tables(bed.store, NULL, 0), 0);
}

static void option_out_of_range_is_refused_with_its_sentence(void **state)
{
    (void)state;
    const rp_table_options good = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    char long_name[300];
    rp_table_options o = good;
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';

    o.name = NULL;
    expect_refused(&o, "must have a name");
    o.name = "";
    expect_refused(&o, "must have a name");
    o.name = long_name;
    expect_refused(&o, "299 bytes is over 255");
    o = good, o.max_size = 0;
    expect_refused(&o, "table 't': max_size must be in 1 .. 2^30, got 0");
    o.max_size = ((int64_t)1 << 30) + 1;
    expect_refused(&o, "got 1073741825");
    o.max_size = INT64_MIN;
    expect_refused(&o, "max_size");
    o = good, o.max_times_sampled = -1;
    expect_refused(&o, "max_times_sampled must be >= 0, got -1");
    o = good, o.limiter = (rp_limiter_options){0};
    expect_refused(&o, "table 't': limiter is not set: use rp_limiter_min_size(1)");
    o.limiter = rp_limiter_queue(0);
    expect_refused(&o, "both wait for ever");
    o = good, o.soft_limit = true, o.limiter = rp_limiter_queue(5);
    expect_refused(&o, "soft limit inserts never wait, but the limiter's max_diff is 5");
    o = good, o.sampler.kind = (rp_selector_kind)17;
    expect_refused(&o,
                   "table 't': sampler: there is no kind 17; the kinds are fifo (0), lifo (1), "
                   "uniform (2), prioritized (3), min_heap (4) and max_heap (5)");
    o = good, o.remover = (rp_selector_options){RP_PRIORITIZED, NAN};
    expect_refused(&o, "table 't': remover: exponent must be in -100 .. 100, got nan");
}

static void extension_that_does_nothing_is_refused(void **state)
{
    (void)state;
    rp_extension none = {.name = "none"};
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    o.extensions = &none;
    o.extension_count = 1;

    expect_refused(&o, "has no on_events");
    o.extensions = NULL;
    expect_refused(&o, "extension_count is 1, but extensions is NULL");
}

static void options_on_their_edges_are_accepted(void **state)
{
    (void)state;
    char name[256] = {0};
    rp_table_options o = rp_test_options(name, RP_FIFO, RP_FIFO, (int64_t)1 << 30);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';

    rp_table *t = rp_test_bed_table(&bed, &o);
    o = rp_test_options("one", RP_PRIORITIZED, RP_PRIORITIZED, 1);
    o.max_times_sampled = INT32_MAX;
    (void)rp_test_bed_table(&bed, &o);
    put(t, 1, 1);

    assert_string_equal(rp_table_name(t), name);
    assert_true(rp_table_check(t));
}

static void info_shows_the_options_of_the_table(void **state)
{
    (void)state;
    rp_spec column = {"x", RP_UINT8, {.rank = 2, .dims = {-1, 16}}};
    rp_signature *signature = NULL;
    rp_table_options o = rp_test_options("shown", RP_PRIORITIZED, RP_MAX_HEAP, 12);
    char name[] = "shown";
    o.name = name;
    o.sampler.exponent = 0.6;
    o.limiter = rp_limiter_ratio(2, 3, 10);
    o.max_bytes = 12345;
    o.max_times_sampled = 4;
    assert_ok(rp_signature_flat(&bed.alloc, &column, 1, &signature, NULL));
    o.signature = signature;

    rp_table *t = rp_test_bed_table(&bed, &o);
    rp_signature_unref(signature); /* the table has a reference of its own */
    name[0] = 'X';                 /* and a copy */
    rp_table_info info = rp_test_info_of(t);

    assert_string_equal(info.name, "shown");
    assert_true(info.sampler.kind == RP_PRIORITIZED && info.sampler.exponent == 0.6);
    assert_int_equal(info.remover.kind, RP_MAX_HEAP);
    assert_memory_equal(&info.limiter, &o.limiter, sizeof o.limiter);
    assert_true(info.max_size == 12 && info.max_bytes == 12345 && info.max_times_sampled == 4);
    assert_true(!info.soft_limit && !info.closed && info.signature == signature);
    assert_true(info.size == 0 && info.bytes == 0 && info.inserts == 0 &&
                info.max_priority == 1);
}

static void the_weight_of_a_table_is_that_of_its_sampler(void **state)
{
    rp_table_options o = rp_test_options("weighed", RP_PRIORITIZED, RP_FIFO, 4);
    rp_table *t, *plain = make(RP_MIN_HEAP, RP_FIFO, 10);
    rp_update update = {1, 0};

    (void)state;
    o.sampler.exponent = 2;
    t = rp_test_bed_table(&bed, &o);
    assert_true(rp_test_info_of(t).total_weight == 0);
    for (uint64_t i = 0; i < 4; i++) {
        put(t, i, (double)i + 1);
        put(plain, i, (double)i + 1);
    }
    assert_true(rp_test_info_of(t).total_weight == 1 + 4 + 9 + 16);
    assert_true(rp_test_info_of(plain).total_weight == 4);
    assert_ok(rp_table_update(t, &update, 1, NULL, NULL));
    assert_true(rp_test_info_of(t).total_weight == 1 + 9 + 16);
    put(t, 9, 3); /* the first goes */
    assert_true(rp_test_info_of(t).total_weight == 9 + 16 + 9);
    assert_ok(rp_table_reset(t, NULL));
    assert_true(rp_test_info_of(t).total_weight == 0);
}

static void update_sets_known_keys_and_counts_them(void **state)
{
    (void)state;
    rp_table *t = make(RP_MAX_HEAP, RP_FIFO, 10);
    rp_update updates[] = {{1, 5}, {99, 7}, {2, 6}, {1, 1}};
    size_t found = 77;
    for (uint64_t key = 1; key <= 3; key++) put(t, key, 2);

    assert_ok(rp_table_update(t, updates, 4, &found, NULL));

    assert_int_equal(found, 3); /* a repeated key counts each time */
    assert_int_equal(rp_test_info_of(t).updates, 3);
    assert_int_equal(rp_test_draw(t).key, 2);
    assert_ok(rp_table_update(t, updates, 4, NULL, NULL));
    assert_ok(rp_table_update(t, NULL, 0, &found, NULL));
    assert_int_equal(found, 0);
}

static void last_of_repeated_updates_wins(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 10);
    rp_update updates[] = {{1, 5}, {1, 0}, {2, 0}, {2, 3}};
    put(t, 1, 1);
    put(t, 2, 1);

    assert_ok(rp_table_update(t, updates, 4, NULL, NULL));

    for (int i = 0; i < 50; i++) assert_int_equal(rp_test_draw(t).key, 2);
    assert_true(rp_test_draw(t).probability == 1);
    assert_true(rp_table_check(t));
}

static void update_does_not_touch_the_rest_of_an_item(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_sample before, after;
    uint64_t key = 4;
    put(t, key, 1);
    (void)rp_test_draw(t);
    assert_ok(rp_table_peek(t, &key, 1, &before, NULL, NULL));
    bed.wall_ns += 1000;

    assert_ok(rp_table_update(t, &(rp_update){key, 9}, 1, NULL, NULL));

    assert_ok(rp_table_peek(t, &key, 1, &after, NULL, NULL));
    assert_true(after.priority == 9 && before.priority == 1);
    assert_int_equal(after.times_sampled, 1);
    assert_int_equal(after.inserted_at_ns, before.inserted_at_ns);
    rp_samples_release(&before, 1);
    rp_samples_release(&after, 1);
}

static void large_update_goes_through_in_one_call(void **state)
{
    (void)state;
    rp_table *t = make(RP_MIN_HEAP, RP_PRIORITIZED, MANY);
    rp_update *updates = calloc(MANY, sizeof *updates);
    size_t found;
    assert_non_null(updates);
    for (uint64_t i = 0; i < MANY; i++) {
        put(t, i, 1);
        updates[i] = (rp_update){MANY - 1 - i, 2 + (double)i};
    }

    assert_ok(rp_table_update(t, updates, MANY, &found, NULL));

    assert_int_equal(found, MANY);
    assert_int_equal(rp_test_draw(t).key, MANY - 1);
    assert_true(rp_test_info_of(t).max_priority == MANY + 1);
    assert_true(rp_table_check(t));
    free(updates);
}

static void bad_priority_anywhere_in_an_update_changes_nothing(void **state)
{
    (void)state;
    static const double bad[] = {NAN, -1, INFINITY, -INFINITY, DBL_MAX, -0x1p-1074};
    rp_table *t = make(RP_PRIORITIZED, RP_FIFO, 1000);
    rp_update updates[600];
    rp_table_info before;
    size_t found = 9;
    for (uint64_t i = 0; i < 600; i++) {
        put(t, i, 1);
        updates[i] = (rp_update){i, 2};
    }
    before = rp_test_info_of(t);

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        updates[599].priority = bad[i];
        assert_fails(rp_table_update(t, updates, 600, &found, &bed.err), RP_INVALID, &bed.err,
                     "table 't': key 599: priority");
        assert_int_equal(found, 0);
        assert_unchanged(t, &before);
        assert_true(rp_test_draw(t).probability == 1 / 600.0);
        before = rp_test_info_of(t);
    }
}

static void delete_takes_known_keys_and_counts_them(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_FIFO, 10);
    uint64_t keys[] = {1, 50, 3, 1, 1};
    size_t found = 0;
    for (uint64_t key = 1; key <= 4; key++) put(t, key, 1);

    assert_ok(rp_table_delete(t, keys, 5, &found, NULL));

    assert_int_equal(found, 2); /* repeated: gone the second time */
    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 2 && info.deletes == 2 && info.evictions == 0 &&
                info.inserts == 4);
    assert_false(rp_test_has_key(t, 1));
    assert_true(rp_test_has_key(t, 2));
    assert_ok(rp_table_delete(t, keys, 5, NULL, NULL));
    assert_ok(rp_table_delete(t, NULL, 0, &found, NULL));
    assert_int_equal(found, 0);
    assert_true(rp_table_check(t));
}

static void key_may_come_back_after_its_deletion(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    uint64_t key = 5;
    put(t, key, 1);
    (void)rp_test_draw(t);
    assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));

    put(t, key, 3);

    rp_sample s = rp_test_draw(t);
    assert_true(s.key == 5 && s.priority == 3 && s.times_sampled == 1);
    assert_int_equal(rp_test_info_of(t).inserts, 2);
}

static void large_delete_goes_through_in_one_call(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, RP_LIFO, MANY);
    uint64_t *keys = calloc(MANY, sizeof *keys);
    size_t found;
    assert_non_null(keys);
    for (uint64_t i = 0; i < MANY; i++) {
        put(t, i, (double)(i % 3));
        keys[i] = i * 2;
    }

    assert_ok(rp_table_delete(t, keys, MANY, &found, NULL));

    assert_int_equal(found, MANY / 2);
    assert_int_equal(rp_test_info_of(t).size, MANY / 2);
    assert_true(rp_table_check(t));
    free(keys);
}

static void peek_shows_items_and_counts_nothing(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, RP_FIFO, 10);
    uint64_t keys[] = {8, 2, 2, 1};
    rp_sample out[4];
    size_t found = 0;
    bed.wall_ns = 5000;
    put(t, 1, 0.5);
    bed.wall_ns = 6000;
    put(t, 2, 4);
    rp_table_info before = rp_test_info_of(t);

    assert_ok(rp_table_peek(t, keys, 4, out, &found, NULL));

    assert_int_equal(found, 3);
    assert_unchanged(t, &before);
    assert_true(out[0].trajectory == NULL && out[0].key == 8);
    assert_true(out[1].key == 2 && out[1].priority == 4 && out[1].inserted_at_ns == 6000);
    assert_true(out[3].key == 1 && out[3].priority == 0.5 && out[3].inserted_at_ns == 5000);
    for (size_t i = 1; i < 4; i++) {
        assert_ptr_equal(out[i].trajectory, bed.plain);
        assert_true(out[i].probability == 0 && out[i].weight == 0 && out[i].table_size == 2);
        assert_int_equal(out[i].times_sampled, 0);
    }
    rp_samples_release(out, 4);
    for (size_t i = 0; i < 4; i++) assert_null(out[i].trajectory);
    rp_samples_release(out, 4); /* again is fine */
}

static void large_peek_finds_all(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, MANY);
    uint64_t *keys = calloc(MANY, sizeof *keys);
    rp_sample *out = calloc(MANY, sizeof *out);
    size_t found;
    assert_true(keys != NULL && out != NULL);
    for (uint64_t i = 0; i < MANY; i++) put(t, keys[i] = i, (double)i);

    assert_ok(rp_table_peek(t, keys, MANY, out, &found, NULL));

    assert_int_equal(found, MANY);
    for (size_t i = 0; i < MANY; i++) assert_true(out[i].priority == (double)i);
    rp_samples_release(out, MANY);
    free(keys);
    free(out);
}

static void reset_starts_from_nothing(void **state)
{
    (void)state;
    rp_table *t = make(RP_MIN_HEAP, RP_FIFO, 4);
    for (uint64_t key = 0; key < 9; key++) put(t, key, 5);
    (void)rp_test_draw(t);
    assert_ok(rp_table_update(t, &(rp_update){8, 50}, 1, NULL, NULL));

    assert_ok(rp_table_reset(t, NULL));

    rp_table_info info = rp_test_info_of(t);
    assert_true(info.size == 0 && info.bytes == 0 && info.episodes == 0);
    assert_true(info.inserts == 0 && info.samples == 0 && info.deletes == 0);
    assert_true(info.updates == 0 && info.evictions == 0 && info.unique_samples == 0);
    assert_true(info.deleted_episodes == 0 && info.max_priority == 1);
    assert_true(rp_table_check(t));
    assert_false(rp_table_can_sample(t, 1));
    for (uint64_t key = 0; key < 9; key++) assert_false(rp_test_has_key(t, key));
    put(t, 3, 1);
    assert_int_equal(rp_test_draw(t).key, 3);
    assert_ok(rp_table_reset(t, NULL));
    assert_ok(rp_table_reset(t, NULL));
}

static void soft_limit_lets_the_table_grow_until_it_is_trimmed(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("soft", RP_FIFO, RP_FIFO, 10);
    size_t removed = 0;
    o.soft_limit = true;
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 0; key < 1000; key++) put(t, key, 1);
    assert_int_equal(rp_test_info_of(t).size, 1000);
    assert_int_equal(rp_test_info_of(t).evictions, 0);
    assert_true(rp_table_check(t));

    assert_ok(rp_table_trim(t, &removed, NULL));

    assert_int_equal(removed, 990);
    assert_int_equal(rp_test_info_of(t).size, 10);
    assert_int_equal(rp_test_info_of(t).evictions, 990);
    assert_true(rp_test_has_key(t, 990) && !rp_test_has_key(t, 989)); /* the remover chose */
    assert_ok(rp_table_trim(t, &removed, NULL));
    assert_int_equal(removed, 0);
    assert_ok(rp_table_trim(t, NULL, NULL));
}

static void soft_table_doubles_however_far_it_is_over_its_limit(void **state)
{
    (void)state;
    enum { AT_ONCE = 256, ITEMS = 800 * AT_ONCE };
    rp_table_options o = rp_test_options("soft", RP_FIFO, RP_FIFO, 1);
    rp_insert items[AT_ONCE];
    size_t removed = 0;
    o.soft_limit = true;
    rp_table *t = rp_test_bed_table(&bed, &o);

    for (uint64_t key = 0; key < ITEMS; key += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++)
            items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = bed.plain};
        assert_ok(rp_table_insert(t, items, AT_ONCE, rp_wait_none(), NULL, NULL));
    }

    assert_int_equal(rp_test_info_of(t).size, ITEMS);
    assert_true(t->slots.slab_count <= 12); /* of RP_MAX_SLABS: 2^10 blocks of 256, and two */
    assert_ok(rp_table_trim(t, &removed, NULL));
    assert_int_equal(removed, ITEMS - 1);
    assert_int_equal(rp_test_info_of(t).size, 1);
    assert_true(rp_test_has_key(t, ITEMS - 1));
    assert_true(rp_table_check(t));
}

static void trimming_a_hard_table_does_nothing(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 3);
    size_t removed = 7;
    for (uint64_t key = 0; key < 9; key++) put(t, key, 1);

    assert_ok(rp_table_trim(t, &removed, NULL));

    assert_int_equal(removed, 0);
    assert_int_equal(rp_test_info_of(t).size, 3);
}

static void closed_table_refuses_everything_and_keeps_its_items(void **state)
{
    (void)state;
    rp_table *t = make(RP_FIFO, RP_FIFO, 10);
    rp_insert item = {.key = 2, .priority = 1, .trajectory = bed.plain};
    rp_sample_options one = {.count = 1};
    rp_update update = {1, 2};
    rp_sample sample;
    uint64_t key = 1;
    size_t n;
    put(t, 1, 1);

    rp_table_close(t);
    rp_table_close(t); /* again is fine */

    assert_fails(rp_table_insert(t, &item, 1, rp_wait_none(), &n, &bed.err), RP_CANCELLED,
                 &bed.err, "table 't' is closed");
    assert_int_equal(n, 0);
    assert_fails(rp_table_insert(t, &item, 1, rp_wait_forever(), &n, &bed.err), RP_CANCELLED,
                 &bed.err, "closed");
    assert_fails(rp_table_sample(t, &one, &sample, &n, rp_wait_forever(), &bed.err),
                 RP_CANCELLED, &bed.err, "closed");
    assert_fails(rp_table_update(t, &update, 1, &n, &bed.err), RP_CANCELLED, &bed.err,
                 "closed");
    assert_fails(rp_table_delete(t, &key, 1, &n, &bed.err), RP_CANCELLED, &bed.err, "closed");
    assert_fails(rp_table_peek(t, &key, 1, &sample, &n, &bed.err), RP_CANCELLED, &bed.err,
                 "closed");
    assert_fails(rp_table_trim(t, &n, &bed.err), RP_CANCELLED, &bed.err, "closed");
    assert_fails(rp_table_reset(t, &bed.err), RP_CANCELLED, &bed.err, "closed");
    assert_true(rp_test_info_of(t).closed);
    assert_int_equal(rp_test_info_of(t).size, 1);
    assert_true(rp_table_check(t));
}

static void can_insert_and_can_sample_ask_the_limiter_alone(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 2); /* smaller than the queue */
    o.limiter = rp_limiter_queue(3);
    rp_table *t = rp_test_bed_table(&bed, &o);

    assert_true(rp_table_can_insert(t, 3));
    assert_false(rp_table_can_insert(t, 4));
    assert_false(rp_table_can_sample(t, 1));
    assert_false(rp_table_can_insert(t, 0));
    assert_false(rp_table_can_sample(t, 0));
    assert_false(rp_table_can_insert(t, -1));
    put(t, 1, 1);
    put(t, 2, 1);
    assert_true(rp_table_can_sample(t, 2));
    assert_false(rp_table_can_sample(t, 3));
    assert_true(rp_table_can_insert(t, 1));
}

static void can_insert_and_can_sample_take_any_count(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(3);
    rp_table *t = make(RP_FIFO, RP_FIFO, 10), *q = rp_test_bed_table(&bed, &o);
    put(t, 1, 1);
    put(q, 1, 1);

    assert_true(rp_table_can_insert(t, INT64_MAX));
    assert_true(rp_table_can_sample(t, INT64_MAX));
    assert_false(rp_table_can_insert(q, INT64_MAX));
    assert_false(rp_table_can_sample(q, INT64_MAX));
    assert_false(rp_table_can_insert(t, INT64_MIN));
    assert_false(rp_table_can_sample(t, INT64_MIN));
}

static void each_selector_takes_the_priorities_it_can_weigh_and_refuses_others(void **state)
{
    (void)state;
    static const double priorities[] = {NAN,      INFINITY, -INFINITY, -1,
                                        -DBL_MAX, DBL_MAX,  0x1p-1074, 0};
    static const bool fits_weighted[] = {false, false, false, false, false, false, true, true};
    static const char *const names[] = {"0", "1", "2", "3", "4",  "5",
                                        "6", "7", "8", "9", "10", "11"};

    for (int k = 0; k < 12; k++) {
        rp_selector_kind kind = (rp_selector_kind)(k % 6);
        rp_table_options o =
            rp_test_options(names[k], k < 6 ? kind : RP_FIFO, k < 6 ? RP_FIFO : kind, 100);
        rp_table *t = rp_test_bed_table(&bed, &o);
        put(t, 100, 1);
        for (size_t i = 0; i < COUNT_OF(priorities); i++) {
            rp_table_info before = rp_test_info_of(t);
            bool fits = kind == RP_PRIORITIZED ? fits_weighted[i] : !isnan(priorities[i]);
            rp_status st = rp_test_try_put(t, i, priorities[i], bed.plain, &bed.err);

            assert_int_equal(st, fits ? RP_OK : RP_INVALID);
            if (!fits) {
                assert_non_null(strstr(bed.err.text, "item 0, key"));
                assert_unchanged(t, &before);
            }
        }
        assert_true(rp_table_check(t));
        assert_true(isfinite(rp_test_info_of(t).max_priority)); /* infinity is not a maximum */
    }
}

static void items_of_maximal_priority_get_the_largest_priority_so_far(void **state)
{
    (void)state;
    rp_table *t = make(RP_MAX_HEAP, RP_FIFO, 10);
    rp_insert item = {
        .key = 1, .priority = NAN, .trajectory = bed.plain, .flags = RP_INSERT_MAX_PRIORITY};
    rp_sample s;
    uint64_t keys[] = {1, 2, 3};

    assert_ok(rp_table_insert(t, &item, 1, rp_wait_none(), NULL, NULL)); /* at least 1 */
    put(t, 50, 7);
    assert_ok(
        rp_table_delete(t, &(uint64_t){50}, 1, NULL, NULL)); /* even if that one is gone */
    item.key = 2;
    assert_ok(rp_table_insert(t, &item, 1, rp_wait_none(), NULL, NULL));
    assert_ok(rp_table_update(t, &(rp_update){1, 9}, 1, NULL, NULL));
    put(t, 51, INFINITY);
    item.key = 3;
    assert_ok(rp_table_insert(t, &item, 1, rp_wait_none(), NULL, NULL));

    const double expected[] = {9, 7, 9};
    for (size_t i = 0; i < 3; i++) {
        assert_ok(rp_table_peek(t, &keys[i], 1, &s, NULL, NULL));
        assert_true(s.priority == expected[i]);
        rp_samples_release(&s, 1);
    }
    assert_true(rp_test_info_of(t).max_priority == 9);
}

static void maximal_priority_works_with_weights(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_PRIORITIZED, RP_PRIORITIZED, 10);
    o.sampler.exponent = 0.5;
    o.remover.exponent = -0.4;
    rp_table *t = rp_test_bed_table(&bed, &o);
    rp_insert item = {.key = 2, .trajectory = bed.plain, .flags = RP_INSERT_MAX_PRIORITY};
    put(t, 1, 16);

    assert_ok(rp_table_insert(t, &item, 1, rp_wait_none(), NULL, NULL));

    rp_sample s = rp_test_draw(t);
    assert_true(s.priority == 16 && s.probability == 0.5);
    assert_true(rp_table_check(t));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(table)
{
    const struct CMUnitTest tests[] = {
        TEST(option_out_of_range_is_refused_with_its_sentence),
        TEST(extension_that_does_nothing_is_refused),
        TEST(options_on_their_edges_are_accepted),
        TEST(info_shows_the_options_of_the_table),
        TEST(the_weight_of_a_table_is_that_of_its_sampler),
        TEST(update_sets_known_keys_and_counts_them),
        TEST(last_of_repeated_updates_wins),
        TEST(update_does_not_touch_the_rest_of_an_item),
        TEST(large_update_goes_through_in_one_call),
        TEST(bad_priority_anywhere_in_an_update_changes_nothing),
        TEST(delete_takes_known_keys_and_counts_them),
        TEST(key_may_come_back_after_its_deletion),
        TEST(large_delete_goes_through_in_one_call),
        TEST(peek_shows_items_and_counts_nothing),
        TEST(large_peek_finds_all),
        TEST(reset_starts_from_nothing),
        TEST(soft_limit_lets_the_table_grow_until_it_is_trimmed),
        TEST(soft_table_doubles_however_far_it_is_over_its_limit),
        TEST(trimming_a_hard_table_does_nothing),
        TEST(closed_table_refuses_everything_and_keeps_its_items),
        TEST(can_insert_and_can_sample_ask_the_limiter_alone),
        TEST(can_insert_and_can_sample_take_any_count),
        TEST(each_selector_takes_the_priorities_it_can_weigh_and_refuses_others),
        TEST(items_of_maximal_priority_get_the_largest_priority_so_far),
        TEST(maximal_priority_works_with_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
