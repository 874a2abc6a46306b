/* SPDX-License-Identifier: Apache-2.0 */
#include "util/kill_point.h"

#ifdef RP_KILL_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void rp_kill_point(const char *name)
{
    static atomic_ulong passes;
    const char *wanted = getenv("RP_KILL"), *colon;
    unsigned long at = 1;

    if (wanted == NULL) return;
    colon = strrchr(wanted, ':');
    if (colon != NULL) at = strtoul(colon + 1, NULL, 10);
    if (strlen(name) != (colon != NULL ? (size_t)(colon - wanted) : strlen(wanted)) ||
        strncmp(name, wanted, strlen(name)) != 0)
        return;
    if (atomic_fetch_add(&passes, 1) + 1 == at) (void)raise(SIGKILL);
}

#else

/* ISO C forbids an empty translation unit. */
typedef int rp_no_kill_points;

#endif
