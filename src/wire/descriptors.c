/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/descriptors.h"

#include <assert.h>
#include <string.h>

/* As strcmp() of two texts of which one is not terminated. */
static int compare(rp_string a, const char *b)
{
    size_t b_size = strlen(b), common = a.size < b_size ? a.size : b_size;
    int order = common > 0 ? memcmp(a.data, b, common) : 0;

    if (order != 0) return order;
    return (a.size > b_size) - (a.size < b_size);
}

const rp_wire_file *rp_wire_find_file(rp_string name)
{
    for (size_t i = 0; i < rp_wire_file_count; i++)
        if (compare(name, rp_wire_files[i].name) == 0) return &rp_wire_files[i];
    return NULL;
}

const rp_wire_file *rp_wire_find_symbol(rp_string name)
{
    size_t from = 0, to = rp_wire_symbol_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(name, rp_wire_symbols[middle].name);
        assert(rp_wire_symbols[middle].file < rp_wire_file_count);
        if (order == 0) return &rp_wire_files[rp_wire_symbols[middle].file];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}
