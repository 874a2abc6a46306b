/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the headers, and that of the library a program runs with.
 *
 * The macros give the version a program was compiled against. rp_version() gives the version of
 * the library it is linked with, which differs if a shared library was replaced. */
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

/* Returns RP_VERSION as the library was compiled. Static. */
RP_API const char *rp_version(void);

RP_END_DECLS

#endif
