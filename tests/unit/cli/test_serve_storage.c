/* SPDX-License-Identifier: Apache-2.0 */
/* The advice for a data directory that could not be loaded. */
#include "cli/serve/serve_storage.h"

#include <string.h>

#include "cli/commands/remote.h"
#include "support/unit.h"
#include "util/error.h"

static void advice_names_what_is_short(void **state)
{
    rp_error err = {0};

    (void)state;
    (void)!rp_fail_memory(&err, 100);
    assert_non_null(strstr(rp_storage_hint(&err), "more memory"));
    (void)!rp_fail(&err, RP_NO_RESOURCE, "checkpoint: the disk is full: 100 bytes are needed");
    assert_non_null(strstr(rp_storage_hint(&err), "room on the disk"));
    (void)!rp_fail(&err, RP_NO_RESOURCE, "quarantine: mkdir: No space left on device");
    assert_non_null(strstr(rp_storage_hint(&err), "df -i"));
    (void)!rp_fail(&err, RP_CORRUPT, "seg/1: a bad checksum");
    assert_non_null(strstr(rp_storage_hint(&err), "--salvage"));
    (void)!rp_fail(&err, RP_UNAVAILABLE, "CURRENT: preadv: Input/output error");
    assert_non_null(strstr(rp_storage_hint(&err), "look at the disk"));
    (void)!rp_fail(&err, RP_PRECONDITION, "a reason");
    assert_null(rp_storage_hint(&err));
}

static void a_server_that_loads_says_so_once_and_to_wait(void **state)
{
    rp_durable_progress progress = {.what = "loading", .done = 1 << 20, .total = 4 << 20};
    char text[200];

    (void)state;
    assert_null(strstr(rp_storage_health_text(&progress, text, sizeof text), "loading"));
    assert_non_null(strstr(text, "25 %"));
    progress.what = "redoing";
    assert_ptr_equal(strstr(rp_storage_health_text(&progress, text, sizeof text), "redoing, "),
                     text);
    assert_string_equal(rp_status_hint(RP_UNAVAILABLE, "the server is loading its data: 25 %"),
                        "repeat the command when it has loaded its data");
}

RP_TESTS(serve_storage)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_names_what_is_short),
        cmocka_unit_test(a_server_that_loads_says_so_once_and_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
