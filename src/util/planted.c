/* SPDX-License-Identifier: Apache-2.0 */
#include "util/planted.h"

#ifdef RP_PLANTS
#include <stdlib.h>

int rp_planted;

static void choose(void) __attribute__((constructor));

static void choose(void)
{
    const char *text = getenv("RP_PLANT");

    if (text != NULL) rp_planted = (int)strtol(text, NULL, 10);
}
#else
typedef int rp_nothing_planted; /* a file must have something in it */
#endif
