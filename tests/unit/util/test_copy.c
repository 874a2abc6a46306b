/* SPDX-License-Identifier: Apache-2.0 */
#include "util/copy.h"

#include <stdint.h>
#include <string.h>

#include "support/unit.h"

/* From everywhere to everywhere within a line, of every length that makes a difference: what is
 * asked for is written, and not a byte beside it. */
static void copies_any_bytes_anywhere(void **state)
{
    enum { LINE = 64, MOST = 5 * LINE, ROOM = 2 * LINE + MOST };
    uint8_t from[ROOM], to[ROOM], expected[ROOM];

    (void)state;
    for (size_t i = 0; i < ROOM; i++) from[i] = (uint8_t)(7 * i + 1);
    for (size_t src = 0; src < LINE; src += 3)
        for (size_t dst = 0; dst < LINE; dst++)
            for (size_t size = 0; size <= MOST; size += size < 2 * LINE + 2 ? 1 : 31) {
                memset(to, 0xee, ROOM);
                memset(expected, 0xee, ROOM);
                memcpy(expected + dst, from + src, size);
                rp_copy_past_caches(to + dst, from + src, size);
                assert_memory_equal(to, expected, ROOM);
            }
}

RP_TESTS(copy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_any_bytes_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
