/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dm-reverb's checkpoints. */
#include "durable/reverb/reverb_wire.h"
#include "support/unit.h"

static void names_are_times_as_abseil_writes_them(void **state)
{
    static const struct {
        int64_t ns;
        const char *name;
    } cases[] = {
        {0, "1970-01-01T00:00:00+00:00"},
        {INT64_C(1610558185547225671), "2021-01-13T17:16:25.547225671+00:00"},
        {INT64_C(1610558185500000000), "2021-01-13T17:16:25.5+00:00"},
        {INT64_C(951782400000000000), "2000-02-29T00:00:00+00:00"},
        {INT64_C(1709251199000000001), "2024-02-29T23:59:59.000000001+00:00"},
        {-1, "1969-12-31T23:59:59.999999999+00:00"},
    };
    char name[RP_REVERB_NAME_BYTES];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(rp_reverb_name(name, cases[i].ns), cases[i].name);
}

RP_TESTS(reverb_name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_times_as_abseil_writes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
