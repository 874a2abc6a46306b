/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/metrics.h"

#include <pthread.h>
#include <stdio.h>

#include "support/unit.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_metrics *metrics;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    return rp_metrics_new(&alloc, 3, &metrics) == RP_OK ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    rp_metrics_free(metrics);
    return atomic_load(&oom.live) == 0 && atomic_load(&oom.live_bytes) == 0 ? 0 : 1;
}

static void counters_begin_at_zero(void **state)
{
    static rp_loop_metrics sums;
    const unsigned char *bytes = (const unsigned char *)&sums;

    (void)state;
    rp_metrics_sum(metrics, &sums);
    for (size_t i = 0; i < sizeof sums; i++) assert_int_equal(bytes[i], 0);
}

static void the_sum_is_over_all_loops_and_the_shared_counters(void **state)
{
    static rp_loop_metrics sums;

    (void)state;
    for (size_t loop = 0; loop < 3; loop++) {
        rp_loop_metrics *m = rp_metrics_loop(metrics, loop);

        rp_counter_add(&m->connections_opened, 10 + loop);
        rp_counter_add(&m->connections, 5);
        rp_counter_sub(&m->connections, loop);
        rp_counter_add(&m->calls[RP_METHOD_RESET][7], 1);
        rp_counter_add(&m->abuse[RP_ABUSE_KINDS - 1], 2); /* the last there is */
    }
    rp_counter_add_shared(&rp_metrics_shared(metrics)->refusals[RP_REFUSED_DENIED], 4);
    rp_metrics_sum(metrics, &sums);

    assert_int_equal(rp_counter_get(&sums.connections_opened), 33);
    assert_int_equal(rp_counter_get(&sums.connections), 12);
    assert_int_equal(rp_counter_get(&sums.calls[RP_METHOD_RESET][7]), 3);
    assert_int_equal(rp_counter_get(&sums.abuse[RP_ABUSE_KINDS - 1]), 6);
    assert_int_equal(rp_counter_get(&sums.refusals[RP_REFUSED_DENIED]), 4);
    assert_int_equal(rp_counter_get(&sums.bytes_read), 0);
}

/* What one loop adds and another takes away comes to nothing. */
static void amounts_may_move_between_loops(void **state)
{
    static rp_loop_metrics sums;

    (void)state;
    rp_counter_add(&rp_metrics_loop(metrics, 0)->queued_bytes, 100);
    rp_counter_sub(&rp_metrics_loop(metrics, 1)->queued_bytes, 70);
    rp_metrics_sum(metrics, &sums);
    assert_int_equal(rp_counter_get(&sums.queued_bytes), 30);
}

static void shards_do_not_share_cache_lines(void **state)
{
    rp_table_metrics *t = rp_metrics_table(metrics, "t");

    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i < 2; i++) {
        const char *a = (const char *)rp_metrics_loop(metrics, i),
                   *b = (const char *)rp_metrics_loop(metrics, i + 1),
                   *c = (const char *)rp_table_metrics_loop(t, i),
                   *d = (const char *)rp_table_metrics_loop(t, i + 1);

        assert_int_equal((uintptr_t)a % 64, 0);
        assert_int_equal((uintptr_t)c % 64, 0);
        assert_true(b >= a + sizeof(rp_loop_metrics));
        assert_true(d >= c + sizeof(rp_table_counters));
    }
    rp_table_metrics_unref(t);
}

static void tables_are_found_by_name(void **state)
{
    static rp_table_sums sums;
    rp_table_metrics *tables[40];
    char name[16];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        (void)snprintf(name, sizeof name, "t%zu", i * 7 % COUNT_OF(tables));
        tables[i] = rp_metrics_table(metrics, name);
        assert_non_null(tables[i]);
        rp_counter_add(&rp_table_metrics_loop(tables[i], i % 3)->inserted_items, i + 1);
        rp_histogram_record(&rp_table_metrics_loop(tables[i], 2)->sample_ns, 1000, i);
    }
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        rp_table_metrics *again;

        (void)snprintf(name, sizeof name, "t%zu", i * 7 % COUNT_OF(tables));
        again = rp_metrics_table(metrics, name);
        assert_ptr_equal(again, tables[i]);
        rp_metrics_sum_table(metrics, name, &sums);
        assert_int_equal(sums.inserted_items, i + 1);
        assert_int_equal(sums.sample_ns.count, i);
        rp_table_metrics_unref(again);
        rp_table_metrics_unref(tables[i]);
    }
    rp_metrics_sum_table(metrics, "nobody", &sums);
    assert_int_equal(sums.inserted_items, 0);
    assert_int_equal(sums.sample_ns.count, 0);
}

