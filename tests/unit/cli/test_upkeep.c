/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/upkeep.h"

#include "support/writing.h"

static void add_items(rp_test_rig *r, const char *table, int count)
{
    for (int i = 0; i < count; i++) {
        rp_test_append(r, 1);
        (void)rp_test_put_latest(r, table, 1);
    }
}

static int64_t size_of(rp_store *store, const char *name)
{
    rp_table_info info;

    rp_table_get_info(rp_test_table(store, name), &info);
    return info.size;
}

static void tables_with_a_soft_limit_are_trimmed_and_all_are_counted(void **state)
{
    rp_test_rig r;
    rp_table_options soft = rp_test_open_table("soft"), hard = rp_test_open_table("hard");
    rp_upkeep_totals totals;

    (void)state;
    rp_test_rig_open(&r, NULL);
    soft.max_size = 4;
    soft.soft_limit = true;
    assert_ok(rp_store_add_table(r.store, &soft, NULL, NULL));
    assert_ok(rp_store_add_table(r.store, &hard, NULL, NULL));
    add_items(&r, "soft", 10);
    add_items(&r, "hard", 3);
    assert_int_equal(size_of(r.store, "soft"), 10);

    totals = rp_upkeep_count(r.store);
    assert_int_equal(totals.items, 13);
    assert_int_equal(totals.inserts, 13);
    assert_int_equal(totals.samples, 0);

    rp_store_trim(r.store);
    assert_int_equal(size_of(r.store, "soft"), 4);
    assert_int_equal(size_of(r.store, "hard"), 3);
    rp_store_trim(r.store);
    assert_int_equal(rp_upkeep_count(r.store).items, 7);

    rp_test_rig_deinit(&r); /* nothing is left: every reference was dropped */
}

RP_TESTS(upkeep)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_with_a_soft_limit_are_trimmed_and_all_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
