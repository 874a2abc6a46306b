/* SPDX-License-Identifier: Apache-2.0 */
#include "client/writer/item_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

enum { MORE_BYTES = sizeof " and 4096 more" };

/* Returns true if a part of a path is a name, not a position. */
static bool is_name(const char *part, size_t size)
{
    return size > 0 && strspn(part, "0123456789") < size;
}

/* Returns true if the path ends with this name: the key of the leaf alone, say. */
static bool ends_with(const char *path, const char *name)
{
    size_t size = strlen(path), end = strlen(name);

    return size > end && path[size - end - 1] == '/' &&
           memcmp(path + size - end, name, end) == 0;
}

static bool differ(const char *ours, const char *theirs)
{
    const char *a = ours, *b = theirs;

    if (strcmp(ours, theirs) == 0 || ends_with(theirs, ours)) return false;
    for (;;) {
        size_t size = strcspn(a, "/"), other = strcspn(b, "/");
        if (size != other || memcmp(a, b, size) != 0)
            return is_name(a, size) && is_name(b, other);
        if (a[size] == '\0' || b[size] == '\0') return false;
        a += size + 1;
        b += size + 1;
    }
}

const char *rp_item_names_list(const rp_signature *signature, char text[RP_NAME_LIST_BYTES])
{
    const size_t count = rp_signature_column_count(signature);
    size_t at = 0, i = 0;

    text[0] = '\0';
    for (; i < count; i++) {
        const char *name = rp_signature_column(signature, i)->name;
        size_t size = strlen(name) + 2; /* with the comma */
        size_t kept = i + 1 < count ? MORE_BYTES : 1;
        if (at + size + kept > RP_NAME_LIST_BYTES) break;
        at += (size_t)snprintf(text + at, RP_NAME_LIST_BYTES - at, "%s%s", i == 0 ? "" : ", ",
                               name);
    }
    assert(at < RP_NAME_LIST_BYTES);
    if (i > 0 && i < count)
        (void)snprintf(text + at, RP_NAME_LIST_BYTES - at, " and %zu more", count - i);
    return text;
}

rp_status rp_item_names_check(const rp_signature *signature, const rp_item_column *columns,
                              rp_error *err)
{
    const size_t count = rp_signature_column_count(signature);
    char names[RP_NAME_LIST_BYTES];
    size_t nodes;

    if (rp_signature_nodes(signature, &nodes)->kind == RP_NEST_LEAF) return RP_OK;
    for (size_t i = 0; i < count; i++) {
        const char *ours = columns[i].name, *theirs = rp_signature_column(signature, i)->name;
        if (ours == NULL || !differ(ours, theirs)) continue;
        (void)rp_item_names_list(signature, names);
        return rp_fail(err, RP_INVALID,
                       "column %zu is '%.32s', the signature has '%.32s' there%s%s", i, ours,
                       theirs, names[0] == '\0' ? "" : "; the order is: ", names);
    }
    return RP_OK;
}

const char *rp_item_names_old(rp_wait wait)
{
    return wait.until_ns == RP_NOW
               ? "the signature may be out of date: a timeout above 0 asks again"
               : "the signature may be out of date: no server has sent it again";
}
