/* SPDX-License-Identifier: Apache-2.0 */
#include "store/no_table.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"

enum {
    LIST_BYTES =
        150, /* of the names: the error has room for the rest of its text beside them */
    SHOWN_BYTES = 60, /* of one name */
};

/* Writes the names of the tables, as many as fit, and how many more there are. */
static void list_names(rp_next_table *next, void *ctx, char text[2 * LIST_BYTES])
{
    size_t at = 0, left_out = 0;

    text[0] = '\0';
    for (const char *name = next(ctx); name != NULL; name = next(ctx)) {
        size_t length = strlen(name);

        if (length > SHOWN_BYTES) length = SHOWN_BYTES;
        if (left_out > 0 || at + length + 2 > LIST_BYTES) {
            left_out++;
            continue;
        }
        at += (size_t)snprintf(text + at, 2 * LIST_BYTES - at, "%s%.*s", at > 0 ? ", " : "",
                               SHOWN_BYTES, name);
    }
    if (left_out > 0) (void)snprintf(text + at, 2 * LIST_BYTES - at, " and %zu more", left_out);
}

rp_status rp_no_table(rp_string name, rp_next_table *next, void *ctx, rp_error *err)
{
    int shown = name.size < SHOWN_BYTES ? (int)name.size : SHOWN_BYTES;
    char names[2 * LIST_BYTES];

    if (err == NULL) return RP_NOT_FOUND;
    list_names(next, ctx, names);
    if (names[0] == '\0')
        return rp_fail(err, RP_NOT_FOUND,
                       "Priority table %.*s was not found: there are no tables", shown,
                       name.data);
    return rp_fail(err, RP_NOT_FOUND, "Priority table %.*s was not found; the tables are: %s",
                   shown, name.data, names);
}