static void counters_of_a_forgotten_table_stay_usable(void **state)
{
    static rp_table_sums sums;
    rp_table_metrics *old = rp_metrics_table(metrics, "t"), *new;

    (void)state;
    assert_non_null(old);
    rp_counter_add(&rp_table_metrics_loop(old, 0)->sampled_items, 1);
    rp_metrics_forget_table(metrics, "t");
    rp_metrics_forget_table(metrics, "t");
    rp_counter_add(&rp_table_metrics_loop(old, 0)->sampled_items, 1); /* in vain, not wrong */
    rp_metrics_sum_table(metrics, "t", &sums);
    assert_int_equal(sums.sampled_items, 0);
    new = rp_metrics_table(metrics, "t");
    assert_non_null(new);
    assert_ptr_not_equal(new, old);
    rp_table_metrics_unref(rp_table_metrics_ref(old));
    rp_table_metrics_unref(old);
    rp_table_metrics_unref(new);
    rp_table_metrics_unref(NULL);
}

static void every_refusal_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (rp_refusal r = 0; r < RP_REFUSAL_COUNT; r++) {
        assert_string_not_equal(rp_refusal_name(r), "unknown");
        for (rp_refusal other = 0; other < r; other++)
            assert_string_not_equal(rp_refusal_name(r), rp_refusal_name(other));
    }
    assert_string_equal(rp_refusal_name(RP_REFUSED_QUEUED), "queued_bytes");
    assert_string_equal(rp_refusal_name(RP_REFUSAL_COUNT), "unknown");
}

static rp_status make_tables(const rp_allocator *a)
{
    static const char *const names[] = {"i", "h", "g", "f", "e", "d", "c", "b", "a"};
    rp_metrics *m = NULL;
    rp_status st = rp_metrics_new(a, 2, &m);

    for (size_t i = 0; st == RP_OK && i < COUNT_OF(names); i++) {
        rp_table_metrics *t = rp_metrics_table(m, names[i]);

        st = t != NULL ? RP_OK : RP_NO_RESOURCE;
        rp_table_metrics_unref(t);
    }
    rp_metrics_free(m);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    rp_metrics *m = NULL;

    (void)state;
    rp_test_survives_oom(make_tables);
    assert_int_equal(rp_metrics_new(&alloc, SIZE_MAX, &m), RP_NO_RESOURCE);
    rp_metrics_free(NULL);
}

enum { COUNTS = 20000 };

static void *count_many(void *arg)
{
    size_t loop = (size_t)(uintptr_t)arg;
    rp_loop_metrics *m = rp_metrics_loop(metrics, loop);

    for (int i = 0; i < COUNTS; i++) {
        rp_counter_add(&m->messages_read, 1);
        rp_counter_add_shared(&rp_metrics_shared(metrics)->refusals[0], 1);
        if (i % 1000 == 0) {
            rp_table_metrics *t = rp_metrics_table(metrics, "t");

            if (t == NULL) return NULL;
            rp_counter_add(&rp_table_metrics_loop(t, loop)->inserted_items, 1);
            rp_table_metrics_unref(t);
        }
    }
    return m;
}

static void loops_count_while_a_reader_sums(void **state)
{
    static rp_loop_metrics sums;
    static rp_table_sums table;
    pthread_t threads[3];
    void *result;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, (void *)(uintptr_t)i),
                         0);
    for (int i = 0; i < 100; i++) {
        rp_metrics_sum(metrics, &sums);
        rp_metrics_sum_table(metrics, "t", &table);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    rp_metrics_sum(metrics, &sums);
    rp_metrics_sum_table(metrics, "t", &table);
    assert_int_equal(rp_counter_get(&sums.messages_read), 3 * COUNTS);
    assert_int_equal(rp_counter_get(&sums.refusals[0]), 3 * COUNTS);
    assert_int_equal(table.inserted_items, 3 * COUNTS / 1000);
}

RP_TESTS(metrics)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_begin_at_zero),
        cmocka_unit_test(the_sum_is_over_all_loops_and_the_shared_counters),
        cmocka_unit_test(amounts_may_move_between_loops),
        cmocka_unit_test(shards_do_not_share_cache_lines),
        cmocka_unit_test(tables_are_found_by_name),
        cmocka_unit_test(counters_of_a_forgotten_table_stay_usable),
        cmocka_unit_test(every_refusal_has_a_name_of_its_own),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(loops_count_while_a_reader_sums),
    };
    struct CMUnitTest each[COUNT_OF(tests)];

    memcpy(each, tests, sizeof each);
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        each[i].setup_func = set_up;
        each[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests_name("metrics", each, NULL, NULL);
}
