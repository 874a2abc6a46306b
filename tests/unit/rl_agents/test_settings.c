/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/settings.h"

#include <string.h>

#include "reprise/rl/dpg.h"
#include "reprise/rl/dqn.h"
#include "reprise/rl/sac.h"
#include "support/unit.h"

static union {
    rp_dqn_settings dqn;
    rp_dpg_settings dpg;
    rp_sac_settings sac;
} settings;

static const rp_settings_table *table_at(size_t i)
{
    return i == 0   ? rp_dqn_settings_table()
           : i == 1 ? rp_dpg_settings_table()
                    : rp_sac_settings_table();
}

static void every_table_has_names_defaults_and_bounds(void **state)
{
    (void)state;
    for (size_t at = 0; at < 3; at++) {
        const rp_settings_table *table = table_at(at);

        rp_settings_init(table, &settings, NULL);
        assert_ok(rp_settings_check(table, &settings, NULL));
        for (size_t i = 0; i < table->count; i++) {
            const rp_setting_info *info = &table->list[i];

            assert_int_equal(rp_settings_find(table, info->name), i); /* names are unique */
            assert_true(strlen(info->about) > 5 && strlen(info->about) <= 50);
            assert_true(rp_settings_get(table, &settings, i) == info->initial);
            rp_settings_set(table, &settings, i, info->high);
            assert_true(rp_settings_get(table, &settings, i) == info->high);
            rp_settings_set(table, &settings, i, info->initial);
        }
        assert_int_equal(rp_settings_find(table, "no-such"), table->count);
    }
}

static void every_value_of_an_environment_is_a_setting(void **state)
{
    (void)state;
    for (size_t at = 0; at < 3; at++) {
        const rp_settings_table *table = table_at(at);

        for (size_t i = 0; i < table->preset_count; i++) {
            const rp_setting_preset *p = &table->presets[i];
            size_t index = rp_settings_find(table, p->name);

            assert_true(index < table->count);
            assert_true(p->value != table->list[index].initial);
            rp_settings_init(table, &settings, p->env);
            assert_true(rp_settings_get(table, &settings, index) == p->value);
            assert_ok(rp_settings_check(table, &settings, NULL));
        }
    }
}

static void a_value_out_of_its_bounds_is_named(void **state)
{
    (void)state;
    rp_error err;

    rp_dpg_settings_init(&settings.dpg, NULL);
    settings.dpg.evict_exponent = 0.4;
    assert_int_equal(rp_dpg_settings_check(&settings.dpg, &err), RP_INVALID);
    assert_string_equal(err.text, "dpg: evict-exponent must be from -10 to 0, got 0.4");
    settings.dpg.evict_exponent = 0;
    settings.dpg.capacity = 10;
    assert_int_equal(rp_dpg_settings_check(&settings.dpg, &err), RP_INVALID);
    assert_string_equal(err.text, "dpg: start must be <= capacity, 10, got 1000");
}

RP_TESTS(settings)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_has_names_defaults_and_bounds),
        cmocka_unit_test(every_value_of_an_environment_is_a_setting),
        cmocka_unit_test(a_value_out_of_its_bounds_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
