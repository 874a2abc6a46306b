/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the headers, and the version of the library with which a program runs.
 *
 * The macros give the version of the headers with which the program was compiled. rp_version()
 * gives the version of the library with which the program is linked. The two differ if a shared
 * library was replaced after the program was compiled. */
#ifndef REPRISE_VERSION_H
#define REPRISE_VERSION_H

#include "reprise/status.h"

RP_BEGIN_DECLS

#define RP_VERSION_MAJOR 0
#define RP_VERSION_MINOR 1
#define RP_VERSION_PATCH 0

/* One number to compare: 1,002,003 for version 1.2.3. */
#define RP_VERSION_NUMBER                                                                      \
    (RP_VERSION_MAJOR * 1000000 + RP_VERSION_MINOR * 1000 + RP_VERSION_PATCH)

/* "1.2.3" for version 1.2.3. */
#define RP_VERSION                                                                             \
    RP_VERSION_TEXT_(RP_VERSION_MAJOR)                                                         \
    "." RP_VERSION_TEXT_(RP_VERSION_MINOR) "." RP_VERSION_TEXT_(RP_VERSION_PATCH)
#define RP_VERSION_TEXT_(number) RP_VERSION_DIGITS_(number)
#define RP_VERSION_DIGITS_(digits) #digits

/* Returns the RP_VERSION with which the library was compiled. Static. */
RP_API const char *rp_version(void);

RP_END_DECLS

#endif
