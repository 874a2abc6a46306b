/* SPDX-License-Identifier: Apache-2.0 */
/* Bugs that are planted into a copy of the sources, to check that the tests find them.
 *
 *   if (rp_planted(7)) ...
 *
 * The patches in this folder plant the bugs, tests/durability/planted.py lists them, and the
 * environment variable RP_PLANT selects one: RP_PLANT=7. The compiler includes this file before
 * every source. */
#ifndef RP_TEST_PLANTED_H
#define RP_TEST_PLANTED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool rp_planted(int number)
{
    static int chosen = -1;

    if (chosen < 0) {
        const char *text = getenv("RP_PLANT");
        chosen = text != NULL ? (int)strtol(text, NULL, 10) : 0;
    }
    return chosen == number;
}

#endif
