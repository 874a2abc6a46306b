/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/version.h"

#include <stdio.h>

#include "support/unit.h"

static void version_of_the_library_is_that_of_the_headers(void **state)
{
    (void)state;
    assert_string_equal(rp_version(), RP_VERSION);
}

static void text_and_number_have_the_same_three_parts(void **state)
{
    int major = -1, minor = -1, patch = -1;
    char rest;
    (void)state;

    assert_int_equal(sscanf(RP_VERSION, "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);

    assert_int_equal(major, RP_VERSION_MAJOR);
    assert_int_equal(minor, RP_VERSION_MINOR);
    assert_int_equal(patch, RP_VERSION_PATCH);
    assert_int_equal(RP_VERSION_NUMBER, (major * 1000 + minor) * 1000 + patch);
}

RP_TESTS(version)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_of_the_library_is_that_of_the_headers),
        cmocka_unit_test(text_and_number_have_the_same_three_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
