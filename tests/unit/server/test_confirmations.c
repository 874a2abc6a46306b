/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/confirmations.h"

#include "support/oom.h"
#include "support/unit.h"
#include "util/rng.h"

static rp_insert items[4096];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(items); i++) items[i].key = i + 1;
    return 0;
}

/* Adds the next `count` keys. */
static void put(rp_confirmations *c, size_t *at, size_t count, uint64_t lsn, uint64_t safe)
{
    assert_ok(rp_confirmations_add(c, rp_allocator_default(), items + *at, count, lsn, safe));
    *at += count;
}

static void check(const rp_confirmations *c)
{
    size_t sum = c->ready;

    for (size_t i = 0; i < c->mark_count; i++) {
        sum += c->marks[i].count;
        if (i > 0) assert_true(c->marks[i].lsn > c->marks[i - 1].lsn);
    }
    assert_int_equal(sum, c->count);
}

static void without_a_journal_all_keys_are_ready_at_once(void **state)
{
    (void)state;
    rp_confirmations c = {0};
    size_t at = 0;

    put(&c, &at, 3, 0, UINT64_MAX);
    put(&c, &at, 100, 0, UINT64_MAX);
    assert_int_equal(c.ready, 103);
    assert_int_equal(rp_confirmations_next(&c), 0);
    assert_int_equal(c.keys[102], 103);
    rp_confirmations_sent(&c, rp_allocator_default());
    assert_int_equal(c.count, 0);
    rp_confirmations_deinit(&c, rp_allocator_default());
}

static void memory_for_many_keys_is_freed_when_they_are_sent(void **state)
{
    (void)state;
    rp_confirmations c = {0};
    size_t at = 0;

    put(&c, &at, 4000, 0, UINT64_MAX);
    assert_true(c.capacity >= 4000);
    rp_confirmations_sent(&c, rp_allocator_default());
    assert_true(c.capacity <= 512);
    at = 0;
    put(&c, &at, 100, 0, UINT64_MAX);
    assert_int_equal(c.keys[99], 100);
    rp_confirmations_deinit(&c, rp_allocator_default());
}

static void keys_wait_until_their_log_number_is_safe(void **state)
{
    (void)state;
    rp_confirmations c = {0};
    size_t at = 0;

    put(&c, &at, 2, 5, 5);
    put(&c, &at, 3, 7, 5);
    put(&c, &at, 4, 9, 5);
    assert_int_equal(c.ready, 2);
    assert_int_equal(rp_confirmations_next(&c), 7);
    rp_confirmations_settle(&c, 6);
    assert_int_equal(c.ready, 2);
    rp_confirmations_settle(&c, 8);
    assert_int_equal(c.ready, 5);
    assert_int_equal(rp_confirmations_next(&c), 9);
    rp_confirmations_sent(&c, rp_allocator_default());
    assert_int_equal(c.count, 4);
    assert_int_equal(c.keys[0], 6);
    rp_confirmations_settle(&c, 9);
    assert_int_equal(c.ready, 4);
    rp_confirmations_deinit(&c, rp_allocator_default());
}

static void keys_are_confirmed_in_order_despite_lower_log_numbers(void **state)
{
    (void)state;
    rp_confirmations c = {0};
    size_t at = 0;

    put(&c, &at, 1, 9, 5);
    put(&c, &at, 1, 3, 5); /* safe, but behind one that is not */
    put(&c, &at, 1, 7, 5);
    rp_confirmations_settle(&c, 8);
    assert_int_equal(c.ready, 0);
    rp_confirmations_settle(&c, 9);
    assert_int_equal(c.ready, 3);
    assert_int_equal(c.keys[2], 3);
    rp_confirmations_deinit(&c, rp_allocator_default());
}

static void no_key_is_ready_before_it_is_safe_in_any_sequence(void **state)
{
    (void)state;
    static uint64_t lsns[COUNT_OF(items)];
    rp_rng rng;

    rp_rng_init(&rng, 11);
    for (int run = 0; run < 200; run++) {
        rp_confirmations c = {0};
        size_t at = 0, sent = 0;
        uint64_t lsn = 1, safe = 0;
        while (at < 300) {
            size_t count = 1 + (size_t)(rp_rng_next(&rng) % 5);
            uint64_t mine;
            lsn += rp_rng_next(&rng) % 3;
            mine = lsn - rp_rng_next(&rng) % (lsn < 4 ? lsn : 4); /* some come late */
            for (size_t i = 0; i < count; i++) lsns[at + i] = mine;
            put(&c, &at, count, mine, safe);
            if (rp_rng_next(&rng) % 3 == 0) {
                safe += rp_rng_next(&rng) % 6;
                if (safe > lsn) safe = lsn;
                rp_confirmations_settle(&c, safe);
            }
            check(&c);
            for (size_t i = 0; i < c.ready; i++) {
                assert_int_equal(c.keys[i], sent + i + 1);
                assert_true(lsns[sent + i] <= safe);
            }
            sent += c.ready;
            rp_confirmations_sent(&c, rp_allocator_default());
        }
        rp_confirmations_settle(&c, lsn);
        assert_int_equal(sent + c.ready, at);
        rp_confirmations_deinit(&c, rp_allocator_default());
    }
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(0);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_confirmations c = {0};

    assert_int_equal(rp_confirmations_add(&c, &alloc, items, 3, 7, 5), RP_NO_RESOURCE);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.mark_count, 0);
}

RP_TESTS(confirmations)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_journal_all_keys_are_ready_at_once),
        cmocka_unit_test(memory_for_many_keys_is_freed_when_they_are_sent),
        cmocka_unit_test(keys_wait_until_their_log_number_is_safe),
        cmocka_unit_test(keys_are_confirmed_in_order_despite_lower_log_numbers),
        cmocka_unit_test(no_key_is_ready_before_it_is_safe_in_any_sequence),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
